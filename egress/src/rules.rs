//! What a route may reach, as plain data: hosts, and the one place where each
//! secret may be sent. Built once; without rules, every request is refused.

use std::net::IpAddr;

use http::{HeaderName, Method};
use ipnet::IpNet;
use toolward_contract::capability::HostPattern;
use toolward_contract::url_path;
use toolward_support::report::codes;

use crate::authority::{self, Origin};
use crate::error::{Denied, Rule};
use crate::{address, headers, target};

/// One host pattern that requests may go to. A request passes when *one* rule
/// allows all of it; rules are never combined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRule {
    /// The host; no port means 443, and 80 where `plain_http`.
    pub host: HostPattern,
    /// Whether POST, PUT, PATCH and DELETE pass as well as GET, HEAD and OPTIONS.
    pub unsafe_methods: bool,
    /// Whether `http://` passes as well as `https://`.
    pub plain_http: bool,
    /// Addresses that the name may resolve to though they are not globally
    /// reachable.
    pub addresses: Vec<IpNet>,
    /// Which of `authorization` and `cookie` the guest may set itself.
    pub headers: Vec<String>,
}

/// The rules of one route.
///
/// ```
/// use toolward_contract::capability::HostPattern;
/// use toolward_egress::{HostRule, Rules, RulesError, SecretPosition, SecretRule};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let host = HostRule {
///     host: HostPattern::parse("api.example")?,
///     unsafe_methods: false,
///     plain_http: false,
///     addresses: Vec::new(),
///     headers: Vec::new(),
/// };
/// let mut secret = SecretRule {
///     slug: "api-key".to_owned(),
///     host: "api.example".to_owned(),
///     port: 443,
///     position: SecretPosition::Header("authorization".to_owned()),
///     methods: vec!["GET".to_owned()],
///     path_prefix: "/v1".to_owned(),
/// };
/// assert!(Rules::new(vec![host], vec![secret.clone()]).is_ok());
///
/// secret.host = "*.example".to_owned();
/// let error = Rules::new(Vec::new(), vec![secret]);
/// assert!(matches!(error, Err(RulesError::Secret { part: "the host", .. })));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Rules {
    hosts: Vec<HostRule>,
    secrets: Vec<SecretPlace>,
}

codes! {
    /// Why rules are invalid.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum RulesError: Error {
        Header { host: String, found: String } = "rule-header", "a rule has a header that no rule lets a guest set",
            ("host {host}: expected `authorization` or `cookie` among the headers, found {found:?}");
        /// `part` of the rule is `found`.
        Secret { slug: String, part: &'static str, found: String } = "rule-secret",
            "a secret's rule has a part that could never match, or match too much",
            ("secret {slug:?}: {part} {found:?} cannot be used");
    }
}

impl Rules {
    /// Rules for these hosts and secrets.
    ///
    /// # Errors
    /// The first rule that is invalid.
    pub fn new(hosts: Vec<HostRule>, secrets: Vec<SecretRule>) -> Result<Rules, RulesError> {
        for rule in &hosts {
            let unknown =
                |name: &&String| !headers::CREDENTIALS.iter().any(|own| own == name.as_str());
            if let Some(found) = rule.headers.iter().find(unknown) {
                return Err(RulesError::Header {
                    host: rule.host.to_string(),
                    found: found.clone(),
                });
            }
        }
        let secrets = secrets.into_iter().map(SecretPlace::read);
        Ok(Rules {
            hosts,
            secrets: secrets.collect::<Result<_, _>>()?,
        })
    }

    /// The rules for hosts.
    pub fn hosts(&self) -> &[HostRule] {
        &self.hosts
    }

    /// Whether no request passes.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    pub(crate) fn secrets(&self) -> &[SecretPlace] {
        &self.secrets
    }

    /// The rules that allow a request to `origin` in which the guest itself sets `credentials`; the
    /// address is checked once it is resolved.
    pub(crate) fn admit<'a>(
        &'a self,
        origin: &Origin,
        method: &Method,
        credentials: &[HeaderName],
    ) -> Result<Vec<&'a HostRule>, Denied> {
        let Origin { https, host, port } = origin;
        let default_port = *port == Origin::default_port(*https);
        let mut left: Vec<&HostRule> = self.hosts.iter().collect();
        type Passes<'p> = &'p dyn Fn(&HostRule) -> bool;
        let mut keep = |passes: Passes<'_>, rule, subject: &dyn Fn() -> String| {
            left.retain(|rule| passes(rule));
            match left.is_empty() {
                true => Err(Denied::new(rule, subject())),
                false => Ok(()),
            }
        };
        let at = || format!("{host}:{port}");
        let matches = |rule: &HostRule| rule.host.matches(host, *port, default_port);
        keep(&matches, Rule::HostNotGranted, &at)?;
        keep(&|rule| *https || rule.plain_http, Rule::PlainHttp, &at)?;
        let sent = || format!("{method} {}", at());
        let by_method = |rule: &HostRule| method.is_safe() || rule.unsafe_methods;
        keep(&by_method, Rule::UnsafeMethod, &sent)?;
        for name in credentials {
            let granted = |rule: &HostRule| rule.headers.iter().any(|own| name == own.as_str());
            keep(&granted, Rule::CredentialHeader, &|| name.to_string())?;
        }
        Ok(left)
    }
}

