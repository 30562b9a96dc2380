//! Random sets: tools and drivers of two publishers, and a policy about them. The same seed makes
//! the same set.

use std::fmt::Write as _;
use std::path::Path;

pub(super) const PUBLISHERS: [&str; 2] = ["alpha", "beta"];

const HOSTS: [&str; 3] = [
    "network:a.example",
    "network:b.example",
    "network:*.example",
];
const READABLE: [&str; 8] = [
    HOSTS[0],
    HOSTS[1],
    HOSTS[2],
    "workspace:/notes",
    "workspace:/notes/sub",
    "workspace:/gone",
    "database:counters",
    "secret:token",
];
const CHANGEABLE: [&str; 9] = [
    HOSTS[0],
    HOSTS[2],
    "workspace:/notes",
    "workspace:/notes/sub",
    "workspace:/gone",
    "database:counters",
    "external:mail",
    "storage:*",
    "audit:x",
];

/// A contract of a set.
#[derive(Debug, Clone)]
pub(super) struct SetTool {
    pub(super) id: String,
    pub(super) publisher: &'static str,
    pub(super) major: u64,
    pub(super) reads: Vec<String>,
    pub(super) writes: Vec<String>,
    pub(super) risk: u8,
    pub(super) approval: &'static str,
    pub(super) forbids_components: bool,
    pub(super) default: Option<String>,
}

/// A driver of a set.
#[derive(Debug, Clone)]
pub(super) struct SetDriver {
    pub(super) id: String,
    pub(super) publisher: &'static str,
    pub(super) runs: bool,
    pub(super) implements: Vec<(String, u64)>,
    pub(super) egress: Vec<String>,
    pub(super) adds: Vec<String>,
    pub(super) os: Option<&'static str>,
    pub(super) cost: Option<u64>,
}

/// A `[[grant]]`.
#[derive(Debug, Clone)]
pub(super) struct SetRule {
    pub(super) publisher: &'static str,
    pub(super) tool: Option<String>,
    pub(super) driver_publisher: &'static str,
    pub(super) driver: Option<String>,
    pub(super) requires: Vec<String>,
    pub(super) mutates: Vec<String>,
    pub(super) accepts: Vec<&'static str>,
    pub(super) always: bool,
    pub(super) preapproved: bool,
}

/// A `[[deny]]`.
#[derive(Debug, Clone)]
pub(super) struct SetDeny {
    pub(super) publisher: Option<&'static str>,
    pub(super) tool: Option<String>,
    pub(super) capability: Option<&'static str>,
}

/// One set.
#[derive(Debug, Clone)]
pub(super) struct Set {
    pub(super) tools: Vec<SetTool>,
    pub(super) drivers: Vec<SetDriver>,
    pub(super) rules: Vec<SetRule>,
    pub(super) denies: Vec<SetDeny>,
    /// Whether the policy has a `[[workspace]]` for `/notes`. The `[[workspace]]` of `/gone` has no
    /// directory.
    pub(super) notes: bool,
    /// The publisher whose `secret:token` has a `[[secret]]`.
    pub(super) secret: Option<&'static str>,
    /// Whether the policy has a `[[service]]` for `external:mail`.
    pub(super) service: bool,
}

/// SplitMix64.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % (end as u64)).unwrap()
    }

    /// True in `percent` of a hundred cases.
    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn some(&mut self, from: &[&str], most: usize) -> Vec<String> {
        let count = self.below(most + 1);
        let mut picked: Vec<String> = Vec::new();
        for _ in 0..count {
            let one = self.pick(from).to_owned();
            if !picked.contains(&one) {
                picked.push(one);
            }
        }
        picked
    }

    fn maybe<T>(&mut self, percent: usize, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.chance(percent).then(|| make(self))
    }
}

const IDS: [&str; 4] = ["x.one", "x.two", "y.three", "y.four"];

impl Set {
    pub(super) fn new(random: &mut Random) -> Self {
        let count = 2 + random.below(3);
        let tools: Vec<SetTool> = (0..count).map(|at| tool(random, IDS[at])).collect();
        let drivers: Vec<SetDriver> = (0..2 + random.below(4))
            .map(|at| driver(random, at, &tools))
            .collect();
        let mut set = Self {
            rules: Vec::new(),
            denies: (0..random.below(2)).map(|_| deny(random)).collect(),
            notes: random.chance(85),
            secret: random.maybe(80, |random| random.pick(&PUBLISHERS)),
            service: random.chance(80),
            tools,
            drivers,
        };
        for at in 0..set.tools.len() {
            let default = random.maybe(30, |random| random.below(set.drivers.len()));
            set.tools[at].default = default.map(|at| set.drivers[at].id.clone());
        }
        for _ in 0..random.below(4) {
            let rule = rule(random, &set);
            set.rules.push(rule);
        }
        // Rules that match these tools; otherwise most tools would be blocked.
        for at in 0..set.tools.len() {
            if random.chance(80) {
                let rule = meant(random, &set, at);
                set.rules.push(rule);
            }
        }
        set
    }
}

