//! Converts a reply of the host to a result of the protocol.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{
    Annotations, AudioContent, CallToolResult, ContentBlock, EmbeddedResource, ImageContent,
    MetaObject, Resource, ResourceContents, Role, TextContent,
};
use serde_json::{Map, Value, json};
use toolward_bundle::text::{visible, visible_line};
use toolward_host::{Block, BlockContent, CallError, CallFacts, Replayed, Reply, ResourceBody};
use toolward_support::json;

use crate::sanitize;

/// `_meta` of a result: the metadata of the call.
const CALL_META: &str = "toolward/call";
/// `_meta` of an error result: code, class, limit, whether to try again.
const ERROR_META: &str = "toolward/error";

/// Characters of an error's message, of a URI, and of names and titles.
const MAX_MESSAGE_CHARS: usize = 4096;
const MAX_URI_CHARS: usize = 8192;
const MAX_LINE_CHARS: usize = 300;

/// Initial capacity for the text of an output, enough for most.
const TEXT_CAPACITY_BYTES: usize = 512;

/// How a tool's value is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Structure {
    /// As content only: the tool lists no `outputSchema`. If a result has structured content,
    /// several clients show a model nothing else.
    None,
    /// As structured content as well.
    Value,
    /// As structured content under `result`, since the value may be something other than an object.
    Wrapped,
}

/// Converts a reply to a result. The content and the structured content are each complete.
pub(crate) fn of(reply: Reply, structure: Structure) -> CallToolResult {
    let metadata = call_metadata(&reply.metadata);
    let replayed = reply.metadata.replayed.as_ref().map(replayed);
    let mut result = match reply.result {
        Ok(output) => {
            let value = output.structured;
            let hidden = !value.is_null() && !repeats(&output.content, &value);
            let mut content: Vec<ContentBlock> = output.content.into_iter().map(block).collect();
            if content.is_empty() || hidden {
                content.push(ContentBlock::text(text(&value)));
            }
            let mut result = CallToolResult::success(content);
            result.structured_content = match structure {
                Structure::None => None,
                Structure::Value => Some(value),
                Structure::Wrapped => Some(json!({ "result": value })),
            };
            result
        }
        Err(error) => failed(&error),
    };
    result.content.extend(replayed);
    let members = result.meta.get_or_insert_default();
    members.insert(CALL_META.to_owned(), metadata);
    result
}

/// Whether a text block repeats the value: its text is the value as JSON; or the value is a string,
/// or an object with a string as its only member, and the text is this string.
fn repeats(blocks: &[Block], value: &Value) -> bool {
    let only = match value {
        Value::String(text) => Some(text),
        Value::Object(members) if members.len() == 1 => match members.values().next() {
            Some(Value::String(text)) => Some(text),
            _ => None,
        },
        _ => None,
    };
    blocks.iter().any(|block| {
        matches!(&block.content, BlockContent::Text { text } if Some(text) == only
            || serde_json::from_str::<Value>(text).is_ok_and(|read| read == *value))
    })
}

/// An output as text.
fn text(structured: &Value) -> String {
    // Writing a JSON value never fails, and gives UTF-8.
    let text = json::write(Vec::with_capacity(TEXT_CAPACITY_BYTES), structured);
    String::from_utf8(text.unwrap_or_default()).unwrap_or_default()
}

/// A note to the model that the result is replayed from a record.
fn replayed(replayed: &Replayed) -> ContentBlock {
    let mut text =
        "This result was replayed from a record of an earlier call; nothing ran.".to_owned();
    if !replayed.differs.is_empty() {
        text.push_str(" The recorded call had another input.");
    }
    ContentBlock::text(text)
}

/// Converts an error to a result: the text states what happened and the next step, and `_meta`
/// contains the code.
pub(crate) fn failed(error: &CallError) -> CallToolResult {
    // Texts of a driver or a caller are escaped for people and for programs.
    let mut shown = error.clone();
    shown.message = visible(&shown.message, MAX_MESSAGE_CHARS);
    shown.hint = shown.hint.map(|hint| visible(&hint, MAX_MESSAGE_CHARS));
    shown.cause = shown.cause.map(sanitize::value);
    let mut text = format!("{}: {}", shown.code, shown.message);
    if let Some(hint) = &shown.hint {
        text.push_str("\nnext: ");
        text.push_str(hint);
    }
    let metadata = serde_json::to_value(shown).unwrap_or_default();
    let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
    result.meta = Some(meta(ERROR_META, metadata));
    result
}

fn call_metadata(facts: &CallFacts) -> Value {
    sanitize::value(serde_json::to_value(facts).unwrap_or_default())
}

