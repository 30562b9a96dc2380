//! The driver that a version 1 `http` or `exec` transport stands for. Runs nothing.
//!
//! Version 1 leaves open how placeholders are spelled, where inputs go and what is encoded. What
//! has one careful reading is taken; everything else is refused, so that nothing is dropped
//! silently or sent to an undeclared place.

use serde_json::{Map, Value};

use super::{IndexEntry, Transport};
use crate::capability::{Capability, CapabilitySet, Class};
use crate::codes;
use crate::diagnostic::{Code, Diagnostic};
use crate::driver::{
    Body, CostOverride, Denied, Driver, DriverKind, DriverLimits, Endpoint, HttpCall, Implements,
    Mapping, Method, Part, Places, Platform, Program, Response, SlotSource, Template, World,
    header_refusal, unplaced,
};
use crate::tool::{Requires, Tool};

/// The rule that an entry breaks, and how.
type Refusal = (&'static Code, String);

pub(super) fn driver(
    entry: &IndexEntry,
    contract: &Tool,
    file: &str,
) -> Option<Result<Driver, Diagnostic>> {
    let made = match &entry.transport {
        Transport::Component { .. } => return None,
        _ if !entry.ungrantable.is_empty() => Err(ungrantable(entry)),
        Transport::Exec { command, args } => run(entry, contract, command, args),
        Transport::Http {
            method,
            url,
            headers,
        } => attach(entry, contract, method, url, headers),
    };
    Some(made.map_err(|(code, message)| {
        let denied = Diagnostic::new(code, file, entry.at, message);
        match entry.ungrantable.is_empty() {
            true => denied,
            false => denied
                .with_hint("write each family with its scope, such as `net:HOST`, or leave it out"),
        }
    }))
}

/// What no policy can grant denies the attachment, and no other one (Runloop, "Capability enforcement").
fn ungrantable(entry: &IndexEntry) -> Refusal {
    let families = entry.ungrantable.join("`, `");
    let message = format!(
        "expected `capabilities` of {} to be families with a scope that can be granted, found `{families}`",
        entry.id
    );
    (&codes::TRANSPORT_CAPABILITY_UNGRANTABLE, message)
}

/// The driver of a transport that is denied: it serves nothing, and says why.
pub(super) fn denied(entry: &IndexEntry, contract: &Tool, why: &Diagnostic) -> Option<Driver> {
    let means = match &entry.transport {
        Transport::Component { .. } => return None,
        Transport::Exec { .. } => Means::Nothing(DriverKind::Exec),
        Transport::Http { .. } => Means::Nothing(DriverKind::Http),
    };
    let mut driver = assemble(entry, contract, CapabilitySet::new(), means)?;
    driver.denied = Some(Denied {
        code: why.code,
        message: why.message.clone(),
    });
    Some(driver)
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
    let placed: Vec<&str> = headers
        .iter()
        .flat_map(|(_, value)| value.secrets())
        .collect();
    let without_place = entry.secrets.iter();
    let secrets_by_policy = without_place
        .filter(|slug| !placed.contains(&slug.as_str()))
        .cloned()
        .collect();
    let takes_input = method.sends_input();
    let call = HttpCall {
        endpoint,
        method,
        headers,
        body: takes_input.then(Body::whole),
        response: Response::Whole,
        idempotency_key_header: None,
        errors: Vec::new(),
        retry_statuses: None,
        timeout: None,
        secrets_by_policy,
    };
    let inputs = entry.input_schema.shape();
    if let Some(name) = unplaced(&call, &Mapping::default(), &[], &inputs) {
        let message = format!(
            "expected the url of {} to use every input, as {} sends no body, found no `${{{name}}}` in {url:?}",
            entry.id,
            method.as_str()
        );
        return Err((&codes::TRANSPORT_INPUT_UNPLACED, message));
    }
    let written = written(method_text, url, headers_text);
    let egress = CapabilitySet::from_iter([origin]);
    let driver = assemble(
        entry,
        contract,
        egress,
        Means::Request(Box::new(call), written),
    )
    .ok_or_else(|| wrong("to belong to a contract whose version npm can read"))?;
    let objection = driver.check_against(contract, "");
    match objection.into_iter().find(Diagnostic::is_error) {
        None => Ok(driver),
        Some(found) if found.code == codes::HTTP_INPUT_UNKNOWN.code => {
            Err((&codes::TRANSPORT_URL_REFUSED, found.message))
        }
        Some(found) => Err((&codes::TRANSPORT_UNDECLARED, found.message)),
    }
}

/// The program of an `exec` transport. It uses all that its contract declares: nothing narrows it.
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
    let made = assemble(entry, contract, network, Means::Program(program));
    made.ok_or_else(|| refused("expected a contract whose version npm can read".to_owned()))
}

