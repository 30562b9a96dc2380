//! Bundles from a registry: Debian's `docker-registry` runs on this machine.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use toolward_signing::key::SigningKey;

use super::{key, listed, refused, release, runs, sequence, ship, trusting};
use crate::support::{Machine, root};

/// How long the registry may take to start.
const START: Duration = Duration::from_secs(60);

/// A running registry.
pub(crate) struct Server {
    child: Child,
    pub(super) address: String,
    _folder: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// Starts a registry that uses plain http, or reports visibly that no registry is installed.
    pub(crate) fn start() -> Option<Self> {
        Self::with(|_| String::new())
    }

    /// Starts a registry with more lines in the `http` part of its configuration. The lines may
    /// name files in its folder.
    pub(super) fn with(more: impl FnOnce(&Path) -> String) -> Option<Self> {
        let program = match program() {
            Ok(program) => program,
            Err(reason) => {
                // Not by a macro, since the test runner hides the output of macros.
                let mut stderr = std::io::stderr();
                let _ = writeln!(stderr, "SKIPPED: no docker-registry: {reason}");
                return None;
            }
        };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.yml");
        let config = format!(
            "version: 0.1\nlog:\n  level: info\nstorage:\n  filesystem:\n    rootdirectory: {}/data\n\
             http:\n  addr: 127.0.0.1:0\n{}",
            folder.path().display(),
            more(folder.path())
        );
        std::fs::write(&file, config).unwrap();
        let mut child = Command::new(program)
            .arg("serve")
            .arg(&file)
            .env("OTEL_TRACES_EXPORTER", "none")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        let (found, address) = mpsc::channel();
        // Reads to the end, so that the registry never waits for a reader.
        std::thread::spawn(move || {
            for line in log.lines().map_while(Result::ok) {
                if let Some(rest) = line.split("listening on ").nth(1) {
                    let address = rest.split([',', '"', ' ']).next();
                    let _ = found.send(address.unwrap_or_default().to_owned());
                }
            }
        });
        let address = address.recv_timeout(START);
        let server = |address| Self {
            child,
            address,
            _folder: folder,
        };
        Some(server(address.expect("the registry did not start")))
    }

    pub(crate) fn reference(&self, tag: &str) -> String {
        format!("oci://{}/acme/text-stats:{tag}", self.address)
    }
}

/// The registry's program, downloaded once if it is not installed.
fn program() -> Result<PathBuf, String> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let output = Command::new(root().join("xtask/registry-server.sh"))
        .env("REGISTRY_SERVER_DIR", target.join("registry-server"))
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        let path = String::from_utf8_lossy(&output.stdout);
        Ok(PathBuf::from(path.trim()))
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Pushes the release with this sequence as `TAG`.
fn push(machine: &Machine, server: &Server, number: u64, one: &SigningKey, tag: &str) {
    let file = format!("{number}.toolbundle");
    ship(machine, &release(number), one, &file);
    let reference = server.reference(tag);
    machine
        .toolward(&format!("publisher push {file} {reference} --plain-http"))
        .ends(0);
}

#[test]
fn documents_and_co_signatures_travel_by_registry_too() {
    let Some(server) = Server::start() else {
        return;
    };
    let (machine, one) = trusting();
    push(&machine, &server, 1, &one, "stable");
    let reference = server.reference("stable");
    let keys = format!("oci://{}/acme/keys:acme", server.address);
    machine
        .toolward(&format!(
            "publisher push acme.publisher.json {keys} --plain-http"
        ))
        .ends(0);
    machine.toolward("trust remove acme").ends(0);
    let shown = machine.toolward("publisher show acme.publisher.json --json");
    let fingerprint = shown.ends(0).json()["fingerprint"]
        .as_str()
        .unwrap()
        .to_owned();
    let grant = "--prefix text --prefix text-stats";
    machine
        .toolward(&format!("trust add {keys} {grant} --plain-http"))
        .arg(format!("--fingerprint={fingerprint}"))
        .ends(0);

    // Another key signs the pushed bundle. Only the signature is pushed.
    key(&machine, "two");
    machine
        .toolward("publisher sign 1.toolbundle --key two.pem")
        .ends(0);
    let attach = format!("publisher push 1.toolbundle {reference} --signatures --plain-http");
    machine.toolward(&attach).ends(0);
    let pull = format!(
        "publisher pull {reference} -o both.toolbundle --plain-http --trust-key two.pub.pem"
    );
    machine.toolward(&pull).ends(0);
}

