//! `manifest.toml`: text, syntax, fields. The refused manifests are signed, so that each breaks
//! only the rule under test.

use toolward_signing::manifest::{MANIFEST_TYPE, MAX_BYTES, Manifest};
use toolward_signing::verify;

use crate::support::{Sample, acme, envelope, key, options};

fn good() -> String {
    String::from_utf8(Sample::new().manifest().to_bytes().unwrap()).unwrap()
}

/// Signs `text` as a manifest, and returns the code and place of its refusal.
fn refused(text: &[u8]) -> (&'static str, String) {
    let mut signed = Sample::new().sign(&[&key(1)]);
    signed.manifest = text.to_vec();
    signed.envelope = envelope(MANIFEST_TYPE, text, &[&key(1)]);
    let directory = signed.directory();
    let refusal = verify::open(directory.path(), &acme(), &options())
        .expect_err(&String::from_utf8_lossy(text));
    (
        refusal.code(),
        refusal.place().unwrap_or_default().to_owned(),
    )
}

#[test]
fn the_writer_is_deterministic_and_reads_back() {
    let sample = Sample {
        expires: Some("2027-01-01T00:00:00Z".to_owned()),
        min_host: Some("0.1.0".to_owned()),
        ..Sample::new()
    };
    let mut manifest = sample.manifest();
    let bytes = manifest.to_bytes().unwrap();
    assert_eq!(Manifest::parse(&bytes).unwrap(), manifest);
    manifest.artifacts.files.reverse();
    assert_eq!(manifest.to_bytes().unwrap(), bytes);
    assert!(bytes.ends_with(b"\"\n") && !bytes.contains(&b'\r'));
}

#[test]
fn what_would_not_read_back_is_not_written() {
    let spoiled: [fn(&mut Manifest); 7] = [
        |m| m.id = "Text".to_owned(),
        |m| m.id = "a\"\nsequence = 9 #".to_owned(),
        |m| m.publisher = String::new(),
        |m| m.sequence = u64::MAX,
        |m| m.expires = Some(m.created),
        |m| m.artifacts.tools.path = "manifest.toml".parse().unwrap(),
        |m| m.artifacts.files.push(m.artifacts.files[0].clone()),
    ];
    for (number, spoil) in spoiled.iter().enumerate() {
        let mut manifest = Sample::new().manifest();
        spoil(&mut manifest);
        assert!(manifest.to_bytes().is_err(), "case {number}");
    }
}

#[test]
fn an_index_under_another_name_than_hosts_read_is_refused() {
    let other = good().replace("\"tools.json\"", "\"tools/index.json\"");
    let (code, place) = refused(other.as_bytes());
    assert_eq!(code, "manifest-field");
    assert!(place.starts_with("manifest.toml:"), "{place}");
}

#[test]
fn carriage_returns_byte_order_marks_and_bidirectional_characters_are_refused() {
    let good = good();
    let cases: Vec<Vec<u8>> = vec![
        good.replace('\n', "\r\n").into_bytes(),
        good.replacen('\n', "\r", 1).into_bytes(),
        format!("\u{feff}{good}").into_bytes(),
        format!("{good}# \u{202e}txt\n").into_bytes(),
        format!("{good}# \u{2066}x\u{2069}\n").into_bytes(),
        format!("{good}# \u{200f}\n").into_bytes(),
        format!("{good}# \u{61c}\n").into_bytes(),
        format!("{good}# \u{2028}\n").into_bytes(),
        format!("{good}# \u{e0041}\n").into_bytes(),
        format!("{good}# \u{ad}\u{34f}\n").into_bytes(),
        format!("{good}# \u{3164}\n").into_bytes(),
        format!("{good}# \u{e0100}\n").into_bytes(),
        format!("{good}# \u{85}\n").into_bytes(),
        format!("{good}# \t\n").into_bytes(),
        format!("{good}# \0\n").into_bytes(),
        format!("{good}# \x7f\n").into_bytes(),
        [good.as_bytes(), b"# \xff\n"].concat(),
        [good.as_bytes(), b"# \xed\xa0\x80\n"].concat(),
        [b"\xff\xfe", good.as_bytes()].concat(),
    ];
    for case in cases {
        let (code, place) = refused(&case);
        assert_eq!(
            code,
            "manifest-text",
            "{:?}",
            String::from_utf8_lossy(&case)
        );
        assert!(place.starts_with("manifest.toml:"), "{place}");
    }
}

