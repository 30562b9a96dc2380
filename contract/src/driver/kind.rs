//! The kinds of drivers, and the entries of `implements`: most of their fields depend on the kind.

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value};

use super::http::HttpDefaults;
use super::requirements::{Work, read_cost};
use super::{CostOverride, HttpCall, InputMapping, PlaceholderPlaces, Program, World};
use crate::codes;
use crate::diagnostic::Position;
use crate::path;
use crate::shared;
use crate::source::{Content, FieldReader, MappingReader};
use crate::tool::{Retry, ToolId};

/// The document that has drivers of a kind, and who runs them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    /// DRIVER.md. Every host runs the drivers.
    Run,
    /// A version 1 `tools.json`, never DRIVER.md. Every host runs the drivers.
    Attached,
    /// DRIVER.md. Only an executor that an application brings runs the drivers.
    Named,
}

/// A row of the table of kinds.
pub(super) struct KindRow {
    name: &'static str,
    known: Known,
    pub(super) work: Work,
    rank: u8,
    record: &'static str,
    sandbox: &'static str,
}

/// Declares the kinds. A row has the kind's word, its `Known`, the `Work` of its drivers, its rank,
/// and in records of calls the words for the kind and for what confines its drivers.
macro_rules! kinds {
    ($($(#[$doc:meta])+ $kind:ident = $name:literal, $known:ident, $work:ident, $rank:literal, $record:literal, $sandbox:literal;)+) => {
        /// The kind of a driver.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum DriverKind {
            $($(#[$doc])+ $kind,)+
        }

        impl DriverKind {
            /// All kinds.
            pub const ALL: &[DriverKind] = &[$(DriverKind::$kind),+];

            pub(super) fn row(self) -> KindRow {
                let (name, known, work, rank, record, sandbox) = match self {
                    $(Self::$kind => ($name, Known::$known, Work::$work, $rank, $record, $sandbox),)+
                };
                KindRow { name, known, work, rank, record, sandbox }
            }
        }
    };
}

kinds! {
    /// A WebAssembly component.
    Component = "component", Run, Code, 1, "wasm_component", "wasm-component";
    /// Requests that the host makes itself, described in DRIVER.md.
    Http = "http", Run, Requests, 2, "http_request", "host-request";
    /// A form that a person fills in: the contract's `outputs`.
    Form = "form", Run, Nothing, 5, "human_form", "host-request";
    /// A program of the host's machine, named by a version 1 `tools.json`.
    Exec = "exec", Attached, Code, 4, "host_program", "program-broker";
    /// AIP-30's `cli`.
    Cli = "cli", Named, Code, 4, "unbound", "host-request";
    /// AIP-30's `mcp`.
    Mcp = "mcp", Named, Code, 3, "unbound", "host-request";
    /// AIP-30's `sdk`.
    Sdk = "sdk", Named, Code, 1, "unbound", "host-request";
    /// AIP-30's `builtin`.
    Builtin = "builtin", Named, Code, 0, "unbound", "host-request";
}

impl DriverKind {
    /// Whether this host runs drivers of this kind.
    pub fn is_run(self) -> bool {
        self.row().known != Known::Named
    }

    /// Whether drivers of this kind are code.
    pub fn runs_code(self) -> bool {
        self.row().work == Work::Code
    }

    /// The preference among drivers that cost the same: the lowest rank is tried first. The order
    /// is AIP-30's: a part of the host (`builtin`), in its process (`sdk`, and so a component),
    /// over the network (`http`), with a protocol on top (`mcp`), in a separate process (`cli`, and
    /// so `exec`). A form comes last, so a person is asked only if no other driver serves the call.
    pub fn rank(self) -> u8 {
        self.row().rank
    }

    /// The word in records of calls for what carried the call out.
    pub fn record(self) -> &'static str {
        self.row().record
    }

    /// The word in records of calls for what confines the driver.
    pub fn sandbox(self) -> &'static str {
        self.row().sandbox
    }

    /// The word in DRIVER.md or `tools.json`.
    pub fn as_str(self) -> &'static str {
        self.row().name
    }

    /// The kinds that a DRIVER.md may have.
    pub(crate) fn declared() -> impl Iterator<Item = DriverKind> {
        let all = DriverKind::ALL.iter().copied();
        all.filter(|kind| kind.row().known != Known::Attached)
    }

    /// The kinds of DRIVER.md that every host runs, as a list for people.
    pub fn run_names(conjunction: &str) -> String {
        listed(
            DriverKind::declared().filter(|kind| kind.is_run()),
            conjunction,
        )
    }
}

/// The names of kinds for people.
pub(super) fn listed(kinds: impl Iterator<Item = DriverKind>, conjunction: &str) -> String {
    let names: Vec<&str> = kinds.map(DriverKind::as_str).collect();
    match names.split_last() {
        Some((last, rest)) => format!("{} {conjunction} {last}", rest.join(", ")),
        None => String::new(),
    }
}

