//! What is said of a private file that is not private.

use toolward_support::files::Problem;

/// What is wrong with a file's owner or mode. Reads on after its path.
pub(crate) fn describe(problem: &Problem) -> String {
    match problem {
        Problem::Owner { owner, user } => {
            format!("belongs to user {owner}, and this process is user {user}")
        }
        Problem::Mode { mode } => {
            format!("has mode {mode:04o}: others than its owner can read or change it")
        }
        other => other.to_string(),
    }
}
