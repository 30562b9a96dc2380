//! Converts between the types of this version of the world and the host's own types. The contents
//! of blocks are moved, not copied.

use crate::bindings::toolward::driver::types;
use crate::invocation::DriverOutput;
use crate::result::{
    Annotations, Block, BlockContent, CallError, Output, ResourceBody, Role, milliseconds,
};

// With equal sizes, `collect` converts the blocks in place. Otherwise both lists would exist at
// once.
const _: () = assert!(
    size_of::<Block>() == size_of::<types::Block>()
        && align_of::<Block>() == align_of::<types::Block>()
);

/// Converts a driver's output. Lifting (copying out of the guest) has charged each block, so the
/// number of blocks is bounded. `lifted_bytes` is the memory that the blocks took as this version's
/// types.
pub(super) fn output(output: types::ToolOutput) -> DriverOutput {
    let lifted = output
        .content
        .len()
        .saturating_mul(size_of::<types::Block>());
    DriverOutput {
        structured: output.structured,
        content: output.content.into_iter().map(block).collect(),
        lifted_bytes: lifted as u64,
    }
}

/// The error of a called tool, for the driver that called it.
pub(crate) fn error_to_guest(error: CallError) -> types::ToolError {
    types::ToolError {
        code: error.code.as_str().to_owned(),
        message: error.message,
        retryable: error.retryable,
        retry_after_ms: error.retry_after.map(milliseconds),
        cause: error.cause.map(|cause| cause.to_string()),
    }
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

/// The audience of a block, without repeated roles.
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

/// An accepted output, for the guest that called the tool.
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
