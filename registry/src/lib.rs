//! Transfers bundles and trust documents to and from OCI registries, `https` and files.
//! [`toolward_signing`] decides whether the bytes are trusted, and the caller sees the envelope
//! before anything large is downloaded.
//!
//! Registries, and everyone on the path to them, are assumed hostile: every size is bounded before
//! it is read and every digest checked. Redirects are followed only to allowed or known hosts, and
//! credentials go only to the registry itself and to allowed or known realms (token servers). That
//! is why `oci-client` is not used: it reads manifests of any length, follows redirects, sends
//! credentials to the realm that the registry names, and looks for proxies in the environment.
//!
//! ```no_run
//! use toolward_registry::{ClientOptions, Reference};
//! use toolward_signing::envelope::Envelope;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = ClientOptions::default().build()?;
//! let reference: Reference = "oci://registry.example/team/text-stats:1.2.3".parse()?;
//! let downloads = "/var/cache/downloads".as_ref();
//! let verify = |envelope: &[u8]| Envelope::parse(envelope);
//! let pulled = client.pull(&reference, downloads, None, verify).await?;
//! let archive = pulled.archive(Default::default(), Vec::new())?;
//! # Ok(())
//! # }
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod address;
mod artifact;
mod attach;
mod auth;
mod client;
mod credentials;
mod digest;
mod document;
mod download;
mod failure;
mod hosts;
mod limits;
pub mod media;
mod proxy;
mod pull;
mod push;
mod reference;
mod releases;
mod response;
mod transport;

pub use address::{Source, bare_registry};
pub use artifact::{Artifact, Blob, Details, OutgoingBundle};
pub use attach::merge_signatures;
pub use client::{ClientOptions, RegistryClient, check_origin};
pub use credentials::{Helpers, Login, RegistryCredentials};
pub use digest::BlobDigest;
pub use download::{ProgressFn, Step, TransferProgress};
pub use failure::{Cause, Failure, FailureReason};
pub use hosts::{AddressCheck, HostRole, UnknownHost};
pub use limits::ClientLimits;
pub use media::DocumentArtifact;
pub use proxy::Proxy;
pub use pull::PulledBundle;
pub use reference::Reference;
pub use releases::{MAX_RELEASES, TagPattern, TaggedRelease, TaggedReleases};
pub use secrecy;
