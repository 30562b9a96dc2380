//! The bundle that a document comes from: how it is labelled, and who may see it.

use rmcp::model::MetaObject;
use serde_json::{Value, json};
use toolward_bundle::content::Content;
use toolward_bundle::text::{visible, visible_line};

use crate::principal::Tools;

/// Characters of a title. Escaped, it may have more than its author wrote.
const MAX_TITLE_CHARS: usize = 120;
/// Characters of a description.
const MAX_DESCRIPTION_CHARS: usize = 4000;
/// Characters of a publisher's name.
const MAX_PUBLISHER_CHARS: usize = 120;

/// A bundle, as far as its documents are concerned.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Provenance {
    pub(super) publisher: String,
    /// The bundle's id.
    pub(super) bundle: String,
    version: String,
    /// Its tools: ids and major versions.
    tools: Vec<(String, u64)>,
}

impl Provenance {
    pub(super) fn of(content: &Content) -> Self {
        let tools = content.tools.iter().map(|entry| &entry.tool);
        Self {
            publisher: content.origin.publisher(),
            bundle: content.manifest.id.to_string(),
            version: content.manifest.version.to_string(),
            tools: tools
                .map(|tool| (tool.id.to_string(), tool.version.major))
                .collect(),
        }
    }

    /// Whether a tool of the bundle is among these, or they name the bundle itself.
    pub(super) fn is_for(&self, tools: &Tools) -> bool {
        match tools {
            Tools::All => true,
            tools => {
                let mut own = self.tools.iter();
                own.any(|(id, major)| tools.include(id, *major))
                    || tools.include(&self.bundle, u64::MAX)
            }
        }
    }

    /// The host's own URI of a file of the bundle. The publisher's name is one
    /// segment with any content, so no two bundles have one URI.
    pub(super) fn uri(&self, path: &str) -> String {
        let mut uri = String::from("toolward://");
        for byte in self.publisher.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    uri.push(char::from(byte));
                }
                byte => uri.push_str(&format!("%{byte:02X}")),
            }
        }
        format!("{uri}/{}/{path}", self.bundle)
    }

    /// How an error names a file of the bundle.
    pub(super) fn place(&self, path: &str) -> String {
        let publisher = visible_line(&self.publisher, MAX_PUBLISHER_CHARS);
        format!("{path} of {} by {publisher}", self.bundle)
    }

    /// A name for people.
    pub(super) fn title(text: &str) -> String {
        visible_line(text, MAX_TITLE_CHARS)
    }

    /// The label comes first: what follows is the publisher's and may say
    /// anything.
    pub(super) fn description(&self, text: &str) -> String {
        let publisher = visible_line(&self.publisher, MAX_PUBLISHER_CHARS);
        format!("[{publisher}] {}", visible(text, MAX_DESCRIPTION_CHARS))
    }

    /// `_meta` of a document: what it is called in its bundle, and whose that is.
    pub(super) fn meta(&self, kind: &str, what: &str, name: &str) -> MetaObject {
        let mut about = serde_json::Map::new();
        about.insert(what.to_owned(), Value::from(name));
        about.insert("bundle".to_owned(), Value::from(self.bundle.as_str()));
        about.insert("version".to_owned(), Value::from(self.version.as_str()));
        let publisher = visible_line(&self.publisher, MAX_PUBLISHER_CHARS);
        about.insert("publisher".to_owned(), json!(publisher));
        let mut meta = MetaObject::new();
        meta.insert(kind.to_owned(), Value::Object(about));
        meta
    }
}
