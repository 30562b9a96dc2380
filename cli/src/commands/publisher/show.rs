//! What a document says. Nobody's signature is verified here.

use std::path::Path;

use serde_json::{Value, json};
use toolward_author::documents::Document;
use toolward_bundle::text::visible_line;

use super::signing::read;
use crate::failure::Result;
use crate::output::Output;

pub(super) fn run(path: &Path, output: &mut Output) -> Result {
    let (document, envelope) = read(path)?;
    let verifying = match document {
        Document::Publisher(_) => "`toolward trust add`",
        Document::Revocations(_) => "`toolward trust update NAME --revocations`",
        Document::Channel(_) => "each command that uses the channel",
    };
    let mut shown = match document {
        Document::Publisher(document) => json!({
            "kind": "publisher document",
            "name": document.name,
            "version": document.version,
            "created": document.created.to_string(),
            "expires": document.expires.map(|time| time.to_string()),
            "threshold": document.threshold,
            "keys": document.keys.iter().map(|key| key.key_id().to_string()).collect::<Vec<_>>(),
            "revoked_keys": document.revoked_keys.iter().map(|revoked| json!({
                "key": revoked.key_id, "reason": revoked.reason,
            })).collect::<Vec<_>>(),
            "resets": document.resets.iter().map(|reset| json!({
                "id": reset.id, "sequence": reset.sequence, "digest": reset.digest,
            })).collect::<Vec<_>>(),
            "fingerprint": document.fingerprint().to_string(),
        }),
        Document::Revocations(list) => json!({
            "kind": "revocation list",
            "name": list.publisher,
            "version": list.version,
            "created": list.created.to_string(),
            "expires": list.expires.map(|time| time.to_string()),
            "revoked_keys": list.keys.iter().map(|revoked| json!({
                "key": revoked.key_id, "reason": revoked.reason,
            })).collect::<Vec<_>>(),
            "revoked_bundles": list.bundles.iter().map(|revoked| json!({
                "digest": revoked.digest, "id": revoked.id, "reason": revoked.reason,
            })).collect::<Vec<_>>(),
        }),
        Document::Channel(index) => json!({
            "kind": "channel index",
            "name": index.name,
            "version": index.version,
            "created": index.created.to_string(),
            "expires": index.expires.to_string(),
            "bundles": index.bundles.iter().map(|listed| json!({
                "id": listed.id, "version": listed.version.to_string(), "sequence": listed.sequence,
                "publisher": listed.publisher, "digest": listed.digest,
            })).collect::<Vec<_>>(),
        }),
    };
    let claims: Vec<_> = envelope
        .signatures()
        .iter()
        .map(|signature| signature.keyid.clone())
        .collect();
    if let Value::Object(fields) = &mut shown {
        fields.insert("claimed_signers".to_owned(), json!(claims));
    }
    if output.json() {
        return output.value(&shown);
    }
    for (name, value) in shown.as_object().into_iter().flatten() {
        let name = name.replace('_', " ");
        match value {
            Value::Null => {}
            Value::Array(values) if values.is_empty() => output.line(format!("{name:16} none"))?,
            Value::Array(values) => {
                for value in values {
                    output.line(format!("{name:16} {}", words(value)))?;
                }
            }
            value => output.line(format!("{name:16} {}", words(value)))?,
        }
    }
    output.note(format!(
        "who signed this was not verified: {verifying} does so"
    ));
    Ok(())
}

fn words(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Object(fields) => {
            let parts = fields.values().filter(|value| !value.is_null());
            parts.map(words).collect::<Vec<_>>().join("  ")
        }
        other => other.to_string(),
    };
    visible_line(&text, 400)
}
