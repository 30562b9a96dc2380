//! `check` as an author uses it.

use std::path::Path;

use toolward_author::PackOptions;
use toolward_author::check::{CheckReport, check_path};
use toolward_contract::diagnostic::Severity;

use crate::demo::{BUNDLE, DRIVER, Demo, TOOL, component};

fn codes(report: &CheckReport) -> Vec<&'static str> {
    report.diagnostics.iter().map(|found| found.code).collect()
}

#[test]
fn a_good_bundle_has_nothing_to_be_said_about() {
    let report = check_path(Demo::new().path());
    assert_eq!(report.diagnostics, []);
    assert_eq!(report.documents, 2);
}

#[test]
fn a_finding_has_the_line_that_was_checked() {
    let demo = Demo::new();
    let tool = TOOL.replace("version: 1.0.0", "version: one");
    let path = demo.write("tools/demo.greet/TOOL.md", tool);
    for place in [demo.path(), &path] {
        let report = check_path(place);
        assert_eq!(codes(&report), ["version-invalid"]);
        let excerpt = report.diagnostics[0].excerpt.as_ref().unwrap();
        assert_eq!(excerpt.text, "version: one");
        assert_eq!(excerpt.before, "version: ".len());
    }
    demo.write("tools/demo.greet/TOOL.md", TOOL);
    demo.write("bundle.toml", BUNDLE.replace("\"acme\"", "\"Acme\""));
    let found = &check_path(demo.path()).diagnostics[0];
    let excerpt = found.excerpt.as_ref().unwrap();
    assert_eq!(excerpt.text, "publisher = \"Acme\"");
}

#[test]
fn what_pack_refuses_has_its_line_too() {
    let demo = Demo::new();
    demo.write(
        "tools/demo.greet/TOOL.md",
        TOOL.replace("version: 1.0.0", "version: one"),
    );
    let refused = toolward_author::pack(demo.path(), &PackOptions::default()).unwrap_err();
    let excerpt = refused.diagnostics()[0].excerpt.as_ref().unwrap();
    assert_eq!(excerpt.text, "version: one");
}

#[test]
fn schemas_that_are_too_large_together_are_refused_before_all_are_compiled() {
    let demo = Demo::new();
    let properties: String = (0..60)
        .map(|number| format!("    p{number}: {{ type: string, pattern: '^a{number}$' }}\n"))
        .collect();
    for number in 0..100 {
        demo.write(
            &format!("tools/demo.many{number}/TOOL.md"),
            format!(
                "---\nname: Many\nid: demo.many{number}\ndescription: Many patterns.\n\
                 version: 1.0.0\ninputs:\n  type: object\n  properties:\n{properties}\
                 outputs: {{ type: object }}\n---\n"
            ),
        );
    }
    let report = check_path(demo.path());
    assert_eq!(
        codes(&report)
            .iter()
            .filter(|code| **code == "schemas-too-large")
            .count(),
        1
    );
    // The other contracts are not read any more.
    let read = codes(&report)
        .iter()
        .filter(|code| **code == "driver-missing")
        .count();
    assert!((20..50).contains(&read), "{read}");
}

#[test]
fn a_bundle_with_endless_findings_is_read_in_part() {
    let demo = Demo::new();
    let wrong: String = (0..1500).map(|at| format!("wrong{at}: 1\n")).collect();
    for number in 0..20 {
        demo.write(
            &format!("tools/demo.wrong{number}/TOOL.md"),
            format!("---\n{wrong}---\n"),
        );
    }
    let report = check_path(demo.path());
    let count = |wanted| {
        codes(&report)
            .iter()
            .filter(|code| **code == wanted)
            .count()
    };
    assert_eq!(count("findings-too-many"), 1);
    assert!((4096..7000).contains(&report.diagnostics.len()));
    // References to a document that was not read are not judged.
    assert_eq!(count("tool-reference-unknown"), 0);
}

