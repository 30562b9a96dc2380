//! Takes out of a document what could run or load something in a browser: raw
//! HTML is shown as text, links keep only schemes that lead somewhere harmless.

use pulldown_cmark::{CowStr, Event, Tag};

/// Schemes that a link may have; one without any is relative.
const SCHEMES: [&str; 3] = ["http", "https", "mailto"];

/// Changes the events in place and tells how many were changed.
pub fn make_safe(events: &mut [Event<'_>]) -> usize {
    let mut removed = 0;
    for event in events {
        match event {
            Event::Html(html) | Event::InlineHtml(html) => {
                let text = std::mem::replace(html, CowStr::Borrowed(""));
                *event = Event::Text(text);
                removed += 1;
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. })
                if !is_harmless(dest_url) =>
            {
                *dest_url = CowStr::Borrowed("");
                removed += 1;
            }
            _ => {}
        }
    }
    removed
}

/// Whether an address is relative or has an allowed scheme. Browsers skip white
/// space and control characters within a scheme, so these are skipped here too.
fn is_harmless(address: &str) -> bool {
    let address: String = address
        .chars()
        .filter(|character| !character.is_whitespace() && !character.is_control())
        .collect();
    let Some(colon) = address.find(':') else {
        return true;
    };
    let before = address.get(..colon).unwrap_or_default();
    // A colon behind a slash, a question mark or a hash is no scheme's.
    before.contains(['/', '?', '#'])
        || SCHEMES
            .iter()
            .any(|scheme| before.eq_ignore_ascii_case(scheme))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_harmless_addresses_stay() {
        for fine in [
            "",
            "#a",
            "a/b:c",
            "?q=a:b",
            "https://a",
            "HTTP://a",
            "mailto:a@b",
        ] {
            assert!(is_harmless(fine), "{fine}");
        }
        for bad in [
            "javascript:x",
            " java\tscript:x",
            "JaVaScRiPt:x",
            "data:text/html,x",
            "vbscript:x",
            "\u{1}javascript:x",
        ] {
            assert!(!is_harmless(bad), "{bad}");
        }
    }
}
