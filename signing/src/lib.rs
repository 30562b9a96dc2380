//! Signed bundles: digests, keys, DSSE envelopes, manifests, trust, archives, and the verification
//! that turns a directory or a `.toolbundle` file into a [`verify::Verified`] [`verify::Bundle`].
//! The crate also reads the documents by which publishers replace their keys ([`publisher`]) and
//! revoke keys and bundles ([`revocation`]), and the indexes by which sources state the current
//! releases ([`channel`]).
//!
//! Every reader here expects hostile input, and refuses it with a [`Refusal`] that has a stable
//! code. This crate neither parses contracts and drivers nor decides what a bundle may do.
//!
//! ```
//! use toolward_signing::{key::SigningKey, trust::TrustStore};
//!
//! let key = SigningKey::generate()?;
//! let trust = TrustStore::for_key(key.public());
//! assert_eq!(trust.publishers().count(), 1);
//! # Ok::<(), toolward_signing::Refusal>(())
//! ```

pub mod archive;
pub mod channel;
pub mod digest;
pub mod document;
pub mod envelope;
pub mod error;
pub mod freshness;
pub mod id;
pub mod key;
pub mod manifest;
pub mod path;
pub mod provenance;
pub mod publisher;
pub mod revocation;
pub mod sequence;
pub mod text;
pub mod timestamp;
pub mod trust;
pub mod verify;

mod bundle;
mod signers;
mod stored;

pub use digest::Digest;
pub use error::{ErrorKind, Refusal};
pub use manifest::MANIFEST_TYPE;
pub use secrecy;
pub use signers::Fingerprint;
