//! Finding tools by a few words: one index, over whatever list: what a server offers, what is installed, what a
//! channel lists.
//!
//! ```
//! use toolward_support::search::{Document, Index};
//!
//! let index = Index::build([
//!     Document { name: "mail.send", title: "Send mail", ..Document::default() },
//!     Document { name: "files.search", title: "Search files", ..Document::default() },
//! ]);
//! let hits = index.search("sending mails", 10);
//! assert_eq!(hits[0].position, 0);
//! ```

mod index;
mod words;

pub use index::{Document, Hit, Index};
