//! What tells engines apart whose compiled code differs.

use std::hash::{Hash, Hasher};

use wasmtime::Engine;

/// Everything that compiled code depends on beside the component: compiler
/// version, target, CPU features, settings and the version of this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EngineHash([u8; 32]);

impl EngineHash {
    pub(crate) fn of(engine: &Engine) -> Self {
        struct Blake3(blake3::Hasher);
        impl Hasher for Blake3 {
            fn write(&mut self, bytes: &[u8]) {
                self.0.update(bytes);
            }
            fn finish(&self) -> u64 {
                0
            }
        }
        let mut hasher = Blake3(blake3::Hasher::new());
        engine.precompile_compatibility_hash().hash(&mut hasher);
        env!("CARGO_PKG_VERSION").hash(&mut hasher);
        Self(*hasher.0.finalize().as_bytes())
    }

    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub(crate) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// 32 hexadecimal digits of it, for a file's name; the signature covers it
    /// whole.
    pub(crate) fn short(&self) -> String {
        let mut hex = blake3::Hash::from_bytes(self.0).to_hex().to_string();
        hex.truncate(32);
        hex
    }
}