#[test]
fn of_many_references_that_lead_nowhere_some_get_a_near_name() {
    let demo = Demo::new();
    let wrong: String = (0..300)
        .map(|at| format!("  - tool: tools/demo.gre{at}/TOOL.md\n    version: \"^1.0.0\"\n"))
        .collect();
    for number in 0..20 {
        let head = DRIVER.replace("id: demo-greet", &format!("id: d{number}"));
        let (head, _) = head.split_once("  - tool").unwrap();
        demo.write(
            &format!("drivers/d{number}/DRIVER.md"),
            format!("{head}{wrong}---\n"),
        );
    }
    let report = check_path(demo.path());
    let missing = report.diagnostics.iter();
    let missing = missing.filter(|found| found.code == "tool-reference-missing");
    let hinted = missing.filter(|found| found.hint.as_deref().unwrap().starts_with("did you mean"));
    assert!((1..=64).contains(&hinted.count()));
    assert!(codes(&report).contains(&"findings-too-many"));
}

#[test]
fn each_lint_is_a_warning_with_its_own_code() {
    let demo = Demo::new();
    demo.write(
        "tools/other-name/TOOL.md",
        TOOL.replace("demo.greet", "demo.wave"),
    );
    demo.write("drivers/demo-greet/old.wasm", component("a:b/c@1.0.0", &[]));
    demo.write("tools.json", "{}");
    let report = check_path(demo.path());
    assert_eq!(report.errors(), 0, "{:?}", report.diagnostics);
    let mut found = codes(&report);
    found.sort_unstable();
    assert_eq!(
        found,
        [
            "component-stray",
            "driver-missing",
            "folder-name",
            "tools-json-stale"
        ]
    );
}

#[test]
fn a_component_that_a_build_makes_is_missing_only_as_a_warning() {
    let demo = Demo::new();
    demo.remove("drivers/demo-greet/driver.wasm");
    let report = check_path(demo.path());
    assert_eq!(codes(&report), ["component-missing"]);
    assert_eq!(report.diagnostics[0].severity, Severity::Error);
    assert_eq!(report.diagnostics[0].line, 7, "the line of `component`");

    let build = "\n[[build]]\ncrate = \"driver\"\noutput = \"drivers/demo-greet/driver.wasm\"\n";
    demo.write("bundle.toml", format!("{BUNDLE}{build}"));
    let report = check_path(demo.path());
    assert_eq!(codes(&report), ["component-missing"]);
    assert_eq!(report.diagnostics[0].severity, Severity::Warning);
}

#[test]
fn one_file_is_checked_with_its_bundle_around_it() {
    let demo = Demo::new();
    demo.write(
        "drivers/demo-greet/DRIVER.md",
        DRIVER.replace("kind: component", "kind: 7"),
    );
    let tool = demo.path().join("tools/demo.greet/TOOL.md");
    let report = check_path(&tool);
    assert_eq!(report.errors(), 0, "{:?}", report.diagnostics);

    let driver = demo.path().join("drivers/demo-greet/DRIVER.md");
    let report = check_path(&driver);
    assert!(report.errors() > 0);
    for found in &report.diagnostics {
        assert_eq!(Path::new(&found.file), driver);
    }
}

#[test]
fn a_contract_outside_of_any_bundle_is_checked_alone() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("TOOL.md");
    std::fs::write(&path, TOOL).unwrap();
    assert_eq!(check_path(&path).diagnostics, []);
    std::fs::write(&path, TOOL.replace("name: Greet\n", "")).unwrap();
    assert_eq!(check_path(&path).errors(), 1);
}

#[test]
fn a_directory_of_bundles_is_checked_bundle_by_bundle() {
    let place = tempfile::tempdir().unwrap();
    for name in ["one", "two"] {
        let root = place.path().join(name);
        std::fs::create_dir_all(root.join("tools/demo.greet")).unwrap();
        std::fs::write(root.join("bundle.toml"), BUNDLE).unwrap();
        std::fs::write(root.join("tools/demo.greet/TOOL.md"), TOOL).unwrap();
    }
    let report = check_path(place.path());
    assert_eq!(report.documents, 2);
    assert_eq!(codes(&report), ["driver-missing", "driver-missing"]);
}

