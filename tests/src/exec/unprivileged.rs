//! Programs of an operator who is not root, on machines that allow user namespaces and on others.
//! As root, the tests run the command as another user, who owns the machine.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::Scene;
use crate::support::machine::toolward;
use crate::support::{Ended, Run};

/// `nobody`.
const OTHER: u32 = 65_534;

/// Runs its arguments in a namespace that allows no further namespaces, without the rights of that
/// namespace.
const ALONE: &str = "echo 0 > /proc/sys/user/max_user_namespaces && \
                     exec setpriv --ambient-caps -all --inh-caps -all \"$@\"";

/// A user on the machine of a scene, and the command at a place that the user can reach.
struct User {
    scene: Scene,
    command: tempfile::TempDir,
    /// Whether the command can make user namespaces.
    namespaces: bool,
}

/// Returns the ids of the user who runs the tests, and of that user's group.
fn own() -> (u32, u32) {
    let own = fs::metadata("/proc/self").unwrap();
    (own.uid(), own.gid())
}

fn is_root() -> bool {
    own().0 == 0
}

fn as_other(command: &mut Command) {
    if is_root() {
        command.uid(OTHER).gid(OTHER);
    }
}

/// Whether this machine allows a user who is not root to make the namespaces of a broker.
fn has_namespaces() -> bool {
    let mut command = Command::new("unshare");
    command.args(["-U", "-r", "-p", "--fork", "true"]);
    as_other(command.current_dir("/").stderr(Stdio::null()));
    command.status().unwrap().success()
}

/// Whether this kernel can confine a program without a namespace: Landlock must keep it from
/// signalling other processes.
fn confines_without_namespaces() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next().unwrap().parse::<u32>().unwrap();
    (number(), number()) >= (6, 12)
}

impl User {
    fn of(mut scene: Scene, namespaces: bool) -> Self {
        scene.write();
        let command = tempfile::tempdir().unwrap();
        fs::set_permissions(command.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let to = command.path().join("toolward");
        fs::hard_link(toolward(), &to)
            .or_else(|_| fs::copy(toolward(), &to).map(drop))
            .unwrap();
        if is_root() {
            let mut chown = Command::new("chown");
            chown.args(["-R", "--no-dereference", &format!("{OTHER}:{OTHER}")]);
            chown.arg(scene.machine.work().parent().unwrap());
            assert!(chown.status().unwrap().success());
        }
        Self {
            scene,
            command,
            namespaces,
        }
    }

    fn command(&self) -> Command {
        let program: PathBuf = self.command.path().join("toolward");
        let machine = &self.scene.machine;
        let mut command = match self.namespaces || !has_namespaces() {
            true => machine.program(program),
            false => {
                let (user, group) = if is_root() { (OTHER, OTHER) } else { own() };
                let mut command = machine.program("unshare");
                command.args(["-U", "--keep-caps"]);
                command.arg(format!("--map-user={user}"));
                command.arg(format!("--map-group={group}"));
                command.args(["sh", "-c", ALONE, "sh"]).arg(program);
                command
            }
        };
        as_other(&mut command);
        command.env("XDG_CACHE_HOME", machine.home().join(".cache"));
        command
    }

    fn call(&self) -> Ended {
        let call = "call hostile.program --json --bundle hostile.toolbundle --trust-key key.pub.pem \
                    --policy-file policy.toml --input {\"a\":1}";
        let mut command = self.command();
        command.args(call.split_whitespace());
        command.env("SECRET_KEY", "correct-horse-battery");
        let ended = Run::new(command).end();
        self.scene.is_alone();
        ended
    }
}

/// Returns the program's report of its actions.
#[track_caller]
fn did(scene: Scene, namespaces: bool) -> Value {
    let ended = User::of(scene, namespaces).call();
    assert_eq!(ended.code, Some(0), "{ended}");
    ended.json()["value"].clone()
}

/// Asserts the limits that apply to each user, however the kernel enforces them.
fn is_held(namespaces: bool) {
    let echoed = did(Scene::new(&["echo"]), namespaces);
    assert_eq!(echoed["input"], json!({ "a": 1 }), "{echoed}");
    assert_eq!(echoed["variables"], 0, "{echoed}");
    assert_eq!(echoed["writable"], false, "{echoed}");
    // The program is the first process of its namespace, or one among others.
    assert_eq!(echoed["pid"] == 1, namespaces, "{echoed}");

    let mut scene = Scene::new(&["files"]).with_notes();
    let outside = scene.machine.path("outside");
    let notes = scene.notes();
    scene.args.push(notes.display().to_string());
    scene.args.push(outside.display().to_string());
    let user = User::of(scene, namespaces);
    let ended = user.call();
    assert_eq!(ended.code, Some(0), "{ended}");
    let files = &ended.json()["value"];
    assert_eq!(files["inside"], true, "{files}");
    for what in ["outside", "tmp", "passwd", "root", "chmod"] {
        assert_eq!(files[what], false, "{what}: {files}");
    }
    assert!(notes.join("inside").exists() && !outside.exists());

    let sockets = did(Scene::new(&["sockets"]), namespaces);
    for what in ["inet", "unix", "netlink", "pair"] {
        assert_eq!(sockets[what], false, "{what}: {sockets}");
    }

    // A process that this user may signal and inspect.
    let mut sleep = Command::new("sleep");
    as_other(sleep.arg("300").current_dir("/"));
    let mut sleep = sleep.spawn().unwrap();
    let mut scene = Scene::new(&["rights"]);
    scene.args.push(sleep.id().to_string());
    let rights = did(scene, namespaces);
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
        assert_eq!(rights[what], false, "{what}: {rights}");
    }
    let mut scene = Scene::new(&["proc"]);
    scene.args.push(format!("/proc/{}/environ", sleep.id()));
    let seen = did(scene, namespaces);
    for what in ["own", "first", "host", "all"] {
        assert_eq!(seen[what], false, "{what}: {seen}");
    }
    assert_eq!(sleep.try_wait().unwrap(), None, "it was not signalled");
    sleep.kill().unwrap();
    sleep.wait().unwrap();

