//! Workspaces, used as real drivers use them: through Rust's standard library and directly through
//! `wasi:filesystem`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use toolward_host::{ErrorClass, Host, HostBuilder, Limit, Limits, Reply};
use toolward_policy::Policy;

use crate::fixture::{Extra, Fixture, error, run, value};

/// The hostile tool with one capability, and the workspace `/w` for it: a directory next to a file
/// that the tool must not reach.
struct World {
    tree: TempDir,
    fixture: Fixture,
    policy: Policy,
}

impl World {
    /// The declaration is a line of TOOL.md, and the grant is a line of the policy.
    fn new(declaration: &str, grant: &str) -> Self {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(tree.path().join("w/sub/deep")).unwrap();
        for file in ["a.txt", "b.md", "sub/c.txt", "sub/deep/d.md"] {
            std::fs::write(tree.path().join("w").join(file), file).unwrap();
        }
        std::fs::write(tree.path().join("secret.txt"), "secret").unwrap();
        let fixture = Fixture::new(Extra {
            tool: declaration,
            ..Extra::default()
        });
        let publisher = fixture.content().origin.publisher();
        let policy = format!(
            "[[workspace]]\npath = \"/w\"\ndirectory = \"{}\"\n[[grant]]\n\
             publisher = \"{publisher}\"\npreapproved = true\n{grant}\n",
            tree.path().join("w").display()
        );
        let policy = Policy::from_toml(&policy).unwrap_or_else(|error| panic!("{error}\n{policy}"));
        Self {
            tree,
            fixture,
            policy,
        }
    }

    fn reading(path: &str) -> Self {
        Self::new(
            &format!("requires:\n  workspace: [\"{path}\"]\n"),
            &format!("requires = [\"workspace:{path}\"]"),
        )
    }

    fn writing(path: &str) -> Self {
        Self::new(
            &format!("mutates: [\"workspace:{path}\"]\n"),
            &format!("mutates = [\"workspace:{path}\"]"),
        )
    }

    fn builder(&self) -> HostBuilder {
        self.fixture.builder().policy(self.policy.clone())
    }

    fn host(&self) -> Host {
        self.builder().build().unwrap()
    }

    fn path(&self, path: &str) -> PathBuf {
        self.tree.path().join(path)
    }

    fn content(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap_or_else(|error| error.to_string())
    }
}

/// An operation through Rust's standard library.
fn std_fs(op: &str, path: &str, more: Value) -> Value {
    merged(json!({"do": "std-fs", "op": op, "path": path}), more)
}

/// An operation through `wasi:filesystem`.
fn fs(op: &str, path: &str, more: Value) -> Value {
    merged(json!({"do": "fs", "op": op, "path": path}), more)
}

fn merged(mut into: Value, more: Value) -> Value {
    if let (Value::Object(into), Value::Object(more)) = (&mut into, more) {
        into.extend(more);
    }
    into
}

fn recorded(reply: &Reply) -> Vec<&str> {
    let violations = reply.metadata.violations.iter();
    violations
        .map(|violation| violation.subject.as_str())
        .collect()
}