#[test]
fn a_packed_directory_is_checked_against_its_tools_json() {
    let demo = Demo::new();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("out");
    toolward_author::Sealed::new(&demo.pack())
        .write_directory(&path)
        .unwrap();
    assert_eq!(check_path(&path).diagnostics, []);
    std::fs::write(
        path.join("tools/demo.greet/TOOL.md"),
        TOOL.replace("Greets", "Steals"),
    )
    .unwrap();
    assert!(check_path(&path).errors() > 0);
}

#[test]
fn nothing_to_check_is_said_to_be_nothing() {
    let place = tempfile::tempdir().unwrap();
    assert_eq!(codes(&check_path(place.path())), ["bundle-toml-missing"]);
    let report = check_path(&place.path().join("absent.md"));
    assert_eq!(codes(&report), ["file-unreadable"]);
    std::fs::write(place.path().join("notes.txt"), "hello").unwrap();
    let report = check_path(&place.path().join("notes.txt"));
    assert_eq!(codes(&report), ["file-kind"]);
}

#[test]
fn names_that_no_bundle_can_hold_are_errors() {
    let demo = Demo::new();
    demo.write("resources/a b.txt", "");
    let report = check_path(demo.path());
    assert_eq!(codes(&report), ["file-name"]);
    demo.remove("resources/a b.txt");
    demo.write("resources/a.txt", "");
    demo.write("resources/A.txt", "");
    assert_eq!(codes(&check_path(demo.path())), ["file-name"]);
}

#[test]
fn an_error_in_a_driver_makes_nobody_remove_its_component() {
    let demo = Demo::new();
    let build = "\n[[build]]\ncrate = \"driver\"\noutput = \"drivers/demo-greet/driver.wasm\"\n";
    demo.write("bundle.toml", format!("{BUNDLE}{build}"));
    demo.write(
        "drivers/demo-greet/DRIVER.md",
        DRIVER.replace("version: 1.0.0", "version: 1.0"),
    );
    let report = check_path(demo.path());
    assert_eq!(
        codes(&report),
        ["version-invalid"],
        "{:?}",
        report.diagnostics
    );
    // A component without a driver is still reported.
    demo.write("drivers/other/stray.wasm", component("a:b/c@1.0.0", &[]));
    let report = check_path(demo.path());
    assert_eq!(codes(&report), ["version-invalid", "component-stray"]);
}

#[test]
fn the_hint_for_a_number_as_version_leads_to_no_further_error() {
    for (wrong, right) in [("1.0", "1.0.0"), ("\"1.2\"", "1.2.0"), ("2", "2.0.0")] {
        let demo = Demo::new();
        let driver = DRIVER.replace("version: 1.0.0", &format!("version: {wrong}"));
        demo.write("drivers/demo-greet/DRIVER.md", driver);
        let report = check_path(demo.path());
        let hint = report.diagnostics[0].hint.as_deref();
        assert_eq!(
            hint,
            Some(format!("write `version: {right}`").as_str()),
            "{wrong}"
        );
        let driver = DRIVER.replace("version: 1.0.0", &format!("version: {right}"));
        demo.write("drivers/demo-greet/DRIVER.md", driver);
        assert_eq!(check_path(demo.path()).diagnostics, [], "{wrong}");
    }
}

#[test]
fn a_driver_that_can_not_run_on_this_machine_is_a_warning() {
    let demo = Demo::new();
    let driver = |lines: &str| {
        let lines = format!("version: 1.0.0\nrequires: {lines}");
        demo.write(
            "drivers/demo-greet/DRIVER.md",
            DRIVER.replace("version: 1.0.0", &lines),
        );
        check_path(demo.path())
    };
    let report = driver("{ os: [plan9], arch: [vax, pdp11] }");
    assert_eq!(codes(&report), ["driver-platform", "driver-platform"]);
    assert_eq!(report.errors(), 0);
    assert!(report.diagnostics[1].message.contains("vax, pdp11"));
    let all = "{ os: [darwin, linux, windows], arch: [x64, arm64, x86, arm] }";
    assert_eq!(codes(&driver(all)), [""; 0]);
}

#[test]
fn a_driver_for_other_versions_of_a_contract_beside_it_is_a_warning() {
    let demo = Demo::new();
    demo.write(
        "drivers/demo-greet/DRIVER.md",
        DRIVER.replace("^1.0.0", "^2.0.0"),
    );
    let report = check_path(demo.path());
    assert_eq!(report.errors(), 0);
    assert_eq!(codes(&report), ["driver-version-mismatch"]);
}

