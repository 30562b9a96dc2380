//! The view as a guest uses it, over real directories: what is refused is
//! asserted by what did not happen there.

use std::path::{Path, PathBuf};
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
use crate::sandbox::Exceeded;
use crate::violations::EndsCall;
use crate::workspace::{self, Mapping};

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

/// A guest with the grants `(pattern, write)` of one workspace `/w`, which lies
/// beside a file that it must not reach.
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
        let workspaces = workspace::check(&[mapping], &[]).expect("fine");
        let plan = Arc::new(Plan::new(&grants, &workspaces).expect("a plan"));
        let counters = Arc::<FileCounters>::default();
        let violations = Violations::new(on_violation);
        Self {
            tree,
            ctx: Ctx::new(&plan, *limits, counters.clone(), violations.clone()),
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

    /// What was recorded.
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
fn limit<T: std::fmt::Debug>(result: FsResult<T>) -> &'static str {
    let error = result.expect_err("beyond a limit");
    let trap = error.downcast().expect_err("a trap");
    trap.downcast_ref::<Exceeded>().expect("a limit").limit
}

#[tokio::test]
async fn a_tree_is_read_and_written_below_its_preopen() {
    let mut guest = Guest::new(&[("/w", true)]);
    assert_eq!(guest.preopens(), ["/w"]);
    assert_eq!(guest.read("sub/../a.txt").await, Ok("a.txt".to_owned()));
    assert_eq!(
        guest.list(".").await.expect("lists"),
        ["a.txt", "b.md", "sub/"]
    );
    guest.write("sub/new.txt", "new").await.expect("writes");
    assert_eq!(guest.content("w/sub/new.txt"), "new");
    let root = guest.root();
    let mut view = guest.view();
    view.create_directory_at(root, "made".to_owned())
        .await
        .expect("makes");
    let root = guest.root();
    let other = guest.root();
    let mut view = guest.view();
    view.rename_at(root, "sub/new.txt".to_owned(), other, "made/x".to_owned())
        .await
        .expect("moves");
    assert_eq!(guest.content("w/made/x"), "new");
    let root = guest.root();
    guest
        .view()
        .unlink_file_at(root, "made/x".to_owned())
        .await
        .expect("removes");
    let root = guest.root();
    guest
        .view()
        .remove_directory_at(root, "made".to_owned())
        .await
        .expect("removes");
    assert!(!guest.host("w/made").exists());
    assert_eq!(guest.recorded(), Vec::<String>::new());
}

#[tokio::test]
async fn a_guest_without_grants_has_no_directory() {
    let mut table = ResourceTable::new();
    let mut view = View {
        ctx: &mut Ctx::default(),
        table: &mut table,
    };
    assert!(view.get_directories().expect("none").is_empty());
}

#[tokio::test]
async fn a_path_out_of_the_preopen_is_refused_and_recorded() {
    let mut guest = Guest::new(&[("/w", true)]);
    let outside = guest.host("secret.txt");
    let absolute = outside.to_str().expect("text").to_owned();
    for path in ["../secret.txt", "sub/../../secret.txt", "..", &absolute] {
        assert_eq!(guest.read(path).await, Err(ErrorCode::NotPermitted));
        let written = guest.write(path, "overwritten").await;
        assert_eq!(written.map_err(code), Err(ErrorCode::NotPermitted));
    }
    assert_eq!(guest.content("secret.txt"), "secret");
    assert_eq!(
        guest.recorded(),
        [
            "/w/../secret.txt",
            "/w/sub/../../secret.txt",
            "/w/..",
            &absolute
        ]
    );
}

#[tokio::test]
async fn a_directory_gives_nothing_beside_it() {
    let mut guest = Guest::new(&[("/w", false)]);
    let sub = guest
        .open("sub", OpenFlags::DIRECTORY, READ)
        .await
        .expect("opens");
    let opened = guest
        .view()
        .open_at(sub, PathFlags::empty(), "../a.txt".to_owned(), none(), READ)
        .await;
    assert_eq!(
        opened.map(|_| ()).map_err(code),
        Err(ErrorCode::NotPermitted)
    );
    assert_eq!(guest.recorded(), ["/w/sub/../a.txt"]);
}

