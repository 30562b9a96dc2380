//! The request of a driver without code (`kind: http`): made from the values of a call once, so that
//! what a person was shown is what is sent.

use serde_json::Value;
use toolward_contract::driver::{HttpCall, RenderErrorKind, Rendered, Values};
use toolward_contract::json as strict;
use toolward_contract::schema::HIDDEN;
use toolward_policy::{Grant, SecretPosition};

use super::validate::RoutedCall;
use crate::api::approval::ShownRequest;
use crate::api::result::{CallError, ErrorClass, ErrorCode};

/// Makes the request of a call. A body has at most `body_bytes`.
pub(crate) fn render(
    http: &HttpCall,
    call: &RoutedCall,
    body_bytes: u64,
) -> Result<Rendered, CallError> {
    let (input, context) = (value(&call.input)?, value(&call.context)?);
    let values = Values {
        input: &input,
        context: &context,
    };
    let body_bytes = usize::try_from(body_bytes).unwrap_or(usize::MAX);
    http.render(values, body_bytes)
        .map_err(|error| match error.kind() {
            RenderErrorKind::TooLarge => unfit(&error, ErrorClass::InvalidArguments),
            _ => unfit(&error, ErrorClass::SchemaValidationFailed),
        })
}

/// The request of a call about which a person is asked, kept for [`dispatch`](super::dispatch), and
/// what they are shown of it; `None` for other kinds of drivers.
pub(crate) fn keep(call: &mut RoutedCall) -> Result<Option<ShownRequest>, CallError> {
    let route = call.route.clone();
    let (Some(http), Some(origin)) = (&route.implements.http, route.driver.driver.origin()) else {
        return Ok(None);
    };
    let Some(access) = &route.access else {
        return Err(CallError::internal("a denied call got past the policy"));
    };
    let left = call.scope.chain.caller().map(|caller| caller.memory_bytes);
    let limits = route.limits.within(left, true);
    let body_bytes = limits.http_body_bytes;
    let rendered = render(http, call, body_bytes)?;
    let origin = format!("https://{origin}");
    let shown = match shown(http, call, &rendered, body_bytes) {
        Some(rendered) => ShownRequest {
            method: rendered.method.as_str().to_owned(),
            url: url(&origin, &rendered, &marked(&rendered, &access.grant)),
            body: body(&rendered, &limits)?,
        },
        // What is hidden is needed to make the request.
        None => ShownRequest {
            method: rendered.method.as_str().to_owned(),
            url: format!("{origin}/{HIDDEN}"),
            body: rendered.body.as_ref().map(|_| HIDDEN.into()),
        },
    };
    call.rendered = Some(rendered);
    Ok(Some(shown))
}

/// The same request without the values that nobody is shown; `None` if it can't be made so that
/// it has the same parts.
fn shown(
    http: &HttpCall,
    call: &RoutedCall,
    rendered: &Rendered,
    body_bytes: u64,
) -> Option<Rendered> {
    let contract = &call.tool.contract;
    let given: Value = serde_json::from_str(&call.context).ok()?;
    let mut context = match &contract.context_schema {
        Some(schema) => schema.observable(&given),
        None => given.clone(),
    };
    for (name, _) in &call.context_secrets {
        if let Some(value) = context.get_mut(name) {
            *value = HIDDEN.into();
        }
    }
    let input = contract.inputs.observable(&call.contract_input);
    if context == given && input == call.contract_input {
        return Some(rendered.clone());
    }
    if hides_members(&given, &context) || hides_members(&call.contract_input, &input) {
        return None;
    }
    let input = call.route.implements.mapping.apply(input).ok()?;
    let values = Values {
        input: &input,
        context: &context,
    };
    let body_bytes = usize::try_from(body_bytes).unwrap_or(usize::MAX);
    http.render(values, body_bytes).ok()
}

/// Whether a list or an object is hidden as a whole: a placeholder may use a part of it, and the
/// request would be shown without.
fn hides_members(given: &Value, shown: &Value) -> bool {
    match (given, shown) {
        (Value::Array(given), Value::Array(shown)) => {
            let mut pairs = given.iter().zip(shown);
            pairs.any(|(given, shown)| hides_members(given, shown))
        }
        (Value::Object(given), Value::Object(shown)) => given.iter().any(|(name, given)| {
            let shown = shown.get(name);
            shown.is_none_or(|shown| hides_members(given, shown))
        }),
        (Value::Array(_) | Value::Object(_), _) => true,
        _ => false,
    }
}

/// The body for a person to read.
fn body(
    rendered: &Rendered,
    limits: &crate::api::limits::CallLimits,
) -> Result<Option<Value>, CallError> {
    let Some(bytes) = &rendered.body else {
        return Ok(None);
    };
    let mut left = limits.memory_bytes.saturating_sub(bytes.len() as u64);
    let parsed = strict::parse_within(bytes, &limits.json, &mut left);
    parsed.map(Some).map_err(|error| {
        let error = format!("its body can't be shown for approval: {error}");
        unfit(&error, ErrorClass::InvalidArguments)
    })
}

/// Parameters of the query that are a secret each: name, and slug. Those that policy alone gives a
/// place come first.
pub(crate) fn query_secrets<'r>(
    rendered: &'r Rendered,
    grant: &'r Grant,
) -> Vec<(&'r str, &'r str)> {
    let position = |slug: &str| {
        let mut secrets = grant.secrets().iter();
        let binding = secrets.find(|grant| grant.slug == slug)?.binding.as_ref()?;
        match &binding.position {
            SecretPosition::Query(name) => Some(name.as_str()),
            SecretPosition::Header(_) => None,
        }
    };
    let by_policy = rendered.secrets_by_policy.iter();
    let by_policy = by_policy.filter_map(|slug| Some((position(slug)?, slug.as_str())));
    let own = rendered.query_secrets.iter();
    by_policy
        .chain(own.map(|(name, slug)| (name.as_str(), slug.as_str())))
        .collect()
}

/// The parameters that hold secrets, with a mark in the place of each value. No value of a call can
/// hold such a mark: its brackets would be encoded.
fn marked<'r>(rendered: &'r Rendered, grant: &'r Grant) -> Vec<(&'r str, String)> {
    query_secrets(rendered, grant)
        .into_iter()
        .map(|(name, slug)| (name, format!("[secret:{slug}]")))
        .collect()
}

/// The URL of a request, with these parameters at its end.
pub(crate) fn url(origin: &str, rendered: &Rendered, secrets: &[(&str, String)]) -> String {
    let mut url = format!("{origin}{}", rendered.path_and_query);
    for (name, value) in secrets {
        let separator = if url.contains('?') { '&' } else { '?' };
        url.push(separator);
        url.extend([name, "=", value.as_str()]);
    }
    url
}

/// A value of the call, which was written as text by an earlier stage.
fn value(text: &str) -> Result<Value, CallError> {
    serde_json::from_str(text).map_err(|error| {
        CallError::internal(format!("a value of the call is not valid JSON: {error}"))
    })
}

fn unfit(error: &dyn std::fmt::Display, class: ErrorClass) -> CallError {
    CallError::new(
        ErrorCode::INPUT_INVALID,
        class,
        format!("the input does not fit the driver's request: {error}"),
    )
}
