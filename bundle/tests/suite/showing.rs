//! Prompts and resources, and the requirements for the files that they name.

use toolward_author::check::check_path;
use toolward_bundle::{Content, ContentError};
use toolward_signing::key::SigningKey;
use toolward_signing::trust::TrustStore;

use crate::demo::Demo;
use crate::support::{forged, read_signed, read_trusting};

fn prompt(id: &str, body: &str) -> String {
    format!("---\nid: {id}\nname: Greeting\ndescription: Asks for one.\n---\n{body}\n")
}

fn sidecar(more: &str) -> String {
    format!("---\nname: Style\ndescription: How to greet.\n{more}---\n")
}

/// A bundle with a prompt that embeds a text and a picture, and a template.
fn demo() -> Demo {
    let demo = Demo::new();
    let body = "Greet {{name}}.\n\n[style](resources/style.txt)\n![sun](resources/img/sun.png)";
    let text = prompt("demo.greet.warmly", body);
    let arguments = "arguments:\n  - name: name\n---\n";
    demo.write(
        "prompts/warm.md",
        text.replacen("---\nGreet", &format!("{arguments}Greet"), 1),
    );
    demo.write("resources/style.txt", "Warm.");
    demo.write("resources/img/sun.png", b"\x89PNG");
    demo.write("resources/names.json", "[\"{{number}}\"]");
    let template = "uri_template: names://{number}\narguments:\n  - name: number\n";
    demo.write("resources/names.json.resource.md", sidecar(template));
    demo
}

/// The codes that `check` reports, each with its line. Errors make `pack` fail.
fn found(demo: &Demo) -> Vec<(&'static str, u32)> {
    let report = check_path(demo.path());
    let refused = Content::from_dev(demo.path()).is_err();
    assert_eq!(refused, report.errors() > 0, "{:?}", report.diagnostics);
    let found = report.diagnostics.iter();
    found.map(|found| (found.code, found.line)).collect()
}

#[test]
fn a_signed_bundle_gives_its_prompts_and_resources() {
    let demo = demo();
    assert_eq!(found(&demo), []);
    let content = read_signed(&demo.pack()).unwrap();
    assert_eq!(content.prompts.len(), 1);
    assert_eq!(content.prompts[0].value.id.as_str(), "demo.greet.warmly");
    let resources = content.resources.iter();
    let resources: Vec<_> = resources
        .map(|entry| {
            (
                entry.name(),
                entry.media_type.as_str(),
                entry.about.is_some(),
            )
        })
        .collect();
    assert_eq!(
        resources,
        [
            ("img/sun.png", "image/png", false),
            ("names.json", "application/json", true),
            ("style.txt", "text/plain", false),
        ]
    );
    assert_eq!(content.resources[2].text(), Some("Warm."));
    assert_eq!(content.resources[0].text(), None);
}

