//! The body of a frame, read from its beginning to its end.

use super::frame_error::FrameError;

/// What is left of a body.
pub(super) struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn bytes(&mut self, length: usize) -> Result<&'a [u8], FrameError> {
        let (taken, rest) = self
            .0
            .split_at_checked(length)
            .ok_or(FrameError::Bad("it ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        let (taken, rest) = self
            .0
            .split_first_chunk()
            .ok_or(FrameError::Bad("it ends too early"))?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8, FrameError> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn number(&mut self) -> Result<u64, FrameError> {
        self.array().map(u64::from_le_bytes)
    }

    /// Bytes behind their length, of at most `most`.
    pub(super) fn counted(&mut self, most: usize) -> Result<&'a [u8], FrameError> {
        let length = usize::try_from(u32::from_le_bytes(self.array()?)).unwrap_or(usize::MAX);
        match length <= most {
            true => self.bytes(length),
            false => Err(FrameError::Bad("a part is too long")),
        }
    }

    pub(super) fn text(&mut self, most: usize) -> Result<&'a str, FrameError> {
        std::str::from_utf8(self.counted(most)?).map_err(|_| FrameError::Bad("not UTF-8"))
    }

    /// Nothing may follow.
    pub(super) fn end(&self) -> Result<(), FrameError> {
        match self.is_empty() {
            true => Ok(()),
            false => Err(FrameError::Bad("more follows than belongs to it")),
        }
    }
}

/// Adds bytes behind their length.
pub(super) fn counted(to: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    to.extend_from_slice(&length.to_le_bytes());
    to.extend_from_slice(bytes);
}
