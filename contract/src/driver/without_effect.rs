//! The fields of DRIVER.md that have no effect: one table, with a warning for each field.

use super::{DriverKind, DriverLimits};
use crate::codes;
use crate::diagnostic::Code;
use crate::source::{Content, Entry, FieldReader, Node};

/// The reason why a field has no effect: the code of the warning, and what is expected instead.
type Why = (&'static Code, &'static str);

/// It is about programs that a host installs and starts.
const NOT_RUN: Why = (&codes::DRIVER_FIELD_IGNORED, "a field that this host uses");
/// No call depends on it.
const UNUSED: Why = (
    &codes::DRIVER_FIELD_WITHOUT_EFFECT,
    "a field that has an effect",
);
/// It describes a login flow that this host does not have.
const NO_FLOW: Why = (
    &codes::DRIVER_AUTH_UNSUPPORTED,
    "secrets that the operator gives",
);

const IGNORED: &str = "it is ignored";
const NO_LOGIN: &str = "this host does not log in for a driver";
const READ_WHOLE: &str = "responses are read whole";

const NO_CODE: &str = "no code of the driver runs";

const OWN_NAMES: &str = "the person sees the input under the contract's own names";

/// The path, in which `[]` means each item of a list; the reason; and the behaviour instead.
const FIELDS: &[(&str, Why, &str)] = &[
    ("code", NOT_RUN, IGNORED),
    ("run", NOT_RUN, IGNORED),
    ("runner", NOT_RUN, IGNORED),
    ("execute", NOT_RUN, IGNORED),
    ("install", NOT_RUN, IGNORED),
    ("sandbox", NOT_RUN, IGNORED),
    ("examples", NOT_RUN, IGNORED),
    ("quota_key", NOT_RUN, IGNORED),
    ("version_check", NOT_RUN, IGNORED),
    ("health_check", UNUSED, "this host probes no driver"),
    ("network.ingress", UNUSED, "a driver listens to nothing"),
    (
        "requires.min_disk_mb",
        UNUSED,
        "a driver has the workspaces that the operator gives, and no other disk",
    ),
    ("streaming", UNUSED, READ_WHOLE),
    ("rate_limit", UNUSED, "the operator's limits hold"),
    ("implements[].metadata.http.streaming", UNUSED, READ_WHOLE),
    ("auth.login", NO_FLOW, NO_LOGIN),
    ("auth.refresh", NO_FLOW, NO_LOGIN),
    ("auth.expiry", NO_FLOW, NO_LOGIN),
    (
        "auth.state.paths",
        NO_FLOW,
        "a driver has no files of its own",
    ),
];

/// The fields that this host does not read at all.
pub(super) fn unread() -> impl Iterator<Item = &'static str> {
    let not_run = FIELDS
        .iter()
        .filter(|(_, (code, _), _)| code.code == NOT_RUN.0.code);
    not_run.map(|(path, ..)| *path)
}

/// The further fields without effect for drivers of this kind.
fn of_kind(kind: Option<DriverKind>) -> impl Iterator<Item = (&'static str, Why, &'static str)> {
    let limits = DriverLimits::FIELDS.iter().copied();
    let limits = limits.filter(move |(_, work)| kind.is_some_and(|kind| kind.row().work < *work));
    let limits = limits.map(|(path, _)| (path, UNUSED, NO_CODE));
    let mapping = ("implements[].mapping", UNUSED, OWN_NAMES);
    limits.chain((kind == Some(DriverKind::Form)).then_some(mapping))
}

/// Warns of each field without effect that is present.
pub(super) fn warn(root: &FieldReader<'_>, kind: Option<DriverKind>) {
    let kind = kind.filter(|kind| kind.is_run());
    for (path, (code, expected), instead) in FIELDS.iter().copied().chain(of_kind(kind)) {
        let mut found = Vec::new();
        find(root.node, path, "", &mut found);
        for (entry, name) in found {
            let message = format!("expected {expected}, found `{name}`: {instead}");
            root.report.add(code, entry.key_at, message);
        }
    }
}

