//! Payloads: the input of a caller and the output of a driver, as far as the ledger keeps them.
//! They contain neither sensitive values nor the bytes of secrets.

use serde_json::{Value, json};
use toolward_contract::json as strict;
use toolward_contract::schema::{HIDDEN, Schema};
use toolward_ledger::payload::PayloadKind;
use toolward_ledger::record::{Native, NativeId, Rejected};
use toolward_ledger::{Entry, Recorder};
use toolward_policy::ContextText;
use toolward_sandbox::violations::Violation;

use super::Recording;
use crate::api::result::{CallError, Output};
use crate::call_scope::CallScope;
use crate::catalogue::{DriverFacts, ToolFacts};
use crate::executor::RecordedInput;
use crate::redact::{MIN_VALUE_BYTES, Redactor};
use crate::secrets::{SecretStore, SecretValue};

/// A valid call whose payloads may be kept.
pub(crate) struct Keeping<'a> {
    pub(crate) tool: &'a ToolFacts,
    pub(crate) route: &'a DriverFacts,
    pub(crate) input: &'a Value,
    pub(crate) context: &'a Value,
    /// Confidential texts of the context.
    pub(crate) context_secrets: &'a [(String, ContextText)],
    pub(crate) scope: &'a CallScope,
    pub(crate) secrets: Option<&'a dyn SecretStore>,
}

/// The recorded payloads and names of a valid call.
#[derive(Default)]
pub(crate) struct RecordedPayloads {
    pub(crate) input: Option<RecordedBody>,
    pub(crate) context: Option<RecordedBody>,
    pub(crate) rejected: Vec<Rejected>,
    /// The ids of the call in the caller's protocol.
    pub(crate) native: Native,
    /// Removes secrets and sensitive values from later records of the call.
    redactor: Option<Redactor>,
}

/// A payload, or only its size.
pub(crate) enum RecordedBody {
    Bytes(Vec<u8>),
    Size(usize),
}

impl RecordedBody {
    pub(crate) fn into(self, entry: Entry, kind: PayloadKind) -> Entry {
        match self {
            Self::Bytes(bytes) => entry.payload(kind, bytes),
            Self::Size(size) => entry.size(kind, size as u64),
        }
    }
}

impl Keeping<'_> {
    /// The input in the form in which it would be recorded.
    pub(crate) fn recorded_input(&self) -> RecordedInput {
        let redactor = redactor(self);
        let inputs = &self.tool.contract.inputs;
        RecordedInput {
            publisher: self.tool.publisher.clone(),
            input: shown(inputs, self.input, redactor.as_ref()),
            redactor,
        }
    }

    /// Whether an id of the caller is long enough to contain a hidden value.
    fn has_long_ids(&self) -> bool {
        let native = &self.scope.native;
        let ids = [&native.call_id, &native.tool_call_id];
        let mut ids = ids.into_iter().flatten();
        ids.any(|id| id.as_str().len() >= MIN_VALUE_BYTES)
    }

    /// The ids of the call in the caller's protocol, without ids that contain a secret or a
    /// sensitive value.
    fn shown_native(&self, redactor: Option<&Redactor>) -> Native {
        let is_shown =
            |id: &NativeId| !redactor.is_some_and(|redactor| redactor.is_in(id.as_str()));
        let native = self.scope.native.clone();
        Native {
            call_id: native.call_id.filter(is_shown),
            tool_call_id: native.tool_call_id.filter(is_shown),
            traceparent: native.traceparent,
        }
    }
}

/// A value without its sensitive parts.
fn shown(schema: &Schema, value: &Value, redactor: Option<&Redactor>) -> Value {
    let mut shown = schema.observable(value);
    if let Some(redactor) = redactor {
        redactor.value(&mut shown);
    }
    shown
}

impl Recording {
    /// The payloads of a call that are kept. More may be kept if the call matters: if it changes
    /// something, or a person may be asked about it.
    pub(crate) fn keep(&self, call: Keeping<'_>, rejected: Vec<Rejected>) -> RecordedPayloads {
        let matters = call.route.writes || call.route.question.is_some();
        let recorder = &*self.recorder;
        let most = |kind| recorder.keeps(kind, matters);
        let all = [
            PayloadKind::Input,
            PayloadKind::Context,
            PayloadKind::Output,
            PayloadKind::Detail,
        ];
        if all.into_iter().all(|kind| most(kind) == 0) {
            let redactor = call.has_long_ids().then(|| redactor(&call)).flatten();
            return RecordedPayloads {
                rejected,
                native: call.shown_native(redactor.as_ref()),
                ..RecordedPayloads::default()
            };
        }
        let contract = &call.tool.contract;
        let redactor = redactor(&call);
        let body = |kind, schema: &Schema, value: &Value| {
            let most = most(kind);
            if most == 0 {
                return None;
            }
            let shown = shown(schema, value, redactor.as_ref());
            Some(within(most, shown.to_string().into_bytes()))
        };
        let context = contract.context_schema.as_ref();
        RecordedPayloads {
            input: body(PayloadKind::Input, &contract.inputs, call.input),
            context: context.and_then(|schema| body(PayloadKind::Context, schema, call.context)),
            rejected,
            native: call.shown_native(redactor.as_ref()),
            redactor,
        }
    }
}

