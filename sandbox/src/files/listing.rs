//! The entries of a directory that the guest may see: files and directories whose names the guest
//! can use, and that are granted or lead to something granted. Entries are read in small parts.
//! Each entry is counted, whether it is shown or not.

use std::collections::VecDeque;

use rustix::fs::{AtFlags, Dir, FileType};
use wasmtime::component::Resource;
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorType, DirectoryEntry, DirectoryEntryStream, HostDirectoryEntryStream,
};

use super::counters::Slot;
use super::path::nameable;
use super::plan::Access;
use super::resolved_path::{Kind, ResolvedPath};
use super::{Fail, LISTING, View};

/// The number of entries that are read at a time, whether they are shown or not.
const PART: usize = 256;

/// A directory whose entries are being read.
pub(super) struct Listing {
    /// `None` while a part is read, at the end, and after an error.
    source: Option<Source>,
    ready: VecDeque<DirectoryEntry>,
}

pub(super) struct Source {
    place: ResolvedPath,
    directory: Dir,
    _slot: Slot,
}

impl Listing {
    /// Opens a directory. Blocks.
    pub(super) fn open(place: ResolvedPath) -> Result<Self, Fail> {
        let slot = place.shared.open(LISTING)?;
        let directory = Dir::new(place.open_directory()?)?;
        Ok(Self {
            source: Some(Source {
                place,
                directory,
                _slot: slot,
            }),
            ready: VecDeque::new(),
        })
    }
}

impl Source {
    /// Reads a part. The result has no source if the directory has no more entries. Blocks.
    pub(super) fn read(mut self) -> Result<(Option<Self>, Vec<DirectoryEntry>), Fail> {
        let mut entries = Vec::new();
        for _ in 0..PART {
            let Some(entry) = self.directory.read() else {
                return Ok((None, entries));
            };
            let entry = entry?;
            let name = entry.file_name().to_str();
            if matches!(name, Ok("." | "..")) {
                continue;
            }
            let grant = &self.place.shared.grant;
            grant.counters.entry(&grant.limits)?;
            // A guest can't name an entry that is not UTF-8.
            if let Ok(name) = name
                && let Some(kind) = self.visible(name, entry.file_type())
            {
                entries.push(DirectoryEntry {
                    type_: match kind {
                        Kind::File => DescriptorType::RegularFile,
                        Kind::Directory => DescriptorType::Directory,
                    },
                    name: name.to_owned(),
                });
            }
        }
        Ok((Some(self), entries))
    }

    /// The kind of an entry, if the entry exists for the guest.
    fn visible(&self, name: &str, file_type: FileType) -> Option<Kind> {
        if !nameable(name) {
            return None;
        }
        let (_, access) = self
            .place
            .shared
            .grant
            .plan
            .find(&self.place.path.child(name))
            .filter(|(mount, _)| mount.path == self.place.mount.path)?;
        let file_type = match file_type {
            // Not every file system returns the type with the name.
            FileType::Unknown => {
                let directory = self.directory.fd().ok()?;
                let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
                FileType::from_raw_mode(stat.st_mode)
            }
            known => known,
        };
        match file_type {
            FileType::RegularFile if access >= Access::Read => Some(Kind::File),
            FileType::Directory => Some(Kind::Directory),
            _ => None,
        }
    }
}

impl HostDirectoryEntryStream for View<'_> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<DirectoryEntryStream>,
    ) -> FsResult<Option<DirectoryEntry>> {
        let own = Resource::<Listing>::new_borrow(stream.rep());
        loop {
            let listing = self.table.get_mut(&own)?;
            if let Some(entry) = listing.ready.pop_front() {
                return Ok(Some(entry));
            }
            let Some(source) = listing.source.take() else {
                return Ok(None);
            };
            let (path, shared) = (source.place.path.clone(), source.place.shared.clone());
            let (source, entries) = shared.run(&path, move || source.read()).await?;
            let listing = self.table.get_mut(&own)?;
            listing.source = source;
            listing.ready.extend(entries);
        }
    }

    fn drop(&mut self, stream: Resource<DirectoryEntryStream>) -> wasmtime::Result<()> {
        let own = Resource::<Listing>::new_own(stream.rep());
        self.table.delete(own)?;
        Ok(())
    }
}
