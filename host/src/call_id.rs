//! Ids of calls and events.

use uuid::Uuid;

/// A UUIDv7, in lower case.
pub(crate) fn new_id() -> String {
    text(Uuid::now_v7())
}

/// The text of an id, in lower case.
pub(crate) fn text(id: Uuid) -> String {
    let mut text = Uuid::encode_buffer();
    id.hyphenated().encode_lower(&mut text).to_owned()
}
