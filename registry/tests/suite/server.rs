//! A real registry, Debian's `docker-registry`, started on loopback for a test and stopped after
//! it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc;
use std::time::Duration;

use toolward_registry::Reference;

/// How long the registry may take to start.
const START: Duration = Duration::from_secs(60);

/// A running registry with its own storage.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Server {
    /// Starts a registry, or reports why that is impossible and that the test is skipped.
    pub(crate) fn start() -> Option<Self> {
        Self::with("", |_| {})
    }

    /// Starts a registry with more configuration. `DIR` in it is a folder that `fill` may write to.
    pub(crate) fn with(more: &str, fill: impl FnOnce(&Path)) -> Option<Self> {
        let program = match program() {
            Ok(program) => program,
            Err(reason) => {
                // Not with `eprintln!`, whose output the test runner captures.
                let _ = writeln!(
                    std::io::stderr(),
                    "SKIPPED: there is no docker-registry to test against: {reason}"
                );
                return None;
            }
        };
        let folder = tempfile::tempdir().unwrap();
        fill(folder.path());
        let path = folder.path().display();
        let http = if more.contains("certificate:") {
            ""
        } else {
            "http:\n  addr: 127.0.0.1:0\n"
        };
        let config = format!(
            "version: 0.1\nlog:\n  level: info\nstorage:\n  filesystem:\n    rootdirectory: {path}/data\n{http}{}",
            more.replace("DIR", &path.to_string())
        );
        let file = folder.path().join("config.yml");
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
        // Reads until the end, so that the registry never blocks on a full pipe.
        std::thread::spawn(move || {
            let mut seen = String::new();
            for line in log.lines().map_while(Result::ok) {
                if let Some(rest) = line.split("listening on ").nth(1) {
                    let address = rest.split([',', '"', ' ']).next().unwrap_or_default();
                    let _ = found.send(address.parse::<SocketAddr>().map_err(|_| line.clone()));
                }
                seen.push_str(&line);
                seen.push('\n');
            }
            let _ = found.send(Err(seen));
        });
        match address.recv_timeout(START) {
            Ok(Ok(address)) => Some(Self {
                child,
                address,
                _folder: folder,
            }),
            other => {
                let _ = child.kill();
                let _ = child.wait();
                panic!("the registry did not start: {other:?}");
            }
        }
    }

    pub(crate) fn reference(&self, repository: &str) -> Reference {
        format!("oci://{}/{repository}", self.address)
            .parse()
            .unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program, fetched once if it is not installed.
fn program() -> Result<PathBuf, String> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    PROGRAM
        .get_or_init(|| {
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
            // In cargo's target directory.
            let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
            let output = Command::new(root.join("xtask/registry-server.sh"))
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
        })
        .clone()
}