#[test]
fn a_prompts_id_has_to_lie_inside_the_publishers_prefixes() {
    let demo = demo();
    demo.write("prompts/other.md", prompt("other.prompt", "Hello."));
    let packed = demo.pack();
    let trust = |key: &SigningKey| {
        let text = format!(
            "[[publisher]]\nname = \"acme\"\nprefixes = [\"demo\", \"demo-greet\"]\nkeys = ['''\n{}''']\n",
            key.public().to_pem().unwrap()
        );
        TrustStore::from_toml(&text).unwrap()
    };
    match read_trusting(&packed, trust) {
        Err(ContentError::PrefixNotGranted { kind, id, path, .. }) => {
            assert_eq!(
                (kind, id.as_str(), path.as_str()),
                ("prompt", "other.prompt", "prompts/other.md")
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_host_holds_signed_bytes_to_the_same_rules() {
    let packed = demo().pack();
    let broken = prompt("demo.greet.warmly", "[x](resources/missing.txt)");
    let error =
        read_signed(&forged(&packed, &[("prompts/warm.md", broken.as_bytes())])).unwrap_err();
    assert_eq!(error.code(), "prompt-file");
}

#[test]
fn a_prompt_embeds_only_files_that_can_be_embedded() {
    for (line, expected) in [
        ("[a](resources/missing.txt)", "prompt-file"),
        ("[a](resources/names.json)", "prompt-file"),
        ("[a](resources/names.json.resource.md)", "prompt-file"),
        ("[a](resources/../bundle.toml)", "prompt-file"),
        ("![a](resources/style.txt)", "prompt-file"),
    ] {
        let demo = demo();
        demo.write(
            "prompts/more.md",
            prompt("demo.greet.more", &format!("Hello.\n{line}")),
        );
        assert_eq!(found(&demo), [(expected, 7)], "{line}");
    }
    let demo = demo();
    demo.write("resources/half.bin", vec![0_u8; 5 << 20]);
    let body = "[a](resources/half.bin)\n[b](resources/half.bin)";
    demo.write("prompts/more.md", prompt("demo.greet.more", body));
    assert_eq!(found(&demo), [("prompt-file", 7)]);
}

#[test]
fn a_sidecar_is_about_a_file_and_a_template_is_text_that_is_filled_in() {
    let demo = demo();
    demo.write("resources/gone.txt.resource.md", sidecar(""));
    assert_eq!(found(&demo), [("resource-sidecar", 1)]);
    demo.write("resources/gone.txt", "x");
    assert_eq!(found(&demo), []);
    demo.write("resources/gone.txt.resource.md.resource.md", sidecar(""));
    assert_eq!(found(&demo), [("resource-sidecar", 1)]);
    demo.remove("resources/gone.txt.resource.md.resource.md");

    demo.write("resources/names.json", "[\"{{nummer}}\"]");
    let codes: Vec<_> = found(&demo).into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes, ["placeholder-unknown", "argument-unused"]);
    demo.write("resources/names.json", b"\xff{{number}}");
    assert_eq!(found(&demo), [("resource-template", 1)]);
}

#[test]
fn ids_names_and_uris_are_each_documents_own() {
    let demo = demo();
    demo.write("prompts/again.md", prompt("demo.greet.warmly", "Hello."));
    assert_eq!(found(&demo), [("duplicate-id", 1)]);
    demo.remove("prompts/again.md");
    for name in ["a", "b"] {
        demo.write(&format!("resources/{name}"), name);
        let own = sidecar("uri: style://one\n");
        demo.write(&format!("resources/{name}.resource.md"), own);
    }
    assert_eq!(found(&demo), [("duplicate-id", 1)]);
    demo.write("resources/a.resource.md", sidecar(""));
    assert_eq!(found(&demo), []);
    demo.write("resources/c", "{{other}}");
    let overlapping = "uri_template: names://{other}\narguments:\n  - name: other\n";
    demo.write("resources/c.resource.md", sidecar(overlapping));
    assert_eq!(found(&demo), [("duplicate-id", 1)]);
}

#[test]
fn what_will_not_be_served_is_said_and_packed() {
    let demo = demo();
    demo.write("prompts/picture.png", b"\x89PNG");
    demo.write("resources/large.bin", vec![0_u8; (8 << 20) + 1]);
    assert_eq!(
        found(&demo),
        [("prompt-stray", 1), ("resource-too-large", 1)]
    );
    let content = Content::from_dev(demo.path()).unwrap();
    let large = content
        .resources
        .iter()
        .find(|entry| entry.name() == "large.bin");
    assert!(!large.unwrap().is_servable());
}

#[test]
fn a_bundle_of_prompts_alone_is_a_bundle() {
    let demo = Demo::new();
    for file in [
        "tools/demo.greet/TOOL.md",
        "drivers/demo-greet/DRIVER.md",
        "drivers/demo-greet/driver.wasm",
    ] {
        demo.remove(file);
    }
    assert_eq!(found(&demo), [("bundle-empty", 1)]);
    demo.write("prompts/hello.md", prompt("demo.greet.hello", "Hello."));
    assert_eq!(found(&demo), []);
    assert!(read_signed(&demo.pack()).unwrap().tools.is_empty());
}
