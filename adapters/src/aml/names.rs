//! Fields that AML does not know and that look like one it does: its compiler reads past them.

use toolward_support::fields::{Content, Node as Tree, nearest};

use super::codes;
use super::fields::{Findings, Node};

/// A mapping of a definition, by the way to it, and the fields of its reference ("Field reference").
const MAPPINGS: &[(&[&str], &[&str])] = &[
    (
        &[],
        &[
            "spec_version",
            "tool_id",
            "version",
            "status",
            "meta",
            "type",
            "interface",
            "transport",
            "use_guidance",
            "error_codes",
        ],
    ),
    (
        &["meta"],
        &["name", "description", "owner", "tags", "last_updated"],
    ),
    (&["interface"], &["input", "output"]),
    (
        &["use_guidance"],
        &["use_when", "avoid_when", "side_effects"],
    ),
    (
        &["transport"],
        &[
            "type",
            "base_url",
            "endpoint",
            "timeout_ms",
            "retry_policy",
            "credentials",
            "provider",
            "function_id",
            "invocation_type",
            "payload_format",
            "url",
            "tool_name",
            "protocol_version",
            "queue_url",
            "message_format",
            "response_queue_url",
            "engine",
            "query_method",
        ],
    ),
    (
        &["transport", "retry_policy"],
        &["max_attempts", "on_status"],
    ),
    (
        &["transport", "credentials"],
        &[
            "scheme",
            "source",
            "name",
            "secret_id",
            "header",
            "header_name",
            "provider",
            "function_id",
            // Connections of databases and clouds stand here too.
            "account",
            "cluster_arn",
            "database",
            "dataset",
            "host",
            "password",
            "port",
            "project",
            "project_id",
            "region",
            "resource_arn",
            "role",
            "role_arn",
            "schema",
            "scope",
            "scopes",
            "secret_arn",
            "secret_name",
            "token_url",
            "user",
            "username",
            "vault_url",
            "version",
            "warehouse",
        ],
    ),
];

/// Warns of each field that is nearly one of its mapping.
pub(super) fn check(document: &Node, findings: &mut Findings<'_>) {
    for (way, known) in MAPPINGS {
        let mapping = way
            .iter()
            .try_fold(document, |node, key| Tree::get(node, key));
        let Some(Content::Mapping(entries)) = mapping.map(|node| &node.content) else {
            continue;
        };
        let unknown = entries
            .iter()
            .filter(|entry| !known.contains(&entry.key.as_str()));
        for entry in unknown {
            if let Some(near) = nearest(&entry.key, known.iter().copied()) {
                let name = way
                    .iter()
                    .copied()
                    .chain([entry.key.as_str()])
                    .collect::<Vec<_>>()
                    .join(".");
                let message = format!("expected a field of AML, found `{name}`: it is read past");
                let hint = Some(format!("did you mean `{near}`?"));
                findings.add_hinted(&codes::FIELD_UNKNOWN, entry.key_at, message, hint);
            }
        }
    }
}
