//! Writing a revocation list: one layout, so that writing twice gives the same bytes.

use std::fmt::Write as _;

use super::list::{KIND, PAYLOAD_TYPE, RevocationList};
use crate::document::{SCHEMA, string};
use crate::envelope::Envelope;
use crate::error::{ErrorKind, Refusal};

impl RevocationList {
    /// Writes the list, the same bytes each time. The bytes have been read back.
    ///
    /// # Errors
    /// Those of [`RevocationList::parse`], for a list that breaks a rule.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Refusal> {
        list(self)
    }

    /// The list in an envelope that waits for signatures, see [`Envelope::sign`].
    ///
    /// # Errors
    /// Those of [`RevocationList::to_bytes`].
    pub fn to_envelope(&self) -> Result<Envelope, Refusal> {
        Ok(Envelope::new(PAYLOAD_TYPE, self.to_bytes()?))
    }
}

fn list(list: &RevocationList) -> Result<Vec<u8>, Refusal> {
    let mut text = String::new();
    // Writing to a String can't fail.
    let _ = tables(&mut text, list);
    let bytes = text.into_bytes();
    // Reading it back applies every rule of the format to what was built in memory.
    if RevocationList::parse(&bytes)? == *list {
        Ok(bytes)
    } else {
        Err(Refusal::new(ErrorKind::DocumentInvalid)
            .at(KIND.name)
            .expected("values that read back as they were written"))
    }
}

fn tables(text: &mut String, list: &RevocationList) -> std::fmt::Result {
    writeln!(text, "schema = {SCHEMA}")?;
    writeln!(text, "publisher = {}", string(&list.publisher))?;
    writeln!(text, "version = {}", list.version)?;
    writeln!(text, "created = \"{}\"", list.created)?;
    if let Some(expires) = list.expires {
        writeln!(text, "expires = \"{expires}\"")?;
    }
    for key in &list.keys {
        writeln!(text, "\n[[keys]]")?;
        writeln!(text, "key_id = \"{}\"", key.key_id)?;
        if let Some(since) = key.since {
            writeln!(text, "since = \"{since}\"")?;
        }
        writeln!(text, "reason = {}", string(&key.reason))?;
    }
    for bundle in &list.bundles {
        writeln!(text, "\n[[bundles]]")?;
        writeln!(text, "digest = \"{}\"", bundle.digest)?;
        if let Some(id) = &bundle.id {
            writeln!(text, "id = {}", string(id))?;
        }
        writeln!(text, "reason = {}", string(&bundle.reason))?;
    }
    Ok(())
}
