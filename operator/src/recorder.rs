//! The process that records calls: its start, its configuration, and its work. The process that
//! runs guests has only a socket to the recorder, and does not open the ledger's directory or the
//! signing key. The recorder is confined to that directory and to the file of checkpoints.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use toolward_bundle::content::Content;
use toolward_host::HostBuilder;
use toolward_host::confine::{State, only_files};
use toolward_ledger::record::{Event, Hex, Invocation, Opened, Version, Word};
use toolward_ledger::remote::{RecorderConnection, Remote, Start};
use toolward_ledger::{Durability, Entry, LedgerOptions, Recorder};
use toolward_support::files::{Folder, Protection};
use toolward_support::helper::ENDING;

use crate::granted::Granted;
use crate::ledger::{LedgerSettings, WaitFor};
use crate::{Code, Environment, Error, Result};

/// How a program becomes a recorder: it calls [`run_recorder`] at the start of `main`.
#[derive(Debug, Clone)]
pub struct RecorderCommand {
    /// The absolute path of the program.
    pub program: PathBuf,
    /// The arguments that make it call [`run_recorder`].
    pub arguments: Vec<OsString>,
}

/// A started recorder that has no session yet.
#[derive(Debug)]
pub struct StartedRecorder {
    process: Process,
    options: LedgerOptions,
    wait_for: WaitFor,
}

/// A recorder that records the calls of this process. Cheap to clone. Dropping the last clone ends
/// the recorder.
#[derive(Debug, Clone)]
pub struct CallRecorder {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    remote: Arc<Remote>,
    /// Waited for after the session is closed.
    _process: Process,
    wait_for: WaitFor,
}

#[derive(Debug)]
struct Process {
    child: Mutex<Child>,
    socket: UnixStream,
}

impl Drop for Process {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap_or_else(PoisonError::into_inner);
        toolward_support::helper::end(child, &self.socket);
    }
}

/// The confinement of a process that runs guests, for the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordedConfinement {
    /// The confinement that the kernel supports.
    Of(State),
    /// The operator switched it off.
    Off,
}

impl RecordedConfinement {
    fn word(self) -> &'static str {
        match self {
            Self::Of(State::Full) => "full",
            Self::Of(State::Partial) => "partial",
            Self::Of(State::Unavailable) => "unavailable",
            Self::Off => "off",
        }
    }
}

impl StartedRecorder {
    /// Starts a recorder, unless the settings turn recording off. Call it before this process
    /// confines itself. The recorder logs to `stderr`.
    ///
    /// ```no_run
    /// use toolward_operator::recorder::{RecordedConfinement, RecorderCommand, StartedRecorder};
    /// use toolward_operator::Operator;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let operator = Operator::of_process();
    /// let command = RecorderCommand {
    ///     program: std::env::current_exe()?,
    ///     arguments: vec!["recorder".into()],
    /// };
    /// let environment = &operator.environment;
    /// let settings = operator.configured().ledger()?;
    /// let stderr = std::process::Stdio::inherit();
    /// let started = StartedRecorder::start(&command, &settings, environment, stderr)?;
    /// let contents = operator.source.contents(environment)?;
    /// let granted = operator.granted()?;
    /// let mut builder = operator.host_builder(contents.clone(), &granted, false)?;
    /// if let Some(started) = started {
    ///     let recorder = started.begin(&contents, Some(&granted), RecordedConfinement::Off)?;
    ///     builder = recorder.records(builder, &granted);
    /// }
    /// let host = builder.build()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `recorder-unavailable` if the program can't be started. Fails also if the ledger has no
    /// directory.
    pub fn start(
        command: &RecorderCommand,
        settings: &LedgerSettings,
        environment: &Environment,
        stderr: Stdio,
    ) -> Result<Option<Self>> {
        let Some(options) = settings.options(environment)? else {
            return Ok(None);
        };
        let started = toolward_support::helper::start(&command.program, &command.arguments, stderr);
        let (child, socket) = started.map_err(|error| {
            let program = command.program.display();
            let message =
                format!("the process that records calls, {program}, can't start: {error}");
            Error::failed(Code::RecorderUnavailable, message)
        })?;
        Ok(Some(Self {
            process: Process {
                child: Mutex::new(child),
                socket,
            },
            options,
            wait_for: settings.wait_for,
        }))
    }

