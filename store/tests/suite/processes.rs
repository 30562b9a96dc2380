//! Several processes at once. A child runs this test binary again, with its role in the
//! environment.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use toolward_bundle::libraries::NoLibraries;
use toolward_store::{InstallOptions, InstallOutcome, Store};

use crate::support::{Place, Release, now, options, verified, verifier};

/// The environment variables with a child's role and directory.
const ROLE: &str = "TOOLWARD_STORE_TEST_ROLE";
const PLACE: &str = "TOOLWARD_STORE_TEST_PLACE";

/// Starts this binary again, as `role`.
pub(crate) fn command(role: &str, directory: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "processes::child", "--nocapture"])
        .env(ROLE, role)
        .env(PLACE, directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Waits for a child, and ends it if it takes too long.
pub(crate) fn wait(mut child: Child) -> bool {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(120) {
        if let Some(status) = child.try_wait().unwrap() {
            return status.success();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    panic!("a child took more than two minutes");
}

/// Not a test, but the work of a child. In the parent it does nothing.
#[test]
fn child() {
    let (Ok(role), Some(directory)) = (std::env::var(ROLE), std::env::var_os(PLACE)) else {
        return;
    };
    // The command `toolward` starts with this call, too.
    toolward_support::helper::survive_file_limit().unwrap();
    let directory = Path::new(&directory);
    let open = || Store::open(&directory.join("store"), &directory.join("state/trust.db")).unwrap();
    let read = |name: &str| std::fs::read(directory.join(name)).unwrap();
    let (role, number) = role.split_once(' ').unwrap_or((&role, ""));
    match role {
        "install" => {
            let store = open();
            let common = verified(&read(&format!("common-{number}")), "acme");
            match store.install(&common, &options(), &NoLibraries) {
                Ok(InstallOutcome::Installed { .. }) => {}
                Err(error) if error.code() == "rollback" => {}
                other => panic!("{other:?}"),
            }
            let own = verified(&read(&format!("own-{number}")), "acme");
            store.install(&own, &options(), &NoLibraries).unwrap();
            store.gc().unwrap();
            store.load(&own.manifest.id, &verifier(), now()).unwrap();
        }
        "alternate" => {
            let bundles = [
                verified(&read("one"), "acme"),
                verified(&read("two"), "acme"),
            ];
            let store = open();
            let back = InstallOptions {
                allow_rollback: Some("a test".to_owned()),
                ..options()
            };
            std::fs::write(directory.join("ready"), b"").unwrap();
            for bundle in bundles.iter().cycle() {
                store.install(bundle, &back, &NoLibraries).unwrap();
                store.gc().unwrap();
            }
        }
        "full" => {
            let error = open()
                .install(&verified(&read("big"), "acme"), &options(), &NoLibraries)
                .unwrap_err();
            assert_eq!(error.code(), "disk-full");
        }
        other => panic!("no role {other}"),
    }
}

#[test]
fn sixteen_installers_at_once_leave_every_bundle_and_the_highest_release() {
    let place = Place::new();
    let directory = place.directory.path();
    for number in 1..=16 {
        let write = |name: &str, release: Release| {
            std::fs::write(
                directory.join(format!("{name}-{number}")),
                release.archive(),
            )
            .unwrap();
        };
        write("common", Release::new(number));
        write("own", Release::named(&format!("demo.own{number}"), 1));
    }
    let children: Vec<Child> = (1..=16)
        .map(|number| {
            command(&format!("install {number}"), directory)
                // Shows the error of a failing child.
                .stderr(Stdio::inherit())
                .spawn()
                .unwrap()
        })
        .collect();
    let ended: Vec<bool> = children.into_iter().map(wait).collect();
    assert!(ended.iter().all(|success| *success), "{ended:?}");
    let store = place.open();
    let loaded = store
        .load_all_as(&|file, _| verifier()(file), &|bundle| bundle, now())
        .unwrap();
    assert_eq!(loaded.len(), 17);
    assert!(loaded.iter().all(|one| one.bundle.is_ok()));
    assert_eq!(store.installed("demo.greet").unwrap().unwrap().sequence, 16);
    store.gc().unwrap();
    assert_eq!(place.files().len(), 17);
}

#[test]
fn a_full_disk_leaves_the_old_release_and_no_garbage() {
    let place = Place::new();
    let store = place.open();
    store
        .install(&Release::new(1).bundle(), &options(), &NoLibraries)
        .unwrap();
    let files = place.files();
    let big = Release {
        payload: noise(3_000_000),
        ..Release::new(2)
    };
    std::fs::write(place.directory.path().join("big"), big.archive()).unwrap();
    let child = command("full", place.directory.path());
    // The shell's limit counts blocks of 512 or 1024 bytes. That is one or two MB, in both cases
    // less than the bundle.
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "ulimit -f 2000; exec \"$0\" \"$@\""])
        .arg(child.get_program())
        .args(child.get_args())
        .envs(
            child
                .get_envs()
                .filter_map(|(key, value)| Some((key, value?))),
        )
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    assert!(wait(shell.spawn().unwrap()));
    assert_eq!(place.files(), files);
    let (installed, _) = store.load("demo.greet", &verifier(), now()).unwrap();
    assert_eq!(installed.sequence, 1);
}

/// Bytes that don't compress.
pub(crate) fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
