//! The metadata of a file that a guest sees and sets: sizes, times, and a number that identifies a
//! file. The host's inodes, devices and owners are not shown.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorStat, DescriptorType, ErrorCode, MetadataHashValue, NewTimestamp,
};

use super::resolved_path::ResolvedPath;
use super::{Fail, Shared};

pub(super) fn metadata(place: &ResolvedPath) -> Result<Metadata, Fail> {
    let (_, metadata, _) = place.look()?;
    Ok(metadata)
}

/// The metadata that a guest sees. The size and link count of a directory are left out: they would
/// reveal entries that the guest may not see.
pub(super) fn stat(metadata: &Metadata) -> DescriptorStat {
    let (type_, link_count, size) = match metadata.is_dir() {
        true => (DescriptorType::Directory, 1, 0),
        false => (
            DescriptorType::RegularFile,
            metadata.nlink(),
            metadata.len(),
        ),
    };
    let time = |seconds: i64, nanoseconds: i64| {
        Some(Datetime {
            seconds: u64::try_from(seconds).ok()?,
            nanoseconds: u32::try_from(nanoseconds).ok()?,
        })
    };
    DescriptorStat {
        type_,
        link_count,
        size,
        data_access_timestamp: time(metadata.atime(), metadata.atime_nsec()),
        data_modification_timestamp: time(metadata.mtime(), metadata.mtime_nsec()),
        status_change_timestamp: time(metadata.ctime(), metadata.ctime_nsec()),
    }
}

pub(super) fn hash_at(place: &ResolvedPath) -> Result<MetadataHashValue, Fail> {
    hash(&metadata(place)?, &place.shared)
}

/// A hash that is equal for the same file during a call.
pub(super) fn hash(metadata: &Metadata, shared: &Shared) -> Result<MetadataHashValue, Fail> {
    let key = shared.grant.counters.hash_key().ok_or(ErrorCode::Io)?;
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(&metadata.dev().to_le_bytes());
    hasher.update(&metadata.ino().to_le_bytes());
    let mut bytes = [0; 16];
    hasher.finalize_xof().fill(&mut bytes);
    let hash = u128::from_le_bytes(bytes);
    Ok(MetadataHashValue {
        lower: hash as u64,
        upper: (hash >> 64) as u64,
    })
}

pub(super) fn timestamps(
    access: &NewTimestamp,
    modification: &NewTimestamp,
) -> FsResult<Timestamps> {
    Ok(Timestamps {
        last_access: timespec(access)?,
        last_modification: timespec(modification)?,
    })
}

fn timespec(time: &NewTimestamp) -> FsResult<Timespec> {
    let (tv_sec, tv_nsec) = match time {
        NewTimestamp::NoChange => (0, UTIME_OMIT),
        NewTimestamp::Now => (0, UTIME_NOW),
        NewTimestamp::Timestamp(time) => {
            if time.nanoseconds >= 1_000_000_000 {
                return Err(ErrorCode::Invalid.into());
            }
            let seconds = i64::try_from(time.seconds).map_err(|_| ErrorCode::Overflow)?;
            (seconds, time.nanoseconds.into())
        }
    };
    Ok(Timespec { tv_sec, tv_nsec })
}
