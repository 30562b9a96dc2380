//! Makes the driver for a version 1 `http` or `exec` transport: an attachment. This module runs
//! nothing.
//!
//! Version 1 does not define the spelling of placeholders, the places of inputs or the encoding. A
//! transport is accepted only if it has a single safe reading. All others are refused, so that
//! nothing is dropped silently or sent to an undeclared place.

use serde_json::{Map, Value};

use super::{IndexEntry, Transport};
use crate::capability::{Capability, CapabilitySet, Class};
use crate::codes;
use crate::diagnostic::{Code, Diagnostic};
use crate::driver::{
    BodyTemplate, DeniedTransport, Driver, DriverKind, Endpoint, HttpCall, Implements,
    InputMapping, Method, Program, SlotSource, Template, TemplatePart, header_refusal, unplaced,
};
use crate::tool::Tool;

/// The code of the rule that an entry breaks, and the message.
type Refusal = (&'static Code, String);

impl IndexEntry {
    /// Makes the driver for an `http` or `exec` transport. The driver has the transport's kind and
    /// the tool's id. `contract` comes from [`Index::contracts`](super::Index::contracts), or from
    /// the TOOL.md with the entry's id. `file` names the document in diagnostics. Returns `None`
    /// for a component, which has a DRIVER.md.
    ///
    /// # Errors
    /// One `transport-…` warning, if something that the transport needs is unsafe or not declared.
    /// The attachment is then denied, and gives the tool no driver.
    pub fn driver(&self, contract: &Tool, file: &str) -> Option<Result<Driver, Diagnostic>> {
        let made = match &self.transport {
            Transport::Component { .. } => return None,
            _ if !self.ungrantable.is_empty() => Err(ungrantable(self)),
            Transport::Exec { command, args } => run(self, contract, command, args),
            Transport::Http {
                method,
                url,
                headers,
            } => attach(self, contract, method, url, headers),
        };
        Some(made.map_err(|(code, message)| {
            let denied = Diagnostic::new(code, file, self.at, message);
            match self.ungrantable.is_empty() {
                true => denied,
                false => denied.with_hint(
                    "write each family with its scope, such as `net:HOST`, or leave it out",
                ),
            }
        }))
    }

    /// The driver of a transport that [`IndexEntry::driver`] denied with `why`. Such a driver
    /// states the reason, and serves no call. `None` for a component, and if npm can't read the
    /// contract's version.
    pub fn denied(&self, contract: &Tool, why: &Diagnostic) -> Option<Driver> {
        let kind = match &self.transport {
            Transport::Component { .. } => return None,
            Transport::Exec { .. } => DriverKind::Exec,
            Transport::Http { .. } => DriverKind::Http,
        };
        let mut driver = assemble(self, contract, kind, CapabilitySet::new(), |_| ())?;
        driver.denied = Some(DeniedTransport {
            code: why.code,
            message: why.message.clone(),
        });
        Some(driver)
    }
}

/// The refusal of an entry with a capability that no policy can grant. It denies this attachment
/// and no other ("Capability enforcement" in the format of Runloop, a host for agents).
fn ungrantable(entry: &IndexEntry) -> Refusal {
    let families = entry.ungrantable.join("`, `");
    let message = format!(
        "expected `capabilities` of {} to be families with a scope that can be granted, found `{families}`",
        entry.id
    );
    (&codes::TRANSPORT_CAPABILITY_UNGRANTABLE, message)
}

fn attach(
    entry: &IndexEntry,
    contract: &Tool,
    method_text: &str,
    url: &str,
    headers_text: &[(String, String)],
) -> Result<Driver, Refusal> {
    let wrong = |expected: &str| {
        let message = format!("expected the url of {} {expected}, found {url:?}", entry.id);
        (&codes::TRANSPORT_URL_REFUSED, message)
    };
    let (origin, endpoint) = split(entry, url)
        .ok_or_else(|| wrong("to be https, with placeholders only in path and query"))?;
    let endpoint = Endpoint::parse(&endpoint).map_err(|_| {
        wrong(
            "to have `${NAME}` in path segments and query values, everything else percent-encoded",
        )
    })?;
    if !endpoint_parts(&endpoint).all(is_plain) {
        return Err(wrong("to have placeholders without `|`"));
    }
    let method = Method::parse(method_text).ok_or_else(|| wrong("to have a known method"))?;
    let headers = read_headers(entry, headers_text)?;
    let placed = |slug: &String| {
        let mut placed = headers.iter().flat_map(|(_, value)| value.secrets());
        placed.any(|other| other == slug)
    };
    let by_policy = entry.secrets.iter().filter(|slug| !placed(slug));
    let secrets_by_policy = by_policy.cloned().collect();
    let call = HttpCall {
        endpoint,
        method,
        headers,
        body: method.sends_input().then(BodyTemplate::whole),
        secrets_by_policy,
        ..HttpCall::default()
    };
    let inputs = entry.input_schema.shape();
    if let Some(name) = unplaced(&call, &InputMapping::default(), &[], &inputs) {
        let message = format!(
            "expected the url of {} to use every input, as {} sends no body, found no `${{{name}}}` in {url:?}",
            entry.id,
            method.as_str()
        );
        return Err((&codes::TRANSPORT_INPUT_UNPLACED, message));
    }
    let egress = CapabilitySet::from_iter([origin]);
    let complete = |entry: &mut Implements| entry.http = Some(call);
    let mut driver = assemble(entry, contract, DriverKind::Http, egress, complete)
        .ok_or_else(|| wrong("to belong to a contract whose version npm can read"))?;
    driver.request_defaults = written(method_text, url, headers_text);
    let objection = driver.check_against(contract, "");
    match objection.into_iter().find(Diagnostic::is_error) {
        None => Ok(driver),
        Some(found) if found.code == codes::HTTP_INPUT_UNKNOWN.code => {
            Err((&codes::TRANSPORT_URL_REFUSED, found.message))
        }
        Some(found) => Err((&codes::TRANSPORT_UNDECLARED, found.message)),
    }
}

/// The driver of an `exec` transport. Its egress is the whole network that the contract declares,
/// since the transport does not narrow that.
fn run(
    entry: &IndexEntry,
    contract: &Tool,
    command: &str,
    args: &[String],
) -> Result<Driver, Refusal> {
    let refused = |message: String| {
        let message = format!("{message}, in the transport of {}", entry.id);
        (&codes::TRANSPORT_COMMAND_REFUSED, message)
    };
    let program = Program::new(command, args).map_err(refused)?;
    let declared = contract.declaration();
    let network = declared.of_class(&Class::Network).cloned().collect();
    let made = assemble(entry, contract, DriverKind::Exec, network, |entry| {
        entry.program = Some(program)
    });
    made.ok_or_else(|| refused("expected a contract whose version npm can read".to_owned()))
}

fn endpoint_parts(endpoint: &Endpoint) -> impl Iterator<Item = &TemplatePart> {
    let query = endpoint.query.iter().map(|(_, value)| value);
    let all = endpoint.segments.iter().chain(query);
    all.flat_map(|template| &template.parts)
}

/// Whether a part is text or the plain value of an input.
fn is_plain(part: &TemplatePart) -> bool {
    match part {
        TemplatePart::Literal(_) => true,
        TemplatePart::Value(slot) => {
            slot.source == SlotSource::Input && slot.default.is_none() && !slot.json
        }
        TemplatePart::Secret(_) => false,
    }
}

/// Splits a URL into its host, and its path and query in the spelling of DRIVER.md. `None` if the
/// URL is not https, or has no literal host.
fn split(entry: &IndexEntry, url: &str) -> Option<(Capability, String)> {
    let rest = url.strip_prefix("https://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at_checked(end)?;
    let origin = Capability::of(Class::Network, authority).ok()?;
    origin.host().filter(|host| host.is_literal())?;
    let slash = if rest.starts_with('/') { "" } else { "/" };
    let endpoint = format!("{slash}{}", respelled(rest, &entry.secrets, false));
    Some((origin, endpoint))
}

fn read_headers(
    entry: &IndexEntry,
    headers: &[(String, String)],
) -> Result<Vec<(String, Template)>, Refusal> {
    let mut read: Vec<(String, Template)> = Vec::new();
    for (key, value) in headers {
        let refused = |expected: &str| {
            let message = format!(
                "expected {expected} in the headers of {}, found {key:?}",
                entry.id
            );
            (&codes::TRANSPORT_HEADER_REFUSED, message)
        };
        let name = key.to_ascii_lowercase();
        if let Some(expected) = header_refusal(&name, value, &read) {
            return Err(refused(expected));
        }
        let template = Template::parse(&respelled(value, &entry.secrets, true))
            .map_err(|_| refused("only placeholders for secrets"))?;
        for part in &template.parts {
            match part {
                TemplatePart::Literal(text) if text.contains(['$', '{', '}']) => {
                    return Err(refused("no `$`, `{` and `}` outside `${secret:ID}`"));
                }
                TemplatePart::Value(_) => return Err(refused("only placeholders for secrets")),
                _ => {}
            }
        }
        let declares = |slug: &str| entry.secrets.iter().any(|own| own == slug);
        if let Some(slug) = template.secrets().find(|slug| !declares(slug)) {
            let message = format!(
                "expected `secrets` of {} to have what its headers use, found no `{slug}`",
                entry.id
            );
            return Err((&codes::TRANSPORT_UNDECLARED, message));
        }
        read.push((name, template));
    }
    Ok(read)
}

/// Changes `${NAME}` to `${input.NAME}`, and `${secret:ID}` to `${secret.ID}`. In headers, also
/// changes `${ID}` to `${secret.ID}` if `ID` is one of `secrets`. An unclosed placeholder stays,
/// and is refused later.
fn respelled(text: &str, secrets: &[String], header: bool) -> String {
    let mut spelled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        spelled.push_str(before);
        spelled.push_str("${");
        let Some((inner, after)) = after.split_once('}') else {
            rest = after;
            continue;
        };
        match inner.strip_prefix("secret:") {
            Some(slug) => spelled.extend(["secret.", slug]),
            None if inner.starts_with("input.") || inner.starts_with("secret.") => {
                spelled.push_str(inner);
            }
            None if header && secrets.iter().any(|slug| slug == inner) => {
                spelled.extend(["secret.", inner]);
            }
            None => spelled.extend(["input.", inner]),
        }
        spelled.push('}');
        rest = after;
    }
    spelled.push_str(rest);
    spelled
}

/// The request as written in the document. People who look at the driver see it, and it is a part
/// of the bundle's surface (what a model or a policy sees of the bundle).
fn written(method: &str, url: &str, headers: &[(String, String)]) -> Map<String, Value> {
    let headers = headers.iter().cloned();
    let headers = headers.map(|(name, value)| (name, Value::from(value)));
    let mut written = Map::new();
    written.insert("method".to_owned(), method.into());
    written.insert("url".to_owned(), url.into());
    written.insert("headers".to_owned(), headers.collect());
    written
}

fn assemble(
    entry: &IndexEntry,
    contract: &Tool,
    kind: DriverKind,
    egress: CapabilitySet,
    complete: impl FnOnce(&mut Implements),
) -> Option<Driver> {
    let version_text = contract.version.to_string();
    let version = nodejs_semver::Range::parse(&version_text).ok()?;
    let tool = (entry.id.to_string(), Some(entry.id.clone()));
    let mut implements = Implements::new(tool, (version, version_text), entry.at);
    complete(&mut implements);
    let (id, name) = (entry.id.clone(), entry.id.to_string());
    let version = semver::Version::new(1, 0, 0);
    Some(Driver {
        implements: vec![implements],
        declares_network: !egress.is_empty(),
        egress,
        is_attachment: true,
        ..Driver::new(id, name, entry.description.clone(), version, kind)
    })
}
