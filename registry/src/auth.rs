//! Authentication: checks a challenge of a registry (`WWW-Authenticate`, RFC 9110, section 11.6.1)
//! and answers it with credentials. Credentials go only to the registry itself or to an allowed
//! token server.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Method, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use url::Url;
use zeroize::Zeroizing;

use crate::address::{bare_registry, check_scheme, origin, shown};
use crate::credentials::Login;
use crate::failure::{Failure, FailureReason, quoted};
use crate::hosts::{HostRole, UnknownHost, is_realm};
use crate::response::{read, unexpected};
use crate::transport::{AccessScope, Operation, RegistryRequest, RegistryTransport};

/// How large a token server's answer may be, in bytes.
const MAX_TOKEN: u64 = 256 * 1024;

/// The answer of a token server (the distribution project's token specification).
#[derive(Deserialize)]
struct TokenAnswer {
    token: Option<String>,
    access_token: Option<String>,
}

impl Operation {
    /// Answers a challenge that came with 401 from `asked`, and stores the resulting authorization.
    pub(crate) async fn authorise(
        &self,
        access: &AccessScope,
        asked: &Url,
        headers: &HeaderMap,
    ) -> Result<(), Failure> {
        let login = self
            .transport
            .credentials
            .login(&access.registry, self.transport.plain)
            .await?;
        let value = match challenge(headers) {
            Some(Challenge::Basic) => {
                let login = login.ok_or_else(|| needed(access))?;
                basic(&login)?
            }
            Some(Challenge::Bearer { realm, service }) => {
                let realm = self.transport.check_realm(access, asked, &realm)?;
                self.token(access, realm, service, login).await?
            }
            None => {
                return Err(Failure::new(FailureReason::ResponseInvalid)
                    .at(shown(asked))
                    .expected("a challenge for basic or bearer authentication"));
            }
        };
        self.transport.grant(access, value);
        Ok(())
    }

    async fn token(
        &self,
        access: &AccessScope,
        mut realm: Url,
        service: Option<String>,
        login: Option<Login>,
    ) -> Result<HeaderValue, Failure> {
        let actions = if access.push { "pull,push" } else { "pull" };
        {
            let mut query = realm.query_pairs_mut();
            if let Some(service) = &service {
                query.append_pair("service", service);
            }
            // The scope that this client needs, not the scope of the challenge.
            query.append_pair(
                "scope",
                &format!("repository:{}:{actions}", access.repository),
            );
        }
        let mut ask = RegistryRequest::new(Method::GET, realm, None);
        let anonymous = login.is_none();
        if let Some(login) = login {
            ask.headers.insert(AUTHORIZATION, basic(&login)?);
        }
        let response = self.answered(&ask, None).await?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if anonymous => {
                return Err(needed(access));
            }
            _ => return Err(unexpected(response).await),
        }
        let place = shown(response.url());
        let body = read(response, MAX_TOKEN).await?;
        let invalid = || Failure::new(FailureReason::ResponseInvalid).at(place.clone());
        // serde's error is dropped, since it might quote the token.
        let answer: TokenAnswer = serde_json::from_slice(&body)
            .map_err(|_| invalid().expected("a JSON object with `token`"))?;
        let token = answer
            .token
            .or(answer.access_token)
            .filter(|token| !token.is_empty())
            .map(SecretString::from)
            .ok_or_else(|| invalid().expected("a JSON object with `token`"))?;
        let header = Zeroizing::new(format!("Bearer {}", token.expose_secret()));
        let mut value = HeaderValue::from_str(&header)
            .map_err(|_| invalid().expected("a token that a header can carry"))?;
        value.set_sensitive(true);
        Ok(value)
    }
}

impl RegistryTransport {
    /// Checks that credentials may be sent to the realm, the address of a token server. Its origin
    /// must be the registry's, or be known or allowed for this registry. It must use https, or
    /// plain http on this machine if the client allows that.
    fn check_realm(&self, access: &AccessScope, asked: &Url, realm: &str) -> Result<Url, Failure> {
        let refuse = || Failure::new(FailureReason::RealmRefused).at(shown(asked));
        let own = origin(asked);
        let url =
            Url::parse(realm).map_err(|_| refuse().expected("an address").found(quoted(realm)))?;
        check_scheme(&url, self.plain)
            .map_err(|_| refuse().expected("https").found(shown(&url)))?;
        let realm_origin = origin(&url);
        let asking = bare_registry(&access.registry, self.plain);
        let allowed = realm_origin == own
            || is_realm(asking, &realm_origin)
            || self
                .realms
                .iter()
                .any(|(registry, origin)| registry == asking && *origin == realm_origin);
        if allowed {
            return Ok(url);
        }
        let refused = refuse().expected(format!(
            "{own}, or a realm that is allowed for this registry"
        ));
        Err(UnknownHost::explain(HostRole::TokenServer, &url, refused))
    }
}

fn needed(access: &AccessScope) -> Failure {
    Failure::new(FailureReason::CredentialsNeeded).at(access.registry.clone())
}

