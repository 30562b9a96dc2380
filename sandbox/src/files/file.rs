//! An open file of a guest. Its operations block, so run them with the functions of [`super`].

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};

use rustix::fs::Timestamps;
use rustix::io::{Errno, ReadWriteFlags, pwritev2};
use toolward_support::helper::lock;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::counters::Slot;
use super::path::VirtualPath;
use super::plan::{Access, Mount, not_linked};
use super::{CHUNK, Fail, Shared};

/// An open file. Shared by its descriptor and the streams made from it.
pub(super) struct OpenFile {
    pub(super) file: File,
    pub(super) path: VirtualPath,
    pub(super) shared: Arc<Shared>,
    pub(super) mount: Arc<Mount>,
    pub(super) access: Access,
    pub(super) read: bool,
    pub(super) write: bool,
    /// Held while a file grows, so that two writes through this handle are counted one after the
    /// other.
    pub(super) growing: Mutex<()>,
    pub(super) _slot: Slot,
}

/// The position of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    At(u64),
    End,
}

impl OpenFile {
    pub(super) fn metadata(&self) -> io::Result<std::fs::Metadata> {
        self.file.metadata()
    }

    /// Fails if the guest did not open the file for reading.
    pub(super) fn readable(&self) -> Result<(), Fail> {
        match self.read {
            true => Ok(()),
            false => Err(ErrorCode::BadDescriptor.into()),
        }
    }

    /// Fails if the guest did not open the file for writing, or may not write.
    pub(super) fn writable(&self) -> Result<(), Fail> {
        if self.access < Access::Write {
            return Err(Fail::Refused(ErrorCode::ReadOnly));
        }
        match self.write {
            true => Ok(()),
            false => Err(ErrorCode::BadDescriptor.into()),
        }
    }

    /// Reads up to `size` bytes; returns no bytes at the end of the file.
    pub(super) fn read_at(&self, size: usize, offset: u64) -> Result<Vec<u8>, Fail> {
        let mut bytes = vec![0; size.min(CHUNK)];
        loop {
            match self.file.read_at(&mut bytes, offset) {
                Ok(count) => {
                    bytes.truncate(count);
                    return Ok(bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Writes all bytes, or nothing if that would exceed a limit.
    pub(super) fn write_to(&self, position: Position, bytes: &[u8]) -> Result<(), Fail> {
        let length = bytes.len() as u64;
        let _growing = lock(&self.growing);
        match position {
            Position::At(offset) => {
                let end = offset.checked_add(length).ok_or(ErrorCode::FileTooLarge)?;
                self.grow_to(end)?;
                Ok(self.file.write_all_at(bytes, offset)?)
            }
            Position::End => {
                self.grow_by(length)?;
                self.append(bytes)
            }
        }
    }

    fn append(&self, mut bytes: &[u8]) -> Result<(), Fail> {
        while !bytes.is_empty() {
            let slices = [IoSlice::new(bytes)];
            let written = match pwritev2(&self.file, &slices, 0, ReadWriteFlags::APPEND) {
                // Not every file system supports this flag. Without it, two appenders may overlap.
                Err(Errno::NOSYS | Errno::NOTSUP | Errno::INVAL) => {
                    let end = self.file.metadata()?.len();
                    return Ok(self.file.write_all_at(bytes, end)?);
                }
                Err(Errno::INTR) => continue,
                written => written?,
            };
            bytes = bytes.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    pub(super) fn set_size(&self, size: u64) -> Result<(), Fail> {
        let _growing = lock(&self.growing);
        self.grow_to(size)?;
        Ok(self.file.set_len(size)?)
    }

    pub(super) fn set_times(&self, times: &Timestamps) -> Result<(), Fail> {
        if self.access < Access::Write {
            return Err(Fail::Refused(ErrorCode::ReadOnly));
        }
        not_linked(&self.file.metadata()?)?;
        Ok(rustix::fs::futimens(&self.file, times)?)
    }

    /// Syncs the written data. Does nothing for a file that was opened only for reading.
    pub(super) fn sync(&self, data_only: bool) -> Result<(), Fail> {
        match (self.write, data_only) {
            (false, _) => Ok(()),
            (true, true) => Ok(self.file.sync_data()?),
            (true, false) => Ok(self.file.sync_all()?),
        }
    }

    /// Counts the growth of the file before its end moves to `end`. A hole counts like data that
    /// could be written into it.
    fn grow_to(&self, end: u64) -> Result<(), Fail> {
        if i64::try_from(end).is_err() {
            return Err(ErrorCode::FileTooLarge.into());
        }
        self.grow_by(end.saturating_sub(self.file.metadata()?.len()))
    }

    fn grow_by(&self, growth: u64) -> Result<(), Fail> {
        let grant = &self.shared.grant;
        Ok(grant.counters.grow(&grant.limits, &self.mount, growth)?)
    }
}
