//! Without a line that describes the program exactly, nothing runs.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use super::{Scene, set_mode};
use crate::mcp::raw::Raw;

/// A program that would leave a file in its workspace.
fn scene() -> Scene {
    let mut scene = Scene::new(&["files"]).with_notes();
    scene.args.push(scene.notes().display().to_string());
    scene
}

/// Asserts that nothing ran, and that the error has this rule.
#[track_caller]
fn refused(scene: &Scene, rule: &str) {
    let error = scene.error();
    assert_eq!(error["code"], "unauthorised", "{error}");
    assert_eq!(error["cause"]["rule"], rule, "{error}");
    assert_eq!(fs::read_dir(scene.notes()).unwrap().count(), 0, "it ran");
}

#[track_caller]
fn blocked(scene: &Scene, why: &str) {
    let error = scene.error();
    assert_eq!(error["code"], "unauthorised", "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("the policy does not let its program run"),
        "{message}"
    );
    assert_eq!(fs::read_dir(scene.notes()).unwrap().count(), 0, "it ran");
    let explained = scene
        .machine
        .toolward("show hostile.program --policy --bundle hostile.toolbundle --trust-key key.pub.pem --policy-file policy.toml")
        .end();
    assert!(explained.stdout.contains(why), "{explained}");
}

#[test]
fn with_its_line_the_program_runs() {
    let mut scene = scene();
    assert_eq!(scene.did()["inside"], true);
    fs::remove_dir_all(scene.notes()).unwrap();
    fs::create_dir(scene.notes()).unwrap();
    let doctor = scene
        .machine
        .toolward("doctor --policy-file policy.toml")
        .end();
    assert!(doctor.stdout.contains("outside the sandbox"), "{doctor}");
    assert_eq!(fs::read_dir(scene.notes()).unwrap().count(), 0, "it ran");
}

#[test]
fn without_a_line_or_with_another_one_the_tool_is_blocked() {
    let mut scene = scene();
    let text = scene.policy_with(&scene.program().display().to_string());
    let (before, rest) = text.split_once("[[exec]]").unwrap();
    let (_, after) = rest.split_once("[[workspace]]").unwrap();
    let without = format!("{before}[[workspace]]{after}");
    scene.write_with(&without);
    blocked(&scene, "no [[exec]] is for it");
    let args = text.replace("args = [\"files\"", "args = [\"echo\"");
    assert_ne!(args, text);
    scene.write_with(&args);
    blocked(&scene, "its [[exec]] has other `args`");
    let other = scene.policy_with("/usr/bin/true");
    scene.write_with(&other);
    blocked(&scene, "its [[exec]] names another command");
}

#[test]
fn a_changed_program_does_not_run() {
    let mut scene = scene();
    scene.write();
    let mut bytes = fs::read(scene.program()).unwrap();
    bytes.push(0);
    fs::write(scene.program(), bytes).unwrap();
    refused(&scene, "exec-digest");
    // The policy allows it, so the hint does not suggest `show --policy`.
    let ended = scene.call_with("");
    assert!(ended.stderr.contains("`toolward doctor` says"), "{ended}");
    assert!(!ended.stderr.contains("--policy`"), "{ended}");
    let doctor = scene
        .machine
        .toolward("doctor --policy-file policy.toml")
        .end();
    assert!(
        doctor.stdout.contains("and not that of the line"),
        "{doctor}"
    );
}

#[test]
fn a_program_behind_a_link_does_not_run() {
    let mut scene = scene();
    scene.write();
    let moved = scene.machine.path("moved");
    fs::rename(scene.program(), &moved).unwrap();
    symlink(&moved, scene.program()).unwrap();
    refused(&scene, "exec-unopened");
    fs::remove_file(scene.program()).unwrap();
    refused(&scene, "exec-unopened");
}

#[test]
fn a_program_that_others_may_write_or_that_changes_rights_does_not_run() {
    for mode in [0o775, 0o757, 0o4755, 0o2755, 0o644] {
        let mut scene = scene();
        scene.write();
        set_mode(&scene.program(), mode);
        refused(&scene, "exec-unsafe");
    }
}

