//! `transport` of an index entry. Parsed and checked; versions 1's transports are the host's to refuse or run.

use crate::codes;
use crate::diagnostic::Report;
use crate::driver::is_absolute as is_command;
use crate::id::ToolId;
use crate::shared;
use crate::source::{Field, Fields};

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

const METHODS: &[&str] = &["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"];

pub(super) fn read(field: &Field<'_>, version: u32, report: &mut Report<'_>) -> Option<Transport> {
    let mut fields = report.foreign(field)?;
    let field = report.read(fields.required("kind"))?;
    let kind = report.read(field.text())?;
    let transport = match kind {
        "exec" => exec(&mut fields, report),
        "http" => http(&mut fields, report),
        "component" if version >= 2 => component(&mut fields, report),
        _ => {
            let known = if version >= 2 {
                "exec, http or component"
            } else {
                "exec or http"
            };
            let message = format!(
                "expected `{}` to be {known} in version {version}, found {kind:?}",
                field.name
            );
            report.add(&codes::TRANSPORT_KIND_UNKNOWN, field.at, message);
            return None;
        }
    };
    report.unknown(fields);
    transport
}

fn exec(fields: &mut Fields<'_>, report: &mut Report<'_>) -> Option<Transport> {
    let command = report.read(fields.required("command")).and_then(|field| {
        let found = report.read(field.text())?;
        if !is_command(found) {
            let message = format!(
                "expected `{}` to be an absolute path, found {found:?}",
                field.name
            );
            report.add(&codes::TRANSPORT_COMMAND_RELATIVE, field.at, message);
        }
        Some(found.to_owned())
    });
    let args = report.strings(fields.take("args"));
    Some(Transport::Exec {
        command: command?,
        args,
    })
}

fn http(fields: &mut Fields<'_>, report: &mut Report<'_>) -> Option<Transport> {
    let read = |word: &str| METHODS.contains(&word).then(|| word.to_owned());
    let method = report.read(fields.required("method"));
    let method =
        method.and_then(|field| shared::word(&field, METHODS, read, &codes::WRONG_VALUE, report));
    let url = report.read(fields.required("url")).and_then(|field| {
        let found = report.read(field.text())?;
        if !is_absolute(found) {
            let message = format!(
                "expected `{}` to be an absolute http or https URL, found {found:?}",
                field.name
            );
            report.add(&codes::TRANSPORT_URL_INVALID, field.at, message);
        }
        Some(found.to_owned())
    });
    let headers = fields.take("headers");
    let headers = headers.and_then(|field| report.read(field.members()));
    let headers = headers.into_iter().flatten();
    let headers = headers.filter(|(_, member)| !member.is_null());
    let headers = headers.filter_map(|(key, member)| {
        let value = report.read(member.text())?;
        Some((key.to_owned(), value.to_owned()))
    });
    let headers = headers.collect();
    Some(Transport::Http {
        method: method?,
        url: url?,
        headers,
    })
}

/// Literal scheme and host; what follows may hold placeholders.
fn is_absolute(url: &str) -> bool {
    let Some(rest) = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"))
    else {
        return false;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let literal =
        crate::capability::HostPattern::parse(authority).is_ok_and(|host| host.is_literal());
    literal && !url.chars().any(|c| c.is_control() || c.is_whitespace())
}

fn component(fields: &mut Fields<'_>, report: &mut Report<'_>) -> Option<Transport> {
    let field = report.read(fields.required("driver"))?;
    let found = report.read(field.text())?;
    match ToolId::parse(found) {
        Ok(driver) => Some(Transport::Component { driver }),
        Err(error) => {
            report.add(&codes::ID_INVALID, field.at, error.to_string());
            None
        }
    }
}
