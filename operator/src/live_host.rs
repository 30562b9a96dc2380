//! A host that follows changes of installed bundles and of trust.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use tokio::runtime::Handle;
use toolward_host::{Host, HostBuilder, Reply, Request};

use crate::granted::Granted;
use crate::host_setup::opens_buckets;
use crate::installed::LoadedBundles;
use crate::reload::{BundleWatch, Control, ReloadTarget, WatchThread, prepare};
use crate::{Error, Operator, Progress, Report, Result, Silent};

/// Makes a host with the application's settings.
type MakeHost = dyn Fn(&LoadedBundles, &Granted) -> Result<Host> + Send + Sync;

/// A host with the tools that an [`Operator`] currently serves.
///
/// It switches to a new host within a second or two after a bundle is installed, removed or
/// revoked, or expires. Calls to tools that are gone end with `toolward:withdrawn`. Once it is
/// dropped, it no longer follows changes.
///
/// * It needs a tokio runtime with timer and I/O. [`LiveHost::start`] fails outside of one. If that
///   runtime shuts down before the `LiveHost` is dropped, everything is withdrawn as soon as a
///   running scan for changes has ended.
/// * Components are compiled in this process, without a deadline, unless `finish` gives the builder
///   a [`Broker`](toolward_host::Broker).
/// * The process is not confined: code that escapes the sandbox has the rights of the process. See
///   [`toolward_host::confine`].
/// * All bundles are verified again every five minutes. If that fails for six minutes, nothing is
///   served until verification succeeds.
/// * Warnings and notes go to `tracing`.
///
/// ```no_run
/// use toolward_host::Request;
/// use toolward_operator::{LiveHost, Operator};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let host = LiveHost::start(Operator::of_process(), |builder| builder)?;
/// let reply = host.call(Request::new("text.stats", r#"{"text": "Hello"}"#)).await;
/// println!("{}", reply.envelope());
/// # Ok(())
/// # }
/// ```
pub struct LiveHost {
    current: Arc<RwLock<Host>>,
    control: Control,
}

impl fmt::Debug for LiveHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveHost").finish_non_exhaustive()
    }
}

impl LiveHost {
    /// Loads the current bundles and follows changes. `finish` adds the application's approver,
    /// limits or broker to each host. Blocks while it reads files.
    ///
    /// ```no_run
    /// use toolward_operator::{LiveHost, Operator};
    ///
    /// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut limits = toolward_host::Limits::default();
    /// limits.memory_bytes.maximum = 32 << 20;
    /// let start = move || {
    ///     LiveHost::start(Operator::of_process(), move |builder| builder.limits(limits.clone()))
    /// };
    /// let host = tokio::task::spawn_blocking(start).await??;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `bundle-missing` if no bundle is installed or named; `runtime-unavailable` outside of a
    /// tokio runtime; otherwise if the configuration, the store or a named bundle can't be used.
    pub fn start(
        operator: Operator,
        finish: impl Fn(HostBuilder) -> HostBuilder + Send + Sync + 'static,
    ) -> Result<Self> {
        Self::following(operator, finish).map(|(live, _)| live)
    }

    fn following(
        operator: Operator,
        finish: impl Fn(HostBuilder) -> HostBuilder + Send + Sync + 'static,
    ) -> Result<(Self, WatchThread)> {
        let runtime = Handle::try_current().map_err(Error::runtime)?;
        let environment = operator.environment.reporting(Logged);
        let operator = Arc::new(Operator {
            environment: environment.clone(),
            ..operator
        });
        let shared_state = operator.configured().shared_state(None)?;
        let watch = BundleWatch::load(Arc::clone(&operator), None)?;
        let state = shared_state.clone();
        let make: Box<MakeHost> = Box::new(move |loaded, granted| {
            let buckets = opens_buckets(&loaded.contents, &granted.policy);
            let builder = operator.host_builder(loaded.contents.clone(), granted, buckets)?;
            let builder = finish(builder.withheld(loaded.withheld.iter().cloned()));
            Ok(builder.shared_state(&state).build()?)
        });
        let host = make(watch.loaded(), watch.granted())?;
        let current = Arc::new(RwLock::new(host.clone()));
        let target = CurrentHost {
            make,
            current: Arc::clone(&current),
        };
        let control = Control::default();
        let rounds = Box::new(move || environment.clone());
        let preparing = runtime.spawn(prepare(host));
        let following = watch.follow(
            target,
            shared_state,
            control.clone(),
            rounds,
            &runtime,
            preparing,
        )?;
        Ok((Self { current, control }, following))
    }

