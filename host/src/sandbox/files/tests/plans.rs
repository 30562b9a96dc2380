//! Several workspaces, and those that can't be used.

use super::*;

/// A grant of `pattern` of the workspace `root`, which is `tree/name`.
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

fn plan(grants: &[WorkspaceGrant]) -> Result<Plan, super::super::plan::PlanError> {
    let mappings = grants.iter().map(|grant| Mapping {
        path: &grant.root,
        directory: &grant.directory,
        shared: false,
    });
    let mappings: Vec<Mapping<'_>> = mappings.collect();
    let workspaces = workspace::check(&mappings, &[]).expect("disjoint");
    Plan::new(grants, &workspaces)
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
        &plan,
        LIMITS,
        guest.counters.clone(),
        guest.violations.clone(),
        crate::sandbox::held::Shared::default(),
    );
    assert_eq!(guest.preopens(), ["/w", "/w/sub"]);
    assert_eq!(guest.read("sub/a.md").await, Ok("inner".to_owned()));
    // Neither the other files of the inner one, nor the outer one's below it.
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
    let error = Plan::new(&grants, &workspace::Workspaces::default());
    assert_eq!(error.expect_err("unknown").code(), "workspace-unmapped");
}
