//! URIs and URI templates of resources. Of RFC 6570 only `{name}` in the place of a whole segment: whether a
//! URI fits a template, and with which values, has one answer, found in one pass.

use std::fmt;

use crate::placeholder::is_name;
use crate::url_path::{has_valid_escapes, percent_decoded};
use crate::wording::is_deceptive;

/// How long a URI or a template may be, in bytes.
pub(super) const MAX_URI_BYTES: usize = 512;

/// How long a value in a URI may be, in bytes.
const MAX_VALUE_BYTES: usize = 256;

/// Schemes whose URIs clients resolve themselves, and the host's own.
pub(super) const RESERVED: &[&str] = &[
    "toolward",
    "http",
    "https",
    "file",
    "data",
    "blob",
    "javascript",
];

/// A URI with variables for whole segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UriTemplate {
    text: String,
    segments: Vec<Segment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Literal(String),
    Variable(String),
}

impl UriTemplate {
    /// Reads a template that a bundle may use.
    ///
    /// # Errors
    /// What was expected and what was found, in words.
    pub fn parse(text: &str) -> Result<UriTemplate, String> {
        uri(&text.replace(['{', '}'], ""))?;
        UriTemplate::of_host(text)
    }

    /// Reads a template of any scheme, the host's own among them.
    ///
    /// # Errors
    /// What was expected and what was found, in words.
    pub fn of_host(text: &str) -> Result<UriTemplate, String> {
        let mut segments = Vec::new();
        for part in text.split('/') {
            let name = part
                .strip_prefix('{')
                .and_then(|rest| rest.strip_suffix('}'));
            segments.push(match name {
                Some(name) if is_name(name) => Segment::Variable(name.to_owned()),
                _ if part.contains(['{', '}']) => {
                    return Err(format!(
                        "expected `{{name}}` in the place of a whole segment, found {part:?}"
                    ));
                }
                _ => Segment::Literal(part.to_owned()),
            });
        }
        let mut head = segments.iter();
        let plain = matches!(
            (head.next(), head.next()),
            (Some(Segment::Literal(scheme)), Some(Segment::Literal(empty)))
                if scheme.ends_with(':') && empty.is_empty()
        );
        if !plain {
            return Err(format!("expected `scheme://…`, found {text:?}"));
        }
        Ok(UriTemplate {
            text: text.to_owned(),
            segments,
        })
    }

    /// The template as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The names of the variables, in order.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Variable(name) => Some(name.as_str()),
            Segment::Literal(_) => None,
        })
    }

    /// The values in a URI that fits the template, percent-decoded; `None` for another URI.
    #[must_use]
    pub fn values(&self, uri: &str) -> Option<Vec<(&str, String)>> {
        let mut values = Vec::new();
        let mut found = uri.split('/');
        for segment in &self.segments {
            let part = found.next()?;
            match segment {
                Segment::Literal(own) if own == part => {}
                Segment::Literal(_) => return None,
                Segment::Variable(name) => values.push((name.as_str(), value(part)?)),
            }
        }
        found.next().is_none().then_some(values)
    }

    /// Whether some URI fits both.
    #[must_use]
    pub fn overlaps(&self, other: &UriTemplate) -> bool {
        let pairs = self.segments.iter().zip(&other.segments);
        let fit = |(one, other): (&Segment, &Segment)| match (one, other) {
            (Segment::Literal(one), Segment::Literal(other)) => one == other,
            (Segment::Variable(_), Segment::Literal(text))
            | (Segment::Literal(text), Segment::Variable(_)) => !text.is_empty(),
            (Segment::Variable(_), Segment::Variable(_)) => true,
        };
        self.segments.len() == other.segments.len() && pairs.into_iter().all(fit)
    }
}

