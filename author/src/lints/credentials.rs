//! Finds text in examples and metadata that has the form of a key. A bundle is published, and so is
//! every key in it.

use serde_json::Value;
use toolward_bundle::codes;
use toolward_contract::action::Action;
use toolward_contract::driver::Driver;
use toolward_contract::index::{IndexEntry, Transport};
use toolward_contract::schema::escape;
use toolward_contract::tool::Tool;

use super::Subject;

/// Prefixes of keys of well-known services, with the least number of characters that follow.
const PREFIXES: [(&str, usize); 14] = [
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 35),
    ("ghp_", 36),
    ("gho_", 36),
    ("ghs_", 36),
    ("github_pat_", 22),
    ("glpat-", 20),
    ("npm_", 36),
    ("sk-", 20),
    ("sk_live_", 16),
    ("rk_live_", 16),
    ("xoxb-", 20),
    ("xoxp-", 20),
];

/// Checks the examples and the metadata of a contract.
pub(super) fn check_tool(tool: &Tool, subject: &mut Subject<'_>) {
    let mut found = Vec::new();
    for (index, example) in tool.examples.iter().enumerate() {
        let at = format!("/examples/{index}");
        search(&example.input, &format!("{at}/input"), &mut found);
        if let Some(output) = &example.output {
            search(output, &format!("{at}/output"), &mut found);
        }
    }
    members("/metadata", &tool.metadata, &mut found);
    report(found, subject);
}

/// Checks the examples and the metadata of an action.
pub(super) fn check_action(action: &Action, subject: &mut Subject<'_>) {
    let mut found = Vec::new();
    for (index, example) in action.examples.iter().enumerate() {
        let texts = [
            ("name", Some(&example.name)),
            ("scenario", Some(&example.scenario)),
            ("note", example.note.as_ref()),
        ];
        for (key, text) in texts {
            if text.is_some_and(|text| holds_key(text)) {
                found.push(format!("/examples/{index}/{key}"));
            }
        }
    }
    members("/metadata", &action.metadata, &mut found);
    report(found, subject);
}

/// Checks the transport of an entry of tools.json.
pub(super) fn check_entry(entry: &IndexEntry, pointer: &str, subject: &mut Subject<'_>) {
    let mut found = Vec::new();
    let mut look = |text: &str, place: String| {
        if holds_key(text) {
            found.push(format!("{pointer}/transport/{place}"));
        }
    };
    match &entry.transport {
        Transport::Http { url, headers, .. } => {
            look(url, "url".to_owned());
            for (name, value) in headers {
                look(value, format!("headers/{}", escape(name)));
            }
        }
        Transport::Exec { args, .. } => {
            for (index, text) in args.iter().enumerate() {
                look(text, format!("args/{index}"));
            }
        }
        _ => {}
    }
    report(found, subject);
}

/// Checks the examples, the request and the metadata of a driver and of its entries.
pub(super) fn check_driver(driver: &Driver, subject: &mut Subject<'_>) {
    let mut found = Vec::new();
    let outline = subject.outline();
    if let Some(examples) = outline.and_then(|outline| outline.value("examples")) {
        search(&examples, "/examples", &mut found);
    }
    members("", &driver.request_defaults, &mut found);
    members("/metadata", &driver.metadata, &mut found);
    for (index, entry) in driver.implements.iter().enumerate() {
        let pointer = format!("/implements/{index}/metadata");
        members(&pointer, &entry.metadata, &mut found);
    }
    report(found, subject);
}

fn members(pointer: &str, members: &serde_json::Map<String, Value>, found: &mut Vec<String>) {
    for (key, value) in members {
        search(value, &format!("{pointer}/{}", escape(key)), found);
    }
}

/// Finds the pointers of texts that contain a key. Messages name the pointer, and do not repeat the
/// text.
fn search(value: &Value, pointer: &str, found: &mut Vec<String>) {
    match value {
        Value::String(text) if holds_key(text) => found.push(pointer.to_owned()),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                search(item, &format!("{pointer}/{index}"), found);
            }
        }
        Value::Object(object) => members(pointer, object, found),
        _ => {}
    }
}

/// Whether a word of the text has the form of a key.
fn holds_key(text: &str) -> bool {
    let outside = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    text.contains("PRIVATE KEY-----") || text.split(outside).any(is_key)
}

fn is_key(word: &str) -> bool {
    let known = PREFIXES.iter().any(|(prefix, least)| {
        let rest = word.strip_prefix(prefix);
        // A key is random, so it has digits. A name such as `sk-your-key-goes-right-here` has none.
        rest.is_some_and(|rest| rest.len() >= *least && rest.bytes().any(|b| b.is_ascii_digit()))
    });
    known || is_web_token(word)
}

/// Whether a word has the form of a JSON web token: three parts in base64, of which the first two
/// are objects that start with `{"`.
fn is_web_token(word: &str) -> bool {
    let parts: Vec<&str> = word.splitn(4, '.').collect();
    matches!(parts[..], [head, claims, signature]
        if head.starts_with("eyJ") && claims.starts_with("eyJ") && signature.len() >= 20)
}

fn report(found: Vec<String>, subject: &mut Subject<'_>) {
    for pointer in found {
        let message = format!("`{pointer}` holds what looks like a key of a service");
        let hint = "revoke it if it is real, and write a placeholder: what is packed is public";
        subject.add(&codes::LOOKS_LIKE_SECRET, &pointer, message, hint);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_from_names_and_digests() {
        let token = format!("eyJhbGciOi.eyJzdWIiOi.{}", "x".repeat(43));
        for text in [
            "AKIA1234567890ABCDEF",
            "Authorization: Bearer ghp_0123456789abcdefghijklmnopqrstuvwxyz",
            "key=sk-abcdefghij0123456789xyz&x=1",
            "-----BEGIN PRIVATE KEY-----",
            &token,
        ] {
            assert!(holds_key(text), "{text}");
        }
        for text in [
            "sk-your-key-goes-right-here",
            "AKIA",
            "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "eyJ.eyJ.short",
            "the sk- prefix",
        ] {
            assert!(!holds_key(text), "{text}");
        }
    }
}
