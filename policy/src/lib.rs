//! What an operator grants: policy files, the decision, and the grant. Pure,
//! without I/O.

mod binding;
mod check;
mod confirmed;
mod context;
mod decide;
mod decision;
mod declared;
mod document;
mod effects;
mod error;
mod examine;
mod explain;
mod grant;
mod limits;
mod lines;
mod name;
mod narrowing;
mod overlap;
mod policy;
mod read;
mod routing;
mod rule;

pub use confirmed::Confirmed;
pub use context::{
    ContextLack, ContextRule, ContextSource, ContextText, ContextValue, ContextWhy, Contexts,
    GivenContext,
};
pub use decide::decide;
pub use decision::{
    Allowed, AskReason, Contract, Decision, Denial, Implementation, Missing, Request, Why,
};
pub use declared::DeclaredBy;
pub use document::{DocumentAccess, DocumentRule, FilePattern};
pub use effects::Effects;
pub use error::{CODES, Code, PolicyError};
pub use explain::{Explained, Explanation, Outcome, explain};
pub use grant::{
    BucketGrant, Grant, HostGrant, OnViolation, SecretBinding, SecretGrant, UserGrant,
    WorkspaceGrant,
};
pub use limits::{LimitSetting, LimitSettings};
pub use lines::suggest;
pub use name::{Publisher, ToolPattern};
pub use narrowing::Wider;
pub use policy::{Policy, PolicyBuilder, RuleId, RuleKind};
pub use routing::{
    DuplicateId, Machine, Reach, Rejected, Rejection, Route, ToolRoutes, UnusableDirectory, routes,
};
pub use rule::{
    ApprovalClass, Defaults, DenyRule, PLACEHOLDER_DIRECTORY, PLACEHOLDER_HOST,
    PLACEHOLDER_VARIABLE, Rule, Secret, SecretSource, Service, Share, Workspace,
};
