//! DRIVER.md field by field. Entries of `implements` are read elsewhere.

use super::plain::mapping;
use super::{Driver, DriverKind, DriverLimits, Platform, implements};
use crate::capability::{CapabilitySet, Class};
use crate::codes;
use crate::diagnostic::{Parsed, Report};
use crate::shared::{self, requires_parts, scopes};
use crate::source::{Content, Entry, Fields, Node, integer, split, text, texts};
use crate::tool::Requires;
use crate::wording;

/// AIP-30 knows them; neither a component nor a declarative http driver has a use for them.
const IGNORED: &[&str] = &[
    "code",
    "run",
    "runner",
    "execute",
    "install",
    "sandbox",
    "examples",
    "quota_key",
];

/// AIP-30's, too: nothing that this host does depends on them yet.
const WITHOUT_EFFECT: &[&str] = &["region", "policy_tags", "health_check"];

pub(super) fn document(file: &str, source: &str) -> Parsed<Driver> {
    let mut report = Report::new(file);
    let driver =
        split(source, &mut report).and_then(|parts| driver(&parts.fields, parts.body, &mut report));
    report.finish(driver)
}

fn driver(node: &Node, body: &str, report: &mut Report<'_>) -> Option<Driver> {
    if node.is_null() {
        report.add(
            &codes::MISSING_FIELD,
            node.at,
            "expected the fields name, id, description, version, kind and implements, found none",
        );
        return None;
    }
    let mut fields = Fields::of(node, "", report)?;
    for key in IGNORED {
        if let Some(entry) = fields.entry(key) {
            let message =
                format!("expected a field that this host uses, found `{key}`: it is ignored");
            report.add(&codes::DRIVER_FIELD_IGNORED, entry.key_at, message);
        }
    }
    for entry in entries(node, WITHOUT_EFFECT) {
        let key = &entry.key;
        let message =
            format!("expected a field that has an effect, found `{key}`: it has none yet");
        report.add(&codes::DRIVER_FIELD_WITHOUT_EFFECT, entry.key_at, message);
    }
    for entry in entries(node, &["auth"]) {
        let message = "expected secrets in `requires.secrets`, found `auth`: this host does not log in for a driver";
        report.add(&codes::DRIVER_AUTH_UNSUPPORTED, entry.key_at, message);
    }
    let id = shared::id(&mut fields, report);
    let name = wording::name(&mut fields, report);
    let description = wording::description(&mut fields, report);
    let version = fields
        .required("version", report)
        .and_then(|node| wording::version(node, "version", report));
    let kind = fields
        .required("kind", report)
        .and_then(|node| kind(node, report));
    let component = component(&mut fields, kind.as_ref(), report);
    let egress = egress(&mut fields, report);
    if kind == Some(DriverKind::Http)
        && !(egress.value.len() == 1
            && egress
                .value
                .iter()
                .all(|c| c.host().is_some_and(|h| h.is_literal())))
    {
        let message = format!(
            "expected exactly one host without wildcard in `network.egress`, found {}",
            egress.value
        );
        report.add(&codes::HTTP_EGRESS, egress.at, message);
    }
    let entries = fields.required("implements", report);
    let implements = entries
        .map(|node| implements::read(node, kind.as_ref(), report))
        .unwrap_or_default();
    let (platform, requires) = requires(&mut fields, report);
    let timeout_override =
        shared::milliseconds(&mut fields, "timeout_override_ms", report).map(|given| given.value);
    let retry_override = shared::retry(&mut fields, "retry_override", report);
    let limits = limits(&mut fields, report);
    let region = match fields.take("region") {
        Some(node) if matches!(node.content, Content::Text(_)) => text(node, "region", report)
            .map(str::to_owned)
            .into_iter()
            .collect(),
        Some(node) => texts(node, "region", report)
            .into_iter()
            .map(|(region, _)| region.to_owned())
            .collect(),
        None => Vec::new(),
    };
    let policy_tags = wording::labels(&mut fields, "policy_tags", report);
    wording::labels(&mut fields, "tags", report);
    let auth = mapping(&mut fields, "auth", report);
    let health_check = mapping(&mut fields, "health_check", report);
    let metadata = mapping(&mut fields, "metadata", report).unwrap_or_default();
    fields.finish(report);
    Some(Driver {
        id: id?,
        name: name?,
        description: description?,
        version: version?,
        kind: kind?,
        component,
        implements,
        egress: egress.value,
        requires,
        platform,
        timeout_override,
        retry_override,
        limits,
        region,
        policy_tags,
        auth,
        health_check,
        metadata,
        body: body.to_owned(),
    })
}

