//! Reads the fields of a DRIVER.md. They are not checked against contracts here.

use std::ops::RangeInclusive;

use serde_json::Map;

use super::http::HttpDefaults;
use super::kind::{listed, read_implements};
use super::requirements::{read_auth, read_cost};
use super::{Driver, DriverKind, DriverLimits, Platform, without_effect};
use crate::capability::{CapabilitySet, Class};
use crate::codes;
use crate::diagnostic::{FileReport, Parsed};
use crate::front_matter::{FrontMatter, split, split_with};
use crate::shared::{self, requires_parts, scopes};
use crate::source::{Content, FieldReader, KeyForm, MappingReader, Node, PlacedValue, nearest};
use crate::tool::Requires;

/// The valid values of `spec`: the format of AIP-30.
const SPEC: &[&str] = &["agentdriver/v1"];

/// The valid values of `schema`.
const SCHEMA: &[&str] = &["agentproto/driver/v1"];

impl Driver {
    /// Reads a DRIVER.md. `file` names it in diagnostics.
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

/// Splits the document of a driver whose kind no host runs; `None` for another document. Keys of
/// such a document may be integers, such as the exit codes of a command.
fn never_run(source: &str) -> Option<FrontMatter<'_>> {
    let parts = split_with(source, KeyForm::Integers, &FileReport::new(""))?;
    kind_of(&parts.fields)
        .is_some_and(|kind| !kind.is_run())
        .then_some(parts)
}

fn kind_of(root: &Node) -> Option<DriverKind> {
    match &root.get("kind")?.content {
        Content::Text(name) => kind_of_name(name),
        _ => None,
    }
}

fn kind_of_name(name: &str) -> Option<DriverKind> {
    DriverKind::declared().find(|kind| kind.as_str() == name)
}

fn driver(root: &FieldReader<'_>, body: &str) -> Option<Driver> {
    if root.is_null() {
        let message =
            "expected the fields name, id, description, version, kind and implements, found none";
        return root.refuse(&codes::MISSING_FIELD, message);
    }
    root.whole(|fields| document(fields, root, body))
}

fn document(fields: &mut MappingReader<'_>, root: &FieldReader<'_>, body: &str) -> Option<Driver> {
    let known = kind_of(root);
    let never_run = known.is_some_and(|kind| !kind.is_run());
    if !never_run {
        for key in without_effect::unread() {
            fields.take(key);
        }
        without_effect::warn(root, known);
    }
    if let Some(spec) = fields.take("spec") {
        shared::schema(&spec, SPEC);
    }
    // If no host runs the kind, `schema` stays among the fields that are stored as written.
    let schema = match never_run {
        true => root
            .get("schema")
            .map(|node| FieldReader::new("schema", node, root.report)),
        false => fields.take("schema"),
    };
    if let Some(schema) = schema {
        shared::schema(&schema, SCHEMA);
    }
    let id = shared::id(fields);
    let name = shared::name(fields);
    let description = shared::description(fields);
    let version = fields.require("version", shared::version);
    let kind = fields.require("kind", self::kind);
    let component = component(fields, kind);
    let egress = root.report.unbroken(|| egress(fields));
    let network = root
        .get("network")
        .and_then(|network| network.get("egress"));
    let declares_network = network.is_some_and(|hosts| !hosts.is_null());
    let mut defaults = match kind {
        // If the kind is misspelt, errors in these fields are reported as well.
        Some(DriverKind::Http) | None => HttpDefaults::read(fields),
        _ => HttpDefaults::default(),
    };
    let is_http = kind == Some(DriverKind::Http);
    let egress = egress.map(|egress| match is_http {
        true => defaults.egress(egress, root),
        false => egress.value,
    });
    let entries = fields.required("implements");
    let implements = entries.map(|field| read_implements(&field, kind, &mut defaults));
    defaults.reading.warn_of_old_form(root.report);
    let (platform, mut requires) = requires(fields);
    shared::labels(fields, "tags");
    let used: CapabilitySet = defaults.reading.secrets().collect();
    let (auth, stored) = read_auth(fields, is_http.then_some(&used));
    requires.capabilities.extend(used.into_iter().chain(stored));
    Some(Driver {
        cost_override: read_cost(fields),
        timeout_override: shared::milliseconds(fields, "timeout_override_ms"),
        retry_override: shared::retry_override(fields),
        limits: DriverLimits::read(fields),
        region: fields.or_default("region", region),
        policy_tags: shared::labels(fields, "policy_tags"),
        health_check: fields.take("health_check").map(|field| field.mapping()),
        metadata: fields.mapping("metadata"),
        kind_fields: if never_run { fields.rest() } else { Map::new() },
        component,
        implements: implements.unwrap_or_default(),
        egress: egress.unwrap_or_default(),
        declares_network,
        requires,
        platform,
        request_defaults: defaults.written,
        hints: defaults.hints,
        auth,
        body: body.to_owned(),
        ..Driver::new(id?, name?, description?, version?, kind?)
    })
}

fn kind(field: &FieldReader<'_>) -> Option<DriverKind> {
    let found = field.text()?;
    let Some(kind) = kind_of_name(found) else {
        let known = listed(DriverKind::declared(), "or");
        let message = format!("expected `kind` to be {known}, found {found:?}");
        let near = nearest(found, DriverKind::declared().map(DriverKind::as_str));
        let hint = near.map(|near| format!("did you mean `{near}`?"));
        field.note_with_hint(&codes::KIND_UNKNOWN, message, hint);
        return None;
    };
    if !kind.is_run() {
        let message = format!(
            "expected `kind` to be {}, found {found}: this host does not run the driver",
            DriverKind::run_names("or")
        );
        field.note(&codes::KIND_UNSUPPORTED, message);
    }
    Some(kind)
}

fn component(fields: &mut MappingReader<'_>, kind: Option<DriverKind>) -> Option<String> {
    if kind == Some(DriverKind::Component) {
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
    let read = |field: FieldReader<'_>| field.placed(scopes(&field, &Class::Network));
    let egress = fields.within("network", |inner| {
        let egress = inner.take("egress").map(read);
        inner.take("ingress").map(read);
        egress
    });
    egress.unwrap_or(none)
}

/// One region, or a list of them.
fn region(field: &FieldReader<'_>) -> Vec<String> {
    match field.content {
        Content::Text(_) => shared::shown_text(field, false).into_iter().collect(),
        _ => shared::shown_texts(field),
    }
}

fn requires(fields: &mut MappingReader<'_>) -> (Platform, Requires) {
    const MEGABYTES: RangeInclusive<u64> = 0..=u32::MAX as u64;
    fields.within("requires", |inner| {
        let platform = Platform {
            os: shared::labels(inner, "os"),
            arch: shared::labels(inner, "arch"),
            min_disk_mb: inner.integer("min_disk_mb", MEGABYTES),
            min_memory_mb: inner.integer("min_memory_mb", MEGABYTES),
        };
        (platform, requires_parts(inner, Class::required()).all())
    })
}
