//! A complete scenario of a publisher and an operator, with a registry behind a proxy, a token
//! server and blobs at other hosts. Tools in three languages are published, updated by tag and by
//! channel, held and accepted, narrowed, revoked and replaced.

use super::elsewhere::TRUST;
use super::fronted::Fronted;
use super::{
    ID, add, document, is_not_loaded, key, listed, refused_run, release_of, reworded, runs, ship,
};
use crate::support::{Draft, Machine};

const CHANNEL: &str = "oci://registry.example/acme/toolward-channel:stable";
const REVOCATIONS: &str = "oci://registry.example/acme/toolward-revocations:acme";

/// Examples in Rust, JavaScript and Go, and a second one in Rust that needs the network.
const EXAMPLES: [&str; 4] = ["text-stats", "html-text", "units-dates", "http-fetch"];

/// The prefixes of acme: ids of bundles, tools and drivers.
const PREFIXES: &str = "--prefix text --prefix text-stats --prefix html --prefix html-text --prefix units \
                        --prefix units-dates --prefix dates --prefix http --prefix http-fetch";

/// Returns a release of an example. The hosts that `http-fetch` declares are replaced by hosts that
/// do not exist.
fn draft(example: &str, sequence: u64) -> Draft {
    let draft = release_of(example, sequence);
    match example {
        "http-fetch" => draft.change("drivers/http-fetch/DRIVER.md", |text| {
            let hosts = "[\"*.wikipedia.org\", \"*.rust-lang.org\", docs.rs, www.rfc-editor.org]";
            text.replace(hosts, "[docs.example, stats.example]")
        }),
        _ => draft,
    }
}

/// Publishes an index of the channel with these releases.
fn announce(fronted: &Fronted, machine: &Machine, bundles: &[String], index: &str, after: &str) {
    let bundles = bundles.iter().map(|file| format!("--bundle {file} "));
    let bundles: String = bundles.collect();
    let words = format!("publisher channel stable --key index.pem {bundles} -o {index}");
    machine.toolward(&format!("{words} {after}")).ends(0);
    let push = format!("publisher push {index} {CHANNEL}");
    fronted.toolward(machine, &push).ends(0);
}

/// Returns the sequences of the installed bundles, in the order of [`EXAMPLES`].
fn sequences(machine: &Machine) -> [u64; 4] {
    let listed = listed(machine);
    let ids = [
        ID,
        "html.to-text-bundle",
        "units.dates-bundle",
        "http.fetch-bundle",
    ];
    ids.map(|id| {
        let own = listed.iter().find(|one| one["id"] == id);
        own.map_or(0, |one| one["sequence"].as_u64().unwrap())
    })
}

/// Calls a tool in each of the three languages.
#[track_caller]
fn all_run(machine: &Machine) {
    runs(machine);
    for (tool, input, key, output) in [
        ("html.to-text", "html=<b>one</b>", "text", "**one**"),
        ("units.calculate", "expression=1m+2m", "text", "3 m"),
    ] {
        let call = machine.toolward(&format!("call {tool} --set {input}"));
        assert_eq!(call.ends(0).json()[key], output, "{tool}");
    }
}

