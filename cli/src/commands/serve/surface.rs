//! What MCP clients see of bundles, kept up to date.

use std::sync::Arc;

use toolward_bundle::content::Content;
use toolward_host::{Broker, Host, SharedState};
use toolward_mcp::{Service, Surface};
use toolward_operator::config::Granted;
use toolward_operator::host_setup::opens_buckets;
use toolward_operator::reload::Target;
use toolward_operator::{Operator, Report};
use toolward_policy::Policy;

use super::Access;
use crate::failure::{self, Failure};

/// Makes what clients see of bundles.
#[derive(Clone)]
pub(super) struct Surfaces {
    pub(super) operator: Arc<Operator>,
    pub(super) access: Arc<Access>,
    pub(super) broker: Broker,
    pub(super) shared_state: SharedState,
    /// With more tools than this, they are found rather than listed.
    pub(super) defer_above: usize,
}

impl Surfaces {
    /// Makes it of these bundles. `buckets` says whether there are any to open, if that
    /// is known.
    pub(super) fn make(
        &self,
        contents: &[Content],
        granted: &Granted,
        buckets: Option<bool>,
    ) -> Result<Surface, Failure> {
        let buckets = buckets.unwrap_or_else(|| opens_buckets(contents, &granted.policy));
        let held = contents.to_vec();
        let builder = self.operator.host_builder(held, granted, buckets)?;
        // The handshake needs no engine.
        let builder = self
            .access
            .protect(builder)
            .shared_state(&self.shared_state);
        let host = self.operator.build(builder.defer_engine(), &self.broker)?;
        let surface = Surface::new(host, contents, &granted.policy, self.defer_above);
        surface.map_err(failure::surface)
    }
}

/// A service whose surface follows changes.
pub(super) struct Served {
    pub(super) surfaces: Surfaces,
    pub(super) service: Service,
    /// Whether buckets were opened: what a confined process does not keep can't be
    /// opened later.
    pub(super) buckets: bool,
}

impl Target for Served {
    type Made = Surface;

    fn make(&self, contents: &[Content], granted: &Arc<Granted>) -> Result<Surface, Failure> {
        self.surfaces.make(contents, granted, Some(self.buckets))
    }

    fn empty(&self) -> Result<Surface, Failure> {
        nothing(Host::builder().defer_engine().build()?)
    }

    fn bare(&self) -> Result<Surface, Failure> {
        nothing(self.service.surface().host().clone())
    }

    fn host(&self, made: &Surface) -> Host {
        made.host().clone()
    }

    fn tool_count(&self, made: &Surface) -> usize {
        made.tool_count()
    }

    fn replace(&self, made: Surface) {
        self.service.replace(made);
    }

    fn served(&self, report: &dyn Report) {
        warn_of_names(&self.service.surface(), report);
    }
}

/// A surface without anything.
fn nothing(host: Host) -> Result<Surface, Failure> {
    Surface::new(host, &[], &Policy::empty(), usize::MAX).map_err(failure::surface)
}

/// Says which tools are not shown by the names that they would have.
pub(super) fn warn_of_names(surface: &Surface, report: &dyn Report) {
    for problem in surface.name_problems() {
        let (code, hint) = (problem.code(), problem.hint());
        report.warning(&format!("{problem} ({code}); {hint}"));
    }
}
