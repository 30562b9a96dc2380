//! Validation: parses the input and checks it against the contract, and picks a driver.
//! Guest and approval see a re-serialisation of the validated value, not the caller's
//! text.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolward_contract::driver::{DriverKind, Rendered};
use toolward_contract::json;
use toolward_contract::schema::Schema;
use toolward_policy::{ContextLack, ContextText};

use crate::api::request::{Input, Request};
use crate::api::result::shortened;
use crate::api::result::{CallError, ErrorClass, ErrorCode};
use crate::catalogue::{LoadedDriver, Route, ToolEntry};
use crate::elicitation::{self, Facts, Resumed};
use crate::pipeline::resolve::Resolved;
use crate::sandbox::call_scope::CallScope;
use toolward_policy::Limits;

/// A value that has passed validation. Made by [`validate`] only.
pub(crate) struct Validated<T>(T);

impl<T> Validated<T> {
    pub(crate) fn into_inner(self) -> T {
        self.0
    }
}

impl Validated<RoutedCall> {
    /// The driver that was picked.
    pub(crate) fn driver(&self) -> &Arc<LoadedDriver> {
        &self.0.route.driver
    }
}

/// One call, ready for a decision.
pub(crate) struct RoutedCall {
    pub(crate) tool: Arc<ToolEntry>,
    pub(crate) route: Arc<Route>,
    /// The validated input for the guest, with fields renamed by the driver's
    /// `mapping`.
    pub(crate) input: String,
    /// The validated input without the `mapping`, for a person; `null` if none is
    /// asked.
    pub(crate) approval_input: Value,
    /// The validated context; `{}` where the contract has no schema for one.
    pub(crate) context: String,
    /// Its confidential texts, by the names of their values.
    pub(crate) context_secrets: Vec<(String, ContextText)>,
    pub(crate) timeout: Duration,
    pub(crate) scope: Arc<CallScope>,
    /// The request of a driver without code, once a person was asked about it.
    pub(crate) rendered: Option<Rendered>,
    /// Set if the call resumes after questions.
    pub(crate) resume: Option<Box<Resumed>>,
}

/// Most violations that one error lists.
const MAX_VIOLATIONS: usize = 8;

/// Checks input and context against the contract, and picks the first driver that
/// supports all inputs that are used.
pub(crate) fn validate(
    resolved: Resolved,
    request: Request,
    limits: &Limits,
) -> Result<Validated<RoutedCall>, CallError> {
    let json_limits = json::Limits {
        bytes: limits.input_bytes,
        depth: limits.json_depth,
        values: limits.json_values,
    };
    let contract = &resolved.tool.contract;

    let input = match request.input {
        // The input of a nested call counts as memory of its caller.
        Input::Text(text) => {
            let caller = request.scope.chain.caller();
            let mut memory = caller.map_or(u64::MAX, |caller| caller.memory_bytes);
            json::parse_within(text.as_bytes(), &json_limits, &mut memory)
        }
        Input::Value(value) => json::check(&value, &json_limits).map(|()| value),
    }
    .map_err(|error| CallError::malformed_input(&error))?;
    check(&contract.inputs, &input, "input")?;

    let brought = match (&contract.context_schema, request.context) {
        (None, _) => Some(Value::Object(serde_json::Map::new())),
        (Some(schema), Some(context)) => {
            check(schema, &context, "context")?;
            Some(context)
        }
        (Some(_), None) => None,
    };

    let principal = brought
        .is_none()
        .then_some(request.scope.principal.as_str());
    let route = pick(&resolved, &input, principal)?;
    let (context, context_secrets) = match brought {
        Some(context) => (context, Vec::new()),
        None => {
            let given = route.contexts.get(&request.scope.principal);
            let given = given.map_err(context_missing)?;
            (given.value.clone(), given.secrets.clone())
        }
    };
    let asks = route.driver.driver.kind == DriverKind::Form;
    let approval_input = match route.question {
        None if !asks => Value::Null,
        _ => input.clone(),
    };
    let call_input = route.implements.mapping.apply(input).map_err(|error| {
        CallError::new(
            ErrorCode::INPUT_UNSUPPORTED,
            ErrorClass::InvalidArguments,
            format!("the driver's mapping does not take this input: {error}"),
        )
    })?;
    let (call_input, context) = (text(&call_input)?, text(&context)?);
    let facts = Facts {
        principal: &request.scope.principal,
        tool: &resolved.tool.full_id,
        publisher: &resolved.tool.publisher,
        driver: route.driver.driver.id.as_str(),
        bundle: &route.driver.bundle,
        input: &call_input,
        context: &context,
    };
    let resume = match request.resume {
        None => None,
        Some(resume) => Some(Box::new(elicitation::check(
            *resume,
            &facts,
            json_limits,
            asks,
        )?)),
    };
    let timeout = request
        .timeout
        .map_or(route.limits.timeout, |own| own.min(route.limits.timeout));
    Ok(Validated(RoutedCall {
        input: call_input,
        approval_input,
        context,
        context_secrets,
        timeout,
        scope: request.scope,
        rendered: None,
        resume,
        tool: resolved.tool,
        route,
    }))
}

