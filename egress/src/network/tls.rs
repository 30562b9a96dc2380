//! TLS by rustls: the system's roots, and what the operator adds. Nothing here
//! can be told not to verify.

use std::sync::{Arc, OnceLock};

use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use tokio_rustls::TlsConnector;

/// Which roots to load.
#[derive(Debug, Clone, Default)]
pub(crate) struct Roots {
    pub(crate) system: bool,
    pub(crate) pem: Vec<Vec<u8>>,
}

/// Why no certificate authority could be loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RootsError(String);

/// Loads its roots once, at the first use.
pub(crate) struct Tls {
    roots: Roots,
    loaded: OnceLock<Result<(TlsConnector, usize), RootsError>>,
}

impl Tls {
    pub(crate) fn new(roots: Roots) -> Tls {
        Tls {
            roots,
            loaded: OnceLock::new(),
        }
    }

    /// The connector, if it is loaded.
    pub(crate) fn get(&self) -> Option<Result<TlsConnector, RootsError>> {
        let loaded = self.loaded.get()?;
        Some(loaded.clone().map(|(connector, _)| connector))
    }

    /// Loads the roots, and tells how many. Reads files.
    pub(crate) fn load(&self) -> Result<usize, RootsError> {
        let loaded = self.loaded.get_or_init(|| connector(&self.roots));
        loaded.clone().map(|(_, count)| count)
    }
}

fn connector(roots: &Roots) -> Result<(TlsConnector, usize), RootsError> {
    let mut store = RootCertStore::empty();
    let mut problems = Vec::new();
    if roots.system {
        let system = rustls_native_certs::load_native_certs();
        problems.extend(system.errors.iter().map(ToString::to_string));
        // Systems carry roots that are too old to be read.
        store.add_parsable_certificates(system.certs);
    }
    for pem in &roots.pem {
        let before = store.len();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate
                .map_err(|error| RootsError(format!("expected certificates in PEM: {error}")))?;
            store
                .add(certificate)
                .map_err(|error| RootsError(format!("expected an authority: {error}")))?;
        }
        if store.len() == before {
            return Err(RootsError(
                "expected at least one certificate in PEM, found none".to_owned(),
            ));
        }
    }
    if store.is_empty() {
        problems.insert(0, "no certificate authority was found".to_owned());
        return Err(RootsError(problems.join("; ")));
    }
    let count = store.len();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| RootsError(error.to_string()))?
        .with_root_certificates(store)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok((TlsConnector::from(Arc::new(config)), count))
}
