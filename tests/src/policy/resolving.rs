//! Which driver serves a tool, and why the others do not: `[resolve]` of the policy, and
//! `toolward show --drivers`.

use serde_json::Value;

use super::change;
use crate::support::Machine;

const DRIVER: &str = "b/drivers/hostile/DRIVER.md";

/// A bundle `b` whose only driver uses the network and claims to be in the United States.
fn abroad() -> Machine {
    let machine = Machine::new();
    crate::hostile::add(&machine, "b");
    let claims = "network: { egress: [a.example] }\nregion: us\npolicy_tags: [beta]\nimplements:\n";
    change(&machine, DRIVER, "implements:\n", claims);
    machine
}

/// A copy of the bundle's driver with another id and these additional lines.
fn another(machine: &Machine, id: &str, lines: &str) {
    let source = machine.text(DRIVER);
    let source = source.replacen("id: hostile", &format!("id: {id}"), 1);
    let folder = format!("b/drivers/{id}");
    machine.write(
        &format!("{folder}/DRIVER.md"),
        source.replacen("implements:\n", &format!("{lines}implements:\n"), 1),
    );
    let component = machine.read("b/drivers/hostile/driver.wasm");
    machine.write(&format!("{folder}/driver.wasm"), component);
}

/// Gives the tool one more input.
fn with_input(machine: &Machine, name: &str) {
    let input = format!("    {name}: {{ type: string }}\n    n: {{");
    change(machine, "b/tools/hostile.run/TOOL.md", "    n: {", &input);
}

fn why(machine: &Machine) -> Value {
    let words = "show hostile.run --drivers --dev b --json";
    let json = machine.toolward(words).ends(0).json();
    json["tools"][0].clone()
}

fn call(machine: &Machine, exit: i32) -> Value {
    let words = "call hostile.run --dev b --set do=echo --json";
    machine.toolward(words).ends(exit).json()
}

#[test]
fn a_tool_without_a_driver_in_the_region_says_so_and_names_the_driver() {
    let machine = abroad();
    call(&machine, 0);
    machine.configure("[resolve]\nregion = \"eu\"\n");
    let error = call(&machine, 1)["error"].clone();
    assert_eq!(error["code"], "no_route_in_region", "{error}");
    let rejected = &error["cause"]["rejected"][0];
    assert_eq!(rejected["driver"], "hostile", "{error}");
    assert_eq!(rejected["reasons"][0]["code"], "region", "{error}");
    let found = why(&machine);
    assert_eq!(found["serves"], Value::Null, "{found}");
    assert_eq!(found["only_region"], true, "{found}");
    let shown = machine
        .toolward("show hostile.run --drivers --dev b")
        .ends(0)
        .stdout;
    assert!(
        shown.contains("no driver serves it in the region") && shown.contains("rejected: "),
        "{shown}"
    );

    // The driver's claim counts only if its publisher is trusted for claims.
    machine.configure("[resolve]\nregion = \"us\"\n");
    let error = call(&machine, 1)["error"].clone();
    assert_eq!(error["code"], "no_route_in_region", "{error}");
    let publisher = super::dev(&machine, "b");
    let believes = format!("[resolve]\nregion = \"us\"\npublishers = [{publisher:?}]\n");
    machine.configure(&believes);
    call(&machine, 0);
    // A denied tag excludes the driver, even if its publisher is trusted for claims.
    machine.configure(&format!("{believes}denied_tags = [\"beta\"]\n"));
    let error = call(&machine, 1)["error"].clone();
    assert_eq!(error["code"], "no_route", "{error}");
}

#[test]
fn a_driver_that_cannot_serve_is_granted_nothing_and_the_reason_is_said() {
    let machine = abroad();
    another(&machine, "c.vax", "requires: { arch: [vax] }\n");
    let words = "policy grant hostile.run --dev b --driver c.vax";
    let refused = machine.toolward(words).ends(4).stderr;
    assert!(
        refused.contains("error[grant-impossible]") && refused.contains("it needs vax"),
        "{refused}"
    );
}

