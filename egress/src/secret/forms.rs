//! The forms in which servers commonly echo a value. Not all: a server that
//! means to can give a guest the value in a form that nobody looks for, which
//! is why policy ties a secret to an origin that is trusted with it.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use zeroize::Zeroizing;

/// The value as it is, percent-encoded, escaped for JSON and HTML, and in
/// base64; longest first, each once.
pub(crate) fn of(value: &[u8]) -> Vec<Zeroizing<Vec<u8>>> {
    let mut forms = vec![
        Zeroizing::new(value.to_vec()),
        percent(value, false),
        percent(value, true),
        escaped(value, |byte| matches!(byte, b'"' | b'\\'), json),
        escaped(value, |byte| matches!(byte, b'"' | b'\\' | b'/'), json),
        escaped(value, |byte| b"&<>\"'".contains(&byte), html),
        Zeroizing::new(STANDARD_NO_PAD.encode(value).into_bytes()),
        Zeroizing::new(URL_SAFE_NO_PAD.encode(value).into_bytes()),
    ];
    forms.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    forms.dedup();
    forms
}

fn percent(value: &[u8], lower: bool) -> Zeroizing<Vec<u8>> {
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let code = |byte: u8, out: &mut String| {
        // Writing to a string does not fail.
        let _ = if lower {
            write!(out, "%{byte:02x}")
        } else {
            write!(out, "%{byte:02X}")
        };
    };
    escaped(value, |byte| !unreserved(byte), code)
}

fn json(byte: u8, out: &mut String) {
    out.push('\\');
    out.push(char::from(byte));
}

fn html(byte: u8, out: &mut String) {
    out.push_str(match byte {
        b'&' => "&amp;",
        b'<' => "&lt;",
        b'>' => "&gt;",
        b'"' => "&quot;",
        _ => "&#39;",
    });
}

/// `value`, which is ASCII, with some bytes written otherwise.
fn escaped(
    value: &[u8],
    special: impl Fn(u8) -> bool,
    write: impl Fn(u8, &mut String),
) -> Zeroizing<Vec<u8>> {
    // Room for the longest escape of each byte: a string that grows leaves
    // copies behind.
    let mut out = String::with_capacity(value.len().saturating_mul(6));
    for byte in value.iter().copied() {
        if special(byte) {
            write(byte, &mut out);
        } else {
            out.push(char::from(byte));
        }
    }
    Zeroizing::new(out.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_value_has_two_forms() {
        let forms = of(b"ghp_0123456789");
        assert_eq!(forms.len(), 2, "the base64 alphabets agree on it");
        assert!(
            forms
                .iter()
                .any(|form| form.as_slice() == b"ghp_0123456789")
        );
    }

    #[test]
    fn escapes_of_an_odd_value_are_known() {
        let forms = of(b"a/b\"c&d+efg");
        for form in [
            "a/b\"c&d+efg",
            "a%2Fb%22c%26d%2Befg",
            "a%2fb%22c%26d%2befg",
            "a\\/b\\\"c&d+efg",
            "a/b\\\"c&d+efg",
            "a/b&quot;c&amp;d+efg",
        ] {
            assert!(
                forms
                    .iter()
                    .any(|known| known.as_slice() == form.as_bytes()),
                "{form}"
            );
        }
        assert!(forms.is_sorted_by(|a, b| a.len() >= b.len()));
    }
}
