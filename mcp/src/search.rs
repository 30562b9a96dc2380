//! Tool search in a large catalogue: three tools of the server, with which a client finds, loads
//! and calls the other tools.
//!
//! `load_tool` returns a reference, which `call_tool` takes. The reference proves that its holder
//! has seen the tool's current schema. It is stateless, so it works on any connection. It grants
//! nothing: a call with it is authorised like any other.

mod finder;

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::catalogue::ListedTool;
use crate::principal::Principal;
pub(crate) use finder::{Asked, Finder, only_looks, tools};

/// Separates the tool's name from the tag in a reference. A name can't contain this character.
const SEPARATOR: char = '#';

/// Bytes of a tag, a keyed hash of the tool's present form. It is short, since models must copy it.
const TAG_BYTES: usize = 12;

/// The key of this process. Without it a publisher could put a valid reference into text that a
/// model reads. `None` if the system has no randomness.
static KEY: LazyLock<Option<[u8; 32]>> = LazyLock::new(|| {
    let mut key = [0; 32];
    getrandom::fill(&mut key).ok().map(|()| key)
});

/// Returns a reference to a tool in its present form, for one principal.
fn reference(listed: &ListedTool, principal: &Principal) -> Option<String> {
    let tag = tag(listed, principal)?;
    Some(format!("{}{SEPARATOR}{tag}", listed.name))
}

/// Returns the name in a reference, even if the reference is not valid any more. A name without a
/// tag is returned unchanged.
fn name_of(reference: &str) -> &str {
    reference
        .split_once(SEPARATOR)
        .map_or(reference, |(name, _)| name)
}

/// Whether a reference was made for the present form of this tool, and for this principal.
fn holds(reference: &str, listed: &ListedTool, principal: &Principal) -> bool {
    let given = reference.split_once(SEPARATOR).map(|(_, given)| given);
    given.is_some() && given == tag(listed, principal).as_deref()
}

fn tag(listed: &ListedTool, principal: &Principal) -> Option<String> {
    let mut hasher = blake3::Hasher::new_keyed(KEY.as_ref()?);
    for part in [
        listed.name.as_str(),
        &listed.target,
        &listed.bundle,
        &principal.name,
    ] {
        hasher.update(&part.len().to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let mut tag = [0; TAG_BYTES];
    hasher.finalize_xof().fill(&mut tag);
    Some(URL_SAFE_NO_PAD.encode(tag))
}