#[test]
fn why_shows_the_drivers_in_the_order_in_which_calls_take_them() {
    let machine = abroad();
    let cost = |units: &str| format!("cost_override: {{ cost_units_per_call: {units} }}\n");
    another(&machine, "a.dear", &cost("9"));
    another(&machine, "z.cheap", &cost("2"));
    another(
        &machine,
        "b.greedy",
        &format!("{}requires: {{ database: [loot] }}\n", cost("0")),
    );
    another(&machine, "c.vax", "requires: { arch: [vax] }\n");
    let found = why(&machine);
    let candidates = found["candidates"].as_array().unwrap();
    let drivers: Vec<_> = candidates.iter().map(|one| &one["driver"]).collect();
    assert_eq!(drivers, ["b.greedy", "z.cheap", "a.dear", "hostile"]);
    assert_eq!(candidates[0]["decision"], "blocked", "{found}");
    let reason = candidates[0]["reasons"][0].as_str().unwrap();
    assert!(reason.contains("database:loot"), "{found}");
    assert_eq!(candidates[1]["cost"]["units_per_call"], 2.0, "{found}");
    assert_eq!(candidates[3]["cost"]["units_per_call"], Value::Null);
    assert_eq!(found["rejected"][0]["driver"], "c.vax", "{found}");
    assert_eq!(
        found["rejected"][0]["reasons"][0]["code"], "arch",
        "{found}"
    );
    // A call uses the driver that is shown.
    assert_eq!(found["serves"], "z.cheap", "{found}");
    assert_eq!(call(&machine, 0)["meta"]["driver"], "z.cheap");

    let shown = machine
        .toolward("show hostile.run --drivers --dev b")
        .ends(0)
        .stdout;
    let at = |word: &str| {
        shown
            .find(word)
            .unwrap_or_else(|| panic!("no {word} in {shown}"))
    };
    assert!(shown.starts_with("hostile.run@1 of "), "{shown}");
    assert!(shown.contains("z.cheap serves it"), "{shown}");
    let rows = [
        "\n  b.greedy ",
        "\n  z.cheap ",
        "\n  a.dear ",
        "\n  hostile ",
        "\n  c.vax ",
    ];
    let places: Vec<usize> = rows.into_iter().map(at).collect();
    assert!(places.is_sorted(), "{shown}");
    for words in [
        "blocked: database:loot",
        "unpriced",
        "rejected: it needs vax",
    ] {
        at(words);
    }
}

#[test]
fn why_names_the_secret_without_a_value_and_the_transform_that_is_missing() {
    let machine = abroad();
    with_input(&machine, "aspect");
    another(
        &machine,
        "a.keyed",
        "requires: { secrets: [KEY] }\ncost_override: { cost_units_per_call: 0 }\n",
    );
    let text = machine.text("b/drivers/a.keyed/DRIVER.md");
    let mapped = text.replacen(
        "    version: ",
        "    mapping: { size: { from: aspect, transform: aspect_to_size } }\n    version: ",
        1,
    );
    machine.write("b/drivers/a.keyed/DRIVER.md", mapped);
    let publisher = super::dev(&machine, "b");
    machine.write("key", "0123456789abcdef");
    let file = machine.path("key");
    let grant = |file: &std::path::Path| {
        format!(
            "[resolve]\nfallback = true\n[[secret]]\nslug = \"KEY\"\npublisher = {publisher:?}\nfile = {file:?}\n\
             origin = \"https://a.example\"\nheader = \"authorization\"\n\
             [[grant]]\npublisher = {publisher:?}\ndriver = \"a.keyed\"\nrequires = [\"secret:KEY\"]\n"
        )
    };
    machine.configure(&grant(&machine.path("no-key")));
    let found = why(&machine);
    assert_eq!(found["rejected"][0]["driver"], "a.keyed", "{found}");
    let reason = &found["rejected"][0]["reasons"][0];
    assert_eq!(reason["code"], "secret-missing", "{found}");
    assert!(
        reason["text"].as_str().unwrap().contains("`KEY`"),
        "{found}"
    );
    assert_eq!(found["serves"], "hostile", "{found}");
    // Each command that shows the driver reports the same.
    let explained = machine.toolward("show hostile.run --policy --dev b --json");
    let explained = explained.ends(0).json();
    let drivers = explained["drivers"].as_array().unwrap();
    let keyed = drivers.iter().find(|one| one["driver"] == "a.keyed");
    let keyed = keyed.unwrap();
    assert_eq!(keyed["outcome"], "deny", "{explained}");
    assert_eq!(keyed["secrets_missing"], serde_json::json!(["KEY"]));
    let listed = machine.toolward("policy list --dev b").ends(0);
    let line = listed.stdout.lines().find(|line| line.contains("a.keyed"));
    let line = line.unwrap();
    assert!(
        line.starts_with("BLOCKED") && line.contains("`KEY` has no value"),
        "{line}"
    );
    let suggested = machine.toolward("policy suggest --dev b").ends(0);
    assert!(
        suggested.stdout.contains("`KEY` has no value"),
        "{suggested}"
    );
    let doctor = machine.toolward("doctor").end();
    assert!(doctor.stdout.contains("warning  secret"), "{doctor}");
    assert_eq!(call(&machine, 0)["meta"]["driver"], "hostile");

    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&file, mode).unwrap();
    machine.configure(&grant(&file));
    let found = why(&machine);
    assert_eq!(found["serves"], "a.keyed", "{found}");
    let first = &found["candidates"][0];
    // Calls start with the first driver and fall back to the second.
    assert_eq!(first["takes_over"], false, "{found}");
    assert_eq!(found["candidates"][1]["takes_over"], true, "{found}");
    let except = first["except"][0].as_str().unwrap();
    assert!(
        except.contains("`aspect`") && except.contains("`aspect_to_size`"),
        "{found}"
    );
    let shown = machine
        .toolward("show hostile.run --drivers --dev b")
        .ends(0)
        .stdout;
    assert!(
        shown.contains("not for calls that give `aspect`"),
        "{shown}"
    );
    // A call uses the driver that is shown.
    assert_eq!(call(&machine, 0)["meta"]["driver"], "a.keyed");
    let given = "call hostile.run --dev b --set do=echo --set aspect=wide --json";
    let served = machine.toolward(given).ends(0).json();
    assert_eq!(served["meta"]["driver"], "hostile", "{served}");
}

