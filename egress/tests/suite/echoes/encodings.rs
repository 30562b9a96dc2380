//! Every encoding in which a server could echo a secret.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

pub(super) type Encoder = (&'static str, fn(&[u8]) -> Vec<u8>);

fn each(text: &[u8], write: impl Fn(usize, u8) -> String) -> Vec<u8> {
    let pieces = text.iter().enumerate();
    let written: Vec<Vec<u8>> = pieces
        .map(|(at, byte)| {
            let escaped = write(at, *byte);
            if escaped.is_empty() {
                vec![*byte]
            } else {
                escaped.into_bytes()
            }
        })
        .collect();
    written.concat()
}

fn only(condition: bool, escape: impl FnOnce() -> String) -> String {
    if condition { escape() } else { String::new() }
}

fn reserved(byte: u8) -> bool {
    !byte.is_ascii_alphanumeric() && !b"-._~".contains(&byte)
}

pub(super) fn name(byte: u8) -> Option<&'static str> {
    Some(match byte {
        b'&' => "amp",
        b'<' => "lt",
        b'>' => "gt",
        b'"' => "quot",
        b'\'' => "apos",
        b'+' => "plus",
        b'/' => "sol",
        b'=' => "equals",
        b'%' => "percnt",
        b'\\' => "bsol",
        b':' => "colon",
        b';' => "semi",
        b'.' => "period",
        b',' => "comma",
        b'_' => "lowbar",
        b'{' => "lcub",
        b'}' => "rcub",
        b'|' => "vert",
        b'`' => "grave",
        b'^' => "Hat",
        b'[' => "lsqb",
        b']' => "rsqb",
        b'!' => "excl",
        b'@' => "commat",
        b'#' => "num",
        b'$' => "dollar",
        b'*' => "ast",
        b'(' => "lpar",
        b')' => "rpar",
        b'?' => "quest",
        b'\t' => "Tab",
        _ => return None,
    })
}

/// The encodings that vary, and that can contain another encoding.
const ESCAPES: &[Encoder] = &[
    ("percent", |text| {
        each(text, |_, b| only(reserved(b), || format!("%{b:02X}")))
    }),
    ("percent, lower", |text| {
        each(text, |_, b| only(reserved(b), || format!("%{b:02x}")))
    }),
    ("percent but for /", |text| {
        each(text, |_, b| {
            only(reserved(b) && b != b'/', || format!("%{b:02X}"))
        })
    }),
    ("percent, all", |text| {
        each(text, |_, b| format!("%{b:02x}"))
    }),
    ("percent, some", |text| {
        each(text, |at, b| only(at % 3 == 1, || format!("%{b:02X}")))
    }),
    ("json", |text| {
        each(text, |_, b| {
            only(b"\"\\".contains(&b), || format!("\\{}", char::from(b)))
        })
    }),
    ("json, slash", |text| {
        each(text, |_, b| {
            only(b"\"\\/".contains(&b), || format!("\\{}", char::from(b)))
        })
    }),
    ("json, all", |text| {
        each(text, |_, b| only(b.is_ascii(), || format!("\\u{b:04x}")))
    }),
    ("json, some", |text| {
        each(text, |at, b| match b {
            b'"' | b'\\' => format!("\\{}", char::from(b)),
            b'\t' => "\\t".to_owned(),
            _ => only(b.is_ascii() && at % 2 == 0 || b"+<>&'".contains(&b), || {
                format!("\\u{b:04X}")
            }),
        })
    }),
    ("javascript", |text| {
        each(text, |_, b| match b {
            b'\'' => "\\'".to_owned(),
            _ => only(reserved(b) && b.is_ascii(), || format!("\\x{b:02X}")),
        })
    }),
    ("html", |text| {
        each(text, |_, b| match b {
            b'\'' => "&#x27;".to_owned(),
            _ => only(b"&<>\"".contains(&b), || format!("&{};", name(b).unwrap())),
        })
    }),
    ("html, names", |text| {
        each(text, |_, b| {
            name(b).map_or(String::new(), |name| format!("&{name};"))
        })
    }),
    ("html, decimal", |text| {
        each(text, |_, b| only(b.is_ascii(), || format!("&#{b};")))
    }),
    ("html, zeros", |text| {
        each(text, |_, b| {
            only(reserved(b) && b.is_ascii(), || format!("&#{b:05};"))
        })
    }),
    ("html, hex", |text| {
        each(text, |_, b| only(b.is_ascii(), || format!("&#x{b:x};")))
    }),
    ("html, some", |text| {
        each(text, |at, b| {
            only(
                b"&<>\"'".contains(&b) || b.is_ascii() && at % 3 == 0,
                || format!("&#X{b:04X};"),
            )
        })
    }),
];

const FIXED: &[Encoder] = &[
    ("plain", <[u8]>::to_vec),
    ("hex", |text| each(text, |_, b| format!("{b:02x}"))),
    ("hex, upper", |text| each(text, |_, b| format!("{b:02X}"))),
    ("base64", |text| STANDARD.encode(text).into_bytes()),
    ("base64, bare", |text| {
        STANDARD_NO_PAD.encode(text).into_bytes()
    }),
    ("base64url", |text| URL_SAFE.encode(text).into_bytes()),
    ("base64url, bare", |text| {
        URL_SAFE_NO_PAD.encode(text).into_bytes()
    }),
];

const BASE64: std::ops::Range<usize> = 3..7;

/// Text before and after a secret, 0 to 3 bytes each.
pub(super) const BESIDE: &[&[u8]] = &[b"", b"\"", b"u:", b"\xc3\xa9\\"];

/// Text before and after the encoded secret, which may be the start or the end of an escape.
pub(super) const AROUND: &[(&[u8], &[u8])] = &[
    (b"", b""),
    (b"\\", b"4"),
    (b"%", b"\\"),
    (b"%2", b"41"),
    (b"&#3", b";"),
    (b"\\u0", b"&"),
    (b"&", b"%"),
];

#[derive(Clone, Copy)]
pub(super) struct Echo<'a> {
    pub(super) secret: &'a str,
    pub(super) inner: Encoder,
    pub(super) outer: Option<Encoder>,
    pub(super) before: &'a [u8],
    pub(super) after: &'a [u8],
    pub(super) around: (&'a [u8], &'a [u8]),
}

impl Echo<'_> {
    pub(super) fn text(&self) -> Vec<u8> {
        let inside = [self.before, self.secret.as_bytes(), self.after].concat();
        let mut text = self.inner.1(&inside);
        if let Some((_, encode)) = self.outer {
            text = encode(&text);
        }
        [self.around.0, &text, self.around.1].concat()
    }
}

impl std::fmt::Display for Echo<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let outer = self.outer.map_or("nothing", |outer| outer.0);
        let text = self.text();
        write!(
            f,
            "{:?} as {} in {outer}: {}",
            self.secret,
            self.inner.0,
            text.escape_ascii()
        )
    }
}

/// Every encoding alone, every encoding in each escape, and base64 in base64.
pub(super) fn encodings() -> Vec<(Encoder, Option<Encoder>)> {
    let alone = || FIXED.iter().chain(ESCAPES);
    let mut all: Vec<(Encoder, Option<Encoder>)> = alone().map(|inner| (*inner, None)).collect();
    for outer in ESCAPES {
        all.extend(alone().map(|inner| (*inner, Some(*outer))));
    }
    for outer in &FIXED[BASE64] {
        all.extend(FIXED[BASE64].iter().map(|inner| (*inner, Some(*outer))));
    }
    all
}
