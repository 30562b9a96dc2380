//! Writing: one layout, so that packing twice gives the same bytes.

use std::fmt::Write as _;

use super::{FILE, Manifest, SCHEMA};
use crate::error::{ErrorKind, Refusal};

pub(super) fn manifest(manifest: &Manifest) -> Result<Vec<u8>, Refusal> {
    let mut text = String::new();
    // Writing to a String can't fail.
    let _ = head(&mut text, manifest);
    let bytes = text.into_bytes();
    // Reading it back applies every rule of the format to what was built in memory.
    let mut read = Manifest::parse(&bytes)?;
    let mut written = manifest.clone();
    for manifest in [&mut read, &mut written] {
        manifest.files.sort_by(|a, b| a.path.cmp(&b.path));
    }
    if read == written {
        Ok(bytes)
    } else {
        Err(Refusal::new(ErrorKind::ManifestField)
            .at(FILE)
            .expected("values that read back as they were written"))
    }
}

/// Strings need no escapes: every value that reading accepts is plain ASCII, and the others do not read back.
fn head(text: &mut String, manifest: &Manifest) -> std::fmt::Result {
    writeln!(text, "schema = {SCHEMA}")?;
    writeln!(text, "id = \"{}\"", manifest.id)?;
    writeln!(text, "version = \"{}\"", manifest.version)?;
    writeln!(text, "sequence = {}", manifest.sequence)?;
    writeln!(text, "publisher = \"{}\"", manifest.publisher)?;
    writeln!(text, "created = \"{}\"", manifest.created)?;
    if let Some(expires) = manifest.expires {
        writeln!(text, "expires = \"{expires}\"")?;
    }
    if let Some(min_host) = &manifest.min_host {
        writeln!(text, "min_host = \"{min_host}\"")?;
    }
    if manifest.provenance {
        writeln!(text, "provenance = true")?;
    }
    writeln!(text, "\n[artifacts.tools]")?;
    writeln!(text, "path = \"{}\"", manifest.tools.path)?;
    writeln!(text, "blake3 = \"{}\"", manifest.tools.blake3)?;
    writeln!(text, "size = {}", manifest.tools.size)?;
    writeln!(text, "version = {}", manifest.tools.version)?;
    let mut files: Vec<_> = manifest.files.iter().collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    for file in files {
        writeln!(text, "\n[[artifacts.files]]")?;
        writeln!(text, "path = \"{}\"", file.path)?;
        writeln!(text, "blake3 = \"{}\"", file.blake3)?;
        writeln!(text, "size = {}", file.size)?;
        writeln!(text, "role = \"{}\"", file.role)?;
    }
    Ok(())
}
