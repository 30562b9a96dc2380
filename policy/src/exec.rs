//! `[[exec]]`: the programs that an operator lets run outside the sandbox, each for one tool. Without a
//! line that says exactly what the tool's document says, the tool is blocked.

mod fit;
mod lack;
pub(crate) mod rule;

pub use lack::{ExecLack, ExecWhy};
pub use rule::{ExecDigest, ExecLimits, ExecRule, Interpreter, WorkspaceAccess};

pub(crate) use fit::find;
