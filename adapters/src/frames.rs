//! Converts recorded calls to the frames CT_TOOL_CALL and CT_TOOL_RESULT, which Runloop (another
//! host for agents) traces. Only calls of attachments (tools that a bundle declares in a tools.json
//! of version 1) have frames. A frame has the declared id, schema references and tags, and a stored
//! payload of the call.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use toolward_bundle::content::Content;
use toolward_ledger::payload::PayloadKind;
use toolward_ledger::{Reader, RecordedCall};
use toolward_operator::Error;
use toolward_operator::ledger::LedgerSettings;
use toolward_operator::replay::{missing_json, payload};

/// The version of tools.json whose entries are attachments.
const ATTACHMENTS: u32 = 1;

/// The attachments of bundles, by the digest of the bundle's manifest and the attachment's id.
#[derive(Debug, Default)]
pub struct Attachments(HashMap<(String, String), Attachment>);

/// The parts of an entry of tools.json that a frame contains.
#[derive(Debug)]
struct Attachment {
    input_schema: Value,
    result_schema: Value,
    schema_refs: Map<String, Value>,
    tags: Vec<String>,
}

impl Attachments {
    /// Returns the attachments of these bundles.
    pub fn of(contents: &[Content]) -> Self {
        let mut found = HashMap::new();
        for content in contents {
            if content.index.version != ATTACHMENTS {
                continue;
            }
            // The bytes from which the index was read.
            let document = content.files.get("tools.json");
            let document = document.and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
            let entries = document
                .as_ref()
                .and_then(|one| one.get("tools")?.as_array());
            for entry in &content.index.tools {
                let id = entry.id.as_str();
                let written = entries.and_then(|entries| {
                    let named = |one: &&Value| one.get("id").and_then(Value::as_str) == Some(id);
                    entries.iter().find(named)
                });
                let reference = |field: &str| {
                    let reference = written.and_then(|one| one.get(field)?.get("$ref"));
                    reference.cloned().unwrap_or(Value::Null)
                };
                let key = (content.manifest_digest.to_string(), id.to_owned());
                let attachment = Attachment {
                    input_schema: reference("input_schema"),
                    result_schema: reference("result_schema"),
                    schema_refs: entry.schema_refs.clone(),
                    tags: entry.tags.clone(),
                };
                found.insert(key, attachment);
            }
        }
        Self(found)
    }

    /// Returns the frames of a recorded call; `None` if its tool is not an attachment of these
    /// bundles.
    ///
    /// # Errors
    /// The errors of the ledger.
    pub fn frames(
        &self,
        call: &RecordedCall,
        reader: &Reader,
        settings: &LedgerSettings,
    ) -> Result<Option<[Value; 2]>, Error> {
        let tool = call.call.as_ref().and_then(|call| call.tool.as_ref());
        let Some(tool) = tool else { return Ok(None) };
        let id = tool.id.as_str().split('@').next().unwrap_or_default();
        let Some(attachment) = self.0.get(&(tool.bundle.to_string(), id.to_owned())) else {
            return Ok(None);
        };
        let frame = |name: &str, schema: &Value| {
            json!({
                "frame": name,
                "id": id,
                "invocation": call.invocation,
                "schema": schema,
                "schema_refs": attachment.schema_refs,
                "tags": attachment.tags,
            })
        };
        let add = |frame: &mut Value, name: &str, value: Value| {
            if let Some(members) = frame.as_object_mut() {
                members.insert(name.to_owned(), value);
            }
        };
        let add_payload = |frame: &mut Value, kind, field: Option<&str>| {
            match payload(reader, call, kind, settings)? {
                Ok(mut value) => {
                    let part = field.and_then(|field| Some(value.get_mut(field)?.take()));
                    add(frame, "payload", part.unwrap_or(value));
                }
                Err(missing) => add(frame, "missing", missing_json(missing, settings)),
            }
            Ok::<_, Error>(())
        };
        let mut called = frame("CT_TOOL_CALL", &attachment.input_schema);
        add_payload(&mut called, PayloadKind::Input, None)?;
        let mut result = frame("CT_TOOL_RESULT", &attachment.result_schema);
        add(&mut result, "at", json!(call.at));
        match call.end.outcome().map(|outcome| &outcome.code) {
            Some(Some(code)) => {
                add(&mut result, "ok", json!(false));
                add(&mut result, "code", json!(code));
                add_payload(&mut result, PayloadKind::Detail, None)?;
            }
            Some(None) => {
                add(&mut result, "ok", json!(true));
                add_payload(&mut result, PayloadKind::Output, Some("value"))?;
            }
            None => add(&mut result, "ok", Value::Null),
        }
        Ok(Some([called, result]))
    }
}
