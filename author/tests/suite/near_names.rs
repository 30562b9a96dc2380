//! A name that leads nowhere, and the hint that names the probable target.

use toolward_author::check::check_path;

use crate::demo::{BUNDLE, DRIVER, Demo, TOOL};

const TOOL_MD: &str = "tools/demo.greet/TOOL.md";
const DRIVER_MD: &str = "drivers/demo-greet/DRIVER.md";

/// Returns the code, line and hint of every finding.
fn found(demo: &Demo) -> Vec<(&'static str, u32, String)> {
    let report = check_path(demo.path());
    let found = report.diagnostics.into_iter();
    found
        .map(|one| (one.code, one.line, one.hint.unwrap_or_default()))
        .collect()
}

fn meant(code: &'static str, line: u32, name: &str) -> Vec<(&'static str, u32, String)> {
    vec![(code, line, format!("did you mean `{name}`?"))]
}

fn tool_with(line: &str) -> String {
    TOOL.replace("version: 1.0.0\n", &format!("version: 1.0.0\n{line}\n"))
}

#[test]
fn the_contract_that_a_driver_meant() {
    let demo = Demo::new();
    demo.write(DRIVER_MD, DRIVER.replace("demo.greet", "demo.gret"));
    assert_eq!(
        found(&demo),
        meant("tool-reference-unknown", 9, "demo.greet")
    );
    for folder in ["tools", "./.tools", "../../tools"] {
        let path = DRIVER.replace("demo.greet", &format!("{folder}/demo.gret/TOOL.md"));
        demo.write(DRIVER_MD, path);
        let near = meant("tool-reference-missing", 9, TOOL_MD);
        assert_eq!(found(&demo), near, "{folder}");
    }
    // Nothing is reported about a contract of another bundle.
    let second = "  - tool: demo.meet\n    version: 1.x\n---\n";
    demo.write(
        DRIVER_MD,
        DRIVER.trim_end_matches("---\n").to_owned() + second,
    );
    assert_eq!(found(&demo), []);
    demo.write(DRIVER_MD, DRIVER.replace("demo.greet", "mail.send"));
    let codes: Vec<_> = found(&demo).into_iter().map(|(code, ..)| code).collect();
    assert_eq!(codes, ["driver-missing"]);
}

#[test]
fn the_driver_that_a_default_meant() {
    let demo = Demo::new();
    demo.write(TOOL_MD, tool_with("default_implementation: demo-great"));
    assert_eq!(
        found(&demo),
        meant("default-driver-unknown", 6, "demo-greet")
    );
    demo.write(TOOL_MD, tool_with("default_implementation: other"));
    assert_eq!(found(&demo)[0].2, "name one of demo-greet");
}

#[test]
fn the_action_that_a_tool_meant() {
    let demo = Demo::new();
    let action = "---\nschema: action/v1\nid: storage:commit\ndescription: Commits.\n---\n";
    demo.write("actions/commit/ACTION.md", action);
    let path = "./actions/commit/ACTION.md";
    for (reference, near) in [
        ("storage:comit", "storage:commit"),
        ("{ ref: 'storage:comit' }", "storage:commit"),
        ("./actions/comit/ACTION.md", path),
        ("./.actions/comit", path),
        ("../../actions/comit", path),
        ("{ file: actions/comit }", path),
    ] {
        demo.write(TOOL_MD, tool_with(&format!("implements: {reference}")));
        // An id may belong to a library.
        let code = match near {
            near if near == path => "action-unknown",
            _ => "action-elsewhere",
        };
        assert_eq!(found(&demo), meant(code, 6, near), "{reference}");
    }
}

#[test]
fn the_schema_that_a_reference_meant() {
    let demo = Demo::new();
    demo.write("schemas/person.json", "{ \"type\": \"string\" }");
    let name = "{ name: { $ref: 'schema:persons' } }";
    demo.write(TOOL_MD, TOOL.replace("{ name: { type: string } }", name));
    assert_eq!(found(&demo), meant("schema-ref", 6, "schema:person"));
}

#[test]
fn the_input_that_a_mapping_meant() {
    let demo = Demo::new();
    let entry = |field: &str| {
        let driver = DRIVER.trim_end_matches("---\n");
        demo.write(DRIVER_MD, format!("{driver}    {field}\n---\n"));
        found(&demo)
    };
    let mapped = entry("mapping: { who: nmae }");
    assert_eq!(mapped, meant("driver-maps-unknown-input", 9, "name"));
    let dropped = entry("schema_narrowing: { drop_outputs: [greting] }");
    assert_eq!(dropped, meant("driver-drops-output", 9, "greeting"));
}

#[test]
fn the_file_that_a_prompt_meant() {
    let demo = Demo::new();
    let prompt =
        "---\nid: demo.look\nname: Look\ndescription: Looks.\n---\n[it](resources/note.txt)\n";
    demo.write("prompts/look.md", prompt);
    demo.write("resources/notes.txt", "a note");
    assert_eq!(found(&demo), meant("prompt-file", 6, "resources/notes.txt"));
    demo.remove("prompts/look.md");
    let sidecar = "---\nname: Notes\ndescription: Some notes.\n---\n";
    demo.write("resources/nots.txt.resource.md", sidecar);
    let near = "resources/notes.txt.resource.md";
    assert_eq!(found(&demo), meant("resource-sidecar", 1, near));
}

#[test]
fn the_key_of_bundle_toml_that_was_meant() {
    let demo = Demo::new();
    demo.write("bundle.toml", BUNDLE.replace("sequence", "sequense"));
    assert_eq!(
        found(&demo),
        meant("bundle-toml-unknown-key", 3, "sequence")
    );
}
