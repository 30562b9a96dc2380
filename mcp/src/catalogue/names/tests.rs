//! The names of tools, and that no other tool can change them.

use proptest::prelude::*;
use toolward_contract::tool::ToolId;

use super::*;

type Tool<'a> = (Option<&'a str>, &'a str, u64, &'a str);

fn assigned(tools: &[Tool<'_>]) -> Vec<Result<String, NameProblem>> {
    let claims = tools.iter().map(|(given, id, major, publisher)| Claim {
        given: *given,
        id,
        major: *major,
        version: format!("{major}.0.0"),
        publisher,
    });
    let claims: Vec<Claim<'_>> = claims.collect();
    assign(&claims)
}

fn names(tools: &[Tool<'_>]) -> Vec<String> {
    assigned(tools).into_iter().map(Result::unwrap).collect()
}

/// Whether clients accept a name, with 16 characters of a prefix before it.
fn is_accepted(name: &str) -> bool {
    let characters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    (1..=MAX_NAME_CHARS).contains(&name.len())
        && name.chars().all(characters)
        && !name.contains("__")
        && !name.to_ascii_lowercase().starts_with("mcp")
}

#[test]
fn a_tool_is_called_what_its_contract_says_else_by_its_id() {
    let tools = [
        (Some("Count-Words"), "text.stats", 1, "acme"),
        (None, "text.other", 1, "acme"),
        (Some("a.b__c"), "text.third", 1, "acme"),
    ];
    assert_eq!(names(&tools), ["Count-Words", "text_other", "a_b_c"]);
}

#[test]
fn the_first_of_two_tools_keeps_the_name_and_the_other_gets_a_longer_one() {
    let (holder, newcomer) = (
        (None, "a.b-c", 1, "acme"),
        (Some("A_b-C"), "x.y", 1, "evil"),
    );
    assert_eq!(names(&[holder, newcomer]), ["a_b-c", "A_b-C_evil"]);
    assert_eq!(names(&[newcomer, holder]), ["A_b-C", "a_b-c_acme"]);
    let work = (None, "a_b-c", 1, "dev:/home/ada/my work/");
    assert_eq!(names(&[holder, work]), ["a_b-c", "a_b-c_my_work"]);
}

#[test]
fn the_major_that_came_first_keeps_the_name() {
    let (old, new) = (
        (None, "text.stats", 1, "acme"),
        (None, "text.stats", 12, "acme"),
    );
    assert_eq!(names(&[old, new]), ["text_stats", "text_stats_v12"]);
    assert_eq!(names(&[new, old]), ["text_stats", "text_stats_v1"]);
    let renamed = (Some("stats"), "text.stats", 12, "acme");
    assert_eq!(names(&[old, renamed]), ["text_stats", "stats"]);
    // Another publisher's newer major version is told apart by its publisher.
    let other = (None, "text.stats", 3, "evil");
    assert_eq!(names(&[old, other]), ["text_stats", "text_stats_evil"]);
    let third = (None, "text.stats", 4, "evil");
    let expected = ["text_stats", "text_stats_evil", "text_stats_evil_v4"];
    assert_eq!(names(&[old, other, third]), expected);
}

#[test]
fn a_tool_for_which_there_is_no_name_is_left_out_and_the_others_are_served() {
    let named = assigned(&[
        (Some("send"), "mail.send", 1, "acme"),
        (Some("send_evil-corp"), "own.a", 1, "acme"),
        (Some("send_evil-corp_v2"), "own.b", 1, "acme"),
        (Some("Send"), "post.send", 2, "evil-corp"),
        (None, "text.stats", 1, "acme"),
    ]);
    let [Ok(_), Ok(_), Ok(_), Err(error), Ok(last)] = &named[..] else {
        panic!("{named:?}");
    };
    assert_eq!(last, "text_stats");
    assert_eq!(error.code(), "mcp-name-taken");
    let text = error.to_string();
    assert!(text.contains("mail.send@1.0.0 by acme"), "{text}");
    assert!(text.contains("post.send@2.0.0 by evil-corp"), "{text}");
}

#[test]
fn no_tool_passes_for_the_servers_own_or_for_a_clients() {
    for (given, name) in [
        ("search_tools", "tool_search_tools"),
        ("search.tools", "tool_search_tools"),
        ("Load_Tool", "tool_Load_Tool"),
        ("call_tool", "tool_call_tool"),
        ("toolward", "tool_toolward"),
        ("toolward.trust", "tool_toolward_trust"),
        ("Toolward_x", "tool_Toolward_x"),
        ("mcp__other__x", "tool_mcp_other_x"),
        ("MCP-x", "tool_MCP-x"),
        ("__mcp", "tool_mcp"),
        ("search_tools2", "search_tools2"),
        ("toolwards", "toolwards"),
        ("my.toolward", "my_toolward"),
    ] {
        assert_eq!(names(&[(Some(given), "evil.tool", 1, "evil")]), [name]);
    }
}

#[test]
fn a_name_that_is_too_long_is_cut_and_has_a_digest_of_whose_it_is() {
    let id = format!("text.{}", "a".repeat(75));
    let long = |publisher| names(&[(None, id.as_str(), 1, publisher)]).remove(0);
    let name = long("acme");
    assert_eq!(name.len(), MAX_NAME_CHARS);
    assert!(
        name.starts_with(&format!("text_{}_", "a".repeat(29))),
        "{name}"
    );
    assert_ne!(name, long("other"));
    assert_eq!(digest(b""), "v4jutopv7gq2n");
    let fits = format!("text.{}", "a".repeat(43));
    assert_eq!(names(&[(None, &fits, 1, "acme")]), [fits.replace('.', "_")]);
}

/// Ids as contracts may have them, similar enough to clash.
fn id() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        "[ab]{1,2}",
        "mcp",
        "search",
        "tools",
        "toolward",
        "a[-_]{1,3}b",
        "v1",
        "acme",
        "[a-z0-9]{1,40}",
    ];
    proptest::collection::vec(part, 1..5)
        .prop_map(|parts| {
            let mut id = parts.join(".");
            id.truncate(80);
            id.trim_end_matches(['.', '-', '_']).to_owned()
        })
        .prop_filter("an id", |id| ToolId::relaxed(id).is_ok())
}

