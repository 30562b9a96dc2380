//! Looks for what changed while tools are served: bundles installed, removed,
//! revoked or expired, and directories under work that were edited.

mod belief;
mod configuration;
mod looking;
mod verifying;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolward_bundle::content::Content;
use toolward_host::{Continuity, Host};
use toolward_mcp::{Service, Surface};
use toolward_policy::Policy;
use toolward_signing::Digest;
use toolward_signing::verify::{Bundle, Verified};

use super::signals::Reload;
use super::{prepare, tools, warn_of_names};
use crate::commands::call::Source;
use crate::config::Granted;
use crate::environment::{Colours, Environment};
use crate::failure::{Exit, Failure};
use crate::output::Output;

use belief::Belief;
pub(super) use configuration::Configuration;
pub(super) use looking::{Looking, Seen};
use verifying::{Held, Verifying};

/// How often it looks.
const PAUSE: Duration = Duration::from_secs(1);
/// How often everything is verified again, changed or not.
const AGAIN: Duration = Duration::from_secs(300);
/// How often that is tried where it fails.
const RETRY: Duration = Duration::from_secs(60);
/// How long after it was verified something is served at most. After that nothing
/// is.
const BELIEVED: Duration = Duration::from_secs(360);

/// What is served, and what of it may change.
pub(super) struct Watch<'a> {
    looking: Looking<'a>,
    verifying: Verifying<'a>,
    configuration: Configuration<'a>,
    seen: Seen,
    contents: Vec<Content>,
    /// When what is served is to be verified again though nothing changes.
    ends: Option<SystemTime>,
}

/// Makes what clients see of bundles, under what the operator grants.
pub(super) type Remake =
    Box<dyn Fn(&[Content], &Arc<Granted>) -> Result<Surface, Failure> + Send + Sync>;

/// Where what changed is served.
pub(super) struct Serving {
    pub(super) service: Service,
    pub(super) continuity: Continuity,
    pub(super) remake: Remake,
    /// Where drivers are prepared.
    pub(super) runtime: Handle,
    pub(super) json: bool,
    pub(super) stop: CancellationToken,
    pub(super) reload: Arc<Reload>,
    pub(super) belief: Believed,
}

/// How long what was verified is served.
pub(super) struct Believed(Belief);

impl Believed {
    /// What was verified from this moment on, as long as it is believed.
    pub(super) fn since(verified: Instant) -> Self {
        Self(Belief::new(verified, BELIEVED))
    }
}

impl Serving {
    /// Takes everything back when nothing was verified for too long, whatever the
    /// thread that verifies waits for. It never ends by itself.
    pub(super) async fn doubt(&self) {
        let take_back = || {
            self.take_all_back("it could not be verified again for six minutes");
            Output::new(self.json, Colours::default()).warning(
                "the bundles could not be verified again for six minutes, and none is served",
            );
        };
        self.belief.0.watch(PAUSE, take_back).await;
    }

    /// Shows this, unless all was taken back by now.
    fn show(&self, surface: Surface) -> bool {
        self.belief.0.unless_over(|| self.service.replace(surface))
    }

    /// Refuses all that is served, and shows none of it.
    fn take_all_back(&self, why: &str) {
        self.continuity.withdraw_all(why);
        // Where there is no room for another host, the one there is has to do.
        let bare = |_failure| self.without_documents();
        match nothing().or_else(bare) {
            Ok(surface) => self.service.replace(surface),
            Err(failure) => tracing::warn!(failure.message, "what is refused is listed still"),
        }
    }

    fn without_documents(&self) -> Result<Surface, Failure> {
        let host = self.service.surface().host().clone();
        Ok(Surface::new(host, &[], &Policy::empty(), usize::MAX)?)
    }

    /// Waits until it is time to look again, or to reload. False if it is time to end.
    fn pause(&self) -> bool {
        self.runtime.block_on(async {
            tokio::select! {
                () = self.stop.cancelled() => false,
                () = self.reload.asked() => true,
                () = tokio::time::sleep(PAUSE) => true,
            }
        })
    }
}

/// What came of a change.
enum Served {
    AsBefore,
    /// By a new host.
    Anew(Host),
    /// Without what is new, or nothing at all.
    Partly,
}

