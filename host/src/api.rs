//! What an embedder gives to a host and gets from it, re-exported from the crate's
//! root. The pipeline and the sandbox speak in these types, too.

pub(crate) mod approval;
pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod facts;
pub(crate) mod limits;
pub(crate) mod observer;
pub(crate) mod request;
pub(crate) mod result;
pub(crate) mod violations;

/// The principal of calls that name none: the user who runs the host's process.
pub const LOCAL: &str = "local";

/// Bytes as text in base64.
pub(crate) mod base64 {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize as _, Deserializer, Serializer, de};

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        STANDARD.decode(text).map_err(de::Error::custom)
    }
}
