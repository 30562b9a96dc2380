//! AML's hard rules, which AML's compiler enforces, and the rules of AML's field reference. In
//! AML's subset of JSON Schema, a schema is an object at the top, and has no references.

use semver::Version;

use toolward_contract::NoScope;
use toolward_contract::diagnostic::Position;
use toolward_contract::driver::Method;
use toolward_contract::schema::Schema;
use toolward_support::fields::Content;
use toolward_support::report::Code;
use toolward_support::words;

use super::codes;
use super::fields::{Field, Fields, Findings, Node, is_empty, present};

/// The version of AML that has these rules.
pub(crate) const SPEC_VERSION: &str = "1.2";

words! {
    /// How a tool behaves.
    Behaviour {
        Retrieval = "retrieval",
        Action = "action",
        Function = "function",
        Human = "human",
    }
}

words! {
    /// The state of a definition.
    Lifecycle {
        Draft = "draft",
        Active = "active",
        Deprecated = "deprecated",
        Disabled = "disabled",
    }
}

const PROTOCOLS: [&str; 6] = [
    "rest-api",
    "lambda",
    "mcp",
    "message-queue",
    "database",
    "grpc",
];

/// The values of `transport.credentials.scheme`.
const SCHEMES: [&str; 6] = [
    "none",
    "iam-role",
    "api-key",
    "bearer-token",
    "oauth2",
    "service-account",
];

/// The sources of secrets.
const SOURCES: [&str; 4] = [
    "env",
    "aws_secrets_manager",
    "gcp_secret_manager",
    "azure_key_vault",
];

/// Applies the rules.
pub(super) fn check(document: &Node, findings: &mut Findings<'_>) {
    let Some(mut fields) = findings.mapping(&Field::new("", document)) else {
        return;
    };
    if let Some((found, at)) = findings.required_text(&mut fields, "spec_version")
        && found != SPEC_VERSION
    {
        let message = format!("expected `spec_version` to be {SPEC_VERSION:?}, found {found:?}");
        findings.add(&codes::SPEC_VERSION_UNKNOWN, at, message);
    }
    let code = &codes::TOOL_ID_INVALID;
    let id = "3 to 64 lower-case letters, digits, `_` and `-`";
    findings.formed(&mut fields, "tool_id", code, id, is_tool_id);
    let code = &codes::VERSION_INVALID;
    let version = "a semantic version such as \"1.0.0\"";
    let is_version = |text: &str| Version::parse(text).is_ok();
    findings.formed(&mut fields, "version", code, version, is_version);
    if let Some(status) = findings.required(&mut fields, "status") {
        let (states, word) = (Lifecycle::ALL, Lifecycle::as_str);
        findings.choice(&status, &codes::STATUS_UNKNOWN, states, word);
    }
    if let Some((mut meta, _)) = findings.required_mapping(&mut fields, "meta") {
        for key in ["name", "description", "owner"] {
            findings.required_text(&mut meta, key);
        }
    }
    let kind = findings.required(&mut fields, "type");
    let (all, word) = (Behaviour::ALL, Behaviour::as_str);
    let behaviour = kind
        .as_ref()
        .and_then(|kind| findings.choice(kind, &codes::TYPE_UNKNOWN, all, word));
    if let Some((mut interface, _)) = findings.required_mapping(&mut fields, "interface") {
        for (key, code) in [
            ("input", &codes::INPUT_INVALID),
            ("output", &codes::OUTPUT_INVALID),
        ] {
            if let Some(field) = findings.required(&mut interface, key) {
                schema(&field, code, findings);
            }
        }
    }
    match (present(&mut fields, "transport"), &kind) {
        (Some(field), _) => transport(&field, findings),
        (None, Some(kind)) if behaviour.is_some_and(|found| found != Behaviour::Function) => {
            findings.missing(&codes::TRANSPORT_MISSING, "transport", kind.at);
        }
        (None, _) => {}
    }
    findings.required_mapping(&mut fields, "use_guidance");
}

