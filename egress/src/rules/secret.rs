//! The rule for one secret, raw and validated: a rule that could match more than
//! one origin, or more than one position of a request, is refused.

use http::{HeaderName, Method};

use super::{RulesError, is_known};
use crate::authority::{self, Host};
use crate::headers;
use toolward_contract::url_path;

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
pub(crate) enum Position {
    Header(HeaderName),
    /// A name without escapes.
    Query(String),
}

impl Position {
    fn read(position: &SecretPosition) -> Result<Position, (&'static str, &str)> {
        match position {
            SecretPosition::Header(found) => {
                let header: Option<HeaderName> = found.parse().ok();
                header
                    .filter(|name| !headers::is_forbidden(name) && !NO_SECRETS_IN.contains(name))
                    .map(Position::Header)
                    .ok_or(("the header", found))
            }
            SecretPosition::Query(found) => {
                let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
                match !found.is_empty() && found.bytes().all(plain) {
                    true => Ok(Position::Query(found.clone())),
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
    pub(crate) host: Host,
    pub(crate) port: u16,
    pub(crate) position: Position,
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
        let position =
            Position::read(&rule.position).map_err(|(part, found)| refused(part, found))?;
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
            host: authority.host,
            port: rule.port,
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
mod tests {
    use super::*;
    use crate::Rules;

    fn secret() -> SecretRule {
        SecretRule {
            slug: "token".to_owned(),
            host: "api.example".to_owned(),
            port: 443,
            position: SecretPosition::Header("authorization".to_owned()),
            methods: vec!["GET".to_owned()],
            path_prefix: "/repos/".to_owned(),
        }
    }

    #[test]
    fn secrets_are_tied_to_one_clear_place() {
        assert!(Rules::new(Vec::new(), vec![secret()]).is_ok());
        let parameter = SecretRule {
            position: SecretPosition::Query("api_key".to_owned()),
            ..secret()
        };
        assert!(Rules::new(Vec::new(), vec![parameter]).is_ok());
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
                position: SecretPosition::Header("host".to_owned()),
                ..secret()
            },
            SecretRule {
                position: SecretPosition::Header("proxy-authorization".to_owned()),
                ..secret()
            },
            SecretRule {
                position: SecretPosition::Header("content-length".to_owned()),
                ..secret()
            },
            SecretRule {
                position: SecretPosition::Header("a b".to_owned()),
                ..secret()
            },
            SecretRule {
                position: SecretPosition::Query(String::new()),
                ..secret()
            },
            SecretRule {
                position: SecretPosition::Query("a b".to_owned()),
                ..secret()
            },
            SecretRule {
                position: SecretPosition::Query("k%65y".to_owned()),
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
