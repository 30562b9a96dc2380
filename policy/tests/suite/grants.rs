//! What a grant holds, and what it does not, case by case.

use toolward_policy::{Decision, Grant, OnViolation, Policy, Why};

use crate::support::{
    EVERYWHERE, allowed, ask, ask_of, denial, driver, granted, missing, named_tool, policy, tool,
};

const NONE: &[&str] = &[];

#[test]
fn an_empty_list_gives_nothing() {
    let policy = policy("[[grant]]\npublisher = \"acme\"\nrequires = []\nmutates = []\n");
    let tool = tool("requires: { network: [api.example] }");
    let decision = ask(&policy, &tool, &driver(EVERYWHERE));
    assert_eq!(
        missing(&decision),
        ["`network:api.example`: no rule gives it"]
    );
}

#[test]
fn a_rule_is_about_its_publisher_tools_and_major_version_only() {
    let tool = tool("requires: { database: [counters] }");
    let driver = driver("");
    let rule = |lines: &str| {
        policy(&format!(
            "[[grant]]\n{lines}\nrequires = [\"database:counters\"]"
        ))
    };
    for lines in [
        "publisher = \"acme\"",
        "publisher = \"acme\"\ntool = \"notes.*\"",
        "publisher = \"acme\"\ntool = \"notes.append@1\"",
        "publisher = \"acme\"\ndriver_publisher = \"acme\"\ndriver = \"acme.notes\"",
    ] {
        assert_eq!(
            granted(&ask(&rule(lines), &tool, &driver)).len(),
            1,
            "{lines}"
        );
    }
    for lines in [
        "publisher = \"other\"",
        "publisher = \"acme\"\ntool = \"notes\"",
        "publisher = \"acme\"\ntool = \"notes.append@2\"",
        "publisher = \"acme\"\ndriver_publisher = \"other\"",
        "publisher = \"acme\"\ndriver = \"acme.other\"",
        "publisher = \"dev:/srv/acme\"",
    ] {
        let decision = ask(&rule(lines), &tool, &driver);
        assert_eq!(denial(&decision).missing[0].why, Why::NoRule, "{lines}");
    }
}

#[test]
fn a_driver_of_another_publisher_needs_a_rule_that_names_that_publisher() {
    let tool = tool("requires: { database: [counters] }");
    let driver = driver("");
    let own = "[[grant]]\npublisher = \"acme\"\nrequires = [\"database:counters\"]";
    let pair = |policy: &Policy| ask_of(policy, (&tool, "acme"), (&driver, "other"));
    assert_eq!(denial(&pair(&policy(own))).missing.len(), 1);
    let named = format!("{own}\ndriver_publisher = \"other\"");
    assert_eq!(
        granted(&pair(&policy(&named))),
        ["bucket counters of acme, read-only"]
    );
}

#[test]
fn the_network_is_narrowed_to_what_the_driver_uses() {
    // `*` without a port is every host at the default port.
    let tool = tool("requires: { network: ['*', '*:8443'] }");
    let narrow = driver("network: { egress: [api.example, 'b.example:8443'] }");
    let policy_for = |entries: &str| {
        policy(&format!(
            "[[grant]]\npublisher = \"acme\"\nrequires = [{entries}]"
        ))
    };
    let both = policy_for("\"network:api.example\", \"network:b.example:8443\"");
    assert_eq!(
        granted(&ask(&both, &tool, &narrow)),
        [
            "GET, HEAD and OPTIONS to api.example by https",
            "GET, HEAD and OPTIONS to b.example:8443 by https",
        ]
    );
    let one = policy_for("\"network:api.example\"");
    assert_eq!(
        missing(&ask(&one, &tool, &narrow)),
        ["`network:b.example:8443`: no rule gives it"]
    );
    // Even where policy gives everything, no egress is no network.
    let all = policy_for("\"network:*\"");
    assert_eq!(granted(&ask(&all, &tool, &driver(""))), NONE);
}