fn endpoint_parts(endpoint: &Endpoint) -> impl Iterator<Item = &Part> {
    let query = endpoint.query.iter().map(|(_, value)| value);
    let all = endpoint.segments.iter().chain(query);
    all.flat_map(|template| &template.parts)
}

/// Whether a part is text or the value of an input, which is all that version 1 knows.
fn is_plain(part: &Part) -> bool {
    match part {
        Part::Literal(_) => true,
        Part::Value(slot) => {
            slot.source == SlotSource::Input && slot.default.is_none() && !slot.json
        }
        Part::Secret(_) => false,
    }
}

/// Authority, and path with query in the spelling of DRIVER.md.
fn split(entry: &IndexEntry, url: &str) -> Option<(Capability, String)> {
    let rest = url.strip_prefix("https://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at_checked(end)?;
    let origin = Capability::of(Class::Network, authority).ok()?;
    origin.host().filter(|host| host.is_literal())?;
    let slash = if rest.starts_with('/') { "" } else { "/" };
    Some((
        origin,
        format!("{slash}{}", respelled(rest, &entry.secrets, false)),
    ))
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
                Part::Literal(text) if text.contains(['$', '{', '}']) => {
                    return Err(refused("no `$`, `{` and `}` outside `${secret:ID}`"));
                }
                Part::Value(_) => return Err(refused("only placeholders for secrets")),
                _ => {}
            }
        }
        if let Some(slug) = template.secrets().find(|slug| !declares(entry, slug)) {
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

fn declares(entry: &IndexEntry, slug: &str) -> bool {
    entry.secrets.iter().any(|own| own == slug)
}

/// `${NAME}` as `${input.NAME}`, `${secret:ID}` as `${secret.ID}`, and, in headers, `${ID}` of a
/// secret as that. What is neither stays, to be refused with the rest.
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

/// The request as the document has it: what readers of the driver see of where it goes.
fn written(method: &str, url: &str, headers: &[(String, String)]) -> Map<String, Value> {
    let headers: Map<String, Value> = headers
        .iter()
        .map(|(name, value)| (name.clone(), Value::from(value.as_str())))
        .collect();
    let mut written = Map::new();
    written.insert("method".to_owned(), Value::from(method));
    written.insert("url".to_owned(), Value::from(url));
    written.insert("headers".to_owned(), Value::from(headers));
    written
}

/// What carries a tool out.
enum Means {
    /// A request, and as the document has it.
    Request(Box<HttpCall>, Map<String, Value>),
    Program(Program),
    /// What its transport asks for is denied.
    Nothing(DriverKind),
}

fn assemble(
    entry: &IndexEntry,
    contract: &Tool,
    egress: CapabilitySet,
    means: Means,
) -> Option<Driver> {
    let version_text = contract.version.to_string();
    let (kind, http, written, program) = match means {
        Means::Request(call, written) => (DriverKind::Http, Some(*call), written, None),
        Means::Program(program) => (DriverKind::Exec, None, Map::new(), Some(program)),
        Means::Nothing(kind) => (kind, None, Map::new(), None),
    };
    let implements = Implements {
        tool: entry.id.to_string(),
        tool_id: Some(entry.id.clone()),
        version: nodejs_semver::Range::parse(&version_text).ok()?,
        version_text,
        drop_inputs: Vec::new(),
        drop_outputs: Vec::new(),
        mapping: Mapping::default(),
        cost_override: CostOverride::default(),
        timeout: None,
        retry: None,
        http,
        places: Places::default(),
        program,
        world: World::default(),
        kind_fields: Map::new(),
        metadata: Map::new(),
        at: entry.at,
    };
    Some(Driver {
        id: entry.id.clone(),
        name: entry.id.to_string(),
        description: entry.description.clone(),
        version: semver::Version::new(1, 0, 0),
        kind,
        component: None,
        implements: vec![implements],
        declares_network: !egress.is_empty(),
        egress,
        requires: Requires::default(),
        platform: Platform::default(),
        cost_override: CostOverride::default(),
        timeout_override: None,
        retry_override: None,
        limits: DriverLimits::default(),
        region: Vec::new(),
        policy_tags: Vec::new(),
        request_defaults: written,
        hints: Map::new(),
        auth: None,
        health_check: None,
        kind_fields: Map::new(),
        metadata: Map::new(),
        body: String::new(),
        is_attachment: true,
        denied: None,
    })
}
