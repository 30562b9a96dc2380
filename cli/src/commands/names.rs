//! `internal-names`: ids and names that a completion script asks for, one a line. It says nothing of
//! errors: a person who completes a word sees the names that could be read.

use clap::{Args, ValueEnum};
use toolward_operator::installed::StoreLocation;
use toolward_operator::names;
use toolward_operator::trust::Trust;

use crate::environment::Environment;
use crate::failure::Result;
use crate::flags::Flagged;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// What is completed
    #[arg(value_enum)]
    kind: Kind,

    #[command(flatten)]
    trust: Flagged<Trust>,

    #[command(flatten)]
    store: Flagged<StoreLocation>,
}

/// What a script completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Ids of installed tools.
    Tools,
    /// Ids of installed bundles.
    Bundles,
    /// Ids of installed bundles, and of their tools.
    Installed,
    /// Names of trusted publishers.
    Publishers,
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment) -> Result {
    let store = &arguments.store;
    let names = match arguments.kind {
        Kind::Tools => names::tools(store, environment),
        Kind::Bundles => names::bundles(store, environment),
        Kind::Installed => names::installed(store, environment),
        Kind::Publishers => names::publishers(&arguments.trust, environment),
    };
    let lines: String = names.iter().map(|name| format!("{name}\n")).collect();
    crate::output::raw(lines.as_bytes())
}
