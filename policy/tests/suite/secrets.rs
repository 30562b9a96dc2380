//! The secrets of a grant, and where they are sent.

use toolward_policy::{SecretPosition, Why};

use crate::support::{allowed, ask, denial, driver, granted, http_driver, missing, policy, tool};

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
fn a_secret_may_be_tied_to_a_parameter_instead_of_a_header() {
    let tables = r#"
        [[secret]]
        slug = "MAPS_KEY"
        publisher = "acme"
        env = "MAPS_KEY"
        origin = "https://maps.example"
        query = "key"
        path_prefix = "/maps/"
        [[grant]]
        publisher = "acme"
        requires = ["secret:MAPS_KEY"]
    "#;
    let tool = tool("requires: { secrets: [MAPS_KEY] }");
    let decision = ask(&policy(tables), &tool, &driver(""));
    assert_eq!(
        granted(&decision),
        [
            "secret MAPS_KEY of acme, as the parameter `key` of GET, HEAD to https://maps.example:443/maps/"
        ]
    );
    let binding = allowed(&decision).grant.secrets()[0].binding.clone();
    let position = binding.map(|binding| binding.position.clone());
    assert_eq!(position, Some(SecretPosition::Query("key".to_owned())));
}

#[test]
fn revealing_is_a_line_of_its_own() {
    let table = "[[secret]]\nslug = \"token\"\npublisher = \"acme\"\nenv = \"T\"\n";
    let rule = "[[grant]]\npublisher = \"acme\"\nrequires = [\"secret:token\"]\n";
    let tool = tool("requires: { secrets: [token] }");
    // The secret is sent nowhere, so it can't be used without `reveal`.
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
fn a_secret_that_the_drivers_request_can_never_send_blocks_the_tool() {
    let lines = |ties: &str| {
        policy(&format!(
            "[[secret]]\nslug = \"token\"\npublisher = \"acme\"\nenv = \"T\"\n\
             {ties}\n\
             [[grant]]\npublisher = \"acme\"\nrequires = [\"secret:token\"]\n\
             mutates = [\"network:api.example\"]\n"
        ))
    };
    let tool = tool("requires: { secrets: [token] }\nmutates: ['network:api.example']");
    let driver = http_driver(
        "endpoint: '/v1/items/${input.id}', method: POST, headers: { X-Key: '${secrets.token}' }",
    );
    let own = "origin = \"https://api.example\"\n";
    for ties in [
        "",
        "path_prefix = \"/v1\"\n",
        "path_prefix = \"/v1/items/\"\n",
        // The placeholder may be `of`.
        "path_prefix = \"/v1/items/of\"\n",
    ] {
        let fits = lines(&format!(
            "{own}{ties}header = \"X-Key\"\nmethods = [\"POST\"]"
        ));
        assert!(ask(&fits, &tool, &driver).grant().is_some(), "{ties}");
    }
    let elsewhere = "origin = \"https://other.example\"\nheader = \"X-Key\"\nmethods = [\"POST\"]";
    let port = "origin = \"https://api.example:8443\"\nheader = \"X-Key\"\nmethods = [\"POST\"]";
    let path = |prefix: &str| {
        format!("{own}path_prefix = \"{prefix}\"\nheader = \"X-Key\"\nmethods = [\"POST\"]")
    };
    let (item, other) = (path("/v1/item"), path("/v2"));
    let with = |ties: &str| format!("{own}{ties}");
    let (get, header, query) = (
        with("header = \"X-Key\""),
        with("header = \"authorization\"\nmethods = [\"POST\"]"),
        with("query = \"key\"\nmethods = [\"POST\"]"),
    );
    for (ties, words) in [
        (
            elsewhere,
            "allows https://other.example:443, and the driver's request sends it to https://api.example:443",
        ),
        (port, "allows https://api.example:8443, and"),
        (
            item.as_str(),
            "allows paths below /v1/item, and the driver's request sends it to /v1/items/…",
        ),
        (other.as_str(), "allows paths below /v2, and"),
        (
            get.as_str(),
            "allows `methods` GET, HEAD, and the driver's request sends it with POST",
        ),
        (
            header.as_str(),
            "allows it in the header `authorization`, and the driver's request sends it in the header `x-key`",
        ),
        (
            query.as_str(),
            "allows it as the parameter `key`, and the driver's request sends it in the header `x-key`",
        ),
    ] {
        let decision = ask(&lines(ties), &tool, &driver);
        let missing = missing(&decision);
        assert_eq!(missing.len(), 1, "{missing:?}");
        assert!(missing[0].contains(words), "{missing:?}");
    }
}
