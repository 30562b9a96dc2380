//! Content blocks: the parts of an output that a model or a person sees.

use serde::Serialize;
use toolward_contract::json;

use super::{CallError, ErrorClass, ErrorCode, Hit, Output};
use crate::limits::CallLimits;
use crate::sandbox::limiter::MEMORY;
use crate::sandbox::v0_1::types;

/// Whom a block is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// Hints on a block.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Annotations {
    /// Whom the block is for; empty: no preference.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub audience: Vec<Role>,
    /// From 0 (least) to 1 (most important).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
}

/// One part of an output. Untrusted content.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Block {
    /// What it is.
    #[serde(flatten)]
    pub content: BlockContent,
    /// Hints on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
}

/// The content of a block; serialised with MCP's names, binary data as base64.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum BlockContent {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image {
        /// Its bytes.
        #[serde(serialize_with = "base64")]
        data: Vec<u8>,
        /// Its media type.
        mime_type: String,
    },
    /// A sound.
    Audio {
        /// Its bytes.
        #[serde(serialize_with = "base64")]
        data: Vec<u8>,
        /// Its media type.
        mime_type: String,
    },
    /// A link to a resource.
    ResourceLink {
        /// Where it is.
        uri: String,
        /// Its name.
        name: String,
        /// Its title for people.
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// What it is.
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// Its media type.
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// Its size in bytes.
        #[serde(skip_serializing_if = "Option::is_none")]
        size: Option<u64>,
    },
    /// A resource carried in the output.
    Resource {
        /// Its name as a URI.
        uri: String,
        /// Its media type.
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// Its content.
        #[serde(flatten)]
        body: ResourceBody,
    },
}

/// The content of an embedded resource.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ResourceBody {
    /// Text.
    Text(String),
    /// Bytes.
    #[serde(serialize_with = "base64")]
    Blob(Vec<u8>),
}

fn base64<S: serde::Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    use base64::Engine as _;
    serializer.serialize_str(&base64::engine::general_purpose::STANDARD.encode(bytes))
}

/// An output that is not yet checked against its contract, and the memory that it
/// takes.
pub(crate) struct Mapped(pub(crate) Output, pub(crate) u64);

/// Takes a driver's output over, within the limits on size and JSON.
pub(crate) fn map_output(
    output: types::ToolOutput,
    limits: &CallLimits,
) -> Result<Mapped, CallError> {
    let used = size(&output);
    if used > limits.output_bytes {
        return Err(too_large(used, limits.output_bytes));
    }
    let blocks = blocks(output.content.len());
    let text = used.saturating_add(blocks);
    // Counted while the values are made: small ones take fifty times their text.
    let mut left = limits.memory_bytes.saturating_sub(text);
    let before = left;
    let structured = json::parse_within(output.structured.as_bytes(), &limits.json, &mut left)
        .map_err(|error| not_allowed(&error, limits))?;
    let memory = text.saturating_add(before.saturating_sub(left));
    let content = output.content.into_iter().map(block).collect();
    let output = Output {
        structured,
        content,
    };
    Ok(Mapped(output, memory))
}

fn not_allowed(error: &json::JsonError, limits: &CallLimits) -> CallError {
    if error.kind == json::JsonErrorKind::TooMuchMemory {
        return too_much_memory(limits.memory_bytes);
    }
    if error.kind == json::JsonErrorKind::TooMany {
        let allowed = limits.json.values as u64;
        return CallError::new(
            ErrorCode::RESULT_TOO_LARGE,
            ErrorClass::ResultTooLarge,
            format!("the result has more than the {allowed} JSON values that are allowed"),
        )
        .with_limit(Hit {
            limit: "json_values",
            used: allowed.saturating_add(1),
            allowed,
        })
        .with_hint("ask for less, or raise the limit `json_values`");
    }
    CallError::new(
        ErrorCode::UPSTREAM_ERROR,
        ErrorClass::ExecutionFailed,
        format!("the driver's output is not the JSON that is allowed: {error}"),
    )
    .with_hint("report this to the driver's publisher")
}

/// The text fits, and the values that it stands for do not.
pub(crate) fn too_much_memory(allowed: u64) -> CallError {
    CallError::new(
        ErrorCode::MEMORY_EXCEEDED,
        ErrorClass::ExecutionFailed,
        format!(
            "the result would take more of the host's memory than the {allowed} bytes that are \
             allowed (limit `memory`)"
        ),
    )
    .with_limit(Hit {
        limit: MEMORY,
        used: allowed.saturating_add(1),
        allowed,
    })
    .with_hint(
        "ask for less, or raise `limits.memory_mib` in DRIVER.md and the host's limit \
         `memory_bytes`",
    )
}

