//! Authentication: a challenge is answered with credentials, which go to the registry itself or to a token
//! server that the operator allowed, and nowhere else.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Method, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use url::Url;
use zeroize::Zeroizing;

use crate::address::{bare_registry, check_scheme, origin, shown};
use crate::challenge::{Challenge, challenge};
use crate::failure::{Failure, Reason};
use crate::known;
use crate::login::Login;
use crate::response::{read, unexpected};
use crate::retry::Deadline;
use crate::transport::{Ask, RegistryTransport, Scope};
use crate::unknown_host::{HostRole, UnknownHost};

/// How large a token server's answer may be, in bytes.
const MAX_TOKEN: u64 = 256 * 1024;

/// What a token server answers (the distribution project's token specification).
#[derive(Deserialize)]
struct Granted {
    token: Option<String>,
    access_token: Option<String>,
}

impl RegistryTransport {
    /// Answers a challenge that came with 401 from `asked`, and keeps what it gets.
    pub(crate) async fn authorise(
        &self,
        access: &Scope,
        asked: &Url,
        headers: &HeaderMap,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        let login = self.credentials.login(&access.registry, self.plain).await?;
        let value = match challenge(headers) {
            Some(Challenge::Basic) => {
                let login = login.ok_or_else(|| needed(access))?;
                basic(&login)?
            }
            Some(Challenge::Bearer { realm, service }) => {
                let realm = self.check_realm(access, asked, &realm)?;
                self.token(access, realm, service, login, deadline).await?
            }
            None => {
                return Err(Failure::new(Reason::ResponseInvalid)
                    .at(shown(asked))
                    .expected("a challenge for basic or bearer authentication"));
            }
        };
        self.grant(access, value);
        Ok(())
    }

    /// The realm, if credentials may be sent there: the registry's own origin, or one that is allowed for
    /// this registry, by https (or on this machine, where the registry is on it too).
    fn check_realm(&self, access: &Scope, asked: &Url, realm: &str) -> Result<Url, Failure> {
        let refuse = || Failure::new(Reason::RealmRefused).at(shown(asked));
        let own = origin(asked);
        let url = Url::parse(realm).map_err(|_| {
            refuse()
                .expected("an address")
                .found(crate::text::quoted(realm))
        })?;
        check_scheme(&url, self.plain)
            .map_err(|_| refuse().expected("https").found(shown(&url)))?;
        let realm_origin = origin(&url);
        let asking = bare_registry(&access.registry, self.plain);
        let allowed = realm_origin == own
            || known::is_realm(asking, &realm_origin)
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

    async fn token(
        &self,
        access: &Scope,
        mut realm: Url,
        service: Option<String>,
        login: Option<Login>,
        deadline: Deadline,
    ) -> Result<HeaderValue, Failure> {
        let actions = if access.push { "pull,push" } else { "pull" };
        {
            let mut query = realm.query_pairs_mut();
            if let Some(service) = &service {
                query.append_pair("service", service);
            }
            // Our own scope, not that of the challenge.
            query.append_pair(
                "scope",
                &format!("repository:{}:{actions}", access.repository),
            );
        }
        let mut ask = Ask::new(Method::GET, realm, None);
        let anonymous = login.is_none();
        if let Some(login) = login {
            let mut value = basic(&login)?;
            value.set_sensitive(true);
            ask.headers.insert(AUTHORIZATION, value);
        }
        let response = self.answered(&ask, None, deadline).await?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if anonymous => {
                return Err(needed(access));
            }
            _ => return Err(unexpected(response).await),
        }
        let place = shown(response.url());
        let body = read(response, MAX_TOKEN).await?;
        let invalid = || Failure::new(Reason::ResponseInvalid).at(place.clone());
        // What serde says of it might quote the token.
        let granted: Granted = serde_json::from_slice(&body)
            .map_err(|_| invalid().expected("a JSON object with `token`"))?;
        let token = granted
            .token
            .or(granted.access_token)
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

fn needed(access: &Scope) -> Failure {
    Failure::new(Reason::CredentialsNeeded).at(access.registry.clone())
}

fn basic(login: &Login) -> Result<HeaderValue, Failure> {
    let pair = Zeroizing::new(format!(
        "{}:{}",
        login.username(),
        login.password().expose_secret()
    ));
    let header = Zeroizing::new(format!("Basic {}", BASE64_STANDARD.encode(pair.as_bytes())));
    let mut value =
        HeaderValue::from_str(&header).map_err(|_| Failure::new(Reason::CredentialsInvalid))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;
    use crate::reference::Reference;

    #[test]
    fn a_realm_is_for_its_registry_with_the_default_port_and_without() {
        for (allowed, asking, taken) in [
            ("r.example", "r.example:443", true),
            ("r.example:443", "r.example", true),
            ("r.example:444", "r.example", false),
            ("r.example", "x.r.example", false),
        ] {
            let client = Client::builder()
                .allow_realm(allowed, "https://auth.example")
                .build()
                .unwrap();
            let access = Scope {
                registry: asking.to_owned(),
                repository: "a".to_owned(),
                push: false,
            };
            let asked = Url::parse(&format!("https://{asking}/v2/")).unwrap();
            let realm = "https://auth.example/token";
            let realm = client.transport.check_realm(&access, &asked, realm);
            assert_eq!(realm.is_ok(), taken, "{allowed} {asking}");
        }
        let client = Client::builder().build().unwrap();
        let docker: Reference = "oci://registry-1.docker.io:443/a".parse().unwrap();
        let asked = Url::parse("https://registry-1.docker.io/v2/").unwrap();
        let realm = "https://auth.docker.io/token";
        let access = Scope::pull(&docker);
        let known = client.transport.check_realm(&access, &asked, realm);
        known.unwrap();
    }
}
