//! Bare keys that an operator trusts permanently.

use std::time::Duration;

use toolward_signing::Refusal;
use toolward_signing::id::Prefix;
use toolward_signing::key::EXAMPLE_KEY_IDS;
use toolward_signing::key::SigningKey;
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::{self, Mode, VerifyOptions};

use crate::support::{Sample, acme, key, now, options, publisher};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn prefixes(prefixes: &[&str]) -> Vec<Prefix> {
    let parse = |text: &&str| Prefix::parse(text).unwrap();
    prefixes.iter().map(parse).collect()
}

/// A store that trusts key 1 as `name`.
fn bare(name: &str, of: &[&str], max_age: Duration) -> Result<TrustStore, Refusal> {
    let mut store = TrustStore::empty();
    store.add_bare_key(name, key(1).public(), prefixes(of), max_age)?;
    Ok(store)
}

fn verified(store: &TrustStore, options: &VerifyOptions<'_>) -> Result<Vec<String>, Refusal> {
    let archive = Sample::new().sign(&[&key(1)]).archive();
    let bundle = verify::archive_bytes(&archive, store, options)?;
    Ok(bundle.warnings.clone())
}

#[test]
fn a_bare_key_publishes_below_its_prefixes_under_its_name() {
    let store = bare("acme", &["text"], 30 * DAY).unwrap();
    let trusted = store.publisher("acme").unwrap();
    assert!(trusted.is_bare && !trusted.is_ad_hoc);
    assert_eq!(trusted.max_age, Some(30 * DAY));
    assert!(verified(&store, &options()).unwrap().is_empty());
    for (name, prefix, code) in [
        ("acme", "tex", "prefix-not-granted"),
        ("acme", "text.other", "prefix-not-granted"),
        ("other", "text", "wrong-publisher"),
    ] {
        let store = bare(name, &[prefix], 30 * DAY).unwrap();
        let refusal = verified(&store, &options()).unwrap_err();
        assert_eq!(refusal.code(), code, "{name} {prefix}");
    }
    let store = bare("other", &["text"], 30 * DAY).unwrap();
    let refusal = verified(&store, &options()).unwrap_err();
    assert!(
        refusal.hint().unwrap().contains("--name NAME"),
        "{refusal:?}"
    );
}

#[test]
fn a_bare_key_is_never_trusted_for_all_ids() {
    for of in [&["*"][..], &["text", "*"], &[]] {
        let refusal = bare("acme", of, DAY).unwrap_err();
        assert_eq!(refusal.code(), "trust-invalid", "{of:?}");
    }
    let refusal = bare("key:acme", &["text"], DAY).unwrap_err();
    assert_eq!(refusal.code(), "id-invalid");
}

#[test]
fn a_bare_key_is_nobody_elses_and_not_the_examples() {
    let mut store = acme();
    let mut add = |name: &str, of| store.add_bare_key(name, of, prefixes(&["x"]), DAY);
    for (name, of) in [("acme", key(9).public()), ("other", key(1).public())] {
        let refusal = add(name, of).unwrap_err();
        assert_eq!(refusal.code(), "trust-invalid", "{name}");
    }
    let pem = include_str!("../../../examples/keys/INSECURE-example-signing-key.pem");
    let example = SigningKey::from_pem(pem, None).unwrap().public();
    assert_eq!(example.key_id().to_string(), EXAMPLE_KEY_IDS[0]);
    assert_eq!(
        add("other", example).unwrap_err().code(),
        "trust-example-key"
    );
    add("other", key(9).public()).unwrap();
}

#[test]
fn what_a_bare_key_signed_ends_with_its_maximum_age() {
    let store = bare("acme", &["text"], DAY).unwrap();
    let at = |days: u32, mode, max_age| VerifyOptions {
        now: now().checked_add(DAY * days),
        mode,
        max_age,
        ..options()
    };
    verified(&store, &at(0, Mode::Enforce, None)).unwrap();
    let refusal = verified(&store, &at(2, Mode::Enforce, None)).unwrap_err();
    assert_eq!(refusal.code(), "too-old");
    let hint = refusal.hint().unwrap();
    assert!(hint.contains("trust add KEY.pub.pem"), "{hint}");
    // The operator's maximum age for all publishers applies if it is shorter than the key's, not if
    // it is longer.
    let refusal = verified(&store, &at(2, Mode::Enforce, Some(90 * DAY))).unwrap_err();
    assert_eq!(refusal.code(), "too-old");
    let store = bare("acme", &["text"], 90 * DAY).unwrap();
    let refusal = verified(&store, &at(2, Mode::Enforce, Some(DAY))).unwrap_err();
    assert_eq!(refusal.code(), "too-old");
    assert!(
        !refusal.hint().unwrap().contains("trust add"),
        "{refusal:?}"
    );
    let warnings = verified(&store, &at(91, Mode::Audit, None)).unwrap();
    assert!(
        warnings.iter().any(|one| one.contains("maximum age")),
        "{warnings:?}"
    );
}

#[test]
fn a_limit_never_lengthens_the_maximum_age() {
    let mut store = bare("acme", &["text"], 30 * DAY).unwrap();
    store.limit_age("acme", 300 * DAY);
    assert_eq!(store.publisher("acme").unwrap().max_age, Some(30 * DAY));
    store.limit_age("acme", DAY);
    assert_eq!(store.publisher("acme").unwrap().max_age, Some(DAY));
}

#[test]
fn overlapping_publishers_are_found_by_their_prefixes_and_actions() {
    let store = TrustStore::from_toml(
        &[
            publisher("acme", &[key(1).public()], 1, &["acme", "text.stats"]),
            publisher("beta", &[key(2).public()], 1, &["beta"]).replace(
                "name = \"beta\"",
                "name = \"beta\"\nactions = [\"storage\"]",
            ),
        ]
        .concat(),
    )
    .unwrap();
    for (prefix, names) in [
        ("acme", &["acme"][..]),
        ("acme.crm", &["acme"]),
        ("text", &["acme"]),
        ("text.stats", &["acme"]),
        ("storage", &["beta"]),
        ("storage.files", &["beta"]),
        ("*", &["acme", "beta"]),
        ("acmeevil", &[]),
        ("text.statsx", &[]),
        ("text.other", &[]),
    ] {
        let prefix = Prefix::parse(prefix).unwrap();
        let found: Vec<_> = store.overlapping(&prefix).map(|one| one.name()).collect();
        assert_eq!(found, names, "{prefix}");
    }
}
