//! Reads the fields of a TOOL.md (AIP-14, "Frontmatter"). Another module parses the YAML.

use serde_json::Value;

use super::{
    Approval, CONTEXT_PIN, DEFAULT_TIMEOUT, DriverConstraints, McpResult, McpSchemas, Tool,
    ToolExample, check_keys, mcp_name, names, search_hint, word,
};
use crate::Scope;
use crate::action::{self, Claims};
use crate::capability::Class;
use crate::codes;
use crate::diagnostic::{Code, FileReport, Parsed, Position};
use crate::driver::DriverKind;
use crate::front_matter::split;
use crate::schema::{Schema, SchemaError};
use crate::shared::{self, RequiresParts};
use crate::source::{Content, FieldReader, MappingReader, PlacedValue, Spelling, nearest};

impl Tool {
    /// Reads a TOOL.md. `file` names it in diagnostics; `scope` is the rest of its bundle.
    pub fn parse(file: &str, source: &str, scope: &dyn Scope) -> Parsed<Tool> {
        let report = FileReport::new(file);
        let tool = split(source, &report).and_then(|parts| {
            let root = parts.root(&report);
            contract(&root, Spelling::Snake, parts.body, scope)
        });
        report.finish(tool)
    }
}

/// The new places of fields that were removed from AIP-14.
const MOVED: &[(&str, &str)] = &[
    ("code", "code"),
    ("run", "run"),
    ("runner", "runner"),
    ("secrets", "auth.ref"),
    ("network", "network.egress"),
    ("entry", "execute"),
];

const DISCOURAGED: &[&str] = &["async", "streaming", "priority", "model", "temperature"];

/// Builds a contract from its fields. A broken rule of one field does not end the checks of the
/// others.
pub(super) fn contract(
    root: &FieldReader<'_>,
    spelling: Spelling,
    body: &str,
    scope: &dyn Scope,
) -> Option<Tool> {
    if root.is_null() {
        let message =
            "expected the fields name, id, description, version, inputs and outputs, found none";
        return root.refuse(&codes::MISSING_FIELD, message);
    }
    let fields = root.fields()?.spelled(spelling);
    let fields = match spelling {
        // A JavaScript object, in which null means an absent member.
        Spelling::Camel => fields.null_is_absent(),
        Spelling::Snake => fields,
    };
    fields.whole(|fields| read(fields, root, body, scope))
}

fn read(
    fields: &mut MappingReader<'_>,
    root: &FieldReader<'_>,
    body: &str,
    scope: &dyn Scope,
) -> Option<Tool> {
    let spelling = fields.spelling();
    foreign(fields);
    if let Some(field) = fields.take("schema") {
        shared::schema(&field, &["agentproto/tool/v1"]);
    }

    let id = shared::id(fields);
    // `defineTool` makes `name` and `version` optional.
    let name = match (spelling, root.get("name")) {
        (Spelling::Camel, None) => id.as_ref().map(ToString::to_string),
        _ => shared::name(fields),
    };
    let description = shared::description(fields);
    let version = match (spelling, root.get("version")) {
        (Spelling::Camel, None) => Some(semver::Version::new(1, 0, 0)),
        _ => fields.require("version", shared::version),
    };
    let (inputs, outputs) = schemas(fields, scope);

    let metadata = fields.take("metadata");
    let below = |path| metadata.as_ref()?.below(path);
    if let Some(ours) = below("toolward") {
        check_keys(&ours);
    }
    let requires = below("toolward.requires").and_then(|field| field.fields());
    let requires = requires
        .map(|inner| inner.whole(|inner| shared::requires_parts(inner, Class::required_ours())));
    let claims = claims(fields, requires.unwrap_or_default());
    let written = claims.approval.as_ref();
    let written_auto = written
        .filter(|given| given.value == Approval::Auto)
        .map(|given| given.at);
    let implements = action::resolve(fields, scope);
    let merged = action::merge(claims, implements.as_ref(), root.report);
    let approval = stricter_approval(&merged, written_auto, spelling, root.report);

    let default_implementation = fields.take("default_implementation");
    let default_implementation = default_implementation.filter(|field| !field.is_null());
    let default_implementation = default_implementation.and_then(|field| field.string());
    let timeout = shared::milliseconds(fields, "timeout_ms");
    let results = [
        ("structured", McpResult::Structured),
        ("content", McpResult::Content),
    ];
    let listed = [("plain", McpSchemas::Plain), ("exact", McpSchemas::Exact)];
    let aliases = below("toolward.aliases").map(|field| names(&field));
    let all = metadata.as_ref().map(FieldReader::mapping);

    Some(Tool {
        idempotent: fields.boolean("idempotent").unwrap_or(false),
        cost_class: shared::cost_class(fields).unwrap_or_default(),
        timeout: timeout.unwrap_or(DEFAULT_TIMEOUT),
        retry: shared::retry(fields),
        driver_constraints: constraints(fields),
        tags: shared::labels(fields, "tags"),
        context_schema: context_schema(fields, below("contextSchema"), scope),
        examples: examples(fields, inputs.as_ref(), outputs.as_ref()),
        metadata: all.unwrap_or_default(),
        mcp_name: below("mcp.name").and_then(|field| mcp_name(&field)),
        mcp_result: word(below("mcp.result"), &results),
        mcp_schemas: word(below("mcp.schemas"), &listed),
        aliases: aliases.unwrap_or_default(),
        namespace: below("toolward.namespace").and_then(|field| shared::plain_name(&field)),
        search_hint: below("toolward.search_hint").and_then(|field| search_hint(&field)),
        id: id?,
        name: name?,
        description: description?,
        version: version?,
        inputs: inputs?,
        outputs: outputs?,
        mutates: merged.mutates,
        requires: merged.requires,
        approval,
        risk_level: merged.risk_level,
        default_implementation,
        implements: implements.flatten(),
        fires_events: merged.fires_events,
        body: body.to_owned(),
    })
}

