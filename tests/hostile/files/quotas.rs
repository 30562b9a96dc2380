//! Limits on data that a call adds to a workspace, and on handles that it keeps open.

use super::*;

fn small() -> Limits {
    Limits {
        workspace_bytes: Limit::fixed(100_000),
        workspace_files: Limit::fixed(10),
        open_files: 8,
        ..Limits::default()
    }
}

/// Returns the bytes, and the files and directories, that were added to the workspace.
fn added(disk: &Disk) -> (u64, usize) {
    let found = everything(&disk.inside(""));
    let bytes = found
        .keys()
        .filter(|path| path.is_file())
        .map(|path| path.metadata().unwrap().len());
    (bytes.sum::<u64>() - 2, found.len() - 3)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_adds_so_many_bytes_and_no_more_however_it_writes() {
    for input in [
        json!({"do": "fs", "op": "write-stream", "path": "big", "how": ["create"], "n": 200_000}),
        json!({"do": "fs", "op": "append-stream", "path": "a.txt", "n": 200_000}),
        json!({"do": "fs", "op": "write-zeroes", "path": "big", "how": ["create"], "n": 200_000}),
        json!({"do": "fs", "op": "write", "path": "big", "how": ["create"], "n": 1, "offset": 1_u64 << 40}),
        json!({"do": "std-fs", "op": "truncate", "path": "/notes/a.txt", "n": 1_u64 << 40}),
        json!({"do": "repeat", "times": 50, "step":
            {"do": "fs", "op": "write", "path": "big", "how": ["create", "truncate"], "n": 9000}}),
    ] {
        let disk = Disk::new();
        let (_bundle, host) = disk.granting(&[], &["/notes"], "", small());
        let error = error(&host, TOOL, input.clone()).await;
        assert_eq!(
            error.code.as_str(),
            "toolward:limit_exceeded",
            "{input}: {error:?}"
        );
        let hit = error.limit.unwrap();
        assert_eq!(
            (hit.limit.as_str(), hit.allowed),
            ("workspace_bytes", 100_000),
            "{input}"
        );
        assert!(
            hit.used > 100_000 && error.hint.is_some(),
            "{input}: {hit:?}"
        );
        assert!(added(&disk).0 <= 100_000, "{input}: {:?}", added(&disk));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_makes_and_holds_so_many_files_and_no_more() {
    for (input, limit) in [
        (
            json!({"do": "fs", "op": "create-many", "path": "f", "n": 100}),
            "workspace_files",
        ),
        (
            json!({"do": "fs", "op": "mkdir-many", "path": "d", "n": 100}),
            "workspace_files",
        ),
        (
            json!({"do": "fs", "op": "open-many", "path": "a.txt", "n": 100}),
            "open_files",
        ),
        (
            json!({"do": "fs", "op": "list-many", "path": ".", "n": 100}),
            "open_files",
        ),
    ] {
        let disk = Disk::new();
        let (_bundle, host) = disk.granting(&[], &["/notes"], "", small());
        let error = error(&host, TOOL, input.clone()).await;
        let hit = error.limit.unwrap();
        assert_eq!(hit.limit, limit, "{input}: {error:?}");
        assert_eq!(error.code.as_str(), "toolward:limit_exceeded", "{input}");
        assert!(
            hit.used > hit.allowed && error.hint.is_some(),
            "{input}: {hit:?}"
        );
        assert!(added(&disk).1 <= 10, "{input}: {:?}", added(&disk));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_may_have_a_smaller_budget_than_the_host() {
    let disk = Disk::new();
    let bundle = Bundle::of(TOOL, Guest::Plain, &declaring(&[], &["/notes"]), "");
    let host = bundle.host(&format!(
        "{}max_bytes = 5000\nmax_files = 2\n{}",
        mapping("/notes", &disk.inside("")),
        granting(&[], &["/notes"])
    ));
    let input =
        json!({"do": "fs", "op": "write-stream", "path": "big", "how": ["create"], "n": 20_000});
    let hit = error(&host, TOOL, input).await.limit.unwrap();
    assert_eq!((hit.limit.as_str(), hit.allowed), ("workspace_bytes", 5000));
    let input = json!({"do": "fs", "op": "create-many", "path": "f", "n": 20});
    let hit = error(&host, TOOL, input).await.limit.unwrap();
    assert_eq!((hit.limit.as_str(), hit.allowed), ("workspace_files", 2));
    assert!(
        added(&disk).0 <= 5000 && added(&disk).1 <= 3,
        "{:?}",
        added(&disk)
    );
}
