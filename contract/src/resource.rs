//! Sidecars of resources: `NAME.resource.md`, a bundle's description of its file `NAME`. The file
//! itself, and who may read it, are handled elsewhere.
//!
//! A URI template has only one form of RFC 6570: `{name}` in place of a whole segment. So a URI
//! matches a template in at most one way, which is found in one pass.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

use crate::argument::{self, Argument, Text, arguments, is_name};
use crate::codes;
use crate::diagnostic::{Diagnostic, FileReport, Parsed, Position};
use crate::front_matter::split;
use crate::shared::{self, is_deceptive};
use crate::source::FieldReader;
use crate::url_path::{has_valid_escapes, percent_decoded};

/// The end of a sidecar's name, after the name of the described file.
pub const SIDECAR: &str = ".resource.md";

/// The description of a resource.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Resource {
    /// Display name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// Its media type; `None` means the type for the file's name.
    pub mime_type: Option<String>,
    /// The URI that the bundle requests for it.
    pub uri: Option<String>,
    /// The URI template that the bundle requests for it.
    pub uri_template: Option<UriTemplate>,
    /// The arguments. A template has at least one; other resources have none.
    pub arguments: Vec<Argument>,
    /// Everything below `metadata`, as written.
    pub metadata: Map<String, Value>,
}

impl Resource {
    /// Reads a sidecar. `file` names it in diagnostics.
    pub fn parse(file: &str, source: &str) -> Parsed<Resource> {
        let report = FileReport::new(file);
        let resource = split(source, &report).and_then(|parts| {
            parts.root(&report).whole(|fields| {
                let name = shared::name(fields);
                let description = shared::description(fields);
                let arguments = fields.or_default("arguments", arguments);
                let uri = fields.take("uri");
                let template = fields.take("uri_template");
                if let Some(field) = &uri
                    && (template.is_some() || !arguments.is_empty())
                {
                    let message = "expected `uri_template` beside `arguments`, found `uri`";
                    field.note(&codes::RESOURCE_URI, message);
                }
                let uri = uri.and_then(|field| own_uri(&field));
                let uri_template = template.and_then(|field| own_template(&field, &arguments));
                Some(Resource {
                    mime_type: fields.read("mime_type", media_type),
                    metadata: fields.mapping("metadata"),
                    name: name?,
                    description: description?,
                    uri,
                    uri_template,
                    arguments,
                })
            })
        });
        report.finish(resource)
    }

    /// Whether this is a template: its content depends on the requested URI.
    pub fn is_template(&self) -> bool {
        !self.arguments.is_empty()
    }

    /// The problems with the text of a template: placeholders that are not arguments, and unused
    /// arguments. `file` and `text` are the name and the text of the described file.
    pub fn check_text(&self, file: &str, text: &Text) -> Vec<Diagnostic> {
        let report = FileReport::new(file);
        let used: BTreeSet<_> = text.places().collect();
        let mut arguments = self.arguments.clone();
        for argument in &mut arguments {
            // The argument's position is in the sidecar, so findings get the start of this file.
            argument.at = Position::START;
        }
        argument::check(&used, &arguments, &report);
        report.finish(Some(())).diagnostics
    }
}

fn own_uri(field: &FieldReader<'_>) -> Option<String> {
    let found = field.text()?;
    accepted(field, check_uri(found))?;
    Some(found.to_owned())
}

/// The value of a URI or of a template. An error is reported.
fn accepted<T>(field: &FieldReader<'_>, read: Result<T, String>) -> Option<T> {
    let in_field = |message| format!("in `{}`: {message}", field.name);
    let refuse = |message: String| field.note(&codes::RESOURCE_URI, in_field(message));
    read.map_err(refuse).ok()
}

fn own_template(field: &FieldReader<'_>, arguments: &[Argument]) -> Option<UriTemplate> {
    let template = accepted(field, UriTemplate::parse(field.text()?))?;
    let mut variables: Vec<&str> = template.variables().collect();
    variables.sort_unstable();
    let mut names: Vec<&str> = arguments.iter().map(|one| one.name.as_str()).collect();
    names.sort_unstable();
    if variables != names || names.is_empty() {
        let message = format!(
            "expected each argument once in `uri_template`, and at least one, found the variables \
             [{}] and the arguments [{}]",
            variables.join(", "),
            names.join(", ")
        );
        return field.refuse(&codes::RESOURCE_URI, message);
    }
    Some(template)
}

/// Reads a media type: `type/subtype`, without parameters.
fn media_type(field: &FieldReader<'_>) -> Option<String> {
    let found = field.text()?;
    let token = |text: &str| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+.-".contains(c);
        text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(plain)
    };
    let good = found.len() <= 100
        && found
            .split_once('/')
            .is_some_and(|(kind, subtype)| token(kind) && token(subtype));
    if !good {
        let message = format!(
            "expected `mime_type` to be a media type in lower case such as text/plain, found {:?}",
            found.chars().take(100).collect::<String>()
        );
        return field.refuse(&codes::MEDIA_TYPE, message);
    }
    Some(found.to_owned())
}

/// How long a URI or a template may be, in bytes.
const MAX_URI_BYTES: usize = 512;

/// How long a value in a URI may be, in bytes.
const MAX_VALUE_BYTES: usize = 256;

/// Schemes whose URIs clients resolve themselves, and the host's own scheme.
const RESERVED: &[&str] = &[
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
    /// Reads a template with a scheme that a bundle may use.
    ///
    /// # Errors
    /// The expected and the found value, in words.
    pub fn parse(text: &str) -> Result<UriTemplate, String> {
        check_uri(&text.replace(['{', '}'], ""))?;
        UriTemplate::of_host(text)
    }

    /// Reads a template of any scheme, including the host's own.
    ///
    /// # Errors
    /// The expected and the found value, in words.
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

    /// The percent-decoded values in a URI; `None` if the URI does not match the template.
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

    /// Whether a URI may match both templates.
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

/// One segment's text, percent-decoded; `None` if a variable may not have that value.
fn value(part: &str) -> Option<String> {
    let is_long = part.len() > 3 * MAX_VALUE_BYTES;
    if is_long || part.contains(['?', '#']) || !has_valid_escapes(part) {
        return None;
    }
    let value = String::from_utf8(percent_decoded(part.as_bytes())).ok()?;
    let fits = (1..=MAX_VALUE_BYTES).contains(&value.len());
    (fits && !value.chars().any(is_deceptive)).then_some(value)
}

/// Checks a URI of a resource: absolute, ASCII, and of a scheme that a bundle may use.
///
/// # Errors
/// The expected and the found value, in words.
fn check_uri(text: &str) -> Result<(), String> {
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
