//! A generator of echoes: a secret in every encoding that is looked for, alone and
//! in another one, beside other text, however it is cut. What a guest gets is read
//! back by decoders of this file's own, and must not hold a part of the secret.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use proptest::prelude::*;
use toolward_egress::scrub::{Patterns, REPLACEMENT, Scrubber};

/// All that a value may be made of, and what is hard about it: escapes in the value
/// itself, digits that complete an escape before it, runs of escape characters.
const SECRETS: &[&str] = &[
    "s3cr3t/value+0123456789",
    "+/=%&'\"<>\\ %41&lt;\\u00e9;",
    "0123456789abcdef",
    "nq7;tX.e30/bm9&amp;lt==",
    "\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\x",
    "%%%%%%%%25252525",
    "a b\tc{d}|e~f`g^h[i]j!k@l#m$n*o(p)q?r_s:t,u-v",
];

/// Of a secret, so much may be known: what stands at the edge of base64 tells a few
/// bits, and what is shorter occurs by chance.
const TELLING: usize = 6;

type Encoder = (&'static str, fn(&[u8]) -> Vec<u8>);

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

fn name(byte: u8) -> Option<&'static str> {
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

/// Those that vary, and that another may stand in.
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
const BESIDE: &[&[u8]] = &[b"", b"\"", b"u:", b"\xc3\xa9\\"];

/// Text before and after what was encoded: what an escape may begin with, or end.
const AROUND: &[(&[u8], &[u8])] = &[
    (b"", b""),
    (b"\\", b"4"),
    (b"%", b"\\"),
    (b"%2", b"41"),
    (b"&#3", b";"),
    (b"\\u0", b"&"),
    (b"&", b"%"),
];

#[derive(Clone, Copy)]
struct Echo<'a> {
    secret: &'a str,
    inner: Encoder,
    outer: Option<Encoder>,
    before: &'a [u8],
    after: &'a [u8],
    around: (&'a [u8], &'a [u8]),
}

