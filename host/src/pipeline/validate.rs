//! Validation: parses the input and checks it against the contract, and picks a driver. Guest and
//! approver see the validated value serialised again, not the caller's text.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolward_contract::json;
use toolward_contract::schema::{Schema, in_words};
use toolward_policy::ContextText;
use toolward_sandbox::limits::CallLimits;

use crate::api::request::{Input, Request};
use crate::api::result::{CallError, ErrorCode, shortened};
use crate::call_scope::CallScope;
use crate::catalogue::{DriverFacts, ToolFacts};
use crate::elicitation::{self, CallIdentity};
use crate::extensions::Extensions;
use crate::pipeline::candidates::{self, Considered, Picked, context_missing};
use crate::pipeline::resolve::Resolved;
use crate::recording::Keeping;
use crate::services::Services;

/// A call that has passed validation. Only [`validate`] creates it.
pub(crate) struct Validated(Box<RoutedCall>);

impl Validated {
    pub(crate) fn into_inner(self) -> Box<RoutedCall> {
        self.0
    }

    /// The call.
    pub(crate) fn call_mut(&mut self) -> &mut RoutedCall {
        &mut self.0
    }
}

/// One call, ready for a decision.
pub(crate) struct RoutedCall {
    pub(crate) tool: Arc<ToolFacts>,
    pub(crate) route: Arc<DriverFacts>,
    /// The routes that take over, in this order, if this one fails.
    pub(crate) fallbacks: VecDeque<Arc<DriverFacts>>,
    /// The validated input for the guest, changed by the driver's `mapping`.
    pub(crate) input: String,
    /// The validated input without the `mapping`, for approval, for other drivers, and for a driver
    /// that asks again; `null` if none needs it.
    pub(crate) contract_input: Value,
    /// Whether the call needs no context from the operator: the caller brought a context, or the
    /// contract has no context schema.
    pub(crate) brought: bool,
    /// The validated context; `{}` if the contract has no context schema.
    pub(crate) context: String,
    /// The confidential texts of the context, by the names of their values.
    pub(crate) context_secrets: Vec<(String, ContextText)>,
    pub(crate) timeout: Duration,
    pub(crate) scope: Arc<CallScope>,
    /// Values that features attached to the call, for example the answers of a resumed call, or the
    /// id from its caller.
    pub(crate) extensions: Extensions,
}

/// The most violations that one error lists.
const MAX_VIOLATIONS: usize = 8;

/// Checks input and context against the contract, and picks a driver.
pub(crate) fn validate(
    resolved: Resolved,
    request: Box<Request>,
    services: &Services,
) -> Result<Validated, CallError> {
    let limits = &services.limits;
    let json_limits = json::Limits {
        bytes: limits.input_bytes,
        depth: limits.json_depth,
        values: limits.json_values,
    };
    let contract = &resolved.tool.contract;

    let request = *request;
    let mut input = match request.input {
        // The input of a nested call counts as memory of its caller.
        Input::Text(text) => {
            let caller = request.scope.chain.caller();
            let mut memory = caller.map_or(u64::MAX, |caller| caller.memory_bytes);
            json::parse_within(text.as_bytes(), &json_limits, &mut memory)
        }
        Input::Value(value) => json::check(&value, &json_limits).map(|()| value),
    }
    .map_err(|error| CallError::malformed_input(&error))?;
    let received = match check(&contract.inputs, &input, "input") {
        Ok(()) => None,
        Err(error) if request.null_is_absent => {
            let rest = contract.inputs.without_absent(&input).ok_or(error)?;
            check(&contract.inputs, &rest, "input")?;
            Some(std::mem::replace(&mut input, rest))
        }
        Err(error) => return Err(error),
    };

    let brought = match (&contract.context_schema, request.context) {
        (None, _) => Some(Value::Object(serde_json::Map::new())),
        (Some(schema), Some(context)) => {
            check(schema, &context, "context")?;
            Some(context)
        }
        (Some(_), None) => None,
    };

    let name = request.named.map(|named| {
        let given = (&input, brought.as_ref());
        let (principal, tool) = (&request.scope.principal, &resolved.tool.major_id);
        named.check(principal, tool, given, request.resume.as_deref())
    });
    let mut extensions = Extensions::default();
    if let Some(name) = name.transpose()? {
        extensions.insert(Arc::new(name));
    }
    let is_brought = brought.is_some();
    let considered = Considered {
        input: &input,
        scope: &request.scope,
        brought: is_brought,
        secrets: services.secrets.as_deref(),
    };
    let Picked {
        route,
        fallbacks,
        rejected,
    } = candidates::pick(&resolved, considered)?;
    let (context, context_secrets) = match brought {
        Some(context) => (context, Vec::new()),
        None => {
            let given = route.contexts.get(&request.scope.principal);
            let given = given.map_err(context_missing)?;
            (given.value.clone(), given.secrets.clone())
        }
    };
    let keeping = Keeping {
        tool: &resolved.tool,
        route: &route,
        input: received.as_ref().unwrap_or(&input),
        context: &context,
        context_secrets: &context_secrets,
        scope: &request.scope,
        secrets: services.secrets.as_deref(),
    };
    if services.tape.is_some() {
        extensions.insert(keeping.recorded_input());
    }
    let recording = services.recording.as_ref();
    let kept = recording.map(|recording| recording.keep(keeping, rejected));
    let asks = route.features().asks_again;
    let contract_input = match asks || route.question.is_some() || !fallbacks.is_empty() {
        true => input.clone(),
        false => Value::Null,
    };
    let call_input = mapped(&route, input)?;
    let (call_input, context) = (text(&call_input)?, text(&context)?);
    if let Some(mut kept) = kept {
        let has_context = resolved.tool.contract.context_schema.is_some();
        kept.sizes(call_input.len(), has_context.then_some(context.len()));
        extensions.insert(kept);
    }
    let mut call = Box::new(RoutedCall {
        input: call_input,
        contract_input,
        brought: is_brought,
        fallbacks,
        context,
        context_secrets,
        timeout: Duration::ZERO,
        scope: request.scope,
        extensions,
        tool: resolved.tool,
        route,
    });
    if let Some(resume) = request.resume {
        let (resumed, rejected) = elicitation::check(*resume, &call.identity(), json_limits, asks)?;
        call.extensions.insert(resumed);
        if let Some(rejected) = rejected {
            call.extensions.insert(rejected);
        }
    }
    let longest = call.longest(|limits| limits.timeout);
    call.timeout = request.timeout.map_or(longest, |own| own.min(longest));
    Ok(Validated(call))
}