#[test]
fn only_declared_hosts_are_granted_though_policy_gives_more() {
    let policy = policy("[[grant]]\npublisher = \"acme\"\nmutates = [\"network:*\"]");
    let tool = tool("requires: { network: [a.example] }\nmutates: ['network:b.example']");
    assert_eq!(
        granted(&ask(&policy, &tool, &driver(EVERYWHERE))),
        [
            "GET, HEAD and OPTIONS to a.example by https",
            "all methods to b.example by https",
        ]
    );
}

#[test]
fn what_one_rule_says_of_its_hosts_is_no_leave_for_those_of_another() {
    let policy = policy(
        r#"
        [[grant]]
        publisher = "acme"
        requires = ["network:*.example"]

        [[grant]]
        publisher = "acme"
        requires = ["network:dev.example"]
        plain_http = true
        addresses = ["127.0.0.1/8", "::1"]
        guest_headers = ["Cookie"]
        "#,
    );
    let tool = tool("requires: { network: ['*.example'] }\nmutates: ['network:dev.example']");
    // Reading is given twice; changing dev.example by nobody.
    let decision = ask(&policy, &tool, &driver(EVERYWHERE));
    assert_eq!(
        missing(&decision),
        ["`network:dev.example` (to change it): rules give it for reading only"]
    );
    let tool = crate::support::tool("requires: { network: ['*.example'] }");
    assert_eq!(
        granted(&ask(&policy, &tool, &driver(EVERYWHERE))),
        [
            "GET, HEAD and OPTIONS to *.example by https",
            "GET, HEAD and OPTIONS to dev.example by http and https, at 127.0.0.0/8, ::1/128, too, \
             with the guest's own cookie",
        ]
    );
}

/// Which of http and https passes to which port.
fn passing(grant: &Grant) -> Vec<String> {
    let mut passing = Vec::new();
    for (scheme, default) in [("http", 80), ("https", 443)] {
        for port in [80, 443, 8080] {
            let mut hosts = grant.network().iter();
            if hosts.any(|host| {
                (scheme == "https" || host.plain_http)
                    && host.host.matches("a.example", port, port == default)
            }) {
                passing.push(format!("{scheme}:{port}"));
            }
        }
    }
    passing
}

#[test]
fn plain_http_passes_to_port_80_and_to_a_port_that_the_policy_names() {
    const BLOCKED: &[&str] = &[];
    let default: &[&str] = &["http:80", "https:443"];
    let at_443: &[&str] = &["https:443"];
    let named_443: &[&str] = &["http:443", "https:443"];
    let named_80: &[&str] = &["http:80", "https:80"];
    let named_8080: &[&str] = &["http:8080", "https:8080"];
    let ports = ["", ":80", ":443", ":8080"];
    // A line for each port that the contract declares, a column for each that the
    // policy names.
    let matrix = [
        [default, BLOCKED, BLOCKED, BLOCKED],
        [BLOCKED, named_80, BLOCKED, BLOCKED],
        [at_443, BLOCKED, named_443, BLOCKED],
        [BLOCKED, BLOCKED, BLOCKED, named_8080],
    ];
    let egress = driver("network: { egress: ['*', '*:80', '*:443', '*:8080'] }");
    for (declared, line) in ports.iter().zip(matrix) {
        for (written, expected) in ports.iter().zip(line) {
            for host in ["a.example", "*.example", "*"] {
                let own = policy(&format!(
                    "[[grant]]\npublisher = \"acme\"\nplain_http = true\n\
                     requires = [\"network:{host}{written}\"]"
                ));
                let tool = tool(&format!("requires: {{ network: ['a.example{declared}'] }}"));
                let decision = ask(&own, &tool, &egress);
                let found = decision.grant().map(passing).unwrap_or_default();
                assert_eq!(found, expected, "a.example{declared} by {host}{written}");
            }
        }
    }
}

#[test]
fn plain_http_to_a_service_passes_to_port_80_and_to_a_port_that_its_table_names() {
    for (written, used, expected) in [
        ("a.example", "a.example", &["http:80", "https:443"][..]),
        ("a.example", "a.example:443", &["https:443"]),
        ("a.example:443", "a.example", &["http:443", "https:443"]),
        (
            "a.example:8080",
            "a.example:8080",
            &["http:8080", "https:8080"],
        ),
    ] {
        let policy = policy(&format!(
            "[[grant]]\npublisher = \"acme\"\nplain_http = true\nmutates = [\"external:mail\"]\n\
             [[service]]\nname = \"mail\"\nhosts = [\"{written}\"]"
        ));
        let driver = driver(&format!("network: {{ egress: ['{used}'] }}"));
        let decision = ask(&policy, &tool("mutates: ['external:mail']"), &driver);
        let found = decision.grant().map(passing).unwrap_or_default();
        assert_eq!(found, expected, "{used} by {written}");
    }
}