impl<'a> Watch<'a> {
    /// What there is to watch when these contents, read after it was `seen`, are
    /// served.
    pub(super) fn new(
        source: &'a Source,
        environment: &'a Environment,
        configuration: Configuration<'a>,
        (looking, seen): (Looking<'a>, Seen),
        named: Vec<Verified<Bundle>>,
        contents: Vec<Content>,
        ends: Option<SystemTime>,
    ) -> Self {
        let verifying = Verifying {
            source,
            environment,
            named,
        };
        Self {
            ends,
            looking,
            verifying,
            configuration,
            seen,
            contents,
        }
    }

    /// The places where it looks.
    pub(super) fn looking(&self) -> &Looking<'a> {
        &self.looking
    }

    /// Looks until told to stop, and has what changed served anew. Serving ends if
    /// nobody looks any more.
    ///
    /// # Errors
    ///
    /// When looking ended before it was told to.
    pub(super) fn run(
        mut self,
        serving: &Serving,
        preparing: JoinHandle<()>,
    ) -> Result<(), Failure> {
        guarded(&serving.continuity, &serving.stop, || {
            self.look_on(serving, preparing);
        })
    }

    fn look_on(&mut self, serving: &Serving, mut preparing: JoinHandle<()>) {
        let belief = &serving.belief.0;
        let mut next = after(Instant::now(), AGAIN);
        let mut failing = false;
        // One for as long as nothing changes: nothing is said twice.
        let mut output = Output::new(serving.json, Colours::default());
        while serving.pause() {
            if serving.reload.take()
                && let Some(host) = self.reload(serving)
            {
                preparing.abort();
                preparing = serving.runtime.spawn(prepare(host));
            }
            let now = self.looking.look(&self.seen, &output);
            let ended = self.ends.take_if(|ends| SystemTime::now() >= *ends);
            if now == self.seen && Instant::now() < next && ended.is_none() {
                continue;
            }
            if now != self.seen {
                output = Output::new(serving.json, Colours::default());
            }
            self.seen = now;
            let tried = Instant::now();
            let held = self.verifying.again(&self.looking, &output);
            match held.map(|held| (held, belief.renew(tried))) {
                Ok((held, Some(all_was_taken_back))) => {
                    if all_was_taken_back {
                        self.contents.clear();
                    }
                    if std::mem::take(&mut failing) {
                        output = Output::new(serving.json, Colours::default());
                    }
                    let served = self.serve(held, serving, &output);
                    next = match served {
                        Served::Partly => after(tried, RETRY),
                        _ => after(tried, AGAIN),
                    };
                    if let Served::Anew(host) = served {
                        preparing.abort();
                        preparing = serving.runtime.spawn(prepare(host));
                    }
                }
                Ok((_, None)) => {
                    failing = true;
                    next = after(Instant::now(), RETRY);
                    output.warning(
                        "to verify the bundles again took more than six minutes, and none is served",
                    );
                }
                Err(failure) => {
                    failing = true;
                    next = after(tried, RETRY);
                    output.warning(format!(
                        "the bundles can't be verified again, and {}: {} ({}){}",
                        if belief.is_over() {
                            "none is served"
                        } else {
                            "what was served is"
                        },
                        failure.message,
                        failure.code,
                        self.verifying.hint(&failure)
                    ));
                }
            }
        }
    }

    /// Reads the configuration again, and serves what it gives, by the host that comes
    /// back, if that is no more than before. It says what came of it.
    fn reload(&mut self, serving: &Serving) -> Option<Host> {
        let output = Output::new(serving.json, Colours::default());
        let kept = |failure: Failure| {
            let hints = failure.hints.iter().map(|hint| format!("; {hint}"));
            let hints: String = hints.collect();
            output.warning(format!(
                "SIGHUP: the configuration stays as it was: {} ({}){hints}",
                failure.message, failure.code
            ));
        };
        let granted = match self.configuration.again() {
            Ok(Some(granted)) => Arc::new(granted),
            Ok(None) => {
                output.note("SIGHUP: the configuration has not changed");
                return None;
            }
            Err(failure) => {
                kept(failure);
                return None;
            }
        };
        // Calls that wait under the policy before must not go on under it.
        serving.continuity.part();
        let surface = match (serving.remake)(&self.contents, &granted) {
            Ok(surface) => surface,
            Err(failure) => {
                kept(failure);
                return None;
            }
        };
        self.configuration.granted = granted;
        let (host, count) = (surface.host().clone(), tools(&surface));
        let shown = serving.show(surface);
        let why = "the operator's policy gives less than when this call began";
        serving.continuity.withdraw_earlier(why);
        output.note(format!(
            "SIGHUP: the policy gives no more than before, and holds: serving {}",
            if shown { &count } else { "nothing" }
        ));
        shown.then_some(host)
    }

