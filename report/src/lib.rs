//! What went wrong, for programs and for people. [`codes!`] declares a crate's stable codes, each with its meaning
//! and advice; the book's pages are generated from these tables. A [`Report`] says under which code something was
//! refused, where, what was expected and found, and what to do. Errors with fields of their own stay enums and take
//! their codes from the same macro.

mod codes;
mod report;

pub use codes::{Code, Coded, Kind, Severity};
pub use report::Report;