impl RecordedPayloads {
    /// Sets the sizes of input and context, if these are not kept.
    pub(crate) fn sizes(&mut self, input: usize, context: Option<usize>) {
        self.input.get_or_insert(RecordedBody::Size(input));
        if let Some(context) = context {
            self.context.get_or_insert(RecordedBody::Size(context));
        }
    }

    /// An output, with the fields of an envelope. `size` is the size of the driver's output.
    pub(crate) fn output(
        &self,
        recorder: &dyn Recorder,
        matters: bool,
        tool: &ToolFacts,
        (output, size): (&Output, usize),
    ) -> RecordedBody {
        let most = recorder.keeps(PayloadKind::Output, matters);
        if most == 0 || size > most {
            return RecordedBody::Size(size);
        }
        let schema = &tool.contract.outputs;
        let mut shown = json!({ "value": schema.observable(&output.structured) });
        // Blocks repeat the output's content, but no schema marks their sensitive parts.
        if !output.content.is_empty()
            && let Some(fields) = shown.as_object_mut()
        {
            let content = match schema.has_sensitive() {
                true => json!(HIDDEN),
                false => json!(output.content),
            };
            fields.insert("content".to_owned(), content);
        }
        if let Some(redactor) = &self.redactor {
            redactor.value(&mut shown);
        }
        within(most, shown.to_string().into_bytes())
    }
}

/// The details that a record has no fields for: messages, causes, unknown names, subjects of
/// violations. `None` without such details.
pub(crate) fn detail(
    (recorder, matters): (&dyn Recorder, bool),
    (kept, tool): (Option<&RecordedPayloads>, Option<&ToolFacts>),
    (name, error): (&str, Option<&CallError>),
    violations: &[Violation],
) -> Option<RecordedBody> {
    let recorded = tool.and_then(|tool| tool.recorded.as_ref());
    let unfit = recorded.map_or(&[][..], |recorded| &recorded.unfit);
    let is_named = recorded.is_some_and(|recorded| recorded.part.is_some());
    if error.is_none() && violations.is_empty() && unfit.is_empty() && is_named {
        return None;
    }
    let most = recorder.keeps(PayloadKind::Detail, matters);
    if most == 0 {
        // A detail that is not kept is measured without being built.
        let sizes = violations.iter().map(|violation| violation.subject.len());
        let message = error.map_or(0, |error| error.message.len());
        return Some(RecordedBody::Size(
            sizes.fold(message, usize::saturating_add),
        ));
    }
    let mut all = serde_json::Map::new();
    let mut add = |name: &str, value: Value| all.insert(name.to_owned(), value);
    if !is_named {
        add("tool", json!(name));
    }
    if let Some(error) = error {
        // The error may quote an input or an output that does not match its schema, so that its
        // sensitive parts are unknown.
        let quotes = match (tool, kept) {
            (Some(tool), None) => is_sensitive(tool),
            (Some(tool), Some(_)) => tool.contract.outputs.has_sensitive(),
            (None, _) => false,
        };
        add(
            "message",
            json!(if quotes { HIDDEN } else { &error.message }),
        );
        if let Some(cause) = error.cause.as_ref().filter(|_| !quotes) {
            add("cause", cause.clone());
        }
        if let Some(hint) = error.hint.as_ref().filter(|_| !quotes) {
            add("hint", json!(hint));
        }
    }
    if !violations.is_empty() {
        add("violations", json!(violations));
    }
    if !unfit.is_empty() {
        add("mutates", json!(unfit));
    }
    let mut all = Value::Object(all);
    if let Some(redactor) = kept.and_then(|kept| kept.redactor.as_ref()) {
        redactor.value(&mut all);
    }
    Some(within(most, all.to_string().into_bytes()))
}

fn within(most: usize, bytes: Vec<u8>) -> RecordedBody {
    match bytes.len() > most {
        true => RecordedBody::Size(bytes.len()),
        false => RecordedBody::Bytes(bytes),
    }
}

fn is_sensitive(tool: &ToolFacts) -> bool {
    let contract = &tool.contract;
    let context = contract.context_schema.as_ref();
    contract.inputs.has_sensitive() || context.is_some_and(|schema| schema.has_sensitive())
}

/// A redactor of the driver's secrets, the context's secrets, and the sensitive values of input and
/// context.
fn redactor(call: &Keeping<'_>) -> Option<Redactor> {
    let mut all: Vec<(&str, SecretValue)> = Vec::new();
    if let (Some(access), Some(store)) = (&call.route.access, call.secrets) {
        for secret in access.grant.secrets() {
            let found = store.get(&secret.publisher, &call.scope.principal, &secret.slug);
            if let Ok(Some(value)) = found {
                all.push((&secret.slug, value));
            }
        }
    }
    let value = |text: &str| SecretValue::new(text.as_bytes().to_vec());
    let given = call.context_secrets.iter();
    all.extend(given.map(|(name, text)| (name.as_str(), value(text.as_str()))));
    let contract = &call.tool.contract;
    let inputs = (Some(&contract.inputs), call.input);
    for (schema, of) in [inputs, (contract.context_schema.as_ref(), call.context)] {
        let paths = schema.map(|schema| schema.sensitive_paths(of));
        for path in paths.unwrap_or_default() {
            let texts = strict::texts(of.pointer(&path).unwrap_or(&Value::Null));
            all.extend(texts.iter().map(|text| (HIDDEN, value(text))));
        }
    }
    Redactor::with(None, all)
}
