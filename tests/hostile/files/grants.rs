//! Attempts just beyond a grant: a name in another case, a neighbouring file, the parent directory,
//! and changes with a grant for reading only.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn another_case_is_another_file() {
    let disk = Disk::new();
    for directory in ["public", "PUBLIC", "Public"] {
        std::fs::create_dir(disk.inside(directory)).unwrap();
        std::fs::write(disk.inside(directory).join("x.md"), directory).unwrap();
        std::fs::write(disk.inside(directory).join("X.MD"), OUTSIDE).unwrap();
    }
    let (_bundle, host) = disk.granting(&["/notes/public/*.md"], &[], "", Limits::default());
    let (got, _) = fs(&host, json!({"op": "read", "path": "x.md"})).await;
    assert_eq!(got["ok"]["text"], json!("public"), "{got}");
    for path in [
        "X.MD",
        "x.MD",
        "../PUBLIC/x.md",
        "../Public/x.md",
        "x.md ",
        "x.md.",
        "x.md/",
    ] {
        nothing_works(&disk, &host, reads_on(path)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_changed_through_a_grant_to_read() {
    let disk = Disk::new();
    let (_bundle, host) = disk.reading();
    for path in ["a.txt", "sub/b.txt", "new.txt", "sub"] {
        let changes = changes_on(path);
        let before = everything(disk.0.path());
        for operation in changes {
            let (got, _) = fs(&host, operation.clone()).await;
            assert!(got["err"].is_string(), "{operation}: {got}");
            assert_eq!(everything(disk.0.path()), before, "{operation}");
        }
    }
    let before = everything(disk.0.path());
    let steps = json!({"do": "steps", "steps": [
        {"do": "fs", "op": "open", "path": "a.txt", "as": "h"},
        {"do": "fs", "op": "write", "at": "h", "path": "", "text": "mine"},
        {"do": "fs", "op": "set-size", "at": "h", "n": 0},
        {"do": "fs", "op": "set-times", "at": "h", "n": 1},
        {"do": "fs", "op": "write-stream", "at": "h", "path": "", "text": "mine"},
        {"do": "fs", "op": "set-times", "n": 1},
    ]});
    let reply = call(&host, TOOL, steps).await;
    assert!(reply.metadata.violations_total > 0);
    let got = reply.result.unwrap().structured["value"].clone();
    assert!(got[0]["ok"].is_object(), "{got}");
    for step in 1..6 {
        assert!(
            !got[step]["ok"].is_boolean() && !got[step]["ok"].is_number(),
            "{step}: {got}"
        );
    }
    for op in [
        "write",
        "append",
        "create-new",
        "truncate",
        "unlink",
        "mkdir-all",
        "remove-all",
        "set-times",
    ] {
        let got = std_fs(
            &host,
            json!({"op": op, "path": "/notes/a.txt", "text": "mine"}),
        )
        .await;
        assert!(got["err"].is_string(), "{op}: {got}");
    }
    assert_eq!(everything(disk.0.path()), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_single_file_nothing_beside_it_exists() {
    let disk = Disk::new();
    std::fs::write(disk.inside("beside.txt"), OUTSIDE).unwrap();
    let (_bundle, host) = disk.granting(&[], &["/notes/a.txt"], "", Limits::default());
    let (got, _) = fs(&host, json!({"op": "list", "path": "."})).await;
    assert_eq!(got["ok"]["names"], json!(["a.txt"]), "{got}");
    let (got, _) = fs(
        &host,
        json!({"op": "write", "path": "a.txt", "text": "mine"}),
    )
    .await;
    assert_eq!(got["ok"], json!(4), "{got}");
    for path in ["beside.txt", "sub", "sub/b.txt", "new.txt", "a.txt/x"] {
        let mut operations = reads_on(path);
        operations.extend(changes_on(path));
        nothing_works(&disk, &host, operations).await;
    }
    let (there, _) = fs(&host, json!({"op": "stat-at", "path": "beside.txt"})).await;
    let (gone, _) = fs(&host, json!({"op": "stat-at", "path": "nothing.txt"})).await;
    assert_eq!(there, gone, "a guest can't tell whether it is there");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_pattern_nothing_beside_what_matches_exists() {
    let disk = Disk::new();
    for name in ["one.md", "two.md", "key.pem", ".hidden.md.bak"] {
        std::fs::write(disk.inside(name), OUTSIDE).unwrap();
    }
    std::fs::write(disk.inside("sub/deep.md"), OUTSIDE).unwrap();
    let (_bundle, host) = disk.granting(&[], &["/notes/*.md"], "", Limits::default());
    let (got, _) = fs(&host, json!({"op": "list", "path": "."})).await;
    assert_eq!(got["ok"]["names"], json!(["one.md", "two.md"]), "{got}");
    for path in [
        "key.pem",
        "a.txt",
        ".hidden.md.bak",
        "sub/deep.md",
        "sub",
        "new.txt",
        "sub/new.md",
    ] {
        nothing_works(&disk, &host, all_on(path)).await;
    }
    // A file can't be renamed from a name that is not granted, or to one.
    nothing_works(
        &disk,
        &host,
        vec![
            json!({"op": "rename", "path": "one.md", "to": "one.pem"}),
            json!({"op": "rename", "path": "key.pem", "to": "key.md"}),
            json!({"op": "rename", "path": "one.md", "to": "sub/one.md"}),
        ],
    )
    .await;
    let (got, _) = fs(
        &host,
        json!({"op": "write", "path": "new.md", "how": ["create"], "text": "x"}),
    )
    .await;
    assert_eq!(got["ok"], json!(1), "{got}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_directory_above_what_is_granted_is_not_listed() {
    let disk = Disk::new();
    std::fs::create_dir(disk.inside("private")).unwrap();
    std::fs::write(disk.inside("private/key"), OUTSIDE).unwrap();
    let (_bundle, host) = disk.granting(&["/notes/sub"], &[], "", Limits::default());
    for path in [
        "..",
        "../private",
        "../private/key",
        "../a.txt",
        "../..",
        "../sub/../private",
    ] {
        nothing_works(&disk, &host, reads_on(path)).await;
    }
    for path in [
        "/notes",
        "/notes/private",
        "/notes/a.txt",
        "/",
        "/notes/sub/..",
    ] {
        for op in ["list", "read", "stat"] {
            let got = std_fs(&host, json!({"op": op, "path": path}))
                .await
                .to_string();
            assert!(
                !got.contains("private") && !got.contains("a.txt"),
                "{op} {path}: {got}"
            );
        }
    }
    let (got, _) = fs(&host, json!({"op": "list", "path": "."})).await;
    assert_eq!(got["ok"]["names"], json!(["b.txt"]), "{got}");
}
