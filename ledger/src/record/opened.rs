//! The first row of a session, made of what is served.

use sha2::{Digest as _, Sha256};

use crate::record::{Hash, Hex, Number, Opened, Version, Word};

impl Opened {
    /// Of the digests of the bundles' manifests, in any order.
    #[must_use]
    pub fn of(
        build: Version,
        mut bundles: Vec<Hash>,
        confinement: Word,
        policy: Option<Hash>,
    ) -> Self {
        bundles.sort_unstable();
        bundles.dedup();
        let mut set = Sha256::new();
        for bundle in &bundles {
            set.update(bundle.0);
        }
        Self {
            build,
            bundles_set: (!bundles.is_empty()).then(|| Hex(set.finalize().into())),
            bundles,
            confinement,
            cut: Number::default(),
            policy,
        }
    }
}
