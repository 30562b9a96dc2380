//! What a file is that is not WebAssembly, by its first bytes: for messages only.

/// First bytes, and what has them.
const KINDS: [(&[u8], &str); 13] = [
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\xfd7zXZ", "an xz archive"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (b"\x7fELF", "a Linux program"),
    (b"MZ", "a Windows program"),
    (b"#!", "a script"),
    (b"-----BEGIN ", "a PEM file"),
    (b"<", "HTML, XML or SVG"),
];

/// Most bytes that are looked at.
const MAX_LOOK: usize = 4096;

/// What the bytes are, with its article; `None` if they begin as WebAssembly does.
pub(super) fn of(bytes: &[u8]) -> Option<&'static str> {
    if bytes.starts_with(b"\0asm") {
        return None;
    }
    if bytes.is_empty() {
        return Some("an empty file");
    }
    let known = KINDS.iter().find(|(first, _)| bytes.starts_with(first));
    if let Some((_, kind)) = known {
        return Some(kind);
    }
    let start = bytes.get(..MAX_LOOK).unwrap_or(bytes);
    let is_text = !start.contains(&0)
        && match str::from_utf8(start) {
            Ok(_) => true,
            // A character may be cut.
            Err(error) => error.error_len().is_none(),
        };
    Some(match (is_text, start.trim_ascii_start().first()) {
        (true, Some(b'{' | b'[')) => "JSON",
        (true, Some(b'(')) => "WebAssembly in text form",
        (true, _) => "a text file",
        (false, _) => "a file of an unknown kind",
    })
}
