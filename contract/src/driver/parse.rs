//! DRIVER.md field by field. Entries of `implements` are read elsewhere.

use serde_json::Map;

use super::http::HttpDefaults;
use super::{Driver, DriverKind, DriverLimits, Platform, auth, cost, implements, without_effect};
use crate::capability::{CapabilitySet, Class};
use crate::codes;
use crate::diagnostic::{Parsed, Report};
use crate::shared::{self, requires_parts, scopes};
use crate::source::{Content, Field, Fields, FrontMatter, Keys, nearest, split, split_with};
use crate::tool::Requires;
use crate::wording;

/// What `spec` may say: the format of AIP-30.
const SPEC: &[&str] = &["agentdriver/v1"];

/// What `schema` may say.
const SCHEMA: &[&str] = &["agentproto/driver/v1"];

pub(super) fn document(file: &str, source: &str) -> Parsed<Driver> {
    let mut report = Report::new(file);
    let parts = never_run(source).or_else(|| split(source, &mut report));
    let driver = parts.and_then(|parts| driver(&parts.root(), parts.body, &mut report));
    if driver.as_ref().is_some_and(|driver| !driver.kind.is_run()) {
        report.warn_only_of(&codes::KIND_UNSUPPORTED);
    }
    report.finish(driver)
}

/// The parts of a driver of a kind that no host runs. Its keys may be integers, such as the exit codes of a command.
fn never_run(source: &str) -> Option<FrontMatter<'_>> {
    let parts = split_with(source, Keys::Integers, &mut Report::new(""))?;
    is_other(&parts.root()).then_some(parts)
}

fn is_other(root: &Field<'_>) -> bool {
    match root.get("kind").map(|kind| &kind.content) {
        Some(Content::Text(kind)) => DriverKind::OTHER.contains(&kind.as_str()),
        _ => false,
    }
}

fn driver(root: &Field<'_>, body: &str, report: &mut Report<'_>) -> Option<Driver> {
    if root.is_null() {
        report.add(
            &codes::MISSING_FIELD,
            root.at,
            "expected the fields name, id, description, version, kind and implements, found none",
        );
        return None;
    }
    let mut fields = report.read(Fields::of(root))?;
    let never_run = is_other(root);
    if !never_run {
        for key in without_effect::unread() {
            fields.take(key);
        }
        without_effect::warn(root, report);
    }
    if let Some(spec) = fields.take("spec") {
        shared::schema(&spec, SPEC, report);
    }
    // A kind that no host runs keeps its fields as written.
    let schema = match never_run {
        true => root.get("schema").map(|node| Field::new("schema", node)),
        false => fields.take("schema"),
    };
    if let Some(schema) = schema {
        shared::schema(&schema, SCHEMA, report);
    }
    let id = shared::id(&mut fields, report);
    let name = wording::name(&mut fields, report);
    let description = wording::description(&mut fields, report);
    let version = report.read(fields.required("version"));
    let version = version.and_then(|field| wording::version(&field, report));
    let kind = report.read(fields.required("kind"));
    let kind = kind.and_then(|field| self::kind(&field, report));
    let component = component(&mut fields, kind.as_ref(), report);
    let egress = report.unbroken(|report| egress(&mut fields, report));
    let network = root
        .get("network")
        .and_then(|network| network.get("egress"));
    let declares_network = network.is_some_and(|hosts| !hosts.is_null());
    let mut defaults = HttpDefaults::read(&mut fields, kind.as_ref(), report);
    let egress = match (&kind, egress) {
        (Some(DriverKind::Http), Some(egress)) => Some(defaults.egress(egress, root.at, report)),
        (_, egress) => egress,
    };
    let entries = report.read(fields.required("implements"));
    let implements = entries
        .map(|field| implements::read(&field, kind.as_ref(), &mut defaults, report))
        .unwrap_or_default();
    let (templates, request_defaults, hints) = defaults.finish();
    templates.warn_of_old_form(report);
    let (platform, mut requires) = requires(&mut fields, report);
    let cost_override = cost::read(&mut fields, report);
    let timeout_override =
        shared::milliseconds(&mut fields, "timeout_override_ms", report).map(|given| given.value);
    let retry_override = shared::retry_override(&mut fields, report);
    let limits = limits(&mut fields, report);
    let region = region(&mut fields, report);
    let policy_tags = wording::labels(&mut fields, "policy_tags", report);
    wording::labels(&mut fields, "tags", report);
    let used: CapabilitySet = templates.secrets().collect();
    let sent = (kind == Some(DriverKind::Http)).then_some(&used);
    let (auth, kept) = auth::read(&mut fields, sent, report);
    requires.capabilities.extend(used.into_iter().chain(kept));
    let health_check = fields.take("health_check");
    let health_check = health_check.map(|field| report.mapping(Some(&field)));
    let metadata = report.mapping(fields.take("metadata").as_ref());
    let kind_fields = match never_run {
        true => implements::rest(fields),
        false => {
            report.unknown(fields);
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
        implements,
        egress: egress.map(|given| given.value).unwrap_or_default(),
        declares_network,
        requires,
        platform,
        cost_override,
        timeout_override,
        retry_override,
        limits,
        region,
        policy_tags,
        request_defaults,
        hints,
        auth,
        health_check,
        kind_fields,
        metadata,
        body: body.to_owned(),
        is_attachment: false,
        denied: None,
    })
}

