//! Problems with the names of tools.

use toolward_support::report::codes;

codes! {
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
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum NameProblem: Error {
        /// Other tools have the name and all its longer forms: the tool `second` is left out. Names that differ only
        /// in case count as equal, since a reader can't tell them apart. Tools are `id@version by publisher`.
        Taken { name: String, first: String, second: String } = "mcp-name-taken" Warning,
            "every name that a tool could have over MCP is taken, and it is left out",
            ("{second} is not served: it would be shown as `{name}`, which is {first}")
            => "remove one of the two bundles, or ask a publisher for another `metadata.mcp.name`";
        Outside { name: String, tool: String, shown: String } = "mcp-name-outside" Warning,
            "the name that a tool asks for over MCP is outside its publisher's prefixes, and it is shown by its id",
            ("{tool} asks to be shown as `{name}`, which is not its publisher's to choose: it is `{shown}`")
            => "to allow it, add the name to `names` of a `[[grant]]` for the tool";
    }
}
