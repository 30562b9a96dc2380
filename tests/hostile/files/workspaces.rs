//! Tests which directories can be workspaces, and which tools can use them.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn workspaces_within_each_other_are_refused_when_the_host_is_built() {
    let disk = Disk::new();
    symlink(disk.inside("sub"), disk.0.path().join("alias")).unwrap();
    for other in [
        disk.inside("sub"),
        disk.inside(""),
        disk.0.path().to_owned(),
        disk.0.path().join("alias"),
    ] {
        let bundle = Bundle::of(
            TOOL,
            Guest::Plain,
            &declaring(&["/notes"], &["/drafts"]),
            "",
        );
        let policy = mapping("/notes", &disk.inside(""))
            + &mapping("/drafts", &other)
            + &granting(&["/notes"], &["/drafts"]);
        // The policy detects an overlap that the paths themselves show. The host detects other
        // overlaps by resolving links.
        let text = policy.replace("PUBLISHER", &bundle.publisher());
        match toolward_policy::Policy::from_toml(&text) {
            Err(error) => assert_eq!(error.code(), "policy-workspace-overlap", "{other:?}"),
            Ok(_) => {
                let refused = bundle.builder(&policy).build().err();
                assert_eq!(
                    refused.map(|error| error.code()),
                    Some("workspace-refused"),
                    "{other:?}"
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_policy_and_trust_are_in_no_workspace() {
    let disk = Disk::new();
    symlink(disk.outside("sub"), disk.0.path().join("alias")).unwrap();
    for directory in [
        disk.outside(""),
        disk.outside("sub"),
        disk.0.path().to_owned(),
        disk.0.path().join("alias"),
    ] {
        let bundle = Bundle::of(TOOL, Guest::Plain, &declaring(&["/notes"], &[]), "");
        let policy = mapping("/notes", &directory) + &granting(&["/notes"], &[]);
        let refused = bundle
            .builder(&policy)
            .protect("the keys", disk.outside(""))
            .build()
            .err()
            .unwrap();
        assert_eq!(refused.code(), "workspace-refused", "{directory:?}");
        assert!(refused.to_string().contains("the keys"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_that_is_not_there_blocks_its_tool_and_no_other() {
    let disk = Disk::new();
    let bundle = Bundle::of(TOOL, Guest::Plain, &declaring(&[], &["/notes"]), "").with(
        "other.tool",
        Guest::Plain,
        "",
        "",
    );
    let missing = disk.0.path().join("missing");
    let host = bundle.host(&(mapping("/notes", &missing) + &granting(&[], &["/notes"])));
    let error = error(
        &host,
        TOOL,
        json!({"do": "std-fs", "op": "write", "path": "/notes/x", "text": "x"}),
    )
    .await;
    assert_eq!(error.code.as_str(), "unauthorised", "{error:?}");
    assert_eq!(error.cause.unwrap()["rule"], json!("workspace-missing"));
    assert!(error.hint.is_some());
    assert!(!missing.exists(), "it is not made, either");
    assert_eq!(
        value(&host, "other.tool", json!({"do": "echo", "value": 1})).await,
        json!(1)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_is_replaced_after_the_check_redirects_no_tool() {
    let disk = Disk::new();
    let (_bundle, host) = disk.writing();
    let moved = disk.0.path().join("moved");
    std::fs::rename(disk.inside("").parent().unwrap().join("inside"), &moved).unwrap();
    symlink(disk.outside(""), disk.0.path().join("inside")).unwrap();
    let (got, _) = fs(&host, json!({"op": "read", "path": "secret.txt"})).await;
    assert_eq!(got["err"], json!("no-entry"), "{got}");
    let (got, _) = fs(
        &host,
        json!({"op": "write", "path": "new", "how": ["create"], "text": "x"}),
    )
    .await;
    assert_eq!(got["ok"], json!(1), "{got}");
    assert!(moved.join("new").exists() && !disk.outside("new").exists());
}

/// Two tools with a workspace each. The first tool may also read the second's workspace.
fn neighbours(disk: &Disk) -> (Bundle, Host) {
    let theirs = disk.0.path().join("theirs");
    std::fs::create_dir(&theirs).unwrap();
    std::fs::write(theirs.join("c.txt"), "c").unwrap();
    let bundle = Bundle::of(
        TOOL,
        Guest::Plain,
        &declaring(&["/theirs"], &["/notes"]),
        "",
    )
    .with(
        "their.tool",
        Guest::Plain,
        &declaring(&[], &["/theirs"]),
        "",
    );
    let policy = mapping("/notes", &disk.inside(""))
        + &mapping("/theirs", &theirs)
        + &format!(
            "[[grant]]\npublisher = \"PUBLISHER\"\ntool = \"{TOOL}\"\npreapproved = true\n\
             requires = [\"workspace:/theirs\"]\nmutates = [\"workspace:/notes\"]\n\
             [[grant]]\npublisher = \"PUBLISHER\"\ntool = \"their.tool\"\npreapproved = true\n\
             mutates = [\"workspace:/theirs\"]\n"
        );
    let host = bundle.host(&policy);
    (bundle, host)
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_planted_for_a_neighbour_or_moved_into_its_workspace() {
    let disk = Disk::new();
    let (_bundle, host) = neighbours(&disk);
    let own = json!("/notes");
    let theirs = json!("/theirs");
    nothing_works(&disk, &host, vec![
        json!({"op": "symlink", "at": own, "path": "planted", "to": "/etc/passwd"}),
        json!({"op": "symlink", "at": theirs, "path": "planted", "to": "/etc/passwd"}),
        json!({"op": "link", "at": own, "path": "a.txt", "to_at": theirs, "to": "planted"}),
        json!({"op": "link", "at": theirs, "path": "c.txt", "to_at": own, "to": "planted"}),
        json!({"op": "rename", "at": own, "path": "a.txt", "to_at": theirs, "to": "c.txt"}),
        json!({"op": "rename", "at": theirs, "path": "c.txt", "to_at": own, "to": "planted"}),
        json!({"op": "write", "at": theirs, "path": "planted", "how": ["create"], "text": "mine"}),
        json!({"op": "write", "at": own, "path": "../theirs/planted", "how": ["create"], "text": "mine"}),
        json!({"op": "mkdir", "at": theirs, "path": "planted"}),
    ])
    .await;
    // A link that another user planted leads the neighbour nowhere.
    symlink(
        disk.outside("secret.txt"),
        disk.0.path().join("theirs/planted"),
    )
    .unwrap();
    let input = json!({"do": "std-fs", "op": "write", "path": "/theirs/planted", "text": "mine"});
    let got = value(&host, "their.tool", input).await;
    assert!(got["err"].is_string(), "{got}");
    assert_eq!(
        std::fs::read_to_string(disk.outside("secret.txt")).unwrap(),
        OUTSIDE
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_ends_calls_ends_them_before_the_next_file() {
    let disk = Disk::new();
    let (_bundle, host) = disk.granting(
        &[],
        &["/notes"],
        "on_violation = \"end\"\n",
        Limits::default(),
    );
    let steps = json!({"do": "steps", "steps": [
        {"do": "fs", "op": "read", "path": "../outside/secret.txt"},
        {"do": "fs", "op": "write", "path": "after", "how": ["create"], "text": "x"},
    ]});
    let reply = call(&host, TOOL, steps).await;
    assert_eq!(reply.metadata.violations[0].kind.as_str(), "path");
    assert_eq!(
        reply.result.unwrap_err().code.as_str(),
        "toolward:sandbox_violation"
    );
    assert!(!disk.inside("after").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_without_a_workspace_has_no_directory_at_all() {
    let bundle = Bundle::of(TOOL, Guest::Plain, "", "");
    let host = bundle.host("");
    let (got, _) = fs(&host, json!({"op": "preopens"})).await;
    assert_eq!(got["ok"], json!([]), "{got}");
    for path in ["/etc/passwd", "/", ".", "/proc/self/environ", "/tmp"] {
        for op in ["read", "list", "write", "stat"] {
            let got = std_fs(&host, json!({"op": op, "path": path, "text": "x"})).await;
            assert!(got["err"].is_string(), "{op} {path}: {got}");
        }
    }
    assert!(
        policy_of("", &bundle.publisher())
            .tables()
            .workspaces
            .is_empty()
    );
}