    let mut scene = Scene::new(&["secret"]).line("env = { key = \"KEY\" }\n");
    scene.secrets.push("key".to_owned());
    scene.tables =
        "[[secret]]\nslug = \"key\"\npublisher = \"PUBLISHER\"\nenv = \"SECRET_KEY\"\n".to_owned();
    let ended = User::of(scene, namespaces).call();
    assert_eq!(ended.code, Some(0), "{ended}");
    assert_ne!(ended.json()["value"]["key"], "", "{ended}");
    assert!(!ended.stdout.contains("correct-horse"), "{ended}");
}

/// Asserts that a program is ended in time, although it starts long-running processes and keeps
/// running itself.
fn is_ended_in_time(namespaces: bool) {
    let scene = Scene::new(&["linger"]).line("processes = true\nlimits = { timeout_ms = 1500 }\n");
    let ended = User::of(scene, namespaces).call();
    assert_eq!(ended.json()["error"]["code"], "timeout", "{ended}");
    assert!(ended.took < Duration::from_secs(30), "{ended}");
}

#[test]
fn a_program_of_a_user_with_namespaces_is_held_and_may_start_processes() {
    if !has_namespaces() {
        return;
    }
    is_held(true);
    is_ended_in_time(true);
    for (line, made) in [("", 0), ("processes = true\n", 2)] {
        let left = did(Scene::new(&["leave"]).line(line), true);
        assert_eq!(left["made"], made, "{line}");
    }
}

#[test]
fn a_program_of_a_user_without_namespaces_is_held_and_starts_no_process() {
    let leaves = || Scene::new(&["leave"]).line("processes = true\n");
    if !confines_without_namespaces() {
        let ended = User::of(leaves(), false).call();
        let error = &ended.json()["error"];
        assert_eq!(error["cause"]["rule"], "exec-unconfined", "{ended}");
        return;
    }
    is_held(false);
    is_ended_in_time(false);
    // Its processes could outlive it here, so it can start none.
    assert_eq!(did(leaves(), false)["made"], 0);
}