impl fmt::Display for DriverKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One entry of `implements`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Implements {
    /// The contract, as written: an id, or the path of its TOOL.md or of the folder that has it.
    pub tool: String,
    /// The contract's id; `None` for a path that leads to no contract, or that
    /// [`super::Driver::resolve_paths`] has not followed yet. Such an entry binds to nothing.
    pub tool_id: Option<ToolId>,
    /// The versions of the contract that it serves, as npm reads ranges.
    pub version: nodejs_semver::Range,
    /// The same range as written.
    pub version_text: String,
    /// Optional inputs that it does not support.
    pub drop_inputs: Vec<String>,
    /// Optional outputs that it does not give.
    pub drop_outputs: Vec<String>,
    /// How the contract's input becomes the driver's.
    pub mapping: InputMapping,
    /// What a call through it costs.
    pub cost_override: CostOverride,
    /// Narrows the timeout for this contract.
    pub timeout: Option<Duration>,
    /// Replaces the retry policy for this contract.
    pub retry: Option<Retry>,
    /// The request to make; present exactly for [`DriverKind::Http`].
    pub http: Option<HttpCall>,
    /// The positions of the request's placeholders in the document.
    pub(crate) places: PlaceholderPlaces,
    /// The program to run; present exactly for [`DriverKind::Exec`].
    pub program: Option<Program>,
    /// The world that its component is called in.
    pub world: World,
    /// The fields that only drivers of its kind have, as written, if no host runs the kind.
    pub kind_fields: Map<String, Value>,
    /// Everything below the entry's `metadata`, as written.
    pub metadata: Map<String, Value>,
    /// The place of the entry in DRIVER.md.
    pub at: Position,
}

impl Implements {
    /// An entry for a contract, without the fields of any kind.
    pub(crate) fn new(
        (tool, tool_id): (String, Option<ToolId>),
        (version, version_text): (nodejs_semver::Range, String),
        at: Position,
    ) -> Self {
        Self {
            tool,
            tool_id,
            version,
            version_text,
            drop_inputs: Vec::new(),
            drop_outputs: Vec::new(),
            mapping: InputMapping::default(),
            cost_override: CostOverride::default(),
            timeout: None,
            retry: None,
            http: None,
            places: PlaceholderPlaces::default(),
            program: None,
            world: World::default(),
            kind_fields: Map::new(),
            metadata: Map::new(),
            at,
        }
    }

    /// Whether the entry is for the contract with this id.
    pub fn is_of(&self, id: &str) -> bool {
        self.tool_id.as_ref().is_some_and(|own| *own == *id)
    }

    /// The contract's id, or the path if that leads to no contract.
    pub fn named(&self) -> &str {
        self.tool_id.as_ref().map_or(&self.tool, |id| id.as_str())
    }
}

pub(super) fn read_implements(
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
        let entry = item.whole(|fields| read_entry(fields, item, kind, defaults));
        let Some(entry) = entry else {
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
    let world = match (kind.filter(|kind| kind.is_run()), component) {
        (Some(DriverKind::Component), Some(field)) => World::read(&field),
        (Some(_), Some(field)) => {
            let message = format!(
                "expected `{}` with `kind: component` only, found it with another kind",
                field.name
            );
            field.note_at_key(&codes::COMPONENT_CALL_INVALID, message);
            None
        }
        _ => Some(World::default()),
    };
    let mapping = fields.or_default("mapping", InputMapping::read);
    let cost_override = read_cost(fields);
    let timeout = shared::milliseconds(fields, "timeout_override_ms");
    let retry = shared::retry_override(fields);
    let never_run = kind.is_some_and(|kind| !kind.is_run());
    let kind_fields = never_run.then(|| fields.rest());
    let (tool, version) = (tool?, version?);
    Some(Implements {
        drop_inputs,
        drop_outputs,
        mapping,
        cost_override,
        timeout,
        retry,
        http,
        places: places.unwrap_or_default(),
        world: world?,
        kind_fields: kind_fields.unwrap_or_default(),
        metadata: metadata.map(|field| field.mapping()).unwrap_or_default(),
        ..Implements::new(tool, version, item.at)
    })
}

/// The id that a reference probably means: AIP-14 names the folder of a contract after its id.
fn claimed(tool: &str) -> &str {
    let folder = tool.strip_suffix("/TOOL.md").unwrap_or(tool);
    let folder = folder.trim_end_matches('/');
    folder.rsplit_once('/').map_or(folder, |(_, name)| name)
}

/// Whether a reference to a contract is the path of a TOOL.md or of its folder, and not an id.
pub(super) fn is_path(text: &str) -> bool {
    let names_file = text == "TOOL.md" || text.ends_with("/TOOL.md");
    (names_file || path::is_relative(text)) && path::is_path(text)
}
