//! Files and folders that trust depends on: who owns them, what others may do with them, whether links are
//! followed; reading them within bounds, and writing them completely or not at all.
//!
//! * [`Protection`]: who may own a file, and which mode it may have;
//! * [`open`], [`open_regular`], [`read`]: reading the checked file, and no other in its place;
//! * [`Folder`], [`private_file`]: places that are made if they are missing;
//! * [`write_new`], [`create`], [`replace`]: writing;
//! * [`EditedFile`]: changing a file of the user's that other programs own;
//! * [`lock`]: keeping other processes away for a while.
//!
//! ```
//! use toolward_support::files::{Links, Problem, Protection};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("key");
//! toolward_support::files::create(&path, b"secret", 0o600)?;
//! let file = toolward_support::files::open(&path, Protection::Private, Links::Refuse)?;
//! assert_eq!(toolward_support::files::read(file, &path, 100)?, b"secret");
//!
//! toolward_support::files::replace(&path, b"secret", 0o640)?;
//! let error = toolward_support::files::open(&path, Protection::Private, Links::Refuse).unwrap_err();
//! assert!(matches!(error.problem, Problem::Mode { mode: 0o640 }));
//! # Ok(())
//! # }
//! ```

mod edited;
mod file;
mod folder;
mod protection;

pub use edited::EditedFile;
pub use file::{Links, create, open, open_regular, read, replace, write_new};
pub use folder::{Folder, Lock, lock, private_file};
pub use protection::{Error, Problem, Protection};
