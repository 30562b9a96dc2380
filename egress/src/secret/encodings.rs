//! The fixed forms in which servers echo a value. Escapes that vary are not among these forms,
//! since the search undoes them (`readings.rs`). The list is not complete: a malicious server can
//! pass the value to a guest in another form. This is why policy ties a secret to a trusted origin.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use zeroize::Zeroizing;

/// Longer values are not searched for in base64 of base64, which has 36 patterns, each nearly twice
/// as long as the value.
const MAX_NESTED_BYTES: usize = 2 << 10;

type Form = Zeroizing<Vec<u8>>;

/// The value unchanged, in upper case, in lower case, with doubled quotation marks, in hexadecimal,
/// in base64 (also after escaping), and in base64 of base64 if it is short. The unchanged and
/// hexadecimal forms also occur with `+` for each space.
pub(crate) fn of(value: &[u8]) -> Vec<Form> {
    let mut forms = Vec::new();
    let mut plain = vec![Zeroizing::new(value.to_vec())];
    if value.contains(&b' ') {
        // Browsers send the fields of a web form in this way.
        plain.push(replaced(value, |byte, out| {
            out.push(if byte == b' ' { b'+' } else { byte });
        }));
    }
    for text in &plain {
        forms.push(replaced(text, |byte, out| {
            // Writing to a vector can't fail.
            let _ = write!(out, "{byte:02x}");
        }));
        forms.push(replaced(text, |byte, out| {
            let _ = write!(out, "{byte:02X}");
        }));
    }
    for run in base64(value) {
        if value.len() <= MAX_NESTED_BYTES {
            forms.extend(base64(&run));
        }
        forms.push(run);
    }
    // Header names and identifiers have a single case, and SQL and CSV double quotation marks.
    forms.extend([
        Zeroizing::new(value.to_ascii_uppercase()),
        Zeroizing::new(value.to_ascii_lowercase()),
        doubled(value, b'\''),
        doubled(value, b'"'),
    ]);
    // Text with the value may have been escaped before it was encoded as base64.
    for text in escaped(value) {
        forms.extend(base64(&text));
    }
    for alphabet in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
        // The base64 of a value at the end of a text, including the last characters.
        for before in 0..3 {
            let (encoded, start, _) = encoded(value, before, &alphabet);
            forms.push(part(&encoded, start, encoded.len()));
        }
    }
    forms.extend(plain);
    forms
}

/// The most bytes of all forms of a value, computed without creating them.
pub(crate) fn max_bytes(value: &[u8]) -> u64 {
    let length = |text: &[u8]| u64::try_from(text.len()).unwrap_or(u64::MAX);
    let own = length(value);
    // The bytes for each byte of the value: 1 for the plain form and 2 for each hexadecimal form,
    // all twice because of spaces; 1 for each case, 2 for each kind of doubled marks; and base64 in
    // the middle of a text and at its end.
    let fixed: u64 = 2 * (1 + 2 + 2) + (1 + 1 + 2 + 2) + 2 * BASE64;
    let nested = if value.len() <= MAX_NESTED_BYTES {
        BASE64.saturating_mul(BASE64)
    } else {
        0
    };
    let escaped = escaped(value).iter().fold(0, |sum: u64, text| {
        sum.saturating_add(length(text).saturating_mul(BASE64))
    });
    own.saturating_mul(fixed.saturating_add(nested))
        .saturating_add(escaped)
}

/// The bytes of base64 for each byte: the sum for three offsets in two alphabets.
const BASE64: u64 = 8;

/// The base64 of `text` inside a longer text, in both alphabets and for each offset. The characters
/// at its edges are left out, since they depend on the surrounding bytes.
fn base64(text: &[u8]) -> Vec<Form> {
    let mut runs: Vec<Form> = Vec::new();
    for before in 0..3 {
        for alphabet in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            let (encoded, start, end) = encoded(text, before, &alphabet);
            runs.push(part(&encoded, start, end));
        }
    }
    // Both alphabets mostly give the same run.
    runs.dedup();
    runs
}