fn given() -> impl Strategy<Value = Option<String>> {
    prop_oneof![
        Just(None),
        "[A-Za-z_.-]{1,8}".prop_map(Some),
        "[a-b_]{60,64}".prop_map(Some)
    ]
}

type Made = (Option<String>, String, u64, &'static str);

fn tools() -> impl Strategy<Value = Vec<Made>> {
    let publisher = prop_oneof![
        Just("acme"),
        Just("acme_"),
        Just("ACME"),
        Just("dev:/x/acme")
    ];
    let tool = (given(), id(), 0..3_u64, publisher);
    proptest::collection::vec(tool, 1..24).prop_map(|mut tools| {
        let mut seen = std::collections::HashSet::new();
        tools.retain(|(_, id, major, _)| seen.insert((id.clone(), *major)));
        tools
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn names_are_accepted_distinct_and_never_taken_from_their_holder(tools in tools()) {
        let tools: Vec<Tool<'_>> = tools
            .iter()
            .map(|(given, id, major, publisher)| (given.as_deref(), id.as_str(), *major, *publisher))
            .collect();
        let all = assigned(&tools);
        let mut seen = std::collections::HashSet::new();
        for name in all.iter().flatten() {
            prop_assert!(is_accepted(name), "{name}");
            let folded = name.to_ascii_lowercase();
            prop_assert!(!is_reserved(&folded), "{name}");
            prop_assert!(seen.insert(folded), "{name} twice");
        }
        // A tool that arrived early has the same name without the later ones.
        for known in 0..tools.len() {
            let before = assigned(&tools[..known]);
            prop_assert_eq!(&before[..], &all[..known]);
        }
    }
}
