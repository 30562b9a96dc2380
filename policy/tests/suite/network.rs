//! The hosts, ports and methods of a grant.

use toolward_policy::Grant;

use crate::support::{EVERYWHERE, ask, driver, granted, missing, policy, tool};

const NONE: &[&str] = &[];

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
    // Without egress a driver has no network, even if the policy grants everything.
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
    // Two rules grant reading, but no rule grants changing dev.example.
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

#[test]
fn a_grant_whose_networks_another_grant_of_its_host_contains_is_left_out() {
    let grants = |second: &str| {
        let rule = |addresses: &str| {
            format!(
                "[[grant]]\npublisher = \"acme\"\nrequires = [\"network:dev.example\"]\n\
                 addresses = [{addresses}]\n"
            )
        };
        let policy = policy(&format!("{}{}", rule("\"10.0.0.0/8\""), rule(second)));
        let tool = tool("requires: { network: [dev.example] }");
        granted(&ask(&policy, &tool, &driver(EVERYWHERE)))
    };
    let wide = "GET, HEAD and OPTIONS to dev.example by https, at 10.0.0.0/8, too";
    assert_eq!(grants("\"10.1.0.0/16\""), [wide]);
    assert_eq!(
        grants("\"::1\""),
        [
            wide,
            "GET, HEAD and OPTIONS to dev.example by https, at ::1/128, too"
        ]
    );
}

/// The ports to which http and https are allowed.
fn passing(grant: &Grant) -> Vec<String> {
    let mut passing = Vec::new();
    for (scheme, default) in [("http", 80), ("https", 443)] {
        for port in [80, 443, 8080] {
            let mut hosts = grant.network().iter();
            if hosts.any(|host| {
                (scheme == "https" || host.terms.plain_http)
                    && host.host.matches("a.example", port, port == default)
            }) {
                passing.push(format!("{scheme}:{port}"));
            }
        }
    }
    passing
}

#[test]
fn plain_http_passes_to_port_80_and_to_a_port_that_the_policy_names_but_for_that_of_https() {
    const BLOCKED: &[&str] = &[];
    let default: &[&str] = &["http:80", "https:443"];
    let at_443: &[&str] = &["https:443"];
    let named_80: &[&str] = &["http:80", "https:80"];
    let named_8080: &[&str] = &["http:8080", "https:8080"];
    let ports = ["", ":80", ":443", ":8080"];
    // One line for each port that the contract declares, and one column for each port that the
    // policy names.
    let matrix = [
        [default, BLOCKED, at_443, BLOCKED],
        [BLOCKED, named_80, BLOCKED, BLOCKED],
        [at_443, BLOCKED, at_443, BLOCKED],
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
        ("a.example:443", "a.example", &["https:443"]),
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
fn an_origin_is_the_same_with_and_without_the_default_port() {
    let spellings = ["api.example", "api.example:443"];
    for declared in spellings {
        for used in spellings {
            for written in spellings {
                let policy = policy(&format!(
                    "[[grant]]\npublisher = \"acme\"\nrequires = [\"network:{written}\"]"
                ));
                let tool = tool(&format!("requires: {{ network: ['{declared}'] }}"));
                let driver = driver(&format!("network: {{ egress: ['{used}'] }}"));
                assert_eq!(
                    granted(&ask(&policy, &tool, &driver)),
                    ["GET, HEAD and OPTIONS to api.example by https"],
                    "{declared}, {used}, {written}"
                );
            }
        }
    }
}

#[test]
fn a_deny_of_the_default_port_denies_both_spellings_and_no_other_port() {
    let denied = |declared: &str| {
        let policy = policy(
            "[[grant]]\npublisher = \"acme\"\nrequires = [\"network:*\", \"network:*:8443\"]\n\
             [[deny]]\ncapabilities = [\"network:api.example:443\"]",
        );
        let tool = tool(&format!("requires: {{ network: ['{declared}'] }}"));
        let driver = driver(&format!("network: {{ egress: ['{declared}'] }}"));
        ask(&policy, &tool, &driver).grant().is_none()
    };
    assert!(denied("api.example"));
    assert!(denied("api.example:443"));
    assert!(!denied("api.example:8443"));
}
