//! Links that are planted, made, swapped in, or used as the target of a rename.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn symbolic_links_that_point_out_are_not_followed_for_anything() {
    let disk = Disk::new();
    symlink(disk.outside("secret.txt"), disk.inside("file")).unwrap();
    symlink("../outside/secret.txt", disk.inside("relative")).unwrap();
    symlink(disk.outside(""), disk.inside("directory")).unwrap();
    symlink("..", disk.inside("up")).unwrap();
    symlink(disk.outside("new.txt"), disk.inside("dangling")).unwrap();
    symlink("/proc/self/root", disk.inside("root")).unwrap();
    let (_bundle, host) = disk.writing();
    for path in [
        "file",
        "relative",
        "directory/secret.txt",
        "directory/sub/b.txt",
        "directory/new.txt",
        "up/outside/secret.txt",
        "dangling",
        "root/etc/passwd",
        "directory/",
    ] {
        nothing_works(&disk, &host, all_on(path)).await;
        let (_, reply) = fs(&host, json!({"op": "read", "path": path, "follow": true})).await;
        assert_eq!(reply.metadata.violations_total, 1, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_within_the_workspace_is_no_way_around_what_is_granted_of_it() {
    let disk = Disk::new();
    std::fs::create_dir(disk.inside("public")).unwrap();
    symlink("../sub/b.txt", disk.inside("public/b.txt")).unwrap();
    symlink("../sub", disk.inside("public/sub")).unwrap();
    let (_bundle, host) = disk.granting(&["/notes/public"], &[], "", Limits::default());
    nothing_works(&disk, &host, reads_on("b.txt")).await;
    nothing_works(&disk, &host, reads_on("sub/b.txt")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_makes_no_links() {
    let disk = Disk::new();
    let (_bundle, host) = disk.writing();
    let outside = disk.outside("secret.txt").display().to_string();
    nothing_works(
        &disk,
        &host,
        vec![
            json!({"op": "symlink", "path": "mine", "to": outside}),
            json!({"op": "symlink", "path": "mine", "to": "../outside/secret.txt"}),
            json!({"op": "symlink", "path": "mine", "to": "a.txt"}),
            json!({"op": "link", "path": "a.txt", "to": "mine"}),
            json!({"op": "link", "path": "../outside/secret.txt", "to": "mine"}),
            json!({"op": "link", "path": "a.txt", "to": "../outside/mine"}),
        ],
    )
    .await;
    let got = std_fs(
        &host,
        json!({"op": "link", "path": "/notes/a.txt", "to": "/notes/mine"}),
    )
    .await;
    assert!(got["err"].is_string(), "{got}");
    assert!(!disk.inside("mine").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hard_link_planted_in_the_workspace_is_not_written_through() {
    let disk = Disk::new();
    std::fs::hard_link(disk.outside("secret.txt"), disk.inside("linked")).unwrap();
    let (_bundle, host) = disk.writing();
    let before = disk.beside();
    let write = json!(["read", "write"]);
    for operation in [
        json!({"op": "open", "path": "linked", "flags": write}),
        json!({"op": "open", "path": "linked", "how": ["truncate"], "flags": write}),
        json!({"op": "write", "path": "linked", "text": "mine"}),
        json!({"op": "append-stream", "path": "linked", "text": "mine"}),
        json!({"op": "write-stream", "path": "linked", "how": ["create", "truncate"], "text": "mine"}),
        json!({"op": "set-times-at", "path": "linked", "n": 1}),
    ] {
        let (got, reply) = fs(&host, operation.clone()).await;
        assert!(got["err"].is_string(), "{operation}: {got}");
        assert_eq!(reply.metadata.violations_total, 1, "{operation}");
        assert_eq!(disk.beside(), before, "{operation}");
    }
    // A handle that was opened for reading can't change the file either.
    let steps = json!({"do": "steps", "steps": [
        {"do": "fs", "op": "open", "path": "linked", "as": "h"},
        {"do": "fs", "op": "set-times", "at": "h", "n": 1},
        {"do": "fs", "op": "set-size", "at": "h", "n": 1},
        {"do": "fs", "op": "write", "at": "h", "path": "", "text": "mine"},
    ]});
    let got = value(&host, TOOL, steps).await;
    for step in 1..4 {
        assert!(got[step]["err"].is_string(), "{step}: {got}");
    }
    assert_eq!(disk.beside(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn renaming_neither_leaves_the_workspace_nor_goes_over_a_link() {
    let disk = Disk::new();
    symlink(disk.outside("secret.txt"), disk.inside("link")).unwrap();
    symlink(disk.outside(""), disk.inside("directory")).unwrap();
    let (_bundle, host) = disk.writing();
    nothing_works(
        &disk,
        &host,
        vec![
            json!({"op": "rename", "path": "a.txt", "to": "../outside/secret.txt"}),
            json!({"op": "rename", "path": "a.txt", "to": "directory/secret.txt"}),
            json!({"op": "rename", "path": "a.txt", "to": "link"}),
            json!({"op": "rename", "path": "link", "to": "mine"}),
            json!({"op": "rename", "path": "directory", "to": "mine"}),
            json!({"op": "rename", "path": "directory/secret.txt", "to": "mine"}),
            json!({"op": "rename", "path": "sub", "to": "../outside/sub"}),
            json!({"op": "rename", "path": "sub", "to": "directory"}),
            json!({"op": "rename", "path": "sub", "to": "sub/deeper"}),
            json!({"op": "rename", "path": ".", "to": "mine"}),
            json!({"op": "rename", "path": "sub/..", "to": "mine"}),
        ],
    )
    .await;
    let (got, _) = fs(
        &host,
        json!({"op": "rename", "path": "a.txt", "to": "sub/b.txt"}),
    )
    .await;
    assert_eq!(got["ok"], json!(true), "an ordinary one: {got}");
    assert_eq!(
        std::fs::read_to_string(disk.inside("sub/b.txt")).unwrap(),
        "a"
    );
}

/// Swaps two paths as fast as it can until it is dropped.
struct Swapper {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<u64>>,
}

impl Swapper {
    fn start(one: PathBuf, other: PathBuf) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut swaps = 0;
            while !seen.load(Ordering::Acquire) {
                rustix::fs::renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                swaps += 1;
            }
            swaps
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }

    fn swaps(mut self) -> u64 {
        self.stop.store(true, Ordering::Release);
        self.thread.take().unwrap().join().unwrap()
    }
}

async fn racing(disk: &Disk, what: &str, path: &str) {
    let (_bundle, host) = disk.writing();
    value(&host, TOOL, json!({"do": "echo", "value": 1})).await;
    let before = disk.beside();
    let link = disk.0.path().join("link");
    let swapper = Swapper::start(disk.inside(what), link);
    let mut seen = String::new();
    for operation in [
        json!({"do": "fs", "op": "read", "path": path, "follow": true}),
        json!({"do": "fs", "op": "write", "path": path, "text": "mine", "follow": true}),
        json!({"do": "fs", "op": "write", "path": path, "how": ["create", "truncate"], "text": "mine"}),
        json!({"do": "fs", "op": "list", "path": what, "follow": true}),
        json!({"do": "fs", "op": "set-times-at", "path": path, "n": 1, "follow": true}),
    ] {
        let input = json!({"do": "repeat", "for_ms": 150, "step": operation});
        seen += &value(&host, TOOL, input).await.to_string();
    }
    assert!(swapper.swaps() > 100);
    assert!(
        !seen.contains(OUTSIDE) && !seen.contains("secret.txt"),
        "{seen}"
    );
    assert!(seen.contains("ok"), "it worked now and then: {seen}");
    let mut after = disk.beside();
    let mut before = before;
    // A swapped entry may now be in either place, so only `outside` is compared.
    for found in [&mut before, &mut after] {
        found.retain(|path, _| path.starts_with(disk.outside("")));
    }
    assert_eq!(after, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_swapped_in_while_a_file_is_opened_leads_nowhere() {
    let disk = Disk::new();
    symlink(disk.outside("secret.txt"), disk.0.path().join("link")).unwrap();
    racing(&disk, "a.txt", "a.txt").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_swapped_in_for_a_directory_on_the_way_leads_nowhere() {
    let disk = Disk::new();
    symlink(disk.outside("sub"), disk.0.path().join("link")).unwrap();
    racing(&disk, "sub", "sub/b.txt").await;
}
