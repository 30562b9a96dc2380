//! Reports the message of a panic. A trap has no text, so a line of bounded length is sent to the
//! host first, which reports it together with the trap. The line goes to standard error or, without
//! the standard library, into a log record.

use core::fmt::{self, Write as _};
use core::panic::Location;

/// The start of the line, by which the host finds it (`PANIC_PREFIX`).
const PREFIX: &str = "panic: ";

/// The most bytes of a message. A panic's message may contain a whole input.
const MAX_MESSAGE: usize = 1024;
/// The most bytes of the line, including the place of the panic.
const MAX_LINE: usize = MAX_MESSAGE + 512;

/// Installs the hook that prints a panic's line, only in a component. Tests keep their own hook.
#[cfg(feature = "std")]
pub(crate) fn install() {
    if cfg!(target_family = "wasm") {
        std::panic::set_hook(alloc::boxed::Box::new(|info| {
            let payload = info.payload();
            let message = payload
                .downcast_ref::<&str>()
                .copied()
                .or_else(|| {
                    payload
                        .downcast_ref::<std::string::String>()
                        .map(|text| &**text)
                })
                .unwrap_or("no message");
            let line = BoundedLine::of(format_args!("{message}"), info.location());
            // If this fails, nothing else can be done. The trap follows in any case.
            let _ = std::io::Write::write_all(&mut std::io::stderr(), line.text().as_bytes());
            let _ = std::io::Write::write_all(&mut std::io::stderr(), b"\n");
        }));
    }
}

#[cfg(all(target_family = "wasm", not(feature = "std")))]
#[panic_handler]
fn panicked(info: &core::panic::PanicInfo<'_>) -> ! {
    use core::sync::atomic::{AtomicBool, Ordering};
    static PANICKING: AtomicBool = AtomicBool::new(false);
    // Formatting the message may panic as well.
    if !PANICKING.swap(true, Ordering::Relaxed) {
        let line = BoundedLine::of(format_args!("{}", info.message()), info.location());
        crate::log::error(line.text());
    }
    core::arch::wasm32::unreachable()
}

/// A line in a buffer of fixed size, since no memory may be left to allocate.
struct BoundedLine {
    bytes: [u8; MAX_LINE],
    len: usize,
    /// Bytes beyond this limit are left out.
    limit: usize,
}

impl BoundedLine {
    fn of(message: fmt::Arguments<'_>, place: Option<&Location<'_>>) -> Self {
        let mut line = Self {
            bytes: [0; MAX_LINE],
            len: 0,
            limit: PREFIX.len() + MAX_MESSAGE,
        };
        let _ = line.write_str(PREFIX);
        if line.write_fmt(message).is_err() {
            line.limit = MAX_LINE;
            line.push('…');
        }
        line.limit = MAX_LINE;
        let (file, number) = place.map_or(("?", 0), |at| (at.file(), at.line()));
        let _ = write!(line, " ({file}:{number})");
        line
    }

    fn text(&self) -> &str {
        let written = self.bytes.get(..self.len).unwrap_or_default();
        core::str::from_utf8(written).unwrap_or_default()
    }

    /// Adds a character. Returns whether it fit.
    fn push(&mut self, character: char) -> bool {
        let after = self.len + character.len_utf8();
        let room = match after <= self.limit {
            true => self.bytes.get_mut(self.len..after),
            false => None,
        };
        let Some(room) = room else {
            return false;
        };
        character.encode_utf8(room);
        self.len = after;
        true
    }
}

impl fmt::Write for BoundedLine {
    /// Returns an error if the text did not fit completely. Line breaks become spaces.
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            let shown = match character.is_control() {
                true => ' ',
                false => character,
            };
            if !self.push(shown) {
                return Err(fmt::Error);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(message: &str) -> BoundedLine {
        BoundedLine::of(format_args!("{message}"), None)
    }

    #[test]
    fn a_panic_message_is_one_bounded_line() {
        assert_eq!(line("a\nb\u{1b}[31m").text(), "panic: a b [31m (?:0)");
        let long = line(&"é".repeat(10_000));
        let most = PREFIX.len() + MAX_MESSAGE + "… (?:0)".len();
        assert!(long.text().len() <= most && long.text().len() > MAX_MESSAGE);
        assert!(long.text().ends_with("é… (?:0)"));
    }

    #[test]
    fn a_place_with_a_long_path_takes_no_more_than_there_is() {
        let mut full = line(&"x".repeat(10_000));
        assert!(full.write_str(&"y".repeat(10_000)).is_err());
        assert_eq!(full.text().len(), MAX_LINE);
    }
}
