//! TOOL.md field by field (AIP-14, "Frontmatter"). Knows no YAML.

use super::metadata::Metadata;
use super::{Approval, CONTEXT_PIN, DEFAULT_TIMEOUT, DriverConstraints, Tool, examples};
use crate::Scope;
use crate::action::{self, Claims};
use crate::codes;
use crate::diagnostic::{Parsed, Report};
use crate::schema::{Schema, SchemaError};
use crate::shared::{self, Given};
use crate::source::{Content, Field, Fields, Spelling, nearest, split};
use crate::wording;

pub(super) fn document(file: &str, source: &str, scope: &dyn Scope) -> Parsed<Tool> {
    let mut report = Report::new(file);
    let tool = split(source, &mut report).and_then(|parts| {
        let root = parts.root();
        contract(&root, Spelling::Snake, parts.body, scope, &mut report)
    });
    report.finish(tool)
}

/// Where the fields that left AIP-14 live now.
const MOVED: &[(&str, &str)] = &[
    ("code", "code"),
    ("run", "run"),
    ("runner", "runner"),
    ("secrets", "auth.ref"),
    ("network", "network.egress"),
    ("entry", "execute"),
];

const DISCOURAGED: &[&str] = &["async", "streaming", "priority", "model", "temperature"];

/// Builds a contract from its fields. Every rule is checked even after one was broken.
pub(super) fn contract(
    root: &Field<'_>,
    spelling: Spelling,
    body: &str,
    scope: &dyn Scope,
    report: &mut Report<'_>,
) -> Option<Tool> {
    if root.is_null() {
        report.add(
            &codes::MISSING_FIELD,
            root.at,
            "expected the fields name, id, description, version, inputs and outputs, found none",
        );
        return None;
    }
    let fields = report.read(Fields::of(root))?.spelled(spelling);
    let mut fields = match spelling {
        // An object of JavaScript, in which null stands for an absent member.
        Spelling::Camel => fields.null_is_absent(),
        Spelling::Snake => fields,
    };
    foreign(&mut fields, report);
    if let Some(field) = fields.take("schema") {
        shared::schema(&field, &["agentproto/tool/v1"], report);
    }

    let id = shared::id(&mut fields, report);
    // `defineTool` makes both optional.
    let name = match (spelling, root.get("name")) {
        (Spelling::Camel, None) => id.as_ref().map(ToString::to_string),
        _ => wording::name(&mut fields, report),
    };
    let description = wording::description(&mut fields, report);
    let version = match (spelling, root.get("version")) {
        (Spelling::Camel, None) => Some(semver::Version::new(1, 0, 0)),
        _ => {
            let version = report.read(fields.required("version"));
            version.and_then(|field| wording::version(&field, report))
        }
    };
    let (inputs, outputs) = schemas(&mut fields, scope, report);

    let idempotent = fields.take("idempotent");
    let idempotent = idempotent.and_then(|field| report.read(field.boolean()));
    let metadata = Metadata::take(&mut fields, report);
    let claims = claims(&mut fields, &metadata, report);
    let written_auto = claims
        .approval
        .clone()
        .filter(|given| given.value == Approval::Auto);
    let implements = action::resolve(&mut fields, scope, report);
    let merged = action::merge(claims, &implements, report);
    let approval = stricter_approval(&merged, written_auto, spelling, report);

    let cost_class = shared::cost_class(&mut fields, report).unwrap_or_default();
    let timeout = shared::milliseconds(&mut fields, "timeout_ms", report);
    let retry = shared::retry(&mut fields, report);
    let default_implementation = fields.take("default_implementation");
    let default_implementation = default_implementation.filter(|field| !field.is_null());
    let default_implementation =
        default_implementation.and_then(|field| report.read(field.text()).map(str::to_owned));
    let driver_constraints = constraints(&mut fields, report);
    let tags = wording::labels(&mut fields, "tags", report);
    let context_schema = context_schema(&mut fields, &metadata, scope, report);
    let examples = match fields.take("examples") {
        Some(field) => examples::read(&field, inputs.as_ref(), outputs.as_ref(), report),
        None => Vec::new(),
    };
    report.unknown(fields);

    Some(Tool {
        id: id?,
        name: name?,
        description: description?,
        version: version?,
        inputs: inputs?,
        outputs: outputs?,
        context_schema,
        idempotent: idempotent.unwrap_or(false),
        mutates: merged.mutates,
        requires: merged.requires,
        approval,
        risk_level: merged.risk_level,
        cost_class,
        timeout: timeout.map_or(DEFAULT_TIMEOUT, |given| given.value),
        retry,
        default_implementation,
        implements: implements.into_implementation(),
        driver_constraints,
        tags,
        examples,
        metadata: metadata.all,
        mcp_name: metadata.mcp_name,
        mcp_result: metadata.mcp_result,
        mcp_schemas: metadata.mcp_schemas,
        aliases: metadata.aliases,
        namespace: metadata.namespace,
        search_hint: metadata.search_hint,
        fires_events: merged.fires_events,
        body: body.to_owned(),
    })
}

