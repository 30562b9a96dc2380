//! Cassettes for a server: read, checked against the ledger that they come from, and each call given to its principal.

use std::collections::HashMap;
use std::path::PathBuf;

use toolward_host::{LOCAL, Tape};
use toolward_ledger::Reader;
use toolward_ledger::cassette::{Cassette, CassetteCall, MAX_CASSETTE_BYTES};
use toolward_ledger::checkpoint::Verifier;
use toolward_ledger::record::Person;

use crate::environment::Environment;
use crate::error::{Code, Error, Kind, Result};
use crate::file;
use crate::ledger::LedgerSettings;

/// A cassette to answer calls from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CassetteFile {
    /// The file.
    pub path: PathBuf,
    /// The ledger that must have signed it.
    pub from: CassetteSource,
    /// Whether a call with another input is answered, too.
    pub loose: bool,
}

/// The ledger that a cassette must come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CassetteSource {
    /// This installation's ledger.
    Own,
    /// The ledger of this key.
    Key(Box<Verifier>),
    /// Any ledger. Only for a single user who knows its origin.
    Unverified,
}

/// The callers of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServedCallers {
    /// The user who started it.
    Local,
    /// Principals by name: each is answered from the calls that this installation's ledger recorded for the principal.
    Named,
}

impl CassetteFile {
    /// Reads it.
    ///
    /// Over HTTP a principal is answered from the recorded calls of this principal alone; the names are only in the
    /// ledger. The local user is answered from a cassette of any one principal.
    ///
    /// # Errors
    /// The errors of [`CassetteError`](toolward_ledger::cassette::CassetteError); `cassette-unnamed` if it has no call of
    /// the callers; `ledger-…` if this installation's key or names are needed and missing.
    pub fn tape(
        &self,
        callers: ServedCallers,
        settings: &LedgerSettings,
        environment: &Environment,
    ) -> Result<Tape> {
        let bytes = file::read(&self.path, MAX_CASSETTE_BYTES)?;
        let own = || Ok::<_, Error>(Reader::open(&settings.directory(environment)?, None)?);
        let key = match &self.from {
            CassetteSource::Own => Some(own()?.verifier().clone()),
            CassetteSource::Key(key) => Some((**key).clone()),
            CassetteSource::Unverified => None,
        };
        let cassette = Cassette::read(&bytes, key.as_ref())
            .map_err(|error| Error::of(Kind::Refused, error).in_file(&self.path))?;
        let persons: Vec<Option<Person>> = persons(&cassette.calls);
        let tape = match (callers, persons.as_slice()) {
            (ServedCallers::Local, [] | [_]) => Tape::new(cassette, |_| Some(LOCAL.to_owned())),
            _ => {
                let names = names(&own()?, &persons)?;
                Tape::new(cassette, |person| names.get(person?).cloned())
            }
        };
        let has_own = match callers {
            ServedCallers::Local => tape.answers(LOCAL),
            ServedCallers::Named => tape.left() > 0,
        };
        if !has_own && !persons.is_empty() {
            let path = self.path.display();
            let message = format!("{path}: no recorded call is of a principal who is served here");
            return Err(Error::usage(Code::CassettePrincipals, message)
                .hint("export one principal's calls: `toolward ledger export --cassette FILE --principal NAME`"));
        }
        Ok(if self.loose { tape.loose() } else { tape })
    }
}

/// The persons of the calls, each once.
fn persons(calls: &[CassetteCall]) -> Vec<Option<Person>> {
    let mut persons: Vec<_> = calls.iter().map(|call| call.person).collect();
    persons.sort_unstable();
    persons.dedup();
    persons
}

fn names(ledger: &Reader, persons: &[Option<Person>]) -> Result<HashMap<Person, String>> {
    let mut names = HashMap::new();
    for person in persons.iter().flatten() {
        if let Some(name) = ledger.name(person)? {
            names.insert(*person, name);
        }
    }
    Ok(names)
}