#[tokio::test]
async fn policy_can_end_the_call_at_the_first_violation() {
    let mut guest = Guest::with(&[("/w", true)], &LIMITS, OnViolation::End, (None, None));
    let error = guest.open("../secret.txt", none(), READ).await;
    let trap = error.expect_err("refused").downcast().expect_err("a trap");
    assert!(trap.is::<EndsCall>());
}

#[tokio::test]
async fn links_of_any_kind_are_neither_followed_nor_made() {
    use std::os::unix::fs::symlink;
    let mut guest = Guest::new(&[("/w", true)]);
    symlink("../secret.txt", guest.host("w/last")).expect("linked");
    symlink("..", guest.host("w/middle")).expect("linked");
    symlink("sub", guest.host("w/within")).expect("linked");
    for path in ["last", "last/", "middle/secret.txt", "within/c.txt"] {
        assert_eq!(
            guest.read(path).await,
            Err(ErrorCode::NotPermitted),
            "{path}"
        );
        let written = guest.write(path, "overwritten").await;
        assert_eq!(
            written.map_err(code),
            Err(ErrorCode::NotPermitted),
            "{path}"
        );
        let root = guest.root();
        let stat = guest
            .view()
            .stat_at(root, PathFlags::SYMLINK_FOLLOW, path.to_owned())
            .await;
        assert!(stat.is_err(), "{path}");
    }
    let root = guest.root();
    let made = guest
        .view()
        .create_directory_at(root, "within/made".to_owned())
        .await;
    assert_eq!(made.map_err(code), Err(ErrorCode::NotPermitted));
    assert!(!guest.host("w/sub/made").exists());
    for (from, to) in [("last", "x"), ("a.txt", "last"), ("a.txt", "middle/x")] {
        let (old, new) = (guest.root(), guest.root());
        let moved = guest
            .view()
            .rename_at(old, from.to_owned(), new, to.to_owned())
            .await;
        assert_eq!(
            moved.map_err(code),
            Err(ErrorCode::NotPermitted),
            "{from} {to}"
        );
    }
    let root = guest.root();
    let read = guest.view().readlink_at(root, "last".to_owned()).await;
    assert_eq!(read.map_err(code), Err(ErrorCode::NotPermitted));
    let root = guest.root();
    let read = guest.view().readlink_at(root, "a.txt".to_owned()).await;
    assert_eq!(read.map_err(code), Err(ErrorCode::Invalid));
    let root = guest.root();
    let made = guest
        .view()
        .symlink_at(root, "../secret.txt".to_owned(), "made".to_owned())
        .await;
    assert_eq!(made.map_err(code), Err(ErrorCode::NotPermitted));
    let (old, new) = (guest.root(), guest.root());
    let made = guest
        .view()
        .link_at(
            old,
            PathFlags::empty(),
            "a.txt".to_owned(),
            new,
            "made".to_owned(),
        )
        .await;
    assert_eq!(made.map_err(code), Err(ErrorCode::NotPermitted));
    assert!(guest.host("w/made").symlink_metadata().is_err());
    assert_eq!(guest.content("secret.txt"), "secret");
    assert!(guest.host("w/last").symlink_metadata().is_ok());
    assert_eq!(
        guest.list(".").await.expect("lists"),
        ["a.txt", "b.md", "sub/"]
    );
    assert!(guest.recorded().contains(&"/w/last".to_owned()));
}

