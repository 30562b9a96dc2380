//! `[[exec]]`: which tables are valid, and which allow a tool's program.

use serde_json::{Value, json};
use toolward_contract::NoScope;
use toolward_contract::driver::Driver;
use toolward_contract::index::Index;
use toolward_contract::tool::Tool;
use toolward_policy::{AskReason, Decision, DecisionContext, ExecWhy, Policy, WorkspaceAccess};

use crate::support::{ask, ask_of, denial, policy};

const DIGEST: &str = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";

fn line(more: &str) -> String {
    format!(
        "[[exec]]\npublisher = \"acme\"\ntool = \"pages.render\"\ncommand = \"/opt/render\"\n\
         digest = \"{DIGEST}\"\nargs = [\"--json\"]\n{more}"
    )
}

/// The contract and the driver of an entry with a program.
fn entry(capabilities: &[&str], secrets: &[&str]) -> (Tool, Driver) {
    attached(capabilities, secrets, &json!(["--json"]))
}

fn attached(capabilities: &[&str], secrets: &[&str], args: &Value) -> (Tool, Driver) {
    let document = json!({ "version": 1, "tools": [{
        "id": "pages.render", "description": "Renders.",
        "transport": { "kind": "exec", "command": "/opt/render", "args": args },
        "input_schema": {}, "result_schema": {},
        "capabilities": capabilities, "secrets": secrets,
    }] });
    let index = Index::parse("tools.json", document.to_string().as_bytes(), &NoScope)
        .into_result()
        .expect("valid");
    let contract = index.contracts().remove(0);
    let driver = index
        .tools
        .first()
        .expect("one entry")
        .driver(&contract, "tools.json");
    let driver = driver.expect("a program").expect("it can be named");
    (contract, driver)
}

fn why(text: &str, (tool, driver): &(Tool, Driver)) -> Option<ExecWhy> {
    match ask(&policy(text), tool, driver) {
        Decision::Deny(denial) => denial.program.map(|lack| lack.why),
        Decision::Allow(_) | Decision::Ask(..) => None,
    }
}

#[test]
fn a_line_is_read_with_all_that_it_gives() {
    let policy = policy(&line(
        "interpreter = { path = \"/usr/bin/python3\", digest = \"TOOLWARD_CHOOSE\" }\n\
         env = { \"mail/key\" = \"MAIL_KEY\" }\nnetwork = \"unfiltered\"\nprocesses = true\n\
         workspaces = { \"/notes\" = \"read-write\", \"/docs\" = \"read-only\" }\n\
         limits = { timeout_ms = 5000, memory_mib = 64, cpu_seconds = 2, output_bytes = 10, file_bytes = 0 }\n",
    ));
    let [rule] = policy.tables().execs.as_slice() else {
        panic!("one line");
    };
    assert_eq!(rule.digest.to_string(), DIGEST);
    assert!(
        rule.is_placeholder(),
        "the interpreter's digest is not chosen"
    );
    assert_eq!(rule.env["mail/key"], "MAIL_KEY");
    assert!(rule.network && rule.processes);
    assert_eq!(rule.workspaces["/docs"], WorkspaceAccess::ReadOnly);
    let limits = rule.limits;
    assert_eq!((limits.timeout_ms, limits.memory_mib), (5000, 64));
    assert_eq!((limits.cpu_seconds, limits.output_bytes), (2, 10));
    assert_eq!(limits.file_bytes, 0);
}

#[test]
fn a_line_that_names_no_one_program_or_gives_what_it_should_not_is_refused() {
    let command = |path: &str| line("").replace("/opt/render", path);
    for (text, code) in [
        (command("/bin/sh"), "policy-exec"),
        (command("/usr/bin/python3.12"), "policy-exec"),
        (command("/usr/bin/env"), "policy-exec"),
        (command("/usr/bin/git"), "policy-exec"),
        (command("opt/render"), "policy-exec"),
        (command("/opt/../render"), "policy-exec"),
        (line("").replace("pages.render", "pages.*"), "policy-exec"),
        (line("").replace("pages.render", "*"), "policy-exec"),
        (
            line("").replace(DIGEST, DIGEST.trim_end_matches('2')),
            "policy-exec",
        ),
        (
            line("").replace(DIGEST, &DIGEST.to_uppercase()),
            "policy-exec",
        ),
        (
            line("").replace("args = [\"--json\"]\n", ""),
            "policy-missing-key",
        ),
        (
            line("").replace("\"--json\"", "\"a\\u0000\""),
            "policy-exec",
        ),
        (line("network = \"filtered\"\n"), "policy-exec"),
        (line("network = true\n"), "policy-wrong-type"),
        (line("workspaces = { \"/a\" = \"write\" }\n"), "policy-exec"),
        (line("env = { key = \"LD_PRELOAD\" }\n"), "policy-exec"),
        (line("env = { key = \"PATH\" }\n"), "policy-exec"),
        (line("env = { key = \"a=b\" }\n"), "policy-exec"),
        (line("env = { a = \"X\", b = \"X\" }\n"), "policy-exec"),
        (line("limits = { memory_mib = 1 }\n"), "policy-exec"),
        (line("limits = { timeout_ms = 0 }\n"), "policy-exec"),
        (
            line("limits = { output_bytes = 99999999 }\n"),
            "policy-exec",
        ),
        (line("limits = { fuel = 1 }\n"), "policy-unknown-key"),
        (line("shell = true\n"), "policy-unknown-key"),
        (
            line("interpreter = { path = \"/usr/bin/env\", digest = \"TOOLWARD_CHOOSE\" }\n"),
            "policy-exec",
        ),
        (line("") + &line(""), "policy-duplicate"),
        (
            line("") + &line("").replace("pages.render", "pages.render@1"),
            "policy-duplicate",
        ),
    ] {
        let refused = Policy::from_toml(&text).expect_err(&text);
        assert_eq!(refused.code(), code, "{text}");
        assert!(refused.line().is_some(), "{text}");
    }
}

