//! The output of each command with `--json`.

use serde_json::{Value, json};

use super::{Forms, leaves};
use crate::importing;
use crate::importing::service::Service;
use crate::installing::registry::Server;
use crate::installing::web::Web;
use crate::installing::{document, installed, key, release, reworded, ship, trusting};
use crate::policy::{notes, notes_policy};
use crate::support::{Ended, Machine, Run};

/// Commands whose output is never JSON.
pub(super) const WITHOUT_JSON: [&str; 1] = ["completions"];

/// Written only if a registry runs. `publisher push` also has other forms.
pub(super) const OF_A_REGISTRY: &str = "command-publisher-push-done";

/// The checks of `doctor` whose results depend on the kernel.
const OF_THE_KERNEL: [&str; 4] = ["engine", "memory-reset", "confinement", "system-calls"];

/// Flags that give a command another form.
const SECTIONS: [&str; 4] = ["--drivers", "--policy", "--as", "--language"];

/// The golden file of a command.
pub(super) fn file(leaf: &str) -> String {
    format!("command-{}", leaf.replace(' ', "-"))
}

/// The golden file of a command line.
fn file_of(words: &str) -> String {
    let file = file(leaf(words));
    let mut sections = SECTIONS.iter();
    let named = |flag: &&&str| words.split(' ').any(|word| word == **flag);
    match sections.find(named) {
        Some(flag) => format!("{file}-{}", flag.trim_start_matches('-')),
        None => file,
    }
}

/// Returns the command at the start of these words.
fn leaf(words: &str) -> &'static str {
    let leaf = leaves().iter().find(|leaf| {
        let rest = words.strip_prefix(leaf.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    });
    leaf.unwrap_or_else(|| panic!("no command {words}"))
}

/// Returns the exit code and the output: JSON values, one on each line or a single one on several
/// lines, or text of another form.
fn form(ended: &Ended) -> Value {
    let text = ended.stdout.as_str();
    let values: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
    let whole = || serde_json::from_str(text).unwrap_or_else(|_| text.into());
    let values = values.unwrap_or_else(|_| vec![whole()]);
    let exit = std::iter::once(ended.code.into());
    exit.chain(values).collect()
}

/// Commands on one machine, each with `--json`. Their outputs become forms.
pub(super) struct Script<'a> {
    machine: &'a Machine,
    forms: &'a mut Forms,
}

impl<'a> Script<'a> {
    pub(super) fn new(machine: &'a Machine, forms: &'a mut Forms) -> Self {
        Self { machine, forms }
    }

    pub(super) fn run(&mut self, words: &str) {
        self.run_with(words, &[]);
    }

    /// Runs a command with more arguments, which may contain spaces.
    fn run_with(&mut self, words: &str, arguments: &[String]) {
        let run = self.machine.toolward(&format!("{words} --json"));
        let ended = arguments.iter().fold(run, Run::arg).end();
        self.forms.add(&file_of(words), words, form(&ended));
    }
}

