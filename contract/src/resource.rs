//! Sidecars of resources: `NAME.resource.md`, what a bundle says about its file `NAME`. Not the file, and not
//! who may read it.

mod template;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::argument::{self, Argument, arguments};
use crate::codes;
use crate::diagnostic::{Diagnostic, Parsed, Position, Report};
use crate::placeholder::Text;
use crate::source::{Field, Fields, split};
use crate::wording;

pub use template::UriTemplate;

/// How the name of a sidecar ends; before it stands the name of the file that it is about.
pub const SIDECAR: &str = ".resource.md";

/// What is said about a resource.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Resource {
    /// Display name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// Its media type, where it isn't the one that the file's name gives.
    pub mime_type: Option<String>,
    /// The URI that it asks to be known by.
    pub uri: Option<String>,
    /// The template that it asks to be known by.
    pub uri_template: Option<UriTemplate>,
    /// What is filled in. A template has some, another resource has none.
    pub arguments: Vec<Argument>,
    /// Everything below `metadata`, as written.
    pub metadata: Map<String, Value>,
}

impl Resource {
    /// Reads a sidecar. `file` names it in diagnostics.
    #[must_use]
    pub fn parse(file: &str, source: &str) -> Parsed<Resource> {
        let mut report = Report::new(file);
        let resource = split(source, &mut report).and_then(|parts| {
            let mut fields = report.read(Fields::of(&parts.root()))?;
            let name = wording::name(&mut fields, &mut report);
            let description = wording::description(&mut fields, &mut report);
            let mime_type = fields.take("mime_type");
            let mime_type = mime_type.and_then(|field| media_type(&field, &mut report));
            let arguments = arguments(&mut fields, &mut report);
            let uri = fields.take("uri");
            let template = fields.take("uri_template");
            if let Some(field) = &uri
                && (template.is_some() || !arguments.is_empty())
            {
                let message = "expected `uri_template` beside `arguments`, found `uri`";
                report.add(&codes::RESOURCE_URI, field.at, message);
            }
            let uri = uri.and_then(|field| own_uri(&field, &mut report));
            let uri_template =
                template.and_then(|field| own_template(&field, &arguments, &mut report));
            let metadata = report.mapping(fields.take("metadata").as_ref());
            report.unknown(fields);
            Some(Resource {
                name: name?,
                description: description?,
                mime_type,
                uri,
                uri_template,
                arguments,
                metadata,
            })
        });
        report.finish(resource)
    }

    /// Whether what is read depends on its URI.
    #[must_use]
    pub fn is_template(&self) -> bool {
        !self.arguments.is_empty()
    }

    /// What is wrong with the text of a template: placeholders that are no arguments, and arguments that
    /// are nowhere. `file` and `text` are the file that the sidecar is about.
    #[must_use]
    pub fn check_text(&self, file: &str, text: &Text) -> Vec<Diagnostic> {
        let mut report = Report::new(file);
        let used: BTreeSet<_> = text.places().collect();
        let mut arguments = self.arguments.clone();
        for argument in &mut arguments {
            // They stand in the sidecar, not in this file.
            argument.at = Position::START;
        }
        argument::check(&used, &arguments, &mut report);
        report.finish(Some(())).diagnostics
    }
}

fn own_uri(field: &Field<'_>, report: &mut Report<'_>) -> Option<String> {
    let found = report.read(field.text())?;
    match template::uri(found) {
        Ok(()) => Some(found.to_owned()),
        Err(message) => {
            let message = format!("in `uri`: {message}");
            report.add(&codes::RESOURCE_URI, field.at, message);
            None
        }
    }
}

fn own_template(
    field: &Field<'_>,
    arguments: &[Argument],
    report: &mut Report<'_>,
) -> Option<UriTemplate> {
    let found = report.read(field.text())?;
    let template = match UriTemplate::parse(found) {
        Ok(template) => template,
        Err(message) => {
            let message = format!("in `uri_template`: {message}");
            report.add(&codes::RESOURCE_URI, field.at, message);
            return None;
        }
    };
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
        report.add(&codes::RESOURCE_URI, field.at, message);
        return None;
    }
    Some(template)
}

/// `type/subtype`, without parameters.
fn media_type(field: &Field<'_>, report: &mut Report<'_>) -> Option<String> {
    let found = report.read(field.text())?;
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
        report.add(&codes::MEDIA_TYPE, field.at, message);
        return None;
    }
    Some(found.to_owned())
}
