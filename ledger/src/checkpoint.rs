//! Checkpoints: the signed size and root of the tree. The formats are C2SP's signed-note and
//! tlog-checkpoint. Other programs can read them, as can witnesses (servers that cosign
//! checkpoints).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use toolward_signing::key::{PublicKey, SigningKey};

use crate::record::{Hash, Hex};

/// The start of an origin, the name of a ledger in its checkpoints. 32 digits of the key's id
/// follow.
const ORIGIN: &str = "toolward.ledger/";
/// The number of the algorithm Ed25519 in signed-note.
const ED25519: u8 = 1;
/// The start of a line with a signature.
const SIGNATURE: &str = "\u{2014} ";
/// The most bytes of a note that is read. Each witness adds a line of a few hundred bytes.
pub const MAX_NOTE_BYTES: usize = 16 * 1024;

/// Size and root of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The number of rows.
    pub size: u64,
    /// The root of the tree over them.
    pub root: Hash,
}

/// Why a text is not a checkpoint of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    /// It does not have the form of a checkpoint.
    #[error("not a checkpoint")]
    Form,
    /// It names another ledger.
    #[error("a checkpoint of another ledger")]
    Origin,
    /// The ledger's key has not signed it.
    #[error("not signed by the ledger's key")]
    Signature,
}

/// Verifies checkpoints: holds the public key of a ledger, and the origin derived from the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verifier {
    origin: String,
    key: PublicKey,
}

impl Verifier {
    /// A verifier for the ledger with this key.
    pub fn new(key: PublicKey) -> Self {
        let id: String = key.key_id().to_string().chars().take(32).collect();
        let origin = format!("{ORIGIN}{id}");
        Self { origin, key }
    }

    /// Reads a verifier key of signed-note (`vkey`): origin, key hash and key.
    pub fn from_vkey(text: &str) -> Option<Self> {
        // The base64 after the second plus may contain plus signs itself.
        let mut parts = text.splitn(3, '+');
        let (_, _, key) = (parts.next()?, parts.next()?, parts.next()?);
        let key = STANDARD.decode(key).ok()?;
        let (algorithm, key) = key.split_first()?;
        let key = PublicKey::from_bytes(key.try_into().ok()?).ok()?;
        let found = Self::new(key);
        (*algorithm == ED25519 && found.to_vkey() == text).then_some(found)
    }

    /// The verifier key in the form of signed-note.
    pub fn to_vkey(&self) -> String {
        let hash = Hex(self.key_hash());
        let key = STANDARD.encode([&[ED25519], self.key.as_bytes().as_slice()].concat());
        format!("{}+{hash}+{key}", self.origin)
    }

    /// The name of the ledger and its key: `toolward.ledger/…`.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The key.
    pub fn key(&self) -> &PublicKey {
        &self.key
    }

    fn key_hash(&self) -> [u8; 4] {
        let mut hasher = Sha256::new();
        hasher.update(&self.origin);
        hasher.update([b'\n', ED25519]);
        hasher.update(self.key.as_bytes());
        let [a, b, c, d, ..]: [u8; 32] = hasher.finalize().into();
        [a, b, c, d]
    }

    /// Reads a checkpoint of this ledger. Signatures of other keys are ignored.
    ///
    /// # Errors
    /// Why the note is not a checkpoint of this ledger.
    pub fn open(&self, note: &str) -> Result<Checkpoint, NoteError> {
        if note.len() > MAX_NOTE_BYTES {
            return Err(NoteError::Form);
        }
        let (body, signatures) = note.split_once("\n\n").ok_or(NoteError::Form)?;
        let body = format!("{body}\n");
        let checkpoint = self.read(&body)?;
        let signatures = signatures.strip_suffix('\n').ok_or(NoteError::Form)?;
        let mut signed = false;
        for line in signatures.split('\n') {
            let line = line.strip_prefix(SIGNATURE).ok_or(NoteError::Form)?;
            let (name, bytes) = line.split_once(' ').ok_or(NoteError::Form)?;
            let bytes = STANDARD.decode(bytes).map_err(|_| NoteError::Form)?;
            let (hash, signature) = bytes.split_first_chunk().ok_or(NoteError::Form)?;
            if name == self.origin && *hash == self.key_hash() {
                let verified = self.key.verify(body.as_bytes(), signature);
                verified.map_err(|_| NoteError::Signature)?;
                signed = true;
            }
        }
        signed.then_some(checkpoint).ok_or(NoteError::Signature)
    }

    fn read(&self, body: &str) -> Result<Checkpoint, NoteError> {
        let mut lines = body.split('\n');
        let mut next = || lines.next().ok_or(NoteError::Form);
        let (origin, size, root, end) = (next()?, next()?, next()?, next()?);
        if origin != self.origin {
            return Err(NoteError::Origin);
        }
        let root = STANDARD.decode(root).map_err(|_| NoteError::Form)?;
        let checkpoint = Checkpoint {
            size: size.parse().map_err(|_| NoteError::Form)?,
            root: Hex::from_slice(&root).ok_or(NoteError::Form)?,
        };
        // Only one spelling is valid: no sign or zero before the size, nothing after the root.
        match end.is_empty() && self.body(&checkpoint) == body {
            true => Ok(checkpoint),
            false => Err(NoteError::Form),
        }
    }

    fn body(&self, checkpoint: &Checkpoint) -> String {
        let root = STANDARD.encode(checkpoint.root.0);
        format!("{}\n{}\n{root}\n", self.origin, checkpoint.size)
    }
}

/// Signs a checkpoint. Returns the note, which ends in a line feed.
pub fn sign(key: &SigningKey, checkpoint: &Checkpoint) -> String {
    let verifier = Verifier::new(key.public());
    let body = verifier.body(checkpoint);
    let signature = key.sign(body.as_bytes());
    let line = STANDARD.encode([&verifier.key_hash(), signature.as_slice()].concat());
    format!("{body}\n{SIGNATURE}{} {line}\n", verifier.origin)
}
