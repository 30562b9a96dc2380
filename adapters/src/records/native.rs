//! What a protocol calls a call itself: kept as detail, for those who compare records with
//! what was on the wire.

use serde_json::Value;
use toolward_host::Native;

use crate::records::declaration::line;
use crate::records::object::object;

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

impl NativeCall {
    /// What a record has besides the id of `call`; `None` if that is nothing.
    pub(crate) fn refs(&self, call: &Native) -> Option<Value> {
        let refs = object! {
            session ? shown(self.session.as_deref());
            protocol_version ? shown(self.protocol_version.as_deref());
            tool_call_id ? call.tool_call_id.as_ref().map(ToString::to_string);
            trace ? call.traceparent.as_ref().map(ToString::to_string);
        };
        refs.as_object()
            .is_some_and(|refs| !refs.is_empty())
            .then_some(refs)
    }
}

fn shown(text: Option<&str>) -> Option<String> {
    text.filter(|text| !text.is_empty()).map(line)
}