#[test]
fn without_its_line_a_program_is_blocked_and_explained_with_lines_that_run_nothing() {
    let entry = entry(&["fs:/notes", "net:a.example"], &["key", "other"]);
    let (tool, driver) = &entry;
    let empty = policy("");
    let decision = ask(&empty, tool, driver);
    let lack = denial(&decision).program.as_ref().expect("no line");
    assert_eq!(lack.why, ExecWhy::NoLine);
    let lines = denial(&decision).lines_to_add();
    for part in [
        "[[exec]]",
        "command = \"/opt/render\"",
        "args = [\"--json\"]",
        "digest = \"TOOLWARD_CHOOSE\"",
        "workspaces.\"/notes\" = \"read-write\"",
        "env.\"key\" = \"TOOLWARD_CHOOSE\"",
        "env.\"other\" = \"TOOLWARD_CHOOSE\"",
        "\n# network = \"unfiltered\"",
    ] {
        assert!(lines.contains(part), "{part} in {lines}");
    }
    assert_eq!(why(&lines, &entry), Some(ExecWhy::NotChosen));
    let explained = toolward_policy::explain(
        &toolward_policy::Contract {
            tool,
            publisher: "acme",
        },
        &toolward_policy::Implementation {
            driver,
            publisher: "acme",
        },
        &empty,
        &DecisionContext::default(),
    )
    .to_string();
    assert!(explained.contains("/opt/render --json"), "{explained}");
    assert!(explained.contains("OUTSIDE THE SANDBOX"), "{explained}");
    assert!(
        explained.contains("missing no [[exec]] is for it"),
        "{explained}"
    );
}

#[test]
fn with_its_line_a_person_is_asked_though_nothing_is_declared() {
    let (tool, driver) = entry(&[], &[]);
    let decision = ask(&policy(&line("")), &tool, &driver);
    let Decision::Ask(allowed, reasons) = &decision else {
        panic!("{decision:?}");
    };
    assert!(reasons.contains(&AskReason::Mutates));
    assert!(allowed.effects.writes && allowed.effects.risk == 2);
    assert_eq!(
        allowed.grant.program().expect("its line").command,
        "/opt/render"
    );
    // A written approval needs a rule that names the tool.
    for (grant, asks) in [
        (
            "[[grant]]\npublisher = \"acme\"\npreapproved = true\n",
            true,
        ),
        (
            "[[grant]]\npublisher = \"acme\"\ntool = \"pages.render\"\npreapproved = true\n",
            false,
        ),
    ] {
        let decision = ask(&policy(&(line("") + grant)), &tool, &driver);
        assert_eq!(matches!(decision, Decision::Ask(..)), asks, "{grant}");
    }
}

#[test]
fn a_line_has_to_say_what_the_document_says() {
    let nothing = entry(&[], &[]);
    assert_eq!(why(&line(""), &nothing), None);
    let others = [json!([]), json!(["--json", "--all"]), json!(["--JSON"])];
    for args in others {
        let entry = attached(&[], &[], &args);
        assert_eq!(why(&line(""), &entry), Some(ExecWhy::Args), "{args}");
    }
    let text = line("");
    for (text, expected) in [
        (text.replace("/opt/render", "/opt/other"), ExecWhy::Command),
        (text.replace("\"acme\"", "\"zeta\""), ExecWhy::NoLine),
        (text.replace("pages.render", "pages.other"), ExecWhy::NoLine),
        (
            text.replace("pages.render", "pages.render@2"),
            ExecWhy::NoLine,
        ),
        (text.replace(DIGEST, "TOOLWARD_CHOOSE"), ExecWhy::NotChosen),
        (
            line("network = \"unfiltered\"\n"),
            ExecWhy::NetworkNotDeclared,
        ),
        (
            line("env = { key = \"KEY\" }\n"),
            ExecWhy::SecretNotDeclared("key".to_owned()),
        ),
        (
            line("workspaces = { \"/notes\" = \"read-only\" }\n"),
            ExecWhy::WorkspaceNotDeclared("/notes".to_owned()),
        ),
    ] {
        assert_eq!(why(&text, &nothing), Some(expected), "{text}");
    }
    let denied = line("") + "[[deny]]\ntool = \"pages.render\"\n";
    let decision = ask(&policy(&denied), &nothing.0, &nothing.1);
    assert!(matches!(decision, Decision::Deny(_)));
}

