//! Results of recorded calls: the stored parts, checked, and the reasons why other parts are
//! missing. No tool is called. Also reads cassettes (files of recorded calls) for a server, checks
//! them against their ledger, and gives each recorded call to its principal.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use serde_json::{Map, Value, json};
use toolward_host::{LOCAL, Tape};
use toolward_ledger::cassette::{Cassette, MAX_CASSETTE_BYTES};
use toolward_ledger::checkpoint::Verifier;
use toolward_ledger::payload::PayloadKind;
use toolward_ledger::{EndRow, MissingPayload, Reader, RecordedCall};
use toolward_store::Store;

use crate::file;
use crate::ledger::{LedgerSettings, keep_word};
use crate::{Code, Environment, Error, Kind, Result};

/// Reads results of recorded calls.
#[derive(Debug)]
pub struct Replay<'r> {
    reader: &'r Reader,
    settings: &'r LedgerSettings,
    /// By a tool's `id@major`: the digest and the version of the installed bundle that contains the
    /// tool.
    tools: HashMap<String, (String, String)>,
    /// How many rows the newest checkpoint covers. All of them were checked against it.
    signed: u64,
}

/// A recorded call and its result.
#[derive(Debug)]
pub struct ReplayedCall {
    /// The call.
    pub call: RecordedCall,
    /// The principal that made the call; `None` if the name was erased.
    pub principal: Option<String>,
    /// Whether a valid checkpoint covers its rows.
    pub signed: bool,
    /// Whether the whole result is stored.
    pub is_whole: bool,
    /// The JSON form.
    pub value: Value,
    /// Lines for people: the result, and whether the tool is installed now. May contain untrusted
    /// text.
    pub lines: Vec<String>,
}

impl<'r> Replay<'r> {
    /// Replays from this ledger. `settings` are the current settings of the ledger, and `store` has
    /// the installed bundles. Checks all rows against the newest checkpoint, if one exists.
    ///
    /// # Errors
    /// The errors of the ledger and the store; `ledger-differs` if the rows differ from the signed
    /// rows.
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

    /// Returns the result of a call.
    ///
    /// # Errors
    /// The errors of the ledger.
    pub fn of(&self, call: RecordedCall) -> Result<ReplayedCall> {
        let person = call.call.as_ref().and_then(|call| call.person);
        let principal = person.map(|person| self.reader.name(&person)).transpose()?;
        let principal = principal.flatten();
        let (result, mut lines, is_whole) = self.result(&call)?;
        let (installed, remark) = self.installed(&call);
        lines.extend(remark);
        let signed = call.rows().all(|row| row < self.signed);
        let tool = call.call.as_ref().and_then(|call| call.tool.as_ref());
        let mut value = json!({
            "invocation": call.invocation,
            "rows": call.rows().collect::<Vec<_>>(),
            "at": call.at,
            "tool": tool.map(|tool| &tool.id),
            "principal": principal,
            "signed": signed,
            "installed": installed,
        });
        if let (Value::Object(fields), Value::Object(result)) = (&mut value, result) {
            fields.extend(result);
        }
        Ok(ReplayedCall {
            call,
            principal,
            signed,
            is_whole,
            value,
            lines,
        })
    }

    /// Returns the result for programs, the lines for people, and whether the result is whole.
    fn result(&self, call: &RecordedCall) -> Result<(Value, Vec<String>, bool)> {
        let payload = |kind| payload(self.reader, call, kind, self.settings);
        let missing = |why| missing_json(why, self.settings);
        let explain = |why| explain(why, self.settings);
        let outcome = match &call.end {
            EndRow::Abandoned(_) => {
                let line = "no result: its process ended before it did".to_owned();
                let value = json!({ "ok": null, "end": "abandoned" });
                return Ok((value, vec![line], false));
            }
            EndRow::Unknown => {
                let value = json!({ "ok": null, "end": "unfinished" });
                return Ok((value, vec!["no result yet".to_owned()], false));
            }
            EndRow::Ended(_, outcome)
            | EndRow::Refused(_, outcome)
            | EndRow::Replayed(_, outcome) => outcome,
        };
        let Some(code) = &outcome.code else {
            return Ok(match payload(PayloadKind::Output)? {
                Ok(output) => {
                    let line = output.to_string();
                    (json!({ "ok": true, "output": output }), vec![line], true)
                }
                Err(why) => {
                    let value = json!({ "ok": true, "missing": { "output": missing(why) } });
                    let line = format!("output missing: {}", explain(why));
                    (value, vec![line], false)
                }
            });
        };
        let detail = payload(PayloadKind::Detail)?;
        let mut error = match &detail {
            Ok(Value::Object(detail)) => detail.clone(),
            _ => Map::new(),
        };
        error.insert("code".to_owned(), json!(code));
        error.insert("class".to_owned(), json!(outcome.class));
        error.insert("origin".to_owned(), json!(outcome.origin));
        Ok(match detail {
            Ok(detail) => {
                let line = format!("error {code}: {detail}");
                (json!({ "ok": false, "error": error }), vec![line], true)
            }
            Err(why) => {
                let missing = json!({ "detail": missing(why) });
                let value = json!({ "ok": false, "error": error, "missing": missing });
                let line = format!("message missing: {}", explain(why));
                (value, vec![format!("error {code}"), line], false)
            }
        })
    }

