//! `WWW-Authenticate`: what a registry says it wants (RFC 9110, section 11.6.1). Nothing in it is obeyed
//! before it was checked.

use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

/// How long a challenge may be, in bytes.
const MAX_CHALLENGE: usize = 4096;

/// A challenge that can be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Challenge {
    /// Name and password to the registry itself.
    Basic,
    /// A token, to be had from `realm`.
    Bearer {
        realm: String,
        service: Option<String>,
    },
}

/// The first challenge that can be answered.
pub(crate) fn challenge(headers: &HeaderMap) -> Option<Challenge> {
    headers
        .get_all(WWW_AUTHENTICATE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .filter(|value| value.len() <= MAX_CHALLENGE)
        .find_map(parse)
}

fn parse(value: &str) -> Option<Challenge> {
    let (scheme, rest) = value.trim().split_once(' ').unwrap_or((value.trim(), ""));
    if scheme.eq_ignore_ascii_case("basic") {
        return Some(Challenge::Basic);
    }
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let mut realm = None;
    let mut service = None;
    let mut rest = rest;
    while !rest.trim_start().is_empty() {
        let (name, value, after) = parameter(rest)?;
        rest = after;
        let slot = match name.to_ascii_lowercase().as_str() {
            "realm" => &mut realm,
            "service" => &mut service,
            _ => continue,
        };
        // Twice is ambiguous: two readers might take two of them.
        if slot.replace(value).is_some() {
            return None;
        }
    }
    Some(Challenge::Bearer {
        realm: realm?,
        service,
    })
}

/// One `name=value` or `name="value"`, and what follows the comma after it.
fn parameter(text: &str) -> Option<(&str, String, &str)> {
    let (name, rest) = text.split_once('=')?;
    let name = name.trim();
    let rest = rest.trim_start();
    let (value, rest) = match rest.strip_prefix('"') {
        Some(quoted) => {
            let mut value = String::new();
            let mut characters = quoted.char_indices();
            let end = loop {
                match characters.next()? {
                    (at, '"') => break at + 1,
                    (_, '\\') => value.push(characters.next()?.1),
                    (_, character) => value.push(character),
                }
            };
            (value, quoted.get(end..)?)
        }
        None => {
            let end = rest.find(',').unwrap_or(rest.len());
            let (value, rest) = rest.split_at_checked(end)?;
            (value.trim().to_owned(), rest)
        }
    };
    let rest = rest.trim_start();
    match rest.strip_prefix(',') {
        Some(after) => Some((name, value, after)),
        None if rest.is_empty() => Some((name, value, rest)),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read_as_registries_write_them() {
        let bearer = |realm: &str, service: Option<&str>| {
            Some(Challenge::Bearer {
                realm: realm.to_owned(),
                service: service.map(str::to_owned),
            })
        };
        assert_eq!(parse("Basic realm=\"x\""), Some(Challenge::Basic));
        assert_eq!(
            parse("Bearer realm=\"https://a/t\",service=\"r\",scope=\"repository:x:pull,push\""),
            bearer("https://a/t", Some("r"))
        );
        assert_eq!(
            parse("bearer  Realm = \"a\\\"b\" , error=invalid"),
            bearer("a\"b", None)
        );
        for wrong in [
            "Bearer",
            "Bearer service=\"x\"",
            "Bearer realm=\"x",
            "Bearer realm=\"x\" realm=\"y\"",
            "Bearer realm=\"x\",realm=\"y\"",
            "Negotiate",
            "",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
