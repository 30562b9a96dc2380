//! A token server for the tests, which signs tokens that Debian's `docker-registry` accepts.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::json;

use crate::scripted::{Asked, Say, Scripted, ok, status};

/// Signs tokens; the registry knows the certificate.
pub(crate) struct Issuer {
    key: EcdsaKeyPair,
    certificate: rcgen::Certificate,
}

impl Issuer {
    pub(crate) fn new() -> Self {
        let pair = rcgen::KeyPair::generate().unwrap();
        let mut parameters = rcgen::CertificateParams::new(vec!["issuer".to_owned()]).unwrap();
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let certificate = parameters.self_signed(&pair).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(
            &ECDSA_P256_SHA256_FIXED_SIGNING,
            &pair.serialize_der(),
            &SystemRandom::new(),
        )
        .unwrap();
        Self { key, certificate }
    }

    pub(crate) fn write_root(&self, folder: &Path) {
        std::fs::write(folder.join("root.pem"), self.certificate.pem()).unwrap();
    }

    /// A token for one repository.
    pub(crate) fn token(&self, repository: &str, actions: &[&str]) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let until = now + Duration::from_secs(300);
        let header = json!({
            "typ": "JWT",
            "alg": "ES256",
            "x5c": [BASE64_STANDARD.encode(self.certificate.der())],
        });
        let claims = json!({
            "iss": "issuer", "sub": "name", "aud": "registry", "jti": "1",
            "iat": now.as_secs(), "nbf": now.as_secs() - 60, "exp": until.as_secs(),
            "access": [{ "type": "repository", "name": repository, "actions": actions }],
        });
        let part = |value: &serde_json::Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(&claims));
        let signature = self
            .key
            .sign(&SystemRandom::new(), signed.as_bytes())
            .unwrap();
        format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
    }
}

/// The `Authorization` header of `name` with this password.
pub(crate) fn basic(password: &str) -> String {
    format!(
        "Basic {}",
        BASE64_STANDARD.encode(format!("name:{password}"))
    )
}

/// A token server that knows `name` and a password.
pub(crate) fn token_server(issuer: Issuer, password: &'static str) -> Scripted {
    Scripted::start(move |asked: &Asked| -> Say {
        if asked.header("authorization") != Some(basic(password).as_str()) {
            return status(401);
        }
        let url = url::Url::parse(&format!("http://x{}", asked.target)).unwrap();
        let scope = url
            .query_pairs()
            .find_map(|(key, value)| (key == "scope").then(|| value.into_owned()))
            .unwrap();
        let mut parts = scope.split(':').skip(1);
        let repository = parts.next().unwrap();
        let actions: Vec<&str> = parts.next().unwrap().split(',').collect();
        ok(json!({ "token": issuer.token(repository, &actions) }).to_string())
    })
}