    /// Returns whether the recorded tool is installed now, and a remark for people.
    fn installed(&self, call: &RecordedCall) -> (&'static str, Option<String>) {
        let recorded = call.call.as_ref().and_then(|call| call.tool.as_ref());
        let Some(recorded) = recorded else {
            return ("unnamed", None);
        };
        match self.tools.get(&major_id(recorded.id.as_str())) {
            None => ("missing", Some("the tool is not installed".to_owned())),
            Some((digest, _)) if *digest == recorded.bundle.to_string() => ("same", None),
            Some((_, version)) => {
                let remark = format!("the tool is installed in another release: {version}");
                ("other-release", Some(remark))
            }
        }
    }
}

/// Returns a payload of a call, or why it is missing.
pub fn payload(
    reader: &Reader,
    call: &RecordedCall,
    kind: PayloadKind,
    settings: &LedgerSettings,
) -> Result<Result<Value, MissingPayload>> {
    let kept = reader.payload_of(call, kind, &settings.payloads)?;
    // A host writes JSON, so bytes that are not JSON have been changed.
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

/// Returns why a payload is missing, for programs.
pub fn missing_json(missing: MissingPayload, settings: &LedgerSettings) -> Value {
    json!({ "why": missing.as_str(), "message": explain(missing, settings) })
}

/// Returns `id@major` for a tool's `id@version`.
fn major_id(tool: &str) -> String {
    match tool.split_once('@') {
        Some((id, version)) => {
            let major = version.split('.').next().unwrap_or_default();
            format!("{id}@{major}")
        }
        None => tool.to_owned(),
    }
}

/// The ledger that a cassette must come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CassetteSource {
    /// This installation's ledger.
    Own,
    /// The ledger of this key.
    Key(Box<Verifier>),
    /// Any ledger. Only for a single user who knows where the cassette comes from.
    Unverified,
}

/// Reads the cassette at this path. It must come from the ledger `from`.
///
/// `named` states that callers have names, as over HTTP. Without it, the local user is the only
/// caller, and gets all calls of a cassette that has only one principal. In all other cases each
/// principal gets only its own recorded calls, and this installation's ledger gives the principals'
/// names.
///
/// # Errors
/// The errors of [`CassetteError`](toolward_ledger::cassette::CassetteError); `cassette-unnamed` if
/// the cassette has calls, but none of a principal who is served here; `ledger-…` if this
/// installation's key or names are needed but missing.
pub fn tape(
    path: &Path,
    from: &CassetteSource,
    named: bool,
    settings: &LedgerSettings,
    environment: &Environment,
) -> Result<Tape> {
    let bytes = file::read(path, MAX_CASSETTE_BYTES)?;
    let own = || Ok::<_, Error>(Reader::open(&settings.directory(environment)?, None)?);
    let key = match from {
        CassetteSource::Own => Some(own()?.verifier().clone()),
        CassetteSource::Key(key) => Some((**key).clone()),
        CassetteSource::Unverified => None,
    };
    let cassette = Cassette::read(&bytes, key.as_ref())
        .map_err(|error| Error::of(Kind::Refused, error).in_file(path))?;
    let persons: BTreeSet<_> = cassette.calls.iter().map(|call| call.person).collect();
    let tape = match (named, persons.len()) {
        (false, 0 | 1) => Tape::new(cassette, |_| Some(LOCAL.to_owned())),
        _ => {
            let (ledger, mut names) = (own()?, HashMap::new());
            for person in persons.iter().flatten() {
                names.extend(ledger.name(person)?.map(|name| (*person, name)));
            }
            Tape::new(cassette, |person| names.get(person?).cloned())
        }
    };
    let has_own = match named {
        true => tape.left() > 0,
        false => tape.answers(LOCAL),
    };
    if !has_own && !persons.is_empty() {
        let path = path.display();
        let message = format!("{path}: no recorded call is of a principal who is served here");
        return Err(Error::usage(Code::CassettePrincipals, message)
            .hint("export one principal's calls: `toolward ledger export --cassette FILE --principal NAME`"));
    }
    Ok(tape)
}
