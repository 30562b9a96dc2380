//! Icons inline in the list of tools, so that clients fetch nothing, and no server
//! learns who looks at one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::Icon;

/// Bytes of all icons of a catalogue together, so that the list of tools stays small.
const MAX_TOTAL_BYTES: usize = 1 << 20;

/// The bytes left for icons.
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
    /// The icon as a `data:` URI; `None` if it does not fit.
    pub(super) fn take(&mut self, icon: &toolward_host::Icon) -> Option<Icon> {
        self.bytes = self.bytes.checked_sub(icon.bytes.len())?;
        let data = STANDARD.encode(&icon.bytes);
        let source = format!("data:{};base64,{data}", icon.mime_type);
        Some(Icon::new(source).with_mime_type(icon.mime_type))
    }
}
