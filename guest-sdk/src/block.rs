//! Content blocks: content for the model or the person, in addition to the JSON.

use alloc::string::String;
use alloc::vec::Vec;

use crate::bindings::toolward::driver::types as wit;

/// The audience of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The person behind the caller.
    User,
    /// The model.
    Assistant,
}

/// One content block.
///
/// ```
/// use toolward_guest::Block;
///
/// let chart = Block::image("image/png", vec![0x89, b'P', b'N', b'G']).for_user().priority(0.8);
/// let source = Block::link("https://example.org/data.csv", "data.csv")
///     .title("The data").mime_type("text/csv").size(2048);
/// let inside = Block::embedded_text("memo:1", "Remember the milk.").mime_type("text/plain");
/// # assert_ne!(chart, source);
/// # assert_ne!(source, inside);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Block(wit::Block);

impl Block {
    fn new(content: wit::Content) -> Self {
        Block(wit::Block {
            content,
            annotations: None,
        })
    }

    /// Plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(wit::Content::Text(text.into()))
    }

    /// An image with this media type and the file's bytes.
    pub fn image(mime_type: impl Into<String>, data: impl Into<Vec<u8>>) -> Self {
        Self::new(wit::Content::Image(wit::Media {
            data: data.into(),
            mime_type: mime_type.into(),
        }))
    }

    /// A recording with this media type and the file's bytes.
    pub fn audio(mime_type: impl Into<String>, data: impl Into<Vec<u8>>) -> Self {
        Self::new(wit::Content::Audio(wit::Media {
            data: data.into(),
            mime_type: mime_type.into(),
        }))
    }

    /// A link to a resource.
    pub fn link(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self::new(wit::Content::ResourceLink(wit::Link {
            uri: uri.into(),
            name: name.into(),
            title: None,
            description: None,
            mime_type: None,
            size: None,
        }))
    }

    /// A text resource that is contained in the result.
    pub fn embedded_text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self::embedded(uri.into(), wit::ResourceBody::Text(text.into()))
    }

    /// A binary resource that is contained in the result.
    pub fn embedded_bytes(uri: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self::embedded(uri.into(), wit::ResourceBody::Blob(bytes.into()))
    }

    fn embedded(uri: String, body: wit::ResourceBody) -> Self {
        Self::new(wit::Content::Embedded(wit::EmbeddedResource {
            uri,
            mime_type: None,
            body,
        }))
    }

    /// Sets the media type of a link, an embedded resource, an image or a recording. Text has no
    /// media type.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        let mime_type = mime_type.into();
        match &mut self.0.content {
            wit::Content::Text(_) => {}
            wit::Content::Image(media) | wit::Content::Audio(media) => media.mime_type = mime_type,
            wit::Content::ResourceLink(link) => link.mime_type = Some(mime_type),
            wit::Content::Embedded(resource) => resource.mime_type = Some(mime_type),
        }
        self
    }

    /// Sets a link's title for people. Other blocks have no title.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        if let wit::Content::ResourceLink(link) = &mut self.0.content {
            link.title = Some(title.into());
        }
        self
    }

    /// Sets a link's description. Other blocks have no description.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        if let wit::Content::ResourceLink(link) = &mut self.0.content {
            link.description = Some(description.into());
        }
        self
    }

    /// Sets a link's size in bytes. Other blocks have no size.
    #[must_use]
    pub fn size(mut self, bytes: u64) -> Self {
        if let wit::Content::ResourceLink(link) = &mut self.0.content {
            link.size = Some(bytes);
        }
        self
    }

    /// Marks the block as meant for the person.
    #[must_use]
    pub fn for_user(self) -> Self {
        self.audience(Role::User)
    }

    /// Marks the block as meant for the model.
    #[must_use]
    pub fn for_assistant(self) -> Self {
        self.audience(Role::Assistant)
    }

    /// Adds a role to the block's audience. A block without an audience is for all.
    #[must_use]
    pub fn audience(mut self, role: Role) -> Self {
        let role = match role {
            Role::User => wit::Role::User,
            Role::Assistant => wit::Role::Assistant,
        };
        self.annotations().audience.push(role);
        self
    }

    /// Sets the priority, from 0.0 (least important) to 1.0 (most important). The host clamps other
    /// values.
    #[must_use]
    pub fn priority(mut self, priority: f64) -> Self {
        self.annotations().priority = Some(priority);
        self
    }

    /// The text of a text block.
    pub fn as_text(&self) -> Option<&str> {
        match &self.0.content {
            wit::Content::Text(text) => Some(text),
            _ => None,
        }
    }

    fn annotations(&mut self) -> &mut wit::Annotations {
        self.0.annotations.get_or_insert(wit::Annotations {
            audience: Vec::new(),
            priority: None,
        })
    }

    pub(crate) fn from_raw(raw: wit::Block) -> Self {
        Block(raw)
    }

    pub(crate) fn into_raw(self) -> wit::Block {
        self.0
    }
}
