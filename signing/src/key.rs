//! Ed25519 keys: the files they live in, their ids, and strict verification. No file is opened here.

mod key_id;
mod public;
mod signing;

pub use key_id::KeyId;
pub use public::{EXAMPLE_KEY_IDS, PublicKey};
pub use signing::{SigningKey, is_encrypted, is_encrypted_pem};

/// How long the text of a key file may be, in bytes; a key needs about 400.
pub const MAX_PEM_BYTES: usize = 16 * 1024;
