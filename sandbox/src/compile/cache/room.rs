//! Keeps a cache below its limit: removes first the artifacts for other engines, then the oldest. A
//! host that has mapped a removed artifact can still use it.

use std::fs::{self, DirEntry};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::{ARTIFACT, TEMPORARY};

/// The most directory entries that are read. A full cache of small drivers has fewer.
const MAX_ENTRIES: usize = 100_000;

/// The age from which a temporary file counts as abandoned, since writing a file takes only
/// seconds.
const ABANDONED: Duration = Duration::from_secs(60 * 60);

/// A cache in which room is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room<'a> {
    /// The directory with a folder of artifacts for each component.
    pub(super) artifacts: &'a Path,
    /// The artifact that was just written, which is not removed.
    pub(super) newest: &'a Path,
    /// The file name of artifacts for this engine, without its ending.
    pub(super) engine: &'a str,
    /// The most bytes of all artifacts together.
    pub(super) limit: u64,
}

/// An artifact that may be removed. The first in order is removed first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Artifact {
    for_this_engine: bool,
    written: SystemTime,
    path: PathBuf,
    bytes: u64,
}

/// The contents of the cache.
#[derive(Debug, Default)]
struct Found {
    entries: usize,
    bytes: u64,
    artifacts: Vec<Artifact>,
}

impl Room<'_> {
    /// Removes artifacts beyond the limit, and abandoned temporary files. Any number of processes
    /// may do this at once. Files that can't be read or removed stay.
    pub(super) fn make(&self) {
        self.make_among(MAX_ENTRIES);
    }

    fn make_among(&self, most: usize) {
        let mut found = self.look(most);
        // If the cache is too large to be read whole, one artifact is removed for each new one.
        let mut unread = found.entries > most;
        found.artifacts.sort_unstable();
        for artifact in found.artifacts {
            if found.bytes <= self.limit && !unread {
                return;
            }
            if remove(&artifact.path) {
                found.bytes = found.bytes.saturating_sub(artifact.bytes);
                unread = false;
            }
        }
    }

    fn look(&self, most: usize) -> Found {
        let mut found = Found::default();
        for folder in entries(self.artifacts) {
            found.entries = found.entries.saturating_add(1);
            if found.entries > most {
                return found;
            }
            // Links are skipped: a link could lead out of the cache.
            if !folder.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            for file in entries(&folder.path()) {
                found.entries = found.entries.saturating_add(1);
                if found.entries > most {
                    return found;
                }
                self.take(&file, &mut found);
            }
        }
        found
    }

    /// Counts a file, or removes it if it is an abandoned temporary file.
    fn take(&self, file: &DirEntry, found: &mut Found) {
        let Ok(metadata) = file.metadata() else {
            return;
        };
        let (Some(name), Ok(written)) = (file.file_name().into_string().ok(), metadata.modified())
        else {
            return;
        };
        if !metadata.is_file() {
            return;
        }
        let path = file.path();
        let is_abandoned = || written.elapsed().is_ok_and(|age| age > ABANDONED);
        if name.starts_with(TEMPORARY) && is_abandoned() && remove(&path) {
            return;
        }
        found.bytes = found.bytes.saturating_add(metadata.len());
        if name.ends_with(ARTIFACT) && path != self.newest {
            found.artifacts.push(Artifact {
                for_this_engine: name.strip_suffix(ARTIFACT) == Some(self.engine),
                written,
                path,
                bytes: metadata.len(),
            });
        }
    }
}

fn entries(directory: &Path) -> impl Iterator<Item = DirEntry> + use<> {
    fs::read_dir(directory).into_iter().flatten().flatten()
}

