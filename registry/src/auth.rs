//! Authentication: a challenge of a registry (`WWW-Authenticate`, RFC 9110, section 11.6.1) is checked, then answered
//! with credentials, which go only to the registry itself or to an allowed token server.

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
            // Our own scope, not the scope of the challenge.
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
        // The error of serde might quote the token.
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
    /// The realm, if credentials may be sent there: the registry's own origin, or an origin that is allowed for this
    /// registry, by https (or on this machine, if the registry is on it too).
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
        let refused = refuse()
            .expected(format!(
                "{own}, or a realm that is allowed for this registry"
            ))
            .found(shown(&url));
        let unknown = UnknownHost::of(HostRole::TokenServer, &url);
        Err(UnknownHost::explain(unknown, refused))
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
    let (scheme, parameters) = value.trim().split_once(' ').unwrap_or((value.trim(), ""));
    // The parser expects one space, and RFC 9110 allows more.
    let value = format!("{scheme} {}", parameters.trim_start());
    let challenges = http_auth::parse_challenges(value.trim_end()).ok()?;
    challenges.iter().find_map(|challenge| {
        if challenge.scheme.eq_ignore_ascii_case("basic") {
            return Some(Challenge::Basic);
        }
        let only = |name: &str| {
            let parameters = challenge.params.iter();
            let mut named = parameters.filter(|(key, _)| key.eq_ignore_ascii_case(name));
            let value = named.next().map(|(_, value)| value.to_unescaped());
            // Two values are ambiguous: readers might choose different ones.
            named.next().is_none().then_some(value)
        };
        let is_bearer = challenge.scheme.eq_ignore_ascii_case("bearer");
        Some(Challenge::Bearer {
            realm: only("realm").filter(|_| is_bearer)??,
            service: only("service")?,
        })
    })
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