/// The schemas of inputs, which have to be an object, and outputs.
fn schemas(
    fields: &mut Fields<'_>,
    scope: &dyn Scope,
    report: &mut Report<'_>,
) -> (Option<Schema>, Option<Schema>) {
    let (inputs_key, outputs_key) = match fields.spelling() {
        Spelling::Snake => ("inputs", "outputs"),
        Spelling::Camel => ("input_schema", "output_schema"),
    };
    let field = report.read(fields.required(inputs_key));
    let inputs = field
        .as_ref()
        .and_then(|field| schema(field, scope, report));
    let outputs = report.read(fields.required(outputs_key));
    let outputs = outputs.and_then(|field| schema(&field, scope, report));
    let kind = inputs
        .as_ref()
        .and_then(|inputs| inputs.value().get("type"));
    if let (Some(field), Some(kind)) = (field, kind)
        && kind != "object"
    {
        let name = &field.name;
        let message = format!("expected `{name}` to describe an object, found type {kind}");
        report.add(&codes::INPUTS_NOT_OBJECT, field.place("/type"), message);
    }
    (inputs, outputs)
}

/// What the contract says itself of what an action may say, too.
fn claims(fields: &mut Fields<'_>, metadata: &Metadata<'_>, report: &mut Report<'_>) -> Claims {
    let mut requires = shared::requires(fields, report);
    requires
        .parts
        .extend(metadata.requires.parts.iter().cloned());
    Claims {
        mutates: shared::mutates(fields, report),
        requires,
        approval: shared::approval(fields, report),
        risk_level: shared::risk_level(fields, report),
        category: given_text(fields, "category", report),
        target_kind: given_text(fields, "target_kind", report),
        fires_events: given_texts(fields, "fires_events", report),
    }
}

/// Fields that belong to a driver: refused, or warned about and ignored.
fn foreign(fields: &mut Fields<'_>, report: &mut Report<'_>) {
    for (key, home) in MOVED {
        if let Some(field) = fields.take(key) {
            let message = format!(
                "expected no `{key}` in a contract, found it: the field moved to DRIVER.md"
            );
            report.add_with_hint(
                &codes::MOVED_FIELD,
                field.key_at,
                message,
                format!("move it to `{home}` in DRIVER.md"),
            );
        }
    }
    if let Some(field) = fields.take("execute") {
        let message =
            "expected no `execute` in a contract, found it: bodies live on the driver (AIP-30)";
        report.add_with_hint(
            &codes::EXECUTE_IN_CONTRACT,
            field.key_at,
            message,
            "write a DRIVER.md that implements the tool",
        );
    }
    for key in DISCOURAGED {
        if let Some(field) = fields.take(key) {
            let message = format!(
                "expected no `{key}` in a contract, found it: the field concerns the driver and is ignored"
            );
            report.add_with_hint(
                &codes::DISCOURAGED_FIELD,
                field.key_at,
                message,
                "move it below the driver's `metadata`",
            );
        }
    }
}

pub(crate) fn schema(
    field: &Field<'_>,
    scope: &dyn Scope,
    report: &mut Report<'_>,
) -> Option<Schema> {
    let label = &field.name;
    if !matches!(field.content, Content::Mapping(_)) {
        let found = field.kind();
        let message = format!("expected `{label}` to be a JSON Schema, found {found}");
        report.add(&codes::WRONG_TYPE, field.at, message);
        return None;
    }
    let value = field.to_value();
    if let Some(schema) = scope.compiled(&value) {
        return Some(schema);
    }
    match Schema::compile(&value, scope) {
        Ok(schema) => Some(schema),
        Err(SchemaError {
            missing: Some(id), ..
        }) if scope.is_schema_unread(&id) => {
            report.follows();
            None
        }
        Err(error) => {
            // In another document there is no place to point at but the reference.
            let at = if error.document.is_none() {
                field.place(&error.path)
            } else {
                field.at
            };
            let near = |id: &String| {
                let known = scope.schemas();
                nearest(id, known.iter().map(String::as_str)).map(str::to_owned)
            };
            let near = error.missing.as_ref().and_then(near);
            let hint = near.map(|near| format!("did you mean `schema:{near}`?"));
            report.add_hinted(error.info, at, format!("in `{label}`: {error}"), hint);
            None
        }
    }
}

