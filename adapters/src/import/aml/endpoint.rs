//! `endpoint`, `METHOD /path/{name}?key={name}`, as a driver has it. What fills a placeholder is never looked at again,
//! so nothing of AML's text may become one but `{name}`.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use toolward_contract::driver::Method;

/// A request's line.
pub(super) struct Line {
    pub(super) method: Method,
    /// With `${input.name}`.
    pub(super) path: String,
    /// Parameters, with `${input.name}`.
    pub(super) query: Map<String, Value>,
    /// The inputs that path and query use.
    pub(super) used: BTreeSet<String>,
}

impl Line {
    /// Reads an endpoint.
    ///
    /// # Errors
    /// What is wrong with it; ends a sentence.
    pub(super) fn parse(endpoint: &str) -> Result<Self, &'static str> {
        let (method, target) = endpoint
            .split_once(' ')
            .ok_or("`endpoint` is not a method, a space and a path")?;
        let method = Method::parse(method).ok_or("`endpoint` begins with no method in capitals")?;
        let (path, query) = match target.trim_start().split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target.trim_start(), None),
        };
        let mut line = Self {
            method,
            path: String::new(),
            query: Map::new(),
            used: BTreeSet::new(),
        };
        line.path = line.respelled(path)?;
        for pair in query.into_iter().flat_map(|query| query.split('&')) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let is_encoded = |text: &str| text.contains(['%', '+']);
            if name.is_empty() || name.contains(['{', '}', '$']) || is_encoded(pair) {
                return Err("the query of `endpoint` has other things than names and values");
            }
            let value = line.respelled(value)?;
            if line.query.insert(name.to_owned(), value.into()).is_some() {
                return Err("the query of `endpoint` has a name twice");
            }
        }
        Ok(line)
    }

    /// `{name}` as `${input.name}`.
    fn respelled(&mut self, text: &str) -> Result<String, &'static str> {
        const BRACES: &str = "`endpoint` has braces around something that is no name, or a `$`";
        let mut spelled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').ok_or(BRACES)?;
            if !is_plain(before) || !is_name(name) {
                return Err(BRACES);
            }
            spelled.extend([before, "${input.", name, "}"]);
            self.used.insert(name.to_owned());
            rest = after;
        }
        if !is_plain(rest) {
            return Err(BRACES);
        }
        spelled.push_str(rest);
        Ok(spelled)
    }
}

fn is_plain(text: &str) -> bool {
    !text.contains(['$', '{', '}'])
}

/// Whether a placeholder can name an input.
pub(super) fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    !name.is_empty() && name.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_in_braces_become_inputs() {
        let line = Line::parse("GET /parcels/{number}/x-{part}?lang={lang}&v=2").unwrap();
        assert_eq!(line.method, Method::Get);
        assert_eq!(line.path, "/parcels/${input.number}/x-${input.part}");
        assert_eq!(
            Value::Object(line.query),
            json!({ "lang": "${input.lang}", "v": "2" })
        );
        assert_eq!(
            line.used.into_iter().collect::<Vec<_>>(),
            ["lang", "number", "part"]
        );
    }

    #[test]
    fn nothing_else_becomes_a_placeholder() {
        for endpoint in [
            "",
            "GET",
            "/path",
            "get /path",
            "FETCH /path",
            "GET /${secrets.KEY}",
            "GET /${input.a}",
            "GET /$${a}",
            "GET /{secrets.KEY}",
            "GET /{a|json}",
            "GET /{}",
            "GET /{a",
            "GET /a}",
            "GET /{{a}}",
            "GET /{a b}",
            "GET /a?{b}=c",
            "GET /a?b=%7Bc%7D",
            "GET /a?b=1&b=2",
            "GET /a?",
        ] {
            assert!(Line::parse(endpoint).is_err(), "{endpoint}");
        }
    }
}
