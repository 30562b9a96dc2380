//! The release of a bundle to install: which is the newest, and whether it is current.

mod current;
mod newest;

use toolward_registry::Source;

use crate::error::Error;
use crate::network::recorded;

pub use current::{Current, channel, fetch_index};
pub use newest::{find, repository};

/// Where a bundle comes from.
#[derive(Debug, Clone)]
pub struct Place {
    /// What is fetched.
    pub source: Source,
    /// What is recorded for updates.
    pub recorded: String,
}

impl Place {
    /// Reads a source as a person gives it.
    ///
    /// # Errors
    ///
    /// Where it is not a path, an `https` address or `oci://…`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let source = Source::parse(text)?;
        let recorded = recorded(&source, text)?;
        Ok(Self { source, recorded })
    }
}
