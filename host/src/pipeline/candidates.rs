//! Picks the driver that serves a call, and the drivers that take over if it fails.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};
use toolward_contract::capability::Capability;
use toolward_ledger::record::Rejected;
use toolward_policy::{ContextLack, SecretGrant};

use crate::api::approval::NamedDriver;
use crate::api::result::{CallError, ErrorClass, ErrorCode, shortened, unauthorised};
use crate::call_scope::CallScope;
use crate::catalogue::DriverFacts;
use crate::pipeline::resolve::Resolved;
use crate::secrets::SecretStore;

/// The most drivers that take over in turn: as many as a person reads.
const MAX_FALLBACKS: usize = 4;

/// The driver of a call.
pub(crate) struct Picked {
    pub(crate) route: Arc<DriverFacts>,
    /// The drivers that take over, in this order.
    pub(crate) fallbacks: VecDeque<Arc<DriverFacts>>,
    /// Why other drivers do not take the call; empty unless calls are recorded.
    pub(crate) rejected: Vec<Rejected>,
}

/// The properties of a call that decide which drivers it may have.
#[derive(Clone, Copy)]
pub(crate) struct Considered<'a> {
    pub(crate) input: &'a Value,
    pub(crate) scope: &'a CallScope,
    /// Whether the call needs no context from the operator: the caller brings a context, or the
    /// contract has no context schema.
    pub(crate) brought: bool,
    /// The source of secrets.
    pub(crate) secrets: Option<&'a dyn SecretStore>,
}

/// Why drivers do not take a call.
#[derive(Default)]
struct Skipped<'a> {
    /// A driver, the input that it does not support, and the transform of this input, if this host
    /// lacks the transform. Becomes an error only if no driver was skipped for another reason.
    unsupported: Option<(&'a str, &'a str, Option<&'a str>)>,
    denied: Option<&'a Arc<DriverFacts>>,
    without_secret: Option<CallError>,
    lacking: Option<CallError>,
    rejected: Vec<Rejected>,
}

impl Skipped<'_> {
    fn add(&mut self, route: &DriverFacts, why: &ErrorCode) {
        let names = route.recorded.as_ref();
        self.rejected
            .extend(names.and_then(|names| names.rejected(why)));
    }
}

/// Picks the first driver that supports all used inputs, is not denied, and has the secrets and the
/// context that it needs. Without such a driver, returns an error if a driver lacks only a context
/// or a secret. Otherwise picks the first denied driver, for its denial. If all drivers lack
/// support for an input, returns an error.
pub(crate) fn pick(resolved: &Resolved, call: Considered<'_>) -> Result<Picked, CallError> {
    let marked = |route: &Arc<DriverFacts>| route.health.is_marked();
    if resolved.routes().any(marked) {
        let mut routes: Vec<_> = resolved.routes().collect();
        let principal = &call.scope.principal;
        routes.sort_by_cached_key(|route| (route.tie, route.health.is_failing(principal)));
        return pick_of(routes.into_iter(), resolved, call);
    }
    pick_of(resolved.routes(), resolved, call)
}

/// Picks among routes in order, best first. Among drivers of equal rank, the drivers that the host
/// saw fail come last.
fn pick_of<'r>(
    mut routes: impl Iterator<Item = &'r Arc<DriverFacts>>,
    resolved: &Resolved,
    call: Considered<'_>,
) -> Result<Picked, CallError> {
    let mut skipped = Skipped::default();
    while let Some(route) = routes.next() {
        if !takes(route, call, &mut skipped) {
            continue;
        }
        let fallbacks = match resolved.is_pinned() {
            true => VecDeque::new(),
            false => {
                let tool = &resolved.tool.major_id;
                let next =
                    routes.filter(|next| next.takes_over && falls(route, next, call.scope, tool));
                let next = next.filter(|next| takes(next, call, &mut skipped));
                next.take(MAX_FALLBACKS).cloned().collect()
            }
        };
        return Ok(Picked {
            route: route.clone(),
            fallbacks,
            rejected: skipped.rejected,
        });
    }
    if let Some(error) = skipped.lacking.or(skipped.without_secret) {
        return Err(error);
    }
    if let Some(route) = skipped.denied {
        return Ok(Picked {
            route: route.clone(),
            fallbacks: VecDeque::new(),
            rejected: skipped.rejected,
        });
    }
    let none = || CallError::internal("a tool without a driver was resolved");
    Err(skipped.unsupported.map_or_else(none, unsupported))
}