#[test]
fn a_call_says_which_driver_failed_before_the_one_that_served_it() {
    let machine = abroad();
    with_input(&machine, "then");
    another(&machine, "z.next", "");
    let path = "b/drivers/z.next/DRIVER.md";
    let text = machine.text(path);
    let mapped = text.replacen(
        "    version: ",
        "    mapping: { do: then, then: do }\n    version: ",
        1,
    );
    machine.write(path, mapped);
    let words = "call hostile.run --dev b --set do=trap --set then=echo";
    let refused = machine.toolward(&format!("{words} --json")).ends(1).json();
    assert!(refused["meta"].get("tried").is_none(), "{refused}");
    machine.configure("[resolve]\nfallback = true\n");
    let served = machine.toolward(&format!("{words} --json")).ends(0).json();
    let tried = &served["meta"]["tried"];
    assert_eq!(tried[0]["driver"], "hostile", "{served}");
    assert_eq!(tried[0]["error"], "upstream_error", "{served}");
    assert_eq!(tried[1]["driver"], "z.next", "{served}");
    let publisher = super::dev(&machine, "b");
    assert_eq!(tried[1]["driver_publisher"], publisher.as_str(), "{served}");
    let shown = machine.toolward(words).ends(0);
    assert!(shown.stderr.contains("the driver hostile by "), "{shown}");
    assert!(shown.stderr.contains("failed (upstream_error)"), "{shown}");
}

#[test]
fn an_expensive_call_is_announced_where_nobody_is_asked() {
    let machine = abroad();
    let words = "call hostile.run --dev b --set do=echo";
    let silent = machine.toolward(words).ends(0);
    assert!(!silent.stderr.contains("expensive"), "{silent}");
    let cost = "cost_override: { cost_class: expensive, cost_units_per_call: 4, currency: USD }\nimplements:\n";
    change(&machine, DRIVER, "implements:\n", cost);
    let said = machine.toolward(words).ends(0);
    let line = "is expensive, as its publisher says (4 USD, expensive)";
    assert!(said.stderr.contains(line), "{said}");
    let shown = machine.toolward("inspect b").ends(0).stdout;
    assert!(
        shown.contains("costs      hostile.run 4 USD, expensive"),
        "{shown}"
    );
    let listed = machine
        .toolward("show hostile.run --as mcp --dev b --json")
        .ends(0)
        .json();
    let meta = &listed["_meta"]["toolward/tool"];
    assert_eq!(meta["cost_class"], "trivial", "{listed}");
    assert_eq!(meta["drivers"][0]["cost"]["class"], "expensive", "{listed}");
}
