mod afterwards;
mod overlaps;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::time::Duration;

use toolward_signing::Digest;
use toolward_signing::key::SigningKey;
use toolward_signing::publisher::{PublisherDocument, RevokedKey};
use toolward_signing::timestamp::Timestamp;

use super::*;
use crate::Environment;
use crate::installed::StoreLocation;
use crate::network::Network;
use crate::trust::publishers::{FreshnessRule, PublisherRecord};
use crate::trust::update::PublisherUpdate;

fn key(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number; 32])
}

/// An operator with separate directories, who trusts no publisher yet.
struct World {
    home: tempfile::TempDir,
    environment: Environment,
    trust: Trust,
    store: StoreLocation,
    network: Network,
}

impl World {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let environment = Environment {
            config_directory: Some(home.path().join("config")),
            state_directory: Some(home.path().join("state")),
            data_directory: Some(home.path().join("data")),
            ..Environment::default()
        };
        Self {
            home,
            environment,
            trust: Trust::default(),
            store: StoreLocation::default(),
            network: Network::default(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Writes a public key to a file in a separate folder.
    fn file(&self, name: &str, key: &SigningKey) -> PathBuf {
        let path = self.path(&format!("keys/{name}.pub.pem"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, key.public().to_pem().unwrap()).unwrap();
        path
    }

    /// A `[[publisher]]` of `toolward.toml`.
    fn configure(&mut self, name: &str, key: &SigningKey, lines: &str) {
        let pem = key.public().to_pem().unwrap();
        let text =
            format!("[[publisher]]\nname = \"{name}\"\nkeys = [\"\"\"{pem}\"\"\"]\n{lines}\n");
        fs::create_dir_all(self.path("config")).unwrap();
        fs::write(self.path("config/toolward.toml"), text).unwrap();
        self.trust = self.trust.unread();
    }

    fn changes(&self) -> TrustChanges<'_> {
        TrustChanges {
            trust: &self.trust,
            store: &self.store,
            network: &self.network,
            environment: &self.environment,
            rows: None,
        }
    }

    fn plan(&self, request: &KeyRequest<'_>) -> Result<KeyCandidate, Error> {
        self.changes().key_candidate(request)
    }

    /// Trusts a key as if a person had confirmed it.
    fn add(&self, request: &KeyRequest<'_>) -> Result<BareKey, Error> {
        let candidate = self.plan(request)?;
        self.changes().add_key(&candidate, request, || Ok(()))
    }

    fn trusted(&self) -> TrustedPublishers {
        self.trust.trusted(&self.environment).unwrap()
    }

    fn context(&self) -> TrustContext {
        self.trust.context(&self.environment).unwrap()
    }

    /// A document, trusted for these prefixes.
    fn add_document(&self, document: &PublisherDocument, signer: &SigningKey, of: &[&str]) {
        let mut envelope = document.to_envelope().unwrap();
        envelope.sign(signer);
        let path = self.path(&format!("{}.publisher.json", document.name));
        fs::write(&path, envelope.to_bytes().unwrap()).unwrap();
        let source = path.display().to_string();
        let of: Vec<String> = of.iter().map(ToString::to_string).collect();
        let candidate = self.changes().candidate(&source, &of, &[]).unwrap();
        let rule = FreshnessRule::default();
        self.changes().add(&candidate, rule, || Ok(())).unwrap();
    }
}

fn document(name: &str, keys: &[&SigningKey]) -> PublisherDocument {
    PublisherDocument {
        name: name.to_owned(),
        version: 1,
        created: Timestamp::from_unix(1_700_000_000).unwrap(),
        expires: None,
        threshold: 1,
        keys: keys.iter().map(|key| key.public()).collect(),
        revoked_keys: Vec::new(),
        resets: Vec::new(),
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

/// A request for these prefixes, and nothing else.
fn request<'r>(file: &'r Path, prefixes: &'r [String]) -> KeyRequest<'r> {
    KeyRequest {
        file,
        name: None,
        prefixes,
        max_age_days: None,
        channel: None,
        takes_from: &[],
    }
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, Error>, code: &str) -> Error {
    let failure = result.expect_err(code);
    assert_eq!(failure.code, code, "{failure}");
    assert!(!failure.hints.is_empty(), "{failure}");
    failure
}

#[test]
fn a_bare_key_is_trusted_for_its_prefixes_and_ninety_days() {
    let world = World::new();
    let file = world.file("acme", &key(1));
    // A dot at the end of a prefix makes no difference.
    let prefixes = words(&["acme.", "acme-tools"]);
    let added = world.add(&request(&file, &prefixes)).unwrap();
    assert_eq!(added.name, "acme");
    assert_eq!(added.grant.prefixes, ["acme", "acme-tools"]);
    let store = world.context().store;
    let trusted = store.publisher("acme").unwrap();
    assert!(trusted.is_bare);
    let days = Duration::from_secs(90 * 24 * 60 * 60);
    assert_eq!(trusted.max_age, Some(days));
    assert!(store.may_publish("acme", "acme.crm") && store.may_publish("acme", "acme-tools.x"));
    for id in ["acmeevil.x", "acme-evil", "acme-toolsx", "other", "ACME.x"] {
        assert!(!store.may_publish("acme", id), "{id}");
    }
    // The decision is in the record of trust.
    let store = world.store.open(&world.environment).unwrap();
    let filter = toolward_store::audit_log::DecisionFilter::default();
    let decisions = store.decisions(&filter).unwrap();
    let id = key(1).public().key_id().to_string();
    assert!(
        decisions
            .iter()
            .any(|one| one.decision.action == "trust-add" && one.decision.reason.contains(&id))
    );
}

#[test]
fn a_bare_key_gets_a_second_prefix_and_another_age_later() {
    let world = World::new();
    let file = world.file("acme", &key(1));
    let first = words(&["acme"]);
    world.add(&request(&file, &first)).unwrap();
    assert!(world.plan(&request(&file, &first)).unwrap().is_unchanged());
    let second = words(&["acme-tools"]);
    let wanted = KeyRequest {
        max_age_days: Some(30),
        ..request(&file, &second)
    };
    let candidate = world.plan(&wanted).unwrap();
    assert_eq!(candidate.before.unwrap().grant.prefixes, ["acme"]);
    let added = world.add(&wanted).unwrap();
    assert_eq!(added.grant.prefixes, ["acme", "acme-tools"]);
    assert_eq!(added.grant.max_age_days, 30);
    // Without a new age, the age stays unchanged.
    let third = words(&["acme-more"]);
    let added = world.add(&request(&file, &third)).unwrap();
    assert_eq!(
        (added.grant.prefixes.len(), added.grant.max_age_days),
        (3, 30)
    );
    assert_eq!(world.trusted().keys, [added]);
}

#[test]
fn only_the_whole_fingerprint_of_this_key_is_its_fingerprint() {
    let world = World::new();
    let file = world.file("acme", &key(1));
    let prefixes = words(&["acme"]);
    let candidate = world.plan(&request(&file, &prefixes)).unwrap();
    let id = key(1).public().key_id().to_string();
    let groups: Vec<&str> = (0..16)
        .map(|at| id.get(at * 4..at * 4 + 4).unwrap())
        .collect();
    for typed in [
        id.clone(),
        id.to_uppercase(),
        groups.join(" "),
        groups.join(":"),
    ] {
        assert!(candidate.is_fingerprint(&typed), "{typed}");
    }
    let other = key(2).public().key_id().to_string();
    for typed in [
        "",
        "y",
        "yes",
        id.get(..63).unwrap(),
        &format!("{id}0"),
        &other,
        &id.replace('a', "а"),
    ] {
        assert!(!candidate.is_fingerprint(typed), "{typed}");
    }
}

#[test]
fn prefixes_are_whole_lower_case_segments_and_never_all() {
    let world = World::new();
    let file = world.file("acme", &key(1));
    for (prefix, code) in [
        ("*", "trust-invalid"),
        ("*.", "trust-invalid"),
        ("", "id-invalid"),
        (".", "id-invalid"),
        ("acme..", "id-invalid"),
        ("acme.*", "id-invalid"),
        ("Acme", "id-invalid"),
        ("acmе", "id-invalid"),
        ("acme\u{200b}", "id-invalid"),
        ("a/../b", "id-invalid"),
    ] {
        let prefixes = words(&["acme", prefix]);
        refused(world.plan(&request(&file, &prefixes)), code);
    }
    let prefixes = words(&["acme"]);
    for days in [0, 36_501] {
        let wanted = KeyRequest {
            max_age_days: Some(days),
            ..request(&file, &prefixes)
        };
        refused(world.plan(&wanted), "trust-invalid");
    }
    let wanted = KeyRequest {
        channel: Some("none"),
        ..request(&file, &prefixes)
    };
    refused(world.plan(&wanted), "channel-unknown");
    for name in ["Acme", "a", "../acme", ".gone", "key:acme"] {
        let wanted = KeyRequest {
            name: Some(name),
            ..request(&file, &prefixes)
        };
        refused(world.plan(&wanted), "id-invalid");
    }
    let odd = world.file("Acme Inc", &key(1));
    refused(world.plan(&request(&odd, &prefixes)), "id-invalid");
    assert!(world.trusted().is_empty());
}

#[test]
fn a_key_in_place_of_an_earlier_document_is_shown_as_that() {
    let world = World::new();
    let file = world.file("acme", &key(1));
    let prefixes = words(&["acme"]);
    assert_eq!(
        world.plan(&request(&file, &prefixes)).unwrap().document,
        None
    );
    let version = 3;
    let later = PublisherDocument {
        version,
        ..document("acme", &[&key(2)])
    };
    world.add_document(&later, &key(2), &["acme"]);
    world.changes().remove("acme", false).unwrap();
    let candidate = world.plan(&request(&file, &prefixes)).unwrap();
    assert_eq!(candidate.document, Some(version));
}

#[test]
fn a_publisher_is_not_downgraded_to_a_bare_key() {
    let mut world = World::new();
    world.configure("conf", &key(8), "prefixes = [\"conf\"]");
    world.add_document(&document("beta", &[&key(2), &key(3)]), &key(2), &["beta"]);
    let prefixes = words(&["acme"]);
    for (name, of, shown) in [
        ("beta", 1, "trusted by its document"),
        ("acme", 2, "trusted by its document"),
        ("beta", 3, "trusted by its document"),
        ("conf", 1, "`[[publisher]]` of toolward.toml"),
        ("acme", 8, "`[[publisher]]` of toolward.toml"),
    ] {
        let file = world.file(name, &key(of));
        let failure = refused(world.plan(&request(&file, &prefixes)), "publisher-known");
        assert!(failure.hints[0].contains(shown), "{failure:?}");
    }
    assert!(world.trusted().keys.is_empty());
}

#[test]
fn a_key_is_trusted_under_one_name_and_a_name_for_one_key() {
    let world = World::new();
    let file = world.file("acme", &key(1));
    let prefixes = words(&["acme"]);
    world.add(&request(&file, &prefixes)).unwrap();
    let more = words(&["more"]);
    let wanted = KeyRequest {
        name: Some("other"),
        ..request(&file, &more)
    };
    refused(world.plan(&wanted), "publisher-known");
    // The key keeps its name, even in a file with another name.
    let moved = world.file("other", &key(1));
    assert_eq!(
        world.plan(&request(&moved, &more)).unwrap().after.name,
        "acme"
    );
    let second = world.file("acme", &key(2));
    let failure = refused(world.plan(&request(&second, &more)), "publisher-known");
    assert!(
        failure.hints[0].contains("trust remove acme"),
        "{failure:?}"
    );
    // A document with that name or with that key does not replace it.
    for (name, of) in [("acme", 2), ("other", 1)] {
        let mut envelope = document(name, &[&key(of)]).to_envelope().unwrap();
        envelope.sign(&key(of));
        let path = world.path("x.publisher.json");
        fs::write(&path, envelope.to_bytes().unwrap()).unwrap();
        let source = path.display().to_string();
        world.changes().candidate(&source, &more, &[]).unwrap_err();
    }
}

#[test]
fn a_key_that_its_publisher_revoked_is_not_trusted_by_itself() {
    let world = World::new();
    let mut revoking = document("beta", &[&key(2)]);
    revoking.revoked_keys.push(RevokedKey {
        key_id: key(1).public().key_id(),
        since: None,
        reason: "a laptop was stolen".to_owned(),
    });
    let file = world.file("acme", &key(1));
    let prefixes = words(&["acme"]);
    world.add_document(&revoking, &key(2), &["beta"]);
    refused(world.plan(&request(&file, &prefixes)), "key-revoked");
    // The same after that publisher was removed.
    world.changes().remove("beta", false).unwrap();
    refused(world.plan(&request(&file, &prefixes)), "key-revoked");
    world.changes().remove("beta", true).unwrap();
    // A key that was trusted before does not count once it is revoked.
    world.add(&request(&file, &prefixes)).unwrap();
    let id = key(1).public().key_id();
    assert!(world.context().revocations.key("acme", &id).is_none());
    world.add_document(&revoking, &key(2), &["beta"]);
    assert!(world.context().revocations.key("acme", &id).is_some());
}

#[test]
fn a_file_that_is_not_one_public_key_in_a_folder_of_its_own_is_refused() {
    use toolward_signing::secrecy::ExposeSecret as _;

    let world = World::new();
    let file = world.file("acme", &key(1));
    let prefixes = words(&["acme"]);
    let one = fs::read_to_string(&file).unwrap();
    let two = one.clone() + &key(2).public().to_pem().unwrap();
    let private = key(1).to_pem().unwrap();
    for text in [&two, private.expose_secret(), "", "text"] {
        fs::write(&file, text).unwrap();
        refused(world.plan(&request(&file, &prefixes)), "key-invalid");
    }
    fs::write(&file, "x".repeat(MAX_KEY_BYTES + 1)).unwrap();
    refused(world.plan(&request(&file, &prefixes)), "file-unreadable");
    fs::write(&file, &one).unwrap();
    fs::write(file.with_file_name("x.toolbundle"), "").unwrap();
    refused(world.plan(&request(&file, &prefixes)), "key-misplaced");
    let link = world.path("link.pub.pem");
    symlink(&file, &link).unwrap();
    refused(world.plan(&request(&link, &prefixes)), "key-misplaced");
    let pem = include_str!("../../../../examples/keys/INSECURE-example-signing-key.pem");
    let example = SigningKey::from_pem(pem, None).unwrap();
    fs::remove_file(file.with_file_name("x.toolbundle")).unwrap();
    let file = world.file("example", &example);
    refused(world.plan(&request(&file, &prefixes)), "trust-example-key");
}
