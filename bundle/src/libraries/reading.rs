//! Reading of several bundles that may take actions from each other.

use toolward_signing::trust::TrustStore;
use toolward_signing::verify::{Bundle, Verified};

use super::Shelf;
use super::shelf::Volume;
use crate::content::Content;
use crate::error::ContentError;

/// A verified bundle, read by itself: what takes nothing from libraries is done, and what this bundle is a library of
/// is known. May be made on any thread.
#[derive(Debug)]
pub struct Reading {
    content: Result<Content, ContentError>,
    /// The bundle, if it is to be read again with the libraries.
    open: Option<Verified<Bundle>>,
    volume: Volume,
}

impl Reading {
    /// Reads a bundle by itself.
    #[must_use]
    pub fn new(bundle: Verified<Bundle>) -> Self {
        let volume = Volume::of(&bundle);
        let content = Content::from_verified(bundle.clone());
        let open = content.as_ref().err().filter(|error| error.lacks_action());
        Self {
            open: open.map(|_| bundle),
            content,
            volume,
        }
    }

    /// Whether it takes actions that are not in it.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Finishes bundles that may take actions from each other, in their order. Actions take nothing from actions, so
    /// that bundles may refer to each other in a circle.
    pub fn finish(readings: Vec<Self>, trust: &TrustStore) -> Vec<Result<Content, ContentError>> {
        let (volumes, read): (Vec<_>, Vec<_>) = readings
            .into_iter()
            .map(|reading| (reading.volume, (reading.content, reading.open)))
            .unzip();
        let shelf = Shelf::new(volumes, trust);
        let read = read.into_iter().map(|(content, open)| match open {
            Some(bundle) => Content::from_verified_with(bundle, &shelf),
            None => content,
        });
        read.collect()
    }
}
