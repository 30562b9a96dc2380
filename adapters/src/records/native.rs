//! What a protocol calls a call itself: kept as detail, for those who compare records with
//! what was on the wire.

use serde::Serialize;
use toolward_host::Native;

use crate::records::declaration::line;

/// What a protocol calls a call. Texts of the caller: a record shows them sanitised.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NativeCall {
    /// Its ids. Without any, those of the call's events count.
    pub call: Native,
    /// The session, in which ids of requests are unique.
    pub session: Option<String>,
    /// The version of the protocol.
    pub protocol_version: Option<String>,
}

/// A [`NativeCall`] in a record, without the id, which has a field of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NativeRefs {
    /// The session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The version of the protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// The id that a model's API gave the tool call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

impl NativeCall {
    /// The rest beside the id of `call`; `None` where there is nothing.
    pub(crate) fn refs(&self, call: &Native) -> Option<NativeRefs> {
        let refs = NativeRefs {
            session: shown(self.session.as_deref()),
            protocol_version: shown(self.protocol_version.as_deref()),
            tool_call_id: call.tool_call_id.as_ref().map(ToString::to_string),
            trace: call.traceparent.as_ref().map(ToString::to_string),
        };
        let some = [
            &refs.session,
            &refs.protocol_version,
            &refs.tool_call_id,
            &refs.trace,
        ];
        some.iter().any(|one| one.is_some()).then_some(refs)
    }
}

fn shown(text: Option<&str>) -> Option<String> {
    text.filter(|text| !text.is_empty()).map(line)
}
