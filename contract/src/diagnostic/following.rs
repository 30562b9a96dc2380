//! Findings that follow from an absent field.

use std::collections::BTreeSet;

use super::{Code, Diagnostic};
use crate::codes;

/// What an absent field leads to, besides that it is missing.
const FOLLOWING: [(&str, &Code); 4] = [
    ("network", &codes::HTTP_EGRESS),
    ("base_url", &codes::HTTP_EGRESS),
    ("base_url", &codes::HTTP_FORMAT_OLD),
    ("default_headers", &codes::HTTP_SECRET_UNUSED),
];

/// Drops the findings that only say that one of these fields is absent.
pub(super) fn drop_following(found: &mut Vec<Diagnostic>, absent: &BTreeSet<String>) {
    if absent.is_empty() {
        return;
    }
    let missing: BTreeSet<String> = absent.iter().map(|name| missing(name)).collect();
    let mut following = FOLLOWING.to_vec();
    following.retain(|(name, _)| absent.contains(*name));
    found.retain(|one| {
        let is_missing = one.code == codes::MISSING_FIELD.code && missing.contains(&one.message);
        !is_missing && following.iter().all(|(_, code)| code.code != one.code)
    });
}

/// The message of a finding about an absent field.
pub(crate) fn missing(name: &str) -> String {
    format!("expected the field `{name}`, found none")
}
