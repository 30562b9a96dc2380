//! `transport` of an index entry. Parsed and checked; versions 1's transports are the host's to refuse or run.

use crate::codes;
use crate::diagnostic::Report;
use crate::id::ToolId;
use crate::shared;
use crate::source::{Content, Fields, Node, text, texts};

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

pub(super) fn read(
    node: &Node,
    label: &str,
    version: u32,
    report: &mut Report<'_>,
) -> Option<Transport> {
    let mut fields = Fields::of(node, label, report)?;
    let kind_node = fields.required("kind", report)?;
    let kind = text(kind_node, &fields.name("kind"), report)?;
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
                fields.name("kind")
            );
            report.add(&codes::TRANSPORT_KIND_UNKNOWN, kind_node.at, message);
            return None;
        }
    };
    fields.finish(report);
    transport
}

fn exec(fields: &mut Fields<'_>, report: &mut Report<'_>) -> Option<Transport> {
    let command = fields.required("command", report).and_then(|node| {
        let found = text(node, &fields.name("command"), report)?;
        let parts = found
            .strip_prefix('/')
            .is_some_and(|rest| rest.split('/').all(|part| !matches!(part, "" | "." | "..")));
        if !parts || found.chars().any(char::is_control) {
            let message = format!(
                "expected `{}` to be an absolute path, found {found:?}",
                fields.name("command")
            );
            report.add(&codes::TRANSPORT_COMMAND_RELATIVE, node.at, message);
        }
        Some(found.to_owned())
    });
    let args = match fields.take("args") {
        Some(node) => texts(node, &fields.name("args"), report)
            .into_iter()
            .map(|(arg, _)| arg.to_owned())
            .collect(),
        None => Vec::new(),
    };
    Some(Transport::Exec {
        command: command?,
        args,
    })
}

fn http(fields: &mut Fields<'_>, report: &mut Report<'_>) -> Option<Transport> {
    let read = |word: &str| METHODS.contains(&word).then(|| word.to_owned());
    let method = fields.required("method", report);
    let method =
        method.and_then(|node| shared::word(node, &fields.name("method"), METHODS, read, report));
    let url = fields.required("url", report).and_then(|node| {
        let found = text(node, &fields.name("url"), report)?;
        if !is_absolute(found) {
            let message = format!(
                "expected `{}` to be an absolute http or https URL, found {found:?}",
                fields.name("url")
            );
            report.add(&codes::TRANSPORT_URL_INVALID, node.at, message);
        }
        Some(found.to_owned())
    });
    let mut headers = Vec::new();
    let label = fields.name("headers");
    match fields.take("headers").map(|node| (node, &node.content)) {
        Some((_, Content::Mapping(entries))) => {
            for entry in entries {
                if let Some(value) = text(&entry.value, &format!("{label}.{}", entry.key), report) {
                    headers.push((entry.key.clone(), value.to_owned()));
                }
            }
        }
        Some((node, _)) => {
            report.add(
                &codes::WRONG_TYPE,
                node.at,
                format!("expected `{label}` to be a mapping, found {}", node.kind()),
            );
        }
        None => {}
    }
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
    let node = fields.required("driver", report)?;
    let found = text(node, &fields.name("driver"), report)?;
    match ToolId::parse(found) {
        Ok(driver) => Some(Transport::Component { driver }),
        Err(error) => {
            report.add(&codes::ID_INVALID, node.at, error.to_string());
            None
        }
    }
}
