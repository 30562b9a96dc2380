//! The origin of a request: the key of pooled connections and of sent secrets.

/// Scheme, host and port (RFC 6454).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) https: bool,
    /// In normal form.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Origin {
    /// The port of a URL that names none.
    pub(crate) fn default_port(https: bool) -> u16 {
        if https { 443 } else { 80 }
    }
}
