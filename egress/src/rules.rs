//! What a route may reach, as plain data: hosts, and the one place where each
//! secret may be sent. Built once; without rules, every request is refused.

mod secret;

use std::net::IpAddr;

use http::{HeaderName, Method};
use ipnet::IpNet;
use toolward_contract::capability::HostPattern;
use toolward_support::report::codes;

use crate::address;
use crate::error::{Denied, Rule};
use crate::headers;

pub(crate) use secret::{Position, SecretPlace};
pub use secret::{SecretPosition, SecretRule};

/// One host pattern that requests may go to. A request passes when *one* rule
/// allows all of it; rules are never combined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRule {
    /// The host; no port means 443, and 80 where `plain_http`.
    pub host: HostPattern,
    /// Whether POST, PUT, PATCH and DELETE pass beside GET, HEAD and OPTIONS.
    pub unsafe_methods: bool,
    /// Whether `http://` passes beside `https://`.
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

/// Why rules are invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RulesError {
    /// A header that no rule lets a guest set.
    #[error("host {host}: expected `authorization` or `cookie` among the headers, found {found:?}")]
    Header {
        /// The host pattern.
        host: String,
        /// The header.
        found: String,
    },
    /// A secret's rule with a part that could never match, or match too much.
    #[error("secret {slug:?}: {part} {found:?} cannot be used")]
    Secret {
        /// The secret's name.
        slug: String,
        /// Which part of the rule.
        part: &'static str,
        /// What it is.
        found: String,
    },
}

codes! {
    for RulesError {
        Self::Header { .. } = "rule-header";
        Self::Secret { .. } = "rule-secret";
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
    #[must_use]
    pub fn hosts(&self) -> &[HostRule] {
        &self.hosts
    }

    /// Whether no request passes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    pub(crate) fn secrets(&self) -> &[SecretPlace] {
        &self.secrets
    }

    /// The rules that allow all of `wanted`; its address is checked once it is
    /// resolved.
    pub(crate) fn admit<'a>(&'a self, wanted: &Wanted<'_>) -> Result<Vec<&'a HostRule>, Denied> {
        let default_port = wanted.port == if wanted.https { 443 } else { 80 };
        let mut rules: Vec<&HostRule> = self
            .hosts
            .iter()
            .filter(|rule| rule.host.matches(wanted.host, wanted.port, default_port))
            .collect();
        let subject = || format!("{}:{}", wanted.host, wanted.port);
        if rules.is_empty() {
            return Err(Denied::new(Rule::HostNotGranted, subject()));
        }
        if !wanted.https {
            rules.retain(|rule| rule.plain_http);
            if rules.is_empty() {
                return Err(Denied::new(Rule::PlainHttp, subject()));
            }
        }
        if !wanted.method.is_safe() {
            rules.retain(|rule| rule.unsafe_methods);
            if rules.is_empty() {
                let subject = format!("{} {}", wanted.method, subject());
                return Err(Denied::new(Rule::UnsafeMethod, subject));
            }
        }
        for name in wanted.credentials {
            rules.retain(|rule| rule.headers.iter().any(|own| name == own.as_str()));
            if rules.is_empty() {
                return Err(Denied::new(Rule::CredentialHeader, name));
            }
        }
        Ok(rules)
    }
}

/// What a request asks of the rules.
pub(crate) struct Wanted<'a> {
    pub(crate) https: bool,
    /// The host in normal form.
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    pub(crate) method: &'a Method,
    /// Headers with credentials that the guest itself sets.
    pub(crate) credentials: &'a [HeaderName],
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
    [
        Method::GET,
        Method::HEAD,
        Method::OPTIONS,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
    ]
    .contains(method)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(pattern: &str) -> HostRule {
        HostRule {
            host: HostPattern::parse(pattern).unwrap(),
            unsafe_methods: false,
            plain_http: false,
            addresses: Vec::new(),
            headers: Vec::new(),
        }
    }

    fn admit(hosts: Vec<HostRule>, url: &str, method: Method, own: &[HeaderName]) -> Option<Rule> {
        let rules = Rules::new(hosts, Vec::new()).unwrap();
        let uri: http::Uri = url.parse().unwrap();
        let https = uri.scheme_str() == Some("https");
        let wanted = Wanted {
            https,
            host: uri.host().unwrap(),
            port: uri.port_u16().unwrap_or(if https { 443 } else { 80 }),
            method: &method,
            credentials: own,
        };
        rules.admit(&wanted).err().map(|denied| denied.rule)
    }

    #[test]
    fn no_rules_allow_nothing() {
        let none = Some(Rule::HostNotGranted);
        assert_eq!(
            admit(Vec::new(), "https://a.example/", Method::GET, &[]),
            none
        );
    }

    #[test]
    fn a_rule_is_for_its_host_and_port() {
        let get = |url| {
            admit(
                vec![host("a.example"), host("b.example:8443")],
                url,
                Method::GET,
                &[],
            )
        };
        assert_eq!(get("https://a.example/"), None);
        assert_eq!(get("https://a.example:443/"), None);
        assert_eq!(get("https://b.example:8443/"), None);
        for url in [
            "https://a.example:8443/",
            "https://a.example:80/",
            "https://b.example/",
            "https://c.a.example/",
            "https://a.example.evil.example/",
        ] {
            assert_eq!(get(url), Some(Rule::HostNotGranted), "{url}");
        }
    }

    #[test]
    fn plain_http_and_unsafe_methods_are_granted_apart() {
        let plain = HostRule {
            plain_http: true,
            ..host("a.example")
        };
        let writing = HostRule {
            unsafe_methods: true,
            ..host("a.example")
        };
        let url = "http://a.example/";
        assert_eq!(
            admit(vec![host("a.example")], url, Method::GET, &[]),
            Some(Rule::PlainHttp)
        );
        assert_eq!(admit(vec![plain.clone()], url, Method::GET, &[]), None);
        assert_eq!(
            admit(
                vec![plain.clone()],
                "http://a.example:443/",
                Method::GET,
                &[]
            ),
            Some(Rule::HostNotGranted)
        );
        // Rules are not combined.
        let both = vec![plain, writing];
        assert_eq!(
            admit(both.clone(), url, Method::POST, &[]),
            Some(Rule::UnsafeMethod)
        );
        assert_eq!(admit(both, "https://a.example/", Method::POST, &[]), None);
        let reading = vec![host("a.example")];
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let denied = admit(reading.clone(), "https://a.example/", method, &[]);
            assert_eq!(denied, Some(Rule::UnsafeMethod));
        }
    }

    #[test]
    fn own_credentials_are_granted_by_name() {
        let rule = HostRule {
            headers: vec!["cookie".to_owned()],
            ..host("a.example")
        };
        let get = |own| admit(vec![rule.clone()], "https://a.example/", Method::GET, own);
        assert_eq!(get(&[http::header::COOKIE]), None);
        assert_eq!(
            get(&[http::header::AUTHORIZATION]),
            Some(Rule::CredentialHeader)
        );
        let odd = HostRule {
            headers: vec!["host".to_owned()],
            ..host("a.example")
        };
        assert_eq!(
            Rules::new(vec![odd], Vec::new()).unwrap_err().code(),
            "rule-header"
        );
    }
}