#[test]
fn a_script_needs_its_interpreter_and_an_interpreter_is_no_program() {
    let mut scene = scene();
    let shell = fs::canonicalize("/bin/sh").unwrap();
    let script = format!(
        "#!{} -eu\nprintf '{{\"script\":\"%s\"}}' \"$2\"\n",
        shell.display()
    );
    fs::write(scene.program(), script).unwrap();
    scene.write();
    refused(&scene, "exec-interpreter");
    let digest = toolward_signing::digest::Digest::of(&fs::read(&shell).unwrap());
    let wrong = "0".repeat(64);
    let interpreter = |path: &str, digest: &str| {
        format!("interpreter = {{ path = {path:?}, digest = \"{digest}\" }}\n")
    };
    let other = scene.machine.path("no-interpreter");
    let line = scene.line.clone();
    for (path, digest, rule) in [
        (
            other.to_str().unwrap(),
            digest.to_string(),
            "exec-interpreter",
        ),
        (shell.to_str().unwrap(), wrong, "exec-digest"),
    ] {
        scene.line = line.clone() + &interpreter(path, &digest);
        scene.write();
        refused(&scene, rule);
    }
    scene.line = line + &interpreter(shell.to_str().unwrap(), &digest.to_string());
    assert_eq!(scene.did()["script"], "files");

    for command in ["/bin/sh", "/usr/bin/env", "/usr/bin/python3"] {
        let policy = scene.policy_with(command);
        scene.write_with(&policy);
        let ended = scene.call();
        assert_eq!(ended.code, Some(2), "{ended}");
        assert!(
            ended.stdout.contains("policy-exec") || ended.stderr.contains("policy-exec"),
            "{ended}"
        );
    }
}

#[test]
fn a_script_without_an_argument_on_its_first_line_runs() {
    let scene = scene();
    let shell = fs::canonicalize("/bin/sh").unwrap();
    let script = format!(
        "#!{}\nprintf '{{\"script\":\"%s\"}}' \"$2\"\n",
        shell.display()
    );
    fs::write(scene.program(), script).unwrap();
    let digest = toolward_signing::digest::Digest::of(&fs::read(&shell).unwrap());
    let line = format!("interpreter = {{ path = {shell:?}, digest = \"{digest}\" }}\n");
    let mut scene = scene.line(&line);
    assert_eq!(scene.did()["script"], "files");
    let doctor = "doctor --policy-file policy.toml --json";
    let doctor = scene.machine.toolward(doctor).end().json();
    let mut checks = doctor["checks"].as_array().unwrap().iter();
    let exec = checks.find(|check| check["name"] == "exec").unwrap();
    assert_eq!(exec["state"], "ok", "{exec}");
}

#[test]
fn why_a_program_does_not_start_is_in_log_cause_and_doctor() {
    let mut scene = scene();
    fs::write(scene.program(), "\u{7f}ELF, and no more").unwrap();
    scene.write();
    let ended = scene.call();
    let error = ended.json()["error"].clone();
    assert_eq!(error["cause"]["rule"], "exec-unstarted", "{error}");
    let reason = error["cause"]["reason"].as_str().unwrap();
    // The kernel's error. Which error it is depends on the C library.
    assert!(reason.contains("os error"), "{error}");
    let serve =
        "serve --bundle hostile.toolbundle --trust-key key.pub.pem --policy-file policy.toml";
    let mut raw = Raw::open(scene.machine.toolward(serve).into_command(), json!({}));
    raw.call(1, "hostile_program", &json!({ "a": 1 }));
    assert_eq!(raw.answer(1)["result"]["isError"], true);
    let said = raw.said();
    assert!(
        said.contains("a program was not run") && said.contains(reason),
        "{said}"
    );
    let doctor = "doctor --policy-file policy.toml --json";
    let doctor = scene.machine.toolward(doctor).end();
    assert_ne!(doctor.code, Some(0), "{doctor}");
    let found = doctor.json()["checks"].clone();
    let mut found = found.as_array().unwrap().iter();
    let exec = found.find(|check| check["name"] == "exec").unwrap();
    assert_eq!(exec["state"], "error", "{doctor}");
    assert!(exec["message"].as_str().unwrap().contains(reason), "{exec}");
}

#[test]
fn a_program_does_not_lie_in_a_workspace() {
    let mut scene = scene();
    let text = scene.policy_with(&scene.program().display().to_string());
    let above = format!("{:?}", scene.machine.work());
    let inside = text.replace(&format!("{:?}", scene.notes()), &above);
    assert_ne!(inside, text);
    scene.write_with(&inside);
    let ended = scene.call();
    assert_eq!(ended.code, Some(2), "{ended}");
    assert!(
        ended.stdout.contains("workspace-refused") || ended.stderr.contains("workspace-refused"),
        "{ended}"
    );
}
