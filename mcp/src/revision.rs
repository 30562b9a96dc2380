//! The features of each revision of the protocol. A client of an older revision fails on a block
//! that it does not know, so results and lists are reduced to the negotiated revision.

use rmcp::model::{
    CallToolResult, ContentBlock, GetPromptResult, Icon, InitializeResult, MetaObject, Prompt,
    ProtocolVersion, Resource, ResourceTemplate, TextContent, Tool,
};
use rmcp::service::{RequestContext, RoleServer};

/// A revision of the protocol, by the date of its version. An older revision is less than a newer
/// one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Revision {
    November2024,
    March2025,
    June2025,
    November2025,
    July2026,
}

impl Revision {
    /// Returns the revision of a request, negotiated or named in the request.
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Self {
        context
            .protocol_version()
            .map_or(Self::November2025, |version| Self::named(&version))
    }

    /// Returns the revision of a version. An unknown version counts as the newest known version
    /// before it.
    pub(crate) fn named(version: &ProtocolVersion) -> Self {
        let all = [
            (ProtocolVersion::V_2026_07_28, Self::July2026),
            (ProtocolVersion::V_2025_11_25, Self::November2025),
            (ProtocolVersion::V_2025_06_18, Self::June2025),
            (ProtocolVersion::V_2025_03_26, Self::March2025),
        ];
        // Versions are dates, which compare as texts.
        let found = all
            .into_iter()
            .find(|(known, _)| version.as_str() >= known.as_str());
        found.map_or(Self::November2024, |(_, revision)| revision)
    }

    /// Whether requests may come as a list. Only one revision has lists.
    pub(crate) fn has_batches(self) -> bool {
        self == Self::March2025
    }

    /// Whether servers may ask the person behind the client.
    pub(crate) fn has_elicitation(self) -> bool {
        self >= Self::June2025
    }

    /// Whether a progress report may have a message.
    pub(crate) fn has_progress_messages(self) -> bool {
        self >= Self::March2025
    }

    /// Whether the revision has `structuredContent`, `outputSchema`, links to resources, `title`,
    /// and `_meta` of listed items.
    fn has_structure(self) -> bool {
        self >= Self::June2025
    }

    fn has_icons(self) -> bool {
        self >= Self::November2025
    }

    /// Reduces the members that every listed item may have.
    fn listed(
        self,
        icons: &mut Option<Vec<Icon>>,
        title: &mut Option<String>,
        meta: &mut Option<MetaObject>,
    ) {
        if !self.has_icons() {
            *icons = None;
        }
        if !self.has_structure() {
            *title = None;
            *meta = None;
        }
    }

    /// Reduces each item of a list to this revision with `of_each`.
    pub(crate) fn all<T>(self, all: Vec<T>, of_each: fn(Self, T) -> T) -> Vec<T> {
        all.into_iter().map(|one| of_each(self, one)).collect()
    }

    pub(crate) fn tool(self, mut tool: Tool) -> Tool {
        self.listed(&mut tool.icons, &mut tool.title, &mut tool.meta);
        if !self.has_structure() {
            tool.output_schema = None;
        }
        if self < Self::March2025 {
            tool.annotations = None;
        }
        tool
    }

    pub(crate) fn prompt(self, mut prompt: Prompt) -> Prompt {
        self.listed(&mut prompt.icons, &mut prompt.title, &mut prompt.meta);
        for argument in prompt.arguments.iter_mut().flatten() {
            self.listed(&mut None, &mut argument.title, &mut None);
        }
        prompt
    }

    pub(crate) fn resource(self, mut file: Resource) -> Resource {
        self.listed(&mut file.icons, &mut file.title, &mut file.meta);
        file
    }

    pub(crate) fn template(self, mut file: ResourceTemplate) -> ResourceTemplate {
        self.listed(&mut file.icons, &mut file.title, &mut file.meta);
        file
    }

    pub(crate) fn result(self, mut result: CallToolResult) -> CallToolResult {
        if !self.has_structure() {
            result.structured_content = None;
        }
        for block in &mut result.content {
            self.block(block);
        }
        result
    }

    pub(crate) fn messages(self, mut result: GetPromptResult) -> GetPromptResult {
        for message in &mut result.messages {
            self.block(&mut message.content);
        }
        result
    }

    /// Reduces the answer that opens a session.
    pub(crate) fn opening(self, mut result: InitializeResult) -> InitializeResult {
        let server = &mut result.server_info;
        self.listed(&mut server.icons, &mut server.title, &mut None);
        if !self.has_icons() {
            server.description = None;
            server.website_url = None;
        }
        if self < Self::March2025 {
            result.capabilities.completions = None;
        }
        result
    }

