//! Random policies with the real command: `policy list` and `show --policy` must state what a call
//! then does. The lines of `policy suggest` must not affect drivers of other publishers.

use serde_json::Value;

use super::{change, signed};
use crate::support::Machine;

const SETS: u64 = 24;
const TOOLS: [&str; 3] = ["hostile.run", "hostile.other", "a.tool"];
const DRIVERS: [&str; 4] = ["hostile", "b.also", "a.own", "a.thief"];
const BOTH: &str = "--bundle beta.toolbundle --bundle alpha.toolbundle \
                    --trust-key beta.pub.pem --trust-key alpha.pub.pem";

/// SplitMix64: the same seed gives the same policies.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % (end as u64)).unwrap()
    }

    fn pick<'t>(&mut self, from: &[&'t str]) -> &'t str {
        from[self.below(from.len())]
    }
}

/// Beta has `hostile.run`, which reads a bucket and calls `hostile.other`, which changes a bucket.
/// Both use the driver `hostile`. Alpha has `a.tool` with the driver `a.own`. Each publisher also
/// has a driver for a tool of the other one.
fn two() -> (Machine, [String; 2]) {
    let machine = Machine::new();
    crate::hostile::add(&machine, "beta");
    let contract = machine.text("beta/tools/hostile.run/TOOL.md");
    let of = |id: &str, lines: &str| {
        contract
            .replace("id: hostile.run", &format!("id: {id}"))
            .replace(
                "idempotent: true\n",
                &format!("idempotent: true\n{lines}\n"),
            )
    };
    let calls = "requires: { database: [counters], tools: [hostile.other] }";
    machine.write("beta/tools/hostile.run/TOOL.md", of("hostile.run", calls));
    let changes = "mutates: [\"database:d\"]";
    let other = of("hostile.other", changes).replace("idempotent: true", "idempotent: false");
    machine.write("beta/tools/hostile.other/TOOL.md", other);
    let reads = of("a.tool", "requires: { database: [counters] }");
    machine.write("alpha/tools/a.tool/TOOL.md", reads);
    machine.write(
        "alpha/bundle.toml",
        "id = \"a.bundle\"\nversion = \"1.0.0\"\nsequence = 1\npublisher = \"alpha\"\n\
         created = \"2026-11-01T00:00:00Z\"\n",
    );
    let component = machine.read("beta/drivers/hostile/driver.wasm");
    let driver = |folder: &str, id: &str, tools: &[&str], lines: &str| {
        let entries: String = tools
            .iter()
            .map(|tool| format!("  - {{ tool: {tool}, version: ^1.0.0 }}\n"))
            .collect();
        let text = format!(
            "---\nname: D\nid: {id}\ndescription: Does.\nversion: 1.0.0\nkind: component\n\
             component: driver.wasm\nimplements:\n{entries}{lines}---\n"
        );
        machine.write(&format!("{folder}/drivers/{id}/DRIVER.md"), text);
        machine.write(&format!("{folder}/drivers/{id}/driver.wasm"), &component);
    };
    change(
        &machine,
        "beta/drivers/hostile/DRIVER.md",
        "implements:\n",
        "implements:\n  - tool: hostile.other\n    version: \"^1.0.0\"\n",
    );
    driver("beta", "b.also", &["a.tool"], "");
    driver("alpha", "a.own", &["a.tool"], "");
    driver(
        "alpha",
        "a.thief",
        &["hostile.run", "hostile.other"],
        "requires: { database: [loot] }\n",
    );
    let publishers = [
        signed(&machine, "alpha", "alpha"),
        signed(&machine, "beta", "beta"),
    ];
    (machine, publishers)
}

