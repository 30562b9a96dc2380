//! Changes of trust in a bare key while a person is asked, and later.

use super::*;

#[test]
fn what_changed_while_the_person_was_asked_is_not_written_over() {
    let mut world = World::new();
    let file = world.file("acme", &key(1));
    let prefixes = words(&["acme"]);
    let wanted = request(&file, &prefixes);
    let asked = world.plan(&wanted).unwrap();
    let never = || -> Result<(), Error> { panic!("announced") };
    // Another process has trusted the key for more prefixes.
    let other = words(&["other"]);
    world.add(&request(&file, &other)).unwrap();
    let result = world.changes().add_key(&asked, &wanted, never);
    refused(result, "file-changed");
    assert_eq!(
        world.trusted().key("acme").unwrap().grant.prefixes,
        ["other"]
    );
    // Another publisher has the prefix now, by a document or by the configuration.
    world.changes().remove("acme", false).unwrap();
    world.add_document(&document("beta", &[&key(2)]), &key(2), &["acme.crm"]);
    let result = world.changes().add_key(&asked, &wanted, never);
    refused(result, "prefix-taken");
    world.changes().remove("beta", false).unwrap();
    let trust = Trust::of_config(None);
    trust.file(&world.environment).unwrap();
    world.configure("conf", &key(8), "prefixes = [\"acme\"]");
    world.trust = trust;
    let result = world.changes().add_key(&asked, &wanted, never);
    refused(result, "prefix-taken");
    assert!(world.trusted().is_empty());
}

#[test]
fn nothing_is_trusted_where_the_change_can_not_be_announced() {
    let world = World::new();
    let file = world.file("acme", &key(1));
    let prefixes = words(&["acme"]);
    let wanted = request(&file, &prefixes);
    let candidate = world.plan(&wanted).unwrap();
    let failing = || Err(Error::usage(Code::WriteFailed, "the disk is full"));
    let result = world.changes().add_key(&candidate, &wanted, failing);
    assert_eq!(result.unwrap_err().code, "write-failed");
    assert!(world.trusted().is_empty());
}

#[test]
fn a_bare_key_is_removed_and_has_nothing_to_update() {
    let world = World::new();
    let file = world.file("acme", &key(1));
    let prefixes = words(&["acme"]);
    world.add(&request(&file, &prefixes)).unwrap();
    for update in [
        PublisherUpdate::default(),
        PublisherUpdate {
            revocations: Some("list.json"),
            ..PublisherUpdate::default()
        },
        PublisherUpdate {
            actions: Some(&prefixes),
            ..PublisherUpdate::default()
        },
    ] {
        let result = world.changes().update("acme", &update, |_| Ok(None));
        refused(result, "publisher-bare");
    }
    let rule = FreshnessRule {
        max_age_days: Some(36_500),
        channel: None,
    };
    let update = PublisherUpdate::default();
    let result = world.changes().update("acme", &update, |_| Ok(Some(rule)));
    refused(result, "publisher-bare");
    assert_eq!(world.trusted().keys[0].grant.max_age_days, 90);
    assert_eq!(world.changes().remove("acme", false).unwrap(), 0);
    assert!(world.trusted().is_empty());
    refused(world.changes().remove("acme", false), "publisher-unknown");
    // The publisher may be trusted again by its document.
    world.add_document(&document("acme", &[&key(1)]), &key(1), &["acme"]);
}

#[test]
fn a_folder_that_was_changed_by_hand_trusts_nobody() {
    let world = World::new();
    let file = world.file("acme", &key(1));
    let prefixes = words(&["acme"]);
    world.add(&request(&file, &prefixes)).unwrap();
    let folder = world.path("config/trust/acme");
    let grant = fs::read_to_string(folder.join("grant.toml")).unwrap();
    let read = || world.trust.context(&world.environment);
    for (from, to, code) in [
        ("max_age_days = 90\n", "", "trust-invalid"),
        ("max_age_days = 90", "max_age_days = 0", "trust-invalid"),
        ("\"acme\"", "\"*\"", "trust-invalid"),
        ("prefixes = [\"acme\"]", "prefixes = []", "trust-invalid"),
        ("max_age_days", "more = 1\nmax_age_days", "trust-invalid"),
    ] {
        assert!(grant.contains(from), "{from} in {grant}");
        fs::write(folder.join("grant.toml"), grant.replace(from, to)).unwrap();
        refused(read(), code);
    }
    fs::write(folder.join("grant.toml"), &grant).unwrap();
    read().unwrap();
    // A document or a list next to the key: neither silently replaces the key.
    for name in ["publisher.json", "revocations.json"] {
        fs::write(folder.join(name), "{}").unwrap();
        refused(read(), "trust-invalid");
        fs::remove_file(folder.join(name)).unwrap();
    }
    // A key file that others may write, and a link to a key.
    let key = folder.join("key.pem");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o666)).unwrap();
    refused(read(), "trust-unusable");
    fs::remove_file(&key).unwrap();
    symlink(&file, &key).unwrap();
    refused(read(), "trust-unusable");
    // The key can still be removed.
    world.changes().remove("acme", false).unwrap();
    assert!(world.trusted().is_empty());
}

#[test]
fn a_removed_publisher_s_revocations_hold_for_a_bare_key_of_its_name() {
    let world = World::new();
    let digest = Digest::of(b"a bundle");
    let folder = world.path("config/trust");
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(
        folder.join(".revoked-acme.toml"),
        format!("keys = []\n[revoked_keys]\n[revoked_bundles]\n\"{digest}\" = \"leaks\"\n"),
    )
    .unwrap();
    let file = world.file("acme", &key(1));
    let prefixes = words(&["acme"]);
    world.add(&request(&file, &prefixes)).unwrap();
    let context = world.context();
    assert!(context.revocations.bundle("acme", &digest).is_some());
    // Removing the key forgets nothing.
    world.changes().remove("acme", false).unwrap();
    assert!(folder.join(".revoked-acme.toml").exists());
}

#[test]
fn show_finds_a_bare_key_by_its_name() {
    let world = World::new();
    let file = world.file("acme", &key(1));
    let prefixes = words(&["acme"]);
    world.add(&request(&file, &prefixes)).unwrap();
    let publishers = world.trust.publishers(&world.environment).unwrap();
    let found = publishers.get("acme").unwrap().unwrap();
    assert!(matches!(found, PublisherRecord::Key(found) if found.key == key(1).public()));
    assert_eq!(publishers.names(10).unwrap(), ["acme"]);
}
