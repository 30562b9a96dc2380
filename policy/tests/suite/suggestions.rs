//! The lines that would allow blocked tools.

use toolward_contract::driver::Driver;
use toolward_contract::tool::Tool;
use toolward_policy::{
    Choices, ChosenLines, Contract, Implementation, OpenChoice, Policy, SecretChoice, SecretSource,
    Why, routes, suggest,
};

use crate::support::{
    allowed, ask, ask_of, denial, driver, http_driver, machine, named_tool, policy, suggested_for,
    tool,
};

fn suggested(policy: &Policy, tools: &[Tool], driver: &Driver) -> String {
    suggested_for(policy, tools, (driver, "acme"), None)
}

#[test]
fn a_bundle_gets_the_fewest_tables_with_what_to_choose_marked() {
    let driver = driver(
        "network: { egress: [api.example, mail.example] }\nrequires: { tools: [text.stats] }",
    );
    let tools = [
        tool(
            "requires: { network: [api.example], secrets: [github-token], workspace: [/notes/a] }\n\
             mutates: ['external:mail']",
        ),
        named_tool(
            "notes.read",
            "requires: { workspace: [/notes, '/docs/*.md'] }\nmutates: ['database:counters']",
        ),
    ];
    assert_eq!(
        suggested(&Policy::empty(), &tools, &driver),
        r#"[[workspace]]
path = "/docs"
directory = "/path/to/choose/docs" # choose

[[workspace]]
path = "/notes"
directory = "/path/to/choose/notes" # choose

[[secret]]
slug = "github-token"
publisher = "acme"
env = "TOOLWARD_CHOOSE" # choose
origin = "https://host.invalid" # choose; the driver reaches api.example, mail.example
header = "authorization" # choose, or `query`

[[service]]
name = "mail"
hosts = ["host.invalid"] # choose; the driver reaches mail.example

[[grant]]
publisher = "acme"
tool = "notes.append@1"
requires = ["network:api.example", "workspace:/notes/a", "secret:github-token"]
mutates = ["external:mail"]

[[grant]]
publisher = "acme"
tool = "notes.append@1"
driver = "acme.notes"
requires = ["tool:text.stats"]

[[grant]]
publisher = "acme"
tool = "notes.read@1"
requires = ["workspace:/docs/*.md", "workspace:/notes"]
mutates = ["database:counters"]

[[grant]]
publisher = "acme"
tool = "notes.read@1"
driver = "acme.notes"
requires = ["tool:text.stats"]
"#
    );
}

#[test]
fn no_value_of_a_bundle_says_where_a_secret_comes_from_or_goes() {
    let driver = driver("network: { egress: [evil.example, 'x:8443'] }");
    for slug in ["aws-secret-access-key", "path", "x"] {
        let tool = tool(&format!(
            "requires: {{ secrets: [{slug}] }}\nmutates: ['external:{slug}']"
        ));
        let lines = suggested(&Policy::empty(), std::slice::from_ref(&tool), &driver);
        let pasted = policy(&lines);
        let secret = &pasted.tables().secrets[0];
        assert!(secret.is_placeholder(), "{lines}");
        assert_eq!(
            secret.source,
            SecretSource::Env("TOOLWARD_CHOOSE".to_owned())
        );
        assert_eq!(secret.binding.as_ref().unwrap().host, "host.invalid");
        assert!(pasted.tables().services[0].is_placeholder(), "{lines}");
        let decision = ask(&pasted, &tool, &driver);
        let missing = &denial(&decision).missing;
        assert!(
            missing.iter().all(|one| one.why == Why::NotChosen),
            "{missing:?}"
        );
        assert_eq!(missing.len(), 2);
        // With the choices made, the same lines are all that the tool needs.
        let chosen = lines
            .replace("host.invalid", "a.example")
            .replace("TOOLWARD_CHOOSE", "T");
        assert!(ask(&policy(&chosen), &tool, &driver).grant().is_some());
    }
}

#[test]
fn nothing_in_the_lines_passes_for_something_else() {
    // For a class that no host knows, only the class is named.
    let tool = tool("mutates: ['gpu:x\u{202e}\u{200b}y']");
    let text = suggested(&Policy::empty(), &[tool], &driver(""));
    assert!(text.contains("accepts = [\"gpu\"] # "), "{text}");
    assert!(!text.contains(['\u{202e}', '\u{200b}']), "{text}");
    let (tool, driver) = (
        named_tool("notes.read", "requires: { database: [a] }"),
        driver(""),
    );
    let publisher = "dev:/home/\u{202e}x";
    let decision = ask_of(&Policy::empty(), (&tool, publisher), (&driver, publisher));
    let lines = denial(&decision).lines_to_add();
    assert!(!lines.contains('\u{202e}'), "{lines}");
    let decision = ask_of(&policy(&lines), (&tool, publisher), (&driver, publisher));
    assert!(decision.grant().is_some());
}