/// Whether a driver serves a call; if not, adds the reason to `skipped`.
fn takes<'a>(route: &'a Arc<DriverFacts>, call: Considered<'_>, skipped: &mut Skipped<'a>) -> bool {
    let (entry, driver) = (&route.implements, &*route.id);
    let used = |name: &&String| call.input.get(name.as_str()).is_some();
    let dropped = entry.drop_inputs.iter().find(used);
    let dropped = dropped.map(|input| (input.as_str(), None));
    let lacking = || entry.mapping.lacks_transform(call.input);
    let lacking = || lacking().map(|(input, transform)| (input, Some(transform)));
    if let Some((input, transform)) = dropped.or_else(lacking) {
        skipped.add(route, &ErrorCode::INPUT_UNSUPPORTED);
        skipped.unsupported = Some((driver, input, transform));
        return false;
    }
    let principal = &call.scope.principal;
    let Some(access) = &route.access else {
        skipped.add(route, &ErrorCode::UNAUTHORISED);
        skipped.denied.get_or_insert(route);
        return false;
    };
    if !call.brought
        && let Err(lack) = route.contexts.get(principal)
    {
        skipped.add(route, &ErrorCode::UNAUTHORISED);
        skipped.lacking.get_or_insert_with(|| context_missing(lack));
        return false;
    }
    let has = |secret: &SecretGrant| {
        let store = call.secrets;
        store.is_some_and(|store| store.has(&secret.publisher, principal, &secret.slug))
    };
    if let Some(secret) = access.grant.needed_secrets().find(|one| !has(one)) {
        let error = || {
            CallError::no_credential(&secret.slug).of_attachment(route.declaration.is_attachment)
        };
        skipped.add(route, &ErrorCode::AUTH_REQUIRED);
        skipped.without_secret.get_or_insert_with(error);
        return false;
    }
    true
}

/// Whether a call may move from one driver to the next: if neither needs an approval, or if the
/// approval of the first covers the next.
fn falls(route: &DriverFacts, next: &DriverFacts, scope: &CallScope, tool: &str) -> bool {
    match (&route.question, &next.question) {
        (None, None) => true,
        // The first approval covers the next driver if both questions cover the same nested calls,
        // and show both drivers in full. An http driver can't take over, since the person saw only
        // the first driver's request. A caller's approval does not count, since it does not show
        // drivers' hosts and regions.
        (Some(asked), Some(also)) => {
            asks(route, scope, tool)
                && !next.features().shows_request
                && asked.chain == also.chain
                && [route, next].iter().all(|one| named(one).is_shown_whole())
        }
        (None, Some(_)) | (Some(_), None) => false,
    }
}

/// The driver of a route, in the form that an approval question shows.
pub(crate) fn named(route: &DriverFacts) -> NamedDriver {
    let driver = &route.declaration;
    let regions = match driver.region.as_slice() {
        [] => vec!["global".to_owned()],
        regions => regions.to_vec(),
    };
    NamedDriver {
        id: driver.id.to_string(),
        publisher: route.publisher.to_string(),
        bundle: route.bundle.to_string(),
        hosts: hosts(route),
        regions,
    }
}

/// The hosts that the driver declares, or only its granted hosts if a rule with `partial` withholds
/// some.
fn hosts(route: &DriverFacts) -> Vec<String> {
    if let Some(allowed) = route.allowed().filter(|allowed| allowed.partial.is_some()) {
        let given = allowed.grant.network().iter();
        let given: BTreeSet<String> = given.map(|one| one.host.to_string()).collect();
        return given.into_iter().collect();
    }
    let declared = route.declaration.egress.iter();
    declared.map(Capability::scope).collect()
}

fn unsupported((driver, input, transform): (&str, &str, Option<&str>)) -> CallError {
    let message = match transform {
        None => format!("the driver `{driver}` does not support the input `{input}`"),
        Some(transform) => format!(
            "the driver `{driver}` takes the input `{input}` through the transform `{}`, which this host lacks",
            shortened(transform.to_owned())
        ),
    };
    CallError::of(ErrorCode::INPUT_UNSUPPORTED, message).with_hint(format!("leave out `{input}`"))
}

/// Whether calling the tool by this route needs a separate approval.
pub(super) fn asks(route: &DriverFacts, scope: &CallScope, tool: &str) -> bool {
    let question = route.question.as_ref();
    // The approval of a calling tool may cover this tool, too.
    question.is_some_and(|question| question.each_time || !scope.chain.covers(tool))
}

/// The error of a call whose context the operator has not given. The caller may be an
/// agent, so only the command shows which lines to add.
pub(super) fn context_missing(lack: &ContextLack) -> CallError {
    let tool = &lack.tool;
    let message =
        format!("`{tool}` is blocked: it requires a context that the operator has not given");
    unauthorised(ErrorClass::CapabilityGap, message)
        .with_cause(json!({ "missing": ["context"] }))
        .with_hint(ErrorCode::UNAUTHORISED.ask_the_operator("give the context"))
}
