//! Makes text that somebody else wrote safe to show to a person.

mod excerpt;

pub use excerpt::excerpt;
pub use toolward_text::{is_hidden, is_plain, visible, visible_json, visible_line};

/// Names in a sentence, at most eight of them.
///
/// ```
/// let names = ["text.stats", "notes.append"];
/// assert_eq!(toolward_bundle::text::list(&names), "text.stats, notes.append");
/// ```
#[must_use]
pub fn list(names: &[&str]) -> String {
    let mut text = names.iter().take(8).copied().collect::<Vec<_>>().join(", ");
    if let Some(more) = names.len().checked_sub(8).filter(|more| *more > 0) {
        text.push_str(&format!(" and {more} more"));
    }
    text
}
