//! Problems with the names of tools.

use toolward_support::report::codes;

/// Why a tool does not have its preferred name.
///
/// ```
/// use toolward_mcp::{NameProblem, ServerFeatures};
///
/// fn report(features: &ServerFeatures) {
///     for problem in features.name_problems() {
///         let what = match problem {
///             NameProblem::Taken { .. } => "left out",
///             _ => "renamed",
///         };
///         let hint = problem.hint().unwrap_or_default();
///         eprintln!("{what}: {problem} ({}): {hint}", problem.code());
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameProblem {
    /// Other tools have the name and all its longer forms: the tool is left out. Names that differ only
    /// in case count as equal, since a reader can't tell them apart.
    #[error("{second} is not served: it would be shown as `{name}`, which is {first}")]
    Taken {
        /// The name.
        name: String,
        /// Who has it, as `id@version by publisher`.
        first: String,
        /// The tool that is left out.
        second: String,
    },
    /// The name that its contract asks for lies outside the prefixes of its publisher: it is shown by its id.
    #[error(
        "{tool} asks to be shown as `{name}`, which is not its publisher's to choose: it is `{shown}`"
    )]
    Outside {
        /// The name.
        name: String,
        /// The tool, as `id@version by publisher`.
        tool: String,
        /// The name that it has.
        shown: String,
    },
}

codes! {
    for NameProblem {
        Self::Taken { .. } = "mcp-name-taken",
            "remove one of the two bundles, or ask a publisher for another `metadata.mcp.name`";
        Self::Outside { .. } = "mcp-name-outside",
            "to allow it, add the name to `names` of a `[[grant]]` for the tool";
    }
}
