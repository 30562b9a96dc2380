//! Reads a person's answers key by key. For a yes-or-no question, Enter alone and Ctrl-C mean no.
//! The terminal's own line editing is not used, since Ctrl-C would then end the command instead of
//! answering.

use std::io;

use toolward_bundle::text::is_hidden;

use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr,
    tcgetwinsize, tcsetattr,
};

/// Columns of a terminal that does not report its width.
const DEFAULT_COLUMNS: usize = 80;

/// Longest line; further text is ignored.
const MAX_LINE_BYTES: usize = 4096;

/// Longest answer; a longer one is not a yes.
const MAX_ANSWER_BYTES: usize = 8;

const END_OF_TEXT: u8 = 3;
const END_OF_TRANSMISSION: u8 = 4;
const BACKSPACE: u8 = 8;
const DELETE: u8 = 127;

/// The terminal of standard input. While this value lives, the terminal delivers each key at once,
/// and does not show it.
pub(super) struct TerminalKeys {
    before: Termios,
}

impl TerminalKeys {
    pub(super) fn take() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut single = before.clone();
        single
            .local_modes
            .remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN);
        single.special_codes[SpecialCodeIndex::VMIN] = 1;
        single.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(io::stdin(), OptionalActions::Now, &single)?;
        Ok(Self { before })
    }

    /// Drops the keys that were typed before the question and not read yet. If there are any,
    /// notifies the person, who may believe that these keys answered the question.
    pub(super) fn forget(&self) -> io::Result<()> {
        let typed = rustix::io::ioctl_fionread(io::stdin())?;
        tcflush(io::stdin(), QueueSelector::IFlush)?;
        match typed {
            0 => Ok(()),
            _ => super::write("\n(what was typed before the question does not count) "),
        }
    }
}

impl Drop for TerminalKeys {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// Columns of the terminal of standard error.
pub(super) fn width() -> usize {
    match tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
        _ => DEFAULT_COLUMNS,
    }
}

/// Waits for an answer, showing what is typed.
pub(super) fn answer() -> io::Result<bool> {
    read_answer(key, super::write)
}

/// Waits for a line, showing what is typed. Returns `None` if the person gives no line.
pub(super) fn line() -> io::Result<Option<String>> {
    read_line(key, super::write, None)
}

/// The next key; `None` at the end.
fn key() -> io::Result<Option<u8>> {
    let mut key = [0];
    match rustix::io::retry_on_intr(|| rustix::io::read(io::stdin(), &mut key))? {
        0 => Ok(None),
        _ => Ok(Some(key[0])),
    }
}

/// Reads a line of text. Characters that would be invisible are left out, or replaced by `unseen`
/// if it is given.
fn read_line(
    mut key: impl FnMut() -> io::Result<Option<u8>>,
    mut echo: impl FnMut(&str) -> io::Result<()>,
    unseen: Option<char>,
) -> io::Result<Option<String>> {
    let mut typed = String::new();
    // The bytes of a character that is not complete yet.
    let mut part: Vec<u8> = Vec::new();
    let line = loop {
        match key()? {
            None | Some(END_OF_TEXT | END_OF_TRANSMISSION) => break None,
            Some(b'\r' | b'\n') => {
                typed.extend(unseen.filter(|_| !part.is_empty()));
                break Some(typed);
            }
            Some(BACKSPACE | DELETE) => {
                part.clear();
                match typed.pop() {
                    None => {}
                    Some(last) if last.is_ascii() => echo("\u{8} \u{8}")?,
                    Some(_) => echo("\u{8}\u{8}  \u{8}\u{8}")?,
                }
            }
            Some(_) if typed.len() >= MAX_LINE_BYTES => {}
            Some(byte) => {
                part.push(byte);
                let shown = match std::str::from_utf8(&part) {
                    Ok(whole) if !whole.chars().any(is_hidden) => whole.to_owned(),
                    Err(error) if error.error_len().is_none() => continue,
                    _ => unseen.map(String::from).unwrap_or_default(),
                };
                part.clear();
                typed.push_str(&shown);
                echo(&shown)?;
            }
        }
    };
    echo("\n")?;
    Ok(line)
}

/// Whether the keys mean yes: `y` or `yes`, then Enter. An invisible character is replaced by a
/// question mark, so that the answer is not a yes.
fn read_answer(
    key: impl FnMut() -> io::Result<Option<u8>>,
    echo: impl FnMut(&str) -> io::Result<()>,
) -> io::Result<bool> {
    let line = read_line(key, echo, Some('?'))?.unwrap_or_default();
    let answer = line.trim_matches(' ').to_ascii_lowercase();
    Ok(line.len() <= MAX_ANSWER_BYTES && matches!(answer.as_str(), "y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says_yes(keys: &str) -> bool {
        let mut left = keys.bytes();
        read_answer(|| Ok(left.next()), |_| Ok(())).unwrap()
    }

    #[test]
    fn a_line_holds_what_was_seen() {
        let line = |keys: &[u8]| {
            let mut left = keys.iter().copied();
            let (mut shown, echo) = (String::new(), |_: &str| Ok(()));
            let read = read_line(|| Ok(left.next()), echo, None).unwrap();
            shown.push_str(read.as_deref().unwrap_or("(none)"));
            shown
        };
        assert_eq!(line("grün 字\n".as_bytes()), "grün 字");
        assert_eq!(line(b"ab\x7fc\r"), "ac");
        assert_eq!(line("a\u{202e}\u{1b}[2J\u{9b}b\n".as_bytes()), "a[2Jb");
        assert_eq!(line(b"a\xff\xfeb\n"), "ab");
        assert_eq!(line(b"\n"), "");
        assert_eq!(line(b"abc\x03"), "(none)");
        assert_eq!(line(b"abc"), "(none)");
        assert_eq!(line(&[b'x'; 9000]), "(none)");
        let long = [&[b'x'; 9000][..], b"\n"].concat();
        assert_eq!(line(&long).len(), MAX_LINE_BYTES);
    }

    #[test]
    fn only_a_written_yes_and_enter_are_a_yes() {
        for keys in ["y\n", "yes\n", "Y\r", "YES\n", "n\u{7f}y\n", " y \n"] {
            assert!(says_yes(keys), "{keys:?}");
        }
        for keys in [
            "\n",
            "n\n",
            "no\n",
            "y",
            "",
            "\u{3}",
            "y\u{3}\n",
            "y\u{4}",
            "ye\n",
            "yy\n",
            "\u{1b}y\n",
            "ýes\n",
            "yes, do\n",
            "yes      not\n",
            "yes      \n",
            "y\t\n",
            "y\u{3000}\n",
        ] {
            assert!(!says_yes(keys), "{keys:?}");
        }
        for keys in [&b"y\xc3\n"[..], b"\xffy\n"] {
            let mut left = keys.iter().copied();
            let answer = read_answer(|| Ok(left.next()), |_| Ok(()));
            assert!(!answer.unwrap(), "{keys:?}");
        }
    }
}
