//! What a host carries calls out with.

use std::sync::Arc;

use crate::admission::Admission;
use crate::elicitation::CallForm;
use crate::named::NamedCalls;
use crate::pipeline::prepare::Preparer;
use crate::sandbox::run::Prepared;
use crate::sandbox::tools::CallTools;
use crate::sandbox::turns::Turns;
use crate::services::Services;
use crate::validation_pool::ValidationPool;

/// What a call is carried out with.
pub(crate) struct DispatchContext<'a> {
    pub(crate) host: Arc<dyn CallTools>,
    pub(crate) services: &'a Arc<Services>,
    pub(crate) admission: &'a Admission,
    pub(crate) validation: &'a ValidationPool,
    pub(crate) turns: &'a Turns,
    pub(crate) form: &'a CallForm<'a>,
    pub(crate) named: &'a NamedCalls,
    pub(crate) preparer: &'a Arc<Preparer>,
}

/// What carries out the call of a driver.
#[derive(Clone, Copy)]
pub(super) enum Executor<'a> {
    /// The driver's component, in a sandbox.
    Component(&'a Prepared),
    /// The host itself, which makes the request that the driver describes.
    Http,
    /// A person, who fills in a form.
    Form,
    /// The broker of programs, which runs the one that the operator's line names.
    Program,
}