    /// Returns the current host. Don't store it, since later changes switch to another host.
    ///
    /// ```no_run
    /// # fn show(live: &toolward_operator::LiveHost) {
    /// for tool in live.host().tools() {
    ///     println!("{} by {}", tool.contract.id, tool.publisher);
    /// }
    /// # }
    /// ```
    pub fn host(&self) -> Host {
        read(&self.current)
    }

    /// Calls a tool of the current host.
    ///
    /// ```no_run
    /// use toolward_host::Request;
    ///
    /// # async fn call(live: &toolward_operator::LiveHost) {
    /// let reply = live.call(Request::new("text.stats", r#"{"text": "Hello"}"#)).await;
    /// println!("{}", reply.envelope());
    /// # }
    /// ```
    pub async fn call(&self, request: Request) -> Reply {
        self.host().call(request).await
    }

    /// Reads the configuration again, as SIGHUP does for `toolward serve`. A policy that grants no
    /// more than before takes effect. A wider policy is refused with a warning.
    ///
    /// ```no_run
    /// # fn change(live: &toolward_operator::LiveHost, policy: &str) -> std::io::Result<()> {
    /// std::fs::write("/etc/notes/toolward.toml", policy)?;
    /// live.reload();
    /// # Ok(())
    /// # }
    /// ```
    pub fn reload(&self) {
        self.control.reload.ask();
    }
}

impl Drop for LiveHost {
    fn drop(&mut self) {
        self.control.stop.cancel();
    }
}

fn read(current: &RwLock<Host>) -> Host {
    let current = current.read();
    current.unwrap_or_else(PoisonError::into_inner).clone()
}

struct CurrentHost {
    make: Box<MakeHost>,
    current: Arc<RwLock<Host>>,
}

impl ReloadTarget for CurrentHost {
    type Made = Host;

    fn make(&self, loaded: &LoadedBundles, granted: &Arc<Granted>) -> Result<Host> {
        (self.make)(loaded, granted)
    }

    fn empty(&self) -> Result<Host> {
        let builder = Host::builder().withheld(read(&self.current).withheld());
        Ok(builder.defer_engine().build()?)
    }

    fn host(&self, made: &Host) -> Host {
        made.clone()
    }

    fn replace(&self, made: Host) {
        let current = self.current.write();
        *current.unwrap_or_else(PoisonError::into_inner) = made;
    }
}

/// Reports to `tracing`.
#[derive(Debug)]
struct Logged;

impl Report for Logged {
    fn warning(&self, message: &str) {
        tracing::warn!("{message}");
    }

    fn note(&self, message: &str) {
        tracing::info!("{message}");
    }

    fn begin(&self, what: &str) -> Box<dyn Progress> {
        Silent.begin(what)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::bundles::BundleSource;
    use crate::trust::Trust;

    /// Longer than a watch takes to end.
    const LONGEST: Duration = Duration::from_secs(60);

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Runtime::new().unwrap()
    }

    fn text_stats() -> Operator {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
        Operator {
            source: BundleSource {
                named: vec![examples.join("bundles/text-stats.toolbundle")],
                trust: Trust::new(vec![examples.join("keys/example.pub.pem")], None),
                ..BundleSource::default()
            },
            ..Operator::default()
        }
    }

    /// A host on a separate runtime.
    fn followed() -> (tokio::runtime::Runtime, LiveHost, WatchThread) {
        let runtime = runtime();
        let entered = runtime.enter();
        let (live, following) = LiveHost::following(text_stats(), |builder| builder).unwrap();
        drop(entered);
        (runtime, live, following)
    }

    #[test]
    fn a_host_whose_runtime_shut_down_serves_nothing() {
        let (first, live, following) = followed();
        first.shutdown_background();

        let ended = following.ended(LONGEST).unwrap_err();
        assert_eq!(ended.code, "watch-ended");
        assert!(ended.message.contains("the runtime shut down"), "{ended}");
        let call = live.call(Request::new("text.stats", "{}"));
        let refused = runtime().block_on(call).result.unwrap_err();
        assert_eq!(refused.code.as_str(), "toolward:withdrawn");
    }

    #[test]
    fn a_host_that_is_dropped_before_its_runtime_ends_its_watch_well() {
        let (runtime, live, following) = followed();
        drop(live);
        runtime.shutdown_background();
        let asked = Instant::now();
        following.ended(LONGEST).unwrap();
        assert!(asked.elapsed() < LONGEST, "it goes on");
    }
}
