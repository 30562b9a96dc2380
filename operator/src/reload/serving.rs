//! Serves new hosts, and withdraws everything when the lease ends. The lease is the time for which
//! bundles are served after their latest verification. It ends even while a verification is
//! blocked.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use tokio::runtime::{Handle, Runtime};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolward_host::{Host, SharedState};
use toolward_support::helper::lock;

use super::prepare;
use crate::granted::Granted;
use crate::installed::LoadedBundles;
use crate::{Code, Environment, Error, Report, Result};

/// The interval between scans for changes.
const SCAN_INTERVAL: Duration = Duration::from_secs(1);
/// How long bundles are served after their latest verification.
pub(super) const LEASE: Duration = Duration::from_secs(360);

/// Makes the [`Environment`] of one round. A round lasts while nothing changes, and gives each
/// warning once.
pub type Rounds = Box<dyn Fn() -> Environment + Send + Sync>;

/// The state that the watching thread and the task that ends the lease share.
pub(super) struct Serving<T> {
    pub(super) target: T,
    pub(super) shared_state: SharedState,
    pub(super) rounds: Rounds,
    /// The runtime that prepares drivers.
    pub(super) runtime: Handle,
    pub(super) control: Control,
    pub(super) lease: ServingLease,
}

impl<T: ReloadTarget> Serving<T> {
    /// Withdraws everything when the lease ends, even while the verifying thread is blocked. Runs
    /// until stopped.
    pub(super) async fn expire(&self) {
        let withdraw = || {
            self.withdraw_all("it could not be verified again for six minutes");
            (self.rounds)().report.warning(
                "the bundles could not be verified again for six minutes, and none is served",
            );
        };
        let watch = self.lease.watch(SCAN_INTERVAL, withdraw);
        self.control.stop.run_until_cancelled(watch).await;
    }

    /// Compiles the drivers of a host, and stops compiling the drivers of the previous host.
    pub(super) fn prepare_next(&self, preparing: &mut JoinHandle<()>, host: Host) {
        preparing.abort();
        *preparing = self.runtime.spawn(prepare(host));
    }

    /// Serves a new service, unless the lease has ended. Returns its host and a text with its
    /// number of tools.
    pub(super) fn show(&self, made: T::Made) -> Option<(Host, String)> {
        let host = self.target.host(&made);
        let tools = match self.target.tool_count(&made) {
            1 => "1 tool".to_owned(),
            count => format!("{count} tools"),
        };
        let shown = self.lease.unless_over(|| self.target.replace(made));
        shown.then_some((host, tools))
    }

    /// Refuses all calls, and lists nothing.
    pub(super) fn withdraw_all(&self, why: &str) {
        self.shared_state.withdraw_all(why);
        // If no new host can be built, the current one stays but refuses all calls.
        match self.target.empty().or_else(|_error| self.target.bare()) {
            Ok(made) => self.target.replace(made),
            Err(error) => tracing::warn!(error.message, "what is refused is listed still"),
        }
    }

    /// Waits for the next scan or a reload. Returns `false` if the watch is stopped, or if the
    /// runtime of `expiring` has shut down.
    ///
    /// # Panics
    /// If the task `expiring` panicked.
    pub(super) fn pause(&self, timer: &Runtime, expiring: &mut JoinHandle<()>) -> bool {
        let control = &self.control;
        timer.block_on(async {
            tokio::select! {
                () = control.stop.cancelled() => false,
                expired = expiring => match expired {
                    Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
                    _ => false,
                },
                () = control.reload.asked() => true,
                () = tokio::time::sleep(SCAN_INTERVAL) => true,
            }
        })
    }
}

/// The lease since the latest verification.
#[derive(Debug)]
pub(super) struct ServingLease {
    duration: Duration,
    state: Mutex<LeaseState>,
}

#[derive(Debug)]
struct LeaseState {
    verified: Instant,
    /// Whether everything was withdrawn since the latest verification.
    over: bool,
}