impl RoutedCall {
    /// The largest value of a limit among the call's drivers. Each driver stays within its own
    /// limit.
    pub(crate) fn longest<T: Ord>(&self, limit: impl Fn(&CallLimits) -> T) -> T {
        let others = self.fallbacks.iter().map(|next| limit(&next.limits));
        others.fold(limit(&self.route.limits), T::max)
    }

    /// The values that must be unchanged when the call resumes.
    pub(crate) fn identity(&self) -> CallIdentity<'_> {
        CallIdentity {
            principal: &self.scope.principal,
            tool: &self.tool.full_id,
            publisher: &self.tool.publisher,
            driver: &self.route.id,
            bundle: &self.route.bundle,
            input: &self.input,
            context: &self.context,
        }
    }

    /// Turns to the next fallback that takes the call's input. `None` if no fallback is left.
    pub(crate) fn fall(&mut self, may: impl Fn(&DriverFacts) -> bool) -> Option<()> {
        while let Some(route) = self.fallbacks.pop_front() {
            if may(&route) && self.is_taken_by(&route).is_ok() {
                self.route = route;
                return Some(());
            }
        }
        None
    }

    fn is_taken_by(&mut self, route: &DriverFacts) -> Result<(), CallError> {
        let input = text(&mapped(route, self.contract_input.clone())?)?;
        if !self.brought {
            let given = route.contexts.get(&self.scope.principal);
            let given = given.map_err(context_missing)?;
            self.context = text(&given.value)?;
            self.context_secrets.clone_from(&given.secrets);
        }
        self.input = input;
        Ok(())
    }
}

/// The input in the form that a route's driver takes.
fn mapped(route: &DriverFacts, input: Value) -> Result<Value, CallError> {
    route.implements.mapping.apply(input).map_err(|error| {
        CallError::of(
            ErrorCode::INPUT_UNSUPPORTED,
            format!("the driver's mapping does not take this input: {error}"),
        )
    })
}

/// A value as JSON text.
fn text(value: &Value) -> Result<String, CallError> {
    let text = toolward_support::json::write(Vec::new(), value).map_err(|error| error.to_string());
    text.and_then(|text| String::from_utf8(text).map_err(|error| error.to_string()))
        .map_err(|error| CallError::internal(format!("a value can't be written as JSON: {error}")))
}

fn check(schema: &Schema, value: &Value, what: &str) -> Result<(), CallError> {
    if schema.validate(value).is_ok() {
        return Ok(());
    }
    let mut found = schema.violations(value, MAX_VIOLATIONS.saturating_add(1));
    let more = match found.len() > MAX_VIOLATIONS {
        true => "; and more",
        false => "",
    };
    found.truncate(MAX_VIOLATIONS);
    for violation in &mut found {
        violation.instance_path = shortened(std::mem::take(&mut violation.instance_path));
    }
    let words = found.iter();
    let words = in_words(words.map(|one| (&*one.instance_path, &*one.message)));
    let violations = found.iter().map(|one| {
        let (path, schema_path) = (&one.instance_path, &one.schema_path);
        json!({ "path": path, "schema_path": schema_path, "message": one.message })
    });
    let violations: Vec<Value> = violations.collect();
    Err(CallError::of(
        ErrorCode::INPUT_INVALID,
        format!("the {what} does not match its schema: {words}{more}"),
    )
    .with_cause(json!({ "violations": violations }))
    .with_hint(match schema.takes() {
        Some(properties) => format!("the {what} takes {properties}"),
        None => format!("correct the {what} as its schema says"),
    }))
}
