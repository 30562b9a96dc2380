//! What an archive holds, in the order in which it holds it.

use crate::manifest::{self, ENVELOPE_FILE};
use crate::path::BundlePath;
use crate::provenance;

/// All that an archive holds, borrowed.
#[derive(Clone, Debug)]
pub struct Contents<'a> {
    /// `manifest.dsse.json`.
    pub envelope: &'a [u8],
    /// `manifest.toml`, as signed.
    pub manifest: &'a [u8],
    /// `provenance.dsse.json`, if there.
    pub provenance: Option<&'a [u8]>,
    /// `tools.json` and all other listed files, in any order.
    pub files: Vec<(BundlePath, &'a [u8])>,
}

impl<'a> Contents<'a> {
    /// All entries in the order of an archive.
    pub(super) fn entries(&self) -> Vec<(&str, &'a [u8])> {
        let mut files: Vec<_> = self
            .files
            .iter()
            .map(|(path, bytes)| (path.as_str(), *bytes))
            .collect();
        files.sort_by_key(|(path, _)| *path);
        let mut entries = vec![
            (ENVELOPE_FILE, self.envelope),
            (manifest::FILE, self.manifest),
        ];
        entries.extend(self.provenance.map(|bytes| (provenance::FILE, bytes)));
        entries.extend(files);
        entries
    }
}
