//! Results of recorded calls: the parts that the ledger kept, checked, and why the rest is missing. Nothing is called.
//! Cassettes for a server: read, checked against the ledger that they come from, and each call given to its principal.

use std::collections::HashMap;
use std::path::PathBuf;

use serde_json::{Map, Value, json};
use toolward_host::{LOCAL, Tape};
use toolward_ledger::cassette::{Cassette, CassetteCall, MAX_CASSETTE_BYTES};
use toolward_ledger::checkpoint::Verifier;
use toolward_ledger::payload::PayloadKind;
use toolward_ledger::record::{Code as RecordCode, Outcome, Person};
use toolward_ledger::{EndRow, MissingPayload, Reader, RecordedCall};
use toolward_store::Store;

use crate::environment::Environment;
use crate::error::{Code, Error, Kind, Result};
use crate::file;
use crate::ledger::{LedgerSettings, keep_word};

/// Reads results of recorded calls.
#[derive(Debug)]
pub struct Replay<'r> {
    reader: &'r Reader,
    settings: &'r LedgerSettings,
    /// The digest and the version of the bundle that brings a tool now.
    tools: HashMap<String, (String, String)>,
    /// How many rows the newest checkpoint covers, after all of them were checked against it.
    signed: u64,
}

/// A recorded call and its result.
#[derive(Debug)]
pub struct ReplayedCall {
    /// The call.
    pub call: RecordedCall,
    /// The principal that it was made for; `None` if the name was erased.
    pub principal: Option<String>,
    /// The result.
    pub result: RecordedResult,
    /// Whether the tool is installed now.
    pub tool: ToolNow,
    /// Whether a checkpoint covers its rows, and holds.
    pub signed: bool,
}

/// A recorded result.
#[derive(Debug)]
pub enum RecordedResult {
    /// An output: `value`, and `content` if it had any.
    Output(Value),
    /// An error. Its message, cause and hint are `detail`.
    Error {
        /// How the call ended.
        outcome: Box<Outcome>,
        /// The code in the outcome.
        code: RecordCode,
        /// The details, or why they are missing.
        detail: Result<Value, MissingPayload>,
    },
    /// There was an output, and it is missing.
    Missing(MissingPayload),
    /// The call has no result: its process ended before it did.
    Abandoned,
    /// The call has no result yet, or its row is missing.
    Unfinished,
}

/// Whether a recorded tool is installed now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolNow {
    /// By the same bundle.
    Same,
    /// By another release of the bundle: this version of it.
    Other(String),
    /// No installed bundle has it.
    Missing,
    /// The record names no tool.
    Unnamed,
}

impl<'r> Replay<'r> {
    /// Replays from this ledger. `settings`: what is kept now; `store`: what is installed. Checks all rows against the
    /// newest checkpoint, if it exists.
    ///
    /// # Errors
    /// The errors of ledger and store; `ledger-differs` if the rows are not the signed rows.
    pub fn new(
        reader: &'r Reader,
        settings: &'r LedgerSettings,
        store: Option<&Store>,
    ) -> Result<Self> {
        let mut tools = HashMap::new();
        if let Some(store) = store {
            let installed = store.list()?;
            for tool in store.tools()? {
                let bundle = installed.iter().find(|one| one.id == tool.bundle);
                let digest = bundle.map(|one| one.digest.to_string());
                let now = (digest.unwrap_or_default(), tool.version.to_string());
                tools.insert(tool.major_id, now);
            }
        }
        let signed = match reader.proofs([]) {
            Ok(proofs) => proofs.checkpoint.size,
            Err(toolward_ledger::Error::NoCheckpoint) => 0,
            Err(error) => return Err(error.into()),
        };
        Ok(Self {
            reader,
            settings,
            tools,
            signed,
        })
    }

    /// The result of a call.
    ///
    /// # Errors
    /// The errors of the ledger.
    pub fn of(&self, call: RecordedCall) -> Result<ReplayedCall> {
        let person = call.call.as_ref().and_then(|call| call.person);
        let principal = person.map(|person| self.reader.name(&person)).transpose()?;
        let result = match &call.end {
            EndRow::Abandoned(_) => RecordedResult::Abandoned,
            EndRow::Unknown => RecordedResult::Unfinished,
            EndRow::Ended(_, outcome)
            | EndRow::Refused(_, outcome)
            | EndRow::Replayed(_, outcome) => match &outcome.code {
                Some(code) => RecordedResult::Error {
                    outcome: Box::new(outcome.clone()),
                    code: code.clone(),
                    detail: self.payload(&call, PayloadKind::Detail)?,
                },
                None => match self.payload(&call, PayloadKind::Output)? {
                    Ok(output) => RecordedResult::Output(output),
                    Err(missing) => RecordedResult::Missing(missing),
                },
            },
        };
        Ok(ReplayedCall {
            tool: self.tool(&call),
            signed: call.rows().all(|row| row < self.signed),
            principal: principal.flatten(),
            result,
            call,
        })
    }

    /// A payload of a call, or why it is missing.
    ///
    /// # Errors
    /// The errors of the ledger.
    pub fn payload(
        &self,
        call: &RecordedCall,
        kind: PayloadKind,
    ) -> Result<Result<Value, MissingPayload>> {
        payload(self.reader, call, kind, self.settings)
    }

