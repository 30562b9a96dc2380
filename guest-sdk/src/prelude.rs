//! The names that `std`, but not `core`, brings into every file. For drivers without the standard
//! library.
//!
//! ```
//! use toolward_guest::prelude::*;
//!
//! let names: Vec<String> = vec!["Ada".to_owned(), format!("Ada{}", 2)];
//! # assert_eq!(names.len(), 2);
//! ```

pub use alloc::borrow::ToOwned;
pub use alloc::boxed::Box;
pub use alloc::string::{String, ToString};
pub use alloc::vec::Vec;
pub use alloc::{format, vec};