#[test]
fn a_registry_reference_is_checked_against_the_library_that_it_stands_in() {
    let demo = Demo::new();
    let action = "---\nschema: action/v1\nid: demo:hello\ndescription: Greets.\n---\n";
    demo.write("actions/hello/ACTION.md", action);
    let implement = |owner: &str| {
        let line = format!("version: 1.0.0\nimplements: \"@{owner}/demo/greet/hello\"\n");
        demo.write(
            "tools/demo.greet/TOOL.md",
            TOOL.replace("version: 1.0.0\n", &line),
        );
    };
    implement("acme");
    let place = tempfile::tempdir().unwrap();
    let packed = place.path().join("out");
    toolward_author::Sealed::new(&demo.pack())
        .write_directory(&packed)
        .unwrap();
    assert_eq!(check_path(demo.path()).diagnostics, []);
    assert_eq!(check_path(&packed).diagnostics, []);
    implement("zenith");
    let report = check_path(demo.path());
    assert!(codes(&report).contains(&"action-elsewhere"), "{report:?}");
    // The bundle is the library but has no such action, so no other library can be meant.
    std::fs::rename(
        demo.path().join("actions/hello"),
        demo.path().join("actions/gone"),
    )
    .unwrap();
    implement("acme");
    let report = check_path(demo.path());
    assert!(codes(&report).contains(&"action-unresolved"), "{report:?}");
}

#[test]
fn what_can_not_be_read_has_its_code_and_the_rest_is_checked() {
    let deep = "tools/a/b/c/d/e/f/g/h/TOOL.md";
    let link = "tools/demo.greet/link.md";
    let pipe = "tools/demo.greet/pipe.md";
    for (broken, expected) in [
        (deep, "file-name"),
        (link, "file-not-regular"),
        (pipe, "file-not-regular"),
        (".tools/x/TOOL.md", "folder-twice"),
    ] {
        let demo = Demo::new();
        if broken == link {
            std::os::unix::fs::symlink("TOOL.md", demo.path().join(link)).unwrap();
        } else if broken == pipe {
            let made = std::process::Command::new("mkfifo")
                .arg(demo.path().join(pipe))
                .status();
            assert!(made.unwrap().success());
        } else {
            demo.write(broken, TOOL);
        }
        let report = check_path(demo.path());
        if broken == pipe {
            let hint = report.diagnostics[0].hint.as_deref().unwrap_or_default();
            assert!(hint.starts_with("remove it"), "{hint}");
        }
        assert_eq!(
            codes(&report),
            [expected],
            "{broken}: {:?}",
            report.diagnostics
        );
        assert_eq!(report.documents, 2, "{broken}");
        demo.write(
            "drivers/demo-greet/DRIVER.md",
            DRIVER.replace("version: 1.0.0", "version: one"),
        );
        let mut both = codes(&check_path(demo.path()));
        both.sort_unstable();
        let mut wanted = [expected, "version-invalid"];
        wanted.sort_unstable();
        assert_eq!(both, wanted, "{broken}");
    }
}

#[test]
fn a_tools_json_without_tools_is_an_empty_bundle() {
    for text in ["{\"version\":1}", "{\"version\":1,\"tools\":[]}"] {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("tools.json");
        std::fs::write(&path, text).unwrap();
        assert_eq!(codes(&check_path(&path)), ["bundle-empty"], "{text}");
        std::fs::write(place.path().join("bundle.toml"), BUNDLE).unwrap();
        assert_eq!(codes(&check_path(place.path())), ["bundle-empty"], "{text}");
    }
}