/// The entries at a path, with their names.
fn find<'n>(node: &'n Node, path: &str, before: &str, found: &mut Vec<(&'n Entry, String)>) {
    let Content::Mapping(entries) = &node.content else {
        return;
    };
    let (step, rest) = path
        .split_once('.')
        .map_or((path, None), |(step, rest)| (step, Some(rest)));
    let key = step.strip_suffix("[]").unwrap_or(step);
    let Some(entry) = entries.iter().find(|entry| entry.key == key) else {
        return;
    };
    let name = match before {
        "" => key.to_owned(),
        before => format!("{before}.{key}"),
    };
    match (rest, &entry.value.content) {
        (None, _) => found.push((entry, name)),
        (Some(rest), Content::List(items)) if step.ends_with("[]") => {
            for (index, item) in items.iter().enumerate() {
                find(item, rest, &format!("{name}[{index}]"), found);
            }
        }
        (Some(rest), _) => find(&entry.value, rest, &name, found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Driver;

    /// The document of a driver with the field at this path.
    fn with(path: &str) -> String {
        let value = match path {
            "streaming" => "{ transport: sse }",
            "rate_limit" => "{ burst: 1 }",
            "requires.min_disk_mb" => "5",
            "network.ingress" => "[\"a.example\"]",
            "auth.state.paths" => "[\"~/.key\"]",
            _ => "{}",
        };
        let head = "---\nname: Sample\nid: sample-http\ndescription: Does it.\nversion: 1.0.0\nkind: http\n\
                    base_url: https://a.example\n";
        let entry = |more: &str| {
            format!(
                "implements:\n  - tool: sample.tool\n    version: 1.x\n    metadata: {{ http: {{ endpoint: /{more} }} }}\n"
            )
        };
        let egress = "egress: [\"a.example\"]";
        let (network, entry, field) = match path {
            "network.ingress" => (
                format!("{egress}, ingress: {value}"),
                entry(""),
                String::new(),
            ),
            "implements[].metadata.http.streaming" => {
                (egress.to_owned(), entry(", streaming: {}"), String::new())
            }
            path => {
                let mut steps: Vec<&str> = path.split('.').collect();
                let last = steps.pop().unwrap_or_default();
                let inner = format!("{last}: {value}");
                let field = steps
                    .iter()
                    .rev()
                    .fold(inner, |inner, step| format!("{step}: {{ {inner} }}"));
                (egress.to_owned(), entry(""), format!("{field}\n"))
            }
        };
        format!("{head}network: {{ {network} }}\n{entry}{field}---\n")
    }

    #[test]
    fn a_field_that_has_no_effect_for_its_kind_is_warned_of() {
        let head = "---\nname: Sample\nid: sample\ndescription: Does it.\nversion: 1.0.0\n";
        let of = |kind: &str, mapping: &str, limit: &str| match kind {
            "http" => format!(
                "{head}kind: http\nbase_url: https://a.example\nnetwork: {{ egress: [a.example] }}\n{limit}\
                 implements:\n  - {{ tool: a.b, version: 1.x, metadata: {{ http: {{ endpoint: / }} }} }}\n---\n"
            ),
            _ => format!(
                "{head}kind: {kind}\n{limit}implements:\n  - {{ tool: a.b, version: 1.x{mapping} }}\n---\n"
            ),
        };
        for (kind, count) in [(DriverKind::Http, 7), (DriverKind::Form, 11)] {
            assert_eq!(of_kind(Some(kind)).count(), count);
            for (path, _, instead) in of_kind(Some(kind)) {
                let source = match path.strip_prefix("limits.") {
                    Some(limit) => of(kind.as_str(), "", &format!("limits: {{ {limit}: 5 }}\n")),
                    None => of(kind.as_str(), ", mapping: { a: b }", ""),
                };
                let parsed = Driver::parse("DRIVER.md", &source);
                let found = &parsed.diagnostics;
                assert!(parsed.value.is_some(), "{path}: {found:?}\n{source}");
                assert_eq!(found.len(), 1, "{kind} {path}: {found:?}");
                assert_eq!(found[0].code, UNUSED.0.code);
                assert!(found[0].message.ends_with(instead), "{found:?}");
            }
        }
        // All limits have an effect for a component.
        let component = of(
            "component\ncomponent: a.wasm",
            ", mapping: { a: b }",
            "limits: { fuel: 5 }\n",
        );
        let found = Driver::parse("DRIVER.md", &component).diagnostics;
        assert!(found.is_empty(), "{found:?}");
        let lasting = of("http", "", "limits: { memory_mib: 5, output_bytes: 5 }\n");
        assert!(Driver::parse("DRIVER.md", &lasting).diagnostics.is_empty());
    }

    #[test]
    fn each_field_without_effect_is_read_and_warned_of_once() {
        for (path, why, instead) in FIELDS {
            let source = with(path);
            let parsed = Driver::parse("DRIVER.md", &source);
            let found = &parsed.diagnostics;
            assert!(parsed.value.is_some(), "{path}: {found:?}\n{source}");
            assert_eq!(found.len(), 1, "{path}: {found:?}");
            assert_eq!(found[0].code, why.0.code, "{path}");
            assert!(found[0].message.ends_with(instead), "{path}: {found:?}");
        }
        let plain = with("x").replace("x: {}\n", "");
        assert!(Driver::parse("DRIVER.md", &plain).diagnostics.is_empty());
    }
}