pub(super) fn use_and_look(forms: &mut Forms) {
    let (machine, _) = installed();
    machine.add_example("kv-counter");
    crate::hostile::add(&machine, "b");
    let mut script = Script::new(&machine, forms);
    for words in [
        "list",
        "search words",
        "show text.stats",
        "show no.tool",
        "show text.stats --drivers",
        "show text.stats --as agent-tool",
        "show text.stats --as mcp",
        "show text.stats --as openai",
        "show text.stats --as amplifier",
        "call text.stats --set text=a",
        "call text.stats --set text=1 --set top=0 --set more=1",
        "call text.stat --set text=a",
        "call text.stats --set text=a --format agent-tool",
        "call text.stats --set text=a --format amplifier",
        "call hostile.run --dev b --set do=progress --set n=1",
        "call hostile.run --dev b --set do=log --set n=1",
        "call hostile.run --dev b --set do=print --set name=stdout",
        "call hostile.run --dev b --set do=trap",
        "call hostile.run --dev b --set do=trap --format agent-tool",
        "call hostile.run --dev b --set do=trap --format amplifier",
        "call hostile.run --dev b --set do=blocks",
        "call hostile.run --dev b --set do=sleep --set n=600000 --timeout 200",
        "call kv.counter --bundle kv-counter.toolbundle --trust-key example.pub.pem --set action=get --set counter=a",
        "call hostile.run --dev b --inpt {}",
        "show kv.counter --bundle kv-counter.toolbundle --trust-key example.pub.pem",
        "show kv.counter --drivers --bundle kv-counter.toolbundle --trust-key example.pub.pem",
        "show kv.counter --as agent-tool --bundle kv-counter.toolbundle --trust-key example.pub.pem",
        "serve --bundle gone",
        "mcp token alice --tools text.stats",
        "mcp token alice --tools text.stats --add tokens.toml",
        "mcp config claude-desktop",
        "mcp config claude-code",
        "mcp config codex",
        "mcp config claude-code --write",
        "demo",
        "demo --remove",
    ] {
        script.run(words);
    }
}

pub(super) fn trust(forms: &mut Forms) {
    let machine = Machine::new();
    let one = key(&machine, "one");
    key(&machine, "two");
    let digest = ship(&machine, &release(1), &one, "1.toolbundle");
    ship(&machine, &reworded(release(2)), &one, "2.toolbundle");
    let fingerprint = document(&machine, "acme", "one");
    let mut script = Script::new(&machine, forms);
    script.run("publisher new other --public-key two.pub.pem --key two.pem -o other.json");
    script.run("publisher show other.json");
    script.run_with(
        "trust add acme.publisher.json --prefix text --prefix text-stats",
        &[format!("--fingerprint={fingerprint}")],
    );
    for words in [
        "trust add other.json --prefix other",
        "trust list",
        "trust show acme",
        "trust show nobody",
        "verify 1.toolbundle",
        "inspect 1.toolbundle",
        "install 1.toolbundle",
        "install 1.toolbundle --channel none",
        "publisher next acme.publisher.json --add two.pub.pem --key one.pem -o next.json",
        "publisher sign next.json --key two.pem",
        "publisher show next.json",
        "publisher channel stable --key two.pem -o stable.json --bundle 1.toolbundle",
        "publisher show stable.json",
        "trust update acme next.json",
        "trust update acme",
    ] {
        script.run(words);
    }
    std::fs::copy(machine.path("2.toolbundle"), machine.path("1.toolbundle")).unwrap();
    let mut script = Script::new(&machine, forms);
    script.run("update");
    script.run("list");
    script.run(&format!(
        "publisher revoke acme --bundle {digest}=stolen --key one.pem -o revoked.json"
    ));
    script.run("publisher show revoked.json");
    script.run("trust update acme --revocations revoked.json");
    script.run("call text.stats --set text=a");
    script.run("verify --all");
    script.run("remove text.stats-bundle");
    script.run("remove text.stats-bundle");
    script.run("trust remove acme");
}

