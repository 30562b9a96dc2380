//! DRIVER.md field by field. Entries of `implements` are read elsewhere.

use serde_json::Map;

use super::http::HttpDefaults;
use super::requirements::{read_auth, read_cost};
use super::{Driver, DriverKind, DriverLimits, Platform, implements, without_effect};
use crate::capability::{CapabilitySet, Class};
use crate::codes;
use crate::diagnostic::{FileReport, Parsed};
use crate::front_matter::{FrontMatter, split, split_with};
use crate::json::MAX_SAFE_INTEGER;
use crate::shared::{self, requires_parts, scopes};
use crate::source::{Content, FieldReader, KeyForm, MappingReader, Node, PlacedValue, nearest};
use crate::tool::Requires;
use crate::wording;

/// What `spec` may say: the format of AIP-30.
const SPEC: &[&str] = &["agentdriver/v1"];

/// What `schema` may say.
const SCHEMA: &[&str] = &["agentproto/driver/v1"];

impl Driver {
    /// Reads a DRIVER.md. `file` names it in diagnostics.
    #[must_use]
    pub fn parse(file: &str, source: &str) -> Parsed<Driver> {
        let report = FileReport::new(file);
        let parts = never_run(source).or_else(|| split(source, &report));
        let driver = parts.and_then(|parts| driver(&parts.root(&report), parts.body));
        if driver.as_ref().is_some_and(|driver| !driver.kind.is_run()) {
            report.warn_only_of(&codes::KIND_UNSUPPORTED);
        }
        report.finish(driver)
    }
}

/// The parts of a driver of a kind that no host runs. Its keys may be integers, such as the exit codes of a command.
fn never_run(source: &str) -> Option<FrontMatter<'_>> {
    let parts = split_with(source, KeyForm::Integers, &FileReport::new(""))?;
    is_other(&parts.fields).then_some(parts)
}

fn is_other(root: &Node) -> bool {
    match root.get("kind").map(|kind| &kind.content) {
        Some(Content::Text(kind)) => DriverKind::OTHER.contains(&kind.as_str()),
        _ => false,
    }
}

fn driver(root: &FieldReader<'_>, body: &str) -> Option<Driver> {
    if root.is_null() {
        let message =
            "expected the fields name, id, description, version, kind and implements, found none";
        return root.refuse(&codes::MISSING_FIELD, message);
    }
    let mut fields = root.fields()?;
    let never_run = is_other(root);
    if !never_run {
        for key in without_effect::unread() {
            fields.take(key);
        }
        without_effect::warn(root);
    }
    if let Some(spec) = fields.take("spec") {
        shared::schema(&spec, SPEC);
    }
    // A kind that no host runs keeps its fields as written.
    let schema = match never_run {
        true => root
            .get("schema")
            .map(|node| FieldReader::new("schema", node, root.report)),
        false => fields.take("schema"),
    };
    if let Some(schema) = schema {
        shared::schema(&schema, SCHEMA);
    }
    let id = shared::id(&mut fields);
    let name = wording::name(&mut fields);
    let description = wording::description(&mut fields);
    let version = fields.require("version", wording::version);
    let kind = fields.require("kind", self::kind);
    let component = component(&mut fields, kind.as_ref());
    let egress = root.report.unbroken(|| egress(&mut fields));
    let network = root
        .get("network")
        .and_then(|network| network.get("egress"));
    let declares_network = network.is_some_and(|hosts| !hosts.is_null());
    let mut defaults = HttpDefaults::read(&mut fields, kind.as_ref());
    let is_http = kind == Some(DriverKind::Http);
    let egress = egress.map(|egress| match is_http {
        true => defaults.egress(egress, root),
        false => egress.value,
    });
    let entries = fields.required("implements");
    let implements = entries.map(|field| implements::read(&field, kind.as_ref(), &mut defaults));
    defaults.reading.warn_of_old_form(root.report);
    let (platform, mut requires) = requires(&mut fields);
    let cost_override = read_cost(&mut fields);
    let timeout_override = shared::milliseconds(&mut fields, "timeout_override_ms");
    let retry_override = shared::retry_override(&mut fields);
    let limits = limits(&mut fields);
    let region = region(&mut fields);
    let policy_tags = wording::labels(&mut fields, "policy_tags");
    wording::labels(&mut fields, "tags");
    let used: CapabilitySet = defaults.reading.secrets().collect();
    let (auth, stored) = read_auth(&mut fields, is_http.then_some(&used));
    requires.capabilities.extend(used.into_iter().chain(stored));
    let health_check = fields.take("health_check").map(|field| field.mapping());
    let metadata = fields.mapping("metadata");
    let kind_fields = match never_run {
        true => fields.rest(),
        false => {
            fields.unknown();
            Map::new()
        }
    };
    Some(Driver {
        id: id?,
        name: name?,
        description: description?,
        version: version?,
        kind: kind?,
        component,
        implements: implements.unwrap_or_default(),
        egress: egress.unwrap_or_default(),
        declares_network,
        requires,
        platform,
        cost_override,
        timeout_override: timeout_override.map(|given| given.value),
        retry_override,
        limits,
        region,
        policy_tags,
        request_defaults: defaults.written,
        hints: defaults.hints,
        auth,
        health_check,
        kind_fields,
        metadata,
        body: body.to_owned(),
        is_attachment: false,
        denied: None,
    })
}