/// `text` after `before` other bytes in base64, and the start and end of the characters that depend
/// only on `text`.
fn encoded(text: &[u8], before: usize, alphabet: &GeneralPurpose) -> (Form, usize, usize) {
    let mut whole = Zeroizing::new(Vec::with_capacity(before + text.len()));
    whole.resize(before, 0);
    whole.extend_from_slice(text);
    let encoded = Zeroizing::new(alphabet.encode(&*whole).into_bytes());
    let start = (before * 8).div_ceil(6);
    let end = whole.len() * 8 / 6;
    (encoded, start, end)
}

fn part(text: &[u8], start: usize, end: usize) -> Form {
    Zeroizing::new(text.get(start..end).unwrap_or_default().to_vec())
}

/// The value with the escapes of JSON, URLs and HTML, if these change it.
fn escaped(value: &[u8]) -> Vec<Form> {
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let json = |special: &'static [u8]| {
        replaced(value, move |byte, out| {
            if special.contains(&byte) {
                out.push(b'\\');
            }
            out.push(byte);
        })
    };
    let mut texts = vec![
        json(b"\"\\"),
        json(b"\"\\/"),
        replaced(value, |byte, out| {
            if unreserved(byte) {
                out.push(byte);
            } else {
                let _ = write!(out, "%{byte:02X}");
            }
        }),
        replaced(value, |byte, out| match byte {
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            byte => out.push(byte),
        }),
    ];
    texts.retain(|text| text.as_slice() != value);
    texts
}

fn doubled(value: &[u8], mark: u8) -> Form {
    replaced(value, |byte, out| {
        out.push(byte);
        if byte == mark {
            out.push(byte);
        }
    })
}

/// `value`, with some bytes written in another form.
fn replaced(value: &[u8], write: impl Fn(u8, &mut Vec<u8>)) -> Form {
    // Has room for the longest form of each byte, since a vector that grows leaves copies behind.
    let mut out = Zeroizing::new(Vec::with_capacity(value.len().saturating_mul(6)));
    for byte in value.iter().copied() {
        write(byte, &mut out);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::STANDARD;

    #[test]
    fn the_forms_take_no_more_than_was_said() {
        for value in [
            b"0123456789abcdef".to_vec(),
            b"a b\"c\\d/e%f&g<h>i'j".repeat(20),
            b"\"".repeat(5000),
            b" x".repeat(4000),
            b"x".repeat(MAX_NESTED_BYTES),
        ] {
            let made: usize = of(&value).iter().map(|form| form.len()).sum();
            assert!(
                made as u64 <= max_bytes(&value),
                "{made} {}",
                max_bytes(&value)
            );
        }
    }

    #[test]
    fn base64_of_any_text_around_a_value_holds_one_of_its_forms() {
        let value = b"sk+live/0123?456>789";
        let forms = of(value);
        for before in 0..6 {
            for after in 0..4 {
                let text = [&b"\xff!abcd"[..before], value, &b"\xff\xfe!"[..after]].concat();
                let once = STANDARD.encode(&text);
                for encoded in [
                    once.clone(),
                    URL_SAFE_NO_PAD.encode(&text),
                    STANDARD.encode(format!("x{once}")),
                    URL_SAFE_NO_PAD.encode(&once),
                ] {
                    assert!(
                        forms.iter().any(|form| {
                            let mut windows = encoded.as_bytes().windows(form.len());
                            windows.any(|window| window == form.as_slice())
                        }),
                        "{before} {after} {encoded}"
                    );
                }
            }
        }
    }

    #[test]
    fn no_form_is_short_enough_to_occur_by_chance() {
        for value in ["~~~~~~~~", "12345678", "a b c d "] {
            assert!(of(value.as_bytes()).iter().all(|form| form.len() >= 8));
        }
    }

    #[test]
    fn the_room_of_a_form_is_never_exceeded() {
        let value: Vec<u8> = (0x20..0x7f).collect();
        for form in escaped(&value) {
            assert!(form.len() <= 6 * value.len());
        }
    }
}
