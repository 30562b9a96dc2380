//! What a tool prints, line by line, with a bound on the length of a line.

use std::io::{BufRead, BufReader, Read};

/// How much of a line is kept, in bytes.
const MAX_LINE_BYTES: usize = 64 << 10;

/// Passes the lines of a stream on until it ends, long ones cut. Reads everything: a
/// tool fails when the other end of its output is closed.
pub(super) fn read(stream: impl Read, line: &mut dyn FnMut(&str)) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut kept = Vec::new();
    loop {
        let bytes = stream.fill_buf()?;
        let ended = bytes.is_empty();
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = end.and_then(|end| bytes.get(..end)).unwrap_or(bytes);
        let room = MAX_LINE_BYTES.saturating_sub(kept.len()).min(part.len());
        kept.extend_from_slice(part.get(..room).unwrap_or_default());
        let used = end.map_or(bytes.len(), |end| end + 1);
        stream.consume(used);
        if end.is_some() || (ended && !kept.is_empty()) {
            line(&String::from_utf8_lossy(&kept));
            kept.clear();
        }
        if ended {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        read(text, &mut |line| lines.push(line.to_owned())).unwrap();
        lines
    }

    #[test]
    fn lines_come_one_by_one_and_the_last_needs_no_end() {
        assert_eq!(lines(b"a\n\nb\xff\nc"), ["a", "", "b\u{fffd}", "c"]);
        assert_eq!(lines(b""), Vec::<String>::new());
        assert_eq!(lines(b"a\n"), ["a"]);
    }

    #[test]
    fn a_long_line_is_cut_and_what_follows_it_is_read() {
        let mut text = vec![b'x'; 10 * MAX_LINE_BYTES];
        text.extend_from_slice(b"\ny\n");
        let lines = lines(&text);
        assert_eq!((lines[0].len(), lines[1].as_str()), (MAX_LINE_BYTES, "y"));
    }
}
