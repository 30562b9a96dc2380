//! Keys of the second implementation: the server keeps the sealed texts, and returns a name for
//! each.

use std::collections::HashMap;
use std::time::Instant;

use toolward_state::{Binding, BoxFuture, Keys, StateError, Unsealed};

use super::Remote;

/// The sealed texts by token, each with its binding and its expiry. `None` if the text was opened.
pub(super) type SealedTexts = HashMap<String, (Vec<u8>, Option<(Vec<u8>, Instant)>)>;

/// The secret of the server.
const SECRET: [u8; 32] = [5; 32];

impl Keys for Remote {
    fn seal<'a>(
        &'a self,
        binding: Binding<'a>,
        text: Vec<u8>,
        until: Instant,
        deadline: Instant,
    ) -> BoxFuture<'a, Result<String, StateError>> {
        Box::pin(async move {
            let sealed = self.send(deadline, |server| {
                let number = server.sealed.len().to_le_bytes();
                let token = blake3::keyed_hash(&SECRET, &number).to_hex().to_string();
                let text = Some((text, until));
                server.sealed.insert(token.clone(), (binding.bytes(), text));
                token
            });
            Ok(sealed.await?)
        })
    }

    fn unseal<'a>(
        &'a self,
        binding: Binding<'a>,
        token: &'a str,
        deadline: Instant,
    ) -> BoxFuture<'a, Result<Unsealed, StateError>> {
        Box::pin(async move {
            let opened = self.send(deadline, |server| match server.sealed.get_mut(token) {
                Some((bound, text)) if *bound == binding.bytes() => match text.take() {
                    Some((text, until)) if until > Instant::now() => Unsealed::Text(text, until),
                    _ => Unsealed::Spent,
                },
                _ => Unsealed::Foreign,
            });
            Ok(opened.await?)
        })
    }

    fn id_hash(
        &self,
        message: Vec<u8>,
        deadline: Instant,
    ) -> BoxFuture<'_, Result<[u8; 32], StateError>> {
        Box::pin(async move {
            let hash = || *blake3::keyed_hash(&SECRET, &message).as_bytes();
            Ok(self.send(deadline, |_| hash()).await?)
        })
    }
}
