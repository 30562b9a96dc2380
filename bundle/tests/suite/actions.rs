//! How the action that a contract implements is found.

use std::cell::RefCell;
use std::sync::Arc;

use toolward_bundle::content::Content;
use toolward_bundle::dev::{PackOptions, pack};
use toolward_bundle::files;
use toolward_bundle::libraries::{Libraries, LibraryAction, Surroundings};
use toolward_bundle::rules;
use toolward_bundle::surface::BundleSurface;
use toolward_contract::action::{Action, Reference};
use toolward_signing::key::SigningKey;
use toolward_signing::trust::TrustStore;

use crate::demo::{BUNDLE, DRIVER, Demo, TOOL};
use crate::support::{read_signed, read_trusting};

const ACTION: &str = "---
schema: action/v1
id: demo:greet
description: Greets.
risk_level: 2
---
";

/// The bundle `acme.library` of acme. It has the action `demo:greet`, and a contract with
/// `implements: REFERENCE`.
fn implementing(reference: &str) -> Demo {
    let demo = Demo::new();
    demo.write("bundle.toml", BUNDLE.replace("demo.greet", "acme.library"));
    demo.write("actions/greetings/demo-greet/ACTION.md", ACTION);
    let line = format!("version: 1.0.0\nimplements: {reference}\n");
    let tool = TOOL.replace("version: 1.0.0\n", &line);
    demo.write("tools/demo.greet/TOOL.md", tool);
    demo
}

/// The risk level that the tool inherits, or the code of the error.
fn inherited(demo: &Demo) -> Result<u8, String> {
    match Content::from_dev(demo.path()) {
        Ok(content) => Ok(content.tools[0].tool.risk_level),
        Err(error) => {
            let diagnostics = error.diagnostics();
            assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
            Err(diagnostics[0].code.to_owned())
        }
    }
}

#[test]
fn an_action_is_found_by_its_id_its_path_and_its_folder() {
    for reference in [
        "demo:greet",
        "{ ref: \"demo:greet\" }",
        "./actions/greetings/demo-greet/ACTION.md",
        "./actions/greetings/demo-greet",
        "{ file: actions/greetings/demo-greet }",
        // Relative to the folder of the contract.
        "../../actions/greetings/demo-greet/ACTION.md",
        "./.actions/greetings/demo-greet",
        "../../.actions/greetings/demo-greet",
    ] {
        assert_eq!(inherited(&implementing(reference)), Ok(2), "{reference}");
    }
}

#[test]
fn a_path_to_no_action_of_the_bundle_is_refused() {
    for (reference, code) in [
        ("./actions/demo-greet", "action-unknown"),
        ("./tools/demo.greet/TOOL.md", "action-unknown"),
        (
            "../../../actions/greetings/demo-greet",
            "action-reference-invalid",
        ),
        (
            "{ file: /actions/greetings/demo-greet }",
            "action-reference-invalid",
        ),
    ] {
        let found = inherited(&implementing(reference));
        assert_eq!(found, Err(code.to_owned()), "{reference}");
    }
}

#[test]
fn a_registry_reference_leads_to_an_action_of_the_bundle_that_it_names() {
    // The reference names acme's `acme.library` and the folder of the action, without the folders
    // above.
    for reference in ["@acme/library/demo-greet", "@acme/acme/library/demo-greet"] {
        let demo = implementing(&format!("\"{reference}\""));
        assert_eq!(inherited(&demo), Ok(2), "{reference}");
    }
    for reference in [
        "@zenith/library/demo-greet",
        "@acme/other/demo-greet",
        "@acme/lib/demo-greet",
        "@acme/library/greetings/demo-greet",
        "@acme/library/demo-part",
    ] {
        let demo = implementing(&format!("{{ ref: \"{reference}\" }}"));
        assert_eq!(
            inherited(&demo),
            Err("action-unresolved".to_owned()),
            "{reference}"
        );
    }
}

#[test]
fn an_action_that_can_not_be_read_is_the_only_error() {
    let broken = ACTION.replace("risk_level: 2", "risk_level: 9");
    for reference in [
        "demo:greet",
        "./actions/greetings/demo-greet",
        "\"@acme/library/demo-greet\"",
    ] {
        let demo = implementing(reference);
        demo.write("actions/greetings/demo-greet/ACTION.md", &broken);
        let found = inherited(&demo);
        assert_eq!(found, Err("wrong-value".to_owned()), "{reference}");
    }
}