impl ServingLease {
    /// A lease of this duration. It starts at `verified`, the start of the latest verification.
    pub(super) fn new(verified: Instant, duration: Duration) -> Self {
        Self {
            duration,
            state: Mutex::new(LeaseState {
                verified,
                over: false,
            }),
        }
    }

    /// Renews the lease as of `verified`, the start of the latest verification. Returns whether
    /// everything had been withdrawn, or `None` if that verification took longer than the lease.
    pub(super) fn renew(&self, verified: Instant) -> Option<bool> {
        let mut state = lock(&self.state);
        if verified.elapsed() >= self.duration {
            return None;
        }
        state.verified = verified;
        Some(std::mem::take(&mut state.over))
    }

    /// Whether the lease has ended.
    pub(super) fn is_over(&self) -> bool {
        lock(&self.state).over
    }

    /// Runs `work` under the lock of the lease, unless the lease has ended. Returns whether it ran.
    pub(super) fn unless_over(&self, work: impl FnOnce()) -> bool {
        let state = lock(&self.state);
        if !state.over {
            work();
        }
        !state.over
    }

    /// Calls `withdraw` once each time the lease ends. Checks at this interval, and does not wait
    /// for verification.
    pub(super) async fn watch(&self, interval: Duration, withdraw: impl Fn()) {
        loop {
            tokio::time::sleep(interval).await;
            let mut state = lock(&self.state);
            if !state.over && state.verified.elapsed() >= self.duration {
                state.over = true;
                withdraw();
            }
        }
    }
}

/// Controls a [`BundleWatch`](super::BundleWatch). Clones control the same watch.
#[derive(Debug, Clone, Default)]
pub struct Control {
    /// Cancelled to stop the watch. The watch cancels it as well if it can't continue.
    pub stop: CancellationToken,
    /// Requests a reload of the configuration.
    pub reload: Arc<ReloadRequest>,
}

/// A request to reload the configuration.
#[derive(Debug, Default)]
pub struct ReloadRequest {
    asked: AtomicBool,
    notify: Notify,
}

impl ReloadRequest {
    /// Makes the request.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Release);
        self.notify.notify_one();
    }

    /// Whether a request was made since the last call.
    pub(super) fn take(&self) -> bool {
        self.asked.swap(false, Ordering::AcqRel)
    }

    /// Waits for a request.
    pub(super) async fn asked(&self) {
        self.notify.notified().await;
    }
}

/// Builds a service from bundles and serves it. Implemented for `LiveHost` and `toolward serve`.
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use toolward_host::Host;
/// use toolward_operator::Error;
/// use toolward_operator::installed::LoadedBundles;
/// use toolward_operator::granted::Granted;
/// use toolward_operator::reload::ReloadTarget;
///
/// /// Serves a plain host.
/// struct Current(Mutex<Host>);
///
/// impl ReloadTarget for Current {
///     type Made = Host;
///
///     fn make(&self, loaded: &LoadedBundles, granted: &Arc<Granted>) -> Result<Host, Error> {
///         let builder = Host::builder().policy(granted.policy.clone());
///         let builder = builder.withheld(loaded.withheld.iter().cloned());
///         let contents = loaded.contents.iter().cloned();
///         let builder = contents.fold(builder, |one, content| one.bundle(content));
///         Ok(builder.build()?)
///     }
///
///     fn empty(&self) -> Result<Host, Error> {
///         Ok(Host::builder().build()?)
///     }
///
///     fn host(&self, made: &Host) -> Host {
///         made.clone()
///     }
///
///     fn replace(&self, made: Host) {
///         *self.0.lock().unwrap_or_else(|broken| broken.into_inner()) = made;
///     }
/// }
/// ```
pub trait ReloadTarget: Send + Sync + 'static {
    /// The service that is built from bundles.
    type Made;

    /// Builds the service from these bundles, with the operator's grants.
    ///
    /// # Errors
    /// If it can't be built. The previous service stays, without the withdrawn tools.
    fn make(&self, loaded: &LoadedBundles, granted: &Arc<Granted>) -> Result<Self::Made>;

    /// Builds the service without bundles. The tools that were served before may be passed as
    /// [withheld](toolward_host::HostBuilder::withheld).
    ///
    /// # Errors
    /// If even that can't be built. Calls are refused nevertheless.
    fn empty(&self) -> Result<Self::Made>;

    /// Builds the service without bundles from the current host, whose calls were withdrawn. This
    /// is the last resort if no other host can be built.
    ///
    /// # Errors
    /// If even that can't be built.
    fn bare(&self) -> Result<Self::Made> {
        self.empty()
    }

    /// The host of the service.
    fn host(&self, made: &Self::Made) -> Host;

    /// The number of its tools.
    fn tool_count(&self, made: &Self::Made) -> usize {
        self.host(made).tools().count()
    }

    /// Serves `made` instead of the previous service.
    fn replace(&self, made: Self::Made);

    /// Called after changed bundles are served.
    fn served(&self, report: &dyn Report) {
        let _ = report;
    }
}

