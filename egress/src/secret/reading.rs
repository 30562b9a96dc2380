//! One way to read a text at one place.

/// Whether an escape may begin with this byte.
#[inline]
pub(crate) fn may_escape(byte: u8) -> bool {
    matches!(byte, b'%' | b'\\' | b'&')
}

/// A byte that the text stands for there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Where the text continues.
    pub(crate) next: u16,
    pub(crate) byte: u8,
}

impl Reading {
    /// A byte as itself.
    #[inline]
    pub(crate) fn literal(byte: u8) -> Reading {
        Reading { next: 1, byte }
    }

    /// A character beyond ASCII has no reading: no value has one.
    #[inline]
    pub(super) fn ascii(next: usize, value: u32) -> Option<Reading> {
        let byte = u8::try_from(value).ok().filter(u8::is_ascii)?;
        let next = u16::try_from(next).ok()?;
        Some(Reading { next, byte })
    }
}
