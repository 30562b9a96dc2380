//! A publisher publishes an id that the operator did not grant it.

use toolward_signing::trust::TrustStore;

use crate::support::{Sample, key, publisher};

fn store(tables: &[String]) -> TrustStore {
    TrustStore::from_toml(&tables.concat()).unwrap()
}

#[test]
fn an_id_outside_the_publishers_prefixes_is_refused() {
    for prefixes in [
        &["mail"][..],
        &["texts"],
        &["tex"],
        &["text.stat"],
        &["text.stats.sub"],
    ] {
        let trust = store(&[publisher("acme", &[key(1).public()], 1, prefixes)]);
        let refusal = Sample::new().sign(&[&key(1)]).verify(&trust).unwrap_err();
        assert_eq!(refusal.code(), "prefix-not-granted", "{prefixes:?}");
    }
}
