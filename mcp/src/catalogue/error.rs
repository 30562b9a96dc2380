//! Why tools can't be shown together.

/// Why a host's tools can't be served as they are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogueError {
    /// Two tools would carry one name. Names that differ only in case count as
    /// one: a person who reads them can't tell them apart.
    #[error(
        "expected every tool to have a name of its own, found `{name}` for {first} and for {second}"
    )]
    NameTaken {
        /// The name.
        name: String,
        /// The first, as `id@version by publisher`.
        first: String,
        /// The second.
        second: String,
    },
    /// A tool would carry a name of the server's own.
    #[error("expected `{name}` to be the server's own name, found it for {tool}")]
    NameReserved {
        /// The name.
        name: String,
        /// The tool, as `id@version by publisher`.
        tool: String,
    },
}

impl CatalogueError {
    /// Stable kebab-case code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NameTaken { .. } => "mcp-name-taken",
            Self::NameReserved { .. } => "mcp-name-reserved",
        }
    }

    /// The next step.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NameTaken { .. } => {
                "serve one of the two bundles, by naming bundles on the command line, or ask a publisher for another `metadata.mcp.name`"
            }
            Self::NameReserved { .. } => {
                "leave the bundle out, or ask its publisher for another `metadata.mcp.name`"
            }
        }
    }
}
