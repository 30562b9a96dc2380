//! Prompts: `prompts/*.md`, messages that a person picks in a client and fills in. Not who may see them.

mod body;

use serde_json::{Map, Value};

use crate::argument::{Argument, arguments};
use crate::codes;
use crate::diagnostic::{Parsed, Position, Report};
use crate::id::ToolId;
use crate::placeholder::Text;
use crate::shared;
use crate::source::{Fields, split};
use crate::wording::{self, plain_name};

/// A validated prompt.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Prompt {
    /// Identifier, within the publisher's prefixes.
    pub id: ToolId,
    /// Display name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What a caller fills in, in order.
    pub arguments: Vec<Argument>,
    /// `metadata.mcp.name`: the name that it asks to be known by instead of its id.
    pub mcp_name: Option<String>,
    /// Everything below `metadata`, as written.
    pub metadata: Map<String, Value>,
    /// The messages, in order; at least one.
    pub messages: Vec<Message>,
}

/// One message of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// Whose words it is.
    pub role: PromptRole,
    /// What it says or carries.
    pub part: Part,
}

/// Whose words a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptRole {
    /// The person's.
    User,
    /// The model's.
    Assistant,
}

/// What a message says or carries.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// Text with places for arguments.
    Text(Text),
    /// A file of the bundle, below `resources/`, as an image or a sound.
    Media {
        /// Its path in the bundle.
        path: String,
        /// The line of the document that says so.
        line: u32,
    },
    /// A file of the bundle, below `resources/`, as an embedded resource.
    File {
        /// Its path in the bundle.
        path: String,
        /// The line of the document that says so.
        line: u32,
    },
    /// The resource of the bundle whose URI is an argument's value.
    Chosen {
        /// The argument's name.
        argument: String,
        /// The line of the document that says so.
        line: u32,
    },
}

impl Prompt {
    /// Reads a prompt. `file` names it in diagnostics.
    #[must_use]
    pub fn parse(file: &str, source: &str) -> Parsed<Prompt> {
        let mut report = Report::new(file);
        let prompt = split(source, &mut report).and_then(|parts| {
            let mut fields = report.read(Fields::of(&parts.root()))?;
            let id = shared::id(&mut fields, &mut report);
            let name = wording::name(&mut fields, &mut report);
            let description = wording::description(&mut fields, &mut report);
            let arguments = arguments(&mut fields, &mut report);
            let metadata = fields.take("metadata");
            let asked = metadata.as_ref();
            let asked = asked.and_then(|field| field.get("mcp")?.get("name"));
            let mcp_name =
                asked.and_then(|node| plain_name(node, "metadata.mcp.name", &mut report));
            let metadata = report.mapping(metadata.as_ref());
            report.unknown(fields);
            let known = !report.has_errors();
            let messages = body::messages(source, parts.body, &mut report);
            // Names that were refused above would be reported twice.
            if known {
                body::check(&messages, &arguments, &mut report);
            }
            if !(1..=body::MAX_MESSAGES).contains(&messages.len()) {
                let message = format!(
                    "expected 1 to {} messages below the front matter, found {}",
                    body::MAX_MESSAGES,
                    messages.len()
                );
                let at = Position {
                    line: body::first_line(source, parts.body),
                    column: 1,
                };
                report.add(&codes::PROMPT_MESSAGES, at, message);
            }
            Some(Prompt {
                id: id?,
                name: name?,
                description: description?,
                arguments,
                mcp_name,
                metadata,
                messages,
            })
        });
        report.finish(prompt)
    }
}
