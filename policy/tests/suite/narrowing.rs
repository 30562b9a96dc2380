//! Which changes of a policy a running server may adopt.

use toolward_policy::{Policy, Wider};

use crate::support::{ask, driver, granted, policy, tool};

const POLICY: &str = r#"
[defaults]
approval = "on-mutate"
on_violation = "end"

[network]
ca_file = "/etc/ca.pem"

[resolve]
region = "eu"
allowed_tags = ["pii-safe", "internal"]
denied_tags = ["third-party", "beta"]
publishers = ["acme", "labs"]

[limits]
timeout_ms = { default = 1000, maximum = 5000 }

[[grant]]
publisher = "acme"
tool = "notes.*"
requires = ["network:*.example", "workspace:/notes", "secret:token"]
mutates = ["workspace:/docs"]
reveal = ["token"]
addresses = ["10.0.0.0/8"]
guest_headers = ["cookie"]
preapproved = true

[[grant]]
publisher = "acme"
requires = ["network:plain.example"]
plain_http = true
approval = "always"

[[deny]]
capabilities = ["network:evil.example"]

[[workspace]]
path = "/notes"
directory = "/srv/notes"
max_bytes = 100

[[workspace]]
path = "/docs"
directory = "/srv/docs"

[[secret]]
slug = "token"
publisher = "acme"
env = "TOKEN"
origin = "https://a.example"
header = "x-key"

[[service]]
name = "mail"
hosts = ["a.example"]

[[share]]
database = "counters"
from = "other"
to = "acme"

[[document]]
publisher = "acme"
prompts = ["*"]

[[context]]
publisher = "acme"
tool = "notes.add@1"
principal = "alice"
values.tenant = "north"
"#;

/// Whether [`POLICY`] with one text replaced by another narrows it.
fn edited(from: &str, to: &str) -> Result<(), Wider> {
    assert!(POLICY.contains(from), "{from}");
    policy(&POLICY.replace(from, to)).narrows(&policy(POLICY))
}

/// `length` bytes of [`POLICY`] from `start`.
fn between(start: usize, length: usize) -> &'static str {
    POLICY.get(start..start + length).expect("whole characters")
}

/// A table of [`POLICY`], from its name to the next one.
fn table(name: &str) -> &'static str {
    let (_, rest) = POLICY.split_once(name).expect("the table is there");
    let length = rest.find("\n[").map_or(rest.len(), |end| end + 1);
    between(POLICY.len() - rest.len() - name.len(), length + name.len())
}

#[test]
fn what_gives_less_or_asks_more_is_taken() {
    policy(POLICY).narrows(&policy(POLICY)).unwrap();
    let always = "[defaults]\napproval = \"always\"\non_violation = \"end\"\n";
    Policy::empty().narrows(&Policy::empty()).unwrap();
    policy(always).narrows(&Policy::empty()).unwrap();
    for (from, to) in [
        ("\"network:*.example\", ", "\"network:a.example:443\", "),
        ("\"network:*.example\", ", ""),
        ("\"workspace:/notes\"", "\"workspace:/notes/today\""),
        ("mutates = [\"workspace:/docs\"]\n", ""),
        ("reveal = [\"token\"]\n", ""),
        ("[\"10.0.0.0/8\"]", "[\"10.1.0.0/16\", \"10.2.3.4\"]"),
        ("guest_headers = [\"cookie\"]\n", ""),
        ("preapproved = true\n", ""),
        ("plain_http = true\n", ""),
        ("maximum = 5000", "maximum = 4000"),
        ("default = 1000", "default = 10"),
        ("max_bytes = 100", "max_bytes = 99"),
        ("\"on-mutate\"", "\"always\""),
        ("ca_file = \"/etc/ca.pem\"", ""),
        ("[[deny]]", "[[deny]]\ntool = \"text.*\"\n\n[[deny]]"),
        ("[\"pii-safe\", \"internal\"]", "[\"internal\"]"),
        (
            "[\"third-party\", \"beta\"]",
            "[\"beta\", \"third-party\", \"us\"]",
        ),
        ("[\"acme\", \"labs\"]", "[\"labs\"]"),
        ("publishers = [\"acme\", \"labs\"]\n", ""),
        (table("[[grant]]"), ""),
        (table("[[document]]"), ""),
        (table("[[secret]]"), ""),
        (table("[[workspace]]"), ""),
    ] {
        assert_eq!(edited(from, to), Ok(()), "{from:?} to {to:?}");
    }
}