#[test]
fn a_bundle_is_pushed_pulled_and_installed_where_a_maximum_age_is_set() {
    let Some(server) = Server::start() else {
        return;
    };
    let (machine, one) = trusting();
    push(&machine, &server, 1, &one, "stable");
    let reference = server.reference("stable");
    let pull = format!("publisher pull {reference} -o pulled.toolbundle --plain-http");
    machine.toolward(&pull).ends(0);
    machine.toolward("verify pulled.toolbundle").ends(0);
    // Nothing is overwritten.
    let before = machine.read("pulled.toolbundle");
    let again = machine.toolward(&pull).end();
    assert_ne!(again.code, Some(0), "{again}");
    assert_eq!(machine.read("pulled.toolbundle"), before);

    machine.configure("[trust]\nmax_age_days = 90\n");
    let install = format!("install {reference} --plain-http");
    machine.toolward(&install).ends(0);
    runs(&machine);
    // The tag moves, and the installation follows it.
    push(&machine, &server, 2, &one, "stable");
    machine.toolward("update --plain-http").ends(0);
    assert_eq!(sequence(&machine), 2);
    runs(&machine);
    // Moving back is refused.
    push(&machine, &server, 1, &one, "stable");
    refused(
        &machine,
        "update text.stats-bundle --plain-http",
        3,
        "rollback",
    );
    assert_eq!(sequence(&machine), 2);
}

#[test]
fn a_registry_alone_does_not_say_what_is_current() {
    let Some(server) = Server::start() else {
        return;
    };
    let (machine, one) = trusting();
    push(&machine, &server, 1, &one, "stable");
    let install = format!("install {} --plain-http", server.reference("stable"));
    refused(&machine, &install, 3, "freshness-unknown");
    assert!(listed(&machine).is_empty());

    // The only channel applies without being named.
    key(&machine, "index");
    machine.configure(&format!(
        "[[channel]]\nname = \"stable\"\nsource = \"{}\"\nkeys = [\"\"\"{}\"\"\"]\n",
        machine.path("stable.json").display(),
        machine.text("index.pub.pem")
    ));
    machine
        .toolward("publisher channel stable --key index.pem --bundle 1.toolbundle -o stable.json")
        .ends(0);
    push(&machine, &server, 2, &one, "stable");
    refused(&machine, &install, 3, "channel-mismatch");
    assert!(listed(&machine).is_empty());
    push(&machine, &server, 1, &one, "stable");
    machine.toolward(&install).ends(0);
    runs(&machine);
}

#[test]
fn a_bundle_that_is_too_old_is_not_installed_from_a_registry() {
    let Some(server) = Server::start() else {
        return;
    };
    let (machine, one) = trusting();
    let mut old = release(1);
    old.manifest.created =
        toolward_signing::timestamp::Timestamp::parse("2020-01-01T00:00:00Z").unwrap();
    ship(&machine, &old, &one, "old.toolbundle");
    let reference = server.reference("old");
    machine
        .toolward(&format!(
            "publisher push old.toolbundle {reference} --plain-http"
        ))
        .ends(0);
    machine.configure("[trust]\nmax_age_days = 90\n");
    let install = format!("install {reference} --plain-http");
    refused(&machine, &install, 3, "too-old");
    assert!(listed(&machine).is_empty());
}

#[test]
fn a_stranger_pushes_and_nobody_installs() {
    let Some(server) = Server::start() else {
        return;
    };
    let (machine, _) = trusting();
    let stranger = key(&machine, "stranger");
    ship(&machine, &release(1), &stranger, "b.toolbundle");
    let reference = server.reference("stable");
    machine
        .toolward(&format!(
            "publisher push b.toolbundle {reference} --plain-http"
        ))
        .arg("--trust-key=stranger.pub.pem")
        .ends(0);
    machine.configure("[trust]\nmax_age_days = 90\n");
    let install = format!("install {reference} --plain-http");
    refused(&machine, &install, 3, "unknown-publisher");
    let pull = format!("publisher pull {reference} -o pulled.toolbundle --plain-http");
    refused(&machine, &pull, 3, "unknown-publisher");
    assert!(!machine.path("pulled.toolbundle").exists());
    // Plain http is used only if it is requested.
    let ended = machine.toolward(&format!("install {reference}")).end();
    assert_ne!(ended.code, Some(0), "{ended}");
    assert!(listed(&machine).is_empty());
}
