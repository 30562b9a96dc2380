//! The folders of AIP-14, AIP-30 and AIP-39, whose names start with a dot.

use std::fs;

use toolward_author::PackOptions;
use toolward_author::check::check_path;
use toolward_bundle::content::Content;

use crate::demo::{DRIVER, Demo, TOOL};

fn dotted() -> Demo {
    let demo = Demo::new();
    for folder in ["tools", "drivers"] {
        fs::rename(
            demo.path().join(folder),
            demo.path().join(format!(".{folder}")),
        )
        .unwrap();
    }
    demo
}

#[test]
fn they_are_packed_without_the_dot_and_are_the_same_bundle() {
    let demo = dotted();
    assert_eq!(
        demo.pack().manifest_bytes,
        Demo::new().pack().manifest_bytes
    );
    assert!(demo.pack().files.keys().all(|path| !path.starts_with('.')));
    let content = Content::from_dev(demo.path()).unwrap();
    assert_eq!(content.tools.len(), 1);
    assert_eq!(content.drivers_for(&content.tools[0].tool).count(), 1);
    let report = check_path(demo.path());
    assert_eq!(
        (report.documents, report.diagnostics.len()),
        (2, 0),
        "{report:?}"
    );
}

#[test]
fn a_finding_names_the_file_where_it_lies() {
    let demo = dotted();
    let broken = DRIVER.replace("version: 1.0.0", "version: one");
    demo.write(".drivers/demo-greet/DRIVER.md", broken);
    let report = check_path(demo.path());
    let found = &report.diagnostics[0];
    assert_eq!(found.code, "version-invalid");
    assert!(
        found.file.ends_with(".drivers/demo-greet/DRIVER.md"),
        "{found}"
    );
    assert!(found.excerpt.is_some());
    let refused = toolward_bundle::dev::pack(demo.path(), &PackOptions::default()).unwrap_err();
    assert_eq!(
        refused.diagnostics()[0].file,
        ".drivers/demo-greet/DRIVER.md"
    );
}

#[test]
fn a_warning_is_given_once_and_where_the_file_lies() {
    let demo = dotted();
    let tool = TOOL.replace(
        "version: 1.0.0\n",
        "version: 1.0.0\napproval: auto\nmutates: [\"database:notes\"]\n",
    );
    demo.write(".tools/demo.greet/TOOL.md", tool);
    let content = Content::from_dev(demo.path()).unwrap();
    let found: Vec<_> = content
        .warnings
        .iter()
        .map(|one| (one.code, &*one.file))
        .collect();
    assert_eq!(
        found,
        [("approval-auto-mutates", ".tools/demo.greet/TOOL.md")]
    );
}

#[test]
fn two_folders_of_one_name_are_refused() {
    let demo = dotted();
    fs::create_dir(demo.path().join("tools")).unwrap();
    let refused = toolward_bundle::dev::pack(demo.path(), &PackOptions::default()).unwrap_err();
    assert_eq!(refused.code(), "folder-twice");
    assert!(refused.to_string().contains(".tools"), "{refused}");
    assert!(check_path(demo.path()).diagnostics[0].is_error());
}

#[test]
fn a_link_in_place_of_such_a_folder_is_not_followed() {
    let demo = Demo::new();
    let elsewhere = Demo::new();
    fs::remove_dir_all(demo.path().join("drivers")).unwrap();
    let link = demo.path().join(".drivers");
    std::os::unix::fs::symlink(elsewhere.path().join("drivers"), link).unwrap();
    let refused = toolward_bundle::dev::pack(demo.path(), &PackOptions::default()).unwrap_err();
    assert_eq!(refused.code(), "file-not-regular");
}