fn tool(random: &mut Random, id: &str) -> SetTool {
    let mut reads = if random.chance(60) {
        random.some(&READABLE, 3)
    } else {
        Vec::new()
    };
    if random.chance(35) {
        reads.push(format!("tool:{}", random.pick(&IDS)));
    }
    if random.chance(10) {
        reads.push("user:form".to_owned());
    }
    let writes = if random.chance(45) {
        random.some(&CHANGEABLE, 2)
    } else {
        Vec::new()
    };
    SetTool {
        id: id.to_owned(),
        publisher: random.pick(&PUBLISHERS),
        major: 1 + random.below(2) as u64,
        approval: if random.chance(10) {
            "always"
        } else {
            "on-mutate"
        },
        risk: random.pick(&[0, 0, 0, 1, 2, 3]),
        forbids_components: random.chance(5),
        default: None,
        reads,
        writes,
    }
}

fn driver(random: &mut Random, at: usize, tools: &[SetTool]) -> SetDriver {
    let first = random.below(tools.len());
    let mut implements = vec![(tools[first].id.clone(), tools[first].major)];
    if random.chance(40) {
        let other = &tools[random.below(tools.len())];
        let major = if random.chance(80) { other.major } else { 3 };
        if other.id != implements[0].0 {
            implements.push((other.id.clone(), major));
        }
    }
    // About three quarters have the same publisher as their contract.
    let publisher = match random.chance(55) {
        true => tools[first].publisher,
        false => random.pick(&PUBLISHERS),
    };
    let egress = match random.chance(70) {
        true => vec![HOSTS[2].to_owned()],
        false => random.some(&HOSTS, 2),
    };
    let adds = if random.chance(20) {
        random.some(&READABLE, 2)
    } else {
        Vec::new()
    };
    SetDriver {
        id: format!("d.{at}"),
        publisher,
        runs: !random.chance(5),
        implements,
        egress,
        adds,
        os: random.maybe(12, |random| random.pick(&["darwin", "linux"])),
        cost: random.maybe(40, |random| random.below(3) as u64),
    }
}

fn rule(random: &mut Random, set: &Set) -> SetRule {
    let publisher = random.pick(&PUBLISHERS);
    let tool = random.maybe(60, |random| random.pick(&IDS).to_owned());
    SetRule {
        publisher,
        tool,
        driver_publisher: match random.chance(60) {
            true => publisher,
            false => random.pick(&PUBLISHERS),
        },
        driver: random.maybe(40, |random| {
            set.drivers[random.below(set.drivers.len())].id.clone()
        }),
        requires: random.some(&READABLE, 3),
        mutates: random.some(&CHANGEABLE[..7], 2),
        accepts: random
            .maybe(20, |random| random.pick(&["storage", "audit"]))
            .into_iter()
            .collect(),
        always: random.chance(8),
        preapproved: random.chance(40),
    }
}

/// A rule that grants most of one tool's requirements, to drivers of its own publisher or to one
/// other driver.
fn meant(random: &mut Random, set: &Set, at: usize) -> SetRule {
    let tool = &set.tools[at];
    let driver = &set.drivers[random.below(set.drivers.len())];
    let foreign = random.chance(35);
    let mut given = |all: &[String], known: bool| -> Vec<String> {
        let fits =
            |one: &&String| (one.starts_with("storage") || one.starts_with("audit")) != known;
        let all = all.iter().filter(fits).filter(|_| random.chance(95));
        all.cloned().collect()
    };
    let (requires, mutates) = (given(&tool.reads, true), given(&tool.writes, true));
    let accepted = given(&tool.writes, false);
    let classes = ["storage", "audit"];
    let accepts = classes
        .into_iter()
        .filter(|class| accepted.iter().any(|one| one.starts_with(class)));
    SetRule {
        publisher: tool.publisher,
        tool: Some(tool.id.clone()),
        driver_publisher: if foreign {
            driver.publisher
        } else {
            tool.publisher
        },
        driver: foreign.then(|| driver.id.clone()),
        accepts: accepts.collect(),
        requires,
        mutates,
        always: false,
        preapproved: random.chance(40),
    }
}

