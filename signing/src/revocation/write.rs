//! Writing a revocation list: one layout, so that writing twice gives the same bytes.

use std::fmt::Write as _;

use super::list::{KIND, RevocationList};
use crate::document::{SCHEMA, string};
use crate::error::{ErrorKind, Refusal};

pub(super) fn list(list: &RevocationList) -> Result<Vec<u8>, Refusal> {
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