#[test]
fn nothing_is_suggested_where_nothing_is_missing() {
    assert_eq!(suggested(&Policy::empty(), &[tool("")], &driver("")), "");
}

#[test]
fn what_is_there_already_is_not_suggested_again() {
    let policy = policy(
        r#"
        [[workspace]]
        path = "/"
        directory = "/srv/all"
        [[grant]]
        publisher = "acme"
        requires = ["workspace:/docs"]
        "#,
    );
    let tool = tool("requires: { workspace: [/docs] }\nmutates: ['workspace:/notes']");
    assert_eq!(
        suggested(&policy, &[tool], &driver("")),
        "[[grant]]\npublisher = \"acme\"\ntool = \"notes.append@1\"\nmutates = [\"workspace:/notes\"]\n"
    );
}

#[test]
fn placeholders_keep_clear_of_each_other_and_of_earlier_ones() {
    let tools = [
        tool("requires: { workspace: [/a/b, /a-b, '/ä'] }"),
        named_tool("notes.read", "requires: { workspace: [/] }"),
    ];
    let first = suggested(&Policy::empty(), &tools[..1], &driver(""));
    let policy = policy(&first);
    assert!(
        policy
            .tables()
            .workspaces
            .iter()
            .all(|workspace| workspace.is_placeholder())
    );
    assert_eq!(policy.tables().workspaces.len(), 3);
    let second = suggested(&policy, &tools, &driver(""));
    let both = policy.layer(Policy::from_toml(&second).unwrap()).unwrap();
    assert!(ask(&both, &tools[1], &driver("")).grant().is_some());
    // The lines of a single tool avoid existing directories, too.
    let lines = denial(&ask(
        &crate::support::policy(&first),
        &tools[1],
        &driver(""),
    ))
    .lines_to_add();
    let one = crate::support::policy(&first).layer(Policy::from_toml(&lines).unwrap());
    assert!(one.is_ok());
}

#[test]
fn lines_for_a_foreign_driver_name_its_publisher() {
    let (tool, driver) = (tool("requires: { database: [a] }"), driver(""));
    let decision = ask_of(&Policy::empty(), (&tool, "acme"), (&driver, "other"));
    let lines = denial(&decision).lines_to_add();
    assert!(lines.contains("driver_publisher = \"other\"\n"), "{lines}");
    assert!(lines.contains("driver = \"acme.notes\"\n"), "{lines}");
    let decision = ask_of(&policy(&lines), (&tool, "acme"), (&driver, "other"));
    assert!(decision.grant().is_some());
}

#[test]
fn unsigned_work_is_named_by_its_directory() {
    let (tool, driver) = (tool("requires: { database: [a] }"), driver(""));
    let publisher = "dev:/home/me/my \"tools\"";
    let decision = ask_of(&Policy::empty(), (&tool, publisher), (&driver, publisher));
    let policy = policy(&denial(&decision).lines_to_add());
    assert!(
        ask_of(&policy, (&tool, publisher), (&driver, publisher))
            .grant()
            .is_some()
    );
    assert!(
        ask_of(&policy, (&tool, "acme"), (&driver, "acme"))
            .grant()
            .is_none()
    );
}

#[test]
fn what_no_line_can_give_is_a_comment() {
    let policy = policy("[[deny]]\ncapabilities = [\"network:*\"]\n");
    let tools = [tool(
        "requires: { network: [a.example], tools: ['*'] }\nmutates: ['secret:*']",
    )];
    let text = suggested(&policy, &tools, &driver("network: { egress: [a.example] }"));
    assert_eq!(
        text.lines()
            .filter(|line| line.starts_with("# notes.append@1: "))
            .count(),
        3
    );
    assert!(text.lines().all(|line| line.starts_with('#')), "{text}");
}

#[test]
fn a_name_that_no_policy_takes_gets_no_lines() {
    let (tool, driver) = (tool("requires: { database: [a] }"), driver(""));
    let publisher = "dev:/x\n[[grant]]\npublisher = \"acme\"";
    let decision = ask_of(&Policy::empty(), (&tool, publisher), (&driver, publisher));
    let lines = denial(&decision).lines_to_add();
    assert!(lines.lines().all(|line| line.starts_with('#')), "{lines}");
}

