//! Reads the fields of a DRIVER.md. They are not checked against contracts here.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use super::http::HttpDefaults;
use super::mapping::InputMapping;
use super::requirements::{read_auth, read_cost};
use super::{
    Driver, DriverKind, DriverLimits, HttpCall, Implements, PlaceholderPlaces, Platform, World,
    listed, without_effect,
};
use crate::capability::{CapabilitySet, Class};
use crate::codes;
use crate::diagnostic::{FileReport, Parsed};
use crate::front_matter::{FrontMatter, split, split_with};
use crate::id::ToolId;
use crate::path;
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

/// Splits the document of a driver whose kind no host runs; `None` for another document. Its keys may
/// be integers, such as the exit codes of a command.
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
    // The fields of a kind that no host runs are stored as written.
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
    let mut defaults = HttpDefaults::read(fields, kind);
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
        kind_fields: kind_fields(fields, never_run),
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
        request_defaults: defaults.written,
        hints: defaults.hints,
        auth,
        body: body.to_owned(),
        is_attachment: false,
        denied: None,
    })
}

/// The fields that only drivers of this kind have, as written, if no host runs the kind.
fn kind_fields(fields: &mut MappingReader<'_>, never_run: bool) -> Map<String, Value> {
    match never_run {
        true => fields.rest(),
        false => Map::new(),
    }
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

fn read_implements(
    field: &FieldReader<'_>,
    kind: Option<DriverKind>,
    defaults: &mut HttpDefaults,
) -> Vec<Implements> {
    let items = field.items();
    if matches!(&field.content, Content::List(items) if items.is_empty()) {
        let message = "expected at least one entry in `implements`, found none";
        field.note(&codes::IMPLEMENTS_EMPTY, message);
    }
    let mut entries: Vec<Implements> = Vec::new();
    for item in &items {
        let Some(entry) = entry(item, kind, defaults) else {
            continue;
        };
        let name = claimed(&entry.tool);
        let same =
            |other: &&Implements| claimed(&other.tool) == name && other.version == entry.version;
        if let Some(first) = entries.iter().find(same) {
            let message = format!(
                "expected `{name}` {} once, found it again (first on line {})",
                entry.version_text, first.at.line
            );
            item.note(&codes::IMPLEMENTS_DUPLICATE, message);
        }
        entries.push(entry);
    }
    entries
}

fn entry(
    item: &FieldReader<'_>,
    kind: Option<DriverKind>,
    defaults: &mut HttpDefaults,
) -> Option<Implements> {
    item.whole(|fields| read_entry(fields, item, kind, defaults))
}

fn read_entry(
    fields: &mut MappingReader<'_>,
    item: &FieldReader<'_>,
    kind: Option<DriverKind>,
    defaults: &mut HttpDefaults,
) -> Option<Implements> {
    let tool = fields.require("tool", |field| {
        let expected = "a contract id, or the path of a TOOL.md or its folder";
        field.text_as(&codes::TOOL_REFERENCE_INVALID, expected, |found| {
            let id = ToolId::relaxed(found).ok();
            (id.is_some() || is_path(found)).then(|| (found.to_owned(), id))
        })
    });
    let version = fields.require("version", |field| {
        let expected = "a version range such as ^1.0.0";
        field.text_as(&codes::VERSION_RANGE_INVALID, expected, |found| {
            let range = nodejs_semver::Range::parse(found).ok();
            let range = range.filter(|_| !found.trim().is_empty())?;
            Some((range, found.to_owned()))
        })
    });
    let (drop_inputs, drop_outputs) = fields.within("schema_narrowing", |inner| {
        (inner.strings("drop_inputs"), inner.strings("drop_outputs"))
    });
    let label = fields.name_of("metadata");
    let metadata = fields.take("metadata");
    let below = |name| metadata.as_ref()?.below(name);
    let (request, component) = (below("http"), below("component"));
    let places = request
        .as_ref()
        .map(|request| PlaceholderPlaces::of(request.node));
    let http = match (kind, request) {
        (Some(DriverKind::Http), Some(request)) => HttpCall::read(&request, defaults),
        (Some(DriverKind::Http), None) => {
            let message = format!("expected the field `{label}.http` for `kind: http`, found none");
            item.refuse(&codes::MISSING_FIELD, message)
        }
        _ => None,
    };
    let world = World::read(kind, component.as_ref());
    let mapping = fields.or_default("mapping", InputMapping::read);
    let cost_override = read_cost(fields);
    let timeout = shared::milliseconds(fields, "timeout_override_ms");
    let retry = shared::retry_override(fields);
    let kind_fields = kind_fields(fields, kind.is_some_and(|kind| !kind.is_run()));
    let ((tool, tool_id), (version, version_text)) = (tool?, version?);
    Some(Implements {
        tool,
        tool_id,
        version,
        version_text,
        drop_inputs,
        drop_outputs,
        mapping,
        cost_override,
        timeout,
        retry,
        http,
        places: places.unwrap_or_default(),
        program: None,
        world: world?,
        kind_fields,
        metadata: metadata.map(|field| field.mapping()).unwrap_or_default(),
        at: item.at,
    })
}

/// The id that a reference probably means. In AIP-14, the folder of a contract is named after its id.
fn claimed(tool: &str) -> &str {
    let folder = tool.strip_suffix("/TOOL.md").unwrap_or(tool);
    let folder = folder.trim_end_matches('/');
    folder.rsplit_once('/').map_or(folder, |(_, name)| name)
}

/// Whether a text names a contract by the path of its TOOL.md or of the folder of the TOOL.md.
pub(super) fn is_path(text: &str) -> bool {
    let names_file = text == "TOOL.md" || text.ends_with("/TOOL.md");
    (names_file || path::is_relative(text)) && path::is_path(text)
}