#[tokio::test]
async fn a_driver_works_on_its_files_as_on_any() {
    let world = World::writing("/w");
    let host = world.host();
    let steps = json!({"do": "steps", "steps": [
        std_fs("read", "/w/sub/../a.txt", json!({})),
        std_fs("mkdir-all", "/w/sub/x/y", json!({})),
        std_fs("write", "/w/sub/x/y/new.txt", json!({"text": "new"})),
        std_fs("append", "/w/sub/x/y/new.txt", json!({"text": "er"})),
        std_fs("rename", "/w/sub/x/y/new.txt", json!({"to": "/w/newer.txt"})),
        std_fs("copy", "/w/newer.txt", json!({"to": "/w/copy.txt"})),
        std_fs("truncate", "/w/copy.txt", json!({"n": 2})),
        std_fs("write-bytes", "/w/large", json!({"n": 300_000, "offset": 10})),
        std_fs("list", "/w", json!({})),
        std_fs("remove-all", "/w/sub", json!({})),
        std_fs("exists", "/w/sub", json!({})),
        std_fs("stat", "/w/newer.txt", json!({})),
        std_fs("read", "/w/missing", json!({})),
    ]});
    let reply = run(&host, steps).await;
    let output = reply.result.as_ref().unwrap_or_else(|e| panic!("{e:#?}"));
    let values = &output.structured["value"];
    assert_eq!(values[0]["ok"]["text"], "a.txt");
    for step in 1..=7 {
        assert!(values[step].get("ok").is_some(), "{step}: {values:#}");
    }
    let names = json!(["a.txt", "b.md", "copy.txt", "large", "newer.txt", "sub"]);
    let mut listed: Vec<&str> = values[8]["ok"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    listed.sort_unstable();
    assert_eq!(json!(listed), names);
    assert!(values[9].get("ok").is_some(), "{values:#}");
    assert_eq!(values[10]["ok"], false);
    assert_eq!(values[11]["ok"]["size"], 5);
    assert!(values[12]["err"].as_str().unwrap().starts_with("NotFound"));
    assert_eq!(world.content("w/newer.txt"), "newer");
    assert_eq!(world.content("w/copy.txt"), "ne");
    assert_eq!(world.path("w/large").metadata().unwrap().len(), 300_010);
    assert!(!world.path("w/sub").exists());
    assert_eq!(recorded(&reply), Vec::<&str>::new());
}

#[tokio::test]
async fn nothing_is_changed_through_what_is_only_read() {
    let world = World::reading("/w");
    let host = world.host();
    let steps: Vec<Value> = [
        ("write", json!({"text": "x"})),
        ("append", json!({"text": "x"})),
        ("truncate", json!({"n": 0})),
        ("unlink", json!({})),
        ("rename", json!({"to": "/w/z"})),
        ("set-times", json!({"n": 5})),
    ]
    .map(|(op, more)| std_fs(op, "/w/a.txt", more))
    .into();
    let reply = run(&host, json!({"do": "steps", "steps": steps})).await;
    let values = reply.result.as_ref().unwrap().structured["value"].clone();
    for value in values.as_array().unwrap() {
        let refused = value["err"].as_str().unwrap();
        assert!(refused.starts_with("ReadOnlyFilesystem"), "{values:#}");
    }
    assert_eq!(world.content("w/a.txt"), "a.txt");
    assert_eq!(recorded(&reply), ["/w/a.txt"]);
    assert_eq!(reply.metadata.violations_total, 6);
}

#[tokio::test]
async fn a_way_out_is_refused_and_stands_in_the_metadata() {
    let world = World::writing("/w");
    std::os::unix::fs::symlink("../secret.txt", world.path("w/link")).unwrap();
    let host = world.host();
    let steps: Vec<Value> = ["../secret.txt", "link", "/etc/passwd"]
        .into_iter()
        .flat_map(|path| {
            [
                fs("read", path, json!({"follow": true})),
                fs("write", path, json!({"text": "x", "how": ["create"]})),
            ]
        })
        .collect();
    let reply = run(&host, json!({"do": "steps", "steps": steps})).await;
    let values = reply.result.as_ref().unwrap().structured["value"].clone();
    for value in values.as_array().unwrap() {
        assert_eq!(value["err"], "not-permitted", "{values:#}");
    }
    assert_eq!(world.content("secret.txt"), "secret");
    assert_eq!(
        recorded(&reply),
        ["/w/../secret.txt", "/w/link", "/etc/passwd"]
    );
    assert_eq!(reply.metadata.violations_total, 6);
}

#[tokio::test]
async fn of_a_pattern_a_driver_sees_what_matches() {
    let world = World::writing("/w/*.md");
    let host = world.host();
    let steps = json!({"do": "steps", "steps": [
        fs("preopens", "", json!({})),
        std_fs("list", "/w", json!({})),
        std_fs("write", "/w/new.md", json!({"text": "new"})),
        std_fs("read", "/w/new.md", json!({})),
        std_fs("read", "/w/a.txt", json!({})),
        std_fs("write", "/w/new.txt", json!({"text": "new"})),
    ]});
    let values = value(&host, steps).await;
    assert_eq!(values[0]["ok"][0]["path"], "/w");
    assert_eq!(values[1]["ok"], json!(["b.md"]));
    assert_eq!(values[3]["ok"]["text"], "new");
    for refused in [&values[4], &values[5]] {
        let refused = refused["err"].as_str().unwrap();
        assert!(refused.starts_with("PermissionDenied"), "{values:#}");
    }
    assert!(!world.path("w/new.txt").exists());
}

#[tokio::test]
async fn a_call_ends_at_the_limit_and_not_beyond() {
    let limits = Limits {
        workspace_bytes: Limit::fixed(10_000),
        workspace_files: Limit::fixed(3),
        open_files: 6,
        directory_entries: 5,
        ..Limits::default()
    };
    for (input, limit) in [
        (
            fs("write-stream", "x", json!({"n": 10_001, "how": ["create"]})),
            "workspace_bytes",
        ),
        (
            std_fs("write-bytes", "/w/x", json!({"n": 1, "offset": 10_000})),
            "workspace_bytes",
        ),
        (
            std_fs("create-many", "/w/x", json!({"n": 4})),
            "workspace_files",
        ),
        (fs("mkdir-many", "x", json!({"n": 4})), "workspace_files"),
        (fs("open-many", "a.txt", json!({"n": 7})), "open_files"),
        (fs("list-many", "", json!({"n": 7})), "open_files"),
        (std_fs("list", "/w", json!({})), "directory_entries"),
    ] {
        let world = World::writing("/w");
        for n in 0..3 {
            std::fs::write(world.path(&format!("w/more{n}")), "").unwrap();
        }
        let host = world.builder().limits(limits.clone()).build().unwrap();
        let error = error(&host, input.clone()).await;
        assert_eq!(error.code.as_str(), "toolward:limit_exceeded", "{input}");
        let hit = error.limit.unwrap();
        assert_eq!(hit.limit, limit, "{input}");
        let size = world.path("w/x").metadata().map_or(0, |found| found.len());
        assert!(size <= 10_000, "{input}: {size}");
        let made = std::fs::read_dir(world.path("w")).unwrap().count();
        assert!(made <= 6 + 3, "{input}: {made}");
    }
}

#[tokio::test]
async fn a_directory_that_is_missing_blocks_its_tools_and_says_what_to_do() {
    let world = World::reading("/w");
    std::fs::remove_dir_all(world.path("w")).unwrap();
    let error = error(&world.host(), json!({"do": "echo", "value": 1})).await;
    assert_eq!(error.code.as_str(), "unauthorised");
    assert_eq!(error.class, ErrorClass::SetupRequired);
    assert_eq!(error.cause.unwrap()["rule"], "workspace-missing");
    assert!(
        error
            .hint
            .unwrap()
            .starts_with("ask the operator of this host to repair the directory")
    );
}

#[tokio::test]
async fn a_directory_put_in_the_place_of_another_is_not_used() {
    let world = World::reading("/w");
    let host = world.host();
    std::fs::rename(world.path("w"), world.path("moved")).unwrap();
    std::fs::create_dir(world.path("w")).unwrap();
    std::fs::write(world.path("w/a.txt"), "another").unwrap();
    let read = value(&host, std_fs("read", "/w/a.txt", json!({}))).await;
    assert_eq!(read["ok"]["text"], "a.txt");
}

#[tokio::test]
async fn a_fifo_holds_up_neither_the_call_nor_a_thread() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let world = World::writing("/w");
    let mode = Mode::from_raw_mode(0o666);
    mknodat(CWD, world.path("w/fifo"), FileType::Fifo, mode, 0).unwrap();
    let host = world.host();
    let begun = Instant::now();
    for flags in [json!(["read"]), json!(["write"]), json!(["read", "write"])] {
        let opened = value(&host, fs("open", "fifo", json!({"flags": flags}))).await;
        assert_eq!(opened["err"], "not-permitted");
    }
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn a_workspace_with_a_protected_directory_in_it_stops_the_host() {
    let world = World::reading("/w");
    let refused = world
        .builder()
        .protect("the keys", world.path("w/sub"))
        .build();
    let refused = refused.err().unwrap();
    assert_eq!(refused.code(), "workspace-refused");
    assert!(refused.to_string().contains("contains the keys"));
}
