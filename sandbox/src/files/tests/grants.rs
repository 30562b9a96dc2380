//! Files that are not granted do not exist for the guest. Files that are granted for reading can't
//! be changed.

use super::*;

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

/// Grants `pattern` in the workspace `root`, whose directory is `tree/name`.
fn grant(tree: &std::path::Path, root: &str, name: &str, pattern: &str) -> WorkspaceGrant {
    WorkspaceGrant {
        path: PathPattern::parse(pattern).expect("a pattern"),
        root: root.to_owned(),
        directory: tree.join(name),
        write: true,
        max_bytes: None,
        max_files: None,
    }
}

fn plan(grants: &[WorkspaceGrant]) -> Result<Plan, crate::files::plan::PlanError> {
    let mappings = grants.iter().map(|grant| Mapping {
        path: &grant.root,
        directory: &grant.directory,
        shared: false,
    });
    let mappings: Vec<Mapping<'_>> = mappings.collect();
    let checked = workspaces::check(&mappings, &[]).expect("disjoint");
    Plan::new(grants, &checked)
}

#[tokio::test]
async fn of_workspaces_nested_in_each_other_the_inner_one_decides() {
    let mut guest = Guest::new(&[]);
    std::fs::create_dir(guest.host("inner")).expect("made");
    std::fs::write(guest.host("inner/a.md"), "inner").expect("written");
    std::fs::write(guest.host("inner/a.txt"), "inner").expect("written");
    let tree = guest.tree.path().to_owned();
    let grants = [
        grant(&tree, "/w", "w", "/w"),
        grant(&tree, "/w/sub", "inner", "/w/sub/*.md"),
    ];
    let plan = Arc::new(plan(&grants).expect("a plan"));
    guest.ctx = Ctx::new(
        Some(FileGrant {
            plan,
            limits: LIMITS,
            counters: guest.counters.clone(),
        }),
        &guest.violations,
        &crate::held::Shared::default(),
    );
    assert_eq!(guest.preopens(), ["/w", "/w/sub"]);
    assert_eq!(guest.read("sub/a.md").await, Ok("inner".to_owned()));
    // The guest sees neither other files of the inner workspace nor the outer workspace's own
    // `sub`.
    assert_eq!(guest.read("sub/a.txt").await, Err(ErrorCode::NotPermitted));
    assert_eq!(guest.read("sub/c.txt").await, Err(ErrorCode::NotPermitted));
    assert_eq!(guest.list(".").await.expect("lists"), ["a.txt", "b.md"]);
    let (old, new) = (guest.root(), guest.root());
    let moved = guest
        .view()
        .rename_at(old, "b.md".to_owned(), new, "sub/b.md".to_owned())
        .await;
    assert_eq!(moved.map_err(code), Err(ErrorCode::CrossDevice));
    let root = guest.root();
    let mut view = guest.view();
    let removed = view.remove_directory_at(root, "sub".to_owned()).await;
    assert_eq!(removed.map_err(code), Err(ErrorCode::NotPermitted));
    assert!(guest.host("inner").exists() && guest.host("w/b.md").exists());
}

#[test]
fn a_workspace_that_is_missing_says_so_with_a_code() {
    let tree = tempfile::tempdir().expect("a directory");
    let grants = [grant(tree.path(), "/w", "missing", "/w")];
    let error = plan(&grants).expect_err("no such directory");
    assert_eq!(error.code(), "workspace-missing");
    assert!(error.to_string().contains("missing: no such directory"));
    assert!(error.hint().unwrap().starts_with("create the directory"));
}

#[test]
fn a_virtual_path_stands_for_one_directory() {
    let tree = tempfile::tempdir().expect("a directory");
    for name in ["a", "b"] {
        std::fs::create_dir(tree.path().join(name)).expect("made");
    }
    let grants = [
        grant(tree.path(), "/w", "a", "/w/x"),
        grant(tree.path(), "/w", "b", "/w/y"),
    ];
    let error = plan(&grants).expect_err("two directories");
    assert_eq!(error.code(), "workspace-ambiguous");
}

#[test]
fn a_workspace_that_was_not_checked_is_not_opened() {
    let tree = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(tree.path().join("w")).expect("made");
    let grants = [grant(tree.path(), "/w", "w", "/w")];
    let error = Plan::new(&grants, &workspaces::Workspaces::default());
    assert_eq!(error.expect_err("unknown").code(), "workspace-unmapped");
}
