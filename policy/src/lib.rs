//! What an operator grants: policy files, the decision, and the grant. Pure,
//! without I/O.

mod action;
mod approval_class;
mod approval_policy;
mod binding;
mod check;
mod context;
mod decide;
mod decision;
mod declared;
mod denial;
mod document;
mod document_access;
mod effects;
mod error;
mod evaluate;
mod exec;
mod explain;
mod file_name;
mod grant;
mod hints;
mod implementation;
mod limits;
mod machine;
mod name;
mod narrowing;
mod operator_claims;
mod overlap;
mod partial;
mod placeholder;
mod policy;
mod read;
mod resolve;
mod routing;
mod rule;
mod rule_action;
mod rule_id;
mod secret_misfit;
mod secret_use;
mod suggest;
mod toml_text;

pub use approval_class::ApprovalClass;
pub use approval_policy::{ApprovalPolicy, PolicyReference};
pub use context::{
    ContextLack, ContextRule, ContextSource, ContextText, ContextValue, ContextWhy, Contexts,
    GivenContext, UnusedContext,
};
pub use decide::decide;
pub use decision::{Allowed, AskReason, Decision, DecisionContext};
pub use declared::DeclaredBy;
pub use denial::{Denial, Missing, Why};
pub use document::{DocumentRule, FilePattern};
pub use document_access::DocumentAccess;
pub use effects::Effects;
pub use error::{CODES, PolicyError};
pub use exec::{ExecDigest, ExecLack, ExecLimits, ExecRule, ExecWhy, Interpreter, WorkspaceAccess};
pub use explain::{Explained, ExplainedProgram, Explanation, Outcome, explain};
pub use grant::{
    BucketGrant, Grant, HostGrant, OnViolation, SecretBinding, SecretGrant, SecretPosition,
    UserGrant, WorkspaceGrant,
};
pub use hints::Hints;
pub use implementation::{Contract, Implementation};
pub use limits::{Limit, LimitName, LimitSetting, LimitSettings, Limits, fuel_for, own};
pub use machine::{Machine, UnusableDirectory};
pub use name::{Publisher, ToolPattern};
pub use narrowing::Wider;
pub use operator_claims::Confirmed;
pub use partial::{GivenPart, Partial, Withheld};
pub use placeholder::{PLACEHOLDER_DIRECTORY, PLACEHOLDER_HOST, PLACEHOLDER_VARIABLE};
pub use policy::Policy;
pub use policy::builder::PolicyBuilder;
pub use resolve::Resolve;
pub use routing::{DuplicateId, Reach, Rejected, Rejection, Route, ToolRoutes, routes};
pub use rule::{Defaults, DenyRule, Rule, Secret, SecretSource, Service, Share, Workspace};
pub use rule_action::RuleAction;
pub use rule_id::{RuleId, RuleKind};
pub use secret_misfit::SecretMisfit;
pub use suggest::{Choices, ChosenLines, OpenChoice, SecretChoice, suggest, suggest_with};
