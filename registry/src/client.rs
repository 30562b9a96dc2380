//! The client and its configuration: certificate authorities, timeouts, limits.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use url::Url;

use crate::address::{bare_registry, check_scheme};
use crate::credentials::RegistryCredentials;
use crate::failure::{Failure, FailureReason, quoted};
use crate::hosts::{AddressCheck, CheckedResolver, Redirects};
use crate::limits::{ClientLimits, Deadline};
use crate::proxy::Proxy;
use crate::reference::Reference;
use crate::transport::{Operation, RegistryTransport};

/// A client for registries and `https`. Cheap to clone; the clones share tokens.
#[derive(Clone)]
pub struct RegistryClient {
    pub(crate) transport: Arc<RegistryTransport>,
}

impl RegistryClient {
    pub(crate) fn operation(&self) -> Operation {
        Operation {
            transport: self.transport.clone(),
            deadline: Deadline::after(self.transport.limits.total),
        }
    }
}

impl std::fmt::Debug for RegistryClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RegistryClient")
            .field("limits", &self.transport.limits)
            .finish_non_exhaustive()
    }
}

/// The configuration of a client. The default trusts the system's certificate authorities, has no
/// credentials and no proxy, and follows no redirect to another origin. No variable of the
/// environment is read, except that `SSL_CERT_FILE` and `SSL_CERT_DIR` replace the system's
/// certificate authorities.
#[derive(Debug)]
pub struct ClientOptions {
    /// Certificate authorities in PEM, besides the system's.
    pub authorities: Vec<Vec<u8>>,
    /// Whether the system's certificate authorities are trusted.
    pub system_roots: bool,
    /// Whether plain http is used with this machine. All other hosts need https.
    pub plain_http: bool,
    /// The source of names and passwords.
    pub credentials: RegistryCredentials,
    /// The limits of the client.
    pub limits: ClientLimits,
    /// Registries (`host[:port]`), each with the origin of a realm (a token server),
    /// `https://host[:port]`, to which its credentials may be sent. A realm at the registry's own
    /// origin is always allowed, and so are the built-in token servers of public registries.
    pub realms: Vec<(String, String)>,
    /// Origins, `https://host[:port]`, to which downloads may be redirected, at addresses that
    /// `redirect_addresses` allows. No credentials ever go there.
    pub redirects: Vec<String>,
    /// Origins to which downloads may be redirected, at any address. No credentials ever go there.
    pub local_redirects: Vec<String>,
    /// The check for addresses to which downloads may be redirected. The default allows none. A
    /// proxy resolves names itself, so with a proxy only IP addresses in the redirect's URL are
    /// checked.
    pub redirect_addresses: AddressCheck,
    /// The proxy for https.
    pub proxy: Option<Proxy>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            authorities: Vec::new(),
            system_roots: true,
            plain_http: false,
            credentials: RegistryCredentials::none(),
            limits: ClientLimits::default(),
            realms: Vec::new(),
            redirects: Vec::new(),
            local_redirects: Vec::new(),
            redirect_addresses: |_| Err("not allowed: no rule says which addresses are"),
            proxy: None,
        }
    }
}

impl ClientOptions {
    /// Builds the client.
    ///
    /// # Errors
    /// [`FailureReason::ClientInvalid`] for certificates or origins that can't be used.
    pub fn build(self) -> Result<RegistryClient, Failure> {
        let tls = tls(self.system_roots, &self.authorities)?;
        let http = self.http(tls.clone(), |http| {
            // `localhost` always means this machine, even if the resolver returns another address.
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
        let limits = ClientLimits {
            content: self.limits.content.min(ClientLimits::default().content),
            ..self.limits
        };
        let realms = self
            .realms
            .iter()
            .map(|(registry, origin)| {
                // The registry and the origin are stored in the spelling for comparisons.
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
        Ok(RegistryClient {
            transport: Arc::new(RegistryTransport {
                http,
                redirected,
                proxy: self.proxy,
                limits,
                plain,
                realms,
                redirects,
                credentials: self.credentials,
                granted: Default::default(),
            }),
        })
    }

    /// Builds an HTTP client with further settings.
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
            .user_agent(concat!("toolward/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(self.limits.connect)
            .read_timeout(self.limits.silence);
        more(http)
            .build()
            .map_err(|error| invalid().caused_by(error))
    }
}

fn invalid() -> Failure {
    Failure::new(FailureReason::ClientInvalid)
}

/// Checks that a text is a valid origin for realms and redirects: `https://host[:port]`. With
/// `plain`, an origin on this machine in plain http is also valid.
///
/// # Errors
/// [`FailureReason::ClientInvalid`].
pub fn check_origin(text: &str, plain: bool) -> Result<(), Failure> {
    parse_origin(text, plain).map(drop)
}

fn parse_origin(text: &str, plain: bool) -> Result<String, Failure> {
    let url = Url::parse(text).ok();
    url.filter(|url| {
        check_scheme(url, plain).is_ok()
            // A URL may contain `*`, but a host name doesn't.
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
        // Roots that can't be parsed are skipped, since some systems have very old ones. Without
        // any root, every connection fails.
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