pub(crate) fn too_large(used: u64, allowed: u64) -> CallError {
    CallError::new(
        ErrorCode::RESULT_TOO_LARGE,
        ErrorClass::ResultTooLarge,
        format!("the result is larger than the {allowed} bytes that are allowed"),
    )
    .with_limit(Hit {
        limit: "output",
        used,
        allowed,
    })
    .with_hint("ask for less, or raise the limit `output_bytes`")
}

/// What a block counts beside its content, in bytes: it takes memory even when
/// it is empty.
const BLOCK: u64 = 64;

/// What so many blocks take beside their content: as the guest gave them, and as the
/// host keeps them.
fn blocks(count: usize) -> u64 {
    const EACH: usize = size_of::<types::Block>().saturating_add(size_of::<Block>());
    (count as u64).saturating_mul(EACH as u64)
}

fn size(output: &types::ToolOutput) -> u64 {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let blocks = output.content.iter().map(|block| match &block.content {
        types::Content::Text(text) => text.len(),
        types::Content::Image(media) | types::Content::Audio(media) => {
            media.data.len() + media.mime_type.len()
        }
        types::Content::ResourceLink(link) => {
            link.uri.len()
                + link.name.len()
                + text(&link.title)
                + text(&link.description)
                + text(&link.mime_type)
        }
        types::Content::Embedded(resource) => {
            resource.uri.len()
                + text(&resource.mime_type)
                + match &resource.body {
                    types::ResourceBody::Text(text) => text.len(),
                    types::ResourceBody::Blob(bytes) => bytes.len(),
                }
        }
    });
    blocks.fold(output.structured.len() as u64, |sum, block| {
        sum.saturating_add(BLOCK).saturating_add(block as u64)
    })
}

fn block(block: types::Block) -> Block {
    let content = match block.content {
        types::Content::Text(text) => BlockContent::Text { text },
        types::Content::Image(types::Media { data, mime_type }) => {
            BlockContent::Image { data, mime_type }
        }
        types::Content::Audio(types::Media { data, mime_type }) => {
            BlockContent::Audio { data, mime_type }
        }
        types::Content::ResourceLink(link) => BlockContent::ResourceLink {
            uri: link.uri,
            name: link.name,
            title: link.title,
            description: link.description,
            mime_type: link.mime_type,
            size: link.size,
        },
        types::Content::Embedded(resource) => BlockContent::Resource {
            uri: resource.uri,
            mime_type: resource.mime_type,
            body: match resource.body {
                types::ResourceBody::Text(text) => ResourceBody::Text(text),
                types::ResourceBody::Blob(bytes) => ResourceBody::Blob(bytes),
            },
        },
    };
    let annotations = block.annotations.map(|annotations| Annotations {
        audience: audience(&annotations.audience),
        priority: annotations
            .priority
            .filter(|priority| !priority.is_nan())
            .map(|priority| priority.clamp(0.0, 1.0)),
    });
    Block {
        content,
        annotations,
    }
}

/// Whom a block is for: a set, however often the driver names a role.
fn audience(roles: &[types::Role]) -> Vec<Role> {
    [
        (types::Role::User, Role::User),
        (types::Role::Assistant, Role::Assistant),
    ]
    .into_iter()
    .filter(|(theirs, _)| roles.contains(theirs))
    .map(|(_, ours)| ours)
    .collect()
}

/// An accepted output as the guest sees it that called the tool.
pub(crate) fn output_to_guest(output: Output) -> types::ToolOutput {
    types::ToolOutput {
        structured: output.structured.to_string(),
        content: output.content.into_iter().map(guest_block).collect(),
    }
}

fn guest_block(block: Block) -> types::Block {
    let content = match block.content {
        BlockContent::Text { text } => types::Content::Text(text),
        BlockContent::Image { data, mime_type } => {
            types::Content::Image(types::Media { data, mime_type })
        }
        BlockContent::Audio { data, mime_type } => {
            types::Content::Audio(types::Media { data, mime_type })
        }
        BlockContent::ResourceLink {
            uri,
            name,
            title,
            description,
            mime_type,
            size,
        } => types::Content::ResourceLink(types::Link {
            uri,
            name,
            title,
            description,
            mime_type,
            size,
        }),
        BlockContent::Resource {
            uri,
            mime_type,
            body,
        } => types::Content::Embedded(types::EmbeddedResource {
            uri,
            mime_type,
            body: match body {
                ResourceBody::Text(text) => types::ResourceBody::Text(text),
                ResourceBody::Blob(bytes) => types::ResourceBody::Blob(bytes),
            },
        }),
    };
    let annotations = block.annotations.map(|annotations| types::Annotations {
        audience: annotations
            .audience
            .into_iter()
            .map(|role| match role {
                Role::User => types::Role::User,
                Role::Assistant => types::Role::Assistant,
            })
            .collect(),
        priority: annotations.priority,
    });
    types::Block {
        content,
        annotations,
    }
}