/// The text's own example combines `auto` with a non-empty `mutates`; the stricter reading wins.
fn stricter_approval(
    merged: &action::Merged,
    written_auto: Option<Given<Approval>>,
    spelling: Spelling,
    report: &mut Report<'_>,
) -> Approval {
    if merged.approval != Approval::Auto || merged.mutates.is_empty() {
        return merged.approval.clone();
    }
    if let Some(given) = written_auto {
        let label = spelling.of("approval");
        let message = format!(
            "expected `{label}` to be at least on-mutate because `mutates` is not empty, found auto: read as on-mutate"
        );
        report.add_with_hint(
            &codes::APPROVAL_AUTO_MUTATES,
            given.at,
            message,
            format!("write {label}: on-mutate"),
        );
    }
    Approval::OnMutate
}

fn given_text(
    fields: &mut Fields<'_>,
    key: &'static str,
    report: &mut Report<'_>,
) -> Option<Given<String>> {
    let field = fields.take(key)?;
    let value = report.read(field.text())?.to_owned();
    let at = field.key_at;
    Some(Given { value, at })
}

fn given_texts(
    fields: &mut Fields<'_>,
    key: &'static str,
    report: &mut Report<'_>,
) -> Option<Given<Vec<String>>> {
    let field = fields.take(key)?;
    let at = field.key_at;
    let value = report.unbroken(|report| report.strings(Some(field)))?;
    Some(Given { value, at })
}

/// Driver kinds that a constraint may name.
const KINDS: &[&str] = &["cli", "http", "mcp", "sdk", "builtin", "component"];

fn constraints(fields: &mut Fields<'_>, report: &mut Report<'_>) -> DriverConstraints {
    let Some(mut inner) = report.fields(fields.take("driver_constraints")) else {
        return DriverConstraints::default();
    };
    let at = inner.at;
    inner = inner.spelled(fields.spelling());
    let mut kinds = |key: &'static str, report: &mut Report<'_>| {
        let Some(field) = inner.take(key) else {
            return Vec::new();
        };
        let named = report.texts(&field);
        for (kind, at) in &named {
            if !KINDS.contains(kind) {
                let message = format!(
                    "expected `{}` to name driver kinds ({}), found {kind:?}",
                    field.name,
                    KINDS.join(", ")
                );
                report.add(&codes::CONSTRAINT_KIND_UNKNOWN, *at, message);
            }
        }
        named.into_iter().map(|(kind, _)| kind.to_owned()).collect()
    };
    let constraints = DriverConstraints {
        forbid: kinds("forbid", report),
        require_kind: kinds("require_kind", report),
    };
    report.unknown(inner);
    let required = &constraints.require_kind;
    // A component also counts as `sdk`, so an `sdk` requirement may be met by one.
    let possible = |kind: &String| {
        constraints.permits(kind) || (kind == "sdk" && constraints.permits("component"))
    };
    if !required.is_empty() && !required.iter().any(possible) {
        let message = format!(
            "expected some permitted kind, found {} both required and forbidden",
            required.join(", ")
        );
        report.add(&codes::CONSTRAINTS_CONTRADICT, at, message);
    }
    constraints
}

/// `contextSchema` at the top or below `metadata`; both only if equal.
fn context_schema(
    fields: &mut Fields<'_>,
    metadata: &Metadata<'_>,
    scope: &dyn Scope,
    report: &mut Report<'_>,
) -> Option<Schema> {
    let top = fields.take("contextSchema");
    if let (Some(top), Some(inner)) = (&top, metadata.context_schema)
        && top.to_value() != inner.to_value()
    {
        let message =
            "expected `contextSchema` and `metadata.contextSchema` to be equal, found two schemas";
        report.add(&codes::CONTEXT_SCHEMA_CONFLICT, inner.at, message);
        return None;
    }
    let inner = metadata.context_schema;
    let field = top.or_else(|| Some(Field::new("contextSchema", inner?)))?;
    let pin = field.get("properties").and_then(|all| all.get(CONTEXT_PIN));
    if let Some(pin) = pin {
        let message = format!(
            "expected members that a driver gets, found `{CONTEXT_PIN}`: it picks the driver of a call, and hosts take it out"
        );
        report.add(&codes::CONTEXT_MEMBER_RESERVED, pin.at, message);
    }
    schema(&field, scope, report)
}
