//! Ids of actions: `<target-kind>:<verb>`, and what they say. Not references to them.

/// How long an id is, in bytes.
const LENGTH: std::ops::RangeInclusive<usize> = 2..=80;

/// Whether a text is an id: lower-case letters, digits, dashes and dots, with one colon at most (AIP-39,
/// conformance rule 1). Stricter than it in one point: a part ends with a letter or digit, too, so that
/// an id within a sentence has one end only.
pub(super) fn is_valid(text: &str) -> bool {
    LENGTH.contains(&text.len())
        && text.split(':').count() <= 2
        && text.split(':').all(|part| is_part(part, false))
}

/// Whether hosts took it for an id before they read `schema`: underscores and any number of colons, too.
pub(super) fn was_valid(text: &str) -> bool {
    LENGTH.contains(&text.len()) && text.split(':').all(|part| is_part(part, true))
}

fn is_part(part: &str, underscore: bool) -> bool {
    let alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    part.starts_with(alphanumeric)
        && part.ends_with(alphanumeric)
        && part
            .chars()
            .all(|c| alphanumeric(c) || matches!(c, '-' | '.') || (underscore && c == '_'))
}

/// The verb that an id names: what follows its colon.
pub(super) fn verb(id: &str) -> Option<&str> {
    id.split_once(':').map(|(_, verb)| verb)
}

/// The kind of resource that an id names: what stands before its colon.
pub(super) fn target_kind(id: &str) -> Option<&str> {
    id.split_once(':').map(|(kind, _)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_colon_at_most() {
        for id in [
            "storage:commit",
            "a1",
            "my.local-action",
            "v.c.s:a-b",
            "0:0",
        ] {
            assert!(is_valid(id) && was_valid(id), "{id}");
        }
        for id in ["vcs:storage:commit", "mail:send_all"] {
            assert!(!is_valid(id) && was_valid(id), "{id}");
        }
        for id in [
            "", "a", ":a", "a:", "a::b", "A:b", "a b", ".a", "-a:b", "a.:b", "a/b", "ä:b",
        ] {
            assert!(!is_valid(id) && !was_valid(id), "{id}");
        }
        assert!(is_valid(&"a".repeat(80)) && !is_valid(&"a".repeat(81)));
    }

    #[test]
    fn an_id_without_a_colon_names_no_verb() {
        assert_eq!(verb("storage:commit"), Some("commit"));
        assert_eq!(target_kind("storage:commit"), Some("storage"));
        assert_eq!((verb("storage"), target_kind("storage")), (None, None));
    }
}
