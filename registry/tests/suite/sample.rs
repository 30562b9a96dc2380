//! A small signed bundle, and clients for the tests.

use std::time::Duration;

use toolward_registry::{
    AddressCheck, ClientLimits, ClientOptions, Failure, OutgoingBundle, Reference, RegistryClient,
    RegistryCredentials,
};
use toolward_signing::archive::{self, Contents};
use toolward_signing::envelope::Envelope;
use toolward_signing::key::SigningKey;
use toolward_signing::manifest::{
    Artifacts, FileEntry, FileRole, MANIFEST_TYPE, Manifest, ToolsEntry,
};
use toolward_signing::path::BundlePath;
use toolward_signing::timestamp::Timestamp;
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::{self, Bundle, Verified, VerifyOptions};
use toolward_signing::{Digest, ErrorKind, Refusal};

/// Key number `number`, the same each time.
pub(crate) fn key(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number; 32])
}

/// A bundle of about `size` bytes, signed by these keys.
pub(crate) struct Sample {
    pub(crate) envelope: Vec<u8>,
    pub(crate) manifest: Vec<u8>,
    pub(crate) tools: Vec<u8>,
    pub(crate) noise: Vec<u8>,
}

impl Sample {
    pub(crate) fn new(size: usize, keys: &[u8]) -> Self {
        let tools = br#"{"version":2,"tools":[]}"#.to_vec();
        // Bytes that don't compress, so that the archive has the requested size.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let noise: Vec<u8> = (0..size / 8)
            .flat_map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state.to_le_bytes()
            })
            .collect();
        let manifest = Manifest {
            id: "text.stats".to_owned(),
            version: "1.2.3".parse().unwrap(),
            sequence: 7,
            publisher: "acme".to_owned(),
            created: Timestamp::parse("2026-11-01T12:00:00Z").unwrap(),
            expires: None,
            min_host: None,
            provenance: false,
            artifacts: Artifacts {
                tools: ToolsEntry {
                    path: BundlePath::parse("tools.json").unwrap(),
                    blake3: Digest::of(&tools),
                    size: tools.len() as u64,
                    version: 2,
                },
                files: vec![FileEntry {
                    path: BundlePath::parse("drivers/noise/noise.bin").unwrap(),
                    blake3: Digest::of(&noise),
                    size: noise.len() as u64,
                    role: FileRole::Other,
                }],
            },
        }
        .to_bytes()
        .unwrap();
        Self {
            envelope: envelope(MANIFEST_TYPE, &manifest, keys),
            manifest,
            tools,
            noise,
        }
    }

    pub(crate) fn contents(&self) -> Contents<'_> {
        Contents {
            envelope: &self.envelope,
            manifest: &self.manifest,
            provenance: None,
            files: vec![
                (BundlePath::parse("tools.json").unwrap(), &self.tools),
                (
                    BundlePath::parse("drivers/noise/noise.bin").unwrap(),
                    &self.noise,
                ),
            ],
        }
    }

    pub(crate) fn archive(&self) -> Vec<u8> {
        archive::to_bytes(&self.contents()).unwrap()
    }

    pub(crate) fn outgoing(&self) -> OutgoingBundle {
        OutgoingBundle::new(&self.contents(), &Default::default()).unwrap()
    }
}

pub(crate) fn envelope(payload_type: &str, payload: &[u8], keys: &[u8]) -> Vec<u8> {
    let mut envelope = Envelope::new(payload_type, payload.to_vec());
    for number in keys {
        envelope.sign(&key(*number));
    }
    envelope.to_bytes().unwrap()
}

/// Accepts an envelope that key 1 signed: a minimal replacement for a caller's verification.
pub(crate) fn by_key_one(bytes: &[u8]) -> Result<Vec<u8>, Refusal> {
    let envelope = Envelope::parse(bytes)?;
    let signed = envelope.to_be_signed();
    if envelope
        .signatures()
        .iter()
        .any(|signature| key(1).public().verify(&signed, &signature.sig).is_ok())
    {
        Ok(envelope.payload().to_vec())
    } else {
        Err(Refusal::new(ErrorKind::SignatureInvalid))
    }
}

/// Verifies an archive with key 1.
pub(crate) fn verified(archive: &[u8]) -> Verified<Bundle> {
    let options = VerifyOptions {
        now: None,
        ..VerifyOptions::default()
    };
    verify::archive_bytes(archive, &TrustStore::for_key(key(1).public()), &options).unwrap()
}

/// Builds a client for loopback, with long timeouts for busy machines.
pub(crate) fn builder() -> ClientBuilder {
    let limits = ClientLimits {
        connect: Duration::from_secs(30),
        silence: Duration::from_secs(30),
        total: Duration::from_secs(120),
        ..Default::default()
    };
    ClientBuilder(ClientOptions {
        plain_http: true,
        system_roots: false,
        limits,
        ..ClientOptions::default()
    })
}

/// Options that tests change one by one.
pub(crate) struct ClientBuilder(ClientOptions);

impl ClientBuilder {
    pub(crate) fn plain_http_on_loopback(mut self, plain: bool) -> Self {
        self.0.plain_http = plain;
        self
    }

    pub(crate) fn authorities(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.0.authorities.push(pem.into());
        self
    }

    pub(crate) fn credentials(mut self, credentials: RegistryCredentials) -> Self {
        self.0.credentials = credentials;
        self
    }

    pub(crate) fn limits(mut self, limits: ClientLimits) -> Self {
        self.0.limits = limits;
        self
    }

    pub(crate) fn allow_realm(
        mut self,
        registry: impl Into<String>,
        origin: impl Into<String>,
    ) -> Self {
        self.0.realms.push((registry.into(), origin.into()));
        self
    }

    pub(crate) fn allow_redirects_to(mut self, origin: impl Into<String>) -> Self {
        self.0.redirects.push(origin.into());
        self
    }

    pub(crate) fn allow_local_redirects_to(mut self, origin: impl Into<String>) -> Self {
        self.0.local_redirects.push(origin.into());
        self
    }

    pub(crate) fn redirect_addresses(mut self, check: AddressCheck) -> Self {
        self.0.redirect_addresses = check;
        self
    }

    pub(crate) fn build(self) -> Result<RegistryClient, Failure> {
        self.0.build()
    }
}

pub(crate) fn client() -> RegistryClient {
    builder().build().unwrap()
}

pub(crate) fn reference(text: &str) -> Reference {
    text.parse().unwrap()
}