/// The contract's claims: its values of the fields that an action also has.
fn claims(fields: &mut MappingReader<'_>, below_metadata: RequiresParts) -> Claims {
    let events = |field: &FieldReader<'_>| field.report.unbroken(|| field.strings());
    let mut requires = shared::requires(fields);
    requires.parts.extend(below_metadata.parts);
    Claims {
        mutates: shared::mutates(fields),
        requires,
        approval: shared::approval(fields),
        risk_level: shared::risk_level(fields),
        category: given(fields, "category", FieldReader::string),
        target_kind: given(fields, "target_kind", FieldReader::string),
        fires_events: given(fields, "fires_events", events),
    }
}

/// Fields that belong to a driver: refused, or warned about and ignored.
fn foreign(fields: &mut MappingReader<'_>) {
    let mut note = |key, code, why: &str, hint: String| {
        if let Some(field) = fields.take(key) {
            let message = format!("expected no `{key}` in a contract, found it: {why}");
            field
                .report
                .add_with_hint(code, field.key_at, message, hint);
        }
    };
    for (key, home) in MOVED {
        let hint = format!("move it to `{home}` in DRIVER.md");
        note(
            key,
            &codes::MOVED_FIELD,
            "the field moved to DRIVER.md",
            hint,
        );
    }
    let why = "bodies live on the driver (AIP-30)";
    let hint = "write a DRIVER.md that implements the tool".to_owned();
    note("execute", &codes::EXECUTE_IN_CONTRACT, why, hint);
    for key in DISCOURAGED {
        let why = "the field concerns the driver and is ignored";
        let hint = "move it below the driver's `metadata`".to_owned();
        note(key, &codes::DISCOURAGED_FIELD, why, hint);
    }
}

/// Reads `auto` with a non-empty `mutates`, as in AIP-14's example, as `on-mutate`, and warns.
fn stricter_approval(
    merged: &action::MergedTerms,
    written_auto: Option<Position>,
    spelling: Spelling,
    report: &FileReport<'_>,
) -> Approval {
    if merged.approval != Approval::Auto || merged.mutates.is_empty() {
        return merged.approval.clone();
    }
    if let Some(at) = written_auto {
        let label = spelling.of("approval");
        let message = format!(
            "expected `{label}` to be at least on-mutate because `mutates` is not empty, found auto: read as on-mutate"
        );
        let hint = format!("write {label}: on-mutate");
        report.add_with_hint(&codes::APPROVAL_AUTO_MUTATES, at, message, hint);
    }
    Approval::OnMutate
}

fn given<'n, T>(
    fields: &mut MappingReader<'n>,
    key: &'static str,
    read: impl FnOnce(&FieldReader<'n>) -> Option<T>,
) -> Option<PlacedValue<T>> {
    let field = fields.take(key)?;
    let (value, at) = (read(&field)?, field.key_at);
    Some(PlacedValue { value, at })
}

fn constraints(fields: &mut MappingReader<'_>) -> DriverConstraints {
    let kinds = |field: &FieldReader<'_>| -> Vec<String> {
        let named = field.texts();
        let known: Vec<_> = DriverKind::declared().map(DriverKind::as_str).collect();
        for (kind, item) in named.iter().filter(|(kind, _)| !known.contains(kind)) {
            let (name, known) = (&field.name, known.join(", "));
            let message =
                format!("expected `{name}` to name driver kinds ({known}), found {kind:?}");
            item.note(&codes::CONSTRAINT_KIND_UNKNOWN, message);
        }
        named.into_iter().map(|(kind, _)| kind.to_owned()).collect()
    };
    let (constraints, at) = fields.within("driver_constraints", |inner| {
        let constraints = DriverConstraints {
            forbid: inner.or_default("forbid", kinds),
            require_kind: inner.or_default("require_kind", kinds),
        };
        (constraints, Some(inner.at))
    });
    let required = &constraints.require_kind;
    // A component also counts as `sdk`, so it may satisfy the requirement `sdk`.
    let possible = |kind: &String| {
        constraints.permits(kind) || (kind == "sdk" && constraints.permits("component"))
    };
    if let Some(at) = at
        && !required.is_empty()
        && !required.iter().any(possible)
    {
        let message = format!(
            "expected some permitted kind, found {} both required and forbidden",
            required.join(", ")
        );
        fields
            .report
            .add(&codes::CONSTRAINTS_CONTRADICT, at, message);
    }
    constraints
}