#[test]
fn the_closest_workspace_at_or_above_a_path_is_opened() {
    let policy = policy(
        r#"
        [[workspace]]
        path = "/"
        directory = "/srv/all"
        [[workspace]]
        path = "/notes"
        directory = "/srv/notes"
        max_bytes = 10
        max_files = 2
        [[grant]]
        publisher = "acme"
        mutates = ["workspace:/"]
        "#,
    );
    let tool = tool(
        "requires: { workspace: [/docs, /notesx, /notes/a] }\nmutates: ['workspace:/notes/a/b']",
    );
    assert_eq!(
        granted(&ask(&policy, &tool, &driver(""))),
        [
            "/docs read-only, / being /srv/all",
            "/notes/a read-only, /notes being /srv/notes, at most 10 bytes more, at most 2 files more",
            "/notesx read-only, / being /srv/all",
            "/notes/a/b read-write, /notes being /srv/notes, at most 10 bytes more, at most 2 files more",
        ]
    );
}

#[test]
fn a_workspace_without_a_directory_is_missing() {
    let policy = policy(
        r#"
        [[workspace]]
        path = "/notes/inner"
        directory = "/srv/inner"
        [[grant]]
        publisher = "acme"
        requires = ["workspace:/notes"]
        "#,
    );
    let tool = tool("requires: { workspace: [/notes] }");
    let decision = ask(&policy, &tool, &driver(""));
    assert_eq!(denial(&decision).missing[0].why, Why::NoWorkspace);
}

#[test]
fn a_secret_is_that_of_the_publisher_and_goes_out_where_its_table_says() {
    let tables = r#"
        [[secret]]
        slug = "token"
        publisher = "other"
        origin = "https://other.example"
        header = "authorization"
        [[grant]]
        publisher = "acme"
        requires = ["secret:token"]
    "#;
    let tool = tool("requires: { secrets: [token] }");
    let decision = ask(&policy(tables), &tool, &driver(""));
    assert_eq!(denial(&decision).missing[0].why, Why::NoSecret);

    let both = format!(
        "{tables}\n[[secret]]\nslug = \"token\"\npublisher = \"acme\"\nfile = \"t\"\n\
         origin = \"https://API.example:8443\"\nheader = \"X-Key\"\nmethods = [\"POST\"]\n\
         path_prefix = \"/v1/\""
    );
    let decision = ask(&policy(&both), &tool, &driver(""));
    assert_eq!(
        granted(&decision),
        ["secret token of acme, in `x-key` of POST to https://api.example:8443/v1/"]
    );
    let secret = &allowed(&decision).grant.secrets()[0];
    assert!(!secret.reveal && !secret.store);
}

#[test]
fn revealing_is_a_line_of_its_own() {
    let table = "[[secret]]\nslug = \"token\"\npublisher = \"acme\"\nenv = \"T\"\n";
    let rule = "[[grant]]\npublisher = \"acme\"\nrequires = [\"secret:token\"]\n";
    let tool = tool("requires: { secrets: [token] }");
    // It goes out nowhere, so without `reveal` it is of no use.
    let decision = ask(&policy(&format!("{table}{rule}")), &tool, &driver(""));
    assert_eq!(denial(&decision).missing[0].why, Why::SecretNotUsable);
    let reveal = format!("{table}{rule}reveal = [\"token\"]");
    let decision = ask(&policy(&reveal), &tool, &driver(""));
    assert_eq!(
        granted(&decision),
        ["secret token of acme, revealed to the guest"]
    );
    assert!(allowed(&decision).grant.secrets()[0].binding.is_none());
}

