//! `transport` of an index entry. Parsed and checked; the host decides whether it runs a transport of version 1.

use crate::capability::HostPattern;
use crate::codes;
use crate::driver::{Method, is_absolute as is_command};
use crate::id::{IdError, ToolId};
use crate::source::{FieldReader, MappingReader};

/// What carries a tool out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// A program of the host.
    Exec {
        /// Absolute path.
        command: String,
        /// Arguments appended after the path of the JSON input.
        args: Vec<String>,
    },
    /// An HTTP request.
    Http {
        /// The method, in upper case.
        method: String,
        /// Absolute URL; scheme and host are literal.
        url: String,
        /// Static headers; values may hold placeholders for secrets.
        headers: Vec<(String, String)>,
    },
    /// A driver of the same bundle (version 2).
    Component {
        /// Its id.
        driver: ToolId,
    },
}

pub(super) fn read(field: &FieldReader<'_>, version: u32) -> Option<Transport> {
    let mut fields = field.foreign()?;
    let field = fields.required("kind")?;
    let kind = field.text()?;
    let transport = match kind {
        "exec" => exec(&mut fields),
        "http" => http(&mut fields),
        "component" if version >= 2 => component(&mut fields),
        _ => {
            let known = match version {
                1 => "exec or http",
                _ => "exec, http or component",
            };
            let message = format!(
                "expected `{}` to be {known} in version {version}, found {kind:?}",
                field.name
            );
            return field.refuse(&codes::TRANSPORT_KIND_UNKNOWN, message);
        }
    };
    fields.unknown();
    transport
}

fn exec(fields: &mut MappingReader<'_>) -> Option<Transport> {
    let command = fields.require("command", |field| {
        let found = field.text()?;
        if !is_command(found) {
            let name = &field.name;
            let message = format!("expected `{name}` to be an absolute path, found {found:?}");
            field.note(&codes::TRANSPORT_COMMAND_RELATIVE, message);
        }
        Some(found.to_owned())
    });
    let args = fields.strings("args");
    command.map(|command| Transport::Exec { command, args })
}

fn http(fields: &mut MappingReader<'_>) -> Option<Transport> {
    let method = fields.require("method", |field| {
        field.word(Method::WORDS, &codes::WRONG_VALUE)
    });
    let url = fields.require("url", |field| {
        let found = field.text()?;
        if !is_absolute(found) {
            let message = format!(
                "expected `{}` to be an absolute http or https URL, found {found:?}",
                field.name
            );
            field.note(&codes::TRANSPORT_URL_INVALID, message);
        }
        Some(found.to_owned())
    });
    let headers = fields.read("headers", |field| field.members());
    let headers = headers.into_iter().flatten();
    let headers = headers.filter(|(_, member)| !member.is_null());
    let headers = headers
        .filter_map(|(key, member)| Some((key.to_owned(), member.text()?.to_owned())))
        .collect();
    Some(Transport::Http {
        method: method?.as_str().to_owned(),
        url: url?,
        headers,
    })
}

/// Literal scheme and host; what follows may hold placeholders.
fn is_absolute(url: &str) -> bool {
    let rest = url.strip_prefix("https://");
    let Some(rest) = rest.or_else(|| url.strip_prefix("http://")) else {
        return false;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let literal = HostPattern::parse(authority).is_ok_and(|host| host.is_literal());
    literal && !url.chars().any(|c| c.is_control() || c.is_whitespace())
}

fn component(fields: &mut MappingReader<'_>) -> Option<Transport> {
    let field = fields.required("driver")?;
    let refuse = |error: IdError| field.note(&codes::ID_INVALID, error.to_string());
    let driver = ToolId::parse(field.text()?).map_err(refuse).ok()?;
    Some(Transport::Component { driver })
}
