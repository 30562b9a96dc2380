//! Bearer tokens. They are made at random, stored as hashes in a file, and compared in constant
//! time. The file alone gives no access.

mod file;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::SystemTime;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use zeroize::{Zeroize, Zeroizing};

pub use file::{Entry, add, read, write};

use super::{Authenticate, Authenticating, HttpError, Identity, Refusal};
use crate::principal::Principal;

/// The prefix of tokens, by which scanners for leaked secrets recognise them.
pub const PREFIX: &str = "toolward_";

/// Random bytes of a token. They are too many to guess, so a fast hash is enough.
const RANDOM_BYTES: usize = 32;

/// Longer tokens are not looked up.
const MAX_TOKEN_BYTES: usize = 512;

/// A token. Show it once, to its owner. It is erased when it is dropped.
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// The token itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

/// The hash of a token, written `blake3:` or `sha256:` and 64 hexadecimal digits. Hashes are
/// compared in constant time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenHash {
    prefix: &'static str,
    /// A type that compares in constant time.
    bytes: blake3::Hash,
}

/// The algorithms, each with the prefix of its hashes. SHA-256 is for tokens from other sources,
/// since every system has a command for it.
const ALGORITHMS: [(&str, Algorithm); 2] = [("blake3:", blake3::hash), ("sha256:", sha256)];

type Algorithm = fn(&[u8]) -> blake3::Hash;

fn sha256(token: &[u8]) -> blake3::Hash {
    let mut bytes = [0; 32];
    let digest = ring::digest::digest(&ring::digest::SHA256, token);
    bytes.copy_from_slice(digest.as_ref());
    bytes.into()
}

impl TokenHash {
    /// The BLAKE3 hash of a token.
    #[must_use]
    pub fn of(token: &str) -> Self {
        let [blake3, _] = Self::all(token);
        blake3
    }

    fn all(token: &str) -> [Self; 2] {
        ALGORITHMS.map(|(prefix, hash)| Self {
            prefix,
            bytes: hash(token.as_bytes()),
        })
    }
}

impl fmt::Display for TokenHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.prefix, self.bytes.to_hex())
    }
}

impl FromStr for TokenHash {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut hashes = ALGORITHMS.into_iter().filter_map(|(prefix, _)| {
            let bytes = blake3::Hash::from_hex(text.strip_prefix(prefix)?).ok()?;
            Some(Self { prefix, bytes })
        });
        hashes.next().ok_or(())
    }
}

/// A new token, and its hash for the file.
pub fn generate() -> Result<(Secret, TokenHash), HttpError> {
    let mut random = [0; RANDOM_BYTES];
    getrandom::fill(&mut random).map_err(HttpError::Random)?;
    let mut token = String::with_capacity(64);
    token.push_str(PREFIX);
    BASE64_URL_SAFE_NO_PAD.encode_string(random, &mut token);
    random.zeroize();
    let secret = Secret(Zeroizing::new(token));
    let hash = TokenHash::of(secret.expose());
    Ok((secret, hash))
}

/// The hash of one token, and its owner.
#[derive(Debug, Clone)]
struct Token {
    hash: TokenHash,
    identity: Identity,
    expires: Option<SystemTime>,
}

/// The tokens that a server knows.
///
/// ```
/// use toolward_mcp::http::HttpError;
/// use toolward_mcp::http::tokens::{self, Entry, Secret, TokenHash};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// let (file, own) = (folder.path().join("tokens.toml"), folder.path().join("alice.token"));
/// let (secret, hash): (Secret, TokenHash) = tokens::generate()?;
/// tokens::add(&file, &Entry::new("alice", hash, &["text.*".to_owned()], false)?)?;
/// tokens::write(&own, &secret)?;
///
/// let tokens = tokens::read(&file)?;
/// let now = std::time::SystemTime::now();
/// assert!(tokens.find(Some(secret.expose()), now).is_ok());
/// assert!(tokens.find(Some("another"), now).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Tokens {
    tokens: Arc<[Token]>,
}