#[test]
fn storing_a_secret_needs_no_table_and_is_no_leave_to_use_it() {
    let rule = "[[grant]]\npublisher = \"acme\"\nmutates = [\"secret:token\"]\n";
    let stores = tool("mutates: ['secret:token']");
    assert_eq!(
        granted(&ask(&policy(rule), &stores, &driver(""))),
        ["secret token of acme, and storing it"]
    );
    let uses = tool("requires: { secrets: [token] }\nmutates: ['secret:token']");
    let decision = ask(&policy(rule), &uses, &driver(""));
    assert_eq!(missing(&decision).len(), 1);
    assert_eq!(denial(&decision).missing[0].why, Why::OnlyStoring);
}

#[test]
fn using_and_storing_a_secret_are_declared_and_given_apart() {
    let table = "[[secret]]\nslug = \"token\"\npublisher = \"acme\"\nenv = \"T\"\n\
                 origin = \"https://api.example\"\nheader = \"authorization\"\n";
    let list = |holds: bool| if holds { "[\"secret:token\"]" } else { "[]" };
    let each = [false, true];
    let cases = each.into_iter().flat_map(|uses| {
        let stores = each.into_iter().map(move |stores| (uses, stores));
        stores.flat_map(move |declared| {
            let read = each.into_iter().map(move |read| (declared, read));
            read.flat_map(move |(declared, read)| {
                each.into_iter().map(move |write| (declared, (read, write)))
            })
        })
    });
    for ((uses, stores), (used, stored)) in cases {
        let case = format!("declared {uses} {stores}, given {used} {stored}");
        let names = if uses { "[token]" } else { "[]" };
        let tool = tool(&format!(
            "requires: {{ secrets: {names} }}\nmutates: {}",
            list(stores)
        ));
        let reveal = if used { "reveal = [\"token\"]" } else { "" };
        let policy = policy(&format!(
            "{table}[[grant]]\npublisher = \"acme\"\nrequires = {}\nmutates = {}\n{reveal}",
            list(used),
            list(stored)
        ));
        let decision = ask(&policy, &tool, &driver(""));
        if (uses && !used) || (stores && !stored) {
            assert!(decision.grant().is_none(), "{case}");
            continue;
        }
        let secrets = allowed(&decision).grant.secrets();
        assert_eq!(secrets.len(), usize::from(uses || stores), "{case}");
        for secret in secrets {
            assert_eq!(secret.binding.is_some(), uses, "{case}");
            assert_eq!(secret.reveal, uses, "{case}");
            assert_eq!(secret.store, stores, "{case}");
        }
    }
}

#[test]
fn a_secret_that_the_contract_stores_and_the_driver_uses_is_asked_for_twice() {
    let rule = "[[grant]]\npublisher = \"acme\"\nmutates = [\"secret:token\"]\n";
    let driver = driver("requires: { secrets: [token] }");
    let decision = ask(&policy(rule), &tool("mutates: ['secret:token']"), &driver);
    let missing = &denial(&decision).missing;
    assert_eq!(missing.len(), 1);
    assert!(!missing[0].mutates);
}

#[test]
fn what_still_waits_for_a_choice_gives_nothing() {
    let rule = "[[grant]]\npublisher = \"acme\"\nrequires = [\"secret:token\"]\nmutates = [\"external:mail\"]\n";
    let secret = |env: &str, host: &str| {
        format!(
            "{rule}[[secret]]\nslug = \"token\"\npublisher = \"acme\"\nenv = \"{env}\"\n\
             origin = \"https://{host}\"\nheader = \"authorization\"\n"
        )
    };
    let uses = tool("requires: { secrets: [token] }");
    for (env, host, waits) in [
        ("TOOLWARD_CHOOSE", "a.example", true),
        ("TOKEN", "host.invalid", true),
        ("TOKEN", "a.example", false),
    ] {
        let decision = ask(&policy(&secret(env, host)), &uses, &driver(""));
        match &decision {
            Decision::Deny(denial) => assert_eq!(denial.missing[0].why, Why::NotChosen),
            _ => assert!(!waits, "{env} {host}"),
        }
        assert_eq!(decision.grant().is_none(), waits, "{env} {host}");
    }
    let service = |hosts: &str| format!("{rule}[[service]]\nname = \"mail\"\nhosts = [{hosts}]\n");
    let everywhere = driver(EVERYWHERE);
    for (hosts, waits) in [
        ("\"host.invalid\"", true),
        ("\"a.example\", \"host.invalid\"", true),
        ("\"a.example\"", false),
    ] {
        let sends = tool("mutates: ['external:mail']");
        let decision = ask(&policy(&service(hosts)), &sends, &everywhere);
        assert_eq!(decision.grant().is_none(), waits, "{hosts}");
    }
}