#[test]
fn of_two_actions_in_folders_of_one_name_a_registry_reference_means_neither() {
    let demo = implementing("\"@acme/library/demo-greet\"");
    let other = ACTION.replace("demo:greet", "demo:other").replace('2', "0");
    demo.write("actions/demo-greet/ACTION.md", other);
    assert_eq!(inherited(&demo), Err("action-unresolved".to_owned()));
}

#[test]
fn the_owner_of_a_signed_library_is_whom_trust_calls_so() {
    let packed = implementing("\"@acme/library/demo-greet\"").pack();
    let configured = |key: &SigningKey| {
        TrustStore::from_toml(&format!(
            "[[publisher]]\nname = \"acme\"\nprefixes = [\"acme\", \"demo\", \"demo-greet\"]\nkeys = ['''\n{}''']\n",
            key.public().to_pem().unwrap()
        ))
        .unwrap()
    };
    let content = read_trusting(&packed, configured).unwrap();
    assert_eq!(content.tools[0].tool.risk_level, 2);
    // A key alone has no publisher name: the bundle's publisher is only a claim.
    let error = read_signed(&packed).unwrap_err();
    assert_eq!(error.diagnostics()[0].code, "action-unresolved");
}

/// A stand-in for all libraries: has an action for every reference, and records the references.
struct Elsewhere {
    asked: RefCell<Vec<Reference>>,
    action: Arc<Action>,
}

impl Libraries for Elsewhere {
    fn action(&self, reference: &Reference) -> Option<LibraryAction<'_>> {
        self.asked.borrow_mut().push(reference.clone());
        Some(LibraryAction {
            action: &self.action,
            publisher: "elsewhere",
        })
    }
}

#[test]
fn other_libraries_are_asked_for_what_the_bundle_does_not_have_and_never_for_paths() {
    for (reference, risk, asked) in [
        ("demo:greet", Some(2), false),
        ("demo:part", Some(3), true),
        ("\"@zenith/library/demo-greet\"", Some(3), true),
        ("./actions/nowhere", None, false),
        (
            "{ inline: { id: \"demo:part\", risk_level: 1 } }",
            Some(1),
            false,
        ),
    ] {
        let demo = implementing(reference);
        let files = files::collect(demo.path()).unwrap().files;
        let text = ACTION.replace("risk_level: 2", "risk_level: 3");
        let elsewhere = Elsewhere {
            asked: RefCell::default(),
            action: Arc::new(Action::parse("ACTION.md", &text).into_result().unwrap()),
        };
        let surroundings = Surroundings {
            own: None,
            others: Some(&elsewhere),
        };
        let (documents, _) = rules::read_in(&files, surroundings);
        let found = documents.tools.first().map(|tool| tool.value.risk_level);
        assert_eq!(found, risk, "{reference}");
        assert_eq!(!elsewhere.asked.borrow().is_empty(), asked, "{reference}");
    }
}

#[test]
fn a_driver_finds_its_contract_in_a_dotted_folder() {
    let demo = Demo::new();
    // The folder's name differs from the id, so that only the path leads to the contract.
    demo.write("tools/greeting/TOOL.md", TOOL);
    demo.remove("tools/demo.greet/TOOL.md");
    let driver = DRIVER.replace("tool: demo.greet", "tool: ./.tools/greeting/TOOL.md");
    demo.write("drivers/demo-greet/DRIVER.md", driver);
    let content = Content::from_dev(demo.path()).unwrap();
    let tool = &content.tool("demo.greet").unwrap().tool;
    assert_eq!(content.drivers_for(tool).count(), 1);
}

#[test]
fn a_target_kind_that_is_not_written_is_no_part_of_the_surface() {
    let surface = |action: &str| {
        let demo = implementing("demo:greet");
        demo.write("actions/greetings/demo-greet/ACTION.md", action);
        BundleSurface::of(&Content::from_dev(demo.path()).unwrap())
    };
    let silent = surface(ACTION).value()["actions"]["demo:greet"].clone();
    assert_eq!(silent["target_kind"], serde_json::Value::Null);
    let written = surface(&ACTION.replace("risk_level", "target_kind: demo\nrisk_level"));
    assert_eq!(
        written.value()["actions"]["demo:greet"]["target_kind"],
        "demo"
    );
}

#[test]
fn a_document_of_earlier_hosts_is_packed_with_a_warning() {
    let demo = implementing("demo:greet");
    let earlier = ACTION.replace("schema: action/v1", "name: Greet\nversion: 1.0.0");
    demo.write("actions/greetings/demo-greet/ACTION.md", earlier);
    let packed = pack(demo.path(), &PackOptions::default()).unwrap();
    let warnings: Vec<&str> = packed.warnings.iter().map(|one| one.code).collect();
    assert_eq!(warnings, ["action-schema-missing"]);
}
