//! Icons within the list of tools, so that there is nothing to fetch, and nobody
//! learns who looks at one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::Icon;

/// Bytes of all icons of a catalogue together: a list of many tools is not to be
/// mostly pictures.
const MAX_TOTAL_BYTES: usize = 1 << 20;

/// What room is left for icons.
pub(super) struct Room {
    bytes: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            bytes: MAX_TOTAL_BYTES,
        }
    }
}

impl Room {
    /// The icon as a `data:` URI; `None` where there is no room left.
    pub(super) fn take(&mut self, icon: &toolward_host::Icon) -> Option<Icon> {
        self.bytes = self.bytes.checked_sub(icon.bytes.len())?;
        let data = STANDARD.encode(&icon.bytes);
        let source = format!("data:{};base64,{data}", icon.mime_type);
        Some(Icon::new(source).with_mime_type(icon.mime_type))
    }
}
