//! Cassettes for a server: read, held against the ledger that they are to be from, and each call given to its principal.

use std::collections::HashMap;
use std::path::PathBuf;

use toolward_host::{LOCAL, Tape};
use toolward_ledger::Reader;
use toolward_ledger::cassette::{Cassette, CassetteCall, MAX_CASSETTE_BYTES};
use toolward_ledger::checkpoint::Verifier;
use toolward_ledger::record::Person;

use crate::environment::Environment;
use crate::error::{Code, Error, Kind};
use crate::file;
use crate::ledger::LedgerSettings;

/// A cassette to answer calls from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CassetteFile {
    /// The file.
    pub path: PathBuf,
    /// Whose checkpoint counts.
    pub from: CassetteSource,
    /// Whether a call with another input is answered, too.
    pub loose: bool,
}

/// Whose a cassette has to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CassetteSource {
    /// This installation's ledger.
    Own,
    /// The ledger of this key.
    Key(Box<Verifier>),
    /// Anybody's. Only for a single user who knows where it is from.
    Unverified,
}

/// Whom a server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Callers {
    /// The user who started it.
    Local,
    /// Principals by name: each gets what this installation's ledger says was recorded of that principal.
    Named,
}

impl CassetteFile {
    /// Reads it.
    ///
    /// Over HTTP a principal is answered from what was recorded of this principal alone, and the names are in the
    /// ledger only. The local user is answered from a cassette of one principal, whoever that was.
    ///
    /// # Errors
    /// Those of [`CassetteError`](toolward_ledger::cassette::CassetteError); `cassette-unnamed` if no call is one of the
    /// callers'; `ledger-…` if this installation's key or names are needed and not there.
    pub fn tape(
        &self,
        callers: Callers,
        settings: &LedgerSettings,
        environment: &Environment,
    ) -> Result<Tape, Error> {
        let bytes = file::read(&self.path, MAX_CASSETTE_BYTES)?;
        let own = || Ok::<_, Error>(Reader::open(&settings.directory(environment)?, None)?);
        let key = match &self.from {
            CassetteSource::Own => Some(own()?.verifier().clone()),
            CassetteSource::Key(key) => Some((**key).clone()),
            CassetteSource::Unverified => None,
        };
        let cassette = Cassette::read(&bytes, key.as_ref());
        let cassette =
            cassette.map_err(|error| Error::of(Kind::Refused, error).in_file(&self.path))?;
        let persons: Vec<Option<Person>> = persons(&cassette.calls);
        let tape = match (callers, persons.as_slice()) {
            (Callers::Local, [] | [_]) => Tape::new(cassette, |_| Some(LOCAL.to_owned())),
            _ => {
                let names = names(&own()?, &persons)?;
                Tape::new(cassette, |person| names.get(person?).cloned())
            }
        };
        let has_own = match callers {
            Callers::Local => tape.answers(LOCAL),
            Callers::Named => tape.left() > 0,
        };
        if !has_own && !persons.is_empty() {
            let message = format!(
                "{}: no recorded call is of a principal who is served here",
                self.path.display()
            );
            return Err(Error::usage(Code::CassettePrincipals, message)
                .hint("export one principal's calls: `toolward ledger export --cassette FILE --principal NAME`"));
        }
        Ok(match self.loose {
            true => tape.loose(),
            false => tape,
        })
    }
}

/// Whose the calls are, each once.
fn persons(calls: &[CassetteCall]) -> Vec<Option<Person>> {
    let mut persons: Vec<_> = calls.iter().map(|call| call.person).collect();
    persons.sort_unstable();
    persons.dedup();
    persons
}

fn names(ledger: &Reader, persons: &[Option<Person>]) -> Result<HashMap<Person, String>, Error> {
    let mut names = HashMap::new();
    for person in persons.iter().flatten() {
        if let Some(name) = ledger.name(person)? {
            names.insert(*person, name);
        }
    }
    Ok(names)
}
