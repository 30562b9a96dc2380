//! A publisher uses its prefix to publish an id below a longer prefix of another publisher.

use toolward_signing::trust::TrustStore;

use crate::support::{Sample, key, publisher};

fn store(tables: &[String]) -> TrustStore {
    TrustStore::from_toml(&tables.concat()).unwrap()
}

#[test]
fn the_longest_prefix_decides_and_ends_the_search() {
    let trust = store(&[
        publisher("acme", &[key(1).public()], 1, &["text"]),
        publisher("deep", &[key(2).public()], 1, &["text.stats"]),
    ]);
    let refusal = Sample::new().sign(&[&key(1)]).verify(&trust).unwrap_err();
    assert_eq!(refusal.code(), "prefix-not-granted");
    assert!(refusal.found_text().unwrap().contains("deep"));
    let mut sample = Sample::new();
    sample.publisher = "deep".to_owned();
    let bundle = sample.sign(&[&key(2)]).verify(&trust).unwrap();
    assert!(bundle.may_publish("text.stats.more") && !bundle.may_publish("text.other"));
}
