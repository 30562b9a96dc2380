//! Media types of files, by the endings of their names.

/// The endings that are known, with their media types.
const ENDINGS: &[(&str, &str)] = &[
    ("aac", "audio/aac"),
    ("avif", "image/avif"),
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("flac", "audio/flac"),
    ("gif", "image/gif"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript"),
    ("json", "application/json"),
    ("jsonl", "application/jsonl"),
    ("m4a", "audio/mp4"),
    ("md", "text/markdown"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("ogg", "audio/ogg"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("toml", "application/toml"),
    ("txt", "text/plain"),
    ("wav", "audio/wav"),
    ("webm", "video/webm"),
    ("webp", "image/webp"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("zip", "application/zip"),
];

/// The media type of a file, by its name and, where that says nothing, by
/// whether it is UTF-8.
pub(crate) fn of(path: &str, bytes: &[u8]) -> &'static str {
    let ending = path
        .rsplit_once('.')
        .map(|(_, ending)| ending.to_ascii_lowercase());
    let known = ENDINGS
        .iter()
        .find(|(known, _)| ending.as_deref() == Some(*known));
    match known {
        Some((_, media_type)) => media_type,
        None if std::str::from_utf8(bytes).is_ok() => "text/plain",
        None => "application/octet-stream",
    }
}

/// Whether content of a media type is text.
pub(crate) fn is_text(media_type: &str) -> bool {
    let (kind, subtype) = media_type.split_once('/').unwrap_or_default();
    kind == "text"
        || ["+json", "+xml", "+yaml"]
            .iter()
            .any(|suffix| subtype.ends_with(suffix))
        || (kind == "application"
            && ["json", "jsonl", "xml", "yaml", "toml", "javascript"].contains(&subtype))
}

/// Whether clients show content of a media type as an image or a sound.
pub(crate) fn is_shown(media_type: &str) -> bool {
    media_type.starts_with("image/") || media_type.starts_with("audio/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_gives_the_media_type_and_else_the_bytes() {
        assert_eq!(of("resources/a.PNG", b"x"), "image/png");
        assert_eq!(of("resources/README", b"x"), "text/plain");
        assert_eq!(
            of("resources/a.unknown", b"\xff"),
            "application/octet-stream"
        );
    }

    #[test]
    fn what_is_text_is_told_by_the_media_type() {
        for text in [
            "text/x",
            "application/json",
            "image/svg+xml",
            "application/ld+json",
        ] {
            assert!(is_text(text), "{text}");
        }
        for other in [
            "image/png",
            "application/pdf",
            "application/octet-stream",
            "",
        ] {
            assert!(!is_text(other), "{other}");
        }
    }
}
