//! Reloads the served bundles when bundles are installed, removed or revoked, or expire, when
//! directories under work are edited, and when the policy grants less.

mod scanner;
mod serving;
mod verifier;

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant, SystemTime};

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use toolward_host::confine::Confinement;
use toolward_host::{Broker, Host, SharedState};

use crate::bundles::SourceKind;
use crate::granted::Granted;
use crate::installed::LoadedBundles;
use crate::trust::TrustContext;
use crate::{Code, Error, Operator, Report, Result};

use scanner::{Configuration, FileScan, Scanner};
use serving::{LEASE, Serving, ServingLease, guarded};
use verifier::{BundleVerifier, ServedBundle, VerifiedBundles, served_bundles};

pub use serving::{Control, ReloadRequest, ReloadTarget, Rounds, WatchThread};

/// The interval between verifications without a change.
const VERIFY_INTERVAL: Duration = Duration::from_secs(300);
/// The delay before a failed verification is retried.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);

/// The loaded configuration and bundles. [`BundleWatch::follow`] serves later changes.
pub struct BundleWatch {
    scanner: Scanner,
    verifier: BundleVerifier,
    configuration: Configuration,
    seen: FileScan,
    loaded: LoadedBundles,
    /// The time at which the first of the served bundles expires.
    ends: Option<SystemTime>,
    verified: Instant,
}

/// The outcome of a change.
enum ChangeOutcome {
    Unchanged,
    /// A new host serves it.
    New(Host),
    /// The change is not served, but withdrawn tools are gone.
    Partly,
}

impl BundleWatch {
    /// Reads the operator's grants and the usable bundles. Of installed bundles, the components in
    /// the cache of `known` are left unread. They are verified when they are read.
    ///
    /// # Errors
    /// If the grants or the bundles can't be read.
    pub fn load(operator: Arc<Operator>, known: Option<&Broker>) -> Result<Self> {
        let (verified, since) = (Instant::now(), SystemTime::now());
        let granted = Arc::new(operator.granted()?);
        // Scans before reading, so that the next scan notices later changes.
        let scanner = Scanner::new(Arc::clone(&operator))?;
        let seen = scanner.look(&FileScan::default(), &operator.environment);
        let (source, environment) = (&operator.source, &operator.environment);
        let (named, loaded, context) = match source.kind() {
            SourceKind::Named | SourceKind::Beside(_) => {
                let (named, contents, context) = source.named(environment)?;
                (named, LoadedBundles::all_of(contents), Some(context))
            }
            SourceKind::Installed => {
                let store = scanner.store.as_ref();
                let (loaded, context) = source.installed(store, environment, known)?;
                (Vec::new(), loaded, Some(context))
            }
            SourceKind::Dev(directory) => {
                let content = source.dev(directory, environment)?;
                (Vec::new(), LoadedBundles::all_of(vec![content]), None)
            }
        };
        let context = context.map(|context| TrustContext {
            now: since,
            ..context
        });
        let ends = context.and_then(|context| context.ends(&loaded.contents));
        Ok(Self {
            configuration: Configuration::new(Arc::clone(&operator), granted)?,
            verifier: BundleVerifier::new(operator, named, &loaded.contents),
            scanner,
            seen,
            loaded,
            ends,
            verified,
        })
    }

    /// The operator's grants.
    pub fn granted(&self) -> &Arc<Granted> {
        &self.configuration.granted
    }

    /// The usable bundles, and the tools of the bundles that are not usable.
    pub fn loaded(&self) -> &LoadedBundles {
        &self.loaded
    }

    /// Adds the paths that this process scans and reads again once it is confined.
    ///
    /// # Errors
    /// If the configuration can't be read.
    pub fn kept(&self, confinement: Confinement) -> Result<Confinement> {
        let confinement = self.scanner.kept(confinement)?;
        let files = self.configuration.granted.files.iter();
        Ok(files.fold(confinement, |kept, file| kept.read(file)))
    }

