//! Files and folders that trust rests on: whose they are, what others may do with them, whether links are
//! followed; reading them within bounds, and writing them whole or not at all.
//!
//! * [`Protection`]: the one decision of whose a file is and which mode it may have;
//! * [`open`], [`open_regular`], [`read`]: reading what was checked, and nothing that was put in its place;
//! * [`Folder`], [`private_file`]: places that are made where they are missing;
//! * [`write_new`], [`create`], [`replace`]: writing;
//! * [`EditedFile`]: changing a file of the user's that other programs own;
//! * [`lock`]: keeping other processes away for a while.
//!
//! ```
//! use toolward_files::{Links, Problem, Protection};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("key");
//! toolward_files::create(&path, b"secret", 0o600)?;
//! let file = toolward_files::open(&path, Protection::Private, Links::Refuse)?;
//! assert_eq!(toolward_files::read(file, &path, 100)?, b"secret");
//!
//! toolward_files::replace(&path, b"secret", 0o640)?;
//! let error = toolward_files::open(&path, Protection::Private, Links::Refuse).unwrap_err();
//! assert!(matches!(error.problem, Problem::Mode { mode: 0o640 }));
//! # Ok(())
//! # }
//! ```

mod edited;
mod error;
mod folder;
mod lock;
mod protection;
mod reading;
mod writing;

pub use edited::EditedFile;
pub use error::{Error, Problem};
pub use folder::{Folder, private_file};
pub use lock::{Lock, lock};
pub use protection::Protection;
pub use reading::{Links, open, open_regular, read};
pub use writing::{create, replace, write_new};
