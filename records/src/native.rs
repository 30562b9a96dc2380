//! What a protocol calls a call itself: kept as detail, for those who compare records with
//! what was on the wire.

use serde::Serialize;

use crate::declaration::line;

/// What a protocol calls a call. Texts of the caller: a record shows them sanitised.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NativeCall {
    /// The id of the request: of MCP that of JSON-RPC, as text.
    pub call_id: Option<String>,
    /// The session, in which ids of requests are unique.
    pub session: Option<String>,
    /// The version of the protocol.
    pub protocol_version: Option<String>,
    /// The trace that the call is part of: W3C's `traceparent`.
    pub trace: Option<String>,
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
    /// The trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

impl NativeCall {
    /// Its id; `None` where there is none.
    pub(crate) fn id(&self) -> Option<String> {
        shown(self.call_id.as_deref())
    }

    /// The rest; `None` where there is nothing.
    pub(crate) fn refs(&self) -> Option<NativeRefs> {
        let refs = NativeRefs {
            session: shown(self.session.as_deref()),
            protocol_version: shown(self.protocol_version.as_deref()),
            trace: shown(self.trace.as_deref()),
        };
        let some = [&refs.session, &refs.protocol_version, &refs.trace];
        some.iter().any(|one| one.is_some()).then_some(refs)
    }
}

fn shown(text: Option<&str>) -> Option<String> {
    text.filter(|text| !text.is_empty()).map(line)
}