fn kind(field: &Field<'_>, report: &mut Report<'_>) -> Option<DriverKind> {
    match report.read(field.text())? {
        "component" => Some(DriverKind::Component),
        "http" => Some(DriverKind::Http),
        "form" => Some(DriverKind::Form),
        other if DriverKind::OTHER.contains(&other) => {
            let message = format!(
                "expected `kind` to be component, http or form, found {other}: this host does not run the driver"
            );
            report.add(&codes::KIND_UNSUPPORTED, field.at, message);
            Some(DriverKind::Other(other.to_owned()))
        }
        other => {
            let message = format!(
                "expected `kind` to be component, http, form, cli, mcp, sdk or builtin, found {other:?}"
            );
            let known = ["component", "http", "form"];
            let near = nearest(
                other,
                known.into_iter().chain(DriverKind::OTHER.iter().copied()),
            );
            let hint = near.map(|near| format!("did you mean `{near}`?"));
            report.add_hinted(&codes::KIND_UNKNOWN, field.at, message, hint);
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
        let field = report.read(fields.required("component"))?;
        let found = report.read(field.text())?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let fits = found
            .strip_suffix(".wasm")
            .is_some_and(|stem| !stem.is_empty() && !stem.starts_with('.'));
        if !fits || !found.chars().all(plain) || found.len() > 128 {
            let message = format!(
                "expected `component` to name a .wasm file beside DRIVER.md, found {found:?}"
            );
            report.add(&codes::COMPONENT_NAME, field.at, message);
        }
        return Some(found.to_owned());
    }
    let field = fields.take("component")?;
    if let Some(kind) = kind {
        let message = format!(
            "expected `component` only beside `kind: component`, found it beside `kind: {kind}`"
        );
        report.add(&codes::COMPONENT_UNEXPECTED, field.key_at, message);
    }
    None
}

fn egress(fields: &mut Fields<'_>, report: &mut Report<'_>) -> shared::Given<CapabilitySet> {
    let none = shared::Given {
        value: CapabilitySet::new(),
        at: fields.at,
    };
    let Some(mut inner) = report.fields(fields.take("network")) else {
        return none;
    };
    let read = inner.take("egress").map(|field| shared::Given {
        value: scopes(&field, &Class::Network, report),
        at: field.at,
    });
    if let Some(ingress) = inner.take("ingress") {
        scopes(&ingress, &Class::Network, report);
    }
    report.unknown(inner);
    read.unwrap_or(none)
}

/// One region, or a list of them.
fn region(fields: &mut Fields<'_>, report: &mut Report<'_>) -> Vec<String> {
    let field = fields.take("region");
    match field.as_ref().map(|field| (field, field.text())) {
        Some((field, Ok(region))) => {
            let good = wording::check_characters(region, &field.name, field.at, false, report);
            good.then(|| region.to_owned()).into_iter().collect()
        }
        Some((field, Err(_))) => {
            let found = report.texts(field).into_iter();
            let found = found.filter(|(region, at)| {
                wording::check_characters(region, &field.name, *at, false, report)
            });
            found.map(|(region, _)| region.to_owned()).collect()
        }
        None => Vec::new(),
    }
}

fn requires(fields: &mut Fields<'_>, report: &mut Report<'_>) -> (Platform, Requires) {
    let Some(mut inner) = report.fields(fields.take("requires")) else {
        return (Platform::default(), Requires::default());
    };
    let os = wording::labels(&mut inner, "os", report);
    let arch = wording::labels(&mut inner, "arch", report);
    let mut megabytes = |key| {
        let field = inner.take(key)?;
        report.read(field.integer(0..=u64::from(u32::MAX)))
    };
    let platform = Platform {
        os,
        arch,
        min_disk_mb: megabytes("min_disk_mb"),
        min_memory_mb: megabytes("min_memory_mb"),
    };
    let parts = requires_parts(&mut inner, Class::required(), report);
    report.unknown(inner);
    (platform, parts.all())
}

fn limits(fields: &mut Fields<'_>, report: &mut Report<'_>) -> DriverLimits {
    let Some(mut inner) = report.fields(fields.take("limits")) else {
        return DriverLimits::default();
    };
    let mut limit = |key| {
        let field = inner.take(key)?;
        report.read(field.integer(1..=crate::json::MAX_SAFE_INTEGER))
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
    report.unknown(inner);
    limits
}