fn basic(login: &Login) -> Result<HeaderValue, Failure> {
    let pair = Zeroizing::new(format!(
        "{}:{}",
        login.username(),
        login.password().expose_secret()
    ));
    let header = Zeroizing::new(format!("Basic {}", BASE64_STANDARD.encode(pair.as_bytes())));
    let mut value = HeaderValue::from_str(&header)
        .map_err(|_| Failure::new(FailureReason::CredentialsInvalid))?;
    value.set_sensitive(true);
    Ok(value)
}

/// How long a challenge may be, in bytes.
const MAX_CHALLENGE: usize = 4096;

/// A challenge that can be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Challenge {
    /// Name and password to the registry itself.
    Basic,
    /// A token from `realm`.
    Bearer {
        realm: String,
        service: Option<String>,
    },
}

/// The first challenge that can be answered.
pub(crate) fn challenge(headers: &HeaderMap) -> Option<Challenge> {
    headers
        .get_all(WWW_AUTHENTICATE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .filter(|value| value.len() <= MAX_CHALLENGE)
        .find_map(parse)
}

fn parse(value: &str) -> Option<Challenge> {
    let (scheme, rest) = value.trim().split_once(' ').unwrap_or((value.trim(), ""));
    if scheme.eq_ignore_ascii_case("basic") {
        return Some(Challenge::Basic);
    }
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let mut realm = None;
    let mut service = None;
    let mut rest = rest;
    while !rest.trim_start().is_empty() {
        let (name, value, after) = parameter(rest)?;
        rest = after;
        let slot = match name.to_ascii_lowercase().as_str() {
            "realm" => &mut realm,
            "service" => &mut service,
            _ => continue,
        };
        // A repeated parameter is ambiguous: two parsers might choose different values.
        if slot.replace(value).is_some() {
            return None;
        }
    }
    Some(Challenge::Bearer {
        realm: realm?,
        service,
    })
}

/// Splits off one `name=value` or `name="value"`, and returns its name, its value and the text
/// after the next comma.
fn parameter(text: &str) -> Option<(&str, String, &str)> {
    let (name, rest) = text.split_once('=')?;
    let name = name.trim();
    let rest = rest.trim_start();
    let (value, rest) = match rest.strip_prefix('"') {
        Some(quoted) => {
            let mut value = String::new();
            let mut characters = quoted.char_indices();
            let end = loop {
                match characters.next()? {
                    (at, '"') => break at + 1,
                    (_, '\\') => value.push(characters.next()?.1),
                    (_, character) => value.push(character),
                }
            };
            (value, quoted.get(end..)?)
        }
        None => {
            let end = rest.find(',').unwrap_or(rest.len());
            let (value, rest) = rest.split_at_checked(end)?;
            (value.trim().to_owned(), rest)
        }
    };
    let rest = rest.trim_start();
    match rest.strip_prefix(',') {
        Some(after) => Some((name, value, after)),
        None if rest.is_empty() => Some((name, value, rest)),
        None => None,
    }
}

#[cfg(test)]
mod auth_tests {
    use super::*;
    use crate::client::ClientOptions;
    use crate::reference::Reference;

    #[test]
    fn a_realm_is_for_its_registry_with_the_default_port_and_without() {
        for (allowed, asking, taken) in [
            ("r.example", "r.example:443", true),
            ("r.example:443", "r.example", true),
            ("r.example:444", "r.example", false),
            ("r.example", "x.r.example", false),
        ] {
            let options = ClientOptions {
                realms: vec![(allowed.to_owned(), "https://auth.example".to_owned())],
                ..ClientOptions::default()
            };
            let client = options.build().unwrap();
            let access = AccessScope {
                registry: asking.to_owned(),
                repository: "a".to_owned(),
                push: false,
            };
            let asked = Url::parse(&format!("https://{asking}/v2/")).unwrap();
            let realm = "https://auth.example/token";
            let realm = client.transport.check_realm(&access, &asked, realm);
            assert_eq!(realm.is_ok(), taken, "{allowed} {asking}");
        }
        let client = ClientOptions::default().build().unwrap();
        let docker: Reference = "oci://registry-1.docker.io:443/a".parse().unwrap();
        let asked = Url::parse("https://registry-1.docker.io/v2/").unwrap();
        let realm = "https://auth.docker.io/token";
        let access = AccessScope::pull(&docker);
        let known = client.transport.check_realm(&access, &asked, realm);
        known.unwrap();
    }
}

#[cfg(test)]
mod challenge_tests {
    use super::*;

    #[test]
    fn challenges_are_read_as_registries_write_them() {
        let bearer = |realm: &str, service: Option<&str>| {
            Some(Challenge::Bearer {
                realm: realm.to_owned(),
                service: service.map(str::to_owned),
            })
        };
        assert_eq!(parse("Basic realm=\"x\""), Some(Challenge::Basic));
        assert_eq!(
            parse("Bearer realm=\"https://a/t\",service=\"r\",scope=\"repository:x:pull,push\""),
            bearer("https://a/t", Some("r"))
        );
        assert_eq!(
            parse("bearer  Realm = \"a\\\"b\" , error=invalid"),
            bearer("a\"b", None)
        );
        for wrong in [
            "Bearer",
            "Bearer service=\"x\"",
            "Bearer realm=\"x",
            "Bearer realm=\"x\" realm=\"y\"",
            "Bearer realm=\"x\",realm=\"y\"",
            "Negotiate",
            "",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