/// `_meta` with one member.
pub(crate) fn meta(key: &str, value: Value) -> MetaObject {
    MetaObject(Map::from_iter([(key.to_owned(), value)]))
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
            let mut content = ImageContent::new(STANDARD.encode(data), line(&mime_type));
            content.annotations = annotations;
            ContentBlock::Image(content)
        }
        BlockContent::Audio { data, mime_type } => {
            let mut content = AudioContent::new(STANDARD.encode(data), line(&mime_type));
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
            let mut link = Resource::new(visible_line(&uri, MAX_URI_CHARS), line(&name));
            link.title = title.as_deref().map(line);
            link.description = description.map(|text| visible(&text, MAX_MESSAGE_CHARS));
            link.mime_type = mime_type.as_deref().map(line);
            link.size = size;
            link.annotations = annotations;
            ContentBlock::ResourceLink(link)
        }
        BlockContent::Resource {
            uri,
            mime_type,
            body,
        } => {
            let uri = visible_line(&uri, MAX_URI_CHARS);
            let mime_type = mime_type.as_deref().map(line);
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

fn line(text: &str) -> String {
    visible_line(text, MAX_LINE_CHARS)
}

#[cfg(test)]
mod tests {
    use toolward_host::{ErrorClass, ErrorCode, Output};

    use super::*;

    fn reply(structured: Value, content: Vec<Block>) -> Reply {
        // Only a host can make a reply: take the reply of a call that fails at once, and put the
        // output in.
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
        let result = of(reply(json!({"words": 2}), Vec::new()), Structure::Value);
        let result = serde_json::to_value(result).unwrap();
        assert_eq!(result["structuredContent"], json!({"words": 2}));
        assert_eq!(
            result["content"],
            json!([{"type": "text", "text": "{\"words\":2}"}])
        );
        assert_eq!(result["isError"], json!(false));
        assert_eq!(result["_meta"]["toolward/call"]["tool"], json!("a.b"));
    }

    fn image() -> Block {
        Block {
            content: BlockContent::Image {
                data: vec![1, 2, 3],
                mime_type: "image/png".to_owned(),
            },
            annotations: None,
        }
    }

    #[test]
    fn a_tool_without_a_value_sends_its_blocks_alone() {
        let result = of(reply(Value::Null, vec![image()]), Structure::None);
        let result = serde_json::to_value(result).unwrap();
        assert_eq!(result.get("structuredContent"), None);
        assert_eq!(result["content"].as_array().unwrap().len(), 1, "{result}");
    }

    #[test]
    fn a_value_that_blocks_would_hide_is_also_sent_as_text() {
        for structure in [Structure::None, Structure::Value, Structure::Wrapped] {
            let result = of(reply(json!({"points": [1, 2]}), vec![image()]), structure);
            let result = serde_json::to_value(result).unwrap();
            assert_eq!(result["content"][0]["type"], "image", "{result}");
            assert_eq!(result["content"][1]["text"], "{\"points\":[1,2]}");
            let sent = result.get("structuredContent").is_some();
            assert_eq!(sent, structure != Structure::None, "{result}");
        }
    }

    #[test]
    fn a_text_that_is_the_value_is_sent_once() {
        let text = |text: &str| Block {
            content: BlockContent::Text {
                text: text.to_owned(),
            },
            annotations: None,
        };
        for (value, block) in [
            (json!({"text": "Hello"}), "Hello"),
            (json!("Hello"), "Hello"),
            (json!({"a": 1, "b": [2]}), "{ \"b\": [2], \"a\": 1 }"),
        ] {
            let result = of(reply(value, vec![text(block)]), Structure::Value);
            assert_eq!(result.content.len(), 1, "{result:?}");
        }
        let more = json!({"text": "Hello", "more": 1});
        let result = of(reply(more, vec![text("Hello")]), Structure::Value);
        assert_eq!(result.content.len(), 2, "{result:?}");
    }

    #[test]
    fn an_output_that_is_no_object_stands_under_result() {
        let result = of(reply(json!([1, 2]), Vec::new()), Structure::Wrapped);
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
        let result = serde_json::to_value(of(reply, Structure::Value)).unwrap();
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
    fn all_of_an_error_that_somebody_else_wrote_is_made_visible() {
        let hidden = "a\u{202e}\u{1b}[2J";
        let mut error = CallError::new(
            ErrorCode::UPSTREAM_ERROR,
            ErrorClass::ExecutionFailed,
            hidden,
        )
        .with_hint(hidden);
        error.cause = Some(json!({ "stderr": hidden, hidden: [hidden] }));
        let result = serde_json::to_value(failed(&error)).unwrap();
        let visible = "a\\u{202e}\\e[2J";
        let error = &result["_meta"]["toolward/error"];
        assert_eq!(error["message"], visible);
        assert_eq!(error["hint"], visible);
        assert_eq!(
            error["cause"],
            json!({"stderr": visible, visible: [visible]})
        );
        assert!(!result.to_string().contains('\u{202e}'), "{result}");
    }

    #[test]
    fn what_is_said_of_a_resource_is_made_visible_and_its_content_is_left_alone() {
        let hidden = || "a\u{202e}".to_owned();
        let link = BlockContent::ResourceLink {
            uri: hidden(),
            name: hidden(),
            title: Some(hidden()),
            description: Some(hidden()),
            mime_type: Some(hidden()),
            size: None,
        };
        let embedded = BlockContent::Resource {
            uri: hidden(),
            mime_type: Some(hidden()),
            body: ResourceBody::Text(hidden()),
        };
        let blocks = [link, embedded].map(|content| Block {
            content,
            annotations: None,
        });
        let result =
            serde_json::to_value(of(reply(Value::Null, blocks.to_vec()), Structure::None)).unwrap();
        let [link, embedded] = [&result["content"][0], &result["content"][1]["resource"]];
        assert!(!link.to_string().contains('\u{202e}'), "{link}");
        for text in [
            &link["uri"],
            &link["mimeType"],
            &embedded["uri"],
            &embedded["mimeType"],
        ] {
            assert_eq!(text, "a\\u{202e}");
        }
        assert_eq!(embedded["text"], hidden());
    }

    #[test]
    fn binary_blocks_are_base64() {
        let result =
            serde_json::to_value(of(reply(Value::Null, vec![image()]), Structure::None)).unwrap();
        let expected = json!([{"type": "image", "data": "AQID", "mimeType": "image/png"}]);
        assert_eq!(result["content"], expected);
    }
}
