//! Writes lines of TOML, in which text of bundles can't become syntax.

/// The most characters of a comment.
const MAX_COMMENT_CHARS: usize = 500;

/// A comment on one line, without characters that could mislead a reader.
pub(crate) fn comment(text: &str) -> String {
    let mut comment = String::from("# ");
    for c in text.chars().take(MAX_COMMENT_CHARS) {
        match c {
            c if is_plain(c) => comment.push(c),
            c => comment.extend(c.escape_unicode()),
        }
    }
    comment
}

/// Whether a character is displayed as itself, and does not control, format or join others.
fn is_plain(c: char) -> bool {
    matches!(c, '"' | '\'' | '\\') || c.escape_debug().len() == 1
}

pub(crate) fn pair(key: &str, value: &str) -> String {
    format!("{key} = {}", text(value))
}

pub(crate) fn list<T: AsRef<str>>(key: &str, values: impl IntoIterator<Item = T>) -> String {
    let values: Vec<String> = values
        .into_iter()
        .map(|value| text(value.as_ref()))
        .collect();
    format!("{key} = [{}]", values.join(", "))
}

/// A TOML basic string.
pub(crate) fn text(value: &str) -> String {
    let mut quoted = String::from("\"");
    for c in value.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if is_plain(c) => quoted.push(c),
            c => quoted.push_str(&format!("\\U{:08X}", u32::from(c))),
        }
    }
    quoted.push('"');
    quoted
}

/// The parent of the directories that [`crate::suggest`] writes for the operator to replace.
pub const PLACEHOLDER_DIRECTORY: &str = "/path/to/choose";

/// The host that [`crate::suggest`] writes for the operator to replace. It never resolves (RFC
/// 2606, section 2).
pub const PLACEHOLDER_HOST: &str = "host.invalid";

/// The environment variable that [`crate::suggest`] writes for the operator to replace.
pub const PLACEHOLDER_VARIABLE: &str = "TOOLWARD_CHOOSE";