/// A value as JSON text.
fn text(value: &Value) -> Result<String, CallError> {
    serde_json::to_string(value)
        .map_err(|error| CallError::internal(format!("a value can't be written as JSON: {error}")))
}

/// The first driver that supports all inputs that are used and is not denied; if all
/// are denied, the first of them, for its denial. If the call brings no context, the
/// operator has to give one to `principal`.
fn pick(
    resolved: &Resolved,
    input: &Value,
    principal: Option<&str>,
) -> Result<Arc<Route>, CallError> {
    let used = |name: &String| input.get(name).is_some();
    let mut dropped = None;
    let mut denied = None;
    let mut lacking = None;
    for route in resolved.routes() {
        if let Some(name) = route.implements.drop_inputs.iter().find(|name| used(name)) {
            dropped = Some((name.clone(), route.driver.driver.id.to_string()));
        } else if !route.is_open() {
            denied.get_or_insert(route);
        } else if let Some(Err(lack)) = principal.map(|name| route.contexts.get(name)) {
            lacking.get_or_insert(lack);
        } else {
            return Ok(route.clone());
        }
    }
    if let Some(lack) = lacking {
        return Err(context_missing(lack));
    }
    if let Some(route) = denied {
        return Ok(route.clone());
    }
    let (input, driver) = dropped.unwrap_or_default();
    Err(CallError::new(
        ErrorCode::INPUT_UNSUPPORTED,
        ErrorClass::InvalidArguments,
        format!("the driver `{driver}` does not support the input `{input}`"),
    )
    .with_hint(format!("leave out `{input}`")))
}

/// The error of a call whose context the operator has not given. The caller may be an
/// agent, so only the command shows which lines to add.
pub(crate) fn context_missing(lack: &ContextLack) -> CallError {
    let tool = &lack.tool;
    CallError::new(
        ErrorCode::UNAUTHORISED,
        ErrorClass::CapabilityGap,
        format!("`{tool}` is blocked: it requires a context that the operator has not given"),
    )
    .with_cause(json!({ "missing": ["context"] }))
    .with_hint(format!(
        "the operator decides: `toolward policy explain {tool}` shows what is missing"
    ))
}

fn check(schema: &Schema, value: &Value, what: &str) -> Result<(), CallError> {
    let Err(first) = schema.validate(value) else {
        return Ok(());
    };
    let violations: Vec<Value> = schema
        .violations(value, MAX_VIOLATIONS)
        .into_iter()
        .map(|violation| {
            json!({
                "path": shortened(violation.instance_path),
                "schema_path": violation.schema_path,
                "message": violation.message,
            })
        })
        .collect();
    let place = if first.instance_path.is_empty() {
        "/"
    } else {
        &first.instance_path
    };
    Err(CallError::new(
        ErrorCode::INPUT_INVALID,
        ErrorClass::SchemaValidationFailed,
        format!(
            "the {what} does not match its schema at `{place}`: {}",
            first.message
        ),
    )
    .with_cause(json!({ "violations": violations }))
    .with_hint(format!(
        "correct the {what}; the contract says what it takes"
    )))
}