#[tokio::test]
async fn a_hard_link_is_read_and_never_changed() {
    let mut guest = Guest::new(&[("/w", true)]);
    std::fs::hard_link(guest.host("secret.txt"), guest.host("w/planted")).expect("linked");
    assert!(guest.read("planted").await.is_ok());
    assert_eq!(
        guest.write("planted", "overwritten").await.map_err(code),
        Err(ErrorCode::NotPermitted)
    );
    let opened = guest
        .open("planted", OpenFlags::TRUNCATE, DescriptorFlags::WRITE)
        .await;
    assert_eq!(
        opened.map(|_| ()).map_err(code),
        Err(ErrorCode::NotPermitted)
    );
    let before = guest.host("secret.txt").metadata().expect("stat");
    let root = guest.root();
    let times = guest
        .view()
        .set_times_at(
            root,
            PathFlags::empty(),
            "planted".to_owned(),
            NewTimestamp::Now,
            NewTimestamp::Now,
        )
        .await;
    assert_eq!(times.map_err(code), Err(ErrorCode::NotPermitted));
    let after = guest.host("secret.txt").metadata().expect("stat");
    assert_eq!(before.modified().ok(), after.modified().ok());
    assert_eq!(guest.content("secret.txt"), "secret");
}

#[tokio::test]
async fn what_is_neither_file_nor_directory_is_not_opened() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let mut guest = Guest::new(&[("/w", true)]);
    mknodat(
        CWD,
        guest.host("w/fifo"),
        FileType::Fifo,
        Mode::from_raw_mode(0o666),
        0,
    )
    .expect("a FIFO");
    let _socket = std::os::unix::net::UnixListener::bind(guest.host("w/socket")).expect("bound");
    for path in ["fifo", "socket"] {
        for flags in [READ, DescriptorFlags::WRITE] {
            let opened = tokio::time::timeout(
                std::time::Duration::from_secs(5),
                guest.open(path, none(), flags),
            );
            let opened = opened.await.expect("does not wait for the other end");
            assert_eq!(
                opened.map(|_| ()).map_err(code),
                Err(ErrorCode::NotPermitted),
                "{path}"
            );
        }
    }
    assert_eq!(
        guest.list(".").await.expect("lists"),
        ["a.txt", "b.md", "sub/"]
    );
}

#[tokio::test]
async fn nothing_is_changed_through_a_read_only_grant() {
    let mut guest = Guest::new(&[("/w", false)]);
    let before = guest.host("w/a.txt").metadata().expect("stat");
    for (open, flags) in [
        (OpenFlags::CREATE, READ),
        (OpenFlags::TRUNCATE, READ),
        (none(), DescriptorFlags::WRITE),
        (
            OpenFlags::CREATE | OpenFlags::EXCLUSIVE,
            DescriptorFlags::WRITE,
        ),
    ] {
        for path in ["a.txt", "new.txt"] {
            let opened = guest.open(path, open, flags).await;
            assert_eq!(opened.map(|_| ()).map_err(code), Err(ErrorCode::ReadOnly));
        }
    }
    let file = guest.open("a.txt", none(), READ).await.expect("opens");
    let rep = file.rep();
    let same = || Handle::new_borrow(rep);
    let mut view = guest.view();
    let refused = [
        view.write(same(), b"x".to_vec(), 0).await.map(|_| ()),
        view.set_size(same(), 0).await,
        view.set_times(same(), NewTimestamp::Now, NewTimestamp::Now)
            .await,
        view.write_via_stream(same(), 0).map(|_| ()),
        view.append_via_stream(same()).map(|_| ()),
    ];
    for result in refused {
        assert_eq!(result.map_err(code), Err(ErrorCode::ReadOnly));
    }
    let roots: Vec<Handle> = (0..6).map(|_| guest.root()).collect();
    let [a, b, c, d, e, f] = <[Handle; 6]>::try_from(roots).expect("six");
    let mut view = guest.view();
    let refused = [
        view.create_directory_at(a, "made".to_owned()).await,
        view.unlink_file_at(b, "a.txt".to_owned()).await,
        view.remove_directory_at(c, "sub/deep".to_owned()).await,
        view.rename_at(d, "a.txt".to_owned(), e, "z.txt".to_owned())
            .await,
        view.set_times_at(
            f,
            PathFlags::empty(),
            "a.txt".to_owned(),
            NewTimestamp::Now,
            NewTimestamp::Now,
        )
        .await,
    ];
    for result in refused {
        assert_eq!(result.map_err(code), Err(ErrorCode::ReadOnly));
    }
    let after = guest.host("w/a.txt").metadata().expect("stat");
    assert_eq!(before.modified().ok(), after.modified().ok());
    assert_eq!(guest.content("w/a.txt"), "a.txt");
    let mut names: Vec<_> = std::fs::read_dir(guest.host("w"))
        .expect("lists")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["a.txt", "b.md", "sub"]);
    assert!(guest.violations.found().total > 10);
}