fn deny(random: &mut Random) -> SetDeny {
    SetDeny {
        publisher: random.maybe(50, |random| random.pick(&PUBLISHERS)),
        tool: random.maybe(70, |random| random.pick(&IDS).to_owned()),
        capability: random.maybe(80, |random| random.pick(&CHANGEABLE[..6])),
    }
}

/// The names of one class, without the class.
fn scopes(all: &[String], class: &str) -> String {
    let names = all
        .iter()
        .filter_map(|one| one.strip_prefix(class)?.strip_prefix(':'));
    names
        .map(|name| format!("{name:?}"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn requires(all: &[String]) -> String {
    let parts = [
        ("network", "network"),
        ("workspace", "workspace"),
        ("database", "database"),
        ("secrets", "secret"),
        ("tools", "tool"),
        ("user", "user"),
    ];
    let parts = parts.map(|(key, class)| format!("  {key}: [{}]\n", scopes(all, class)));
    format!("requires:\n{}", parts.concat())
}

impl SetTool {
    pub(super) fn source(&self) -> String {
        let mut text = format!(
            "---\nname: T\nid: {}\ndescription: Does.\nversion: {}.0.0\ninputs: {{ type: object }}\n\
             outputs: {{ type: object }}\nrisk_level: {}\napproval: {}\nmutates: {:?}\n{}",
            self.id,
            self.major,
            self.risk,
            self.approval,
            self.writes,
            requires(&self.reads)
        );
        if self.forbids_components {
            text.push_str("driver_constraints: { forbid: [component] }\n");
        }
        if let Some(default) = &self.default {
            let _ = writeln!(text, "default_implementation: {default}");
        }
        text + "---\n"
    }
}

impl SetDriver {
    pub(super) fn source(&self) -> String {
        let kind = match self.runs {
            true => "component\ncomponent: driver.wasm",
            false => "cli",
        };
        let mut text = format!(
            "---\nname: D\nid: {}\ndescription: Does.\nversion: 1.0.0\nkind: {kind}\n\
             network: {{ egress: [{}] }}\n{}",
            self.id,
            scopes(&self.egress, "network"),
            requires(&self.adds)
        );
        if let Some(os) = self.os {
            let _ = writeln!(text, "  os: [{os}]");
        }
        text.push_str("implements:\n");
        for (tool, major) in &self.implements {
            let _ = writeln!(text, "  - tool: {tool}\n    version: ^{major}.0.0");
            if let Some(cost) = self.cost {
                let _ = writeln!(text, "    cost_override: {{ cost_units_per_call: {cost} }}");
            }
        }
        text + "---\n"
    }
}

impl Set {
    /// The policy in the form that an operator writes. `directory` exists, and contains no `gone`.
    pub(super) fn policy(&self, directory: &Path) -> String {
        let mut text = format!(
            "[[workspace]]\npath = \"/gone\"\ndirectory = {:?}\n",
            directory.join("gone")
        );
        if self.notes {
            let notes = directory.join("notes");
            let _ = writeln!(
                text,
                "[[workspace]]\npath = \"/notes\"\ndirectory = {notes:?}"
            );
        }
        if let Some(publisher) = self.secret {
            let _ = writeln!(
                text,
                "[[secret]]\nslug = \"token\"\npublisher = {publisher:?}\nenv = \"T\"\n\
                 origin = \"https://a.example\"\nheader = \"x-key\""
            );
        }
        if self.service {
            text.push_str("[[service]]\nname = \"mail\"\nhosts = [\"a.example\"]\n");
        }
        for rule in &self.rules {
            let _ = writeln!(
                text,
                "[[grant]]\npublisher = {:?}\ndriver_publisher = {:?}\nrequires = {:?}\n\
                 mutates = {:?}\naccepts = {:?}\npreapproved = {}",
                rule.publisher,
                rule.driver_publisher,
                rule.requires,
                rule.mutates,
                rule.accepts,
                rule.preapproved
            );
            if let Some(tool) = &rule.tool {
                let _ = writeln!(text, "tool = {tool:?}");
            }
            if let Some(driver) = &rule.driver {
                let _ = writeln!(text, "driver = {driver:?}");
            }
            if rule.always {
                text.push_str("approval = \"always\"\n");
            }
        }
        for deny in &self.denies {
            text.push_str("[[deny]]\n");
            if let Some(publisher) = deny.publisher {
                let _ = writeln!(text, "publisher = {publisher:?}");
            }
            if let Some(tool) = &deny.tool {
                let _ = writeln!(text, "tool = {tool:?}");
            }
            if let Some(capability) = deny.capability {
                let _ = writeln!(text, "capabilities = [{capability:?}]");
            }
        }
        text
    }
}