#[test]
fn a_long_manifest_is_refused_and_the_longest_is_not() {
    let mut text = good();
    text.push_str("# ");
    text.push_str(&"x".repeat(MAX_BYTES - text.len() - 1));
    text.push('\n');
    assert_eq!(text.len(), MAX_BYTES);
    Manifest::parse(text.as_bytes()).unwrap();
    text.push('\n');
    assert_eq!(
        Manifest::parse(text.as_bytes()).unwrap_err().code(),
        "manifest-text"
    );
}

#[test]
fn toml_1_1_is_refused() {
    let good = good();
    let tools = good.find("[artifacts.tools]").unwrap();
    let files = good.find("[[artifacts.files]]").unwrap();
    let table = good.get(tools..files).unwrap().trim_end();
    let inline = |separator: &str, end: &str| {
        let body = table.lines().skip(1).collect::<Vec<_>>().join(separator);
        let head = good.get(..tools).unwrap();
        let files = good.get(files..).unwrap();
        format!("{head}artifacts.tools = {{ {body}{end}}}\n\n{files}")
    };
    // In TOML 1.0, an inline table is equivalent to a table with a heading.
    let text = inline(", ", " ");
    let head = text.replace("[[artifacts.files]]", "[[artifacts.filez]]");
    assert!(!toml_error(&head));
    for text in [
        inline(",\n", " "),
        inline(", ", ", "),
        inline(", ", "\n"),
        inline(", ", " # comment\n"),
        good.replace("id = \"text.stats\"", "id = \"te\\x78t.stats\""),
        good.replace("id = \"text.stats\"", "id = \"text.stats\\e\""),
        good.replace(
            "created = \"2026-11-01T12:00:00Z\"",
            "created = 2026-11-01T12:00Z",
        ),
    ] {
        let (code, place) = refused(text.as_bytes());
        assert_eq!(code, "manifest-syntax", "{text}");
        assert!(place.starts_with("manifest.toml:"), "{place}");
    }
}

/// Whether a text is refused for its syntax.
fn toml_error(text: &str) -> bool {
    matches!(Manifest::parse(text.as_bytes()), Err(refusal) if refusal.code() == "manifest-syntax")
}

#[test]
fn broken_toml_is_refused_at_its_line() {
    for text in [
        "schema",
        "schema = 1\nid = ",
        "a = 1\na = 2\n",
        "[x\n",
        "x = 1\n\"y",
    ] {
        assert_eq!(refused(text.as_bytes()).0, "manifest-syntax", "{text}");
    }
    let (_, place) = refused(b"schema = 1\nid = \n");
    assert!(place.starts_with("manifest.toml:2:"), "{place}");
}

#[test]
fn unknown_missing_and_repeated_keys_are_refused() {
    let good = good();
    assert_eq!(
        refused(format!("extra = 1\n{good}").as_bytes()).0,
        "manifest-field"
    );
    assert_eq!(
        refused(
            good.replace(
                "[artifacts.tools]",
                "[artifacts.extra]\nx = 1\n\n[artifacts.tools]"
            )
            .as_bytes()
        )
        .0,
        "manifest-field"
    );
    for line in ["path", "size", "blake3", "role"] {
        let broken = good.replacen(&format!("\n{line} = "), &format!("\nx{line} = "), 99);
        assert_eq!(refused(broken.as_bytes()).0, "manifest-field", "{line}");
    }
    for line in ["id", "version", "sequence", "publisher", "created"] {
        let start = good.find(&format!("{line} = ")).unwrap();
        let end = start + good.get(start..).unwrap().find('\n').unwrap() + 1;
        let without = format!("{}{}", good.get(..start).unwrap(), good.get(end..).unwrap());
        assert_eq!(
            refused(without.as_bytes()).0,
            "manifest-field",
            "without {line}"
        );
        let twice = format!("{}{}", good.get(..end).unwrap(), good.get(start..).unwrap());
        assert_eq!(
            refused(twice.as_bytes()).0,
            "manifest-syntax",
            "{line} twice"
        );
    }
}