#[test]
fn a_tools_json_alone_is_checked() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tools.json");
    for (text, codes_of) in [
        (r#"{"version":1,"tools":[]}"#, vec!["bundle-empty"]),
        (r#"{"version":7}"#, vec!["index-version-unsupported"]),
    ] {
        std::fs::write(&path, text).unwrap();
        let report = check_path(directory.path());
        assert_eq!(codes(&report), codes_of, "{text}");
        assert_eq!(report.documents, 1);
    }
}

#[test]
fn a_workspace_without_bundle_toml_is_checked_and_told_which_one_to_write() {
    let demo = Demo::new();
    demo.remove("bundle.toml");
    for folder in ["tools", "drivers"] {
        let path = demo.path();
        std::fs::rename(path.join(folder), path.join(format!(".{folder}"))).unwrap();
    }
    let report = check_path(demo.path());
    assert_eq!(
        (report.documents, report.diagnostics.len()),
        (3, 1),
        "{report:?}"
    );
    let found = &report.diagnostics[0];
    assert_eq!(found.code, "bundle-toml-wanted");
    assert!(!found.is_error());
    assert!(found.file.ends_with("bundle.toml"), "{found}");
    let hint = found.hint.as_deref().unwrap();
    assert!(
        hint.contains("sequence = 1") && hint.contains("publisher = "),
        "{hint}"
    );
    // Mistakes in the workspace are reported at their own path.
    demo.write(
        ".tools/demo.greet/TOOL.md",
        TOOL.replace("version: 1.0.0", "version: one"),
    );
    let report = check_path(demo.path());
    let wrong = report
        .diagnostics
        .iter()
        .find(|one| one.code == "version-invalid");
    assert!(wrong.unwrap().file.ends_with(".tools/demo.greet/TOOL.md"));
}

#[test]
fn a_workspace_is_checked_with_the_bundles_and_workspaces_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let tool = |version: &str| TOOL.replace("version: 1.0.0", &format!("version: {version}"));
    let bundle = "id = \"demo.a\"\nversion = \"1.0.0\"\nsequence = 1\npublisher = \"demo\"\n";
    write(".tools/demo.greet/TOOL.md", &tool("own"));
    write(".tools/apart/bundle.toml", bundle);
    write(".tools/apart/tools/demo.greet/TOOL.md", &tool("apart"));
    write("packages/one/bundle.toml", bundle);
    write("packages/one/tools/demo.greet/TOOL.md", &tool("one"));
    write("packages/two/.tools/demo.greet/TOOL.md", &tool("twice"));
    write("packages/two/deep/bundle.toml", bundle);
    write("packages/two/deep/.tools/demo.greet/TOOL.md", &tool("deep"));
    std::os::unix::fs::symlink("..", folder.path().join(".tools/loop")).unwrap();
    std::os::unix::fs::symlink("../..", folder.path().join("packages/loop")).unwrap();

    let report = check_path(folder.path());
    let shown = format!("{report:?}");
    assert_eq!(report.documents, 5, "{shown}");
    for version in ["own", "apart", "one", "twice", "deep"] {
        assert_eq!(
            shown.matches(&format!("\\\"{version}\\\"")).count(),
            1,
            "{version}: {shown}"
        );
    }
    let wanted = report.diagnostics.iter();
    let wanted = wanted.filter(|one| one.code == "bundle-toml-wanted");
    let wanted: Vec<_> = wanted
        .map(|one| {
            one.file
                .strip_prefix(folder.path().to_str().unwrap())
                .unwrap()
        })
        .collect();
    assert_eq!(wanted, ["/bundle.toml", "/packages/two/bundle.toml"]);
}

#[test]
fn so_many_bundles_are_checked_at_once_and_the_rest_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..1001 {
        std::fs::create_dir_all(folder.path().join(format!("{number}/.tools"))).unwrap();
    }
    let report = check_path(folder.path());
    let count = |code: &str| {
        let all = report.diagnostics.iter();
        all.filter(|one| one.code == code).count()
    };
    assert_eq!(
        (count("bundle-toml-wanted"), count("bundle-too-large")),
        (1000, 1)
    );
    assert_eq!(report.errors(), 1);
}

