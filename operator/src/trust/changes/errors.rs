//! Why a change of trust is refused.

use toolward_bundle::text::visible_line;

use crate::error::{Code, Error};

/// The error for a document of a publisher whose bare key is trusted.
pub(super) fn bare_key_known(name: &str) -> Error {
    Error::usage(
        Code::PublisherKnown,
        format!("{name} is trusted already, by a bare key"),
    )
    .hint(format!(
        "the document takes the key's place once that is taken out: `toolward trust remove {name}`, then the same command \
         again"
    ))
}

/// The error for an update of a publisher whose bare key is trusted.
pub(super) fn bare(name: &str) -> Error {
    Error::usage(
        Code::PublisherBare,
        format!("{name} is trusted by a bare key, which has no documents, revocations or actions"),
    )
    .hint(
        "`toolward trust add KEY.pub.pem` changes its prefixes, maximum age and channel. To revoke what it signed, add the \
         digest or the key id to `[trust.deny]` of toolward.toml, or take the key out: `toolward trust remove`",
    )
}

/// The error for an unknown publisher.
pub fn unknown(name: &str) -> Error {
    Error::usage(
        Code::PublisherUnknown,
        format!(
            "no publisher {} is trusted by `toolward trust`",
            visible_line(name, 100)
        ),
    )
    .hint("`toolward trust list` shows those that are")
}
