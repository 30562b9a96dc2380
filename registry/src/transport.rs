//! Sends requests, with authentication and retries. Only this code follows redirects, and it never
//! sends credentials with them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Method, Response, StatusCode};
use url::Url;

use crate::address::{check_scheme, shown};
use crate::credentials::RegistryCredentials;
use crate::failure::{Failure, FailureReason};
use crate::hosts::{HostRole, NOT_GLOBAL, RedirectTarget, Redirects, UnknownHost};
use crate::limits::{ClientLimits, Deadline, Tries, retry_after};
use crate::proxy::Proxy;
use crate::reference::Reference;
use crate::response::{broken, is_final, location, unexpected};

/// How many redirects are followed.
const MAX_REDIRECTS: usize = 3;

/// The shared state of all operations of a client.
pub(crate) struct RegistryTransport {
    pub(crate) http: reqwest::Client,
    /// A client without a proxy, for redirects to addresses that must be checked.
    pub(crate) redirected: reqwest::Client,
    pub(crate) proxy: Option<Proxy>,
    pub(crate) limits: ClientLimits,
    /// Whether plain http is used with this machine.
    pub(crate) plain: bool,
    /// Registries, each with an origin to which its credentials may be sent.
    pub(crate) realms: Vec<(String, String)>,
    /// The origins to which downloads may be redirected.
    pub(crate) redirects: Redirects,
    pub(crate) credentials: RegistryCredentials,
    /// The cached values of `Authorization`, marked as sensitive.
    pub(crate) granted: Mutex<HashMap<AccessScope, HeaderValue>>,
}

/// The access that a request needs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AccessScope {
    /// `host[:port]`.
    pub(crate) registry: String,
    pub(crate) repository: String,
    pub(crate) push: bool,
}

impl AccessScope {
    pub(crate) fn pull(reference: &Reference) -> Self {
        Self {
            registry: reference.registry(),
            repository: reference.repository().to_owned(),
            push: false,
        }
    }

    pub(crate) fn push(reference: &Reference) -> Self {
        Self {
            push: true,
            ..Self::pull(reference)
        }
    }
}

/// One request, which may be sent several times.
#[derive(Clone, Debug)]
pub(crate) struct RegistryRequest {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Bytes>,
    /// The access for which credentials are sent; `None` for a request without credentials.
    pub(crate) access: Option<AccessScope>,
    /// Whether redirects to allowed origins are followed.
    pub(crate) follow: bool,
    /// Whether the request may be sent more than once.
    pub(crate) repeat: bool,
}

impl RegistryRequest {
    pub(crate) fn new(method: Method, url: Url, access: Option<AccessScope>) -> Self {
        Self {
            method,
            url,
            headers: HeaderMap::new(),
            body: None,
            access,
            follow: false,
            repeat: true,
        }
    }

    pub(crate) fn get(url: Url, access: AccessScope) -> Self {
        Self::new(Method::GET, url, Some(access))
    }

    pub(crate) fn header(
        mut self,
        name: reqwest::header::HeaderName,
        value: &str,
    ) -> Result<Self, Failure> {
        let value = HeaderValue::from_str(value)
            .map_err(|_| Failure::new(FailureReason::ClientInvalid).at(name.to_string()))?;
        self.headers.insert(name, value);
        Ok(self)
    }
}

/// An operation of a client, with all its requests, waits and transfers.
#[derive(Clone)]
pub(crate) struct Operation {
    pub(crate) transport: Arc<RegistryTransport>,
    pub(crate) deadline: Deadline,
}

impl Operation {
    pub(crate) fn tries(&self) -> Tries {
        let limits = &self.transport.limits;
        Tries::new(self.deadline, limits.retries, limits.patience)
    }

    /// Sends a request and returns its answer if the status is 200.
    pub(crate) async fn expect_ok(&self, ask: &RegistryRequest) -> Result<Response, Failure> {
        self.expect(ask, |status| status == StatusCode::OK).await
    }

    /// Sends a request and returns its answer if the status is expected.
    pub(crate) async fn expect(
        &self,
        ask: &RegistryRequest,
        is_expected: impl FnOnce(StatusCode) -> bool,
    ) -> Result<Response, Failure> {
        let response = self.send(ask).await?;
        match is_expected(response.status()) {
            true => Ok(response),
            false => Err(unexpected(response).await),
        }
    }

    /// Sends a request, with retries, and authenticates if the registry demands it.
    pub(crate) async fn send(&self, ask: &RegistryRequest) -> Result<Response, Failure> {
        let mut renewed = false;
        loop {
            let authorization = ask
                .access
                .as_ref()
                .and_then(|access| self.transport.granted(access));
            let response = self.answered(ask, authorization.as_ref()).await?;
            match &ask.access {
                // Only a challenge from the registry itself counts, not one from the target of a
                // redirect.
                Some(access)
                    if response.status() == StatusCode::UNAUTHORIZED
                        && !renewed
                        && *response.url() == ask.url =>
                {
                    // Authenticate only once: an earlier authorization may have expired, but a new
                    // one has not.
                    renewed = true;
                    let headers = response.headers().clone();
                    drop(response);
                    self.authorise(access, &ask.url, &headers).await?;
                }
                _ => return Ok(response),
            }
        }
    }

