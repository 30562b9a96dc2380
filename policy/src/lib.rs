//! What an operator grants: policy files, the decision, and the grant. Pure,
//! without I/O.

mod grant;

pub use grant::{
    BucketGrant, Grant, HostGrant, OnViolation, SecretBinding, SecretGrant, UserGrant,
    WorkspaceGrant,
};
