//! Names that tools did not get.

/// Why a tool is not shown by the name that it would have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameProblem {
    /// Another tool has the name, and each longer one is another's, too: the tool is left out. Names that
    /// differ only in case count as one: a person who reads them can't tell them apart.
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

impl NameProblem {
    /// Stable kebab-case code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Taken { .. } => "mcp-name-taken",
            Self::Outside { .. } => "mcp-name-outside",
        }
    }

    /// The next step.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Taken { .. } => {
                "remove one of the two bundles, or ask a publisher for another `metadata.mcp.name`"
            }
            Self::Outside { .. } => {
                "to allow it, add the name to `names` of a `[[grant]]` for the tool"
            }
        }
    }
}