    /// Sends a request, and repeats it after a failure that may be temporary.
    pub(crate) async fn answered(
        &self,
        ask: &RegistryRequest,
        authorization: Option<&HeaderValue>,
    ) -> Result<Response, Failure> {
        let mut tries = self.tries();
        loop {
            let response = match self.transport.once(ask, authorization).await {
                Ok(response) => response,
                Err((failure, final_word)) if final_word || !ask.repeat => return Err(failure),
                Err((failure, _)) => {
                    tries.again(failure, None).await?;
                    continue;
                }
            };
            let status = response.status();
            let later = matches!(status.as_u16(), 429 | 500 | 502 | 503 | 504);
            if !later {
                return Ok(response);
            }
            let asked = retry_after(response.headers());
            let mut failure = unexpected(response).await;
            if let Some(asked) = asked {
                failure = failure.hinted(format!(
                    "the registry asks to be left alone for {} s; try again then",
                    asked.as_secs()
                ));
            }
            if !ask.repeat {
                return Err(failure);
            }
            tries.again(failure, asked).await?;
        }
    }
}

impl RegistryTransport {
    /// Sends a request once, and follows redirects if allowed. The flag of a failure states that a
    /// retry would not help.
    async fn once(
        &self,
        ask: &RegistryRequest,
        authorization: Option<&HeaderValue>,
    ) -> Result<Response, (Failure, bool)> {
        let mut url = ask.url.clone();
        let mut target = RedirectTarget::Any;
        let mut authorization = authorization;
        for _ in 0..=MAX_REDIRECTS {
            let proxy = self.proxy.as_ref().filter(|proxy| proxy.covers(&url));
            let http = match (target, proxy) {
                (RedirectTarget::Checked, None) => &self.redirected,
                _ => &self.http,
            };
            let mut request = http
                .request(ask.method.clone(), url.clone())
                .headers(ask.headers.clone());
            if let Some(value) = authorization {
                request = request.header(AUTHORIZATION, value);
            }
            if let Some(body) = &ask.body {
                request = request.body(body.clone());
            }
            let response = request.send().await.map_err(|error| {
                let failure = broken(&error).at(shown(&url));
                let is_final = is_final(&error);
                let failure = match proxy.filter(|_| !is_final) {
                    Some(proxy) => failure.hinted(format!(
                        "it was asked for through the proxy {proxy} of HTTPS_PROXY; NO_PROXY names hosts to reach \
                         without it"
                    )),
                    None => failure,
                };
                (failure, is_final)
            })?;
            if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
                return Ok(response);
            }
            (url, target) = self
                .follow(ask, &url, &response)
                .map_err(|failure| (failure, true))?;
            authorization = None;
        }
        let failure = Failure::new(FailureReason::RedirectRefused)
            .at(shown(&ask.url))
            .expected(format!("at most {MAX_REDIRECTS} redirects"))
            .hinted("no setting allows more; tell whoever runs the registry");
        Err((failure, true))
    }

    /// The target of a redirect, if it may be followed.
    fn follow(
        &self,
        ask: &RegistryRequest,
        from: &Url,
        response: &Response,
    ) -> Result<(Url, RedirectTarget), Failure> {
        let to = location(from, response, "an address to go to")?;
        let refuse = || {
            Failure::new(FailureReason::RedirectRefused)
                .at(shown(from))
                .found(shown(&to))
        };
        if !ask.follow {
            return Err(refuse().expected("an answer").hinted(
                "only downloads may be redirected: check that the address is the registry's own",
            ));
        }
        check_scheme(&to, self.plain).map_err(|_| {
            refuse().expected("https").hinted(
                "no setting allows that; tell whoever runs the registry, which has to serve its \
                 downloads over https",
            )
        })?;
        match self.redirects.target(&ask.url, &to) {
            Ok(target) => Ok((to, target)),
            Err((expected, None)) => {
                let refused = refuse().expected(expected);
                Err(UnknownHost::explain(HostRole::Downloads, &to, refused))
            }
            Err((expected, Some(kind))) => Err(refuse()
                .expected(expected)
                .found(format!("{}, which is {kind}", shown(&to)))
                .hinted(NOT_GLOBAL)),
        }
    }

    fn granted(&self, access: &AccessScope) -> Option<HeaderValue> {
        let granted = self.granted.lock().ok()?;
        granted.get(access).cloned()
    }

    pub(crate) fn grant(&self, access: &AccessScope, value: HeaderValue) {
        if let Ok(mut granted) = self.granted.lock() {
            granted.insert(access.clone(), value);
        }
    }
}
