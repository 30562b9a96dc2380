//! The features of bundles that MCP clients see, kept up to date. Also the cassette that may answer
//! calls instead of drivers.

use std::sync::Arc;

use toolward_host::{Broker, Host, HostBuilder, SharedState, Tape};
use toolward_ledger::checkpoint::Verifier;
use toolward_mcp::{ServerFeatures, Service};
use toolward_operator::installed::LoadedBundles;
use toolward_operator::recorder::{CallRecorder, RecordedConfinement};
use toolward_operator::reload::ReloadTarget;
use toolward_operator::replay::{self, CassetteSource};
use toolward_operator::{Operator, Report};
use toolward_policy::Policy;

#[cfg(feature = "adapters")]
use super::events::EventFlags;
use super::http::HttpFlags;
#[cfg(feature = "metrics")]
use super::metrics::Metrics;
use crate::commands::ledger::verify::vkey;
use crate::helper::{self, Programs};
use crate::prelude::*;

/// Makes the features that clients see.
#[derive(Clone)]
pub(super) struct FeaturesBuilder {
    pub(super) operator: Arc<Operator>,
    pub(super) http: Arc<HttpFlags>,
    /// Counts calls, if metrics were requested.
    #[cfg(feature = "metrics")]
    pub(super) metrics: Option<Arc<Metrics>>,
    #[cfg(feature = "adapters")]
    pub(super) events: Arc<EventFlags>,
    pub(super) broker: Broker,
    /// Runs the programs that the policy named when the server started.
    pub(super) programs: Programs,
    /// Records calls, unless the configuration turns the ledger off.
    pub(super) recorder: Option<CallRecorder>,
    pub(super) confinement: RecordedConfinement,
    pub(super) shared_state: SharedState,
    /// The cassette that answers calls instead of drivers.
    pub(super) replaying: Option<Replaying>,
    /// If there are more tools than this, clients search for tools instead of listing all.
    pub(super) defer_above: usize,
}

impl FeaturesBuilder {
    /// Makes the features of these bundles. `buckets` states whether buckets must be opened, if
    /// that is known.
    pub(super) fn make(
        &self,
        loaded: &LoadedBundles,
        granted: &Granted,
        buckets: Option<bool>,
    ) -> Result<ServerFeatures> {
        let contents = &loaded.contents;
        let buckets = buckets.unwrap_or_else(|| opens_buckets(contents, &granted.policy));
        let builder = (self.operator).host_builder(contents.clone(), granted, buckets)?;
        let builder = builder.withheld(loaded.withheld.iter().cloned());
        let builder = self.programs.attach(builder);
        let builder = Replaying::given(self.replaying.as_ref(), builder);
        let builder = helper::recorded(builder, self.recorder.as_ref(), granted);
        let builder = self.http.protect(builder);
        #[cfg(feature = "adapters")]
        let builder = self.events.protect(builder);
        let builder = builder.shared_state(&self.shared_state);
        #[cfg(feature = "metrics")]
        let (builder, counting) = Metrics::given(self.metrics.as_deref(), builder);
        // The handshake needs no engine.
        let host = self.operator.build(builder.defer_engine(), &self.broker)?;
        #[cfg(feature = "metrics")]
        if let Some(counting) = counting {
            counting.serves(&host);
        }
        features(host, contents, &granted.policy, self.defer_above)
    }
}

/// A service whose features follow changes.
pub(super) struct ServedFeatures {
    pub(super) builder: FeaturesBuilder,
    pub(super) service: Service,
    /// Whether buckets were opened. A confined process can't open them later unless it kept access
    /// to them.
    pub(super) buckets: bool,
}

impl ReloadTarget for ServedFeatures {
    type Made = ServerFeatures;

    fn make(&self, loaded: &LoadedBundles, granted: &Arc<Granted>) -> Result<ServerFeatures> {
        let made = self.builder.make(loaded, granted, Some(self.buckets))?;
        if let Some(recorder) = &self.builder.recorder {
            recorder.serves(&loaded.contents, granted, self.builder.confinement);
        }
        Ok(made)
    }

    fn empty(&self) -> Result<ServerFeatures> {
        let builder = Host::builder().withheld(self.service.features().host().withheld());
        #[cfg(feature = "metrics")]
        let (builder, _) = Metrics::given(self.builder.metrics.as_deref(), builder);
        nothing(builder.defer_engine().build()?)
    }

    fn bare(&self) -> Result<ServerFeatures> {
        nothing(self.service.features().host().clone())
    }

