//! Reloads what is served when bundles are installed, removed, revoked or expire, when
//! directories under work are edited, and when the policy grants less.

mod configuration;
mod control;
mod lease;
mod named_actions;
mod scanner;
mod serving;
mod target;
mod verifier;

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant, SystemTime};

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolward_bundle::content::Content;
use toolward_host::confine::Confinement;
use toolward_host::{Host, SharedState};
use toolward_signing::Digest;

use crate::bundles::SourceKind;
use crate::error::{Code, Error};
use crate::granted::Granted;
use crate::installed::LoadedBundles;
use crate::operator::Operator;
use crate::report::Report;
use crate::trust::TrustContext;

use configuration::Configuration;
use lease::Lease;
use named_actions::surface_with_actions;
use scanner::{Scanner, Seen};
use serving::Serving;
use verifier::{Held, Verifier};

pub use control::{Control, ReloadRequest};
pub use target::Target;

/// The interval between scans for changes.
const SCAN_INTERVAL: Duration = Duration::from_secs(1);
/// The interval between verifications without a change.
const VERIFY_INTERVAL: Duration = Duration::from_secs(300);
/// The delay before a failed verification is retried.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);
/// How long bundles are served after their latest verification.
const LEASE: Duration = Duration::from_secs(360);

/// Makes a [`Report`] for one round, in which each warning is given once.
pub type Reports = Box<dyn Fn() -> Box<dyn Report> + Send + Sync>;

/// The loaded configuration and bundles. [`Watch::follow`] follows changes.
pub struct Watch {
    scanner: Scanner,
    verifier: Verifier,
    configuration: Configuration,
    seen: Seen,
    loaded: LoadedBundles,
    /// When the first of the served bundles expires.
    ends: Option<SystemTime>,
    verified: Instant,
}

/// The outcome of a change.
enum Served {
    Unchanged,
    /// A new host serves it.
    New(Host),
    /// The change is not served; what was withdrawn is gone.
    Partly,
}

impl Watch {
    /// Reads the operator's grants and the usable bundles.
    ///
    /// # Errors
    /// If either can't be read.
    pub fn load(operator: Arc<Operator>, report: &dyn Report) -> Result<Self, Error> {
        let (verified, since) = (Instant::now(), SystemTime::now());
        let granted = Arc::new(operator.granted()?);
        // Scan before reading, so that the next scan sees later changes.
        let scanner = Scanner::new(Arc::clone(&operator))?;
        let seen = scanner.look(&Seen::default(), report);
        let (source, environment) = (&operator.source, &operator.environment);
        let (named, loaded, context) = match source.kind() {
            SourceKind::Named | SourceKind::Beside(_) => {
                let named = source.named(environment, report)?;
                let loaded = LoadedBundles::all_of(named.contents);
                (named.bundles, loaded, Some(named.context))
            }
            SourceKind::Installed => {
                let store = scanner.store();
                let (loaded, context) = source.installed(store, environment, report)?;
                (Vec::new(), loaded, Some(context))
            }
            SourceKind::Dev(_) => {
                let contents = source.contents(environment, report)?;
                (Vec::new(), LoadedBundles::all_of(contents), None)
            }
        };
        let ends = context.and_then(|context| {
            let context = TrustContext {
                now: since,
                ..context
            };
            context.ends(&loaded.contents)
        });
        Ok(Self {
            configuration: Configuration::new(Arc::clone(&operator), granted)?,
            verifier: Verifier::new(operator, named, &loaded.contents),
            scanner,
            seen,
            loaded,
            ends,
            verified,
        })
    }

    /// What the operator grants.
    pub fn granted(&self) -> &Arc<Granted> {
        &self.configuration.granted
    }

    /// The bundles that may be used, and the tools of those that may not.
    pub fn loaded(&self) -> &LoadedBundles {
        &self.loaded
    }

