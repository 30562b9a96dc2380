//! The rule for one secret, raw and validated: a rule that could match more than
//! one origin, or more than one header, is refused.

use http::{HeaderName, Method};

use super::{RulesError, is_known};
use crate::authority::{self, Host};
use crate::headers;
use crate::target;

/// The one place where a secret is sent, over https only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretRule {
    /// The secret's name.
    pub slug: String,
    /// The host, exactly.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The header.
    pub header: String,
    /// The methods; none means never.
    pub methods: Vec<String>,
    /// What the path starts with, in whole segments; `/` for every path.
    pub path_prefix: String,
}

/// A validated [`SecretRule`].
#[derive(Debug)]
pub(crate) struct SecretPlace {
    pub(crate) slug: String,
    pub(crate) host: Host,
    pub(crate) port: u16,
    pub(crate) header: HeaderName,
    pub(crate) methods: Vec<Method>,
    pub(crate) path_prefix: String,
}

impl SecretPlace {
    /// Whether this is the origin that the secret is tied to.
    pub(crate) fn is_at(&self, https: bool, host: &Host, port: u16) -> bool {
        https && self.host == *host && self.port == port
    }

    pub(super) fn read(rule: SecretRule) -> Result<SecretPlace, RulesError> {
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
        let header: HeaderName = rule
            .header
            .parse()
            .map_err(|_| refused("the header", &rule.header))?;
        if headers::is_forbidden(&header) || NO_SECRETS_IN.contains(&header) {
            return Err(refused("the header", &rule.header));
        }
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
            || !target::is_below(prefix, prefix)
        {
            return Err(refused("the path prefix", prefix));
        }
        Ok(SecretPlace {
            host: authority.host,
            port: rule.port,
            header,
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
mod tests {
    use super::*;
    use crate::Rules;

    fn secret() -> SecretRule {
        SecretRule {
            slug: "token".to_owned(),
            host: "api.example".to_owned(),
            port: 443,
            header: "authorization".to_owned(),
            methods: vec!["GET".to_owned()],
            path_prefix: "/repos/".to_owned(),
        }
    }

    #[test]
    fn secrets_are_tied_to_one_clear_place() {
        assert!(Rules::new(Vec::new(), vec![secret()]).is_ok());
        for wrong in [
            SecretRule {
                host: "*".to_owned(),
                ..secret()
            },
            SecretRule {
                host: "*.example".to_owned(),
                ..secret()
            },
            SecretRule {
                host: "a.example:443".to_owned(),
                ..secret()
            },
            SecretRule {
                host: String::new(),
                ..secret()
            },
            SecretRule {
                port: 0,
                ..secret()
            },
            SecretRule {
                header: "host".to_owned(),
                ..secret()
            },
            SecretRule {
                header: "proxy-authorization".to_owned(),
                ..secret()
            },
            SecretRule {
                header: "content-length".to_owned(),
                ..secret()
            },
            SecretRule {
                header: "a b".to_owned(),
                ..secret()
            },
            SecretRule {
                methods: vec!["TRACE".to_owned()],
                ..secret()
            },
            SecretRule {
                methods: vec!["get".to_owned()],
                ..secret()
            },
            SecretRule {
                path_prefix: String::new(),
                ..secret()
            },
            SecretRule {
                path_prefix: "/a/../b".to_owned(),
                ..secret()
            },
            SecretRule {
                path_prefix: "/a?b".to_owned(),
                ..secret()
            },
            SecretRule {
                path_prefix: "/a%2f".to_owned(),
                ..secret()
            },
        ] {
            let refused = Rules::new(Vec::new(), vec![wrong.clone()]);
            assert_eq!(
                refused.map_err(|e| e.code()).err(),
                Some("rule-secret"),
                "{wrong:?}"
            );
        }
    }
}
