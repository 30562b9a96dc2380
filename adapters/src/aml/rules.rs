//! AML's hard rules: a definition that breaks one is refused by its compiler. Its subset of JSON Schema
//! ("JSON Schema in YAML") has an object at the top, and everything written out in place.

use semver::Version;

use toolward_contract::NoScope;
use toolward_contract::diagnostic::Position;
use toolward_contract::driver::Method;
use toolward_contract::schema::Schema;
use toolward_support::fields::Content;
use toolward_support::report::Code;

use super::fields::{Field, Fields, Findings, Node, is_empty, present};
use super::{codes, transports};

/// The version of AML that these rules are of.
pub(crate) const SPEC_VERSION: &str = "1.2";

/// How a tool behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behaviour {
    Retrieval,
    Action,
    Function,
    Human,
}

pub(crate) const BEHAVIOURS: [(&str, Behaviour); 4] = [
    ("retrieval", Behaviour::Retrieval),
    ("action", Behaviour::Action),
    ("function", Behaviour::Function),
    ("human", Behaviour::Human),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lifecycle {
    Draft,
    Active,
    Deprecated,
    Disabled,
}

/// Its word in a definition.
pub(crate) fn word<T: Copy + PartialEq>(known: &[(&'static str, T)], value: T) -> &'static str {
    let found = known.iter().find(|(_, known)| *known == value);
    found.map_or("", |(word, _)| word)
}

pub(crate) const STATES: [(&str, Lifecycle); 4] = [
    ("draft", Lifecycle::Draft),
    ("active", Lifecycle::Active),
    ("deprecated", Lifecycle::Deprecated),
    ("disabled", Lifecycle::Disabled),
];

const PROTOCOLS: [&str; 6] = [
    "rest-api",
    "lambda",
    "mcp",
    "message-queue",
    "database",
    "grpc",
];

/// How a caller proves who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    /// Without a secret of the definition's own.
    Ambient,
    /// By a secret, which comes from somewhere.
    Secret,
    Oauth2,
}

const SCHEMES: [(&str, Scheme); 6] = [
    ("none", Scheme::Ambient),
    ("iam-role", Scheme::Ambient),
    ("api-key", Scheme::Secret),
    ("bearer-token", Scheme::Secret),
    ("oauth2", Scheme::Oauth2),
    ("service-account", Scheme::Secret),
];

/// Where secrets come from.
const SOURCES: [&str; 4] = [
    "env",
    "aws_secrets_manager",
    "gcp_secret_manager",
    "azure_key_vault",
];

/// What the lints look at.
pub(super) struct LintedDefinition<'n> {
    pub(super) behaviour: Option<(Behaviour, Position)>,
    pub(super) status: Option<(Lifecycle, Position)>,
    /// Whether it has the time of its last change.
    pub(super) is_dated: bool,
    /// `use_guidance`, where it is a mapping.
    pub(super) guidance: Option<(Fields<'n>, Position)>,
}

/// Applies the rules; the definition, if there is one to be read.
pub(super) fn check<'n>(
    document: &'n Node,
    findings: &mut Findings<'_>,
) -> Option<LintedDefinition<'n>> {
    let mut fields = findings.mapping(&Field::new("", document))?;
    spec_version(&mut fields, findings);
    let id = "3 to 64 lower-case letters, digits, `_` and `-`";
    let (unformed, fields_of) = (&codes::TOOL_ID_INVALID, &mut fields);
    formed(fields_of, "tool_id", unformed, id, is_tool_id, findings);
    let version = "a semantic version such as \"1.0.0\"";
    let unformed = &codes::VERSION_INVALID;
    let is_version = |text: &str| Version::parse(text).is_ok();
    formed(
        fields_of, "version", unformed, version, is_version, findings,
    );
    let status = findings.required(&mut fields, "status").and_then(|field| {
        let status = findings.choice(&field, &codes::STATUS_UNKNOWN, &STATES)?;
        Some((status, field.at))
    });
    let is_dated = meta(&mut fields, findings);
    let behaviour = findings.required(&mut fields, "type").and_then(|field| {
        let behaviour = findings.choice(&field, &codes::TYPE_UNKNOWN, &BEHAVIOURS)?;
        Some((behaviour, field.at))
    });
    interface(&mut fields, findings);
    match present(&mut fields, "transport") {
        Some(field) => transport(&field, findings),
        None => {
            if let Some((behaviour, at)) = behaviour
                && behaviour != Behaviour::Function
            {
                findings.missing(&codes::TRANSPORT_MISSING, "transport", at);
            }
        }
    }
    let guidance = findings
        .required(&mut fields, "use_guidance")
        .and_then(|field| Some((findings.mapping(&field)?, field.key_at)));
    Some(LintedDefinition {
        behaviour,
        status,
        is_dated,
        guidance,
    })
}

fn spec_version(fields: &mut Fields<'_>, findings: &mut Findings<'_>) {
    if let Some((found, at)) = findings.required_text(fields, "spec_version")
        && found != SPEC_VERSION
    {
        let message = format!("expected `spec_version` to be {SPEC_VERSION:?}, found {found:?}");
        findings.add(&codes::SPEC_VERSION_UNKNOWN, at, message);
    }
}

/// A required field of a form with its own rule.
fn formed(
    fields: &mut Fields<'_>,
    key: &'static str,
    code: &Code,
    expected: &str,
    is_formed: fn(&str) -> bool,
    findings: &mut Findings<'_>,
) {
    let Some(field) = findings.required(fields, key) else {
        return;
    };
    if let Some(found) = findings.text(&field, code, expected)
        && !is_formed(found)
    {
        let message = format!("expected `{key}` to be {expected}, found {found:?}");
        findings.add(code, field.at, message);
    }
}

fn is_tool_id(text: &str) -> bool {
    let of_id =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    (3..=64).contains(&text.len()) && text.bytes().all(of_id)
}

/// Whether `meta` has the time of the definition's last change.
fn meta(fields: &mut Fields<'_>, findings: &mut Findings<'_>) -> bool {
    let Some(field) = findings.required(fields, "meta") else {
        return false;
    };
    let Some(mut meta) = findings.mapping(&field) else {
        return false;
    };
    for key in ["name", "description", "owner"] {
        findings.required_text(&mut meta, key);
    }
    present(&mut meta, "last_updated").is_some_and(|field| !is_empty(&field))
}

fn interface(fields: &mut Fields<'_>, findings: &mut Findings<'_>) {
    let Some(field) = findings.required(fields, "interface") else {
        return;
    };
    let Some(mut interface) = findings.mapping(&field) else {
        return;
    };
    for (key, code) in [
        ("input", &codes::INPUT_INVALID),
        ("output", &codes::OUTPUT_INVALID),
    ] {
        if let Some(field) = findings.required(&mut interface, key) {
            schema(&field, code, findings);
        }
    }
}

fn schema(field: &Field<'_>, code: &Code, findings: &mut Findings<'_>) {
    if let Some((at, problem)) = breach(field.node) {
        let message = format!("`{}` {problem}", field.name);
        findings.add(code, at, message);
    } else if !matches!(field.content, Content::Mapping(_)) {
        let message = format!(
            "expected `{}` to be a JSON Schema, found {}",
            field.name,
            field.kind()
        );
        findings.add(code, field.at, message);
    } else if let Err(error) = Schema::compile(&field.to_value(), &NoScope) {
        let at = field.place(&error.path);
        let message = format!("`{}` is not a JSON Schema: {}", field.name, error.message);
        findings.add(code, at, message);
    }
}

fn transport(field: &Field<'_>, findings: &mut Findings<'_>) {
    let Some(mut transport) = findings.mapping(field) else {
        return;
    };
    match present(&mut transport, "type") {
        Some(protocol) => {
            findings.one_of(&protocol, &codes::TRANSPORT_UNKNOWN, &PROTOCOLS);
            match &protocol.content {
                Content::Text(name) if name == "rest-api" => {
                    request(&mut transport, field.key_at, findings);
                }
                Content::Text(name) => {
                    transports::check(name, &mut transport, field.key_at, findings);
                }
                _ => {}
            }
        }
        None => findings.missing(&codes::TRANSPORT_UNKNOWN, "transport.type", field.key_at),
    }
    match present(&mut transport, "credentials") {
        Some(field) => credentials(&field, findings),
        None => {
            let name = "transport.credentials";
            findings.missing(&codes::CREDENTIALS_MISSING, name, field.key_at);
        }
    }
}

/// AML requires neither part of a request, and without them there is none.
fn request(transport: &mut Fields<'_>, at: Position, findings: &mut Findings<'_>) {
    let code = &codes::REQUEST_INCOMPLETE;
    if present(transport, "base_url").is_none_or(|field| is_empty(&field)) {
        findings.missing(code, "transport.base_url", at);
    }
    let Some(endpoint) = present(transport, "endpoint").filter(|field| !is_empty(field)) else {
        findings.missing(code, "transport.endpoint", at);
        return;
    };
    let has_method = |text: &str| {
        let method = text.split_once(' ').map(|(method, _)| method);
        method.is_some_and(|method| Method::parse(method).is_some())
    };
    if let Content::Text(text) = &endpoint.content
        && !has_method(text)
    {
        let message = format!(
            "expected `transport.endpoint` to be a method, a space and a path, found {text:?}"
        );
        findings.add(code, endpoint.at, message);
    }
}

fn credentials(field: &Field<'_>, findings: &mut Findings<'_>) {
    let Some(mut credentials) = findings.mapping(field) else {
        return;
    };
    let Some(scheme) = present(&mut credentials, "scheme") else {
        let name = "transport.credentials.scheme";
        findings.missing(&codes::SCHEME_UNKNOWN, name, field.key_at);
        return;
    };
    let needed: (&[&'static str], &Code) =
        match findings.choice(&scheme, &codes::SCHEME_UNKNOWN, &SCHEMES) {
            Some(Scheme::Secret) => (&["source"], &codes::SOURCE_MISSING),
            Some(Scheme::Oauth2) => (&["provider", "function_id"], &codes::OAUTH2_INCOMPLETE),
            Some(Scheme::Ambient) | None => return,
        };
    let (keys, code) = needed;
    for key in keys {
        if present(&mut credentials, key).is_none_or(|field| is_empty(&field)) {
            let name = format!("transport.credentials.{key}");
            findings.missing(code, &name, field.key_at);
        }
    }
    if let Some(source) = field.get("source").filter(|source| !is_empty(source)) {
        let named = ["name", "secret_id"];
        let named = named
            .iter()
            .any(|key| field.get(key).is_some_and(|node| !is_empty(node)));
        if *keys == ["source"] && !named {
            let key = match &source.content {
                Content::Text(source) if source == "env" => "name",
                _ => "secret_id",
            };
            let name = format!("transport.credentials.{key}");
            findings.missing(&codes::TRANSPORT_INCOMPLETE, &name, field.key_at);
        }
        let name = "transport.credentials.source";
        findings.one_of(&Field::new(name, source), &codes::VALUE_UNKNOWN, &SOURCES);
    }
}

/// Keywords whose values are data and not schemas.
const DATA: [&str; 4] = ["const", "default", "enum", "examples"];

/// The first part that AML's compiler refuses, and why; the reason follows the field's name.
fn breach(schema: &Node) -> Option<(Position, String)> {
    let Content::Mapping(_) = &schema.content else {
        return None;
    };
    match schema.get("type").map(|kind| (kind.at, &kind.content)) {
        Some((_, Content::Text(kind))) if kind == "object" => reference(schema, false),
        Some((at, _)) => Some((
            at,
            "does not describe an object: `type` is another".to_owned(),
        )),
        None => Some((
            schema.at,
            "does not describe an object: it has no `type: object`".to_owned(),
        )),
    }
}

/// The first `$ref` or `$id`. `names`: whether the keys are names of properties.
fn reference(node: &Node, names: bool) -> Option<(Position, String)> {
    match &node.content {
        Content::List(items) => items.iter().find_map(|item| reference(item, false)),
        Content::Mapping(entries) => entries.iter().find_map(|entry| match entry.key.as_str() {
            key @ ("$ref" | "$id") if !names => {
                let found = format!("has `{key}`, which AML does not know: write the schema out");
                Some((entry.key_at, found))
            }
            key if !names && DATA.contains(&key) => None,
            key => reference(&entry.value, !names && key == "properties"),
        }),
        _ => None,
    }
}