fn kind(field: &FieldReader<'_>) -> Option<DriverKind> {
    match field.text()? {
        "component" => Some(DriverKind::Component),
        "http" => Some(DriverKind::Http),
        "form" => Some(DriverKind::Form),
        other if DriverKind::OTHER.contains(&other) => {
            let message = format!(
                "expected `kind` to be component, http or form, found {other}: this host does not run the driver"
            );
            field.note(&codes::KIND_UNSUPPORTED, message);
            Some(DriverKind::Other(other.to_owned()))
        }
        other => {
            let message = format!(
                "expected `kind` to be component, http, form, cli, mcp, sdk or builtin, found {other:?}"
            );
            let others = DriverKind::OTHER.iter().copied();
            let near = nearest(
                other,
                ["component", "http", "form"].into_iter().chain(others),
            );
            let hint = near.map(|near| format!("did you mean `{near}`?"));
            field.note_with_hint(&codes::KIND_UNKNOWN, message, hint);
            None
        }
    }
}

fn component(fields: &mut MappingReader<'_>, kind: Option<&DriverKind>) -> Option<String> {
    if kind == Some(&DriverKind::Component) {
        let field = fields.required("component")?;
        let found = field.text()?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let fits = found
            .strip_suffix(".wasm")
            .is_some_and(|stem| !stem.is_empty() && !stem.starts_with('.'));
        if !fits || !found.chars().all(plain) || found.len() > 128 {
            let message = format!(
                "expected `component` to name a .wasm file beside DRIVER.md, found {found:?}"
            );
            field.note(&codes::COMPONENT_NAME, message);
        }
        return Some(found.to_owned());
    }
    let field = fields.take("component")?;
    if let Some(kind) = kind {
        let message = format!(
            "expected `component` only beside `kind: component`, found it beside `kind: {kind}`"
        );
        field.note_at_key(&codes::COMPONENT_UNEXPECTED, message);
    }
    None
}

fn egress(fields: &mut MappingReader<'_>) -> PlacedValue<CapabilitySet> {
    let none = PlacedValue {
        value: CapabilitySet::new(),
        at: fields.at,
    };
    let Some(mut inner) = fields.take_fields("network") else {
        return none;
    };
    let read = |field: FieldReader<'_>| field.placed(scopes(&field, &Class::Network));
    let egress = inner.take("egress").map(read);
    inner.take("ingress").map(read);
    inner.unknown();
    egress.unwrap_or(none)
}

/// One region, or a list of them.
fn region(fields: &mut MappingReader<'_>) -> Vec<String> {
    match fields.take("region") {
        Some(field) if matches!(field.content, Content::Text(_)) => {
            wording::shown_text(&field, false).into_iter().collect()
        }
        Some(field) => wording::shown_texts(&field),
        None => Vec::new(),
    }
}

fn requires(fields: &mut MappingReader<'_>) -> (Platform, Requires) {
    let Some(mut inner) = fields.take_fields("requires") else {
        return (Platform::default(), Requires::default());
    };
    let os = wording::labels(&mut inner, "os");
    let arch = wording::labels(&mut inner, "arch");
    let mut megabytes = |key| inner.integer(key, 0..=u64::from(u32::MAX));
    let platform = Platform {
        os,
        arch,
        min_disk_mb: megabytes("min_disk_mb"),
        min_memory_mb: megabytes("min_memory_mb"),
    };
    let parts = requires_parts(&mut inner, Class::required());
    inner.unknown();
    (platform, parts.all())
}

fn limits(fields: &mut MappingReader<'_>) -> DriverLimits {
    let Some(mut inner) = fields.take_fields("limits") else {
        return DriverLimits::default();
    };
    let mut limit = |key| inner.integer(key, 1..=MAX_SAFE_INTEGER);
    let limits = DriverLimits {
        fuel: limit("fuel"),
        memory_mib: limit("memory_mib"),
        output_bytes: limit("output_bytes"),
        stdio_bytes: limit("stdio_bytes"),
        log_records: limit("log_records"),
        resources: limit("resources"),
        http_requests: limit("http_requests"),
        http_body_bytes: limit("http_body_bytes"),
        http_timeout_ms: limit("http_timeout_ms"),
        workspace_bytes: limit("workspace_bytes"),
        workspace_files: limit("workspace_files"),
        nested_calls: limit("nested_calls"),
    };
    inner.unknown();
    limits
}
