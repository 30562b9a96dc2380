//! Served resources and templates, and their contents.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::ErrorData;
use rmcp::model::{Resource, ResourceContents, ResourceTemplate};
use serde_json::json;
use toolward_bundle::shown::{MAX_RESOURCE, ResourceEntry};
use toolward_bundle::text::visible_line;
use toolward_contract::argument::{Argument, Text};
use toolward_contract::resource::UriTemplate;

use super::{Provenance, ServedResource, ServedTemplate};

/// How long a URI that fits a template may be, with its percent-encoded values.
pub(super) const MAX_URI_BYTES: usize = 8192;

/// The key of `_meta` for resources.
const META_KEY: &str = "toolward/resource";

/// Values by the names of arguments.
pub(super) type ArgumentValues = BTreeMap<String, String>;

/// A text that a client sent, shortened and made safe to show in an error.
pub(super) fn shown(text: &str) -> String {
    visible_line(text, 512)
}

/// A file that is served under a URI.
#[derive(Debug)]
pub(super) struct FileContent {
    pub(super) uri: String,
    pub(super) entry: ResourceEntry,
    pub(super) digest: [u8; 32],
}

impl ServedResource {
    pub(super) fn new(uri: String, entry: ResourceEntry, provenance: Arc<Provenance>) -> Self {
        let mut listed = Resource::new(uri.clone(), entry.name())
            .with_mime_type(entry.media_type.clone())
            .with_size(entry.bytes.len() as u64)
            .with_meta(provenance.meta(META_KEY, "path", &entry.path));
        if let Some(about) = &entry.about {
            listed = listed
                .with_title(Provenance::title(&about.name))
                .with_description(provenance.description(&about.description));
        }
        Self {
            listed,
            path: entry.path.clone(),
            provenance,
            content: FileContent {
                digest: digest(&uri, &entry),
                uri,
                entry,
            },
        }
    }

    /// Returns the contents: text as text, everything else as base64.
    pub(super) fn contents(&self) -> ResourceContents {
        let contents = match self.entry.text() {
            Some(text) => ResourceContents::text(text, self.uri.clone()),
            None => ResourceContents::blob(self.base64(), self.uri.clone()),
        };
        contents
            .with_mime_type(self.entry.media_type.clone())
            .with_meta(self.provenance.meta(META_KEY, "path", &self.path))
    }

    pub(super) fn base64(&self) -> String {
        STANDARD.encode(&self.entry.bytes)
    }
}

/// A text that is filled in with the values in a URI.
#[derive(Debug)]
pub(super) struct TemplateContent {
    pub(super) template: UriTemplate,
    pub(super) arguments: Vec<Argument>,
    media_type: String,
    text: Text,
    pub(super) digest: [u8; 32],
}

impl ServedTemplate {
    /// `None` if it is not a template, or not text.
    pub(super) fn new(
        template: UriTemplate,
        entry: &ResourceEntry,
        provenance: Arc<Provenance>,
    ) -> Option<Self> {
        let about = entry.about.as_ref().filter(|about| about.is_template())?;
        let listed = ResourceTemplate::new(template.as_str(), entry.name())
            .with_title(Provenance::title(&about.name))
            .with_description(provenance.description(&about.description))
            .with_mime_type(entry.media_type.clone())
            .with_meta(provenance.meta(META_KEY, "path", &entry.path));
        Some(Self {
            listed,
            path: entry.path.clone(),
            provenance,
            content: TemplateContent {
                digest: digest(template.as_str(), entry),
                template,
                arguments: about.arguments.clone(),
                media_type: entry.media_type.clone(),
                text: Text::parse(entry.text()?),
            },
        })
    }

    /// Returns the values in a URI; `None` if the URI does not fit.
    pub(super) fn values(&self, uri: &str) -> Option<ArgumentValues> {
        let values = self.template.values(uri)?.into_iter();
        let values = values.map(|(name, value)| (name.to_owned(), value));
        Some(values.collect())
    }

    /// Returns the contents for a URI with these values.
    pub(super) fn contents(
        &self,
        uri: &str,
        values: &ArgumentValues,
    ) -> Result<ResourceContents, ErrorData> {
        let filled = self.text.fill(MAX_RESOURCE, Cow::Borrowed, |name| {
            let value = values.get(name).map(String::as_str).unwrap_or_default();
            Cow::Owned(escaped(value, &self.media_type))
        });
        let Some(text) = filled else {
            return Err(ErrorData::invalid_params(
                format!("expected at most {MAX_RESOURCE} bytes when filled in, found more"),
                Some(json!({ "uri": shown(uri) })),
            ));
        };
        let meta = self.provenance.meta(META_KEY, "path", &self.path);
        Ok(ResourceContents::text(text, uri)
            .with_mime_type(self.media_type.clone())
            .with_meta(meta))
    }
}

/// A digest of the address, the type and the bytes.
fn digest(uri: &str, entry: &ResourceEntry) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for part in [uri.as_bytes(), entry.media_type.as_bytes(), &entry.bytes] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    *hasher.finalize().as_bytes()
}

/// Escapes a value for a text of this media type: for the inside of a JSON string, or for the text
/// and the attributes of HTML or XML. For other types the value stays unchanged.
fn escaped(value: &str, media_type: &str) -> String {
    let (_, subtype) = media_type.split_once('/').unwrap_or_default();
    if matches!(subtype, "json" | "jsonl") || subtype.ends_with("+json") {
        let quoted = serde_json::Value::from(value).to_string();
        let inner = quoted.strip_prefix('"');
        let inner = inner.and_then(|rest| rest.strip_suffix('"'));
        inner.unwrap_or_default().to_owned()
    } else if matches!(subtype, "html" | "xml") || subtype.ends_with("+xml") {
        let mut text = value.replace('&', "&amp;");
        for (c, entity) in [
            ('<', "&lt;"),
            ('>', "&gt;"),
            ('"', "&quot;"),
            ('\'', "&#39;"),
        ] {
            text = text.replace(c, entity);
        }
        text
    } else {
        value.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn a_value_stays_a_value_in_what_it_is_put_into() {
        let hostile = "\"</a>'\\&\n";
        let json = escaped(hostile, "application/ld+json");
        let read: String = serde_json::from_str(&format!("\"{json}\"")).unwrap();
        assert_eq!(read, hostile);
        assert_eq!(
            escaped("<a b=\"'&", "text/html"),
            "&lt;a b=&quot;&#39;&amp;"
        );
        assert_eq!(escaped(hostile, "text/plain"), hostile);
    }
}
