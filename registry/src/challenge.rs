//! `WWW-Authenticate`: what a registry says it wants (RFC 9110, section 11.6.1). Nothing in it is obeyed
//! before it was checked.

use http_auth::parser::ChallengeParser;
use http_auth::{ChallengeRef, ParamValue};
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

/// The first challenge of a header that can be answered. Nothing after a mistake is read.
fn parse(value: &str) -> Option<Challenge> {
    ChallengeParser::new(value)
        .map_while(Result::ok)
        .find_map(|challenge| answerable(&challenge))
}

fn answerable(challenge: &ChallengeRef<'_>) -> Option<Challenge> {
    if challenge.scheme.eq_ignore_ascii_case("basic") {
        return Some(Challenge::Basic);
    }
    if !challenge.scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    // Twice is ambiguous: two readers might take two of them.
    let at_most_one = |name: &str| {
        let named = |(other, _): &&(&str, ParamValue<'_>)| other.eq_ignore_ascii_case(name);
        let mut values = challenge.params.iter().filter(named);
        let first = values.next().map(|(_, value)| value.to_unescaped());
        values.next().is_none().then_some(first)
    };
    Some(Challenge::Bearer {
        realm: at_most_one("realm")??,
        service: at_most_one("service")?,
    })
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
        assert_eq!(
            parse("Negotiate, Bearer realm=\"https://a/t\""),
            bearer("https://a/t", None)
        );
        assert_eq!(
            parse("Basic realm=\"a\", Bearer realm=\"https://a/t\""),
            Some(Challenge::Basic)
        );
        for wrong in [
            "Bearer",
            "Bearer realm=https://a/t",
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
