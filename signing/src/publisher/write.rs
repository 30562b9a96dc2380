//! Writing a publisher document: one layout, so that writing twice gives the same bytes.

use std::fmt::Write as _;

use super::{KIND, PAYLOAD_TYPE, PublisherDocument};
use crate::document::{SCHEMA, string};
use crate::envelope::Envelope;
use crate::error::{ErrorKind, Refusal};

impl PublisherDocument {
    /// Writes the document, the same bytes each time. The bytes have been read back.
    ///
    /// # Errors
    /// Those of [`PublisherDocument::parse`], for a document that breaks a rule.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Refusal> {
        document(self)
    }

    /// The document in an envelope that waits for signatures, see [`Envelope::sign`].
    ///
    /// # Errors
    /// Those of [`PublisherDocument::to_bytes`].
    pub fn to_envelope(&self) -> Result<Envelope, Refusal> {
        Ok(Envelope::new(PAYLOAD_TYPE, self.to_bytes()?))
    }
}

fn document(document: &PublisherDocument) -> Result<Vec<u8>, Refusal> {
    let mut pems = Vec::with_capacity(document.keys.len());
    for key in &document.keys {
        pems.push(key.to_pem()?);
    }
    let mut text = String::new();
    // Writing to a String can't fail.
    let _ = tables(&mut text, document, &pems);
    let bytes = text.into_bytes();
    // Reading it back applies every rule of the format to what was built in memory.
    if PublisherDocument::parse(&bytes)? == *document {
        Ok(bytes)
    } else {
        Err(Refusal::new(ErrorKind::DocumentInvalid)
            .at(KIND.name)
            .expected("values that read back as they were written"))
    }
}

fn tables(text: &mut String, document: &PublisherDocument, pems: &[String]) -> std::fmt::Result {
    writeln!(text, "schema = {SCHEMA}")?;
    writeln!(text, "name = {}", string(&document.name))?;
    writeln!(text, "version = {}", document.version)?;
    writeln!(text, "created = \"{}\"", document.created)?;
    if let Some(expires) = document.expires {
        writeln!(text, "expires = \"{expires}\"")?;
    }
    writeln!(text, "threshold = {}", document.threshold)?;
    for pem in pems {
        writeln!(text, "\n[[keys]]\npem = \"\"\"\n{pem}\"\"\"")?;
    }
    for revoked in &document.revoked_keys {
        writeln!(text, "\n[[revoked_keys]]")?;
        writeln!(text, "key_id = \"{}\"", revoked.key_id)?;
        if let Some(since) = revoked.since {
            writeln!(text, "since = \"{since}\"")?;
        }
        writeln!(text, "reason = {}", string(&revoked.reason))?;
    }
    for reset in &document.resets {
        writeln!(text, "\n[[resets]]")?;
        writeln!(text, "id = {}", string(&reset.id))?;
        writeln!(text, "sequence = {}", reset.sequence)?;
        writeln!(text, "digest = \"{}\"", reset.digest)?;
    }
    Ok(())
}