/// Runs `work`. If it fails or panics, withdraws everything and stops the server, since nothing may
/// be served without a watch.
pub(super) fn guarded(
    shared_state: &SharedState,
    stop: &CancellationToken,
    work: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let fault = |_panic| {
        let message =
            "the server stopped: a fault of its own ended its looking for revoked bundles";
        Err(Error::failed(Code::WatchEnded, message)
            .hint("start it again, and report what it wrote of the panic"))
    };
    let worked = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(fault);
    worked.inspect_err(|error| {
        tracing::error!(%error, "looking for revoked bundles ended: none is served");
        shared_state.withdraw_all("the server no longer sees whether it is revoked");
        stop.cancel();
    })
}

/// The thread that follows changes.
#[derive(Debug)]
pub struct WatchThread(pub(super) mpsc::Receiver<Result<()>>);

impl WatchThread {
    /// Waits for the thread to end, for at most `longest`, since it may be waiting for another
    /// process's lock.
    ///
    /// # Errors
    /// If it ended before it was stopped.
    pub fn ended(&self, longest: Duration) -> Result<()> {
        self.0.recv_timeout(longest).unwrap_or(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const LEASE: Duration = Duration::from_millis(200);

    /// How often `withdraw` is called within three times the lease.
    fn taken_back(lease: &ServingLease) -> usize {
        let count = AtomicUsize::new(0);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(async {
            let watch = lease.watch(Duration::from_millis(5), || {
                count.fetch_add(1, Ordering::Relaxed);
            });
            let _ = tokio::time::timeout(LEASE * 3, watch).await;
        });
        count.into_inner()
    }

    #[test]
    fn all_is_taken_back_once_when_nothing_is_verified_in_time_and_nothing_of_it_served_after() {
        let lease = ServingLease::new(Instant::now(), LEASE);
        assert!(lease.unless_over(|| ()));
        assert_eq!(taken_back(&lease), 1);
        assert!(lease.is_over());
        assert!(!lease.unless_over(|| panic!("it is over")));
        // The next renewal reports this once.
        assert_eq!(lease.renew(Instant::now()), Some(true));
        assert!(lease.unless_over(|| ()));
        assert_eq!(lease.renew(Instant::now()), Some(false));
        assert_eq!(taken_back(&lease), 1);
    }

    #[test]
    fn what_took_too_long_to_verify_is_not_believed() {
        let lease = ServingLease::new(Instant::now(), LEASE);
        let began = Instant::now();
        std::thread::sleep(LEASE);
        assert_eq!(lease.renew(began), None);
        assert_eq!(taken_back(&lease), 1);
        assert_eq!(lease.renew(began), None);
        assert!(lease.is_over());
    }

    #[test]
    fn what_is_verified_in_time_is_not_taken_back() {
        let lease = ServingLease::new(Instant::now(), Duration::from_secs(3600));
        assert_eq!(taken_back(&lease), 0);
        assert_eq!(lease.renew(Instant::now()), Some(false));
    }

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
