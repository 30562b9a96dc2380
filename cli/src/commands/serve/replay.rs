//! Serving from a cassette instead of drivers.

use std::path::PathBuf;

use clap::Args;
use toolward_host::{HostBuilder, Tape};
use toolward_ledger::checkpoint::Verifier;
use toolward_operator::Operator;
use toolward_operator::replay::{CassetteFile, CassetteSource, ServedCallers};

use crate::commands::ledger::verify::vkey;
use crate::failure::Result;

#[derive(Debug, Args)]
pub(crate) struct ReplayFlags {
    /// Answer calls from this cassette (`ledger export --cassette`)
    ///
    /// No driver runs, and a call that is not in it fails.
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,

    /// Answer a call whose input is not in the cassette with the next one of the tool
    ///
    /// The answer states what differs.
    #[arg(long, hide_short_help = true, requires = "replay")]
    loose: bool,

    /// Whose ledger the cassette is from: a verifier key, as `ledger info` shows it
    ///
    /// [default: this installation's]
    #[arg(long, hide_short_help = true, value_parser = boxed, value_name = "VKEY", requires = "replay")]
    cassette_key: Option<Box<Verifier>>,

    /// Take any cassette, without knowing who recorded it
    #[arg(long, hide_short_help = true, requires = "replay", conflicts_with_all = ["cassette_key", "http"])]
    unverified: bool,
}

fn boxed(text: &str) -> Result<Box<Verifier>, String> {
    vkey(text).map(Box::new)
}

/// What answers calls instead of drivers.
#[derive(Clone)]
pub(super) struct Replaying {
    tape: Tape,
    path: PathBuf,
}

impl ReplayFlags {
    pub(super) fn open(self, operator: &Operator, over_http: bool) -> Result<Option<Replaying>> {
        let Some(path) = self.replay else {
            return Ok(None);
        };
        let cassette = CassetteFile {
            path: path.clone(),
            from: match (self.cassette_key, self.unverified) {
                (Some(key), _) => CassetteSource::Key(key),
                (None, true) => CassetteSource::Unverified,
                (None, false) => CassetteSource::Own,
            },
            loose: self.loose,
        };
        let callers = match over_http {
            true => ServedCallers::Named,
            false => ServedCallers::Local,
        };
        let environment = &operator.environment;
        let settings = operator.setup.ledger(&operator.source.trust, environment)?;
        let tape = cassette.tape(callers, &settings, environment)?;
        Ok(Some(Replaying { tape, path }))
    }
}

impl Replaying {
    /// How many calls it can answer.
    pub(super) fn left(&self) -> usize {
        self.tape.left()
    }

    /// A host that answers from it, and keeps guests out of its file.
    pub(super) fn given(this: Option<&Self>, builder: HostBuilder) -> HostBuilder {
        match this {
            Some(this) => builder
                .replaying(&this.tape)
                .protect("a cassette", &this.path),
            None => builder,
        }
    }
}
