//! From a reply of the host to a result of the protocol.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{
    Annotations, AudioContent, CallToolResult, ContentBlock, EmbeddedResource, ImageContent,
    MetaObject, Resource, ResourceContents, Role, TextContent,
};
use serde_json::{Value, json};
use toolward_bundle::text::{visible, visible_line};
use toolward_host::{Block, BlockContent, CallError, Metadata, Reply, ResourceBody};

/// `_meta` of a result: what was called, by what, and what it took.
const CALL: &str = "toolward/call";
/// `_meta` of an error result: code, class, limit, whether to try again.
const ERROR: &str = "toolward/error";

/// Characters of an error's message, and of names and titles.
const MESSAGE: usize = 4096;
const LINE: usize = 300;

/// A reply as a result. `wrapped` says that the tool's output is no object and
/// stands under `result`.
pub(crate) fn of(reply: Reply, wrapped: bool) -> CallToolResult {
    let metadata = call_metadata(&reply.metadata);
    match reply.result {
        Ok(output) => {
            let blocks = output.content;
            let content = match blocks.is_empty() {
                true => vec![ContentBlock::text(output.structured.to_string())],
                false => blocks.into_iter().map(block).collect(),
            };
            let structured = match wrapped {
                true => json!({ "result": output.structured }),
                false => output.structured,
            };
            let mut result = CallToolResult::success(content);
            result.structured_content = Some(structured);
            result.meta = Some(meta([(CALL, metadata)]));
            result
        }
        Err(error) => {
            let mut result = failed(&error);
            if let Some(meta) = &mut result.meta {
                meta.insert(CALL.to_owned(), metadata);
            }
            result
        }
    }
}

/// An error as a result: what happened and the next step as text, the code in
/// `_meta`.
pub(crate) fn failed(error: &CallError) -> CallToolResult {
    let mut text = format!("{}: {}", error.code, visible(&error.message, MESSAGE));
    if let Some(hint) = &error.hint {
        text.push_str("\nnext: ");
        text.push_str(&visible(hint, MESSAGE));
    }
    let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
    let error = serde_json::to_value(error).unwrap_or(Value::Null);
    result.meta = Some(meta([(ERROR, error)]));
    result
}

fn call_metadata(metadata: &Metadata) -> Value {
    serde_json::to_value(metadata).unwrap_or(Value::Null)
}

fn meta<const N: usize>(entries: [(&str, Value); N]) -> MetaObject {
    let mut meta = MetaObject::new();
    for (key, value) in entries {
        meta.insert(key.to_owned(), value);
    }
    meta
}

fn block(block: Block) -> ContentBlock {
    let annotations = block.annotations.map(|hints| {
        let mut annotations = Annotations::default();
        if !hints.audience.is_empty() {
            let roles = hints.audience.iter().map(|role| match role {
                toolward_host::Role::User => Role::User,
                toolward_host::Role::Assistant => Role::Assistant,
            });
            annotations.audience = Some(roles.collect());
        }
        #[expect(clippy::cast_possible_truncation, reason = "from 0 to 1")]
        let priority = hints.priority.map(|priority| priority as f32);
        annotations.priority = priority;
        annotations
    });
    match block.content {
        BlockContent::Text { text } => {
            let mut content = TextContent::new(text);
            content.annotations = annotations;
            ContentBlock::Text(content)
        }
        BlockContent::Image { data, mime_type } => {
            let mut content = ImageContent::new(STANDARD.encode(data), mime_type);
            content.annotations = annotations;
            ContentBlock::Image(content)
        }
        BlockContent::Audio { data, mime_type } => {
            let mut content = AudioContent::new(STANDARD.encode(data), mime_type);
            content.annotations = annotations;
            ContentBlock::Audio(content)
        }
        BlockContent::ResourceLink {
            uri,
            name,
            title,
            description,
            mime_type,
            size,
        } => {
            let mut link = Resource::new(uri, visible_line(&name, LINE));
            link.title = title.map(|title| visible_line(&title, LINE));
            link.description = description.map(|text| visible(&text, MESSAGE));
            link.mime_type = mime_type;
            link.size = size;
            link.annotations = annotations;
            ContentBlock::ResourceLink(link)
        }
        BlockContent::Resource {
            uri,
            mime_type,
            body,
        } => {
            let contents = match body {
                ResourceBody::Text(text) => ResourceContents::TextResourceContents {
                    uri,
                    mime_type,
                    text,
                    meta: None,
                },
                ResourceBody::Blob(bytes) => ResourceContents::BlobResourceContents {
                    uri,
                    mime_type,
                    blob: STANDARD.encode(bytes),
                    meta: None,
                },
            };
            let mut resource = EmbeddedResource::new(contents);
            resource.annotations = annotations;
            ContentBlock::Resource(resource)
        }
    }
}

#[cfg(test)]
mod tests {
    use toolward_host::Output;

    use super::*;

    fn reply(structured: Value, content: Vec<Block>) -> Reply {
        // A reply can only be made by a host: take the one of a call that fails
        // at once, and put the output in.
        let host = toolward_host::Host::builder().build().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let mut reply = runtime.block_on(host.call(toolward_host::Request::new("a.b", "{}")));
        reply.result = Ok(Output {
            structured,
            content,
        });
        reply
    }

    #[test]
    fn an_output_without_blocks_is_given_as_structure_and_as_text() {
        let result = of(reply(json!({"words": 2}), Vec::new()), false);
        let result = serde_json::to_value(result).unwrap();
        assert_eq!(result["structuredContent"], json!({"words": 2}));
        assert_eq!(
            result["content"],
            json!([{"type": "text", "text": "{\"words\":2}"}])
        );
        assert_eq!(result["isError"], json!(false));
        assert_eq!(result["_meta"]["toolward/call"]["tool"], json!("a.b"));
    }

    #[test]
    fn an_output_that_is_no_object_stands_under_result() {
        let result = of(reply(json!([1, 2]), Vec::new()), true);
        assert_eq!(result.structured_content, Some(json!({"result": [1, 2]})));
    }

    #[test]
    fn an_error_has_its_code_in_the_metadata_and_no_structure() {
        let host = toolward_host::Host::builder().build().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let reply = runtime.block_on(host.call(toolward_host::Request::new("a\u{202e}.b", "{}")));
        let result = serde_json::to_value(of(reply, false)).unwrap();
        assert_eq!(result["isError"], json!(true));
        assert_eq!(
            result["_meta"]["toolward/error"]["code"],
            json!("not_found")
        );
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(!text.contains('\u{202e}'), "{text}");
        assert_eq!(result.get("structuredContent"), None);
    }

    #[test]
    fn binary_blocks_are_base64() {
        let image = Block {
            content: BlockContent::Image {
                data: vec![1, 2, 3],
                mime_type: "image/png".to_owned(),
            },
            annotations: None,
        };
        let result = serde_json::to_value(of(reply(Value::Null, vec![image]), false)).unwrap();
        let expected = json!([{"type": "image", "data": "AQID", "mimeType": "image/png"}]);
        assert_eq!(result["content"], expected);
    }
}