impl Echo<'_> {
    fn text(&self) -> Vec<u8> {
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

/// Every encoding alone, and every one in each escape, and base64 in base64.
fn encodings() -> Vec<(Encoder, Option<Encoder>)> {
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

fn passed(patterns: &Arc<Patterns>, chunks: &[&[u8]]) -> Vec<u8> {
    let mut scrubber = Scrubber::new(Arc::clone(patterns));
    let mut out = Vec::new();
    for chunk in chunks {
        out.extend_from_slice(&scrubber.push(Bytes::copy_from_slice(chunk)));
    }
    out.extend_from_slice(&scrubber.finish());
    out
}

/// Runs `check` with every echo of every secret, the number of the echo beside it.
fn every_echo(check: impl Fn(usize, &Arc<Patterns>, &Echo<'_>)) {
    let mut number = 0;
    for secret in SECRETS {
        let patterns = Arc::new(Patterns::of_values([secret.as_bytes()]));
        for (inner, outer) in encodings() {
            for before in BESIDE {
                for after in BESIDE {
                    // All of them meet; each pair of text beside it has another around.
                    let around = AROUND[number % AROUND.len()];
                    let echo = Echo {
                        secret,
                        inner,
                        outer,
                        before,
                        after,
                        around,
                    };
                    check(number, &patterns, &echo);
                    number += 1;
                }
            }
        }
    }
}

#[test]
fn no_echo_of_a_secret_gets_through() {
    // Set by `cargo xtask long`.
    let long = std::env::var_os("TOOLWARD_LONG").is_some();
    every_echo(|number, patterns, echo| {
        let text = echo.text();
        let whole = passed(patterns, &[&text]);
        assert!(
            whole.windows(REPLACEMENT.len()).any(|at| at == REPLACEMENT),
            "{echo}"
        );
        assert_eq!(
            told(&whole, echo.secret),
            None,
            "{echo}\n{}",
            whole.escape_ascii()
        );
        // Somewhere else each time, or everywhere.
        let place = number * 7 % text.len();
        let places = if long {
            0..text.len()
        } else {
            place..place + 1
        };
        for at in places {
            let (first, second) = text.split_at(at);
            assert_eq!(passed(patterns, &[first, second]), whole, "{at} of {echo}");
        }
    });
}

#[test]
fn it_does_not_matter_where_an_echo_is_cut() {
    for secret in SECRETS {
        let patterns = Arc::new(Patterns::of_values([secret.as_bytes()]));
        for (number, (inner, outer)) in encodings().into_iter().enumerate() {
            let echo = Echo {
                secret,
                inner,
                outer,
                before: BESIDE[number % BESIDE.len()],
                after: BESIDE[number % 3],
                around: AROUND[number % AROUND.len()],
            };
            let text = echo.text();
            let whole = passed(&patterns, &[&text]);
            let bytes: Vec<&[u8]> = text.chunks(1).collect();
            assert_eq!(passed(&patterns, &bytes), whole, "each byte of {echo}");
            if outer.is_none() {
                for at in 0..text.len() {
                    let (first, second) = text.split_at(at);
                    assert_eq!(passed(&patterns, &[first, second]), whole, "{at} of {echo}");
                }
            }
        }
    }
}

/// A part of the secret that the decoders find in what a guest got.
fn told(text: &[u8], secret: &str) -> Option<Vec<u8>> {
    let telling: Vec<&[u8]> = secret.as_bytes().windows(TELLING).collect();
    let mut views = vec![text.to_vec()];
    for _ in 0..2 {
        let undone: Vec<Vec<u8>> = views
            .iter()
            .flat_map(|view| {
                [
                    percent_decoded(view),
                    json_decoded(view),
                    html_decoded(view),
                ]
            })
            .collect();
        views.extend(undone);
        views.sort();
        views.dedup();
    }
    let fixed: Vec<Vec<u8>> = views.iter().flat_map(|view| decoded(view)).collect();
    let again: Vec<Vec<u8>> = fixed.iter().flat_map(|view| decoded(view)).collect();
    let mut all = views.iter().chain(&fixed).chain(&again);
    all.find(|view| {
        let parts = view.windows(TELLING);
        // A run of one byte is no part of anything.
        let varied = |part: &&[u8]| part.iter().any(|byte| *byte != part[0]);
        parts.filter(varied).any(|part| telling.contains(&part))
    })
    .cloned()
}

fn percent_decoded(text: &[u8]) -> Vec<u8> {
    undone(text, |rest| {
        let digits = std::str::from_utf8(rest.strip_prefix(b"%")?.get(..2)?).ok()?;
        Some((3, u8::from_str_radix(digits, 16).ok()?))
    })
}

fn json_decoded(text: &[u8]) -> Vec<u8> {
    undone(text, |rest| {
        let rest = rest.strip_prefix(b"\\")?;
        let digits = |length| {
            let digits = std::str::from_utf8(rest.get(1..=length)?).ok()?;
            let byte = u8::try_from(u32::from_str_radix(digits, 16).ok()?).ok()?;
            Some((length + 2, byte))
        };
        match rest.first()? {
            b'u' => digits(4),
            b'x' => digits(2),
            b't' => Some((2, b'\t')),
            byte @ (b'"' | b'\\' | b'/' | b'\'') => Some((2, *byte)),
            _ => None,
        }
    })
}

fn html_decoded(text: &[u8]) -> Vec<u8> {
    undone(text, |rest| {
        let end = rest.iter().take(12).position(|byte| *byte == b';')?;
        let inner = std::str::from_utf8(rest.strip_prefix(b"&")?.get(..end - 1)?).ok()?;
        let byte = match inner.strip_prefix('#') {
            Some(number) => {
                let digits = number.strip_prefix(['x', 'X']);
                let value =
                    digits.map_or_else(|| number.parse(), |digits| u8::from_str_radix(digits, 16));
                value.ok()?
            }
            None => (0..128).find(|byte| name(*byte) == Some(inner))?,
        };
        Some((end + 1, byte))
    })
}

fn undone(text: &[u8], escape: impl Fn(&[u8]) -> Option<(usize, u8)>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let (length, byte) = escape(&text[at..]).unwrap_or((1, text[at]));
        out.push(byte);
        at += length;
    }
    out
}

/// What the words of a text are in hexadecimal and in base64, begun at each of
/// their first characters.
fn decoded(text: &[u8]) -> Vec<Vec<u8>> {
    let lenient = GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let standard = GeneralPurpose::new(&base64::alphabet::STANDARD, lenient);
    let plain: Vec<u8> = text
        .iter()
        .map(|byte| match byte {
            b'-' => b'+',
            b'_' => b'/',
            byte => *byte,
        })
        .collect();
    let mut all = Vec::new();
    let letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/".contains(byte);
    for word in plain
        .split(|byte| !letter(byte))
        .filter(|word| word.len() > 7)
    {
        for start in 0..4 {
            let word = &word[start..];
            let word = if word.len() % 4 == 1 {
                &word[..word.len() - 1]
            } else {
                word
            };
            all.push(standard.decode(word).unwrap());
        }
    }
    for word in text
        .split(|byte| !byte.is_ascii_hexdigit())
        .filter(|word| word.len() > 7)
    {
        for start in 0..2 {
            let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap() as u8;
            let pairs = word[start..].chunks_exact(2);
            all.push(
                pairs
                    .map(|pair| digit(&pair[0]) << 4 | digit(&pair[1]))
                    .collect(),
            );
        }
    }
    all
}

#[test]
fn the_decoders_find_a_secret_that_was_not_taken_out() {
    let secret = SECRETS[0];
    for (inner, outer) in encodings() {
        let echo = Echo {
            secret,
            inner,
            outer,
            before: b"u:",
            after: b"",
            around: (b"", b""),
        };
        assert!(told(&echo.text(), secret).is_some(), "{echo}");
    }
}

/// Text full of escapes, of encodings of other values, and of secrets cut short.
fn innocent() -> impl Strategy<Value = Vec<u8>> {
    let secret = "Zq7Xk2Wm9Lp4Rt6Y";
    let almost = prop_oneof![
        Just(secret.trim_end_matches('Y').to_owned()),
        Just(secret.trim_start_matches('Z').to_owned()),
        Just(secret.replace("9Lp", "9lp")),
        Just("other value 1234".to_owned())
    ];
    let all = encodings();
    let echo = (almost, 0..all.len()).prop_map(move |(text, at)| {
        let (inner, outer) = all[at];
        let text = inner.1(text.as_bytes());
        outer.map_or(text.clone(), |outer| outer.1(&text))
    });
    let piece = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        "[%\\\\&#;ux0-9a-fA-F]{0,40}".prop_map(String::into_bytes),
        "(%25|%5[cC]|%26|\\\\u005c|\\\\u0026|&amp;|&#37;|&#x5c;|amp;|#|41|n){0,20}"
            .prop_map(String::into_bytes),
        echo.prop_filter("the edge of base64 is not looked at", |text| text.len()
            > 20),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.join(&b'\n'))
}

proptest! {
    #[test]
    fn text_without_a_secret_passes_byte_for_byte(
        text in innocent(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
    ) {
        let patterns = Arc::new(Patterns::of_values([b"Zq7Xk2Wm9Lp4Rt6Y".as_slice()]));
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.sort_unstable();
        let mut chunks = Vec::new();
        let mut at = 0;
        for cut in cuts {
            chunks.push(&text[at..cut]);
            at = cut;
        }
        chunks.push(&text[at..]);
        prop_assert_eq!(passed(&patterns, &chunks), text);
    }
}