/// Reads the schemas of the inputs and of the outputs. Warns of inputs that are not an object.
fn schemas(fields: &mut MappingReader<'_>, scope: &dyn Scope) -> (Option<Schema>, Option<Schema>) {
    let (inputs_key, outputs_key) = match fields.spelling() {
        Spelling::Snake => ("inputs", "outputs"),
        Spelling::Camel => ("input_schema", "output_schema"),
    };
    let field = fields.required(inputs_key);
    let inputs = field.as_ref().and_then(|field| schema(field, scope));
    let outputs = fields.required(outputs_key);
    let outputs = outputs.and_then(|field| schema(&field, scope));
    let kind = inputs
        .as_ref()
        .and_then(|inputs| inputs.value().get("type"));
    if let (Some(field), Some(kind)) = (field, kind)
        && kind != "object"
    {
        let name = &field.name;
        let message = format!("expected `{name}` to describe an object, found type {kind}");
        fields
            .report
            .add(&codes::INPUTS_NOT_OBJECT, field.place("/type"), message);
    }
    (inputs, outputs)
}

/// Reads and compiles a schema.
pub(crate) fn schema(field: &FieldReader<'_>, scope: &dyn Scope) -> Option<Schema> {
    let label = &field.name;
    if !matches!(field.content, Content::Mapping(_)) {
        let found = field.kind();
        let message = format!("expected `{label}` to be a JSON Schema, found {found}");
        return field.refuse(&codes::WRONG_TYPE, message);
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
            field.report.follows();
            None
        }
        Err(error) => {
            // An error in a document that the schema refers to is at the schema's start.
            let at = match error.document {
                None => field.place(&error.path),
                Some(_) => field.at,
            };
            let near = |id: &String| {
                let known = scope.schemas();
                nearest(id, known.iter().map(String::as_str)).map(str::to_owned)
            };
            let near = error.missing.as_ref().and_then(near);
            let hint = near.map(|near| format!("did you mean `schema:{near}`?"));
            field
                .report
                .add_with_hint(error.info, at, format!("in `{label}`: {error}"), hint);
            None
        }
    }
}

/// Reads `contextSchema` at the top level or below `metadata`. Both may be present only if they are
/// equal.
pub(super) fn context_schema<'n>(
    fields: &mut MappingReader<'n>,
    below_metadata: Option<FieldReader<'n>>,
    scope: &dyn Scope,
) -> Option<Schema> {
    let top = fields.take("contextSchema");
    if let (Some(top), Some(inner)) = (&top, &below_metadata)
        && top.to_value() != inner.to_value()
    {
        let message =
            "expected `contextSchema` and `metadata.contextSchema` to be equal, found two schemas";
        return inner.refuse(&codes::CONTEXT_SCHEMA_CONFLICT, message);
    }
    let field = top.or(below_metadata)?.named("contextSchema");
    let pin = field.get("properties").and_then(|all| all.get(CONTEXT_PIN));
    if let Some(pin) = pin {
        let message = format!(
            "expected members that a driver gets, found `{CONTEXT_PIN}`: it picks the driver of a call, and hosts take it out"
        );
        field
            .report
            .add(&codes::CONTEXT_MEMBER_RESERVED, pin.at, message);
    }
    schema(&field, scope)
}

/// Reads the examples and checks them against the schemas. No driver is run here.
fn examples(
    fields: &mut MappingReader<'_>,
    inputs: Option<&Schema>,
    outputs: Option<&Schema>,
) -> Vec<ToolExample> {
    let mut examples: Vec<ToolExample> = Vec::new();
    for item in fields.items("examples") {
        let example = item.whole(|fields| {
            let name = fields.require("name", |field| {
                let name = field.text()?;
                if examples.iter().any(|other| other.name == name) {
                    let message =
                        format!("expected examples with different names, found {name:?} again");
                    field.note(&codes::EXAMPLE_DUPLICATE_NAME, message);
                }
                Some(name.to_owned())
            });
            let (input, output) = (fields.required("input"), fields.take("output"));
            let note = fields.read("note", FieldReader::string);
            let input =
                input.map(|field| checked(&field, inputs, "input", &codes::EXAMPLE_INPUT_INVALID));
            let output = output
                .map(|field| checked(&field, outputs, "output", &codes::EXAMPLE_OUTPUT_INVALID));
            Some(ToolExample {
                name: name?,
                input: input?,
                output,
                note,
            })
        });
        examples.extend(example);
    }
    examples
}

fn checked(field: &FieldReader<'_>, schema: Option<&Schema>, part: &str, code: &Code) -> Value {
    let value = field.to_value();
    if let Some(Err(violation)) = schema.map(|schema| schema.validate(&value)) {
        let at = field.node.place(&violation.instance_path);
        let message =
            format!("expected the {part} of the example to satisfy `{part}s`, found: {violation}");
        field.report.add(code, at, message);
    }
    value
}