    fn tool(&self, call: &RecordedCall) -> ToolNow {
        let recorded = call.call.as_ref().and_then(|call| call.tool.as_ref());
        let Some(recorded) = recorded else {
            return ToolNow::Unnamed;
        };
        match self.tools.get(&major_id(recorded.id.as_str())) {
            None => ToolNow::Missing,
            Some((digest, _)) if *digest == recorded.bundle.to_string() => ToolNow::Same,
            Some((_, version)) => ToolNow::Other(version.clone()),
        }
    }

    /// Why a payload is missing, and how to keep later ones.
    pub fn explain(&self, missing: MissingPayload) -> String {
        explain(missing, self.settings)
    }
}

/// A payload of a call, or why it is missing.
pub fn payload(
    reader: &Reader,
    call: &RecordedCall,
    kind: PayloadKind,
    settings: &LedgerSettings,
) -> Result<Result<Value, MissingPayload>> {
    let kept = reader.payload_of(call, kind, &settings.payloads)?;
    // A host writes JSON; other bytes were changed.
    Ok(kept.and_then(|bytes| serde_json::from_slice(&bytes).map_err(|_| MissingPayload::Changed)))
}

fn explain(missing: MissingPayload, settings: &LedgerSettings) -> String {
    let payloads = &settings.payloads;
    match missing {
        MissingPayload::NotKept(keep) => format!(
            "not kept: `keep = \"{}\"` in `[ledger]` keeps those of later calls",
            keep_word(keep)
        ),
        MissingPayload::TooLarge(size) => format!(
            "not kept: {size} bytes, and `payload_max` in `[ledger]` is {}",
            payloads.each
        ),
        MissingPayload::Erased(row) => format!("erased: row {row}"),
        MissingPayload::Expired => format!(
            "expired: `days` in `[ledger]` is {}",
            payloads.age.as_secs() / (24 * 60 * 60)
        ),
        MissingPayload::Displaced => format!(
            "deleted for newer ones (`payloads_max` in `[ledger]` is {} bytes), or the file of payloads was lost",
            payloads.total
        ),
        MissingPayload::Changed => "CHANGED: what is there is not what was recorded".to_owned(),
        _ => "not recorded".to_owned(),
    }
}

/// Why a payload is missing, for programs.
pub fn missing_json(missing: MissingPayload, settings: &LedgerSettings) -> Value {
    json!({ "why": missing.as_str(), "message": explain(missing, settings) })
}

impl Replay<'_> {
    /// The JSON form.
    pub fn to_json(&self, replayed: &ReplayedCall) -> Value {
        let call = &replayed.call;
        let tool = call.call.as_ref().and_then(|call| call.tool.as_ref());
        let mut fields = json!({
            "invocation": call.invocation,
            "rows": call.rows().collect::<Vec<_>>(),
            "at": call.at,
            "tool": tool.map(|tool| &tool.id),
            "principal": replayed.principal,
            "signed": replayed.signed,
            "installed": replayed.tool.as_str(),
        });
        let missing = |missing: &MissingPayload| missing_json(*missing, self.settings);
        let result = match &replayed.result {
            RecordedResult::Output(output) => json!({ "ok": true, "output": output }),
            RecordedResult::Error {
                outcome,
                code,
                detail,
            } => {
                let mut error = match detail {
                    Ok(Value::Object(detail)) => detail.clone(),
                    _ => Map::new(),
                };
                error.insert("code".to_owned(), json!(code));
                error.insert("class".to_owned(), json!(outcome.class));
                error.insert("origin".to_owned(), json!(outcome.origin));
                match detail {
                    Ok(_) => json!({ "ok": false, "error": error }),
                    Err(why) => {
                        let missing = json!({ "detail": missing(why) });
                        json!({ "ok": false, "error": error, "missing": missing })
                    }
                }
            }
            RecordedResult::Missing(why) => {
                json!({ "ok": true, "missing": { "output": missing(why) } })
            }
            RecordedResult::Abandoned => json!({ "ok": null, "end": "abandoned" }),
            RecordedResult::Unfinished => json!({ "ok": null, "end": "unfinished" }),
        };
        if let (Value::Object(fields), Value::Object(result)) = (&mut fields, result) {
            fields.extend(result);
        }
        fields
    }
}

/// `id@major` of a tool's `id@version`.
fn major_id(tool: &str) -> String {
    match tool.split_once('@') {
        Some((id, version)) => {
            let major = version.split('.').next().unwrap_or_default();
            format!("{id}@{major}")
        }
        None => tool.to_owned(),
    }
}

impl ReplayedCall {
    /// Whether there is a result, and all of it.
    pub fn is_whole(&self) -> bool {
        matches!(
            &self.result,
            RecordedResult::Output(_) | RecordedResult::Error { detail: Ok(_), .. }
        )
    }
}

impl ToolNow {
    /// In one word, for programs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Other(_) => "other-release",
            Self::Missing => "missing",
            Self::Unnamed => "unnamed",
        }
    }
}

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
