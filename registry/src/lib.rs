//! Bundles and trust documents to and from OCI registries, `https` and files. The bytes arrive; whether they
//! are trusted is for [`toolward_signing`] to say, and the envelope is shown to the caller before anything
//! large is downloaded.
//!
//! Registries, and anybody on the path to them, are assumed hostile: every size is bounded before it is read,
//! every digest checked, no redirect followed but to hosts that the operator allowed or that are known, and
//! credentials go to the registry itself and to the realms of which the same holds. That is why no client of others is used: `oci-client` reads manifests of any
//! length, follows redirects, sends credentials to the realm that the registry names, and looks for proxies
//! in the environment.
//!
//! ```no_run
//! use toolward_registry::{Client, PullOptions, Reference};
//! use toolward_signing::envelope::Envelope;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::builder().build()?;
//! let reference: Reference = "oci://registry.example/team/text-stats:1.2.3".parse()?;
//! let options = PullOptions::new("/var/cache/downloads".as_ref());
//! let pulled = client.pull(&reference, &options, |envelope| Envelope::parse(envelope)).await?;
//! let archive = pulled.archive(Default::default(), Vec::new())?;
//! # Ok(())
//! # }
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod address;
mod artifact;
mod attach;
mod auth;
mod blob;
mod blob_sink;
mod challenge;
mod client;
mod cosign;
mod credentials;
mod digest;
mod document;
mod failure;
mod helper;
mod https_source;
mod known;
mod limits;
mod login;
pub mod media;
mod oci;
mod progress;
mod proxy;
mod pull;
mod push;
mod redirect;
mod reference;
mod releases;
mod response;
mod retry;
mod source;
mod tags;
mod text;
mod transport;
mod unknown_host;
mod upload;

pub use address::bare_registry;
pub use artifact::{Artifact, Blob, Details, Outgoing};
pub use attach::Referrer;
pub use client::{Client, ClientBuilder, check_origin};
pub use cosign::merge_signatures;
pub use credentials::Credentials;
pub use digest::BlobDigest;
pub use document::Document;
pub use failure::{Cause, Failure, Reason};
pub use helper::Helpers;
pub use https_source::Fetched;
pub use limits::Limits;
pub use login::Login;
pub use media::DocumentArtifact;
pub use progress::{ProgressFn, Step, TransferProgress};
pub use proxy::Proxy;
pub use pull::{PullOptions, Pulled};
pub use push::Pushed;
pub use redirect::AddressCheck;
pub use reference::Reference;
pub use releases::{MAX_RELEASES, Release, Releases, TagPattern};
pub use secrecy;
pub use source::Source;
pub use unknown_host::{HostRole, UnknownHost};
