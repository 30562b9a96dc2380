//! A text that grows no further than it may.

use std::io;

use serde_json::Value;

use super::RenderError;

/// A text that grows no further than it may.
pub(super) struct Limited {
    pub(super) bytes: Vec<u8>,
    pub(super) left: usize,
    limit: usize,
}

impl Limited {
    pub(super) fn new(limit: usize) -> Limited {
        Limited {
            bytes: Vec::new(),
            left: limit,
            limit,
        }
    }

    pub(super) fn refuse(&self) -> RenderError {
        RenderError::too_large("the body", self.limit)
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) -> Result<(), RenderError> {
        io::Write::write_all(self, bytes).map_err(|_| self.refuse())
    }

    /// A value whose keys are text, as all are, can only fail to be written for its length.
    pub(super) fn json(&mut self, value: &Value) -> Result<(), RenderError> {
        serde_json::to_writer(&mut *self, value).map_err(|_| self.refuse())
    }
}

impl io::Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self
            .left
            .checked_sub(bytes.len())
            .ok_or(io::ErrorKind::FileTooLarge)?;
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