#[test]
fn a_bucket_is_the_publishers_own_unless_another_shares_it_by_name() {
    let rule = "[[grant]]\npublisher = \"acme\"\nrequires = [\"database:*\"]\n";
    let share = "[[share]]\ndatabase = \"counters\"\nfrom = \"other\"\nto = \"acme\"\n";
    let elsewhere = "[[share]]\ndatabase = \"counters\"\nfrom = \"third\"\nto = \"other\"\n";
    let tool = tool("requires: { database: [counters] }");
    let own = ["bucket counters of acme, read-only"];
    assert_eq!(granted(&ask(&policy(rule), &tool, &driver(""))), own);
    let policy_of = |tables: &str| policy(&format!("{rule}{tables}"));
    assert_eq!(
        granted(&ask(&policy_of(elsewhere), &tool, &driver(""))),
        own
    );
    assert_eq!(
        granted(&ask(&policy_of(share), &tool, &driver(""))),
        ["bucket counters of other, read-only"]
    );
    let all = crate::support::tool("requires: { database: ['*'] }");
    assert_eq!(
        granted(&ask(&policy_of(share), &all, &driver(""))),
        [
            "bucket counters of other, read-only",
            "bucket * of acme, read-only"
        ]
    );
    // A share gives nothing without a rule.
    let decision = ask(&policy(share), &tool, &driver(""));
    assert_eq!(denial(&decision).missing[0].why, Why::NoRule);
}

#[test]
fn a_service_reaches_its_hosts_as_far_as_the_driver_uses_them() {
    let rule = "[[grant]]\npublisher = \"acme\"\nmutates = [\"external:mail\"]\n";
    let service = "[[service]]\nname = \"mail\"\nhosts = [\"a.example\", \"*.b.example\"]\n";
    let tool = tool("mutates: ['external:mail']");
    let used = driver("network: { egress: [x.b.example, c.example] }");
    assert_eq!(
        denial(&ask(&policy(rule), &tool, &used)).missing[0].why,
        Why::NoService
    );
    let policy = policy(&format!("{rule}{service}"));
    assert_eq!(
        granted(&ask(&policy, &tool, &used)),
        ["all methods to x.b.example by https"]
    );
    assert_eq!(granted(&ask(&policy, &tool, &driver(""))), NONE);
}

#[test]
fn a_deny_wins_and_names_itself() {
    let rules = r#"
        [[deny]]
        capabilities = ["network:*.internal"]
        [[grant]]
        publisher = "acme"
        requires = ["network:*"]
    "#;
    let policy = Policy::from_toml_named(rules, "deny.toml").unwrap();
    let driver = driver(EVERYWHERE);
    let inside = tool("requires: { network: ['db.internal:8080', api.example] }");
    let decision = ask(&policy, &inside, &driver);
    assert_eq!(
        missing(&decision),
        [
            "`network:db.internal:8080`: denied by [[deny]] 1 (deny.toml:2): network:*.internal \
             for tools * of everybody"
        ]
    );
    let outside = tool("requires: { network: [api.example] }");
    assert_eq!(granted(&ask(&policy, &outside, &driver)).len(), 1);
    // A wider declaration takes in what is denied.
    let wide = tool("requires: { network: ['*'] }");
    assert_eq!(missing(&ask(&policy, &wide, &driver)).len(), 1);
}

#[test]
fn a_deny_of_a_host_reaches_the_hosts_of_a_service() {
    let policy = policy(
        r#"
        [[deny]]
        capabilities = ["network:mail.internal"]
        [[service]]
        name = "mail"
        hosts = ["mail.internal"]
        [[grant]]
        publisher = "acme"
        mutates = ["external:mail"]
        "#,
    );
    let tool = tool("mutates: ['external:mail']");
    let decision = ask(&policy, &tool, &driver(EVERYWHERE));
    assert!(matches!(denial(&decision).missing[0].why, Why::DeniedBy(_)));
}

