//! The trust store's text.

use toolward_signing::trust::TrustStore;

use crate::support::{key, publisher};

fn refused(text: &str) -> &'static str {
    let refusal = TrustStore::from_toml(text).expect_err(text);
    assert!(refusal.place().is_some(), "{refusal:?}");
    refusal.code()
}

#[test]
fn publishers_are_read_and_other_tables_left_alone() {
    let text = format!(
        "mode = \"enforce\"\n{}{}[policy]\nx = 1\n",
        publisher(
            "acme",
            &[key(1).public(), key(2).public()],
            2,
            &["acme", "acme-tools"]
        ),
        publisher("other", &[key(3).public()], 1, &["*"]),
    );
    let store = TrustStore::from_toml(&text).unwrap();
    assert_eq!(store.publishers().count(), 2);
    let acme = store.publisher("acme").unwrap();
    assert_eq!(
        (acme.keys.len(), acme.threshold, acme.prefixes.len()),
        (2, 2, 2)
    );
    assert!(!acme.is_ad_hoc);
    assert!(
        TrustStore::from_toml("")
            .unwrap()
            .publishers()
            .next()
            .is_none()
    );
}

#[test]
fn the_threshold_is_one_if_left_out_and_pem_may_stand_in_a_long_string() {
    let pem = key(1).public().to_pem().unwrap();
    let text = format!(
        "[[publisher]]\nname = \"acme\"\nprefixes = [\"acme\"]\nkeys = [\"\"\"\n{pem}\"\"\"]\n"
    );
    let store = TrustStore::from_toml(&text).unwrap();
    assert_eq!(store.publisher("acme").unwrap().threshold, 1);
}

#[test]
fn key_files_are_read_by_the_caller() {
    let text =
        "[[publisher]]\nname = \"acme\"\nprefixes = [\"acme\"]\nkey_files = [\"acme.pem\"]\n";
    let store = TrustStore::from_toml_with(text, &mut |name| {
        assert_eq!(name, "acme.pem");
        Ok(key(1).public().to_pem().unwrap())
    })
    .unwrap();
    assert_eq!(store.publisher("acme").unwrap().keys, [key(1).public()]);
    assert_eq!(refused(text), "io");
}

#[test]
fn mistakes_are_refused_with_their_place() {
    let one = [key(1).public()];
    let good = publisher("acme", &one, 1, &["acme"]);
    assert_eq!(refused("x ="), "trust-invalid");
    assert_eq!(
        refused(&good.replace("threshold", "treshold")),
        "trust-invalid"
    );
    assert_eq!(
        refused(&good.replace("name = \"acme\"", "name = \"Acme\"")),
        "id-invalid"
    );
    assert_eq!(
        refused(&good.replace("name = \"acme\"", "name = \"key:acme\"")),
        "id-invalid"
    );
    assert_eq!(
        refused(&publisher("acme", &[], 1, &["acme"])),
        "trust-invalid"
    );
    assert_eq!(
        refused(&publisher("acme", &one, 0, &["acme"])),
        "trust-invalid"
    );
    assert_eq!(
        refused(&publisher("acme", &one, 2, &["acme"])),
        "trust-invalid"
    );
    assert_eq!(refused(&publisher("acme", &one, 1, &[])), "trust-invalid");
    assert_eq!(
        refused(&publisher("acme", &one, 1, &["acme."])),
        "id-invalid"
    );
    assert_eq!(
        refused(&publisher("acme", &one, 1, &["acme.*"])),
        "id-invalid"
    );
    assert_eq!(refused(&format!("{good}{good}")), "trust-invalid");
    let twice = [key(1).public(), key(1).public()];
    assert_eq!(
        refused(&publisher("acme", &twice, 1, &["acme"])),
        "trust-invalid"
    );
    let shared = format!("{good}{}", publisher("other", &one, 1, &["other"]));
    assert_eq!(refused(&shared), "trust-invalid");
    assert_eq!(
        refused(&good.replace("BEGIN PUBLIC", "BEGIN PUBLIK")),
        "key-invalid"
    );
}

#[test]
fn the_longest_prefix_decides_over_an_id() {
    let store = TrustStore::from_toml(
        &[
            publisher("all", &[key(1).public()], 1, &["*"]),
            publisher("acme", &[key(2).public()], 1, &["acme"]),
            publisher("crm", &[key(3).public()], 1, &["acme.crm", "acme"]),
        ]
        .concat(),
    )
    .unwrap();
    for (id, holders) in [
        ("other.x", &["all"][..]),
        ("acmex", &["all"]),
        ("acme", &["acme", "crm"]),
        ("acme.mail", &["acme", "crm"]),
        ("acme:commit", &["acme", "crm"]),
        ("acme.crm", &["crm"]),
        ("acme.crm.find", &["crm"]),
        ("acme.crmx", &["acme", "crm"]),
    ] {
        for name in ["all", "acme", "crm"] {
            assert_eq!(
                store.may_publish(name, id),
                holders.contains(&name),
                "{name}, {id}"
            );
        }
    }
    assert!(!store.may_publish("nobody", "acme"));
}

#[test]
fn prefixes_of_actions_cover_actions_only_and_the_longest_decides_among_all() {
    let of_actions = |toml: String, actions: &str| format!("{toml}actions = [{actions}]\n");
    let acme = publisher("acme", &[key(1).public()], 1, &["acme", "mail"]);
    let lib = publisher("lib", &[key(2).public()], 1, &["lib"]);
    let lib = of_actions(lib, r#""storage", "mail", "acme.crm""#);
    let store = TrustStore::from_toml(&[acme, lib].concat()).unwrap();
    assert!(!store.may_publish("lib", "storage") && !store.may_publish("lib", "storage:commit"));
    let holder = |id: &str| Some(store.action_holder(id)?.name().to_owned());
    for (id, expected) in [
        ("storage:commit", Some("lib")),
        ("storage.blob:commit", Some("lib")),
        ("storagex:commit", None),
        ("acme:commit", Some("acme")),
        ("acme.crm:find", Some("lib")),
        // Both hold the prefix.
        ("mail:send", None),
    ] {
        assert_eq!(holder(id).as_deref(), expected, "{id}");
    }
    // Ids that are not actions still belong to acme.
    assert!(store.may_publish("acme", "acme.crm.find"));
    let mut key_alone = TrustStore::for_key(key(1).public());
    assert!(key_alone.action_holder("storage:commit").is_some());
    key_alone.add_key(key(2).public());
    assert!(key_alone.action_holder("storage:commit").is_none());
}

#[test]
fn a_store_without_publishers_lets_nobody_publish() {
    assert!(!TrustStore::empty().may_publish("acme", "acme"));
    let store = TrustStore::for_key(key(1).public());
    let name = store.publishers().next().unwrap().name().to_owned();
    assert!(store.may_publish(&name, "whatever"));
    assert!(!store.may_publish("acme", "whatever"));
}

#[test]
fn a_slip_in_the_tables_name_is_an_error_and_not_an_empty_store() {
    let text = publisher("acme", &[key(1).public()], 1, &["acme"]);
    let slip = text.replace("[[publisher]]", "[[publishers]]");
    assert_ne!(text, slip);
    let refusal = TrustStore::from_toml(&slip).unwrap_err();
    assert_eq!(refusal.code(), "trust-invalid");
    assert!(refusal.to_string().contains("publishers"), "{refusal}");
}