    /// Adds the paths that a confined process scans and reads again.
    ///
    /// # Errors
    /// If the configuration can't be read.
    pub fn kept(&self, confinement: Confinement) -> Result<Confinement, Error> {
        let confinement = self.scanner.kept(confinement)?;
        let files = self.configuration.granted.files.iter();
        Ok(files.fold(confinement, |kept, file| kept.read(file)))
    }

    /// Follows changes on a thread of its own until stopped, and serves them with
    /// `target`. `preparing` compiles the drivers of the current bundles. `runtime` prepares
    /// further ones, and everything is withdrawn when it shuts down before the watch is
    /// stopped.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn follow<T: Target>(
        self,
        target: T,
        shared_state: SharedState,
        control: Control,
        reports: Reports,
        runtime: &Handle,
        preparing: JoinHandle<()>,
    ) -> Result<Following, Error> {
        let serving = Arc::new(Serving {
            target,
            shared_state,
            reports,
            runtime: runtime.clone(),
            control,
            lease: Lease::new(self.verified, LEASE),
        });
        let expiring = Arc::clone(&serving);
        // Ends when the watch is stopped, or when its runtime shuts down.
        let expiring = runtime.spawn(async move { expiring.expire().await });
        let lease_task = expiring.abort_handle();
        let (sender, ended) = mpsc::channel();
        let work = move || {
            let result = self.run(&serving, expiring, preparing);
            drop(serving);
            // The receiver may be gone.
            let _ = sender.send(result);
        };
        std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn(work)
            .map_err(|error| {
                lease_task.abort();
                Error::runtime(error)
            })?;
        Ok(Following(ended))
    }

    /// Watches until stopped. Withdraws everything if watching ends before, or panics.
    ///
    /// # Errors
    /// If it ended before it was stopped.
    fn run<T: Target>(
        mut self,
        serving: &Serving<T>,
        mut expiring: JoinHandle<()>,
        preparing: JoinHandle<()>,
    ) -> Result<(), Error> {
        let stop = &serving.control.stop;
        guarded(&serving.shared_state, stop, || {
            // The runtime of what is served may shut down first.
            let timer = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build()
                .map_err(Error::runtime)?;
            let pause = || serving.pause(&timer, &mut expiring);
            self.watch(serving, pause, preparing);
            match stop.is_cancelled() {
                true => Ok(()),
                false => Err(Error::failed(
                    Code::WatchEnded,
                    "the runtime shut down before what is served on it was stopped",
                )),
            }
        })
    }

    fn watch<T: Target>(
        &mut self,
        serving: &Serving<T>,
        mut pause: impl FnMut() -> bool,
        mut preparing: JoinHandle<()>,
    ) {
        let lease = &serving.lease;
        let mut next = after(Instant::now(), VERIFY_INTERVAL);
        let mut failing = false;
        // One report while nothing changes, so that each warning is given once.
        let mut report = (serving.reports)();
        while pause() {
            if serving.control.reload.take()
                && let Some(host) = self.reload(serving)
            {
                preparing.abort();
                preparing = serving.runtime.spawn(prepare(host));
            }
            let now = self.scanner.look(&self.seen, &*report);
            let ended = self.ends.take_if(|ends| SystemTime::now() >= *ends);
            if now == self.seen && Instant::now() < next && ended.is_none() {
                continue;
            }
            if now != self.seen {
                report = (serving.reports)();
            }
            self.seen = now;
            let tried = Instant::now();
            let held = self.verifier.again(&self.scanner, &*report);
            match held.map(|held| (held, lease.renew(tried))) {
                Ok((held, Some(all_withdrawn))) => {
                    if all_withdrawn {
                        self.loaded.contents.clear();
                    }
                    if std::mem::take(&mut failing) {
                        report = (serving.reports)();
                    }
                    let served = self.serve(held, serving, &*report);
                    next = match served {
                        Served::Partly => after(tried, RETRY_INTERVAL),
                        _ => after(tried, VERIFY_INTERVAL),
                    };
                    if let Served::New(host) = served {
                        preparing.abort();
                        preparing = serving.runtime.spawn(prepare(host));
                    }
                }
                Ok((_, None)) => {
                    failing = true;
                    next = after(Instant::now(), RETRY_INTERVAL);
                    report.warning(
                        "verifying the bundles again took more than six minutes, and none is served",
                    );
                }
                Err(failure) => {
                    failing = true;
                    next = after(tried, RETRY_INTERVAL);
                    report.warning(&format!(
                        "the bundles can't be verified again, and {}: {} ({}){}",
                        if lease.is_over() {
                            "none is served"
                        } else {
                            "what was served is"
                        },
                        failure.message,
                        failure.code,
                        self.verifier.hint(&failure)
                    ));
                }
            }
        }
    }

    /// Reads the configuration again and reports the outcome. Returns the new host if
    /// it grants no more than before.
    fn reload<T: Target>(&mut self, serving: &Serving<T>) -> Option<Host> {
        let report = (serving.reports)();
        let kept = |failure: Error| {
            let hints = failure.hints.iter().map(|hint| format!("; {hint}"));
            let hints: String = hints.collect();
            report.warning(&format!(
                "SIGHUP: the configuration stays as it was: {} ({}){hints}",
                failure.message, failure.code
            ));
        };
        let granted = match self.configuration.again() {
            Ok(Some(granted)) => Arc::new(granted),
            Ok(None) => {
                report.note("SIGHUP: the configuration has not changed");
                return None;
            }
            Err(failure) => {
                kept(failure);
                return None;
            }
        };
        // Waiting calls must not continue under the old policy.
        serving.shared_state.part();
        let made = match serving.target.make(&self.loaded, &granted) {
            Ok(made) => made,
            Err(failure) => {
                kept(failure);
                return None;
            }
        };
        self.configuration.granted = granted;
        let (host, count) = (serving.target.host(&made), tools(&serving.target, &made));
        let shown = serving.show(made);
        let why = "the operator's policy gives less than when this call began";
        serving.shared_state.withdraw_earlier(why);
        report.note(&format!(
            "SIGHUP: the policy gives no more than before, and holds: serving {}",
            if shown { &count } else { "nothing" }
        ));
        shown.then_some(host)
    }

    /// Serves the bundles that were just verified.
    fn serve<T: Target>(
        &mut self,
        held: Held,
        serving: &Serving<T>,
        report: &dyn Report,
    ) -> Served {
        self.ends = held.ends;
        let loaded = held.loaded;
        let (before, now) = (versions(&self.loaded.contents), versions(&loaded.contents));
        if before == now && self.loaded.withheld == loaded.withheld {
            return Served::Unchanged;
        }
        // Withdraw at once, even if the rest can't be served.
        let stays = |one: &Version| now.iter().any(|other| one.is_same_bundle(other));
        let gone: Vec<_> = before.iter().filter(|one| !stays(one)).collect();
        for Version { digest, .. } in &gone {
            let why = "it was removed, replaced or revoked, or has expired";
            serving.shared_state.withdraw(&digest.to_string(), why);
        }
        let failure = match serving.target.make(&loaded, &self.configuration.granted) {
            Ok(made) => {
                let (host, count) = (serving.target.host(&made), tools(&serving.target, &made));
                if !serving.show(made) {
                    return Served::Partly;
                }
                self.loaded = loaded;
                report.note(&format!("serving {count} from now on"));
                serving.target.served(report);
                return Served::New(host);
            }
            Err(failure) => failure,
        };
        if !gone.is_empty() {
            self.loaded.withheld = loaded.withheld;
            self.leave_out(&now, serving, report);
        }
        report.warning(&format!(
            "what changed is not served: {} ({})",
            failure.message, failure.code
        ));
        Served::Partly
    }

    /// Serves the bundles that still verify, or nothing if no host can be built for
    /// them. Withdrawn tools are no longer listed.
    fn leave_out<T: Target>(&mut self, now: &[Version], serving: &Serving<T>, report: &dyn Report) {
        self.loaded.contents.retain(|content| {
            let one = Version::of(content);
            now.iter().any(|other| one.is_same_bundle(other))
        });
        let kept = serving
            .target
            .make(&self.loaded, &self.configuration.granted)
            .or_else(|_failure| {
                self.loaded.contents.clear();
                serving.target.empty()
            });
        match kept {
            // Has no effect once the lease has ended.
            Ok(made) => {
                serving.show(made);
            }
            Err(failure) => {
                report.warning(&format!("{} ({})", failure.message, failure.code));
                serving.withdraw_all("the server could not leave out what was withdrawn");
            }
        }
    }
}