impl Tokens {
    /// The single token of one principal, without expiry.
    #[must_use]
    pub fn single(hash: TokenHash, principal: Principal) -> Self {
        Self {
            tokens: Arc::new([Token {
                hash,
                identity: Identity {
                    principal,
                    requests: None,
                },
                expires: None,
            }]),
        }
    }

    /// How many tokens the server knows, including expired ones.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there are no tokens.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Returns the owner of a token at this time.
    pub fn find(&self, token: Option<&str>, now: SystemTime) -> Result<Identity, Refusal> {
        let token = token.ok_or(Refusal::Missing)?;
        if token.len() > MAX_TOKEN_BYTES {
            return Err(Refusal::Unknown);
        }
        let presented = TokenHash::all(token);
        // Compares all tokens, so that the time does not reveal which one matched.
        let found = self.tokens.iter().fold(None, |found, token| {
            if presented
                .iter()
                .fold(false, |any, hash| any | (token.hash == *hash))
            {
                Some(token)
            } else {
                found
            }
        });
        let found = found.ok_or(Refusal::Unknown)?;
        if found.expires.is_some_and(|expires| now >= expires) {
            return Err(Refusal::Expired);
        }
        Ok(found.identity.clone())
    }
}

impl Authenticate for Tokens {
    fn authenticate<'a>(&'a self, token: Option<&'a str>) -> Authenticating<'a> {
        let found = self.find(token, SystemTime::now());
        Box::pin(std::future::ready(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::principal::Tools;

    fn principal() -> Principal {
        Principal {
            name: "somebody".into(),
            tools: Tools::All,
            may_approve: false,
        }
    }

    #[test]
    fn a_generated_token_is_long_marked_and_never_the_same() {
        let (one, hash) = generate().unwrap();
        let (other, _) = generate().unwrap();
        assert!(one.expose().starts_with(PREFIX));
        assert_eq!(one.expose().len(), PREFIX.len() + 43);
        assert_ne!(one.expose(), other.expose());
        assert_eq!(TokenHash::of(one.expose()), hash);
        assert_eq!(hash.to_string().parse(), Ok(hash));
    }

    #[test]
    fn a_token_is_not_shown_when_it_is_logged() {
        let (secret, _) = generate().unwrap();
        assert!(!format!("{secret:?}").contains(secret.expose()));
    }

    #[test]
    fn a_token_that_sha256sum_hashed_is_known() {
        // `printf %s made-elsewhere | sha256sum`
        let hash = "sha256:a49b94dc8cebc2301b5ae596e4bca9a21cfd233755744ddaaa93eddfbab059f9";
        let tokens = Tokens::single(hash.parse().unwrap(), principal());
        let now = SystemTime::now();
        assert!(tokens.find(Some("made-elsewhere"), now).is_ok());
        assert_eq!(tokens.find(Some("other"), now), Err(Refusal::Unknown));
        let other = hash.replace("sha256", "blake3").parse().unwrap();
        let tokens = Tokens::single(other, principal());
        assert!(tokens.find(Some("made-elsewhere"), now).is_err());
    }

    #[test]
    fn only_the_whole_token_is_known() {
        let (secret, hash) = generate().unwrap();
        let tokens = Tokens::single(hash, principal());
        let now = SystemTime::now();
        let token = secret.expose();
        assert_eq!(
            tokens.find(Some(token), now).unwrap().principal,
            principal()
        );
        assert_eq!(tokens.find(None, now), Err(Refusal::Missing));
        for other in [
            "",
            token.strip_prefix('t').unwrap(),
            &format!("{token}x"),
            &"x".repeat(MAX_TOKEN_BYTES + 1),
        ] {
            assert_eq!(
                tokens.find(Some(other), now),
                Err(Refusal::Unknown),
                "{other}"
            );
        }
        assert_eq!(
            Tokens::default().find(Some(token), now),
            Err(Refusal::Unknown)
        );
    }
}