#[tokio::test]
async fn making_a_directory_that_is_there_is_no_violation() {
    let mut guest = Guest::new(&[("/w", false)]);
    for path in ["sub", ".", "sub/deep"] {
        let root = guest.root();
        let made = guest
            .view()
            .create_directory_at(root, path.to_owned())
            .await;
        assert_eq!(made.map_err(code), Err(ErrorCode::Exist));
    }
    assert!(guest.recorded().is_empty());
}

#[tokio::test]
async fn of_a_pattern_only_what_matches_exists() {
    let mut guest = Guest::new(&[("/w/*.md", true), ("/w/sub/*/*.md", false)]);
    assert_eq!(guest.preopens(), ["/w", "/w/sub"]);
    assert_eq!(guest.list(".").await.expect("lists"), ["b.md", "sub/"]);
    assert_eq!(guest.list("sub").await.expect("lists"), ["deep/"]);
    assert_eq!(guest.list("sub/deep").await.expect("lists"), ["d.md"]);
    assert_eq!(guest.read("b.md").await, Ok("b.md".to_owned()));
    assert_eq!(
        guest.read("sub/deep/d.md").await,
        Ok("sub/deep/d.md".to_owned())
    );
    assert_eq!(guest.read("a.txt").await, Err(ErrorCode::NotPermitted));
    assert_eq!(guest.read("sub/c.txt").await, Err(ErrorCode::NoEntry));
    assert_eq!(guest.read("sub/c.txt/d.md").await, Err(ErrorCode::NoEntry));

    guest.write("new.md", "new").await.expect("matches");
    let written = guest.write("new.txt", "new").await;
    assert_eq!(written.map_err(code), Err(ErrorCode::NotPermitted));
    for (from, to) in [
        ("new.md", "new.txt"),
        ("a.txt", "x.md"),
        ("new.md", "sub/x.md"),
    ] {
        let (old, new) = (guest.root(), guest.root());
        let moved = guest
            .view()
            .rename_at(old, from.to_owned(), new, to.to_owned())
            .await;
        assert_eq!(
            moved.map_err(code),
            Err(ErrorCode::NotPermitted),
            "{from} {to}"
        );
    }
    for path in ["a.txt", "sub/c.txt"] {
        let root = guest.root();
        let removed = guest.view().unlink_file_at(root, path.to_owned()).await;
        assert_eq!(removed.map_err(code), Err(ErrorCode::NotPermitted));
    }
    assert_eq!(guest.content("w/a.txt"), "a.txt");
    assert_eq!(guest.content("w/new.md"), "new");
    assert!(!guest.host("w/new.txt").exists());
}

#[tokio::test]
async fn a_single_file_is_all_that_exists_of_its_directory() {
    let mut guest = Guest::new(&[("/w/a.txt", true)]);
    assert_eq!(guest.preopens(), ["/w"]);
    assert_eq!(guest.list(".").await.expect("lists"), ["a.txt"]);
    guest.write("a.txt", "changed").await.expect("writes");
    assert_eq!(guest.content("w/a.txt"), "changed");
    for path in ["b.md", "sub", "sub/c.txt", "A.TXT"] {
        assert_eq!(
            guest.read(path).await,
            Err(ErrorCode::NotPermitted),
            "{path}"
        );
    }
    assert_eq!(guest.content("w/b.md"), "b.md");
}