#[test]
fn other_schemas_are_refused_with_their_own_code() {
    let later = "schema = 2\nname = \"x\"\n";
    assert_eq!(refused(later.as_bytes()).0, "manifest-schema");
    assert_eq!(
        refused(good().replace("schema = 1", "schema = 0").as_bytes()).0,
        "manifest-schema"
    );
    assert_eq!(
        refused(good().replace("schema = 1", "schema = \"1\"").as_bytes()).0,
        "manifest-field"
    );
}

#[test]
fn wrong_values_are_refused_at_their_line() {
    let good = good();
    for (from, to, code) in [
        ("id = \"text.stats\"", "id = \"Text.Stats\"", "id-invalid"),
        (
            "id = \"text.stats\"",
            "id = \"text\\u002E.stats\"",
            "id-invalid",
        ),
        (
            "publisher = \"acme\"",
            "publisher = \"dev:/tmp\"",
            "id-invalid",
        ),
        ("version = \"1.2.3\"", "version = \"1.2\"", "manifest-field"),
        ("sequence = 7", "sequence = -1", "manifest-field"),
        ("sequence = 7", "sequence = 7.0", "manifest-field"),
        ("12:00:00Z", "12:00:00+00:00", "time-invalid"),
        (
            "path = \"README.md\"",
            "path = \"../README.md\"",
            "path-invalid",
        ),
        (
            "path = \"README.md\"",
            "path = \"/README.md\"",
            "path-invalid",
        ),
        ("path = \"README.md\"", "path = \"nul\"", "path-invalid"),
        (
            "path = \"README.md\"",
            "path = \"manifest.toml\"",
            "path-invalid",
        ),
        (
            "path = \"README.md\"",
            "path = \"Manifest.DSSE.json\"",
            "path-invalid",
        ),
        (
            "path = \"README.md\"",
            "path = \"provenance.dsse.json\"",
            "path-invalid",
        ),
        (
            "path = \"README.md\"",
            "path = \"tools.json\"",
            "file-duplicate",
        ),
        (
            "path = \"README.md\"",
            "path = \"Tools.json\"",
            "path-conflict",
        ),
        (
            "path = \"README.md\"",
            "path = \"drivers\"",
            "path-conflict",
        ),
        (
            "path = \"README.md\"",
            "path = \"Drivers/x\"",
            "path-conflict",
        ),
        ("role = \"other\"", "role = \"plugin\"", "manifest-field"),
        ("blake3 = \"af13", "blake3 = \"AF13", "digest-invalid"),
        (
            "blake3 = \"af13",
            "blake3 = \"blake3:af13",
            "digest-invalid",
        ),
        ("size = 0", "size = -1", "manifest-field"),
    ] {
        assert!(good.contains(from), "{from}");
        let (found, place) = refused(good.replacen(from, to, 1).as_bytes());
        assert_eq!(found, code, "{to}");
        assert!(place.starts_with("manifest.toml"), "{place}");
    }
    let expires = good.replace("sequence", "expires = \"2026-11-01T12:00:00Z\"\nsequence");
    assert_eq!(refused(expires.as_bytes()).0, "manifest-field");
}

#[test]
fn nothing_of_a_manifest_is_read_before_somebody_trusted_has_signed_it() {
    let mut signed = Sample::new().sign(&[&key(1)]);
    signed.manifest = b"not toml at all \xff".to_vec();
    signed.envelope = envelope(MANIFEST_TYPE, &signed.manifest, &[&key(9)]);
    assert_eq!(
        signed.verify(&acme()).unwrap_err().code(),
        "unknown-publisher"
    );
}
