//! Sidecars of resources: `NAME.resource.md`, how a bundle describes its file `NAME`. Not the file, and not
//! who may read it.

mod template;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::argument::{self, Argument, arguments};
use crate::codes;
use crate::diagnostic::{Diagnostic, FileReport, Parsed, Position};
use crate::front_matter::split;
use crate::placeholder::Text;
use crate::source::FieldReader;
use crate::wording;

pub use template::UriTemplate;

/// How the name of a sidecar ends, after the name of the file that it is about.
pub const SIDECAR: &str = ".resource.md";

/// The description of a resource.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Resource {
    /// Display name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// Its media type, if it differs from the one for the file's name.
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
        let report = FileReport::new(file);
        let resource = split(source, &report).and_then(|parts| {
            let mut fields = parts.root(&report).fields()?;
            let name = wording::name(&mut fields);
            let description = wording::description(&mut fields);
            let mime_type = fields
                .take("mime_type")
                .and_then(|field| media_type(&field));
            let arguments = arguments(&mut fields);
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
            let metadata = fields.mapping("metadata");
            fields.unknown();
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

    /// What is wrong with the text of a template: placeholders that are not arguments, and arguments that
    /// it does not use. `file` and `text` are the file that the sidecar is about.
    #[must_use]
    pub fn check_text(&self, file: &str, text: &Text) -> Vec<Diagnostic> {
        let report = FileReport::new(file);
        let used: BTreeSet<_> = text.places().collect();
        let mut arguments = self.arguments.clone();
        for argument in &mut arguments {
            // Its place is in the sidecar, not in this file.
            argument.at = Position::START;
        }
        argument::check(&used, &arguments, &report);
        report.finish(Some(())).diagnostics
    }
}

fn own_uri(field: &FieldReader<'_>) -> Option<String> {
    let found = field.text()?;
    let refuse = |message| field.note(&codes::RESOURCE_URI, format!("in `uri`: {message}"));
    let valid = template::uri(found).map_err(refuse).ok();
    valid.map(|()| found.to_owned())
}

fn own_template(field: &FieldReader<'_>, arguments: &[Argument]) -> Option<UriTemplate> {
    let found = field.text()?;
    let refuse = |message| {
        field.note(
            &codes::RESOURCE_URI,
            format!("in `uri_template`: {message}"),
        )
    };
    let template = UriTemplate::parse(found).map_err(refuse).ok()?;
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

/// `type/subtype`, without parameters.
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