#[test]
fn a_document_that_its_reader_would_refuse_for_its_size_is_not_read() {
    let demo = Demo::new();
    for name in ["TOOL.md", "tools.json", "a.tool.md"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        // A sparse file: reading all of it would take 64 GiB.
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(64 << 30).unwrap();
        let report = check_path(&path);
        let codes: Vec<&str> = report.diagnostics.iter().map(|one| one.code).collect();
        assert_eq!(codes, ["document-too-large"], "{name}");
    }
    // In a bundle, the other documents are still checked.
    let file = std::fs::File::create(demo.path().join("drivers/demo-greet/DRIVER.md")).unwrap();
    file.set_len(64 << 30).unwrap();
    let report = check_path(demo.path());
    let found = report
        .diagnostics
        .iter()
        .find(|one| one.is_error())
        .unwrap();
    assert_eq!(found.code, "document-too-large");
    assert!(found.file.ends_with("drivers/demo-greet/DRIVER.md"));
}

#[test]
fn a_byte_order_mark_and_a_date_of_toml_are_accepted_in_bundle_toml() {
    let demo = Demo::new();
    for created in [
        "2026-11-21T08:00:00Z",
        "2026-11-21",
        "\"2026-11-21T08:00:00Z\"",
    ] {
        let text = BUNDLE.replace("\"2026-11-21T08:00:00Z\"", created);
        demo.write("bundle.toml", format!("\u{feff}{text}"));
        let report = check_path(demo.path());
        assert_eq!(report.diagnostics.len(), 0, "{created}: {report:?}");
    }
    let days = |text: &str| {
        let text = BUNDLE.replace("\"2026-11-21T08:00:00Z\"", text);
        toolward_bundle::dev::BundleToml::parse("bundle.toml", &text)
            .value
            .unwrap()
            .created
    };
    assert_eq!(days("2026-11-21"), days("\"2026-11-21T00:00:00Z\""));
    demo.write(
        "bundle.toml",
        BUNDLE.replace("\"2026-11-21T08:00:00Z\"", "2026-11-21T08:00:00"),
    );
    let report = check_path(demo.path());
    assert_eq!(report.diagnostics[0].code, "bundle-toml-value");
    // Schemas and tools.json may also have the mark.
    let demo = Demo::new();
    let tool = TOOL.replace(
        "{ type: object, properties: { greeting: { type: string } }, required: [greeting] }",
        "{ $ref: \"schema:greeting\" }",
    );
    demo.write("tools/demo.greet/TOOL.md", format!("\u{feff}{tool}"));
    demo.write("schemas/greeting.json", "\u{feff}{ \"type\": \"object\" }");
    let report = check_path(demo.path());
    assert_eq!(report.errors(), 0, "{report:?}");
    demo.pack();
}

#[test]
fn an_input_without_a_place_in_the_request_is_reported_for_a_driver_too() {
    let demo = Demo::new();
    demo.remove("drivers/demo-greet/driver.wasm");
    let tool = TOOL.replace("inputs:", "requires: { network: [a.example] }\ninputs:");
    let tool = tool.replace(
        "name: { type: string } }, required: [name]",
        "name: { type: string }, lang: { type: string } }, required: [name]",
    );
    demo.write("tools/demo.greet/TOOL.md", tool);
    let check = |entry: &str, more: &str| {
        let driver = format!(
            "---\nid: demo-greet\nname: Greet\ndescription: Greets.\nversion: 1.0.0\nkind: http\n\
             base_url: https://a.example\nnetwork: {{ egress: [a.example] }}\nimplements:\n  - tool: demo.greet\n    \
             version: \"^1.0.0\"\n{more}    metadata: {{ http: {{ method: GET, {entry} }} }}\n---\n"
        );
        demo.write("drivers/demo-greet/DRIVER.md", driver);
        let report = check_path(demo.path());
        let found = report.diagnostics.into_iter();
        found.map(|one| (one.code, one.message)).collect::<Vec<_>>()
    };
    let path = "endpoint: \"/${input.name}\"";
    let found = check(path, "");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, "http-input-unplaced");
    assert!(found[0].1.contains("`lang`"), "{found:?}");
    assert!(check(path, "    schema_narrowing: { drop_inputs: [lang] }\n").is_empty());
    assert!(
        check(
            &format!("{path}, query_template: {{ l: \"${{input.lang}}\" }}"),
            ""
        )
        .is_empty()
    );
    assert!(
        check(
            &format!("{path}, query_template: {{ l: \"${{input.l}}\" }}"),
            "    mapping: { l: lang }\n"
        )
        .is_empty()
    );
}