    /// Makes the recorder open the ledger and record the start of a session. Does not wait for
    /// that: if the ledger can't be used, [`Remote::ended`] reports it, and calls that change
    /// something end with `toolward:unrecorded`. `granted` is `None` for a session without calls.
    ///
    /// # Errors
    /// If the recorder can't be reached.
    pub fn begin(
        self,
        contents: &[Content],
        granted: Option<&Granted>,
        confinement: RecordedConfinement,
    ) -> Result<CallRecorder> {
        let opened = opened(contents, granted, confinement)?;
        let socket = self.process.socket.try_clone();
        let socket =
            socket.map_err(|error| Error::failed(Code::RecorderUnavailable, error.to_string()))?;
        let start = Start {
            options: self.options,
            opened,
        };
        Ok(CallRecorder {
            inner: Arc::new(Inner {
                remote: Arc::new(Remote::start(socket, start)?),
                _process: self.process,
                wait_for: self.wait_for,
            }),
        })
    }
}

impl CallRecorder {
    /// Makes a host record its calls.
    pub fn records(&self, builder: HostBuilder, granted: &Granted) -> HostBuilder {
        let builder = builder
            .recorder(self.inner.remote.clone())
            .policy_digest(granted.policy_digest());
        match self.inner.wait_for {
            WaitFor::Started => builder.queue_ended_rows(),
            WaitFor::Ended => builder,
        }
    }

    /// Returns the connection to the recorder: it takes entries, counts them, and reports its end.
    pub fn remote(&self) -> &Remote {
        &self.inner.remote
    }

    /// Records that from now on other bundles or another policy are served. Blocks while the queue
    /// is full.
    pub fn serves(
        &self,
        contents: &[Content],
        granted: &Granted,
        confinement: RecordedConfinement,
    ) {
        let recorded = opened(contents, Some(granted), confinement).and_then(|opened| {
            let entry = Entry::new(Event::Opened(opened));
            let recorded = self.inner.remote.append(entry, Durability::Queued);
            Ok(recorded.wait()?)
        });
        if let Err(error) = recorded {
            tracing::error!(error.code, %error, "a change of what is served is not recorded");
        }
    }

    /// Returns the origin (the name) of the ledger, and the numbers of its rows about a call: one
    /// of the last 32 calls that no tool made. The recorder reports them when it is
    /// [closed](CallRecorder::close), so that this process need not read the ledger.
    pub fn rows_of(&self, invocation: Invocation) -> Option<(String, Vec<u64>)> {
        let written = self.inner.remote.written()?;
        let rows = written.of(invocation).collect();
        Some((written.origin, rows))
    }

    /// Ends the session, and waits until everything is written.
    ///
    /// # Errors
    /// If not everything is written.
    pub fn close(&self) -> Result<()> {
        Ok(self.inner.remote.close(ENDING)?)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // A caller that needs the result has closed the session already. After this, `_process` is
        // dropped, which waits for the process.
        let _ = self.remote.close(ENDING);
    }
}

/// Returns the first record of a session or of a change: the served bundles and policy.
fn opened(
    contents: &[Content],
    granted: Option<&Granted>,
    confinement: RecordedConfinement,
) -> Result<Opened> {
    let bundles = contents.iter();
    let bundles = bundles.map(|content| Hex(*content.manifest_digest.as_bytes()));
    let invalid = |error| Error::from(toolward_ledger::Error::Record(error));
    Ok(Opened::of(
        Version::parse(env!("CARGO_PKG_VERSION")).map_err(invalid)?,
        bundles.collect(),
        Word::parse(confinement.word()).map_err(invalid)?,
        granted.map(|granted| Hex(granted.policy_digest())),
    ))
}

/// Records for the process at the other end of standard input, until that process ends. Call this
/// in the program that [`StartedRecorder::start`] starts. `confined` is called once this process is
/// confined; from then on threads may be started.
///
/// # Errors
/// If standard input is not a connection to such a process, or the ledger can't be used.
pub fn run_recorder(confined: impl FnOnce()) -> io::Result<()> {
    let socket = UnixStream::from(OwnedFd::from(toolward_support::helper::connection()?));
    let Some(connection) = RecorderConnection::accept(socket).map_err(io::Error::other)? else {
        return Ok(());
    };
    if let Err(problem) = confine(connection.options()) {
        let problem = problem.to_string();
        connection.refuse(problem.clone());
        return Err(io::Error::other(problem));
    }
    confined();
    connection.serve().map_err(io::Error::other)
}

/// Confines this process to the ledger's directory and the operator's file of checkpoints, and
/// creates both if they are missing.
fn confine(options: &LedgerOptions) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    Folder::make(&options.directory, Protection::Private)?;
    let directory = options.directory.canonicalize()?;
    let mut kept = vec![directory.as_path()];
    if let Some(path) = &options.checkpoints {
        match toolward_support::files::create(path, b"", 0o600) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(format!("{}: {error}", path.display()).into());
            }
            _ => kept.push(path),
        }
    }
    only_files(kept)?;
    Ok(())
}