fn entries<'n>(node: &'n Node, keys: &[&str]) -> impl Iterator<Item = &'n Entry> {
    let all: &[Entry] = match &node.content {
        Content::Mapping(entries) => entries,
        _ => &[],
    };
    all.iter()
        .filter(|entry| keys.contains(&entry.key.as_str()))
}

fn kind(node: &Node, report: &mut Report<'_>) -> Option<DriverKind> {
    match text(node, "kind", report)? {
        "component" => Some(DriverKind::Component),
        "http" => Some(DriverKind::Http),
        other @ ("cli" | "mcp" | "sdk" | "builtin") => {
            let message = format!(
                "expected `kind` to be component or http, found {other}: this host does not run the driver"
            );
            report.add(&codes::KIND_UNSUPPORTED, node.at, message);
            Some(DriverKind::Other(other.to_owned()))
        }
        other => {
            let message = format!(
                "expected `kind` to be component, http, cli, mcp, sdk or builtin, found {other:?}"
            );
            report.add(&codes::KIND_UNKNOWN, node.at, message);
            None
        }
    }
}

fn component(
    fields: &mut Fields<'_>,
    kind: Option<&DriverKind>,
    report: &mut Report<'_>,
) -> Option<String> {
    if kind == Some(&DriverKind::Component) {
        let node = fields.required("component", report)?;
        let found = text(node, "component", report)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let fits = found
            .strip_suffix(".wasm")
            .is_some_and(|stem| !stem.is_empty() && !stem.starts_with('.'));
        if !fits || !found.chars().all(plain) || found.len() > 128 {
            let message = format!(
                "expected `component` to name a .wasm file beside DRIVER.md, found {found:?}"
            );
            report.add(&codes::COMPONENT_NAME, node.at, message);
        }
        return Some(found.to_owned());
    }
    let entry = fields.entry("component")?;
    if let Some(kind) = kind {
        let message = format!(
            "expected `component` only beside `kind: component`, found it beside `kind: {kind}`"
        );
        report.add(&codes::COMPONENT_UNEXPECTED, entry.key_at, message);
    }
    None
}

fn egress(fields: &mut Fields<'_>, report: &mut Report<'_>) -> shared::Given<CapabilitySet> {
    let none = shared::Given {
        value: CapabilitySet::new(),
        at: fields.at,
    };
    let Some(node) = fields.take("network") else {
        return none;
    };
    let Some(mut inner) = Fields::of(node, "network", report) else {
        return none;
    };
    let read = inner.take("egress").map(|node| shared::Given {
        value: scopes(node, "network.egress", &Class::Network, report),
        at: node.at,
    });
    inner.finish(report);
    read.unwrap_or(none)
}

fn requires(fields: &mut Fields<'_>, report: &mut Report<'_>) -> (Platform, Requires) {
    let Some(mut inner) = fields
        .take("requires")
        .and_then(|node| Fields::of(node, "requires", report))
    else {
        return (Platform::default(), Requires::default());
    };
    let os = wording::labels(&mut inner, "os", report);
    let arch = wording::labels(&mut inner, "arch", report);
    let mut megabytes = |key: &'static str| {
        let label = inner.name(key);
        inner
            .take(key)
            .and_then(|node| integer(node, &label, 0..=u64::from(u32::MAX), report))
    };
    let platform = Platform {
        os,
        arch,
        min_disk_mb: megabytes("min_disk_mb"),
        min_memory_mb: megabytes("min_memory_mb"),
    };
    let parts = requires_parts(&mut inner, Class::required(), report);
    inner.finish(report);
    (platform, parts.all())
}

fn limits(fields: &mut Fields<'_>, report: &mut Report<'_>) -> DriverLimits {
    let Some(mut inner) = fields
        .take("limits")
        .and_then(|node| Fields::of(node, "limits", report))
    else {
        return DriverLimits::default();
    };
    let mut limit = |key: &'static str| {
        let label = inner.name(key);
        inner
            .take(key)
            .and_then(|node| integer(node, &label, 1..=crate::json::MAX_SAFE_INTEGER, report))
    };
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
    inner.finish(report);
    limits
}