fn after(moment: Instant, time: Duration) -> Instant {
    moment.checked_add(time).unwrap_or(moment)
}

/// Withdraws everything and stops the server if `work` fails or panics: without a watch nothing
/// may be served.
fn guarded(
    shared_state: &SharedState,
    stop: &CancellationToken,
    work: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    let fault = |_panic| {
        let message =
            "the server stopped: a fault of its own ended its looking for revoked bundles";
        Err(Error::failed(Code::WatchEnded, message)
            .hint("start it again, and report what it wrote of the panic"))
    };
    let worked = std::panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(fault);
    worked.inspect_err(|error| {
        tracing::error!(%error, "looking for revoked bundles ended: none is served");
        shared_state.withdraw_all("the server no longer sees whether it is revoked");
        stop.cancel();
    })
}

/// What a bundle that is served is told apart by.
#[derive(Debug, PartialEq, Eq)]
struct Version {
    digest: Digest,
    /// Of a bundle that takes actions from others: they may change while its digest stays.
    surface: Option<Digest>,
    /// Who is trusted to have signed it.
    publisher: String,
    /// Which of its tools may be shown by the names that they ask for, which depends on the publisher's prefixes.
    names_itself: Vec<bool>,
}

impl Version {
    fn of(content: &Content) -> Self {
        Self {
            digest: content.manifest_digest,
            surface: surface_with_actions(content),
            publisher: content.origin.publisher(),
            names_itself: content.tools.iter().map(|tool| tool.names_itself).collect(),
        }
    }