#[test]
fn releases_are_published_updated_held_accepted_and_revoked_over_a_registry_elsewhere() {
    let Some(fronted) = Fronted::start() else {
        return;
    };
    let machine = Machine::new();
    let one = key(&machine, "one");
    let fingerprint = document(&machine, "acme", "one");
    add(&machine, "acme", PREFIXES, &fingerprint).ends(0);
    machine.configure(&format!("{TRUST}{}", fronted.table(&machine, "")));
    let publish = |draft: &Draft, example: &str, sequence: u64| {
        let file = format!("{example}-{sequence}.toolbundle");
        ship(&machine, draft, &one, &file);
        let tag = format!("{example}:1.{}.0", sequence - 1);
        let push = format!("publisher push {file} oci://registry.example/acme/{tag}");
        fronted.toolward(&machine, &push).ends(0);
        file
    };
    let update = |words: &str| fronted.toolward(&machine, &format!("update {words}"));

    // The four bundles are published and installed.
    for example in EXAMPLES {
        publish(&draft(example, 1), example, 1);
        let install = format!("install oci://registry.example/acme/{example}:1.0.0");
        fronted.toolward(&machine, &install).ends(0);
    }
    all_run(&machine);

    // The bundles are updated by tag.
    for example in EXAMPLES {
        publish(&draft(example, 2), example, 2);
    }
    update("").ends(0);
    assert_eq!(sequences(&machine), [2; 4]);
    all_run(&machine);

    // The bundles are updated by channel: to the releases that it lists, and not to the newest.
    key(&machine, "index");
    let pem = machine.text("index.pub.pem");
    let channel = format!(
        "[[channel]]\nname = \"stable\"\nsource = \"{CHANNEL}\"\nkeys = [\"\"\"{pem}\"\"\"]\n"
    );
    let table = fronted.table(&machine, "");
    machine.configure(&format!("{TRUST}{channel}{table}"));
    let third = EXAMPLES.map(|example| publish(&draft(example, 3), example, 3));
    publish(&draft("text-stats", 4), "text-stats", 4);
    announce(&fronted, &machine, &third, "1.json", "");
    update("").ends(0);
    assert_eq!(sequences(&machine), [3; 4]);
    all_run(&machine);

    // A release is held, and then accepted.
    let [_, html, units, http] = third;
    let file = publish(&reworded(draft("text-stats", 5)), "text-stats", 5);
    let files = [file, html.clone(), units.clone(), http.clone()];
    announce(&fronted, &machine, &files, "2.json", "--after 1.json");
    update("").ends(4);
    assert_eq!(sequences(&machine), [3; 4]);
    let own = |machine: &Machine| {
        let mut listed = listed(machine).into_iter();
        listed.find(|one| one["id"] == ID).unwrap()
    };
    let surface = own(&machine)["held_surface"].clone();
    let accept = format!("update {ID} --accept {}", surface.as_str().unwrap());
    fronted.toolward(&machine, &accept).ends(0);
    assert_eq!(sequences(&machine), [5, 3, 3, 3]);
    all_run(&machine);

    // A grant is narrowed.
    narrowed(&machine);
    all_run(&machine);

    // A release is revoked.
    let digest = own(&machine)["digest"].clone();
    let digest = digest.as_str().unwrap();
    let revoke =
        format!("publisher revoke acme --bundle {digest}=leaks --key one.pem -o list.json");
    machine.toolward(&revoke).ends(0);
    let send = format!("publisher push list.json {REVOCATIONS}");
    fronted.toolward(&machine, &send).ends(0);
    let take = format!("trust update acme --revocations {REVOCATIONS}");
    fronted.toolward(&machine, &take).ends(0);
    is_not_loaded(&machine, "bundle-revoked");
    let ended = refused_run(&machine, update(ID), 3, "channel-mismatch");
    ended.warns("text-stats:1.4.0 is passed over: this release was revoked");

    // The revoked release is replaced by a new one.
    let file = publish(&reworded(draft("text-stats", 6)), "text-stats", 6);
    announce(
        &fronted,
        &machine,
        &[file, html, units, http],
        "3.json",
        "--after 2.json",
    );
    update("").ends(0);
    assert_eq!(sequences(&machine), [6, 3, 3, 3]);
    all_run(&machine);
}

/// The operator grants all hosts, and then only some of them.
#[track_caller]
fn narrowed(machine: &Machine) {
    let before = config(machine);
    let grant = |hosts: &str, more: &str| {
        let rule = "[[grant]]\npublisher = \"acme\"\ntool = \"http.fetch\"\n";
        machine.configure(&format!("{before}\n{rule}requires = [{hosts}]\n{more}"));
    };
    let fetch = |host: &str, code: &str| {
        let call = format!("call http.fetch --set url=https://{host}/");
        let ended = machine.toolward(&call).end();
        assert_ne!(ended.code, Some(0), "{ended}");
        assert_eq!(
            ended.stderr.contains("unauthorised"),
            code == "unauthorised",
            "{ended}"
        );
    };
    let docs = "\"network:docs.example\"";
    grant(&format!("{docs}, \"network:stats.example\""), "");
    // Neither host exists, but both are requested.
    fetch("docs.example", "");
    fetch("stats.example", "");
    grant(docs, "");
    fetch("docs.example", "unauthorised");
    grant(docs, "partial = true\n");
    fetch("docs.example", "");
    fetch("stats.example", "unauthorised");
    let shown = machine.toolward("show http.fetch").ends(0);
    assert!(
        shown
            .stdout
            .contains("not given  network:* but for network:docs.example"),
        "{shown}"
    );
}

fn config(machine: &Machine) -> String {
    let path = machine.home().join(".config/toolward/toolward.toml");
    std::fs::read_to_string(path).unwrap()
}