    /// Replaces a block that the revision does not have by a text.
    fn block(self, block: &mut ContentBlock) {
        let (text, annotations) = match block {
            ContentBlock::Audio(audio) if self < Self::March2025 => {
                // Four characters of Base64 stand for three bytes.
                let bytes = audio.data.trim_end_matches('=').len().saturating_mul(3) / 4;
                let text = format!(
                    "A recording of type {}, {bytes} bytes, which this client can't be sent.",
                    audio.mime_type
                );
                (text, audio.annotations.take())
            }
            ContentBlock::ResourceLink(link) if !self.has_structure() => {
                let mut text = format!("Resource {:?}: {}", link.name, link.uri);
                if let Some(mime_type) = &link.mime_type {
                    text.push_str(&format!(" ({mime_type})"));
                }
                if let Some(description) = &link.description {
                    text.push('\n');
                    text.push_str(description);
                }
                (text, link.annotations.take())
            }
            _ => return,
        };
        let mut text = TextContent::new(text);
        text.annotations = annotations;
        *block = ContentBlock::Text(text);
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{AudioContent, CallToolResult};
    use serde_json::{Value, json};

    use super::*;

    fn result() -> CallToolResult {
        let mut link = Resource::new("https://a.example/x", "x.csv");
        link.mime_type = Some("text/csv".to_owned());
        let mut result = CallToolResult::success(vec![
            ContentBlock::Audio(AudioContent::new("AQIDBA==", "audio/wav")),
            ContentBlock::ResourceLink(link),
        ]);
        result.structured_content = Some(json!({"a": 1}));
        result
    }

    fn kinds(revision: Revision) -> (Vec<String>, Value) {
        let result = serde_json::to_value(revision.result(result())).unwrap();
        let blocks = result["content"].as_array().unwrap();
        let kinds = blocks
            .iter()
            .map(|block| block["type"].as_str().unwrap().to_owned());
        (kinds.collect(), result)
    }

    #[test]
    fn a_block_that_a_revision_lacks_is_a_text_with_uri_name_and_type() {
        let (found, result) = kinds(Revision::November2024);
        assert_eq!(found, ["text", "text"]);
        let text = |at: usize| result["content"][at]["text"].as_str().unwrap().to_owned();
        assert!(
            text(0).contains("audio/wav") && text(0).contains("4 bytes"),
            "{}",
            text(0)
        );
        for part in ["https://a.example/x", "x.csv", "text/csv"] {
            assert!(text(1).contains(part), "{}", text(1));
        }
        assert_eq!(kinds(Revision::March2025).0, ["audio", "text"]);
        for newer in [
            Revision::June2025,
            Revision::November2025,
            Revision::July2026,
        ] {
            assert_eq!(kinds(newer).0, ["audio", "resource_link"]);
        }
    }

    #[test]
    fn a_field_is_sent_from_the_revision_on_that_has_it() {
        let tool = || {
            let mut tool = Tool::new("a", "b", std::sync::Arc::default()).with_title("A");
            tool.output_schema = Some(std::sync::Arc::default());
            tool.annotations = Some(rmcp::model::ToolAnnotations::new());
            tool.icons = Some(Vec::new());
            tool.meta = Some(rmcp::model::MetaObject::new());
            tool
        };
        let members = |revision: Revision| -> Vec<String> {
            let value = serde_json::to_value(revision.tool(tool())).unwrap();
            value.as_object().unwrap().keys().cloned().collect()
        };
        let oldest = ["name", "description", "inputSchema"];
        assert_eq!(members(Revision::November2024), oldest);
        assert_eq!(
            members(Revision::March2025),
            [&oldest[..], &["annotations"]].concat()
        );
        assert!(!members(Revision::June2025).contains(&"icons".to_owned()));
        assert!(members(Revision::June2025).contains(&"outputSchema".to_owned()));
        assert_eq!(members(Revision::November2025).len(), 8);
        assert_eq!(kinds(Revision::March2025).1.get("structuredContent"), None);
        assert!(
            kinds(Revision::June2025)
                .1
                .get("structuredContent")
                .is_some()
        );
    }

    #[test]
    fn a_version_has_what_the_newest_known_one_before_it_has() {
        for (version, revision) in [
            ("2024-11-05", Revision::November2024),
            ("2025-03-26", Revision::March2025),
            ("2025-05-01", Revision::March2025),
            ("2025-06-18", Revision::June2025),
            ("2025-11-25", Revision::November2025),
            ("2026-07-28", Revision::July2026),
        ] {
            let version: ProtocolVersion = serde_json::from_value(json!(version)).unwrap();
            assert_eq!(Revision::named(&version), revision);
        }
        assert!(
            Revision::March2025.has_batches()
                && !Revision::November2024.has_batches()
                && !Revision::June2025.has_batches()
        );
    }
}