#[tokio::test]
async fn a_file_that_is_granted_before_it_exists_can_be_made() {
    let mut guest = Guest::new(&[("/w/sub/out.txt", true)]);
    assert_eq!(guest.preopens(), ["/w/sub"]);
    guest.write("out.txt", "made").await.expect("writes");
    assert_eq!(guest.content("w/sub/out.txt"), "made");
    assert_eq!(guest.list(".").await.expect("lists"), ["out.txt"]);
}

#[tokio::test]
async fn a_directory_that_a_pattern_matches_does_not_take_its_content_along() {
    let mut guest = Guest::new(&[("/w/s*", true), ("/w/open", true)]);
    std::fs::create_dir(guest.host("w/open")).expect("made");
    let (old, new) = (guest.root(), guest.root());
    let moved = guest
        .view()
        .rename_at(old, "sub".to_owned(), new, "open/sub".to_owned())
        .await;
    assert_eq!(moved.map_err(code), Err(ErrorCode::NotPermitted));
    assert!(guest.host("w/sub/c.txt").exists());
    assert_eq!(
        guest.list("sub").await.expect("lists"),
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn names_that_a_guest_cannot_write_are_not_shown() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let mut guest = Guest::new(&[("/w", false)]);
    for name in [&b"bad\xff"[..], b"line\nbreak", b"back\\slash"] {
        std::fs::write(guest.host("w").join(OsStr::from_bytes(name)), "").expect("written");
    }
    assert_eq!(
        guest.list(".").await.expect("lists"),
        ["a.txt", "b.md", "sub/"]
    );
}

#[tokio::test]
async fn every_way_a_file_grows_counts_before_it_does() {
    // Each pushes the end of a file one byte beyond the limit.
    for way in ["write", "hole", "size", "stream", "append"] {
        let mut guest = Guest::new(&[("/w", true)]);
        guest
            .write("sub/first", &"x".repeat(900))
            .await
            .expect("fits");
        let file = guest
            .open("sub/more", OpenFlags::CREATE, DescriptorFlags::WRITE)
            .await
            .expect("opens");
        let mut view = guest.view();
        let grown = match way {
            "write" => view.write(file, vec![0; 101], 0).await.map(|_| ()),
            "hole" => view.write(file, vec![0; 1], 100).await.map(|_| ()),
            "size" => view.set_size(file, 101).await,
            "stream" => {
                let stream = view.write_via_stream(file, 100).expect("a stream");
                write_stream(&mut guest.table, &stream, 1).await
            }
            _ => {
                let stream = view.append_via_stream(file).expect("a stream");
                write_stream(&mut guest.table, &stream, 101).await
            }
        };
        assert_eq!(limit(grown), "workspace_bytes", "{way}");
        let length = guest.host("w/sub/more").metadata().expect("stat").len();
        assert_eq!(length, 0, "{way}");
        assert_eq!(
            guest.counters.exceeded().map(|exceeded| exceeded.limit),
            Some("workspace_bytes")
        );
    }
}

async fn write_stream(
    table: &mut ResourceTable,
    stream: &Resource<wasmtime_wasi::p2::DynOutputStream>,
    length: usize,
) -> FsResult<()> {
    let stream = table.get_mut(stream).expect("there");
    match stream
        .blocking_write_and_flush(vec![b'y'; length].into())
        .await
    {
        Ok(()) => Ok(()),
        Err(StreamError::Trap(error)) => Err(FsError::trap(error)),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn exactly_the_limit_can_be_written_and_overwritten() {
    let mut guest = Guest::new(&[("/w", true)]);
    for _ in 0..3 {
        guest.write("x", &"x".repeat(1000)).await.expect("fits");
    }
    assert_eq!(guest.content("w/x").len(), 1000);
}

#[tokio::test]
async fn removing_and_truncating_give_nothing_back() {
    let mut guest = Guest::new(&[("/w", true)]);
    guest.write("x", &"x".repeat(600)).await.expect("fits");
    let file = guest
        .open("x", OpenFlags::TRUNCATE, DescriptorFlags::WRITE)
        .await
        .expect("opens");
    let grown = guest.view().write(file, vec![0; 600], 0).await;
    assert_eq!(limit(grown), "workspace_bytes");
}

#[tokio::test]
async fn a_workspace_with_a_cap_has_a_budget_of_its_own() {
    let caps = (Some(10), Some(1));
    let mut guest = Guest::with(&[("/w", true)], &LIMITS, OnViolation::Record, caps);
    guest.write("x", "0123456789").await.expect("fits");
    assert_eq!(
        limit(guest.write("x", "0123456789a").await),
        "workspace_bytes"
    );
    assert_eq!(limit(guest.write("y", "").await), "workspace_files");
    assert!(!guest.host("w/y").exists());
}

#[tokio::test]
async fn files_and_directories_that_are_made_are_counted() {
    let mut guest = Guest::new(&[("/w", true)]);
    for n in 0..4 {
        guest.write(&format!("f{n}"), "").await.expect("fits");
    }
    // Opening what is there makes nothing; failing to make it neither.
    guest.write("f0", "").await.expect("is there");
    let root = guest.root();
    let again = guest
        .view()
        .create_directory_at(root, "sub".to_owned())
        .await;
    assert_eq!(again.map_err(code), Err(ErrorCode::Exist));
    let root = guest.root();
    guest
        .view()
        .create_directory_at(root, "d".to_owned())
        .await
        .expect("fits");
    let root = guest.root();
    let more = guest.view().create_directory_at(root, "e".to_owned()).await;
    assert_eq!(limit(more), "workspace_files");
    assert_eq!(limit(guest.write("f9", "").await), "workspace_files");
    assert!(!guest.host("w/e").exists() && !guest.host("w/f9").exists());
}

#[tokio::test]
async fn open_files_and_streams_are_counted_until_they_are_gone() {
    let mut guest = Guest::new(&[("/w", false)]);
    let file = guest.open("a.txt", none(), READ).await.expect("opens");
    let rep = file.rep();
    let stream = |guest: &mut Guest| {
        let file = Handle::new_borrow(rep);
        guest.view().read_via_stream(file, 0)
    };
    let first = stream(&mut guest).expect("a stream");
    for _ in 0..6 {
        stream(&mut guest).expect("a stream");
    }
    assert_eq!(limit(stream(&mut guest)), "open_files");
    assert_eq!(limit(guest.open("a.txt", none(), READ).await), "open_files");
    guest.table.delete(first).expect("was there");
    // The file stays open as long as a stream reads it.
    types::HostDescriptor::drop(&mut guest.view(), file).expect("was there");
    guest.open("a.txt", none(), READ).await.expect("opens");
    assert_eq!(limit(guest.open("a.txt", none(), READ).await), "open_files");
    guest.table = ResourceTable::new();
    for _ in 0..8 {
        guest.open("a.txt", none(), READ).await.expect("opens");
    }
}

#[tokio::test]
async fn entries_are_counted_shown_or_not() {
    let mut guest = Guest::new(&[("/w/*.md", false)]);
    for n in 0..60 {
        std::fs::write(guest.host(&format!("w/{n}.txt")), "").expect("written");
    }
    assert_eq!(limit(guest.list(".").await), "directory_entries");
}

#[tokio::test]
async fn a_stream_reads_and_writes_in_parts() {
    let mut guest = Guest::new(&[("/w", true)]);
    let file = guest
        .open("x", OpenFlags::CREATE, READ | DescriptorFlags::WRITE)
        .await
        .expect("opens");
    let rep = file.rep();
    let mut view = guest.view();
    let stream = view
        .write_via_stream(Handle::new_borrow(rep), 2)
        .expect("a stream");
    let writer = view.table.get_mut(&stream).expect("there");
    for part in ["abc", "def"] {
        assert!(writer.write_ready().await.expect("ready") > 0);
        writer.write(part.into()).expect("accepted");
        assert_eq!(writer.check_write().expect("goes on"), 0);
    }
    writer.cancel().await;
    assert_eq!(guest.content("w/x"), "\0\0abcdef");
    let mut view = guest.view();
    let stream = view
        .read_via_stream(Handle::new_borrow(rep), 3)
        .expect("a stream");
    let reader = view.table.get_mut(&stream).expect("there");
    assert_eq!(&reader.blocking_read(2).await.expect("reads")[..], b"bc");
    assert!(reader.read(100).expect("starts").is_empty());
    reader.ready().await;
    assert_eq!(&reader.read(100).expect("reads")[..], b"def");
    assert!(matches!(
        reader.blocking_read(1).await,
        Err(StreamError::Closed)
    ));
}

#[tokio::test]
async fn metadata_tells_nothing_of_the_host() {
    let mut guest = Guest::new(&[("/w/*.md", false)]);
    let root = guest.root();
    let stat = guest.view().stat(root).await.expect("stat");
    assert_eq!((stat.link_count, stat.size), (1, 0));
    let hash = async |guest: &mut Guest| {
        let file = guest.open("b.md", none(), READ).await.expect("opens");
        let hash = guest.view().metadata_hash(file).await.expect("a hash");
        (hash.lower, hash.upper)
    };
    let first = hash(&mut guest).await;
    assert_eq!(first, hash(&mut guest).await);
    // Another call on the same file.
    guest.counters = Arc::default();
    let shared = guest.ctx.0.as_ref().expect("granted");
    guest.ctx = Ctx::new(
        &shared.plan.clone(),
        LIMITS,
        guest.counters.clone(),
        guest.violations.clone(),
    );
    assert_ne!(first, hash(&mut guest).await);
}

#[tokio::test]
async fn a_directory_is_itself_and_no_other() {
    let mut guest = Guest::new(&[("/w", false)]);
    let a = guest.open("sub", none(), READ).await.expect("opens");
    let b = guest
        .open("sub/deep/..", none(), READ)
        .await
        .expect("opens");
    let c = guest.open("sub/deep", none(), READ).await.expect("opens");
    let (rep, mut view) = (a.rep(), guest.view());
    assert!(view.is_same_object(a, b).await.expect("tells"));
    let a = Handle::new_borrow(rep);
    assert!(!view.is_same_object(a, c).await.expect("tells"));
}

/// The path is swapped between a file and links to another, as fast as it goes,
/// while it is opened, read and written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_swapped_in_while_a_path_is_opened_leads_nowhere() {
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};
    let limits = FileLimits {
        bytes: 1 << 20,
        files: 1 << 20,
        open: 1 << 20,
        entries: 1 << 20,
    };
    let mut guest = Guest::with(&[("/w", true)], &limits, OnViolation::Record, (None, None));
    let done = Arc::new(AtomicBool::new(false));
    let swapper = std::thread::spawn({
        let (w, done) = (guest.host("w"), done.clone());
        let make = move |name: &str, make: &dyn Fn(&Path)| {
            let temporary = w.join("temporary");
            make(&temporary);
            std::fs::rename(&temporary, w.join(name)).expect("swapped");
        };
        move || {
            let mut swaps = 0_u64;
            while !done.load(Ordering::Relaxed) {
                make("swapped", &|path| {
                    std::fs::write(path, "inside").expect("written");
                });
                make("swapped", &|path| {
                    symlink("../secret.txt", path).expect("linked");
                });
                swaps += 1;
            }
            swaps
        }
    });
    let (mut inside, mut refused) = (0, 0);
    for round in 0..10_000 {
        if round % 4 == 3 {
            let _ = guest.write("swapped", "x").await.map_err(code);
            continue;
        }
        match guest.read("swapped").await {
            Ok(text) => {
                assert_ne!(text, "secret");
                inside += 1;
            }
            Err(_) => refused += 1,
        }
        guest.table = ResourceTable::new();
    }
    done.store(true, Ordering::Relaxed);
    assert!(swapper.join().expect("ended") > 0);
    assert!(inside > 0 && refused > 0, "{inside} {refused}");
    assert_eq!(guest.content("secret.txt"), "secret");
}

/// A component that asks for its directories, and whether the first is itself.
const COMPONENT: &str = r#"
(component
  (import "wasi:filesystem/types@0.2.0" (instance $types
    (export "descriptor" (type $descriptor (sub resource)))
    (export "[method]descriptor.is-same-object" (func
      (param "self" (borrow $descriptor)) (param "other" (borrow $descriptor)) (result bool)))))
  (alias export $types "descriptor" (type $descriptor))
  (import "wasi:filesystem/preopens@0.2.0" (instance $preopens
    (export "descriptor" (type $own (eq $descriptor)))
    (export "get-directories" (func (result (list (tuple (own $own) string)))))))
  (core module $memory
    (memory (export "memory") 1)
    (global $next (mut i32) (i32.const 1024))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
      (global.set $next (i32.add (local.get $at) (local.get 3)))
      (local.get $at)))
  (core instance $memory (instantiate $memory))
  (core func $get-directories (canon lower (func $preopens "get-directories")
    (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (core func $is-same (canon lower (func $types "[method]descriptor.is-same-object")))
  (core module $main
    (import "" "memory" (memory 1))
    (import "" "get-directories" (func $get-directories (param i32)))
    (import "" "is-same" (func $is-same (param i32 i32) (result i32)))
    (func (export "run") (result i32)
      (call $get-directories (i32.const 16))
      (if (i32.eqz (i32.load (i32.const 20))) (then (return (i32.const 100))))
      (call $is-same
        (i32.load (i32.load (i32.const 16)))
        (i32.load (i32.load (i32.const 16))))))
  (core instance $main (instantiate $main (with "" (instance
    (export "memory" (memory $memory "memory"))
    (export "get-directories" (func $get-directories))
    (export "is-same" (func $is-same))))))
  (func (export "run") (result u32) (canon lift (core func $main "run"))))
"#;

struct Data {
    wasi: wasmtime_wasi::WasiCtx,
    table: ResourceTable,
    files: Ctx,
}

impl wasmtime_wasi::WasiView for Data {
    fn ctx(&mut self) -> wasmtime_wasi::WasiCtxView<'_> {
        wasmtime_wasi::WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

#[tokio::test]
async fn a_component_gets_this_view_and_not_the_one_it_replaces() {
    use wasmtime::component::Component;
    let engine = wasmtime::Engine::default();
    let mut linker = Linker::new(&engine);
    wasmtime_wasi::p2::add_to_linker_async::<Data>(&mut linker).expect("linked");
    add_to_linker(&mut linker, |data: &mut Data| View {
        ctx: &mut data.files,
        table: &mut data.table,
    })
    .expect("linked");
    let bytes = wat::parse_str(COMPONENT).expect("a component");
    let component = Component::new(&engine, bytes).expect("compiles");
    let guest = Guest::new(&[("/w", false)]);
    for (files, expected) in [(guest.ctx.clone(), 1), (Ctx::default(), 100)] {
        let data = Data {
            wasi: wasmtime_wasi::WasiCtx::builder().build(),
            table: ResourceTable::new(),
            files,
        };
        let mut store = wasmtime::Store::new(&engine, data);
        let instance = linker
            .instantiate_async(&mut store, &component)
            .await
            .expect("links");
        let run = instance
            .get_typed_func::<(), (u32,)>(&mut store, "run")
            .expect("exported");
        let (answer,) = run.call_async(&mut store, ()).await.expect("runs");
        assert_eq!(answer, expected);
    }
}
