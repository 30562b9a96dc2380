//! Attempts of the hostile program.

use std::fs;
use std::time::Duration;

use serde_json::json;

use super::Scene;

#[test]
fn a_program_gets_its_input_as_a_file_and_nothing_else() {
    let did = Scene::new(&["echo"]).did();
    assert_eq!(did["input"], json!({ "a": 1 }), "{did}");
    assert_eq!(did["variables"], 0, "{did}");
    assert_eq!(did["stdin"], 0, "{did}");
    assert_eq!(did["writable"], false, "{did}");
    // The standard streams, the input as a descriptor, and the input as the program opened it.
    assert_eq!(did["open"], 5, "{did}");
}

#[test]
fn what_a_program_leaves_behind_ends_with_it() {
    for (line, made) in [("", 0), ("processes = true\n", 2)] {
        let did = Scene::new(&["leave"]).line(line).did();
        assert_eq!(did["made"], made, "{line}");
    }
}

#[test]
fn a_program_that_goes_on_is_ended_with_all_that_it_started() {
    let mut scene =
        Scene::new(&["linger"]).line("processes = true\nlimits = { timeout_ms = 1500 }\n");
    scene.write();
    let ended = scene.call();
    scene.is_alone();
    assert_eq!(ended.json()["error"]["code"], "timeout", "{ended}");
    assert!(ended.took < Duration::from_secs(30), "{ended}");
}

#[test]
fn the_deadline_of_the_call_ends_a_program_whose_line_allows_more() {
    let mut scene = Scene::new(&["linger"]).line("processes = true\n");
    scene.write();
    let call = "call hostile.program --json --bundle hostile.toolbundle --trust-key key.pub.pem \
                --policy-file policy.toml --timeout 1500 --input {}";
    let ended = scene.machine.toolward(call).end();
    scene.is_alone();
    assert_eq!(ended.json()["error"]["code"], "timeout", "{ended}");
}

