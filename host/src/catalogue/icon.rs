//! Icons: finds the image for a tool in the tool's bundle. Accepts only pixel formats, and decodes
//! nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolward_bundle::content::Content;
use toolward_contract::tool::Tool;

/// The most bytes of an icon. A list of tools carries an icon for each tool.
const MAX_BYTES: usize = 16 << 10;

/// A tool's icon. Untrusted bytes, of which only the magic number was checked.
#[derive(Clone, PartialEq, Eq)]
pub struct Icon {
    /// `image/png`, `image/jpeg` or `image/webp`. SVG is not accepted: it can hold scripts and
    /// links.
    pub mime_type: &'static str,
    /// The file, at most 16 KiB.
    pub bytes: Arc<[u8]>,
}

/// The icons of one bundle: `icons/ID.png` (or `.jpg`, `.jpeg`, `.webp`) for the
/// tool or the bundle with that id.
pub(super) struct Icons {
    by_id: BTreeMap<String, Icon>,
    bundle: String,
}

impl Icons {
    pub(super) fn of(content: &Content) -> Self {
        let files = content.files.iter();
        let named = files.filter_map(|(path, bytes)| {
            let (id, _) = path.strip_prefix("icons/")?.rsplit_once('.')?;
            Some((id.to_owned(), read(path, bytes)?))
        });
        Self {
            by_id: named.collect(),
            bundle: content.manifest.id.to_string(),
        }
    }

    /// The icon of a tool, or else of its bundle.
    pub(super) fn for_tool(&self, tool: &Tool) -> Option<Icon> {
        let own = self.by_id.get(tool.id.as_str());
        own.or_else(|| self.by_id.get(&self.bundle)).cloned()
    }
}

/// The file as an icon, if its name and first bytes agree on the format.
fn read(path: &str, bytes: &Arc<[u8]>) -> Option<Icon> {
    let (_, extension) = path.rsplit_once('.')?;
    let (mime_type, fits) = match extension {
        "png" => ("image/png", bytes.starts_with(b"\x89PNG\r\n\x1a\n")),
        "jpg" | "jpeg" => ("image/jpeg", bytes.starts_with(b"\xff\xd8\xff")),
        "webp" => (
            "image/webp",
            bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP"),
        ),
        _ => return None,
    };
    (fits && bytes.len() <= MAX_BYTES).then(|| Icon {
        mime_type,
        bytes: bytes.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

    #[test]
    fn an_image_is_taken_for_what_its_name_and_first_bytes_say_together() {
        let read = |path: &str, bytes: &[u8]| read(path, &bytes.into());
        assert_eq!(read("icons/a.png", PNG).unwrap().mime_type, "image/png");
        let webp = b"RIFF\0\0\0\0WEBPVP8 ";
        assert_eq!(read("icons/a.webp", webp).unwrap().mime_type, "image/webp");
        assert_eq!(read("icons/a.jpg", PNG), None);
        assert_eq!(read("icons/a.png", b"<svg onload='x'/>"), None);
        assert_eq!(read("icons/a.svg", b"<svg/>"), None);
        assert_eq!(read("icons/a.png", b""), None);
    }

    #[test]
    fn an_image_that_a_list_should_not_carry_is_left_out() {
        let mut large = PNG.to_vec();
        large.resize(MAX_BYTES + 1, 0);
        assert_eq!(read("icons/a.png", &large.into()), None);
    }

    #[test]
    fn a_tool_has_its_own_icon_or_that_of_its_bundle() {
        let icon = |byte: u8| Icon {
            mime_type: "image/png",
            bytes: [byte].into(),
        };
        let icons = Icons {
            by_id: [
                ("text.stats".to_owned(), icon(1)),
                ("text".to_owned(), icon(2)),
            ]
            .into(),
            bundle: "text".to_owned(),
        };
        let tool = |id: &str| {
            let source = format!(
                "---\nname: T\nid: {id}\ndescription: Does.\nversion: 1.0.0\ninputs: {{type: object}}\noutputs: {{type: object}}\n---\n"
            );
            let parsed = Tool::parse("TOOL.md", &source, &toolward_contract::NoScope);
            parsed.value.unwrap()
        };
        assert_eq!(icons.for_tool(&tool("text.stats")), Some(icon(1)));
        assert_eq!(icons.for_tool(&tool("text.other")), Some(icon(2)));
    }
}
