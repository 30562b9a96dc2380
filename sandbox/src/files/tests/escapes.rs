//! Attempts to leave a workspace, which all fail.

use super::*;

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

/// A file and a directory are swapped with links out of the workspace, as fast as possible, while
/// they are opened, read, written, created and removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_swapped_in_while_a_path_is_opened_leads_nowhere() {
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::fs::{CWD, RenameFlags, renameat_with};
    let limits = FileLimits {
        bytes: 1 << 20,
        files: 1 << 20,
        open: 1 << 20,
        entries: 1 << 20,
    };
    let mut guest = Guest::with(&[("/w", true)], &limits, OnViolation::Record, (None, None));
    let w = guest.host("w");
    std::fs::write(w.join("file"), "inside").expect("written");
    symlink("../secret.txt", w.join("file.link")).expect("linked");
    std::fs::create_dir(w.join("directory")).expect("made");
    symlink("..", w.join("directory.link")).expect("linked");
    let done = Arc::new(AtomicBool::new(false));
    let swapper = std::thread::spawn({
        let done = done.clone();
        move || {
            let mut swaps = 0_u64;
            while !done.load(Ordering::Relaxed) {
                for name in ["file", "directory"] {
                    let link = w.join(format!("{name}.link"));
                    renameat_with(CWD, w.join(name), CWD, link, RenameFlags::EXCHANGE)
                        .expect("swapped");
                }
                swaps += 1;
            }
            swaps
        }
    });
    let (mut read, mut refused) = (0, 0);
    for round in 0..10_000 {
        guest.table = ResourceTable::new();
        let root = guest.root();
        let inside = "directory/secret.txt";
        let result = match round % 5 {
            0 => guest.write("file", "inside").await.map_err(code),
            1 => guest.write(inside, "inside").await.map_err(code),
            2 => {
                let made = "directory/made".to_owned();
                let result = guest.view().create_directory_at(root, made).await;
                result.map_err(code)
            }
            3 => {
                let inside = inside.to_owned();
                let result = guest.view().unlink_file_at(root, inside).await;
                result.map_err(code)
            }
            _ => {
                let text = guest.read("file").await;
                assert_ne!(text, Ok("secret".to_owned()));
                let text = guest.read(inside).await.or(text);
                assert_ne!(text, Ok("secret".to_owned()));
                text.map(|_| read += 1)
            }
        };
        refused += u32::from(result == Err(ErrorCode::NotPermitted));
    }
    done.store(true, Ordering::Relaxed);
    assert!(swapper.join().expect("ended") > 0);
    assert!(read > 0 && refused > 0, "{read} {refused}");
    assert_eq!(guest.content("secret.txt"), "secret");
    assert!(!guest.host("made").exists());
}

/// A right-to-left override, a zero-width space, a tag, an isolate, a byte order mark, a soft
/// hyphen, a private character: each changes how a name is displayed.
const HIDDEN: [char; 7] = [
    '\u{202e}',
    '\u{200b}',
    '\u{e0041}',
    '\u{2066}',
    '\u{feff}',
    '\u{ad}',
    '\u{e000}',
];

#[tokio::test]
async fn a_name_that_shows_as_another_is_not_made() {
    for hidden in HIDDEN {
        let mut guest = Guest::new(&[("/w", true)]);
        let before = guest.list(".").await.expect("lists");
        let name = format!("cv{hidden}fdp.exe");
        let made = guest.write(&name, "x").await;
        assert_eq!(made.map_err(code), Err(ErrorCode::Invalid), "{hidden:?}");
        let root = guest.root();
        let made = guest.view().create_directory_at(root, name.clone()).await;
        assert_eq!(made.map_err(code), Err(ErrorCode::Invalid), "{hidden:?}");
        let (from, to) = (guest.root(), guest.root());
        let mut view = guest.view();
        let moved = view.rename_at(from, "a.txt".to_owned(), to, name.clone());
        assert_eq!(
            moved.await.map_err(code),
            Err(ErrorCode::Invalid),
            "{hidden:?}"
        );

        assert_eq!(guest.list(".").await.expect("lists"), before);
        let entries = std::fs::read_dir(guest.host("w")).expect("lists");
        assert_eq!(entries.count(), before.len(), "nothing was made");
        // The same path was refused each time, and is recorded once.
        assert_eq!(guest.recorded(), [format!("/w/{name}")]);
    }
}

#[tokio::test]
async fn a_name_that_shows_as_another_and_is_there_can_be_read_and_removed() {
    for hidden in HIDDEN {
        let mut guest = Guest::new(&[("/w", true)]);
        let name = format!("cv{hidden}fdp.exe");
        std::fs::write(guest.host("w").join(&name), "there").expect("written");
        assert!(guest.list(".").await.expect("lists").contains(&name));
        assert_eq!(guest.read(&name).await, Ok("there".to_owned()));
        let (from, to) = (guest.root(), guest.root());
        let mut view = guest.view();
        view.rename_at(from, name.clone(), to, "plain".to_owned())
            .await
            .expect("moves");
        assert_eq!(guest.content("w/plain"), "there");
        assert!(guest.recorded().is_empty());
    }
}
