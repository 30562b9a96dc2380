//! Makes text that somebody else wrote safe to show to a person.

pub use toolward_text::{is_hidden, is_plain, visible, visible_json, visible_line};
