//! Resolution: finds the tool that a caller's name means, and the drivers that may serve it.

use std::sync::Arc;

use serde_json::Value;
use toolward_bundle::text::{near_tool, tool_hint};
use toolward_policy::Rejection;

use crate::api::request::Request;
use crate::api::result::{CallError, ErrorClass, ErrorCode, unauthorised};
use crate::catalogue::{Catalogue, DriverFacts, ToolFacts, Unserved, UnservedDriver, withdrawn};

/// A tool that exists here, with at least one driver to serve it.
pub(crate) struct Resolved {
    pub(crate) tool: Arc<ToolFacts>,
    /// The pinned ids. A driver may serve the call only if its id equals each of them.
    pins: Vec<String>,
}

impl Resolved {
    /// Whether the call insists on a driver.
    pub(crate) fn is_pinned(&self) -> bool {
        !self.pins.is_empty()
    }

    /// The drivers that may serve this call, best first.
    pub(crate) fn routes(&self) -> impl Iterator<Item = &Arc<DriverFacts>> {
        let served = self.tool.served_drivers();
        served.filter(|route| self.pins.iter().all(|pin| **pin == *route.id))
    }
}

/// Finds the tool and checks that a driver serves it.
pub(crate) fn resolve(catalogue: &Catalogue, request: &Request) -> Result<Resolved, CallError> {
    let caller = request.scope.chain.caller();
    let tool = match caller {
        None => catalogue.find(&request.tool),
        Some(_) => catalogue.find_by_id(&request.tool),
    };
    let Some(tool) = tool else {
        if let Some(withheld) = catalogue.find_withheld(&request.tool, caller.is_some()) {
            return Err(withheld.refusal());
        }
        return Err(CallError::new(
            ErrorCode::NOT_FOUND,
            ErrorClass::UnknownTool,
            format!("there is no tool `{}`", request.tool),
        )
        .with_hint(known(catalogue, &request.tool)));
    };
    // An unsigned tool can't call a signed one.
    if !tool.dev && caller.is_some_and(|caller| caller.dev) {
        return Err(unauthorised(
            ErrorClass::PermissionDenied,
            format!("`{}` is signed, and its caller is not", tool.major_id),
        ));
    }
    if let Some(reason) = tool.withdrawal.withdrawn() {
        return Err(withdrawn(&tool.major_id, reason));
    }
    let resolved = Resolved {
        tool: tool.clone(),
        pins: pins(request)?,
    };
    if resolved.routes().next().is_some() {
        return Ok(resolved);
    }
    let mut drivers = tool.drivers.iter();
    if let Some(reason) = drivers.find_map(|route| route.withdrawal.withdrawn()) {
        return Err(withdrawn(&tool.major_id, reason));
    }
    Err(match resolved.pins.last() {
        Some(driver) => CallError::of(
            ErrorCode::PINNED_PROVIDER_UNAVAILABLE,
            format!(
                "the pinned driver `{driver}` does not serve `{}`",
                tool.major_id
            ),
        )
        .with_hint(pin_hint(driver, tool)),
        None => no_route(&tool.major_id, &tool.unserved),
    })
}

/// A hint that names a driver with a similar id, if one exists.
fn pin_hint(pin: &str, tool: &ToolFacts) -> String {
    let ids = tool.drivers.iter();
    let ids = ids.map(|route| &*route.id);
    match near_tool(pin, ids).filter(|near| *near != pin) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "leave out the pin, or load the bundle with that driver".to_owned(),
    }
}

/// The driver ids that the request and its context pin the call to.
fn pins(request: &Request) -> Result<Vec<String>, CallError> {
    let mut pins: Vec<String> = request.pinned_driver.iter().cloned().collect();
    match &request.pinned_provider {
        None => {}
        Some(Value::String(driver)) => pins.push(driver.clone()),
        Some(_) => {
            return Err(CallError::of(
                ErrorCode::INPUT_INVALID,
                "expected `context.pinnedProvider` to be the id of a driver, found another type",
            ));
        }
    }
    Ok(pins)
}

/// The error of a tool without a driver; `unserved` holds the reasons why its drivers can't serve
/// it.
pub(crate) fn no_route(tool: &str, unserved: &Unserved) -> CallError {
    let drivers = unserved.drivers.as_slice();
    let reasons = match drivers {
        [] => String::new(),
        [driver] => format!(" ({driver})"),
        drivers => format!(" (each of the {} that name it is rejected)", drivers.len()),
    };
    let (code, region) = match unserved.only_region {
        true => (
            ErrorCode::NO_ROUTE_IN_REGION,
            " in the region that the policy asks for",
        ),
        false => (ErrorCode::NO_ROUTE, ""),
    };
    let message = format!("no driver serves `{tool}`{region}{reasons}");
    let error = CallError::of(code.clone(), message);
    let Some(cause) = unserved.cause() else {
        return error.with_hint(
            "load a bundle of the same publisher with a component driver for this version",
        );
    };
    let denied = |driver: &UnservedDriver| {
        let mut reasons = driver.reasons.iter();
        reasons.any(|one| matches!(one, Rejection::TransportDenied { .. }))
    };
    let help = match drivers.iter().all(denied) {
        true => "have its transport in tools.json changed",
        false => "load a driver that this host can run",
    };
    error
        .with_cause(cause)
        .with_hint(code.ask_the_operator(help))
}

/// Refuses a call whose bundles were withdrawn while it waited.
pub(crate) fn still_served(tool: &ToolFacts, route: &DriverFacts) -> Result<(), CallError> {
    let withdrawals = [&tool.withdrawal, &route.withdrawal];
    let reason = withdrawals
        .into_iter()
        .find_map(|withdrawal| withdrawal.withdrawn());
    reason.map_or(Ok(()), |reason| Err(withdrawn(&tool.major_id, reason)))
}

/// A hint that names the tool that was meant, or a few of the existing tools.
fn known(catalogue: &Catalogue, name: &str) -> String {
    let ids = catalogue.tools().map(|tool| &*tool.major_id);
    tool_hint(name, ids).unwrap_or_else(|| "no tools are loaded".to_owned())
}
