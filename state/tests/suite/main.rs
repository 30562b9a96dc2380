//! Tests buckets as a host uses them: isolated from each other, within their quotas, shared by
//! threads and processes, and valid after a crash.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod bucket;
mod concurrency;
mod crash;
mod damage;
mod deadline;
mod isolation;
mod model;
mod operations;
mod place;
mod process;
mod quotas;
mod traits;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use toolward_state::{Access, Limits, Store};

use crate::bucket::{Bucket, OpenBucket as _};

/// A temporary directory, and the path of a store in it.
struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().expect("a directory"),
        }
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("state").join("buckets.sqlite")
    }

    fn open(&self) -> Store {
        Store::open(self.file()).expect("a store")
    }
}

/// A bucket for writing, with the default limits.
fn bucket(store: &Store, owner: &str, principal: &str, name: &str) -> Bucket {
    store.bucket(owner, principal, name, Access::Write, Limits::default())
}

fn in_seconds(seconds: u64) -> Instant {
    Instant::now() + Duration::from_secs(seconds)
}

fn check(store: &Store) {
    store.check(in_seconds(60)).expect("a sound store");
}

/// All keys, page by page.
fn all_keys(bucket: &Bucket) -> Vec<String> {
    let mut keys = Vec::new();
    let mut cursor = None;
    loop {
        let page = bucket.list_keys(cursor).expect("a page");
        keys.extend(page.keys);
        cursor = page.cursor;
        if cursor.is_none() {
            return keys;
        }
    }
}