impl HostRule {
    /// Whether a connection to `address` may be used under this rule.
    pub(crate) fn admits(&self, address: IpAddr) -> bool {
        address::check(address, &self.addresses).is_ok()
    }
}

/// Whether a method may be sent at all. CONNECT opens a tunnel, TRACE echoes
/// the request with the secrets in it, and the effects of others are unknown.
pub(crate) fn is_known(method: &Method) -> bool {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"];
    KNOWN.contains(&method.as_str())
}

/// The one place where a secret is sent, over https only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretRule {
    /// The secret's name.
    pub slug: String,
    /// The host, exactly.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The position in the request.
    pub position: SecretPosition,
    /// The methods; none means never.
    pub methods: Vec<String>,
    /// What the path starts with, in whole segments; `/` for every path.
    pub path_prefix: String,
}

/// Where in a request a secret is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretPosition {
    /// In this header, alone or after a scheme.
    Header(String),
    /// As the whole value of this parameter of the query, once.
    Query(String),
}

/// A validated [`SecretPosition`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadPosition {
    Header(HeaderName),
    /// A name without escapes.
    Query(String),
}

impl ReadPosition {
    fn read(position: &SecretPosition) -> Result<ReadPosition, (&'static str, &str)> {
        match position {
            SecretPosition::Header(found) => {
                let header: Option<HeaderName> = found.parse().ok();
                header
                    .filter(|name| !headers::is_forbidden(name) && !NO_SECRETS_IN.contains(name))
                    .map(ReadPosition::Header)
                    .ok_or(("the header", found))
            }
            SecretPosition::Query(found) => {
                let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
                match !found.is_empty() && found.bytes().all(plain) {
                    true => Ok(ReadPosition::Query(found.clone())),
                    false => Err(("the parameter", found)),
                }
            }
        }
    }
}

/// A validated [`SecretRule`].
#[derive(Debug)]
pub(crate) struct SecretPlace {
    pub(crate) slug: String,
    /// The origin that the secret is tied to.
    pub(crate) origin: Origin,
    pub(crate) position: ReadPosition,
    pub(crate) methods: Vec<Method>,
    pub(crate) path_prefix: String,
}

impl SecretPlace {
    fn read(rule: SecretRule) -> Result<SecretPlace, RulesError> {
        let refused = |part, found: &str| RulesError::Secret {
            slug: rule.slug.clone(),
            part,
            found: found.to_owned(),
        };
        let authority =
            authority::parse(&rule.host).map_err(|_| refused("the host", &rule.host))?;
        if authority.port.is_some() || rule.port == 0 {
            return Err(refused("the port", &rule.port.to_string()));
        }
        let position =
            ReadPosition::read(&rule.position).map_err(|(part, found)| refused(part, found))?;
        let method = |text: &String| {
            let method: Option<Method> = text.parse().ok();
            method
                .filter(is_known)
                .ok_or_else(|| refused("the method", text))
        };
        let methods = rule.methods.iter().map(method).collect::<Result<_, _>>()?;
        let prefix = &rule.path_prefix;
        if target::parse(prefix).is_err()
            || prefix.contains('?')
            || !url_path::is_below(prefix, prefix)
        {
            return Err(refused("the path prefix", prefix));
        }
        Ok(SecretPlace {
            origin: Origin {
                https: true,
                host: authority.host.to_string(),
                port: rule.port,
            },
            position,
            methods,
            path_prefix: rule.path_prefix.clone(),
            slug: rule.slug,
        })
    }
}

/// Headers that control the connection, or that the host sets itself when it
/// sends a secret.
const NO_SECRETS_IN: &[HeaderName] = &[
    http::header::ACCEPT_ENCODING,
    http::header::CONTENT_ENCODING,
    http::header::CONTENT_LENGTH,
    http::header::CONTENT_TYPE,
    http::header::RANGE,
];

#[cfg(test)]
mod tests;