fn is_tool_id(text: &str) -> bool {
    let of_id =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    (3..=64).contains(&text.len()) && text.bytes().all(of_id)
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
                    listed(name, &mut transport, field.key_at, findings);
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

/// A row of AML's table for a transport other than `rest-api`: a field's name, whether the field is
/// required, and its allowed values. If the list of values is empty, any text is valid.
type Row = (&'static str, bool, &'static [&'static str]);

const LAMBDA: &[Row] = &[
    ("provider", true, &["aws", "gcp", "azure"]),
    ("function_id", true, &[]),
    ("invocation_type", true, &["RequestResponse", "Event"]),
    ("payload_format", false, &["json", "raw"]),
];
const MCP: &[Row] = &[
    ("url", true, &[]),
    ("tool_name", true, &[]),
    ("protocol_version", false, &[]),
];
const MESSAGE_QUEUE: &[Row] = &[
    ("provider", true, &["aws", "gcp", "azure", "kafka"]),
    ("queue_url", true, &[]),
    ("message_format", false, &["json", "avro"]),
    ("response_queue_url", false, &[]),
];
const ENGINES: &[&str] = &[
    "postgresql",
    "mysql",
    "mssql",
    "bigquery",
    "snowflake",
    "rds-data-api",
];
const DATABASE: &[Row] = &[
    ("engine", true, ENGINES),
    ("query_method", true, &["parameterised-sql", "orm"]),
];

/// Checks a transport against the table of its protocol; `at` is the transport's position.
fn listed(protocol: &str, transport: &mut Fields<'_>, at: Position, findings: &mut Findings<'_>) {
    let table = match protocol {
        "lambda" => LAMBDA,
        "mcp" => MCP,
        "message-queue" => MESSAGE_QUEUE,
        "database" => DATABASE,
        _ => return,
    };
    for (key, required, values) in table {
        let field = match required {
            true => findings.filled(transport, key, &codes::TRANSPORT_INCOMPLETE, at),
            false => present(transport, key).filter(|field| !is_empty(field)),
        };
        match field {
            Some(field) if values.is_empty() => {
                findings.text(&field, &codes::FIELD_TYPE, "text");
            }
            Some(field) => {
                findings.one_of(&field, &codes::VALUE_UNKNOWN, values);
            }
            None => {}
        }
    }
}

/// Checks that a `rest-api` transport has a `base_url`, and an `endpoint` that starts with a
/// method. AML requires neither field.
fn request(transport: &mut Fields<'_>, at: Position, findings: &mut Findings<'_>) {
    let code = &codes::REQUEST_INCOMPLETE;
    findings.filled(transport, "base_url", code, at);
    let Some(endpoint) = findings.filled(transport, "endpoint", code, at) else {
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
    let scheme = findings.one_of(&scheme, &codes::SCHEME_UNKNOWN, &SCHEMES);
    let (keys, code): (&[&'static str], _) = match scheme {
        Some("api-key" | "bearer-token" | "service-account") => {
            (&["source"], &codes::SOURCE_MISSING)
        }
        Some("oauth2") => (&["provider", "function_id"], &codes::OAUTH2_INCOMPLETE),
        _ => return,
    };
    for key in keys {
        findings.filled(&mut credentials, key, code, field.key_at);
    }
    if let Some(source) = field.get("source").filter(|source| !is_empty(source)) {
        let is_filled = |key| field.get(key).is_some_and(|node| !is_empty(node));
        if *keys == ["source"] && !is_filled("name") && !is_filled("secret_id") {
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

/// Looks for a part of the schema that AML's compiler refuses. Returns the position of the first
/// such part, and the reason, which follows the field's name in a message.
fn breach(schema: &Node) -> Option<(Position, String)> {
    let Content::Mapping(_) = &schema.content else {
        return None;
    };
    let (at, problem) = match schema.get("type").map(|kind| (kind.at, &kind.content)) {
        Some((_, Content::Text(kind))) if kind == "object" => return reference(schema, false),
        Some((at, _)) => (at, "`type` is another"),
        None => (schema.at, "it has no `type: object`"),
    };
    Some((at, format!("does not describe an object: {problem}")))
}

/// Returns the first keyword `$ref` or `$id`. If `names` is true, the node's keys are names of
/// properties and not keywords.
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
