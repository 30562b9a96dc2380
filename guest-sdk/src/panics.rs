//! Makes a panic say what happened. In a component a panic ends in a trap, which carries no text: first, one bounded
//! line goes to the host, which reports it together with the trap. It goes to standard error, which the host captures,
//! or, without the standard library, to the log.

use core::fmt::{self, Write as _};
use core::panic::Location;

/// How the line starts. The host looks for it.
const PREFIX: &str = "panic: ";

/// Longest message in bytes; what a panic says may hold a whole input.
const MAX_MESSAGE: usize = 1024;
/// Longest line in bytes, with where it happened.
const MAX_LINE: usize = MAX_MESSAGE + 512;

/// Has a panic print its line, in a component only: tests keep their own hook.
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
            let line = Line::of(format_args!("{message}"), info.location());
            // Nothing is left to do where this fails; the trap follows anyway.
            let _ = std::io::Write::write_all(&mut std::io::stderr(), line.text().as_bytes());
            let _ = std::io::Write::write_all(&mut std::io::stderr(), b"\n");
        }));
    }
}

#[cfg(all(target_family = "wasm", not(feature = "std")))]
#[panic_handler]
fn panicked(info: &core::panic::PanicInfo<'_>) -> ! {
    let line = Line::of(format_args!("{}", info.message()), info.location());
    crate::log::error(line.text());
    core::arch::wasm32::unreachable()
}

/// One line in a fixed place: there may be no memory left to allocate.
struct Line {
    bytes: [u8; MAX_LINE],
    used: usize,
    /// What is written beyond so many bytes is left out.
    end: usize,
}

impl Line {
    fn of(message: fmt::Arguments<'_>, place: Option<&Location<'_>>) -> Self {
        let mut line = Self {
            bytes: [0; MAX_LINE],
            used: 0,
            end: PREFIX.len() + MAX_MESSAGE,
        };
        let _ = line.write_str(PREFIX);
        if line.write_fmt(message).is_err() {
            line.end = MAX_LINE;
            line.push('…');
        }
        line.end = MAX_LINE;
        let (file, number) = place.map_or(("?", 0), |at| (at.file(), at.line()));
        let _ = write!(line, " ({file}:{number})");
        line
    }

    fn text(&self) -> &str {
        let written = self.bytes.get(..self.used).unwrap_or_default();
        core::str::from_utf8(written).unwrap_or_default()
    }

    /// Whether there was room for it.
    fn push(&mut self, character: char) -> bool {
        let after = self.used + character.len_utf8();
        let room = match after <= self.end {
            true => self.bytes.get_mut(self.used..after),
            false => None,
        };
        let Some(room) = room else {
            return false;
        };
        character.encode_utf8(room);
        self.used = after;
        true
    }
}

impl fmt::Write for Line {
    /// An error where not all of it had room. Line breaks become spaces.
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

    fn line(message: &str) -> Line {
        Line::of(format_args!("{message}"), None)
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
