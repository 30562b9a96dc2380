//! The rules of a route, as plain data: its hosts, and the places to which each secret may be sent.
//! They are built once. Without rules, every request is refused.

use http::{HeaderMap, HeaderName, Method, Uri};
use toolward_contract::url_path;
use toolward_policy::{HostGrant, HostTerms, SecretBinding, SecretPosition};
use toolward_support::report::codes;

use crate::authority::{self, Origin};
use crate::error::{Denied, Rule};
use crate::{headers, target};

/// The rules of one route.
///
/// ```
/// use toolward_contract::capability::HostPattern;
/// use toolward_egress::{Rules, RulesError};
/// use toolward_policy::{HostGrant, HostTerms, SecretBinding, SecretPosition};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let host = HostGrant {
///     host: HostPattern::parse("api.example")?,
///     unsafe_methods: false,
///     terms: HostTerms::default(),
/// };
/// let mut binding = SecretBinding {
///     host: "api.example".to_owned(),
///     port: 443,
///     position: SecretPosition::Header("authorization".to_owned()),
///     methods: vec!["GET".to_owned()],
///     path_prefix: "/v1".to_owned(),
/// };
/// let secret = ("api-key".to_owned(), binding.clone());
/// assert!(Rules::new(vec![host], [secret]).is_ok());
///
/// binding.host = "*.example".to_owned();
/// let error = Rules::new(Vec::new(), [("api-key".to_owned(), binding)]);
/// assert!(matches!(error, Err(RulesError::Secret { part: "the host", .. })));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Rules {
    hosts: Vec<HostGrant>,
    secrets: Vec<SecretPlace>,
}

/// The parts of a request that rules are about.
pub(crate) struct RequestView<'a> {
    pub(crate) origin: &'a Origin,
    pub(crate) method: &'a Method,
    pub(crate) uri: &'a Uri,
    pub(crate) headers: &'a HeaderMap,
}

codes! {
    /// Why rules are invalid.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum RulesError: Error {
        Header { host: String, found: String } = "rule-header", "a rule lets a guest set a header other than `authorization` and `cookie`",
            ("host {host}: expected `authorization` or `cookie` among the headers, found {found:?}");
        /// `found` is the value of the rule's `part`.
        Secret { slug: String, part: &'static str, found: String } = "rule-secret",
            "a part of a secret's rule could never match, or would match too much",
            ("secret {slug:?}: {part} {found:?} cannot be used");
    }
}

impl Rules {
    /// Creates rules for these hosts, and for secrets by name. A request is allowed if *one* host's
    /// rule allows all of it; rules are never combined.
    ///
    /// # Errors
    /// The first rule that is invalid.
    pub fn new(
        hosts: Vec<HostGrant>,
        secrets: impl IntoIterator<Item = (String, SecretBinding)>,
    ) -> Result<Rules, RulesError> {
        for rule in &hosts {
            // `admit` enforces `plain_http` and `guest_headers`, and `network` enforces
            // `addresses`. If a new term is added, this pattern does not compile until the term is
            // named here.
            let HostTerms {
                plain_http: _,
                addresses: _,
                guest_headers,
            } = &rule.terms;
            let unknown =
                |name: &&String| !headers::CREDENTIALS.iter().any(|own| own == name.as_str());
            if let Some(found) = guest_headers.iter().find(unknown) {
                return Err(RulesError::Header {
                    host: rule.host.to_string(),
                    found: found.clone(),
                });
            }
        }
        let secrets = secrets.into_iter();
        let secrets = secrets.map(|(slug, binding)| SecretPlace::read(slug, binding));
        Ok(Rules {
            hosts,
            secrets: secrets.collect::<Result<_, _>>()?,
        })
    }

    pub(crate) fn secrets(&self) -> &[SecretPlace] {
        &self.secrets
    }

    /// The rules that allow a request in which the guest itself sets the headers `credentials`. The
    /// host's IP address is checked later, after it was resolved.
    pub(crate) fn admit<'a>(
        &'a self,
        request: &RequestView<'_>,
        credentials: &[HeaderName],
    ) -> Result<Vec<&'a HostGrant>, Denied> {
        let Origin { https, host, port } = request.origin;
        let default_port = *port == Origin::default_port(*https);
        let mut left: Vec<&HostGrant> = self.hosts.iter().collect();
        type Passes<'p> = &'p dyn Fn(&HostGrant) -> bool;
        let mut keep = |passes: Passes<'_>, rule, subject: &dyn Fn() -> String| {
            left.retain(|rule| passes(rule));
            match left.is_empty() {
                true => Err(Denied::new(rule, subject())),
                false => Ok(()),
            }
        };
        let at = || format!("{host}:{port}");
        let matches = |rule: &HostGrant| rule.host.matches(host, *port, default_port);
        keep(&matches, Rule::HostNotGranted, &at)?;
        keep(
            &|rule| *https || rule.terms.plain_http,
            Rule::PlainHttp,
            &at,
        )?;
        let method = request.method;
        let sent = || format!("{method} {}", at());
        let by_method = |rule: &HostGrant| method.is_safe() || rule.unsafe_methods;
        keep(&by_method, Rule::UnsafeMethod, &sent)?;
        for name in credentials {
            let granted = |rule: &HostGrant| {
                let mut own = rule.terms.guest_headers.iter();
                own.any(|own| name == own.as_str())
            };
            keep(&granted, Rule::CredentialHeader, &|| name.to_string())?;
        }
        Ok(left)
    }
}

/// Whether a method may be sent at all. CONNECT opens a tunnel, TRACE echoes the request with the
/// secrets in it, and the effects of other methods are unknown.
pub(crate) fn is_known(method: &Method) -> bool {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"];
    KNOWN.contains(&method.as_str())
}

/// A validated [`SecretPosition`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadPosition {
    Header(HeaderName),
    /// The name of a parameter, without escapes.
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

/// A place where a secret may be sent (always over https): a validated [`SecretBinding`].
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
    fn read(slug: String, rule: SecretBinding) -> Result<SecretPlace, RulesError> {
        let refused = |part, found: &str| RulesError::Secret {
            slug: slug.clone(),
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
            path_prefix: rule.path_prefix,
            slug,
        })
    }
}

/// Headers that control the connection, or that the host sets itself when it sends a secret.
const NO_SECRETS_IN: &[HeaderName] = &[
    http::header::ACCEPT_ENCODING,
    http::header::CONTENT_ENCODING,
    http::header::CONTENT_LENGTH,
    http::header::CONTENT_TYPE,
    http::header::RANGE,
];

#[cfg(test)]
mod tests;
