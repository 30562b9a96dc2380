//! Where a request goes.

use http::Uri;
use http::header::HeaderValue;

use crate::authority::{self, Host};
use crate::error::{Denied, Rule};
use crate::origin::Origin;
use crate::target;

/// Where a request goes: connections and secrets are kept by its origin.
pub(super) struct Destination {
    pub(super) host: Host,
    pub(super) origin: Origin,
    /// The path and query, as they are sent.
    pub(super) target: Uri,
}

impl Destination {
    pub(super) fn of(uri: &Uri) -> Result<Destination, Denied> {
        let (Some(scheme), Some(own)) = (uri.scheme_str(), uri.authority()) else {
            return Err(Denied::new(Rule::NotAbsolute, uri.to_string()));
        };
        let https = match scheme {
            "https" => true,
            "http" => false,
            _ => return Err(Denied::new(Rule::Scheme, scheme)),
        };
        let authority = authority::parse(own.as_str())?;
        let text = uri.path_and_query().map_or("/", |target| target.as_str());
        target::parse(text)?;
        let target = text.parse();
        Ok(Destination {
            origin: Origin {
                https,
                host: authority.host.to_string(),
                port: authority.port.unwrap_or(Origin::default_port(https)),
            },
            host: authority.host,
            target: target.map_err(|_| Denied::new(Rule::Target, text))?,
        })
    }

    /// The `host` header.
    pub(super) fn header(&self) -> Result<HeaderValue, Denied> {
        let Origin { https, host, port } = &self.origin;
        let value = if *port == Origin::default_port(*https) {
            host.parse()
        } else {
            format!("{host}:{port}").parse()
        };
        value.map_err(|_| Denied::new(Rule::Host, host))
    }
}
