//! `publisher`: the documents that a publisher signs besides bundles: its keys,
//! what it revokes, the index of a channel.

mod channel;
mod document;
mod revoke;
mod show;
mod signing;

use std::path::PathBuf;

use clap::Subcommand;

use crate::environment::Environment;
use crate::failure::Result;
use crate::output::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a publisher's first document: its name, its keys, and how many must
    /// sign
    New(document::New),
    /// Make the next document: keys added, dropped or revoked. The thresholds of
    /// both documents sign it
    Next(document::Next),
    /// Make a list of revoked bundles and keys
    Revoke(revoke::Revoke),
    /// Make the index of a channel: which release of each bundle is current
    Channel(channel::Index),
    /// Add signatures to a document, in place
    Sign(signing::Sign),
    /// Show what a document says, and who claims to have signed it
    Show {
        /// The document
        file: PathBuf,
    },
}

impl Command {
    pub(crate) fn run(&self, environment: &Environment, output: &mut Output) -> Result {
        match self {
            Self::New(new) => new.run(environment, output),
            Self::Next(next) => next.run(environment, output),
            Self::Revoke(revoke) => revoke.run(environment, output),
            Self::Channel(index) => index.run(environment, output),
            Self::Sign(sign) => sign.run(output),
            Self::Show { file } => show::run(file, output),
        }
    }
}
