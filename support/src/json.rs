//! Writes JSON. To a vector, `serde_json` itself appends each sign by a call that copies memory.

use std::io;

use serde::Serialize;

/// Writes a value as JSON text after what `text` holds.
///
/// # Errors
/// The value's own refusal to be written; a [`serde_json::Value`] has none.
pub fn write(text: Vec<u8>, value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut text = Written(text);
    serde_json::to_writer(&mut text, value)?;
    Ok(text.0)
}

/// Most parts of a JSON text are one byte long: here they take no call of a copy.
struct Written(Vec<u8>);

impl io::Write for Written {
    #[inline]
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        self.write_all(part).map(|()| part.len())
    }

    #[inline]
    fn write_all(&mut self, part: &[u8]) -> io::Result<()> {
        match part {
            [byte] => self.0.push(*byte),
            part => self.0.extend_from_slice(part),
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