#[test]
fn what_gives_more_or_may_do_so_is_not_taken() {
    let another = "[[grant]]\npublisher = \"other\"\n\n[[deny]]";
    for (from, to) in [
        ("[[deny]]", another),
        ("tool = \"notes.*\"", "tool = \"*\""),
        // A written approval has more effect in a rule that names its tool.
        ("tool = \"notes.*\"", "tool = \"notes.append\""),
        (
            "tool = \"notes.*\"",
            "tool = \"notes.*\"\ndriver = \"acme.notes\"",
        ),
        (
            "tool = \"notes.*\"",
            "tool = \"notes.*\"\ndriver_publisher = \"other\"",
        ),
        ("\"network:*.example\"", "\"network:*\""),
        ("\"network:*.example\"", "\"network:a.example:8443\""),
        ("\"workspace:/notes\"", "\"workspace:/\""),
        (
            "mutates = [\"workspace:/docs\"]",
            "mutates = [\"workspace:/notes\"]",
        ),
        ("[\"10.0.0.0/8\"]", "[\"0.0.0.0/0\"]"),
        ("[\"10.0.0.0/8\"]", "[\"10.0.0.0/8\", \"::1\"]"),
        ("[\"cookie\"]", "[\"cookie\", \"authorization\"]"),
        (
            "preapproved = true\n",
            "preapproved = true\nplain_http = true\n",
        ),
        (
            "plain_http = true\n",
            "plain_http = true\npreapproved = true\n",
        ),
        // http at this port is new, although https at this port is not.
        ("network:plain.example", "network:plain.example:443"),
        ("approval = \"always\"", "approval = \"auto\""),
        // A grant that grants little but requires approval.
        (table("[[grant]]\npublisher = \"acme\"\nrequires"), ""),
        (table("[[deny]]"), ""),
        ("[\"network:evil.example\"]", "[\"network:worse.example\"]"),
        ("approval = \"on-mutate\"\n", ""),
        ("on_violation = \"end\"\n", ""),
        ("/etc/ca.pem", "/etc/other.pem"),
        ("maximum = 5000", "maximum = 6000"),
        (", maximum = 5000", ""),
        // The host's own value is not known.
        ("[limits]", "[limits]\nfuel = { maximum = 1 }"),
        ("/srv/notes", "/srv/others"),
        ("max_bytes = 100", "max_bytes = 101"),
        ("max_bytes = 100\n", ""),
        ("env = \"TOKEN\"", "env = \"OTHER\""),
        ("https://a.example", "https://b.example"),
        (
            "hosts = [\"a.example\"]",
            "hosts = [\"a.example\", \"b.example\"]",
        ),
        (table("[[service]]"), ""),
        (table("[[share]]"), ""),
        (table("[resolve]"), ""),
        ("region = \"eu\"\n", ""),
        ("region = \"eu\"", "region = \"us\""),
        ("region = \"eu\"", "region = \"global\""),
        ("allowed_tags = [\"pii-safe\", \"internal\"]\n", ""),
        ("[\"pii-safe\", \"internal\"]", "[]"),
        ("[\"pii-safe\", \"internal\"]", "[\"internal\", \"other\"]"),
        ("[\"third-party\", \"beta\"]", "[\"beta\"]"),
        ("denied_tags = [\"third-party\", \"beta\"]\n", ""),
        ("[\"acme\", \"labs\"]", "[\"acme\", \"labs\", \"other\"]"),
        // Another tenant's state; without the table, the state for all principals.
        ("\"north\"", "\"south\""),
        ("\"alice\"", "\"*\""),
        ("\"north\"", "\"north\"\npublic = true"),
        (table("[[context]]"), ""),
        (
            "prompts = [\"*\"]",
            "prompts = [\"*\"]\nresources = [\"*\"]",
        ),
    ] {
        assert!(edited(from, to).is_err(), "{from:?} to {to:?}");
    }
}

