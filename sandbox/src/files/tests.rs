//! Tests that use the view like a guest, on real directories. After a refusal, they assert that
//! nothing happened there.

mod escapes;
mod grants;
mod limits;
mod operations;

use std::path::PathBuf;
use std::sync::Arc;

use toolward_contract::capability::PathPattern;
use toolward_policy::{OnViolation, WorkspaceGrant};
use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::p2::bindings::filesystem::preopens::Host as _;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, DescriptorFlags, DescriptorType, ErrorCode, HostDescriptor as _,
    HostDirectoryEntryStream as _, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{FsError, FsResult, StreamError};

use super::*;
use crate::exceeded::Exceeded;
use crate::files::workspaces::{self, Mapping};
use crate::violations::EndsCall;

type Handle = Resource<types::Descriptor>;

const LIMITS: FileLimits = FileLimits {
    bytes: 1000,
    files: 5,
    open: 8,
    entries: 50,
};

fn none() -> OpenFlags {
    OpenFlags::empty()
}
const READ: DescriptorFlags = DescriptorFlags::READ;

/// A guest with the grants `(pattern, write)` of one workspace `/w`. Next to the workspace is a
/// file that the guest must not reach.
struct Guest {
    tree: tempfile::TempDir,
    ctx: Ctx,
    table: ResourceTable,
    counters: Arc<FileCounters>,
    violations: Violations,
}

impl Guest {
    fn new(grants: &[(&str, bool)]) -> Self {
        Self::with(grants, &LIMITS, OnViolation::Record, (None, None))
    }

    fn with(
        grants: &[(&str, bool)],
        limits: &FileLimits,
        on_violation: OnViolation,
        (max_bytes, max_files): (Option<u64>, Option<u64>),
    ) -> Self {
        let tree = tempfile::tempdir().expect("a directory");
        let w = tree.path().join("w");
        std::fs::create_dir_all(w.join("sub/deep")).expect("made");
        for file in ["a.txt", "b.md", "sub/c.txt", "sub/deep/d.md"] {
            std::fs::write(w.join(file), file).expect("written");
        }
        std::fs::write(tree.path().join("secret.txt"), "secret").expect("written");
        let grants = grants.iter().map(|(pattern, write)| WorkspaceGrant {
            path: PathPattern::parse(pattern).expect("a pattern"),
            root: "/w".to_owned(),
            directory: w.clone(),
            write: *write,
            max_bytes,
            max_files,
        });
        let grants: Vec<WorkspaceGrant> = grants.collect();
        let mapping = Mapping {
            path: "/w",
            directory: &w,
            shared: false,
        };
        let checked = workspaces::check(&[mapping], &[]).expect("fine");
        let plan = Arc::new(Plan::new(&grants, &checked).expect("a plan"));
        let counters = Arc::<FileCounters>::default();
        let violations =
            Violations::new(on_violation, &crate::violations::Reported::default(), None);
        Self {
            tree,
            ctx: Ctx::new(
                Some(FileGrant {
                    plan,
                    limits: *limits,
                    counters: counters.clone(),
                }),
                &violations,
                &crate::held::Shared::default(),
            ),
            table: ResourceTable::new(),
            counters,
            violations,
        }
    }

    fn view(&mut self) -> View<'_> {
        View {
            ctx: &mut self.ctx,
            table: &mut self.table,
        }
    }

    fn host(&self, path: &str) -> PathBuf {
        self.tree.path().join(path)
    }

    fn content(&self, path: &str) -> String {
        std::fs::read_to_string(self.host(path)).unwrap_or_else(|error| format!("{error}"))
    }

    fn preopens(&mut self) -> Vec<String> {
        let preopens = self.view().get_directories().expect("some");
        preopens.into_iter().map(|(_, path)| path).collect()
    }

    /// The first preopen.
    fn root(&mut self) -> Handle {
        self.view().get_directories().expect("some").remove(0).0
    }

    async fn open(
        &mut self,
        path: &str,
        open: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Handle> {
        let root = self.root();
        self.view()
            .open_at(
                root,
                PathFlags::SYMLINK_FOLLOW,
                path.to_owned(),
                open,
                flags,
            )
            .await
    }

    async fn read(&mut self, path: &str) -> Result<String, ErrorCode> {
        let file = self.open(path, none(), READ).await.map_err(code)?;
        let (bytes, _) = self.view().read(file, 100, 0).await.map_err(code)?;
        Ok(String::from_utf8(bytes).expect("text"))
    }

    async fn write(&mut self, path: &str, text: &str) -> FsResult<()> {
        let file = self
            .open(path, OpenFlags::CREATE, DescriptorFlags::WRITE)
            .await?;
        self.view().write(file, text.into(), 0).await.map(|_| ())
    }

    async fn list(&mut self, path: &str) -> FsResult<Vec<String>> {
        let directory = self.open(path, OpenFlags::DIRECTORY, READ).await?;
        let mut view = self.view();
        let stream = view.read_directory(directory).await?;
        let rep = stream.rep();
        let mut names = Vec::new();
        while let Some(entry) = view.read_directory_entry(Resource::new_borrow(rep)).await? {
            let slash = if entry.type_ == DescriptorType::Directory {
                "/"
            } else {
                ""
            };
            names.push(entry.name + slash);
        }
        types::HostDirectoryEntryStream::drop(&mut view, stream).expect("was there");
        names.sort();
        Ok(names)
    }

    /// The recorded violations.
    fn recorded(&self) -> Vec<String> {
        let first = self.violations.found().first;
        first.into_iter().map(|found| found.subject).collect()
    }
}

/// The code that the guest gets. A trap fails the test.
fn code(error: FsError) -> ErrorCode {
    error.downcast().expect("no trap")
}

/// The limit that ended the call.
fn limit<T: std::fmt::Debug>(result: FsResult<T>) -> toolward_policy::LimitName {
    let error = result.expect_err("beyond a limit");
    let trap = error.downcast().expect_err("a trap");
    trap.downcast_ref::<Exceeded>().expect("a limit").limit
}