#[test]
fn a_secret_stands_where_the_drivers_own_request_has_it() {
    let suggested_with = |request: &str| {
        let driver = http_driver(&format!("endpoint: /, {request}"));
        let tool = tool("requires: { network: [api.example], secrets: [key] }");
        suggested(&Policy::empty(), &[tool], &driver)
    };
    for (request, line) in [
        (
            "method: GET, query_template: { token: '${secrets.key}' }",
            "query = \"token\" # choose, or `header`\n",
        ),
        (
            "method: GET, headers: { X-Api-Key: '${secrets.key}' }",
            "header = \"x-api-key\" # choose, or `query`\n",
        ),
        (
            "method: GET",
            "header = \"authorization\" # choose, or `query`\n",
        ),
    ] {
        let lines = suggested_with(request);
        assert!(lines.contains(line), "{request}: {lines}");
        // A bundle must not choose the destination, regardless of its request.
        assert!(
            lines.contains("origin = \"https://host.invalid\" # choose"),
            "{lines}"
        );
        let read = Policy::from_toml(&lines);
        assert!(read.is_ok(), "{read:?}\n{lines}");
    }
}

#[test]
fn the_suggested_secret_passes_with_the_method_of_the_drivers_request() {
    let tool = tool("requires: { secrets: [key] }\nmutates: ['network:api.example']");
    for method in ["GET", "POST", "DELETE"] {
        let driver = http_driver(&format!(
            "endpoint: /, method: {method}, headers: {{ X-Api-Key: '${{secrets.key}}' }}"
        ));
        let lines = suggested(&Policy::empty(), std::slice::from_ref(&tool), &driver);
        assert!(
            lines.contains(&format!("methods = [\"{method}\"]\n")),
            "{lines}"
        );
        let chosen = lines
            .replace("host.invalid", "api.example")
            .replace("TOOLWARD_CHOOSE", "T");
        let decision = ask(&policy(&chosen), &tool, &driver);
        let secrets = decision.grant().expect("allowed").secrets();
        let binding = secrets[0].binding.as_ref().expect("it goes out");
        assert_eq!(binding.methods, [method]);
    }
}

#[test]
fn narrower_lines_give_one_host_or_workspace_and_the_tool_runs_without_the_others() {
    let driver = driver("network: { egress: [a.example, b.example] }");
    let wide =
        tool("requires: { network: [a.example, b.example] }\nmutates: ['database:counters']");
    let decision = ask(&Policy::empty(), &wide, &driver);
    let lines = denial(&decision).narrower_lines();
    assert!(lines.contains("partial = true"), "{lines}");
    assert!(lines.contains("network:a.example"), "{lines}");
    assert!(!lines.contains("b.example"), "{lines}");
    assert!(lines.contains("database:counters"), "{lines}");
    // The lines are enough.
    let decision = ask(&policy(&lines), &wide, &driver);
    allowed(&decision);
    // With one host, nothing can be left out.
    let one = tool("requires: { network: [a.example] }");
    let decision = ask(&Policy::empty(), &one, &driver);
    assert_eq!(denial(&decision).narrower_lines(), "");
}

/// The lines for a tool of acme and a tool of other, and for two services, with these choices:
/// secrets as `NAME=SOURCE@ORIGIN`, and hosts. Each tool has a driver of its publisher, and both
/// use a secret of the same name.
fn chosen(secrets: &[&str], hosts: &[&str]) -> ChosenLines {
    let mut choices = Choices::default();
    for secret in secrets {
        let (name, choice) = secret.split_once('=').expect("NAME=SOURCE");
        choices.add_secret(name, SecretChoice::parse(choice).expect("a choice"));
    }
    hosts.iter().for_each(|host| choices.add_host(host));
    let tools = [
        named_tool(
            "notes.append",
            "requires: { secrets: [token] }\nmutates: ['external:mail', 'external:chat']",
        ),
        named_tool("notes.read", "requires: { secrets: [token] }"),
    ];
    let of = |id: &str, tool: &str| {
        let source = format!(
            "---\nid: {id}\nname: A driver\ndescription: Does it.\nversion: 1.0.0\nkind: component\n\
             component: driver.wasm\nimplements:\n  - {{ tool: {tool}, version: \"^1.0.0\" }}\n---\n"
        );
        Driver::parse("DRIVER.md", &source)
            .into_result()
            .expect("a driver")
    };
    let drivers = [
        of("acme.notes", "notes.append"),
        of("other.notes", "notes.read"),
    ];
    let publishers = ["acme", "other"];
    let contracts = tools.iter().zip(publishers);
    let contracts: Vec<_> = contracts
        .map(|(tool, publisher)| Contract { tool, publisher })
        .collect();
    let implementations = drivers.iter().zip(publishers);
    let implementations: Vec<_> = implementations
        .map(|(driver, publisher)| Implementation { driver, publisher })
        .collect();
    let (policy, machine) = (Policy::empty(), machine());
    let routes = routes(&contracts, &implementations, &policy, &machine).expect("routes");
    suggest(&routes, None, false, &policy, &machine, &choices)
}

