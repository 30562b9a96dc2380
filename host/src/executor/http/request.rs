//! The request of a driver without code (`kind: http`), made from the values of a call. Equal
//! values make equal requests, so the request that a person saw is the request that is sent.

use serde_json::Value;
use toolward_contract::driver::{Driver, HttpCall, RenderErrorKind, Rendered, Values};
use toolward_contract::json as strict;
use toolward_contract::schema::HIDDEN;
use toolward_policy::{Grant, SecretPosition};
use toolward_sandbox::limits::CallLimits;

use crate::api::approval::ShownRequest;
use crate::api::result::{CallError, ErrorClass, ErrorCode, Result};
use crate::executor::RequestValues;

/// Makes the request of a call from these JSON texts. A body has at most `body_bytes`.
pub(super) fn render(
    http: &HttpCall,
    (input, context): (&str, &str),
    body_bytes: u64,
) -> Result<Rendered> {
    let (input, context) = (value(input)?, value(context)?);
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

/// The request of a call in the form that a person is shown.
pub(super) fn preview(driver: &Driver, call: &RequestValues<'_>) -> Result<Option<ShownRequest>> {
    let (Some(http), Some(origin)) = (&call.implements.http, driver.origin()) else {
        return Ok(None);
    };
    let body_bytes = call.limits.http_body_bytes;
    let rendered = render(http, (call.input, call.context), body_bytes)?;
    let origin = format!("https://{origin}");
    let method = rendered.method.as_str().to_owned();
    Ok(Some(match shown(http, call, &rendered) {
        Some(rendered) => ShownRequest {
            method,
            url: url(&origin, &rendered, &marked(&rendered, call.grant)),
            body: body(&rendered, call.limits)?,
        },
        // The request can't be made without the hidden values.
        None => ShownRequest {
            method,
            url: format!("{origin}/{HIDDEN}"),
            body: rendered.body.as_ref().map(|_| HIDDEN.into()),
        },
    }))
}

/// `rendered` with a mark for each hidden value; `None` if the request can't be made with the
/// marks, or would lack parts.
fn shown(http: &HttpCall, call: &RequestValues<'_>, rendered: &Rendered) -> Option<Rendered> {
    let given: Value = serde_json::from_str(call.context).ok()?;
    let mut context = match &call.contract.context_schema {
        Some(schema) => schema.observable(&given),
        None => given.clone(),
    };
    for (name, _) in call.context_secrets {
        if let Some(value) = context.get_mut(name) {
            *value = HIDDEN.into();
        }
    }
    let input = call.contract.inputs.observable(call.contract_input);
    if context == given && input == *call.contract_input {
        return Some(rendered.clone());
    }
    if hides_members(&given, &context) || hides_members(call.contract_input, &input) {
        return None;
    }
    let input = call.implements.mapping.apply(input).ok()?;
    let values = Values {
        input: &input,
        context: &context,
    };
    let body_bytes = usize::try_from(call.limits.http_body_bytes).unwrap_or(usize::MAX);
    http.render(values, body_bytes).ok()
}

/// Whether a list or an object is hidden as a whole: a placeholder may use a part of it, which the
/// shown request would lack.
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
fn body(rendered: &Rendered, limits: &CallLimits) -> Result<Option<Value>> {
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

/// The query parameters that are secrets, as name and slug. Secrets that only the policy places in
/// the query come first.
pub(super) fn query_secrets<'r>(
    rendered: &'r Rendered,
    grant: &'r Grant,
) -> Vec<(&'r str, &'r str)> {
    let by_policy = rendered.secrets_by_policy.iter();
    let by_policy = by_policy.filter_map(|slug| match position(grant, slug)? {
        SecretPosition::Query(name) => Some((name.as_str(), slug.as_str())),
        SecretPosition::Header(_) => None,
    });
    let own = rendered.query_secrets.iter();
    by_policy
        .chain(own.map(|(name, slug)| (name.as_str(), slug.as_str())))
        .collect()
}

/// Where the policy places a secret in the request.
pub(super) fn position<'g>(grant: &'g Grant, slug: &str) -> Option<&'g SecretPosition> {
    let mut secrets = grant.secrets().iter();
    let secret = secrets.find(|secret| secret.slug == slug)?;
    Some(&secret.binding.as_ref()?.position)
}

/// The parameters that hold secrets, with a mark in place of each value. No value of a call can
/// contain such a mark, since brackets of a value are encoded.
fn marked<'r>(rendered: &'r Rendered, grant: &'r Grant) -> Vec<(&'r str, String)> {
    query_secrets(rendered, grant)
        .into_iter()
        .map(|(name, slug)| (name, format!("[secret:{slug}]")))
        .collect()
}

/// The URL of a request, with these secret parameters at its end.
pub(super) fn url(origin: &str, rendered: &Rendered, secrets: &[(&str, String)]) -> String {
    let mut url = format!("{origin}{}", rendered.path_and_query);
    for (name, value) in secrets {
        let separator = if url.contains('?') { '&' } else { '?' };
        url.push(separator);
        url.extend([name, "=", value.as_str()]);
    }
    url
}

/// Parses a value of the call, which an earlier stage wrote as text.
fn value(text: &str) -> Result<Value> {
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
