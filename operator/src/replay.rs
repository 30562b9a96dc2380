//! Results of recorded calls: what the ledger kept of them, checked, and why the rest is missing. Nothing is called.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use toolward_ledger::payload::PayloadKind;
use toolward_ledger::record::{Code as RecordCode, Outcome};
use toolward_ledger::{CallEnd, Missing, Reader, RecordedCall};
use toolward_store::Store;

use crate::error::Error;
use crate::ledger::{LedgerSettings, keep_word};

/// Reads results of recorded calls.
#[derive(Debug)]
pub struct Replay<'r> {
    reader: &'r Reader,
    settings: &'r LedgerSettings,
    /// The digest and the version of the bundle that brings a tool now.
    tools: HashMap<String, (String, String)>,
    /// How many rows the newest checkpoint covers, once all of them were held against it.
    signed: u64,
}

/// A recorded call, and what is there of its result.
#[derive(Debug)]
pub struct Replayed {
    /// The call.
    pub call: RecordedCall,
    /// On whose behalf it was made; none where the name was erased.
    pub principal: Option<String>,
    /// The result.
    pub result: RecordedResult,
    /// Whether the tool is installed now.
    pub tool: ToolNow,
    /// Whether a checkpoint covers its rows, and holds.
    pub signed: bool,
}

/// What is there of a recorded result.
#[derive(Debug)]
pub enum RecordedResult {
    /// An output: `value`, and `content` where there was some.
    Output(Value),
    /// An error. Its message, cause and hint are `detail`.
    Error {
        /// How the call ended.
        outcome: Box<Outcome>,
        /// The code that is in it.
        code: RecordCode,
        /// What was said, or why that is missing.
        detail: Result<Value, Missing>,
    },
    /// There was an output, and it is missing.
    Missing(Missing),
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
    /// Replays from this ledger. `settings` say what is kept now, `store` what is installed. Holds all rows against
    /// the newest checkpoint, if there is one.
    ///
    /// # Errors
    /// Those of ledger and store; `ledger-differs` if the rows are not those that were signed.
    pub fn new(
        reader: &'r Reader,
        settings: &'r LedgerSettings,
        store: Option<&Store>,
    ) -> Result<Self, Error> {
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

    /// What is there of the result of a call.
    ///
    /// # Errors
    /// Those of the ledger.
    pub fn of(&self, call: RecordedCall) -> Result<Replayed, Error> {
        let person = call.call.as_ref().and_then(|call| call.person);
        let principal = person.map(|person| self.reader.name(&person)).transpose()?;
        let result = match &call.end {
            CallEnd::Abandoned(_) => RecordedResult::Abandoned,
            CallEnd::Unknown => RecordedResult::Unfinished,
            CallEnd::Ended(_, outcome)
            | CallEnd::Refused(_, outcome)
            | CallEnd::Replayed(_, outcome) => match &outcome.code {
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
        Ok(Replayed {
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
    /// Those of the ledger.
    pub fn payload(
        &self,
        call: &RecordedCall,
        kind: PayloadKind,
    ) -> Result<Result<Value, Missing>, Error> {
        let kept = self
            .reader
            .payload_of(call, kind, &self.settings.payloads)?;
        Ok(kept.and_then(|bytes| {
            // A host writes JSON; bytes of anything else are not its own.
            serde_json::from_slice(&bytes).map_err(|_| Missing::Changed)
        }))
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

    /// Why a payload is missing, and what would keep the like of it.
    #[must_use]
    pub fn explain(&self, missing: Missing) -> String {
        explain(missing, self.settings)
    }
}

fn explain(missing: Missing, settings: &LedgerSettings) -> String {
    let payloads = &settings.payloads;
    match missing {
        Missing::NotKept(keep) => format!(
            "not kept: `keep = \"{}\"` in `[ledger]` keeps those of later calls",
            keep_word(keep)
        ),
        Missing::TooLarge(size) => format!(
            "not kept: {size} bytes, and `payload_max` in `[ledger]` is {}",
            payloads.each
        ),
        Missing::Erased(row) => format!("erased: row {row}"),
        Missing::Expired => format!(
            "expired: `days` in `[ledger]` is {}",
            payloads.age.as_secs() / (24 * 60 * 60)
        ),
        Missing::Displaced => format!(
            "deleted for newer ones (`payloads_max` in `[ledger]` is {} bytes), or the file of payloads was lost",
            payloads.total
        ),
        Missing::Changed => "CHANGED: what is there is not what was recorded".to_owned(),
        _ => "not recorded".to_owned(),
    }
}

/// Why a payload is missing, for programs.
pub(crate) fn missing_json(missing: Missing, settings: &LedgerSettings) -> Value {
    json!({ "why": missing.as_str(), "message": explain(missing, settings) })
}

impl Replay<'_> {
    /// The JSON form.
    #[must_use]
    pub fn to_json(&self, replayed: &Replayed) -> Value {
        let call = &replayed.call;
        let tool = call.call.as_ref().and_then(|call| call.tool.as_ref());
        let mut fields = Map::new();
        let mut add = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        add("invocation", json!(call.invocation));
        add("rows", json!(call.rows().collect::<Vec<_>>()));
        add("at", json!(call.at));
        add("tool", json!(tool.map(|tool| &tool.id)));
        add("principal", json!(replayed.principal));
        add("signed", json!(replayed.signed));
        add("installed", json!(replayed.tool.as_str()));
        let missing = |missing: Missing| missing_json(missing, self.settings);
        match &replayed.result {
            RecordedResult::Output(output) => {
                add("ok", json!(true));
                add("output", output.clone());
            }
            RecordedResult::Error {
                outcome,
                code,
                detail,
            } => {
                add("ok", json!(false));
                let mut error = match detail {
                    Ok(Value::Object(detail)) => detail.clone(),
                    _ => Map::new(),
                };
                error.insert("code".to_owned(), json!(code));
                error.insert("class".to_owned(), json!(outcome.class));
                error.insert("origin".to_owned(), json!(outcome.origin));
                add("error", Value::Object(error));
                if let Err(why) = detail {
                    add("missing", json!({ "detail": missing(*why) }));
                }
            }
            RecordedResult::Missing(why) => {
                add("ok", json!(true));
                add("missing", json!({ "output": missing(*why) }));
            }
            RecordedResult::Abandoned => add_end(&mut fields, "abandoned"),
            RecordedResult::Unfinished => add_end(&mut fields, "unfinished"),
        }
        Value::Object(fields)
    }
}

/// `id@major` of a tool's `id@version`.
pub(crate) fn major_id(tool: &str) -> String {
    match tool.split_once('@') {
        Some((id, version)) => {
            let major = version.split('.').next().unwrap_or_default();
            format!("{id}@{major}")
        }
        None => tool.to_owned(),
    }
}

fn add_end(fields: &mut Map<String, Value>, end: &str) {
    fields.insert("ok".to_owned(), Value::Null);
    fields.insert("end".to_owned(), json!(end));
}

impl Replayed {
    /// Whether there is a result, and all of it.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        matches!(
            &self.result,
            RecordedResult::Output(_) | RecordedResult::Error { detail: Ok(_), .. }
        )
    }
}

impl ToolNow {
    /// In one word, for programs.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Other(_) => "other-release",
            Self::Missing => "missing",
            Self::Unnamed => "unnamed",
        }
    }
}
