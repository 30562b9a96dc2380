//! Finds the release of a bundle to install: the newest one, and whether it is current.

mod compile_ahead;
mod current;
mod install;
mod moving;
mod newest;

use toolward_registry::Source;

use crate::error::Error;
use crate::network::{check_there, recorded};

pub use current::{channel, fetch_index};
pub use install::Installer;
pub use moving::{ConfirmMove, SourceMove};

/// Where a bundle comes from.
#[derive(Debug, Clone)]
pub struct Place {
    /// The source to fetch from.
    pub source: Source,
    /// The source to record for updates.
    pub recorded: String,
}

impl Place {
    /// Parses a source from the command line.
    ///
    /// # Errors
    /// If it is not a path, an `https` address or `oci://…`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let source = Source::parse(text)?;
        let recorded = recorded(&source, text)?;
        Ok(Self { source, recorded })
    }

    /// Checks that the file or directory is there, if it is one.
    ///
    /// # Errors
    /// `file-unreadable`, which says how sources are written.
    pub fn check_there(&self) -> Result<(), Error> {
        match &self.source {
            Source::Path(path) => check_there(path),
            _ => Ok(()),
        }
    }
}