#[test]
fn a_program_that_outlives_the_command_does_not() {
    let mut scene = Scene::new(&["linger"]).line("processes = true\n");
    scene.write();
    let call = "call hostile.program --json --bundle hostile.toolbundle --trust-key key.pub.pem \
                --policy-file policy.toml --input {}";
    let mut command = scene.machine.toolward(call).into_command();
    let mut child = command.spawn().unwrap();
    let mark = scene.program();
    while super::processes(mark.to_str().unwrap()).is_empty() {
        assert!(child.try_wait().unwrap().is_none(), "it ended");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    scene.is_alone();
}

#[test]
fn more_output_than_the_line_allows_is_no_output() {
    let error = Scene::new(&["flood"]).fails();
    assert_eq!(error["code"], "toolward:result_too_large", "{error}");
    // Output on standard error is cut, and blocks no one.
    let did = Scene::new(&["complain"]).did();
    assert_eq!(did["said"], true);
}

#[test]
fn a_program_writes_only_into_the_workspaces_of_its_line() {
    let mut scene = Scene::new(&["files"]);
    let outside = scene.machine.path("outside");
    scene.args.push(scene.notes().display().to_string());
    scene.args.push(outside.display().to_string());
    let did = scene.did();
    for what in ["outside", "inside", "tmp", "passwd", "root", "chmod", "cwd"] {
        assert_eq!(did[what], false, "{what}: {did}");
    }
    let mut scene = Scene::new(&["files"]).with_notes();
    scene.args.push(scene.notes().display().to_string());
    scene.args.push(outside.display().to_string());
    let did = scene.did();
    for (what, could) in [
        ("inside", true),
        ("cwd", true),
        ("outside", false),
        ("chmod", false),
    ] {
        assert_eq!(did[what], could, "{what}: {did}");
    }
    assert!(scene.notes().join("inside").exists() && scene.notes().join("in-cwd").exists());
    assert!(!outside.exists());
}

#[test]
fn a_file_grows_to_what_the_line_allows() {
    let mut scene = Scene::new(&["large"])
        .with_notes()
        .line("limits = { file_bytes = 10000 }\n");
    scene.args.push(scene.notes().display().to_string());
    assert_eq!(scene.did()["written"], 10000);
    assert_eq!(
        fs::metadata(scene.notes().join("large")).unwrap().len(),
        10000
    );
}

#[test]
fn there_are_no_sockets() {
    let did = Scene::new(&["sockets"]).did();
    for what in ["inet", "unix", "netlink", "pair"] {
        assert_eq!(did[what], false, "{what}: {did}");
    }
}

#[test]
fn other_processes_are_neither_seen_nor_reached() {
    let mut scene = Scene::new(&["proc"]);
    scene
        .args
        .push(format!("/proc/{}/environ", std::process::id()));
    let did = scene.did();
    for what in ["own", "first", "host", "all"] {
        assert_eq!(did[what], false, "{what}: {did}");
    }
    let mut scene = Scene::new(&["rights"]);
    scene.args.push(std::process::id().to_string());
    let did = scene.did();
    for what in [
        "signal",
        "shell",
        "namespace",
        "mount",
        "trace",
        "outlive",
        "more",
        "uid",
        "fork",
    ] {
        assert_eq!(did[what], false, "{what}: {did}");
    }
    assert_eq!(did["thread"], true, "{did}");
}

#[test]
fn memory_and_processor_time_end() {
    let did = Scene::new(&["memory"])
        .line("limits = { memory_mib = 64 }\n")
        .did();
    assert_eq!(did["got"], false);
    let error = Scene::new(&["spin"])
        .line("limits = { cpu_seconds = 1 }\n")
        .fails();
    assert_eq!(error["code"], "upstream_error", "{error}");
    assert_eq!(error["cause"]["signal"], 9, "{error}");
}

#[test]
fn a_secret_is_in_its_variable_and_in_nothing_that_is_shown() {
    let mut scene = Scene::new(&["secret"]).line("env = { key = \"KEY\" }\n");
    scene.secrets.push("key".to_owned());
    scene.tables =
        "[[secret]]\nslug = \"key\"\npublisher = \"PUBLISHER\"\nenv = \"SECRET_KEY\"\n".to_owned();
    scene.write();
    let ended = scene.call();
    assert_eq!(ended.code, Some(0), "{ended}");
    assert!(!ended.stdout.contains("correct-horse"), "{ended}");
    assert!(!ended.stderr.contains("correct-horse"), "{ended}");
    let did = &ended.json()["value"];
    assert_ne!(did["key"], "", "{did}");
    assert_eq!(did["other"], false);
    let unset = scene.tables.replace("SECRET_KEY", "NOT_SET");
    let policy = scene.machine.text("policy.toml");
    scene
        .machine
        .write("policy.toml", policy.replace("SECRET_KEY", "NOT_SET"));
    assert!(unset.contains("NOT_SET"));
    assert_eq!(scene.error()["code"], "cap_denied");
}

#[test]
fn of_what_a_program_complains_the_end_is_shown_and_no_part_of_a_secret() {
    let mut scene = Scene::new(&["complain-of-secret"]).line("env = { key = \"KEY\" }\n");
    scene.secrets.push("key".to_owned());
    scene.tables =
        "[[secret]]\nslug = \"key\"\npublisher = \"PUBLISHER\"\nenv = \"SECRET_KEY\"\n".to_owned();
    scene.write();
    let ended = scene.call();
    let cause = &ended.json()["error"]["cause"];
    assert_eq!(cause["exit"], 3, "{ended}");
    let shown = cause["stderr"].as_str().unwrap();
    assert!(shown.ends_with("c[secret] at last"), "{shown}");
    assert!(shown.len() <= 2048);
    let told = scene.call_with("--verbose");
    assert!(told.stderr.len() > 60_000, "{} bytes", told.stderr.len());
    // Neither the whole secret nor half of it appears.
    let all = format!("{}{}{}", ended.stdout, ended.stderr, told.stderr);
    for part in ["correct", "horse", "battery"] {
        assert!(!all.contains(part), "{part}: {ended}");
    }
}

#[test]
fn an_exit_code_and_an_output_that_is_no_json_are_errors() {
    let error = Scene::new(&["fail"]).fails();
    assert_eq!(error["code"], "upstream_error", "{error}");
    assert_eq!(error["cause"]["exit"], 3, "{error}");
    assert_eq!(error["cause"]["stderr"], "no paper", "{error}");
    let error = Scene::new(&["chat"]).fails();
    assert_eq!(error["code"], "upstream_error", "{error}");
}