pub(super) fn publish(forms: &mut Forms) {
    let machine = importing::with("functions.wasm");
    machine.write("pass.txt", "open sesame\n");
    crate::hostile::add(&machine, "b");
    crate::hostile::add(&machine, "spoiled");
    let contract = "spoiled/tools/hostile.run/TOOL.md";
    let text = machine
        .text(contract)
        .replace("timeout_ms: 5000", "timeout_ms: 0");
    machine.write(contract, text);
    let mut script = Script::new(&machine, forms);
    for words in [
        "publisher keys new --out acme.pem",
        "publisher keys new --out acme.pem",
        "publisher keys show acme.pem",
        "publisher keys show acme.pub.pem",
        "publisher keys export acme.pem",
        "publisher keys export acme.pem --out again.pub.pem",
        "publisher keys import acme.pem --out again.pem",
        "publisher keys encrypt acme.pem --out safe.pem --passphrase-file pass.txt",
        "new greeter --id text.greet",
        "new greeter --id text.greet",
        "check b",
        "check spoiled",
        "build b",
        "test --dev b",
        "pack b -o packed",
        "publisher sign packed --key acme.pem",
        "pack b -o b.toolbundle --key acme.pem",
        "verify b.toolbundle --trust-key acme.pub.pem",
        "verify b",
        "inspect b",
        "inspect b.toolbundle --trust-key acme.pub.pem",
        "inspect b/drivers/hostile/driver.wasm",
        "publisher push gone oci://127.0.0.1:1/acme/b:1",
        "publisher pull oci://127.0.0.1:1/acme/b:1 -o pulled --plain-http",
        "import component functions.wasm --id other -o imported",
        "import amplifier functions.wasm --id other -o amplifier",
    ] {
        script.run(words);
    }
}

pub(super) fn registry(forms: &mut Forms) {
    let (machine, one) = trusting();
    ship(&machine, &release(1), &one, "b.toolbundle");
    let web = Web::serve(machine.read("b.toolbundle"));
    let url = web.url("b.toolbundle");
    let mut script = Script::new(&machine, forms);
    script.run(&format!(
        "publisher pull {url} -o pulled.toolbundle --plain-http"
    ));
    if let Some(server) = Server::start() {
        let words = format!(
            "publisher push b.toolbundle {} --plain-http",
            server.reference("1")
        );
        let pushed = machine.toolward(&format!("{words} --json")).ends(0);
        forms.add(OF_A_REGISTRY, &words, form(&pushed));
    }
}

/// Imports of other hosts' tools, and `doctor` on a machine without compilers.
pub(super) fn others(forms: &mut Forms) {
    let service = Service::answering("200 OK", "{}");
    let (_, said) = importing::aml::imported(&service);
    forms.add(
        "command-import-aml",
        "import aml tools --prefix desk -o desk",
        json!([0, said]),
    );
    let machine = importing::runloop::agent(&service);
    Script::new(&machine, forms).run("import runloop agent --id mail -o mail");
    // Hides all compilers of this machine.
    let machine = Machine::new().with_own_cache();
    for words in ["doctor --language all", "doctor"] {
        let run = machine.toolward(&format!("{words} --json"));
        let ended = run.env("PATH", machine.path("no-programs")).end();
        let mut value = form(&ended);
        let checks = value.pointer_mut("/1/checks").and_then(Value::as_array_mut);
        for check in checks.into_iter().flatten() {
            if OF_THE_KERNEL.contains(&check["name"].as_str().unwrap()) {
                check["state"] = "<state>".into();
                check["message"] = "<message>".into();
            }
        }
        forms.add(&file_of(words), words, value);
    }
}

pub(super) fn policy(forms: &mut Forms) {
    let machine = notes();
    machine.write("policy.toml", notes_policy(&machine, ""));
    machine.write("broad.toml", "[[grant]]\npublisher = \"acme\"\n");
    machine.write("slip.toml", "[[grants]]\n");
    let mut script = Script::new(&machine, forms);
    for words in [
        "policy list --dev notes-append",
        "policy list --dev notes-append --policy-file policy.toml",
        "show notes.append --policy --dev notes-append",
        "show notes.append --policy --dev notes-append --policy-file policy.toml",
        "policy suggest --dev notes-append",
        "policy check broad.toml",
        "policy check slip.toml",
        "policy grant notes.append --dev notes-append",
        "show notes.append --dev notes-append --policy-file policy.toml",
        "show notes.append --as agent-tool --dev notes-append --policy-file policy.toml",
        "call notes.append --dev notes-append --policy-file policy.toml --set note=list --set text=Tea",
    ] {
        script.run(words);
    }
}
