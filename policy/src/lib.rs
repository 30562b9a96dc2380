//! The policy of an operator: policy files, the decision, and the grant. This crate does no I/O.

mod approval;
mod check;
mod context;
mod decide;
mod decision;
mod denial;
mod document;
mod error;
mod evaluate;
mod exec;
mod explain;
mod fields;
mod grant;
mod host_terms;
mod implementation;
mod limits;
mod name;
mod narrowing;
mod partial;
mod policy;
mod read;
mod resolve;
mod resources;
mod routing;
mod rule;
mod secret_use;
mod suggest;
mod toml_text;

pub use approval::{ApprovalClass, ApprovalPolicy, PolicyReference};
pub use context::{
    ContextLack, ContextRule, ContextSource, ContextText, ContextValue, ContextWhy, Contexts,
    GivenContext, UnusedContext,
};
pub use decide::decide;
pub use decision::{Allowed, AskReason, Decision, DecisionContext, Effects, Hints};
pub use denial::{Denial, ExecLack, ExecWhy, MissingGrant, SecretMisfit, Why};
pub use document::{DocumentAccess, DocumentRule, FilePattern};
pub use error::{CODES, PolicyError};
pub use exec::{ExecDigest, ExecLimits, ExecRule, Interpreter, WorkspaceAccess};
pub use explain::{Explained, ExplainedOutcome, ExplainedProgram, Explanation, explain};
pub use grant::{
    BucketGrant, Grant, HostGrant, OnViolation, SecretBinding, SecretGrant, SecretPosition,
    WorkspaceGrant,
};
pub use host_terms::HostTerms;
pub use implementation::{Contract, DeclaredBy, Implementation, Machine, UnusableDirectory};
pub use limits::{
    CallLimits, Limit, LimitName, LimitSetting, LimitSettings, Limits, fuel_for, own,
};
pub use name::{Publisher, RuleId, RuleKind, ToolPattern};
pub use narrowing::Wider;
pub use partial::{Partial, Withheld};
pub use policy::{Policy, PolicyParts, PolicyTables};
pub use read::{OTHER_TABLES, table_key};
pub use resolve::ResolveTable;
pub use resources::{Secret, SecretSource, ServiceRule, Share, Workspace};
pub use routing::{DuplicateId, Reach, Rejected, Rejection, Route, ToolRoutes, routes};
pub use rule::{Confirmed, Defaults, DenyRule, Rule, RuleAction, RuleFallback};
pub use suggest::{Choices, ChosenLines, OpenChoice, SecretChoice, suggest};
pub use toml_text::{PLACEHOLDER_DIRECTORY, PLACEHOLDER_HOST, PLACEHOLDER_VARIABLE};