/// Removes a file, and its folder if the file was the last. Returns true if the file is gone, even
/// if another process removed it.
fn remove(path: &Path) -> bool {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != ErrorKind::NotFound
    {
        tracing::warn!(%error, path = %path.display(), "a cached driver was not removed");
        return false;
    }
    if let Some(folder) = path.parent() {
        // This fails while the folder has another file.
        let _ = fs::remove_dir(folder);
    }
    true
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use toolward_signing::Digest;

    use super::super::super::artifact::{Claim, SIGNATURE};
    use super::super::Cache;
    use super::*;
    use crate::engine::EngineHash;

    const THIS: u8 = 1;
    const OTHER: u8 = 2;

    /// The bytes of an artifact in these tests, with its signature.
    const SIZE: usize = 100;

    const HOUR: Duration = Duration::from_secs(60 * 60);

    struct Scratch {
        cache: Cache,
        _directory: tempfile::TempDir,
    }

    fn put(cache: &Cache, name: &str, engine: u8, size: usize) -> bool {
        let engine = EngineHash::from_bytes([engine; 32]);
        let component = Digest::of(name.as_bytes());
        let claim = Claim {
            component: &component,
            engine: &engine,
        };
        cache
            .put(claim, &vec![b'x'; size - SIGNATURE], &[])
            .unwrap()
    }

    impl Scratch {
        fn new(limit: usize) -> Self {
            let directory = tempfile::tempdir().unwrap();
            let cache = Cache::open(directory.path().join("cache")).unwrap();
            Self {
                cache: cache.limit(limit as u64),
                _directory: directory,
            }
        }

        /// Adds an artifact as if it had been written at `written`.
        fn put_at(&self, name: &str, engine: u8, written: SystemTime) {
            assert!(put(&self.cache, name, engine, SIZE));
            for file in entries(&self.folder(name)) {
                if file.path().extension().is_some() {
                    set_time(&file.path(), written);
                }
            }
        }

        fn put(&self, name: &str) {
            assert!(put(&self.cache, name, THIS, SIZE));
        }

        fn folder(&self, name: &str) -> PathBuf {
            let component = Digest::of(name.as_bytes()).to_string();
            self.cache.shelf.artifacts().join(component)
        }

        /// Which of these have an artifact.
        fn holds<const N: usize>(&self, names: [&str; N]) -> [bool; N] {
            names.map(|name| entries(&self.folder(name)).next().is_some())
        }
    }

    fn set_time(path: &Path, time: SystemTime) {
        File::open(path).unwrap().set_modified(time).unwrap();
    }

    fn ago(hours: u32) -> SystemTime {
        SystemTime::now() - hours * HOUR
    }

    #[test]
    fn the_oldest_artifact_makes_room_for_the_newest() {
        let scratch = Scratch::new(SIZE * 5 / 2);
        scratch.put_at("new", THIS, ago(1));
        scratch.put_at("old", THIS, ago(2));
        assert_eq!(scratch.holds(["new", "old"]), [true, true]);
        scratch.put("newest");
        assert_eq!(scratch.holds(["new", "old", "newest"]), [true, false, true]);
        assert!(!scratch.folder("old").exists());
    }

    #[test]
    fn what_was_just_written_stays_though_the_clock_was_set_back() {
        let scratch = Scratch::new(SIZE * 3 / 2);
        scratch.put_at("before", THIS, SystemTime::now() + 10 * HOUR);
        scratch.put("newest");
        assert_eq!(scratch.holds(["before", "newest"]), [false, true]);
    }

    #[test]
    fn artifacts_for_other_engines_go_first() {
        let scratch = Scratch::new(SIZE * 5 / 2);
        scratch.put_at("old", THIS, ago(9));
        scratch.put_at("other", OTHER, ago(1));
        scratch.put("newest");
        assert_eq!(
            scratch.holds(["old", "other", "newest"]),
            [true, false, true]
        );
    }

    #[test]
    fn files_that_no_host_looks_for_go_first() {
        let scratch = Scratch::new(SIZE * 5 / 2);
        scratch.put_at("old", THIS, ago(9));
        let engine = EngineHash::from_bytes([THIS; 32]).short();
        fs::create_dir(scratch.folder("named")).unwrap();
        let named = scratch.folder("named").join(format!("{engine}-ab.cwasm"));
        fs::write(&named, [0; SIZE]).unwrap();
        scratch.put("newest");
        assert_eq!(scratch.holds(["old", "named"]), [true, false]);
    }

    #[test]
    fn a_temporary_file_that_a_process_left_behind_goes_and_one_that_is_written_stays() {
        let scratch = Scratch::new(SIZE * 10);
        scratch.put("first");
        let (left, written) = (
            scratch.folder("first").join("tmp-left"),
            scratch.folder("first").join("tmp-written"),
        );
        fs::write(&left, "x").unwrap();
        fs::write(&written, "x").unwrap();
        set_time(&left, ago(2));
        scratch.put("second");
        assert!(!left.exists() && written.exists());
        assert_eq!(scratch.holds(["first", "second"]), [true, true]);
    }

    #[test]
    fn a_temporary_file_takes_room_until_it_goes() {
        let scratch = Scratch::new(SIZE * 5 / 2);
        scratch.put_at("old", THIS, ago(1));
        fs::create_dir(scratch.folder("other")).unwrap();
        fs::write(scratch.folder("other").join("tmp-x"), [0; SIZE]).unwrap();
        scratch.put("newest");
        assert_eq!(scratch.holds(["old", "newest"]), [false, true]);
    }

    #[test]
    fn an_artifact_that_is_larger_than_the_limit_is_not_kept_and_removes_nothing() {
        let scratch = Scratch::new(SIZE);
        scratch.put("first");
        assert!(!put(&scratch.cache, "large", THIS, SIZE + 1));
        assert_eq!(scratch.holds(["first", "large"]), [true, false]);
    }

    #[test]
    fn what_lies_beyond_a_link_or_has_another_name_is_left_alone() {
        let scratch = Scratch::new(SIZE * 3 / 2);
        let outside = tempfile::tempdir().unwrap();
        let artifact = outside.path().join("x.cwasm");
        fs::write(&artifact, [0; SIZE]).unwrap();
        std::os::unix::fs::symlink(outside.path(), scratch.folder("link")).unwrap();
        scratch.put("first");
        let note = scratch.folder("first").join("note");
        fs::write(&note, [0; SIZE]).unwrap();
        scratch.put("second");
        assert!(artifact.exists() && note.exists());
    }

    #[test]
    fn a_cache_that_is_too_large_to_be_read_does_not_grow() {
        let scratch = Scratch::new(SIZE * 10);
        let names = ["a", "b", "c"];
        for name in names {
            scratch.put(name);
        }
        let artifacts = scratch.cache.shelf.artifacts();
        let room = Room {
            artifacts: &artifacts,
            newest: Path::new(""),
            engine: "",
            limit: u64::MAX,
        };
        let kept = || scratch.holds(names).iter().filter(|held| **held).count();
        // Each artifact is a folder and a file.
        room.make_among(6);
        assert_eq!(kept(), 3);
        room.make_among(5);
        assert_eq!(kept(), 2);
    }

    #[test]
    fn two_that_write_at_once_stay_below_the_limit() {
        const LIMIT: usize = SIZE * 5;
        let scratch = Scratch::new(LIMIT);
        let other = Cache::open(scratch.cache.directory()).unwrap();
        let other = other.limit(LIMIT as u64);
        std::thread::scope(|scope| {
            for (cache, name) in [(&scratch.cache, "one"), (&other, "two")] {
                scope.spawn(move || {
                    for number in 0..30 {
                        assert!(put(cache, &format!("{name} {number}"), THIS, SIZE));
                    }
                });
            }
        });
        let folders = entries(&scratch.cache.shelf.artifacts());
        let kept = folders.flat_map(|folder| entries(&folder.path())).count();
        assert!((1..=LIMIT / SIZE).contains(&kept), "{kept}");
    }
}