    /// Whether calls of one may go on where the other is served.
    fn is_same_bundle(&self, other: &Self) -> bool {
        self.digest == other.digest
            && self.surface == other.surface
            && self.publisher == other.publisher
    }
}

fn versions(contents: &[Content]) -> Vec<Version> {
    contents.iter().map(Version::of).collect()
}

/// Compiles the drivers that are not in the cache, while clients connect.
pub async fn prepare(host: Host) {
    for (driver, error) in host.prepare().await {
        tracing::warn!(%driver, %error, "a driver can't be compiled");
    }
}

/// The number of tools in words: `1 tool`.
fn tools<T: Target>(target: &T, made: &T::Made) -> String {
    match target.tool_count(made) {
        1 => "1 tool".to_owned(),
        count => format!("{count} tools"),
    }
}

/// The thread that follows changes.
#[derive(Debug)]
pub struct Following(mpsc::Receiver<Result<(), Error>>);

impl Following {
    /// Waits for the thread to end, up to a timeout: it may be waiting for another
    /// process's lock.
    ///
    /// # Errors
    /// If it ended before it was stopped.
    pub fn ended(&self, longest: Duration) -> Result<(), Error> {
        self.0.recv_timeout(longest).unwrap_or(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_what_looks_stops_the_server_and_says_so() {
        let stop = CancellationToken::new();
        let shared_state = SharedState::new();
        guarded(&shared_state, &stop, || Ok(())).unwrap();
        assert!(!stop.is_cancelled());
        let failure = guarded(&shared_state, &stop, || panic!("in a test")).unwrap_err();
        assert_eq!(failure.code, Code::WatchEnded.code());
        assert!(stop.is_cancelled());
    }
}
