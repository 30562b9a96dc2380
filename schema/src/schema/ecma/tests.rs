//! Translations, checked against ECMA-262.

use regex::Regex;

use super::translate;

fn fits(pattern: &str, text: &str) -> bool {
    let translated = translate(pattern).unwrap_or_else(|found| panic!("{pattern}: {found}"));
    let regex = Regex::new(&translated).unwrap_or_else(|error| panic!("{pattern}: {error}"));
    regex.is_match(text)
}

#[test]
fn a_pattern_means_what_it_means_in_ecma_262() {
    for (pattern, fitting, others) in [
        (
            "^.$",
            &["a", "\u{1F600}", "\u{85}", "\u{b}"][..],
            &["\n", "\r", "\u{2028}", "\u{2029}", "ab"][..],
        ),
        (r"^(?s:.)$", &["\n", "\u{2028}"], &["ab"]),
        (r"\bna\b", &["na", "ona na", "\u{ef}na\u{ef}"], &["ana"]),
        (r"^\B.\B$", &["\u{ef}"], &["a"]),
        (r"^\d$", &["7"], &["\u{663}"]),
        (r"^\w$", &["a", "_"], &["\u{e9}", "-"]),
        (r"^[\w-.]$", &["-", ".", "x"], &["\u{e9}"]),
        (r"^[\d--z]$", &["5", "-", "z"], &["."]),
        (
            r"^\s$",
            &["\u{feff}", "\u{a0}", "\u{2003}"],
            &["\u{85}", "\u{200b}"],
        ),
        (r"^[^\s]$", &["\u{85}", "a"], &["\u{2029}"]),
        (r"^[\S]$", &["\u{85}", "\u{10FFFF}"], &[" ", "\u{3000}"]),
        (r"^[\D]$", &["a"], &["1"]),
        (
            r"^(?<year>\d{4})-(?<month$>\d\d)$",
            &["2026-08"],
            &["2026-8"],
        ),
        (r"^\u0041\u{42}\x43\cJ\t$", &["ABC\n\t"], &["abc\n\t"]),
        (r"^\ud83d\ude00$", &["\u{1F600}"], &[""]),
        (
            r"^[\ud83d\ude00-\ud83d\ude02]$",
            &["\u{1F601}"],
            &["\u{1F603}"],
        ),
        (r"^\0$", &["\0"], &["0"]),
        (r"^[\b]$", &["\u{8}"], &["b"]),
        ("^[^]$", &["\n", "x"], &[""]),
        ("[]", &[], &["", "a"]),
        (r"\ud800", &[], &["", "\u{fffd}"]),
        (
            r"^[\ud7ff-\ue000]$",
            &["\u{d7ff}", "\u{e000}"],
            &["\u{e001}"],
        ),
        (r"^[a&&b[]$", &["&", "[", "a", "b"], &["c", "&&"]),
        (r"^[a~~b]$", &["~"], &["c"]),
        (r"^\<a\>$", &["<a>"], &["a"]),
        (r"^\-\/\@\ \§$", &["-/@ §"], &[""]),
        (r"^{a}]$", &["{a}]"], &["a"]),
        ("^a{,2}$", &["a{,2}"], &["aa"]),
        ("^a{2}b{1,}c{0,1}?$", &["aabb", "aabc"], &["ab"]),
        (
            r"^\p{Lu}\P{L}[\p{Script=Greek}]$",
            &["A1\u{3b1}"],
            &["a1\u{3b1}"],
        ),
        (r"^(?i:a)(?-i:b)$", &["Ab"], &["AB"]),
        ("a$", &["ba"], &["a\n"]),
        ("", &["", "a"], &[]),
        ("a|", &["", "b"], &[]),
    ] {
        for text in fitting {
            assert!(fits(pattern, text), "{pattern} fits {text:?}");
        }
        for text in others {
            assert!(!fits(pattern, text), "{pattern} does not fit {text:?}");
        }
    }
}

#[test]
fn what_is_refused_is_named() {
    for (pattern, named) in [
        ("(?=a)b", "look-ahead `(?=`"),
        ("(?!a)b", "look-ahead `(?!`"),
        ("(?<=a)b", "look-behind `(?<=`"),
        ("(?<!a)b", "look-behind `(?<!`"),
        (r"(a)\1", r"back-reference `\1`"),
        (r"(?<n>a)\k<n>", r"back-reference `\k`"),
        ("(?m:^a)", "modifier `m`"),
        ("(?P<n>a)", "`(?` before `P`"),
        ("(?i)a", "`(?` before `)`"),
        (r"\Aa", r"escape `\A`"),
        (r"\u12", r"escape `\u`"),
        (r"\u{110000}", r"escape `\u`"),
        (r"[\c1]", r"escape `\c`"),
        (r"\pL", r"`\p`"),
        ("[b-a]", "range"),
        ("[a", "class"),
        ("[a-", "class"),
        ("(a", "group"),
        ("(?", "group"),
        ("(?<1>a)", "name"),
        ("a)", "`)`"),
        ("*a", "`*`"),
        ("a**", "`*`"),
        (r"\b+", "`+`"),
        ("a\\", "`\\`"),
        ("[\\", "`\\`"),
    ] {
        let found = translate(pattern).expect_err(pattern);
        assert!(found.contains(named), "{pattern}: {found}");
    }
}

#[test]
fn what_is_the_same_in_both_stays_as_it_is() {
    for pattern in ["^[a-z0-9]+$", "^(a|b)$", "^abc", "x{2,3}?", "^[a-z]{1,63}$"] {
        assert_eq!(translate(pattern).as_deref(), Ok(pattern));
    }
}
