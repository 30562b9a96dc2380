//! Tests how escapes are read, alone and nested.

use super::*;
use proptest::prelude::*;

fn readings(text: &[u8], more: bool) -> Option<Readings> {
    let mut readings = Readings::default();
    readings.read(text, more).then_some(readings)
}

proptest! {
    #[test]
    fn an_escape_is_read_alike_alone_and_where_others_may_stand_in_it(
        text in "[%\\\\&]([0-9a-fA-F#xXu;\\\"nltamp]{0,8}|#x?[0-9]{1,10}[;a]?|(amp|lt|quot|plus|GT|verbar)[;a]?)",
    ) {
        let single = Reader::of(text.as_bytes(), 0, 1);
        let all = Reader::of(text.as_bytes(), 0, LEVELS);
        for reading in single.out.as_slice() {
            prop_assert!(all.out.as_slice().contains(reading), "{:?}", reading);
        }
        // No other readings exist, as long as no character is escaped.
        if !single.nests {
            let escapes = || single.out.as_slice().iter().skip(1);
            let once = |reading: &EscapeReading| single.out.as_slice().contains(reading);
            let more = escapes().any(|escape| may_escape(escape.byte));
            prop_assert!(more || all.out.as_slice().iter().all(once), "{:?}", all.out);
        }
    }
}

#[track_caller]
fn reads(text: &str, byte: u8) {
    let all = readings(text.as_bytes(), false).unwrap();
    let whole = EscapeReading {
        next: u16::try_from(text.len()).unwrap(),
        byte,
    };
    assert!(all.as_slice().contains(&whole), "{text}: {all:?}");
    // A part of an escape is not read as the whole either.
    for end in 1..text.len() {
        let part = &text.as_bytes()[..end];
        assert!(
            readings(part, true).is_none() || text.as_bytes()[end] == b';',
            "{}",
            part.escape_ascii()
        );
    }
}

#[test]
fn each_escape_is_read_alone_and_in_another() {
    let alone = [
        "%2B",
        "%2b",
        "\\u002B",
        "\\u002b",
        "\\x2b",
        "&#43;",
        "&#043;",
        "&#x2B;",
        "&#X2b;",
        "&#x00002b;",
        "&plus;",
    ];
    for text in alone {
        reads(text, b'+');
        let inside = [
            text.replace('%', "%25"),
            text.replace('\\', "\\\\"),
            text.replace('\\', "\\u005c"),
            text.replace('&', "&amp;"),
            text.replace('&', "%26")
                .replace('#', "%23")
                .replace(';', "%3B"),
            text.replace('&', "\\u0026"),
            text.bytes().map(|byte| format!("%{byte:02x}")).collect(),
            text.bytes().map(|byte| format!("&#{byte};")).collect(),
            text.bytes().map(|byte| format!("\\u{byte:04X}")).collect(),
        ];
        for text in inside {
            reads(&text, b'+');
        }
    }
    for (text, byte) in [
        ("\\\"", b'"'),
        ("\\'", b'\''),
        ("\\\\", b'\\'),
        ("\\/", b'/'),
        ("\\t", b'\t'),
        ("\\\\\\\"", b'"'),
        ("&DiacriticalGrave;", b'`'),
        ("&verbar;", b'|'),
        ("&vert;", b'|'),
        ("&#39", b'\''),
        ("&lt", b'<'),
    ] {
        let all = readings(text.as_bytes(), false).unwrap();
        let whole = |reading: &EscapeReading| usize::from(reading.next) == text.len();
        assert!(
            all.as_slice()
                .iter()
                .any(|reading| whole(reading) && reading.byte == byte),
            "{text}"
        );
    }
}

#[test]
fn what_is_no_escape_is_itself() {
    for text in [
        "%",
        "%4",
        "%g1",
        "%%",
        "\\",
        "\\q",
        "\\u12",
        "&",
        "&;",
        "&#;",
        "&#x;",
        "&foo;",
        "&plus",
        "&#300;",
        "\\u0130",
        "a%41",
        "&#000000043;",
    ] {
        let all = readings(text.as_bytes(), false)
            .unwrap()
            .as_slice()
            .to_vec();
        let itself = EscapeReading {
            next: 1,
            byte: text.as_bytes()[0],
        };
        assert_eq!(all, [itself], "{text}");
    }
}

#[test]
fn what_may_go_on_is_undecided_and_no_longer_than_the_longest_escape() {
    for text in [
        "%", "%2", "%25", "%252", "\\", "\\u", "\\u00", "&", "&#", "&#x0", "&Diacri", "&amp",
        "&am%70",
    ] {
        assert!(readings(text.as_bytes(), true).is_none(), "{text}");
    }
    for text in ["%%%", "% ", "\\q", "&foo ", "&#x000000000", "abc"] {
        assert!(readings(text.as_bytes(), true).is_some(), "{text}");
    }
}