#[test]
fn a_choice_is_for_the_secret_of_one_publisher_and_for_one_service() {
    let lines = chosen(
        &[
            "acme:token=env:ACME@https://api.acme.example",
            "other:token=file:/run/other@https://api.other.example",
        ],
        &[
            "mail=mail.example",
            "chat=chat.example",
            "chat=chat.example:8443",
        ],
    );
    assert_eq!(
        (&lines.open[..], &lines.unused[..], &lines.ambiguous[..]),
        (&[][..], &[][..], &[][..])
    );
    let pasted = policy(&lines.lines);
    let secrets = pasted.tables().secrets.iter();
    let secrets: Vec<_> = secrets
        .map(|one| {
            (
                one.publisher.to_string(),
                one.binding.as_ref().unwrap().host.clone(),
            )
        })
        .collect();
    assert_eq!(
        secrets,
        [("acme", "api.acme.example"), ("other", "api.other.example")]
            .map(|(publisher, host)| (publisher.to_owned(), host.to_owned()))
    );
    let shown = lines.lines;
    assert!(
        shown.contains("name = \"mail\"\nhosts = [\"mail.example\"]\n"),
        "{shown}"
    );
    let both = "name = \"chat\"\nhosts = [\"chat.example\", \"chat.example:8443\"]\n";
    assert!(shown.contains(both), "{shown}");
}

#[test]
fn a_workspace_below_another_gets_the_directory_that_was_chosen_for_it() {
    let (tool, driver) = (
        tool("requires: { workspace: [/docs, /docs/private] }"),
        driver(""),
    );
    let publisher = "acme";
    let contracts = [Contract {
        tool: &tool,
        publisher,
    }];
    let implementations = [Implementation {
        driver: &driver,
        publisher,
    }];
    let (none, machine) = (Policy::empty(), machine());
    let routes = routes(&contracts, &implementations, &none, &machine).expect("routes");
    let lines = |chosen: &[(&str, &str)]| {
        let own = |(path, directory): &(&str, &str)| (path.to_string(), directory.to_string());
        let choices = Choices {
            workspaces: chosen.iter().map(own).collect(),
            ..Choices::default()
        };
        suggest(&routes, None, false, &none, &machine, &choices)
    };
    let one = lines(&[("/docs", "/srv/docs")]);
    assert!(!one.lines.contains("/docs/private\"\ndirectory"));
    let both = lines(&[("/docs", "/srv/docs"), ("/docs/private", "/srv/private")]);
    assert_eq!((both.open, both.unused), (vec![], vec![]));
    let inner = "path = \"/docs/private\"\ndirectory = \"/srv/private\"\n";
    assert!(both.lines.contains(inner), "{}", both.lines);
    let pasted = policy(&both.lines);
    assert_eq!(pasted.tables().workspaces.len(), 2);
}

#[test]
fn a_choice_that_could_be_meant_for_several_is_in_no_line() {
    let lines = chosen(&["token=env:T@https://a.example"], &["b.example"]);
    assert_eq!(lines.ambiguous.len(), 2, "{:?}", lines.ambiguous);
    assert!(
        lines.ambiguous[0].contains("PUBLISHER:token"),
        "{:?}",
        lines.ambiguous
    );
    assert!(
        lines.ambiguous[1].contains("SERVICE=b.example"),
        "{:?}",
        lines.ambiguous
    );
    assert_eq!(lines.open.len(), 4, "{:?}", lines.open);
    assert!(!lines.lines.contains("a.example") && !lines.lines.contains("b.example"));
    let other = |open: &OpenChoice| matches!(open, OpenChoice::Secret { publisher, .. } if publisher == "other");
    assert!(lines.open.iter().any(other), "{:?}", lines.open);
    // One service is chosen, and the rest stays open.
    let lines = chosen(&["acme:token=env:T@https://a.example"], &["mail=b.example"]);
    assert_eq!(
        (lines.open.len(), lines.ambiguous.len()),
        (2, 0),
        "{:?}",
        lines.open
    );
    assert_eq!(
        lines.lines.matches("a.example").count(),
        1,
        "{}",
        lines.lines
    );
    assert_eq!(
        lines.lines.matches("b.example").count(),
        1,
        "{}",
        lines.lines
    );
    let lines = chosen(&["third:token=env:T@https://a.example"], &["sms=b.example"]);
    assert_eq!(lines.unused, ["third:token", "sms=b.example"]);
}
