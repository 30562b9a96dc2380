//! The client and its configuration: certificate authorities, timeouts, limits.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use url::Url;

use crate::address::{bare_registry, check_scheme};
use crate::credentials::Credentials;
use crate::failure::{Failure, Reason, io_failed};
use crate::limits::Limits;
use crate::proxy::Proxy;
use crate::redirect::{AddressCheck, CheckedResolver, Redirects};
use crate::reference::Reference;
use crate::text::quoted;
use crate::transport::RegistryTransport;

/// A client for registries and `https`. Cheap to clone; tokens are kept until the last clone is gone.
#[derive(Clone)]
pub struct Client {
    pub(crate) transport: Arc<RegistryTransport>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("limits", &self.transport.limits)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// A client that trusts the system's certificate authorities, has no credentials, no proxy, and follows no redirect
    /// to another origin.
    #[must_use]
    pub fn builder() -> ClientBuilder {
        ClientBuilder {
            authorities: Vec::new(),
            system_roots: true,
            plain_http: false,
            user_agent: concat!("toolward/", env!("CARGO_PKG_VERSION")).to_owned(),
            credentials: Credentials::none(),
            limits: Limits::default(),
            realms: Vec::new(),
            redirects: Vec::new(),
            local_redirects: Vec::new(),
            redirect_addresses: |_| Err("not allowed: no rule says which addresses are"),
            proxy: None,
        }
    }
}

/// A client in the making.
#[derive(Debug)]
pub struct ClientBuilder {
    authorities: Vec<Vec<u8>>,
    system_roots: bool,
    plain_http: bool,
    user_agent: String,
    credentials: Credentials,
    limits: Limits,
    realms: Vec<(String, String)>,
    redirects: Vec<String>,
    local_redirects: Vec<String>,
    redirect_addresses: AddressCheck,
    proxy: Option<Proxy>,
}

impl ClientBuilder {
    /// Trusts certificate authorities in PEM, besides the system's.
    #[must_use]
    pub fn authorities(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.authorities.push(pem.into());
        self
    }

    /// Trusts the certificate authorities in a PEM file, besides the system's.
    ///
    /// # Errors
    /// [`Reason::Io`].
    pub fn authorities_file(self, path: &Path) -> Result<Self, Failure> {
        let pem =
            std::fs::read(path).map_err(|error| io_failed(path.display().to_string(), error))?;
        Ok(self.authorities(pem))
    }

    /// Whether the system's certificate authorities are trusted; they are, if nothing is said.
    #[must_use]
    pub fn system_roots(mut self, trusted: bool) -> Self {
        self.system_roots = trusted;
        self
    }

    /// Speaks plain http with this machine, and https with all others as ever.
    #[must_use]
    pub fn plain_http_on_loopback(mut self, plain: bool) -> Self {
        self.plain_http = plain;
        self
    }

    /// What the client says that it is.
    #[must_use]
    pub fn user_agent(mut self, name: impl Into<String>) -> Self {
        self.user_agent = name.into();
        self
    }

    /// Where names and passwords come from.
    #[must_use]
    pub fn credentials(mut self, credentials: Credentials) -> Self {
        self.credentials = credentials;
        self
    }