impl fmt::Display for UriTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// One segment's text, percent-decoded.
fn value(part: &str) -> Option<String> {
    let is_long = part.len() > 3 * MAX_VALUE_BYTES;
    if is_long || part.contains(['?', '#']) || !has_valid_escapes(part) {
        return None;
    }
    let value = String::from_utf8(percent_decoded(part.as_bytes())).ok()?;
    let fits = (1..=MAX_VALUE_BYTES).contains(&value.len());
    (fits && !value.chars().any(is_deceptive)).then_some(value)
}

/// Checks a URI of a resource: absolute, ASCII, of a scheme that clients do not resolve themselves.
///
/// # Errors
/// What was expected and what was found, in words.
pub(super) fn uri(text: &str) -> Result<(), String> {
    if text.len() > MAX_URI_BYTES {
        return Err(format!(
            "expected at most {MAX_URI_BYTES} bytes, found {}",
            text.len()
        ));
    }
    let good = |c: char| c.is_ascii_graphic() && !r#""<>\^`{|}"#.contains(c);
    if let Some(bad) = text.chars().find(|&c| !good(c)) {
        return Err(format!("expected a URI (RFC 3986), found {bad:?} in it"));
    }
    let scheme = text
        .split_once(':')
        .map(|(scheme, _)| scheme)
        .filter(|scheme| {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+.-".contains(c);
            scheme.starts_with(|c: char| c.is_ascii_lowercase()) && scheme.chars().all(plain)
        });
    match scheme {
        None => Err(format!(
            "expected a scheme in lower case and `:`, found {text:?}"
        )),
        Some(scheme) if RESERVED.contains(&scheme) => Err(format!(
            "expected none of the schemes {}, found {scheme}",
            RESERVED.join(", ")
        )),
        Some(scheme) if text.len() <= scheme.len() + 1 => Err(format!(
            "expected something after `{scheme}:`, found nothing"
        )),
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(text: &str) -> UriTemplate {
        UriTemplate::parse(text).unwrap()
    }

    #[test]
    fn a_template_gives_the_values_of_whole_segments() {
        let found = template("test://template/{id}/data");
        let values = |uri| found.values(uri);
        assert_eq!(
            values("test://template/123/data").unwrap(),
            [("id", "123".to_owned())]
        );
        assert_eq!(
            values("test://template/a%2Fb%C3%A9/data").unwrap(),
            [("id", "a/bé".to_owned())]
        );
        for other in [
            "test://template//data",
            "test://template/1/2/data",
            "test://template/1/data/",
            "test://template/1",
            "test://other/1/data",
            "test://template/%/data",
            "test://template/%ff/data",
            "test://template/%00/data",
            "test://template/%E2%80%AE/data",
            "test://template/1?x/data",
        ] {
            assert_eq!(values(other), None, "{other}");
        }
        let fits = |length| {
            let uri = format!("test://template/{}/data", "x".repeat(length));
            found.values(&uri).is_some()
        };
        assert!(fits(256) && !fits(257));
    }

    #[test]
    fn templates_are_absolute_and_variables_are_segments() {
        for bad in [
            "",
            "a",
            "{a}://b",
            "a:/{b}",
            "a://x{b}",
            "a://{b}{c}",
            "a://{1}",
            "a://{b",
            "a b://c",
            "http://{a}/b",
            "file:///{a}",
            "toolward://{a}",
            "A://b/{c}",
        ] {
            assert!(UriTemplate::parse(bad).is_err(), "{bad}");
        }
        let found = template("records://{number}/{part}");
        assert_eq!(found.variables().collect::<Vec<_>>(), ["number", "part"]);
    }

    #[test]
    fn templates_that_one_uri_fits_overlap() {
        let overlaps = |one, other| template(one).overlaps(&template(other));
        assert!(overlaps("a://{x}/b", "a://c/{y}"));
        assert!(overlaps("a://{x}", "a://c"));
        assert!(!overlaps("a://{x}/b", "a://c/d"));
        assert!(!overlaps("a://{x}", "a://{x}/{y}"));
        assert!(!overlaps("a://{x}", "b://{x}"));
    }
}
