//! A generator of echoes: a secret in every encoding that is searched for, alone and nested, next
//! to other text, and cut at any place. Separate decoders read the guest's text, which must not
//! contain a part of the secret.

mod decoders;
mod encodings;

use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use toolward_egress::scrub::{Patterns, REPLACEMENT, Scrubber};

use self::decoders::told;
use self::encodings::{AROUND, BESIDE, Echo, encodings};

/// All characters of values, and difficult combinations: escapes in the value itself, digits that
/// complete an escape before it, runs of escape characters.
const SECRETS: &[&str] = &[
    "s3cr3t/value+0123456789",
    "+/=%&'\"<>\\ %41&lt;\\u00e9;",
    "0123456789abcdef",
    "nq7;tX.e30/bm9&amp;lt==",
    "\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\x",
    "%%%%%%%%25252525",
    "a b\tc{d}|e~f`g^h[i]j!k@l#m$n*o(p)q?r_s:t,u-v",
];

fn passed(patterns: &Arc<Patterns>, chunks: &[&[u8]]) -> Vec<u8> {
    let mut scrubber = Scrubber::new(Arc::clone(patterns));
    let mut out = Vec::new();
    for chunk in chunks {
        out.extend_from_slice(&scrubber.push(Bytes::copy_from_slice(chunk)));
    }
    out.extend_from_slice(&scrubber.finish());
    out
}

/// Runs `check` with every echo of every secret, and with the number of the echo.
fn every_echo(check: impl Fn(usize, &Arc<Patterns>, &Echo<'_>)) {
    let mut number = 0;
    for secret in SECRETS {
        let patterns = Arc::new(Patterns::of_values([secret.as_bytes()]));
        for (inner, outer) in encodings() {
            for before in BESIDE {
                for after in BESIDE {
                    // All combinations occur; each pair of neighbouring texts has another
                    // surrounding text.
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
        // Cuts at another place each time, or at each sixteenth place.
        let place = number * 7 % text.len();
        let (from, step) = if long {
            (place % 16, 16)
        } else {
            (place, text.len())
        };
        for at in (from..text.len()).step_by(step) {
            let (first, second) = text.split_at(at);
            assert_eq!(passed(patterns, &[first, second]), whole, "{at} of {echo}");
        }
    });
}

#[test]
fn an_echo_in_one_case_or_with_doubled_quotation_marks_does_not_get_through() {
    for secret in SECRETS {
        let patterns = Arc::new(Patterns::of_values([secret.as_bytes()]));
        for echo in [
            secret.to_uppercase(),
            secret.to_lowercase(),
            secret.replace('\'', "''"),
            secret.replace('"', "\"\""),
        ] {
            let text = format!("no row with key = '{echo}'; ");
            let whole = passed(&patterns, &[text.as_bytes()]);
            let replacement = String::from_utf8_lossy(REPLACEMENT);
            let expected = format!("no row with key = '{replacement}'; ");
            assert_eq!(String::from_utf8_lossy(&whole), expected, "{echo}");
        }
    }
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

/// Text full of escapes, of encodings of other values, and of truncated secrets.
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