#[test]
fn another_publishers_program_runs_for_nobody() {
    let (tool, driver) = entry(&[], &[]);
    let text = line("")
        + "[[grant]]\npublisher = \"acme\"\ndriver_publisher = \"zeta\"\ndriver = \"pages.render\"\n";
    let decision = ask_of(&policy(&text), (&tool, "acme"), (&driver, "zeta"));
    let lack = denial(&decision).program.as_ref().expect("it is foreign");
    assert_eq!(lack.why, ExecWhy::Foreign);
}

#[test]
fn what_is_declared_is_given_by_grant_and_line_or_the_tool_is_blocked() {
    let all = entry(&["fs:/notes", "net:a.example"], &["key"]);
    let tables = "[[workspace]]\npath = \"/notes\"\ndirectory = \"/srv/notes\"\n\
        [[secret]]\nslug = \"key\"\npublisher = \"acme\"\nenv = \"KEY\"\n\
        [[grant]]\npublisher = \"acme\"\nrequires = [\"secret:key\"]\nreveal = [\"key\"]\n\
        mutates = [\"workspace:/notes\", \"network:a.example\"]\n";
    let given = "network = \"unfiltered\"\nenv = { key = \"KEY\" }\n\
        workspaces = { \"/notes\" = \"read-write\" }\n";
    let text = format!("{}{tables}", line(given));
    let decision = ask(&policy(&text), &all.0, &all.1);
    let Decision::Ask(allowed, _) = &decision else {
        panic!("{decision:?}");
    };
    // The host's own process gets no part of the grant.
    let grant = &allowed.grant;
    assert!(grant.network().is_empty() && grant.workspaces().is_empty());
    assert!(grant.secrets()[0].reveal);
    assert!(allowed.effects.network);

    let notes = || "workspace:/notes".parse().expect("valid");
    for (from, to, expected) in [
        ("network = \"unfiltered\"\n", "", ExecWhy::NetworkNotGiven),
        (
            "env = { key = \"KEY\" }\n",
            "",
            ExecWhy::SecretWithoutVariable("key".to_owned()),
        ),
        (
            "reveal = [\"key\"]\n",
            "",
            ExecWhy::SecretNotRevealed("key".to_owned()),
        ),
        (
            "env = \"KEY\"\n",
            "",
            ExecWhy::SecretStored("key".to_owned()),
        ),
        (
            "workspaces = { \"/notes\" = \"read-write\" }\n",
            "",
            ExecWhy::WorkspaceNotGiven(notes()),
        ),
        (
            "\"read-write\"",
            "\"read-only\"",
            ExecWhy::WorkspaceNotDeclared("/notes".to_owned()),
        ),
        (
            "path = \"/notes\"",
            "path = \"/\"",
            ExecWhy::WorkspacePart(notes()),
        ),
    ] {
        assert!(text.contains(from), "{from}");
        let text = text.replace(from, to);
        assert_eq!(why(&text, &all), Some(expected), "{text}");
    }
    let ungranted = text.replace("\"network:a.example\"", "\"network:b.example\"");
    let decision = ask(&policy(&ungranted), &all.0, &all.1);
    assert_eq!(denial(&decision).missing.len(), 1);
}

#[test]
fn a_program_gets_no_part_of_a_workspace_no_bucket_and_no_unknown_class() {
    let part = "workspace:/notes/*.md".parse().expect("valid");
    let bucket = "database:drafts".parse().expect("valid");
    let glob = entry(&["fs:/notes/*.md"], &[]);
    let tables = "[[workspace]]\npath = \"/notes\"\ndirectory = \"/srv/notes\"\n\
        [[grant]]\npublisher = \"acme\"\nmutates = [\"workspace:/notes\", \"database:drafts\"]\n";
    let given = "workspaces = { \"/notes/*.md\" = \"read-write\" }\n";
    let text = format!("{}{tables}", line(given));
    assert_eq!(why(&text, &glob), Some(ExecWhy::WorkspacePart(part)));
    let drafts = entry(&["db:drafts"], &[]);
    let text = format!("{}{tables}", line(""));
    assert_eq!(why(&text, &drafts), Some(ExecWhy::NotForPrograms(bucket)));
    let unknown = entry(&["gpu:any"], &[]);
    let decision = ask(&policy(&text), &unknown.0, &unknown.1);
    assert_eq!(denial(&decision).missing.len(), 1);
}

#[test]
fn a_running_server_takes_over_fewer_lines_and_no_others() {
    let earlier = policy(&line(""));
    assert!(policy("").narrows(&earlier).is_ok());
    assert!(earlier.narrows(&earlier).is_ok());
    for text in [
        line("processes = true\n"),
        line("limits = { cpu_seconds = 1 }\n"),
        line("").replace(DIGEST, &DIGEST.replace('a', "b")),
    ] {
        let wider = policy(&text).narrows(&earlier).expect_err(&text);
        assert!(wider.to_string().contains("[[exec]]"), "{wider}");
    }
}
