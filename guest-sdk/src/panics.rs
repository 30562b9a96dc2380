//! Makes a panic say what happened. In a component a panic ends in a trap, which
//! carries no text; the hook writes one bounded line to standard error first,
//! which the host captures and reports together with the trap.

use std::io::Write;
use std::panic::PanicHookInfo;

/// How the line starts. The host looks for it.
pub(crate) const PREFIX: &str = "panic: ";

/// Longest message in bytes; what a panic says may hold a whole input.
const MAX_MESSAGE: usize = 1024;

/// Installs the hook, in a component only: tests keep their own.
pub(crate) fn install() {
    if cfg!(target_family = "wasm") {
        std::panic::set_hook(Box::new(report));
    }
}

fn report(info: &PanicHookInfo<'_>) {
    let payload = info.payload();
    let message = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    let (file, line) = info
        .location()
        .map_or(("?", 0), |at| (at.file(), at.line()));
    // Nothing is left to do where this fails; the trap follows anyway.
    let _ = writeln!(
        std::io::stderr(),
        "{PREFIX}{} ({file}:{line})",
        one_line(message)
    );
}

/// The message without line breaks, cut at [`MAX_MESSAGE`].
fn one_line(message: &str) -> String {
    let mut line = String::new();
    for character in message.chars() {
        if line.len() >= MAX_MESSAGE {
            line.push('…');
            break;
        }
        line.push(if character.is_control() {
            ' '
        } else {
            character
        });
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_message_is_one_bounded_line() {
        assert_eq!(one_line("a\nb\u{1b}[31m"), "a b [31m");
        let long = one_line(&"é".repeat(10_000));
        assert!(long.len() <= MAX_MESSAGE + '…'.len_utf8());
        assert!(long.ends_with('…'));
    }
}
