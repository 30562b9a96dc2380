//! Counts calls for Prometheus: a [`CallListener`] without locks, and a page of the text format.
//! Nothing is counted by principal, and no text of a caller, a driver or a server is a label: tools
//! are named as in the catalogue.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{Display, Write as _};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde_json::json;
use toolward_contract::driver::DriverKind;
use toolward_policy::LimitName;
use toolward_support::helper::lock;

use crate::api::facts::{CallFacts, CallListener};
use crate::host::Host;

/// The most tools that are counted separately, over all hosts; calls of further tools count under
/// `other`. Bounds the page, and the memory of a server that loads other bundles again and again.
const MAX_TOOLS: usize = 1000;

/// The label for tools beyond [`MAX_TOOLS`], and for calls in which no tool was found. No tool has
/// this name, since the names of tools have a version.
const OTHER: &str = "other";

/// Upper bounds of the histogram of durations, in microseconds and as labels in seconds.
const BUCKETS: [(u128, &str); 8] = [
    (100, "0.0001"),
    (1_000, "0.001"),
    (10_000, "0.01"),
    (100_000, "0.1"),
    (1_000_000, "1"),
    (10_000_000, "10"),
    (60_000_000, "60"),
    (600_000_000, "600"),
];

/// Counts of the calls of hosts that replace each other. Cheap to clone; clones share the counts.
///
/// ```
/// use toolward_host::Host;
/// use toolward_host::metrics::CallMetrics;
///
/// # fn main() -> Result<(), toolward_host::HostError> {
/// let metrics = CallMetrics::default();
/// let counting = metrics.listener();
/// let host = Host::builder().listener(counting.clone()).build()?;
/// counting.serves(&host);
/// assert!(metrics.page().text().contains("toolward_calls_in_flight 0\n"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct CallMetrics {
    counts: Arc<Counts>,
}

/// A counter for each value of an enumeration. A slot gets its name when it first counts.
#[derive(Debug)]
struct Slots<const N: usize>([(OnceLock<String>, AtomicU64); N]);

impl<const N: usize> Default for Slots<N> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Default::default()))
    }
}

impl<const N: usize> Slots<N> {
    fn add(&self, slot: usize, name: impl FnOnce() -> String, count: u64) {
        if let Some((named, counter)) = self.0.get(slot) {
            named.get_or_init(name);
            counter.fetch_add(count, Ordering::Relaxed);
        }
    }

    fn named(&self) -> impl Iterator<Item = (&str, u64)> {
        let named = self.0.iter();
        named
            .filter_map(|(name, count)| Some((name.get()?.as_str(), count.load(Ordering::Relaxed))))
    }
}

#[derive(Debug, Default)]
struct ToolCounts {
    ok: AtomicU64,
    failed: AtomicU64,
}

/// Counts how calls ended. [`Counts`] has a value of this type for the calls that change something,
/// and one for all other calls.
#[derive(Debug, Default)]
struct EndCounts {
    ok: AtomicU64,
    /// By class.
    failed: Slots<64>,
}

#[derive(Debug, Default)]
struct Counts {
    in_flight: AtomicI64,
    unchanging: EndCounts,
    mutating: EndCounts,
    starts: Slots<{ DriverKind::ALL.len() + 1 }>,
    limits: Slots<{ LimitName::ALL.len() }>,
    violations: Slots<16>,
    approved: AtomicU64,
    not_approved: AtomicU64,
    durations: [AtomicU64; BUCKETS.len()],
    /// All durations, including those above the last bucket.
    all_durations: AtomicU64,
    micros: AtomicU64,
    other: ToolCounts,
    /// Locked when a reload adds tools and when the metrics are read, never by a call.
    tools: Mutex<BTreeMap<String, Arc<ToolCounts>>>,
}

