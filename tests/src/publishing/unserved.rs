//! `build` and `test` ask components which of the tools in `implements` they serve.

use crate::support::{Machine, copy, root};

/// An example under work, whose driver also implements this contract.
fn implementing(machine: &Machine, example: &str, tool: &str) {
    let from = root().join("examples").join(example);
    for part in ["bundle.toml", "tools", "drivers"] {
        copy(
            &from.join(part),
            &machine.path(&format!("{example}/{part}")),
        );
    }
    let name = format!("{example}/drivers/{example}/DRIVER.md");
    let driver = machine.text(&name);
    let entry = format!("implements:\n  - {{ tool: {tool}, version: ^1.0.0 }}\n");
    let changed = driver.replacen("implements:\n", &entry, 1);
    assert_ne!(changed, driver, "{driver}");
    machine.write(&name, changed);
}

#[test]
fn a_tool_that_no_component_serves_is_found_in_each_language() {
    // Rust, Go, JavaScript.
    for example in ["text-stats", "units-dates", "html-text"] {
        let machine = Machine::new();
        implementing(&machine, example, "text.nearly");
        let ended = machine.toolward(&format!("test --dev {example}")).ends(1);
        assert!(
            ended.stdout.contains("[tool-not-served]") && ended.stdout.contains("`text.nearly`"),
            "{ended}"
        );
        assert!(ended.stdout.contains("DRIVER.md:"), "{ended}");
        assert!(ended.stderr.contains("1 tool not served"), "{ended}");
        assert!(!ended.stdout.contains("FAILED"), "{ended}");
    }
}

#[test]
fn a_component_that_takes_every_id_is_not_judged() {
    let machine = Machine::new();
    crate::hostile::add(&machine, "b");
    let name = "b/drivers/hostile/DRIVER.md";
    let driver = machine.text(name);
    let entry = "implements:\n  - { tool: hostile.nearly, version: ^1.0.0 }\n";
    machine.write(name, driver.replacen("implements:\n", entry, 1));
    assert_ne!(machine.text(name), driver);
    machine.toolward("test --dev b").ends(0);
}

#[test]
fn build_fails_for_a_tool_that_what_it_built_does_not_serve() {
    let machine = Machine::new();
    implementing(&machine, "text-stats", "text.nearly");
    machine.write(
        "text-stats/made.wasm",
        std::fs::read(machine.path("text-stats/drivers/text-stats/driver.wasm")).unwrap(),
    );
    let toml = machine.text("text-stats/bundle.toml");
    let prebuilt = toml.replace(
        "crate = \"driver\"",
        "kind = \"wasm\"\nsource = \"made.wasm\"",
    );
    assert_ne!(prebuilt, toml);
    machine.write("text-stats/bundle.toml", prebuilt);
    let ended = machine.toolward("build text-stats --json").ends(1);
    let lines = ended.json_lines();
    let error = &lines.last().unwrap()["error"];
    assert_eq!(error["code"], "tool-not-served", "{ended}");
    let found = &error["diagnostics"][0];
    assert_eq!(found["file"], "drivers/text-stats/DRIVER.md", "{ended}");
    let name = "text-stats/drivers/text-stats/DRIVER.md";
    let driver = machine.text(name);
    machine.write(
        name,
        driver.replace("  - { tool: text.nearly, version: ^1.0.0 }\n", ""),
    );
    machine.toolward("build text-stats").ends(0);
}

#[test]
fn what_build_fails_for_is_an_error_of_check() {
    let machine = Machine::new();
    let from = root().join("examples/text-stats");
    for part in ["bundle.toml", "tools", "drivers"] {
        copy(&from.join(part), &machine.path(&format!("b/{part}")));
    }
    let component = std::fs::read(machine.path("b/drivers/text-stats/driver.wasm")).unwrap();
    machine.write("b/made.wasm", component);
    let toml = machine.text("b/bundle.toml");
    let prebuilt = "kind = \"wasm\"\nsource = \"made.wasm\"";
    machine.write(
        "b/bundle.toml",
        toml.replace("crate = \"driver\"", prebuilt),
    );
    let name = "b/drivers/text-stats/DRIVER.md";
    let misspelt = machine
        .text(name)
        .replace("tool: text.stats", "tool: text.stat");
    assert_ne!(misspelt, machine.text(name));
    machine.write(name, misspelt);
    let checked = machine.toolward("check b").ends(1);
    assert!(
        checked.stdout.contains("error[tool-reference-unknown]"),
        "{checked}"
    );
    let built = machine.toolward("build b").ends(1);
    assert!(built.stderr.contains("tool-not-served"), "{built}");
}
