//! Prefixes that overlap with another publisher's.

use super::*;

#[test]
fn a_prefix_of_another_publisher_is_refused_unless_exactly_that_one_is_named() {
    let mut world = World::new();
    world.configure(
        "conf",
        &key(8),
        "prefixes = [\"conf\"]\nactions = [\"storage\"]",
    );
    world.add_document(
        &document("beta", &[&key(2)]),
        &key(2),
        &["beta", "shared.x"],
    );
    let gamma = world.file("gamma", &key(3));
    world.add(&request(&gamma, &words(&["gamma"]))).unwrap();
    let file = world.file("acme", &key(1));
    for (prefix, holder) in [
        ("beta", "beta"),
        ("beta.crm", "beta"),
        ("shared", "beta"),
        ("gamma", "gamma"),
        ("gamma.x", "gamma"),
        ("conf.x", "conf"),
        ("storage.files", "conf"),
    ] {
        let prefixes = words(&["acme", prefix]);
        let failure = refused(world.plan(&request(&file, &prefixes)), "prefix-taken");
        assert!(failure.message.contains(holder), "{failure}");
        assert!(
            failure.hints[0].contains(&format!("--takes-from {holder}")),
            "{failure:?}"
        );
        for named in [
            &["acme"][..],
            &["beta", "gamma", "conf"],
            &["none"],
            &["bet"],
        ] {
            let named = words(named);
            let wanted = KeyRequest {
                takes_from: &named,
                ..request(&file, &prefixes)
            };
            refused(world.plan(&wanted), "prefix-taken");
        }
        let named = words(&[holder]);
        let wanted = KeyRequest {
            takes_from: &named,
            ..request(&file, &prefixes)
        };
        let candidate = world.plan(&wanted).unwrap();
        assert_eq!(candidate.overlaps, [(holder.to_owned(), prefix.to_owned())]);
    }
    // For prefixes next to theirs, no publisher must be named.
    for prefix in ["betax", "beta-x", "shared.y", "storagex", "gammaevil"] {
        world.plan(&request(&file, &words(&[prefix]))).unwrap();
    }
    // If two publishers are affected, both must be named.
    let prefixes = words(&["beta.crm", "gamma.x"]);
    for (named, taken) in [
        (&["beta"][..], false),
        (&["gamma"], false),
        (&["beta", "gamma"], true),
    ] {
        let named = words(named);
        let wanted = KeyRequest {
            takes_from: &named,
            ..request(&file, &prefixes)
        };
        assert_eq!(world.plan(&wanted).is_ok(), taken, "{named:?}");
    }
}

#[test]
fn a_longer_prefix_that_was_taken_decides_and_the_rest_stays() {
    let world = World::new();
    world.add_document(&document("beta", &[&key(2)]), &key(2), &["beta"]);
    let file = world.file("acme", &key(1));
    let (prefixes, named) = (words(&["beta.crm"]), words(&["beta"]));
    let wanted = KeyRequest {
        takes_from: &named,
        ..request(&file, &prefixes)
    };
    world.add(&wanted).unwrap();
    let store = world.context().store;
    assert!(store.may_publish("acme", "beta.crm.x") && !store.may_publish("beta", "beta.crm.x"));
    assert!(store.may_publish("beta", "beta.x") && !store.may_publish("acme", "beta.x"));
    // The same request again needs no flag, and may have one.
    assert!(world.plan(&wanted).unwrap().is_unchanged());
    assert!(
        world
            .plan(&request(&file, &prefixes))
            .unwrap()
            .is_unchanged()
    );
}

#[test]
fn a_document_for_prefixes_that_a_bare_key_has_is_refused_until_the_key_is_gone() {
    let world = World::new();
    let file = world.file("key", &key(1));
    world.add(&request(&file, &words(&["acme.crm"]))).unwrap();
    let path = world.path("acme.publisher.json");
    let mut envelope = document("acme", &[&key(2)]).to_envelope().unwrap();
    envelope.sign(&key(2));
    fs::write(&path, envelope.to_bytes().unwrap()).unwrap();
    let source = path.display().to_string();
    for (prefixes, actions) in [
        (&["acme"][..], &[][..]),
        (&["acme.crm"], &[]),
        (&["acme.crm.x"], &[]),
        (&["other"], &["acme"]),
    ] {
        let (prefixes, actions) = (words(prefixes), words(actions));
        let candidate = world.changes().candidate(&source, &prefixes, &actions);
        let failure = refused(candidate, "prefix-taken");
        assert!(failure.message.contains("key"), "{failure}");
        assert!(failure.hints[0].contains("trust remove key"), "{failure:?}");
    }
    world.add_document(&document("beside", &[&key(3)]), &key(3), &["acme-crm"]);
    let known = world.changes().update(
        "beside",
        &PublisherUpdate {
            actions: Some(&words(&["acme.crm"])),
            ..PublisherUpdate::default()
        },
        |_| {
            Ok(Some(FreshnessRule {
                max_age_days: Some(5),
                ..FreshnessRule::default()
            }))
        },
    );
    refused(known, "prefix-taken");
    // Nothing was changed.
    let trusted = world.trusted();
    let rule = &trusted.get("beside").unwrap().grant.freshness;
    assert_eq!(rule.max_age_days, None);

    world.changes().remove("key", false).unwrap();
    world.add_document(&document("acme", &[&key(2)]), &key(2), &["acme"]);
    let named = words(&["acme"]);
    let prefixes = words(&["acme.crm"]);
    let wanted = KeyRequest {
        takes_from: &named,
        ..request(&file, &prefixes)
    };
    world.add(&wanted).unwrap();
    // A publisher with whose ids the key overlaps can still change its actions.
    let actions = words(&["free"]);
    let update = PublisherUpdate {
        actions: Some(&actions),
        ..PublisherUpdate::default()
    };
    let changes = world.changes();
    changes.update("acme", &update, |_| Ok(None)).unwrap();
}
