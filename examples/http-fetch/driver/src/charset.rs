//! Bytes of a page as text. UTF-8 and the one-byte charset that browsers read as
//! windows-1252 are nearly all of the web; others are named, not guessed.

use toolward_guest::Error;

/// How far into a page a charset may be declared.
const DECLARED_WITHIN: usize = 1024;

/// What 0x80 to 0x9f stand for in windows-1252.
const HIGH: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
    '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

pub(crate) fn decode(bytes: &[u8], content_type: &str) -> Result<String, Error> {
    if let Some(bytes) = bytes.strip_prefix(b"\xef\xbb\xbf") {
        return Ok(String::from_utf8_lossy(bytes).into_owned());
    }
    let start = bytes.get(..DECLARED_WITHIN).unwrap_or(bytes);
    let label = declared(content_type)
        .or_else(|| declared(&String::from_utf8_lossy(start)))
        .unwrap_or_else(|| "utf-8".to_owned());
    match label.as_str() {
        "utf-8" | "utf8" => Ok(String::from_utf8_lossy(bytes).into_owned()),
        "us-ascii" | "ascii" | "iso-8859-1" | "iso8859-1" | "latin1" | "windows-1252"
        | "cp1252" => Ok(bytes.iter().map(|byte| one(*byte)).collect()),
        other => Err(Error::new(
            "http:unsupported_charset",
            format!("expected UTF-8 or windows-1252, found the charset {other}"),
        )),
    }
}

/// What stands behind `charset=`, in lower case.
fn declared(text: &str) -> Option<String> {
    let text = text.to_ascii_lowercase();
    let (_, after) = text.split_once("charset=")?;
    let label: String = after
        .trim_start_matches(['"', '\'', ' '])
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || "-_".contains(*c))
        .collect();
    (!label.is_empty()).then_some(label)
}

fn one(byte: u8) -> char {
    let high = byte.checked_sub(0x80).map(usize::from);
    high.and_then(|at| HIGH.get(at).copied())
        .unwrap_or(char::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_charset_is_that_of_the_header_then_that_of_the_page() {
        let latin = b"caf\xe9 \x80";
        assert_eq!(
            decode(latin, "text/html; charset=ISO-8859-1").unwrap(),
            "café €"
        );
        let page = b"<meta charset=\"windows-1252\">caf\xe9";
        assert!(decode(page, "text/html").unwrap().ends_with("café"));
        assert!(
            decode(page, "text/html; charset=utf-8")
                .unwrap()
                .ends_with('\u{fffd}')
        );
        assert_eq!(decode("é".as_bytes(), "text/plain").unwrap(), "é");
        let marked = [b"\xef\xbb\xbf".as_slice(), "é".as_bytes()].concat();
        assert_eq!(decode(&marked, "text/plain; charset=latin1").unwrap(), "é");
    }

    #[test]
    fn a_charset_that_is_not_known_is_named() {
        let error = decode(b"", "text/html; charset=Shift_JIS").unwrap_err();
        assert_eq!(error.code(), "http:unsupported_charset");
        assert!(error.message().contains("shift_jis"));
    }
}