impl Counts {
    fn took(&self, duration: Duration) {
        let micros = duration.as_micros();
        let bucket = BUCKETS.iter().position(|(bound, _)| micros <= *bound);
        if let Some(count) = bucket.and_then(|bucket| self.durations.get(bucket)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let micros = u64::try_from(micros).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
        self.all_durations.fetch_add(1, Ordering::Relaxed);
    }
}

/// Counts the calls of one host.
#[derive(Debug)]
pub struct HostMetrics {
    counts: Arc<Counts>,
    /// By `id@major`.
    tools: OnceLock<HashMap<String, Arc<ToolCounts>>>,
}

impl CallMetrics {
    /// A listener for one host, for [`HostBuilder::listener`](crate::HostBuilder::listener).
    pub fn listener(&self) -> Arc<HostMetrics> {
        Arc::new(HostMetrics {
            counts: self.counts.clone(),
            tools: OnceLock::new(),
        })
    }

    /// A page with the current counts.
    pub fn page(&self) -> MetricsPage {
        let mut page = MetricsPage::default();
        page.calls(&self.counts);
        page
    }
}

impl HostMetrics {
    /// Counts the calls of each tool of this host separately. Call this once the host is built; its
    /// tools don't change afterwards.
    pub fn serves(&self, host: &Host) {
        let mut known = lock(&self.counts.tools);
        let mut own = HashMap::new();
        for tool in host.tools().map(|tool| tool.major_id.to_string()) {
            if known.len() >= MAX_TOOLS && !known.contains_key(&tool) {
                continue;
            }
            let counts = known.entry(tool.clone()).or_default();
            own.insert(tool, counts.clone());
        }
        // A second call changes nothing.
        let _ = self.tools.set(own);
    }
}

impl CallListener for HostMetrics {
    fn began(&self) {
        self.counts.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    fn driver_started(&self, kind: &DriverKind) {
        let (slot, name) = match kind.is_run() {
            true => (*kind as usize, kind.as_str()),
            false => (DriverKind::ALL.len(), OTHER),
        };
        self.counts.starts.add(slot, || name.to_owned(), 1);
    }

    fn finished(&self, call: &CallFacts) {
        let counts = &*self.counts;
        counts.in_flight.fetch_sub(1, Ordering::Relaxed);
        counts.took(call.duration());
        let tools = self.tools.get();
        let tool = tools.and_then(|tools| tools.get(call.tool_id.as_deref()?));
        let tool = tool.map_or(&counts.other, |tool| &**tool);
        let of_kind = match call.mutating {
            false => &counts.unchanging,
            true => &counts.mutating,
        };
        match call.class {
            None => {
                of_kind.ok.fetch_add(1, Ordering::Relaxed);
                tool.ok.fetch_add(1, Ordering::Relaxed);
            }
            Some(class) => {
                let name = || json!(class).as_str().unwrap_or(OTHER).to_owned();
                of_kind.failed.add(class as usize, name, 1);
                tool.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
        if let Some(limit) = call.limit {
            let slot = LimitName::ALL.iter().position(|one| *one == limit);
            let slot = slot.unwrap_or(usize::MAX);
            counts.limits.add(slot, || limit.as_str().to_owned(), 1);
        }
        for (kind, count) in &call.violations_by_kind {
            let name = || kind.as_str().to_owned();
            counts.violations.add(kind.number(), name, *count);
        }
        if let Some(approved) = call.approval {
            let counter = match approved {
                true => &counts.approved,
                false => &counts.not_approved,
            };
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A page of Prometheus's text format, version 0.0.4: `# HELP`, `# TYPE`, and a line for each
/// sample.
#[derive(Debug, Clone, Default)]
pub struct MetricsPage {
    text: String,
}

/// The kind and value of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sample {
    /// A count that only grows.
    Counter(u64),
    /// A value that grows and shrinks.
    Gauge(i64),
}

impl MetricsPage {
    /// The page.
    pub fn text(self) -> String {
        self.text
    }

    /// Adds a metric without labels. `name` must be a metric name of Prometheus
    /// (`[a-zA-Z_:][a-zA-Z0-9_:]*`) that the page does not have yet. `help` must be one line
    /// without a backslash.
    pub fn add(&mut self, name: &str, help: &str, sample: Sample) {
        let (kind, value) = match sample {
            Sample::Counter(count) => ("counter", i128::from(count)),
            Sample::Gauge(value) => ("gauge", i128::from(value)),
        };
        self.head(name, kind, help);
        self.sample(name, &[], value);
    }

    fn calls(&mut self, counts: &Counts) {
        let name = "toolward_calls_total";
        self.head(name, "counter", "Calls that have ended, by class of error.");
        let ends = [("false", &counts.unchanging), ("true", &counts.mutating)];
        for (mutating, ends) in ends {
            self.count(name, &[("class", "ok"), ("mutating", mutating)], &ends.ok);
        }
        for (mutating, ends) in ends {
            for (class, count) in ends.failed.named() {
                self.sample(name, &[("class", class), ("mutating", mutating)], count);
            }
        }
        self.tools(counts);
        let in_flight = Sample::Gauge(counts.in_flight.load(Ordering::Relaxed));
        let help = "Calls that have not ended.";
        self.add("toolward_calls_in_flight", help, in_flight);
        self.durations(counts);
        let name = "toolward_driver_starts_total";
        self.labelled(name, "Starts of drivers.", "kind", counts.starts.named());
        let (name, help) = ("toolward_limits_hit_total", "Calls that ended at a limit.");
        self.labelled(name, help, "limit", counts.limits.named());
        let name = "toolward_violations_total";
        let help = "Attempts of drivers at what they were not granted.";
        self.labelled(name, help, "kind", counts.violations.named());
        let answers = [
            ("approved", &counts.approved),
            ("not_approved", &counts.not_approved),
        ];
        let answers = answers.map(|(answer, count)| (answer, count.load(Ordering::Relaxed)));
        let name = "toolward_approvals_total";
        let help = "Calls about which a person was asked.";
        self.labelled(name, help, "answer", answers.into_iter());
    }

    fn tools(&mut self, counts: &Counts) {
        let name = "toolward_tool_calls_total";
        self.head(name, "counter", "Calls that have ended, by tool.");
        let tools = lock(&counts.tools);
        let tools = tools
            .iter()
            .map(|(tool, counts)| (tool.as_str(), &**counts));
        for (tool, ToolCounts { ok, failed }) in tools.chain([(OTHER, &counts.other)]) {
            self.count(name, &[("tool", tool), ("result", "ok")], ok);
            self.count(name, &[("tool", tool), ("result", "error")], failed);
        }
    }

    fn durations(&mut self, counts: &Counts) {
        let name = "toolward_call_duration_seconds";
        self.head(name, "histogram", "From request to result.");
        let bucket = format!("{name}_bucket");
        let mut all = 0_u64;
        for ((_, bound), count) in BUCKETS.iter().zip(&counts.durations) {
            all = all.saturating_add(count.load(Ordering::Relaxed));
            self.sample(&bucket, &[("le", bound)], all);
        }
        // Calls may have ended while the buckets were read; the total must not be smaller than the
        // buckets' sum.
        let all = all.max(counts.all_durations.load(Ordering::Relaxed));
        self.sample(&bucket, &[("le", "+Inf")], all);
        let micros = counts.micros.load(Ordering::Relaxed);
        let (seconds, rest) = (micros / 1_000_000, micros % 1_000_000);
        self.sample(
            &format!("{name}_sum"),
            &[],
            format_args!("{seconds}.{rest:06}"),
        );
        self.sample(&format!("{name}_count"), &[], all);
    }

    fn labelled<'a>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        samples: impl Iterator<Item = (&'a str, u64)>,
    ) {
        self.head(name, "counter", help);
        for (value, count) in samples {
            self.sample(name, &[(label, value)], count);
        }
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string can't fail, here and below.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn count(&mut self, name: &str, labels: &[(&str, &str)], count: &AtomicU64) {
        self.sample(name, labels, count.load(Ordering::Relaxed));
    }

    /// Writes one sample. Label values are names of this program and ids of tools; escaping does
    /// not change them.
    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.text.push_str(name);
        for (number, (label, text)) in labels.iter().enumerate() {
            let before = if number == 0 { '{' } else { ',' };
            let text = text.escape_default();
            let _ = write!(self.text, "{before}{label}=\"{text}\"");
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }
}
