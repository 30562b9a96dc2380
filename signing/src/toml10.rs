//! Refuses what TOML 1.1 added to TOML 1.0, before the `toml` crate, which reads 1.1, parses a text. It only follows
//! strings, comments and brackets; the parser checks everything else.

/// Syntax that TOML 1.0 lacks, and its offset in bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Newer {
    pub(crate) offset: usize,
    pub(crate) what: &'static str,
}

/// The kind of an open bracket.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bracket {
    Square,
    Curly,
}

/// The first syntax in `text` that TOML 1.0 lacks: a `\e` or `\x` escape, a line feed, comment or
/// trailing comma in an inline table, a time without seconds.
pub(crate) fn first_newer(text: &str) -> Option<Newer> {
    let mut scanner = Scanner {
        bytes: text.as_bytes(),
        offset: 0,
        open: Vec::new(),
        after_comma: false,
    };
    scanner.run().err()
}

struct Scanner<'a> {
    bytes: &'a [u8],
    offset: usize,
    open: Vec<Bracket>,
    /// Whether only white space followed the last comma.
    after_comma: bool,
}

impl Scanner<'_> {
    fn run(&mut self) -> Result<(), Newer> {
        while let Some(byte) = self.peek(0) {
            let in_inline_table = self.open.last() == Some(&Bracket::Curly);
            match byte {
                b'"' | b'\'' => self.string(byte)?,
                b'#' | b'\n' if in_inline_table => {
                    return Err(self.newer("a line feed or comment in an inline table"));
                }
                b'#' => self.comment(),
                b'}' if in_inline_table && self.after_comma => {
                    return Err(self.newer("a trailing comma in an inline table"));
                }
                b'[' => self.open.push(Bracket::Square),
                b'{' => self.open.push(Bracket::Curly),
                b']' | b'}' => {
                    self.open.pop();
                }
                b':' => self.time()?,
                _ => {}
            }
            match byte {
                b',' => self.after_comma = true,
                b' ' | b'\t' | b'\n' | b'#' => {}
                _ => self.after_comma = false,
            }
            self.offset += 1;
        }
        Ok(())
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.offset + ahead).copied()
    }

    fn newer(&self, what: &'static str) -> Newer {
        Newer {
            offset: self.offset,
            what,
        }
    }

    /// Moves to the byte before the end of the line.
    fn comment(&mut self) {
        while self.peek(1).is_some_and(|byte| byte != b'\n') {
            self.offset += 1;
        }
    }

    /// Moves from a string's first quote to its last. An unfinished one-line string ends at the line
    /// feed, where the parser will refuse it.
    fn string(&mut self, quote: u8) -> Result<(), Newer> {
        let long = self.peek(1) == Some(quote) && self.peek(2) == Some(quote);
        self.offset += if long { 3 } else { 1 };
        while let Some(byte) = self.peek(0) {
            if byte == b'\\' && quote == b'"' {
                if matches!(self.peek(1), Some(b'e' | b'x')) {
                    return Err(self.newer("a `\\e` or `\\x` escape"));
                }
                self.offset += 2;
                continue;
            }
            if byte == quote {
                if !long {
                    return Ok(());
                }
                if self.peek(1) == Some(quote) && self.peek(2) == Some(quote) {
                    self.offset += 2;
                    // The content of a long string may end with up to two quotes.
                    for _ in 0..2 {
                        if self.peek(1) == Some(quote) {
                            self.offset += 1;
                        }
                    }
                    return Ok(());
                }
            }
            if byte == b'\n' && !long {
                return Ok(());
            }
            self.offset += 1;
        }
        Ok(())
    }

    /// At the first colon of a time, outside strings: TOML 1.0 requires `HH:MM:SS`. Moves past its minutes.
    fn time(&mut self) -> Result<(), Newer> {
        let digits = |from: usize| {
            (from..from + 2).all(|ahead| self.peek(ahead).is_some_and(|byte| byte.is_ascii_digit()))
        };
        // Outside strings, the only other `:` is in the offset of a time, which follows the seconds.
        let is_offset = self
            .offset
            .checked_sub(3)
            .and_then(|sign| self.bytes.get(sign))
            .is_some_and(|byte| matches!(byte, b'+' | b'-'))
            && self
                .offset
                .checked_sub(6)
                .and_then(|before| self.bytes.get(before))
                .is_some_and(|byte| matches!(byte, b':' | b'.' | b'0'..=b'9'));
        if is_offset || !digits(1) {
            return Ok(());
        }
        if self.peek(3) == Some(b':') && digits(4) {
            self.offset += 5;
            Ok(())
        } else {
            Err(self.newer("a time without seconds"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_toml_1_1_added_is_found() {
        for (text, offset) in [
            ("a = \"\\e\"", 5),
            ("a = \"\\x41\"", 5),
            ("a = \"\"\"\n\\x41\"\"\"", 8),
            ("a = { b = 1,\n c = 2 }", 12),
            ("a = {\n}", 5),
            ("a = { b = 1, }", 13),
            ("a = [{ b = [1], }]", 16),
            ("a = { b = 1 # c", 12),
            ("a = 07:32", 6),
            ("a = 1979-05-27T07:32Z", 17),
            ("a = 1979-05-27 07:32", 17),
            ("a = 1979-05-27T07:32+01:00", 17),
            ("a = [07:32, 1]", 7),
        ] {
            let found = first_newer(text).map(|newer| newer.offset);
            assert_eq!(found, Some(offset), "{text:?}");
        }
    }

    #[test]
    fn toml_1_0_passes() {
        for text in [
            "",
            "a = \"\\\\e \\\\x \\\" \\u0065\"",
            "a = '\\e \\x'",
            "a = '''\n\\e ' '' '''",
            "a = \"\"\"\n\\\"\"\" \"\" x\"\"\"\"\"\nb = { c = \"}\" }",
            "# { \\e\na = [\n1, # one\n2,\n]",
            "a = { b = 1, c = [ 1, ] }",
            "a = {}",
            "a = { b = \"x,\" }",
            "a = 07:32:00\nb = 1979-05-27T07:32:00.5+01:00\nc = 1979-05-27T07:32:00-07:00",
            "\"a:12\" = 1 # 12:34",
        ] {
            assert_eq!(first_newer(text), None, "{text:?}");
        }
    }

    #[test]
    fn unfinished_text_ends_the_search() {
        for text in ["\"", "\"\"\"", "'", "\"\\", "{", "[", "#", "12:", "]}"] {
            let _ = first_newer(text);
        }
    }
}