    fn host(&self, made: &ServerFeatures) -> Host {
        made.host().clone()
    }

    fn tool_count(&self, made: &ServerFeatures) -> usize {
        made.tool_count()
    }

    fn replace(&self, made: ServerFeatures) {
        self.service.replace(made);
    }

    fn served(&self, report: &dyn Report) {
        warn_of_names(&self.service.features(), report);
    }
}

/// Features without tools, prompts and resources.
fn nothing(host: Host) -> Result<ServerFeatures> {
    features(host, &[], &Policy::empty(), usize::MAX)
}

fn features(
    host: Host,
    contents: &[Content],
    policy: &Policy,
    defer_above: usize,
) -> Result<ServerFeatures> {
    let features = ServerFeatures::new(host, contents, policy, defer_above);
    features.map_err(|error| Failure::of(Kind::Usage, error))
}

/// Reports the problems with the names that tools ask for.
pub(super) fn warn_of_names(features: &ServerFeatures, report: &dyn Report) {
    for problem in features.name_problems() {
        let (code, hint) = (problem.code(), problem.hint().unwrap_or_default());
        report.warning(&format!("{problem} ({code}); {hint}"));
    }
}

/// Warns once about each lasting change that a command has made. The person who confirmed the
/// change may not be the one who reads this.
pub(super) fn warn_of_changes(context: &Context) {
    let Ok(changes) = LastingChanges::of(context) else {
        return;
    };
    match changes.unserved() {
        Ok(changes) => changes.iter().for_each(|one| context.warning(one)),
        Err(failure) => context
            .report
            .warning_of("what commands have changed is not known", &failure),
    }
}

/// Returns a text with the number of served tools and the ids of blocked tools.
pub(super) fn welcome(features: &ServerFeatures, replaying: Option<&Replaying>) -> String {
    let mut text = format!("serving {}", counted(features.tool_count(), "tool"));
    if let Some(replaying) = replaying {
        let calls = counted(replaying.tape.left(), "recorded call");
        text.push_str(&format!(" from {calls}; nothing runs"));
    }
    let blocked: Vec<&str> = features.blocked().map(|(_, id)| id).collect();
    if !blocked.is_empty() {
        text.push_str("; blocked: ");
        text.push_str(&blocked.join(", "));
        text.push_str(" (see `toolward show TOOL --policy`)");
    }
    text
}

#[derive(Debug, Args)]
pub(crate) struct ReplayFlags {
    /// Answer calls from this cassette (`ledger export --cassette`)
    ///
    /// No driver runs, and a call that the cassette does not contain fails.
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,

    /// If no recorded call has the input, answer with the tool's next recorded call
    ///
    /// The answer states what differs.
    #[arg(long, hide_short_help = true, requires = "replay")]
    loose: bool,

    /// The key of the ledger that the cassette is from, as `ledger info` shows it
    ///
    /// [default: the key of this installation's ledger]
    #[arg(long, hide_short_help = true, value_parser = boxed, value_name = "VKEY", requires = "replay")]
    cassette_key: Option<Box<Verifier>>,

    /// Accept any cassette, without checking who recorded it
    #[arg(long, hide_short_help = true, requires = "replay", conflicts_with_all = ["cassette_key", "http"])]
    unverified: bool,
}

fn boxed(text: &str) -> Result<Box<Verifier>, String> {
    vkey(text).map(Box::new)
}

/// The cassette that answers calls instead of drivers.
#[derive(Clone)]
pub(super) struct Replaying {
    tape: Tape,
    path: PathBuf,
}

impl ReplayFlags {
    pub(super) fn open(self, operator: &Operator, over_http: bool) -> Result<Option<Replaying>> {
        let Some(path) = self.replay else {
            return Ok(None);
        };
        let from = match (self.cassette_key, self.unverified) {
            (Some(key), _) => CassetteSource::Key(key),
            (None, true) => CassetteSource::Unverified,
            (None, false) => CassetteSource::Own,
        };
        let environment = &operator.environment;
        let settings = operator.configured().ledger()?;
        let tape = replay::tape(&path, &from, over_http, &settings, environment)?;
        let tape = if self.loose { tape.loose() } else { tape };
        Ok(Some(Replaying { tape, path }))
    }
}

impl Replaying {
    /// Makes a host answer from the cassette, and keeps guests out of its file.
    pub(super) fn given(this: Option<&Self>, builder: HostBuilder) -> HostBuilder {
        match this {
            Some(this) => builder
                .replaying(&this.tape)
                .protect("a cassette", &this.path),
            None => builder,
        }
    }
}
