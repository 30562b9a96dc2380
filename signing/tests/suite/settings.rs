//! `[trust]`, `[trust.deny]` and `[[channel]]` of `toolward.toml`.

use std::time::Duration;

use toolward_signing::Refusal;
use toolward_signing::revocation::Revocations;
use toolward_signing::trust::{TrustSettings, TrustStore};
use toolward_signing::verify::{Mode, VerifyOptions};

use crate::support::{acme, key, options, publisher, sample_digest, verify_signed};

fn read(text: &str) -> Result<TrustSettings, Refusal> {
    TrustSettings::from_toml_with(text, &mut |name| match name {
        "stable.pub.pem" => Ok(key(3).public().to_pem().unwrap()),
        _ => Err(std::io::Error::other("there is no such file")),
    })
}

fn refused(text: &str) -> &'static str {
    let refusal = read(text).expect_err(text);
    assert!(refusal.place().is_some() && refusal.hint().is_some());
    refusal.code()
}

const CHANNEL: &str =
    "[[channel]]\nname = \"stable\"\nsource = \"/srv/x\"\nkey_files = [\"stable.pub.pem\"]\n";

#[test]
fn what_is_left_out_refuses_by_age_and_denies_nothing() {
    let settings = read("[[grant]]\ntool = \"x\"\n").unwrap();
    assert_eq!(settings, TrustSettings::default());
    assert_eq!(settings.mode, Mode::Enforce);
    assert_eq!(settings.max_age, None);
    assert!(!settings.require_provenance && settings.denied.is_empty());
    assert!(settings.channels.is_empty() && settings.warnings().is_empty());
}

#[test]
fn everything_that_is_written_down_is_read() {
    let id = key(9).public().key_id();
    let text = format!(
        "{}[trust]\nmode = \"audit\"\nmax_age_days = 90\nrequire_provenance = true\n\
         [trust.deny]\nkeys = [\"{id}\"]\nbundles = [\"{}\"]\n{CHANNEL}",
        publisher("acme", &[key(1).public()], 1, &["text"]),
        sample_digest()
    );
    let settings = read(&text).unwrap();
    assert_eq!(settings.mode, Mode::Audit);
    assert_eq!(settings.max_age, Some(Duration::from_secs(90 * 86_400)));
    assert!(settings.require_provenance);
    assert!(settings.denied.key("anybody", &id).is_some());
    assert!(
        settings
            .denied
            .bundle("anybody", &sample_digest())
            .is_some()
    );
    assert_eq!(settings.warnings().len(), 1);
    let stable = settings.channel("stable").unwrap();
    assert_eq!((&*stable.source, stable.threshold), ("/srv/x", 1));
    assert_eq!(stable.keys, [key(3).public()]);
    assert!(settings.channel("other").is_none());
    // The trust store reads the publishers of the same text and ignores the rest.
    assert_eq!(
        TrustStore::from_toml(&text).unwrap().publishers().count(),
        1
    );
}

#[test]
fn slips_are_errors_and_not_silence() {
    for text in [
        "[trust]\nmod = \"audit\"\n",
        "[trust]\nmode = \"off\"\n",
        "[trust]\nmax_age_days = 0\n",
        "[trust]\nmax_age_days = 36501\n",
        "[trust]\nmax_age_days = -1\n",
        "[trust.deny]\nkey = []\n",
        "[[channels]]\nname = \"stable\"\n",
        &CHANNEL.replace("source", "sauce"),
        &CHANNEL.replace("/srv/x", ""),
        &CHANNEL.replace("key_files = [\"stable.pub.pem\"]", "keys = []"),
        &format!("{CHANNEL}threshold = 2\n"),
        &format!("{CHANNEL}threshold = 0\n"),
        &format!("{CHANNEL}{CHANNEL}"),
    ] {
        assert_eq!(refused(text), "trust-invalid", "{text}");
    }
    assert_eq!(refused("[trust.deny]\nkeys = [\"x\"]\n"), "digest-invalid");
    assert_eq!(
        refused("[trust.deny]\nbundles = [\"x\"]\n"),
        "digest-invalid"
    );
    assert_eq!(refused(&CHANNEL.replace("stable.pub", "other.pub")), "io");
    assert_eq!(
        refused(&CHANNEL.replace("\"stable\"", "\"Stable\"")),
        "id-invalid"
    );
}

#[test]
fn a_bundle_without_provenance_is_refused_where_it_is_demanded() {
    let demanding = VerifyOptions {
        require_provenance: true,
        ..options()
    };
    let refusal = verify_signed(&[1], &acme(), &demanding).unwrap_err();
    assert_eq!(refusal.code(), "provenance-missing");
    // Audit mode does not relax the demand for provenance.
    let audit = VerifyOptions {
        mode: Mode::Audit,
        ..demanding
    };
    let refusal = verify_signed(&[1], &acme(), &audit).unwrap_err();
    assert_eq!(refusal.code(), "provenance-missing");
}

#[test]
fn a_bundle_above_the_maximum_age_is_refused_and_in_audit_mode_warned_of() {
    let with = |seconds: u64, mode: Mode| VerifyOptions {
        max_age: Some(Duration::from_secs(seconds)),
        mode,
        ..options()
    };
    // The sample is a day old.
    verify_signed(&[1], &acme(), &with(86_400, Mode::Enforce)).unwrap();
    let refusal = verify_signed(&[1], &acme(), &with(86_399, Mode::Enforce)).unwrap_err();
    assert_eq!(refusal.code(), "too-old");
    let bundle = verify_signed(&[1], &acme(), &with(1, Mode::Audit)).unwrap();
    assert_eq!(bundle.warnings.len(), 1);
    verify_signed(&[1], &acme(), &with(u64::MAX, Mode::Enforce)).unwrap();
}

#[test]
fn revocations_of_several_sources_add_up() {
    let mut all = Revocations::none();
    let mut one = Revocations::none();
    one.deny_key(key(1).public().key_id());
    let mut other = Revocations::none();
    other.deny_bundle(sample_digest());
    all.extend(&one);
    all.extend(&other);
    assert!(all.key("acme", &key(1).public().key_id()).is_some());
    assert!(all.bundle("acme", &sample_digest()).is_some());
    assert!(all.key("acme", &key(2).public().key_id()).is_none());
}