fn policy(random: &mut Random, publishers: &[String; 2]) -> String {
    let mut text = String::new();
    for _ in 0..2 + random.below(5) {
        let publisher = &publishers[random.below(2)];
        let by = match random.below(3) {
            0 => &publishers[random.below(2)],
            _ => publisher,
        };
        text.push_str(&format!(
            "[[grant]]\npublisher = {publisher:?}\ndriver_publisher = {by:?}\n"
        ));
        if random.below(3) > 0 {
            text.push_str(&format!("tool = {:?}\n", random.pick(&TOOLS)));
        }
        if random.below(2) == 0 {
            text.push_str(&format!("driver = {:?}\n", random.pick(&DRIVERS)));
        }
        let given = [
            "\"database:counters\", \"tool:hostile.other\"",
            "\"database:counters\", \"database:loot\", \"tool:hostile.other\"",
            "",
        ];
        text.push_str(&format!("requires = [{}]\n", random.pick(&given)));
        if random.below(2) == 0 {
            text.push_str("mutates = [\"database:d\"]\n");
        }
        text.push_str(&format!("preapproved = {}\n", random.below(3) == 0));
    }
    let [alpha, beta] = publishers;
    if random.below(2) == 0 {
        text.push_str(&format!(
            "[[grant]]\npublisher = {beta:?}\ndriver_publisher = {alpha:?}\ndriver = \"a.thief\"\n\
             requires = [\"database:counters\", \"database:loot\", \"tool:hostile.other\"]\n\
             mutates = [\"database:d\"]\npreapproved = {}\n",
            random.below(2) == 0
        ));
    }
    if random.below(3) == 0 {
        text.push_str(&format!(
            "[[grant]]\npublisher = {alpha:?}\ndriver_publisher = {beta:?}\ndriver = \"b.also\"\n\
             requires = [\"database:counters\"]\n"
        ));
    }
    if random.below(6) == 0 {
        text.push_str("[[deny]]\ncapabilities = [\"database:loot\"]\n");
    }
    text
}

fn list(machine: &Machine) -> Vec<Value> {
    let words = format!("policy list {BOTH} --json");
    machine.toolward(&words).ends(0).json_lines()
}

/// Returns the rows about drivers of another publisher that may run.
fn foreign(rows: &[Value]) -> Vec<(&Value, &Value)> {
    let open = |row: &&Value| ["allowed", "asks"].contains(&row["state"].as_str().unwrap());
    let rows = rows.iter().filter(open);
    let rows = rows.filter(|row| row["publisher"] != row["driver_publisher"]);
    rows.map(|row| (&row["tool"], &row["driver"])).collect()
}

#[test]
fn what_list_and_explain_say_is_what_a_call_does_and_suggest_changes_nobody_elses_driver() {
    let (machine, publishers) = two();
    let mut random = Random(20_261_122);
    let (mut ran, mut asked, mut foreigners) = (0, 0, 0);
    for set in 0..SETS {
        let text = policy(&mut random, &publishers);
        machine.configure(&text);
        let rows = list(&machine);
        for tool in TOOLS {
            let name = format!("{tool}@1");
            let own = rows.iter().filter(|row| row["tool"] == name.as_str());
            let first = own
                .clone()
                .find(|row| ["allowed", "asks"].contains(&row["state"].as_str().unwrap()));
            let words = format!("call {tool} {BOTH} --set do=echo --json");
            let reply = machine.toolward(&words).end();
            let envelope = reply.json();
            let what = format!("set {set}, {tool}:\n{text}\n{rows:#?}\n{reply}");
            let Some(first) = first else {
                assert_eq!(envelope["error"]["code"], "unauthorised", "{what}");
                continue;
            };
            assert_eq!(envelope["meta"]["driver"], first["driver"], "{what}");
            let by = &first["driver_publisher"];
            assert_eq!(envelope["meta"]["driver_publisher"], *by, "{what}");
            if first["state"] == "asks" {
                assert_eq!(
                    envelope["error"]["code"], "toolward:approval_denied",
                    "{what}"
                );
                asked += 1;
            } else {
                assert_eq!(envelope["ok"], true, "{what}");
                ran += 1;
                foreigners += usize::from(by != &first["publisher"]);
            }
            let words = format!("show {tool} --policy {BOTH} --json");
            let explained = machine.toolward(&words).ends(0).json();
            let drivers = explained["drivers"].as_array().unwrap();
            let open = drivers.iter().find(|one| one["outcome"] != "deny").unwrap();
            assert_eq!(open["driver"], first["driver"], "{what}");
            assert_eq!(open["driver_publisher"], *by, "{what}");
        }
        let words = format!("policy suggest {BOTH} --json");
        let suggested = machine.toolward(&words).ends(0).json();
        let lines = suggested["lines"].as_str().unwrap();
        machine.configure(&format!("{text}\n{lines}"));
        let after = list(&machine);
        assert_eq!(
            foreign(&after),
            foreign(&rows),
            "set {set}:\n{text}\n{lines}"
        );
    }
    assert!(
        ran > 5 && asked > 5 && foreigners > 1,
        "{ran} {asked} {foreigners}"
    );
}