    /// Serves what holds now.
    fn serve(&mut self, held: Held, serving: &Serving, output: &Output) -> Served {
        self.ends = held.ends;
        let contents = held.contents;
        let (before, now) = (digests(&self.contents), digests(&contents));
        if before == now {
            return Served::AsBefore;
        }
        // What is gone is gone at once, whether or not the rest can be served.
        let gone: Vec<_> = before.iter().filter(|one| !now.contains(one)).collect();
        for digest in &gone {
            let why = "it was removed, replaced or revoked, or has expired";
            serving.continuity.withdraw(&digest.to_string(), why);
        }
        let failure = match (serving.remake)(&contents, &self.configuration.granted) {
            Ok(surface) => {
                let (host, count) = (surface.host().clone(), tools(&surface));
                if !serving.show(surface) {
                    return Served::Partly;
                }
                self.contents = contents;
                output.note(format!("serving {count} from now on"));
                warn_of_names(&serving.service.surface(), output);
                return Served::Anew(host);
            }
            Err(failure) => failure,
        };
        if !gone.is_empty() {
            self.leave_out(&now, serving, output);
        }
        output.warning(format!(
            "what changed is not served: {} ({})",
            failure.message, failure.code
        ));
        Served::Partly
    }

    /// Serves what was served and still holds; or, if that can't be had either,
    /// nothing: what was taken back is not even shown.
    fn leave_out(&mut self, now: &[Digest], serving: &Serving, output: &Output) {
        self.contents
            .retain(|content| now.contains(&content.manifest_digest));
        let kept =
            (serving.remake)(&self.contents, &self.configuration.granted).or_else(|_failure| {
                self.contents.clear();
                nothing()
            });
        match kept {
            // Whoever took all back meanwhile shows nothing.
            Ok(surface) => {
                serving.show(surface);
            }
            Err(failure) => {
                output.warning(format!("{} ({})", failure.message, failure.code));
                serving.take_all_back("the server could not leave out what was taken back");
            }
        }
    }
}

fn after(moment: Instant, time: Duration) -> Instant {
    moment.checked_add(time).unwrap_or(moment)
}

/// Takes everything back, and has the server stopped, if `work` panics: what nobody
/// looks after is not served.
fn guarded(
    continuity: &Continuity,
    stop: &CancellationToken,
    work: impl FnOnce(),
) -> Result<(), Failure> {
    let worked = std::panic::catch_unwind(AssertUnwindSafe(work));
    worked.map_err(|_panic| {
        continuity.withdraw_all("the server no longer sees whether it is revoked");
        stop.cancel();
        Failure::new(
            Exit::Failed,
            "watch-ended",
            "the server stopped: a fault of its own ended its looking for revoked bundles",
        )
        .hint("start it again, and report what it wrote of the panic")
    })
}

fn digests(contents: &[Content]) -> Vec<Digest> {
    let digests = contents.iter();
    digests.map(|content| content.manifest_digest).collect()
}

/// A surface without anything.
fn nothing() -> Result<Surface, Failure> {
    let host = Host::builder().defer_engine().build()?;
    Ok(Surface::new(host, &[], &Policy::empty(), usize::MAX)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_what_looks_stops_the_server_and_says_so() {
        let stop = CancellationToken::new();
        let continuity = Continuity::new();
        guarded(&continuity, &stop, || {}).unwrap();
        assert!(!stop.is_cancelled());
        let failure = guarded(&continuity, &stop, || panic!("in a test")).unwrap_err();
        assert_eq!(failure.code, "watch-ended");
        assert!(stop.is_cancelled());
    }
}
