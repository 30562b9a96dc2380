//! `publisher`: keys, signatures, registries, and the documents that a publisher signs besides bundles: its keys, what it
//! revokes, the index of a channel.

mod documents;
mod keys;
mod registry;
mod signing;

use std::path::PathBuf;

use clap::Subcommand;

use crate::environment::Environment;
use crate::failure::Result;
use crate::output::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make and look at signing keys
    #[command(subcommand)]
    Keys(keys::Command),
    /// Add signatures to a packed bundle or to a document
    Sign(signing::Sign),
    /// Push a signed bundle or document to a registry
    Push(registry::Push),
    /// Pull a bundle from a registry, and verify it, without installing it
    Pull(registry::Pull),
    /// Make a publisher's first document: its name, its keys, and how many must sign
    New(documents::New),
    /// Make the next document: keys added, dropped or revoked
    ///
    /// The thresholds of both documents sign it.
    Next(documents::Next),
    /// Make a list of revoked bundles and keys
    Revoke(documents::Revoke),
    /// Make the index of a channel: which release of each bundle is current
    Channel(documents::Index),
    /// Show what is in a document, and who claims to have signed it
    Show {
        /// The document
        file: PathBuf,
    },
}

impl Command {
    pub(crate) fn run(&self, environment: &Environment, output: &mut Output) -> Result {
        match self {
            Self::Keys(command) => command.run(output),
            Self::Sign(sign) => sign.run(output),
            Self::Push(push) => push.run(environment, output),
            Self::Pull(pull) => pull.run(environment, output),
            Self::New(new) => new.run(environment, output),
            Self::Next(next) => next.run(environment, output),
            Self::Revoke(revoke) => revoke.run(environment, output),
            Self::Channel(index) => index.run(environment, output),
            Self::Show { file } => signing::show(file, output),
        }
    }
}