#[test]
fn a_deny_without_capabilities_blocks_the_whole_tool_and_an_empty_one_nothing() {
    let driver = driver("");
    let all = policy("[[deny]]\ntool = \"notes.*\"\n");
    let decision = ask(&all, &tool(""), &driver);
    assert_eq!(denial(&decision).denied_by.len(), 1);
    assert!(denial(&decision).missing.is_empty());
    let other = named_tool("text.stats", "");
    assert!(ask(&all, &other, &driver).grant().is_some());
    let nothing = policy("[[deny]]\ncapabilities = []\n");
    assert!(ask(&nothing, &tool(""), &driver).grant().is_some());
}

#[test]
fn a_denied_publisher_is_denied_as_publisher_of_the_driver_too() {
    let policy = policy("[[deny]]\npublisher = \"other\"\n");
    let (tool, driver) = (tool(""), driver(""));
    let decision = ask_of(&policy, (&tool, "acme"), (&driver, "other"));
    assert_eq!(denial(&decision).denied_by.len(), 1);
    assert!(
        ask_of(&policy, (&tool, "acme"), (&driver, "acme"))
            .grant()
            .is_some()
    );
}

#[test]
fn the_strictest_answer_to_violations_holds() {
    let end = "[[grant]]\npublisher = \"acme\"\non_violation = \"end\"\n";
    let record = "[defaults]\non_violation = \"record\"\n";
    let of = |text: &str| {
        let decision = ask(&policy(text), &tool(""), &driver(""));
        allowed(&decision).grant.on_violation()
    };
    assert_eq!(of(""), OnViolation::Record);
    assert_eq!(of(end), OnViolation::End);
    assert_eq!(of(&format!("{record}{end}")), OnViolation::End);
    assert_eq!(of("[defaults]\non_violation = \"end\"\n"), OnViolation::End);
}

#[test]
fn the_rules_that_gave_something_are_named_in_order() {
    let policy = policy(
        r#"
        [[grant]]
        publisher = "acme"
        tool = "notes.*"
        requires = ["database:b"]

        [[grant]]
        publisher = "acme"
        tool = "text.*"
        requires = ["database:a"]

        [[grant]]
        publisher = "acme"
        requires = ["database:a"]
        "#,
    );
    let tool = tool("requires: { database: [a, b] }");
    let decision = ask(&policy, &tool, &driver(""));
    let rules: Vec<String> = allowed(&decision)
        .rules
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        rules,
        [
            "[[grant]] 1 (line 2): tools notes.* of acme",
            "[[grant]] 3 (line 12): tools * of acme",
        ]
    );
}

/// As many entries as a contract and a driver can hold, each wide enough to meet
/// all of the others.
#[test]
fn a_declaration_made_to_be_slow_is_decided_all_the_same() {
    let mut tool = tool("");
    let mut driver = driver("");
    let read = |text: String| text.parse().unwrap();
    let labels: Vec<String> = (0..40).map(|depth| "a.".repeat(depth)).collect();
    for labels in &labels {
        let wide = format!("network:*.{labels}example");
        tool.requires.capabilities.insert(read(wide));
    }
    let deepest = labels.last().unwrap();
    for number in 0..2000 {
        let host = format!("network:h{number}.{deepest}example");
        driver.egress.insert(read(host));
        let path = format!("workspace:/d{number}*/*x*y*z*");
        tool.mutates.insert(read(path));
    }
    let policy = policy(
        r#"
        [[workspace]]
        path = "/"
        directory = "/srv"
        [[grant]]
        publisher = "acme"
        requires = ["network:*"]
        mutates = ["workspace:/"]
        [[deny]]
        capabilities = ["network:*.internal", "workspace:/x*y/*a*b*"]
        "#,
    );
    let started = std::time::Instant::now();
    let decision = ask(&policy, &tool, &driver);
    assert_eq!(allowed(&decision).grant.network().len(), 2000);
    assert!(started.elapsed() < std::time::Duration::from_secs(20));
}