#[test]
fn a_policy_that_begins_to_ask_for_regions_or_tags_narrows_one_that_did_not() {
    let without = POLICY.replace(table("[resolve]"), "");
    policy(POLICY).narrows(&policy(&without)).unwrap();
    // Trusted publishers make no difference if nothing is required.
    let believes = format!("{without}\n[resolve]\npublishers = [\"other\"]\n");
    policy(&believes).narrows(&policy(&without)).unwrap();
    policy(POLICY).narrows(&policy(&believes)).unwrap();
    let global = format!("{without}\n[resolve]\nregion = \"global\"\n");
    policy(&global).narrows(&policy(&without)).unwrap();
    assert!(policy(&without).narrows(&policy(&global)).is_err());
    let both = global.replace("\"global\"", "[\"EU\", \"global\"]");
    policy(&global).narrows(&policy(&both)).unwrap();
    assert!(policy(&both).narrows(&policy(&global)).is_err());
}

#[test]
fn without_a_workspace_its_path_falls_to_no_other() {
    let text = r#"
        [[grant]]
        publisher = "acme"
        requires = ["workspace:/notes"]

        [[workspace]]
        path = "/"
        directory = "/srv/all"
    "#;
    let inner = "\n[[workspace]]\npath = \"/notes\"\ndirectory = \"/srv/notes\"\n";
    let (with, without) = (policy(&(text.to_owned() + inner)), policy(text));
    let asked = tool("requires: { workspace: [/notes] }");
    let ask = |policy| granted(&ask(policy, &asked, &driver("")));
    // The directory differs from before.
    assert_ne!(ask(&with), ask(&without));
    assert!(without.narrows(&with).is_err());
}

#[test]
fn without_a_denied_host_a_service_would_be_given() {
    let text = r#"
        [[grant]]
        publisher = "acme"
        mutates = ["external:mail"]

        [[deny]]
        capabilities = ["network:b.example"]

        [[service]]
        name = "mail"
        hosts = ["a.example", "b.example"]
    "#;
    let (with, without) = (policy(text), policy(&text.replace(", \"b.example\"", "")));
    let asked = tool("mutates: ['external:mail']");
    let driver = driver("network: { egress: ['*'] }");
    assert!(ask(&with, &asked, &driver).grant().is_none());
    assert!(ask(&without, &asked, &driver).grant().is_some());
    assert!(without.narrows(&with).is_err());
}

#[test]
fn a_running_server_does_not_take_over_another_spelling_of_an_origin_that_gives_more() {
    let deny = |hosts: &str| policy(&format!("[[deny]]\ncapabilities = [{hosts}]"));
    let (all, one) = (
        deny("\"network:a.example\""),
        deny("\"network:a.example:443\""),
    );
    assert!(one.narrows(&all).is_err());
    // Both rules together deny every port, in either order.
    for both in [
        "\"network:a.example\", \"network:a.example:443\"",
        "\"network:a.example:443\", \"network:a.example\"",
    ] {
        assert!(deny(both).narrows(&all).is_ok());
    }
    let plain = |host: &str| {
        policy(&format!(
            "[[grant]]\npublisher = \"acme\"\nplain_http = true\nrequires = [\"network:{host}\"]"
        ))
    };
    assert!(plain("a.example").narrows(&plain("a.example:443")).is_err());
    let service = |host: &str| {
        policy(&format!(
            "[[service]]\nname = \"mail\"\nhosts = [\"{host}\"]"
        ))
    };
    assert!(
        service("a.example")
            .narrows(&service("a.example:443"))
            .is_err()
    );
}

#[test]
fn a_rule_that_was_strict_must_stay() {
    let rest = "[[grant]]\npublisher = \"acme\"\nrequires = [\"network:a.example\"]\n";
    for key in ["approval = \"always\"", "on_violation = \"end\""] {
        let strict = format!("[[grant]]\npublisher = \"labs\"\n{key}\n");
        let both = policy(&format!("{rest}\n{strict}"));
        both.narrows(&both).unwrap();
        assert!(policy(rest).narrows(&both).is_err(), "without {key}");
    }
    let plain = "[[grant]]\npublisher = \"labs\"\n";
    policy(rest)
        .narrows(&policy(&format!("{rest}\n{plain}")))
        .unwrap();
}
