//! Action libraries: contracts implement actions of other bundles, under the operator's trust.

use toolward_author::Sealed;
use toolward_bundle::libraries::{Libraries, Reading, Shelf};
use toolward_bundle::surface::BundleSurface;
use toolward_bundle::{Content, ContentError};
use toolward_contract::action::{Reference, RegistryReference};
use toolward_contract::tool::Approval;
use toolward_signing::key::SigningKey;
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::{self, Bundle, Verified, VerifyOptions};

use crate::demo::{BUNDLE, Demo, TOOL};

const ACTION: &str = "---
schema: action/v1
id: words:count
description: Counts words.
risk_level: 1
approval: always
---
";

/// Publishers with a key each, and a trust store with their prefixes.
struct World {
    keys: Vec<(&'static str, SigningKey)>,
    trust: TrustStore,
}

impl World {
    /// `acme` may publish the tool and `verbs` the library; `mallory` may publish neither.
    fn new() -> Self {
        Self::with(&[
            ("acme", r#"prefixes = ["acme", "demo", "demo-greet"]"#),
            ("verbs", "prefixes = [\"verbs\"]\nactions = [\"words\"]"),
            ("mallory", r#"prefixes = ["mallory"]"#),
        ])
    }

    fn with(publishers: &[(&'static str, &str)]) -> Self {
        let made = publishers.iter();
        let keys: Vec<_> = made
            .map(|(name, _)| (*name, SigningKey::generate().unwrap()))
            .collect();
        let tables = keys
            .iter()
            .zip(publishers)
            .map(|((name, key), (_, lines))| {
                let pem = key.public().to_pem().unwrap();
                format!("[[publisher]]\nname = \"{name}\"\n{lines}\nkeys = ['''\n{pem}''']\n")
            });
        let trust = TrustStore::from_toml(&tables.collect::<String>()).unwrap();
        Self { keys, trust }
    }

    /// The bundle in a directory, signed by a publisher and verified.
    fn bundle(&self, demo: &Demo, publisher: &str) -> Verified<Bundle> {
        let (_, key) = self
            .keys
            .iter()
            .find(|(name, _)| *name == publisher)
            .unwrap();
        let mut sealed = Sealed::new(&demo.pack());
        sealed.sign(key).unwrap();
        let archive = sealed.to_archive().unwrap();
        verify::archive_bytes(&archive, &self.trust, &VerifyOptions::default()).unwrap()
    }

    /// A library of a publisher, with actions given by folder name and text.
    fn library(&self, publisher: &str, id: &str, actions: &[(&str, &str)]) -> Verified<Bundle> {
        let demo = Demo::new();
        let bundle = BUNDLE.replace("\"demo.greet\"", &format!("{id:?}"));
        demo.write("bundle.toml", bundle.replace("acme", publisher));
        for gone in [
            "tools/demo.greet/TOOL.md",
            "drivers/demo-greet/DRIVER.md",
            "drivers/demo-greet/driver.wasm",
        ] {
            demo.remove(gone);
        }
        for (folder, text) in actions {
            demo.write(&format!("actions/{folder}/ACTION.md"), text);
        }
        self.bundle(&demo, publisher)
    }

    fn standard(&self) -> Verified<Bundle> {
        self.library("verbs", "verbs.standard", &[("words-count", ACTION)])
    }

    /// acme's tool, with `implements: REFERENCE`.
    fn tool(&self, reference: &str) -> Verified<Bundle> {
        self.bundle(&implementing(reference), "acme")
    }

    /// Reads the first of these bundles, with the other bundles as libraries.
    fn read(
        &self,
        bundles: impl IntoIterator<Item = Verified<Bundle>>,
    ) -> Result<Content, ContentError> {
        self.read_all(bundles).remove(0)
    }

    /// Reads each of these bundles, with the other bundles as libraries.
    fn read_all(
        &self,
        bundles: impl IntoIterator<Item = Verified<Bundle>>,
    ) -> Vec<Result<Content, ContentError>> {
        let readings = bundles.into_iter().map(Reading::new);
        Reading::finish(readings.collect(), &self.trust)
    }
}

fn implementing(reference: &str) -> Demo {
    let demo = Demo::new();
    let line = format!("version: 1.0.0\nimplements: {reference}\n");
    let tool = TOOL.replacen("version: 1.0.0\n", &line, 1);
    demo.write("tools/demo.greet/TOOL.md", tool);
    demo
}

const REGISTRY: &str = "\"@verbs/standard/words-count\"";
const BARE: &str = "words:count";

#[track_caller]
fn unresolved(read: Result<Content, ContentError>) {
    let error = read.unwrap_err();
    let codes: Vec<_> = error.diagnostics().iter().map(|one| one.code).collect();
    assert_eq!(codes, ["action-unresolved"], "{error}");
}

#[test]
fn a_library_answers_to_its_address_and_to_the_id_that_trust_gives_it() {
    let world = World::new();
    for reference in [
        REGISTRY,
        BARE,
        "{ ref: \"@verbs/verbs/standard/words-count\" }",
    ] {
        let read = world.read([world.tool(reference), world.standard()]);
        // tools.json was signed without the library, and still agrees with the contract.
        let tool = &read
            .unwrap_or_else(|error| panic!("{reference}: {error}"))
            .tools[0]
            .tool;
        assert_eq!(
            (tool.risk_level, &tool.approval),
            (1, &Approval::Always),
            "{reference}"
        );
        let implements = tool.implements.as_ref().unwrap();
        assert_eq!(implements.library.as_deref(), Some("verbs"), "{reference}");
        assert_eq!(implements.shared("acme"), Some(("words:count", "verbs")));
    }
}

#[test]
fn without_the_library_the_tool_is_refused() {
    let world = World::new();
    for reference in [REGISTRY, BARE] {
        unresolved(world.read([world.tool(reference)]));
        unresolved(Content::from_verified(world.tool(reference)));
    }
    let error = world
        .read([world.tool("words:cuont"), world.standard()])
        .unwrap_err();
    let hint = error.diagnostics()[0].hint.clone().unwrap();
    assert_eq!(hint, "did you mean `words:count`?");
}

#[test]
fn an_action_of_the_bundle_itself_goes_before_a_librarys() {
    let world = World::with(&[
        (
            "acme",
            r#"prefixes = ["acme", "demo", "demo-greet", "words"]"#,
        ),
        ("verbs", "prefixes = [\"verbs\"]\nactions = [\"words\"]"),
    ]);
    let demo = implementing(BARE);
    demo.write(
        "actions/own/ACTION.md",
        ACTION.replace("risk_level: 1", "risk_level: 2"),
    );
    let content = world
        .read([world.bundle(&demo, "acme"), world.standard()])
        .unwrap();
    assert_eq!(content.tools[0].tool.risk_level, 2);
    assert!(!content.takes_actions());
}

#[test]
fn a_library_of_another_publisher_is_not_the_one_that_is_meant() {
    let world = World::new();
    let mallorys = ACTION.replace("words:count", "mallory:count");
    let library = world.library("mallory", "mallory.standard", &[("words-count", &mallorys)]);
    for reference in [REGISTRY, BARE] {
        unresolved(world.read([world.tool(reference), library.clone()]));
    }
    // The publisher of a library follows from the key that signed it, not from its claim.
    let key_alone = TrustStore::for_key(world.keys[1].1.public());
    let shelf = Shelf::of([&*world.standard()], &key_alone);
    let registry = RegistryReference::parse("@mallory/standard/words-count").unwrap();
    assert!(shelf.action(&Reference::Registry(registry)).is_none());
}

#[test]
fn a_library_that_claims_anothers_action_answers_to_nothing_and_is_refused() {
    let world = World::new();
    let claims = || world.library("mallory", "mallory.standard", &[("words-count", ACTION)]);
    for reference in [BARE, "\"@mallory/standard/words-count\""] {
        unresolved(world.read([world.tool(reference), claims()]));
    }
    let error = world.read([claims()]).unwrap_err();
    assert_eq!(error.code(), "prefix-not-granted");
    // It has no effect on the library of the publisher that may publish the id.
    let read = world.read([world.tool(BARE), claims(), world.standard()]);
    assert_eq!(read.unwrap().tools[0].tool.risk_level, 1);
}

#[test]
fn prefixes_of_actions_let_nobody_publish_a_tool() {
    let world = World::new();
    let demo = Demo::new();
    demo.write(
        "bundle.toml",
        BUNDLE
            .replace("demo.greet", "verbs.more")
            .replace("acme", "verbs"),
    );
    demo.write(
        "tools/demo.greet/TOOL.md",
        TOOL.replace("demo.greet", "words.count"),
    );
    let driver = crate::demo::DRIVER
        .replace("demo-greet", "verbs")
        .replace("demo.greet", "words.count");
    demo.write("drivers/demo-greet/DRIVER.md", driver);
    let error = world.read([world.bundle(&demo, "verbs")]).unwrap_err();
    assert_eq!(error.code(), "prefix-not-granted");
}

#[test]
fn an_id_that_two_libraries_answer_to_means_neither() {
    let world = World::new();
    let second = || world.library("verbs", "verbs.second", &[("words-count", ACTION)]);
    unresolved(world.read([world.tool(BARE), world.standard(), second()]));
    // A registry reference is unambiguous, since the addresses of the two libraries differ.
    assert!(
        world
            .read([world.tool(REGISTRY), world.standard(), second()])
            .is_ok()
    );

    let world = World::with(&[
        ("acme", r#"prefixes = ["acme", "demo", "demo-greet"]"#),
        ("verbs", "prefixes = [\"verbs\"]\nactions = [\"words\"]"),
        ("nouns", "prefixes = [\"nouns\"]\nactions = [\"words\"]"),
    ]);
    // If two publishers hold the prefix, the id means no action, even if only one of them has a
    // library.
    unresolved(world.read([world.tool(BARE), world.standard()]));
    assert!(world.read([world.tool(REGISTRY), world.standard()]).is_ok());
}

#[test]
fn a_name_that_two_folders_of_a_library_have_means_neither() {
    let world = World::new();
    let other = ACTION.replace("words:count", "words:other");
    let actions = [("a/words-count", ACTION), ("b/words-count", other.as_str())];
    let library = world.library("verbs", "verbs.standard", &actions);
    unresolved(world.read([world.tool(REGISTRY), library]));
}

#[test]
fn two_bundles_that_take_actions_from_each_other_are_both_read() {
    let world = World::new();
    let demo = implementing(REGISTRY);
    let own = ACTION.replace("words:count", "acme:greet");
    demo.write("actions/acme-greet/ACTION.md", own);
    let first = world.bundle(&demo, "acme");

    let demo = Demo::new();
    demo.write(
        "bundle.toml",
        BUNDLE
            .replace("demo.greet", "verbs.standard")
            .replace("acme", "verbs"),
    );
    let tool = TOOL.replace("demo.greet", "verbs.greet");
    let tool = tool.replacen(
        "version: 1.0.0\n",
        "version: 1.0.0\nimplements: acme:greet\n",
        1,
    );
    demo.write("tools/demo.greet/TOOL.md", tool);
    let driver = crate::demo::DRIVER
        .replace("demo-greet", "verbs.driver")
        .replace("demo.greet", "verbs.greet");
    demo.write("drivers/demo-greet/DRIVER.md", driver);
    demo.write("actions/words-count/ACTION.md", ACTION);
    let second = world.bundle(&demo, "verbs");

    for content in world.read_all([first, second]) {
        let content = content.unwrap();
        assert_eq!(content.tools[0].tool.risk_level, 1);
        assert!(content.takes_actions());
    }
}

#[test]
fn what_a_library_demands_is_part_of_the_tools_surface() {
    let world = World::new();
    let surface = |action: &str| {
        let library = world.library("verbs", "verbs.standard", &[("words-count", action)]);
        BundleSurface::of(&world.read([world.tool(BARE), library]).unwrap())
    };
    let before = surface(ACTION);
    assert!(before.takes_actions());
    for change in [
        ("risk_level: 1", "risk_level: 0"),
        ("approval: always", "approval: auto"),
        (
            "risk_level: 1",
            "risk_level: 1\nmutates: [\"database:words\"]",
        ),
        (
            "risk_level: 1",
            "risk_level: 1\nrequires: { network: [words.example] }",
        ),
        ("risk_level: 1", "risk_level: 1\ncategory: text"),
    ] {
        let after = surface(&ACTION.replace(change.0, change.1));
        assert_ne!(before.digest(), after.digest(), "{change:?}");
    }
    // A change of the library's prose does not change the surface.
    let reworded = surface(&ACTION.replace("Counts words.", "Counts."));
    assert_eq!(before.digest(), reworded.digest());
    // The surface changes if the same id comes from another publisher.
    let own = implementing(BARE);
    own.write("actions/own/ACTION.md", ACTION);
    let world = World::with(&[(
        "acme",
        r#"prefixes = ["acme", "demo", "demo-greet", "words"]"#,
    )]);
    let own = BundleSurface::of(&world.read([world.bundle(&own, "acme")]).unwrap());
    assert_ne!(own.value()["tools"], before.value()["tools"]);
}

#[test]
fn an_action_that_becomes_one_that_others_know_is_seen() {
    let world = World::with(&[(
        "acme",
        r#"prefixes = ["acme", "demo", "demo-greet", "words"]"#,
    )]);
    let surface = |reference: &str| {
        let demo = implementing(reference);
        demo.write("actions/words-count/ACTION.md", ACTION);
        BundleSurface::of(&world.read([world.bundle(&demo, "acme")]).unwrap())
    };
    let inline = "{ inline: { id: \"words:count\", risk_level: 1, approval: always } }";
    assert_ne!(surface(inline).digest(), surface(BARE).digest());
}