    /// What is taken at most.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        let most = Limits::default().content;
        self.limits = Limits {
            content: limits.content.min(most),
            ..limits
        };
        self
    }

    /// Lets the credentials for `registry` (`host[:port]`) be sent to a token server elsewhere: the origin
    /// `https://host[:port]`. A realm at the registry's own origin needs no leave.
    #[must_use]
    pub fn allow_realm(mut self, registry: impl Into<String>, origin: impl Into<String>) -> Self {
        self.realms.push((registry.into(), origin.into()));
        self
    }

    /// Lets downloads be redirected to this origin, `https://host[:port]`, at addresses that
    /// [`redirect_addresses`](Self::redirect_addresses) allows. No credentials ever go there.
    #[must_use]
    pub fn allow_redirects_to(mut self, origin: impl Into<String>) -> Self {
        self.redirects.push(origin.into());
        self
    }

    /// Lets downloads be redirected to this origin, whatever its address is. No credentials ever go there.
    #[must_use]
    pub fn allow_local_redirects_to(mut self, origin: impl Into<String>) -> Self {
        self.local_redirects.push(origin.into());
        self
    }

    /// The addresses that downloads may be redirected to; none, if nothing is said. Through a proxy, the proxy
    /// resolves names, and only addresses that stand in the redirect itself are checked.
    #[must_use]
    pub fn redirect_addresses(mut self, check: AddressCheck) -> Self {
        self.redirect_addresses = check;
        self
    }

    /// The proxy that https goes through. The environment is never looked at.
    #[must_use]
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.proxy = Some(proxy);
        self
    }

    /// The client.
    ///
    /// # Errors
    /// [`Reason::ClientInvalid`] for certificates, origins or a user agent that can't be used.
    pub fn build(self) -> Result<Client, Failure> {
        let tls = tls(self.system_roots, &self.authorities)?;
        let http = self.http(tls.clone(), |http| {
            // Whatever a resolver thinks of the name, it is this machine.
            let loopback = [
                ([127, 0, 0, 1], 0).into(),
                (std::net::Ipv6Addr::LOCALHOST, 0).into(),
            ];
            let http = http.resolve_to_addrs("localhost", &loopback);
            match &self.proxy {
                Some(proxy) => http.proxy(proxy.intercept()),
                None => http,
            }
        })?;
        let check = self.redirect_addresses;
        let redirected = self.http(tls, |http| http.dns_resolver(CheckedResolver(check)))?;
        let plain = self.plain_http;
        let realms = self
            .realms
            .iter()
            .map(|(registry, origin)| {
                // Both in the one spelling that they are compared in.
                let reference: Reference = format!("oci://{registry}/x")
                    .parse()
                    .map_err(|_| invalid().expected("host[:port]").found(quoted(registry)))?;
                let registry = bare_registry(&reference.registry(), plain).to_owned();
                Ok((registry, parse_origin(origin, plain)?))
            })
            .collect::<Result<_, Failure>>()?;
        let origins = |origins: &[String]| {
            let origins = origins.iter().map(|origin| parse_origin(origin, plain));
            origins.collect::<Result<_, Failure>>()
        };
        let redirects = Redirects {
            origins: origins(&self.redirects)?,
            local: origins(&self.local_redirects)?,
            check,
        };
        Ok(Client {
            transport: Arc::new(RegistryTransport {
                http,
                redirected,
                proxy: self.proxy,
                limits: self.limits,
                plain,
                realms,
                redirects,
                credentials: self.credentials,
                granted: Default::default(),
            }),
        })
    }

    /// A client of HTTP, with what differs between those of this client.
    fn http(
        &self,
        tls: ClientConfig,
        more: impl FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder,
    ) -> Result<reqwest::Client, Failure> {
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .http1_only()
            .no_proxy()
            .referer(false)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(&self.user_agent)
            .connect_timeout(self.limits.connect)
            .read_timeout(self.limits.silence);
        more(http)
            .build()
            .map_err(|error| invalid().caused_by(error))
    }
}

fn invalid() -> Failure {
    Failure::new(Reason::ClientInvalid)
}

/// Checks that a text is an origin that realms and redirects may have: `https://host[:port]`, or with `plain` also one
/// of this machine in plain http.
///
/// # Errors
/// [`Reason::ClientInvalid`].
pub fn check_origin(text: &str, plain: bool) -> Result<(), Failure> {
    parse_origin(text, plain).map(drop)
}

fn parse_origin(text: &str, plain: bool) -> Result<String, Failure> {
    let url = Url::parse(text).ok();
    url.filter(|url| {
        check_scheme(url, plain).is_ok()
            // The address's grammar has it; no host does.
            && !text.contains('*')
            && url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none()
    })
    .map(|url| crate::address::origin(&url))
    .ok_or_else(|| {
        invalid()
            .expected("an origin: https://host[:port]")
            .found(quoted(text))
    })
}

fn tls(system: bool, authorities: &[Vec<u8>]) -> Result<ClientConfig, Failure> {
    let mut store = RootCertStore::empty();
    if system {
        // Systems carry roots that are too old to be read. Without any, each connection says so.
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    for pem in authorities {
        let mut count = 0;
        for certificate in CertificateDer::pem_slice_iter(pem) {
            certificate
                .map_err(|error| error.to_string())
                .and_then(|certificate| store.add(certificate).map_err(|error| error.to_string()))
                .map_err(|error| {
                    invalid()
                        .expected("certificate authorities in PEM")
                        .found(error)
                })?;
            count += 1;
        }
        if count == 0 {
            return Err(invalid()
                .expected("certificate authorities in PEM")
                .found("none"));
        }
    }
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| invalid().caused_by(error))
        .map(|builder| builder.with_root_certificates(store).with_no_client_auth())
}
