//! A grant prepared for use. The preparation is the same for all calls of one route, and is not
//! repeated for each call.

use std::sync::Arc;

use serde_json::json;
use toolward_egress::{Egress, Rules};
use toolward_policy::Grant;
use toolward_sandbox::files;

use crate::api::result::{ErrorClass, ErrorCode, Result, unauthorised};
use crate::services::Services;

/// The prepared grant of one route.
pub(crate) struct Access {
    pub(crate) grant: Grant,
    /// The directories of the grant's workspaces, `None` without workspaces; or the error if a
    /// directory can't be opened.
    pub(crate) files: Result<Option<Arc<files::Plan>>>,
    /// The error if the driver's executor can't use the grant.
    pub(crate) executor: Result<()>,
    /// Outgoing HTTP, `None` if no host is granted; or the error if this host has no network.
    pub(crate) egress: Result<Option<Egress>>,
}

impl Access {
    /// Prepares a grant for a driver of this publisher.
    pub(crate) fn new(
        grant: &Grant,
        driver_publisher: &str,
        services: &Services,
        executor: Result<()>,
    ) -> Self {
        Self {
            files: plan(grant, services),
            executor,
            egress: egress(grant, driver_publisher, services),
            grant: grant.clone(),
        }
    }
}

/// The directories of a grant. If one can't be opened, the tool's calls end with an error that
/// advises the operator to repair it.
fn plan(grant: &Grant, services: &Services) -> Result<Option<Arc<files::Plan>>> {
    if grant.workspaces().is_empty() {
        return Ok(None);
    }
    let plan = files::Plan::new(grant.workspaces(), &services.workspaces).map_err(|error| {
        unauthorised(ErrorClass::SetupRequired, error.to_string())
            .with_cause(json!({ "rule": error.code() }))
            .with_hint(ErrorCode::UNAUTHORISED.ask_the_operator("repair the directory"))
    })?;
    Ok(Some(Arc::new(plan)))
}

fn egress(grant: &Grant, driver_publisher: &str, services: &Services) -> Result<Option<Egress>> {
    if grant.network().is_empty() {
        return Ok(None);
    }
    let Some(transport) = &services.transport else {
        return Err(unauthorised(
            ErrorClass::SetupRequired,
            "the network is granted, and this host is built without it",
        )
        .with_cause(json!({ "rule": "network-missing" }))
        .with_hint("use a host that is built with the feature `http`"));
    };
    let secrets = grant.secrets().iter().filter_map(|secret| {
        let binding = secret.binding.as_deref()?;
        Some((secret.slug.clone(), binding.clone()))
    });
    match Rules::new(grant.network().to_vec(), secrets) {
        Ok(rules) => Ok(Some(transport.egress(driver_publisher, Arc::new(rules)))),
        Err(error) => {
            // Unreachable: the policy is checked when it is read.
            tracing::error!(%error, "a grant can't be turned into rules; nothing is reached");
            Ok(None)
        }
    }
}