    /// Follows changes on a separate thread until stopped, and serves them with `target`. The task
    /// `preparing` compiles the drivers of the current bundles, and `runtime` compiles the drivers
    /// of later bundles. If `runtime` shuts down before the watch is stopped, everything is
    /// withdrawn.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn follow<T: ReloadTarget>(
        self,
        target: T,
        shared_state: SharedState,
        control: Control,
        rounds: Rounds,
        runtime: &Handle,
        preparing: JoinHandle<()>,
    ) -> Result<WatchThread> {
        let serving = Arc::new(Serving {
            target,
            shared_state,
            rounds,
            runtime: runtime.clone(),
            control,
            lease: ServingLease::new(self.verified, LEASE),
        });
        let expiring = Arc::clone(&serving);
        // This task ends when the watch is stopped, or when `runtime` shuts down.
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
        Ok(WatchThread(ended))
    }

    /// Watches until stopped. Withdraws everything if watching ends earlier, or panics.
    ///
    /// # Errors
    /// If it ended before it was stopped.
    fn run<T: ReloadTarget>(
        mut self,
        serving: &Serving<T>,
        mut expiring: JoinHandle<()>,
        preparing: JoinHandle<()>,
    ) -> Result<()> {
        let stop = &serving.control.stop;
        guarded(&serving.shared_state, stop, || {
            // The timer has a separate runtime, since the runtime of the served host may shut down
            // first.
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

    fn watch<T: ReloadTarget>(
        &mut self,
        serving: &Serving<T>,
        mut pause: impl FnMut() -> bool,
        mut preparing: JoinHandle<()>,
    ) {
        let lease = &serving.lease;
        let mut next = after(Instant::now(), VERIFY_INTERVAL);
        let mut failing = false;
        // One report is used while nothing changes, so that each warning is given once.
        let mut round = (serving.rounds)();
        while pause() {
            if serving.control.reload.take()
                && let Some(host) = self.reload(serving)
            {
                serving.prepare_next(&mut preparing, host);
            }
            let now = self.scanner.look(&self.seen, &round);
            let ended = self.ends.take_if(|ends| SystemTime::now() >= *ends);
            if now == self.seen && Instant::now() < next && ended.is_none() {
                continue;
            }
            if now != self.seen {
                round = (serving.rounds)();
            }
            self.seen = now;
            let tried = Instant::now();
            let held = self.verifier.again(&self.scanner, &round);
            match held.map(|held| (held, lease.renew(tried))) {
                Ok((held, Some(all_withdrawn))) => {
                    if all_withdrawn {
                        self.loaded.contents.clear();
                    }
                    if std::mem::take(&mut failing) {
                        round = (serving.rounds)();
                    }
                    let served = self.serve(held, serving, &*round.report);
                    next = match served {
                        ChangeOutcome::Partly => after(tried, RETRY_INTERVAL),
                        _ => after(tried, VERIFY_INTERVAL),
                    };
                    if let ChangeOutcome::New(host) = served {
                        serving.prepare_next(&mut preparing, host);
                    }
                }
                Ok((_, None)) => {
                    failing = true;
                    next = after(Instant::now(), RETRY_INTERVAL);
                    round.report.warning(
                        "verifying the bundles again took more than six minutes, and none is served",
                    );
                }
                Err(failure) => {
                    failing = true;
                    next = after(tried, RETRY_INTERVAL);
                    let served = match lease.is_over() {
                        true => "none is served",
                        false => "what was served is",
                    };
                    let (Error { message, code, .. }, hint) =
                        (&failure, self.verifier.hint(&failure));
                    round.report.warning(&format!(
                        "the bundles can't be verified again, and {served}: {message} ({code}){hint}"
                    ));
                }
            }
        }
    }

    /// Reads the configuration again and reports the outcome. Returns the new host if the
    /// configuration changed, grants no more than before, and is served.
    fn reload<T: ReloadTarget>(&mut self, serving: &Serving<T>) -> Option<Host> {
        let report = (serving.rounds)().report;
        let made = self.configuration.again().and_then(|granted| {
            let Some(granted) = granted.map(Arc::new) else {
                return Ok(None);
            };
            // Waiting calls must not continue under the old policy.
            serving.shared_state.part();
            let made = serving.target.make(&self.loaded, &granted)?;
            Ok(Some((made, granted)))
        });
        let (made, granted) = match made {
            Ok(Some(made)) => made,
            Ok(None) => {
                report.note("SIGHUP: the configuration has not changed");
                return None;
            }
            Err(failure) => {
                let hints = failure.hints.iter().map(|hint| format!("; {hint}"));
                let hints: String = hints.collect();
                report.warning(&format!(
                    "SIGHUP: the configuration stays as it was: {} ({}){hints}",
                    failure.message, failure.code
                ));
                return None;
            }
        };
        self.configuration.granted = granted;
        let shown = serving.show(made);
        let why = "the operator's policy gives less than when this call began";
        serving.shared_state.withdraw_earlier(why);
        report.note(&format!(
            "SIGHUP: the policy gives no more than before, and holds: serving {}",
            shown.as_ref().map_or("nothing", |(_, tools)| tools)
        ));
        shown.map(|(host, _)| host)
    }

    /// Serves the bundles that were just verified.
    fn serve<T: ReloadTarget>(
        &mut self,
        (loaded, ends): VerifiedBundles,
        serving: &Serving<T>,
        report: &dyn Report,
    ) -> ChangeOutcome {
        self.ends = ends;
        let (before, now) = (
            served_bundles(&self.loaded.contents),
            served_bundles(&loaded.contents),
        );
        if before == now && self.loaded.withheld == loaded.withheld {
            return ChangeOutcome::Unchanged;
        }
        // Withdraws at once, even if the rest can't be served.
        let stays = |one: &ServedBundle| now.iter().any(|other| one.is_same_bundle(other));
        let gone: Vec<_> = before.iter().filter(|one| !stays(one)).collect();
        for ServedBundle { digest, .. } in &gone {
            let why = "it was removed, replaced or revoked, or has expired";
            serving.shared_state.withdraw(&digest.to_string(), why);
        }
        let failure = match serving.target.make(&loaded, &self.configuration.granted) {
            Ok(made) => {
                let Some((host, tools)) = serving.show(made) else {
                    return ChangeOutcome::Partly;
                };
                self.loaded = loaded;
                report.note(&format!("serving {tools} from now on"));
                serving.target.served(report);
                return ChangeOutcome::New(host);
            }
            Err(failure) => failure,
        };
        if !gone.is_empty() {
            self.loaded.withheld = loaded.withheld;
            self.leave_out(&now, serving, report);
        }
        report.warning_of("what changed is not served", &failure);
        ChangeOutcome::Partly
    }

    /// Serves the bundles that still verify, or nothing if no host can be built for them. Withdrawn
    /// tools are no longer listed.
    fn leave_out<T: ReloadTarget>(
        &mut self,
        now: &[ServedBundle],
        serving: &Serving<T>,
        report: &dyn Report,
    ) {
        self.loaded.contents.retain(|content| {
            let one = ServedBundle::of(content);
            now.iter().any(|other| one.is_same_bundle(other))
        });
        let granted = &self.configuration.granted;
        let made = serving.target.make(&self.loaded, granted).or_else(|_| {
            self.loaded.contents.clear();
            serving.target.empty()
        });
        match made {
            // Without effect if the lease (the time for which verified bundles may be served) is
            // over.
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

/// Compiles the drivers that are not in the cache, while clients connect.
pub async fn prepare(host: Host) {
    for (driver, error) in host.prepare().await {
        tracing::warn!(%driver, %error, "a driver can't be compiled");
    }
}
