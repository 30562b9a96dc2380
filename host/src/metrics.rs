//! Counts calls for Prometheus: a [`CallListener`] without locks, and a page of the text format. Nothing is counted
//! by principal, and no text of a caller, a driver or a server is a label: tools are named as in the catalogue.

mod page;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::json;
use toolward_contract::driver::DriverKind;
use toolward_policy::LimitName;

use crate::api::facts::{CallFacts, CallListener};
use crate::host::Host;
pub use page::{MetricsPage, Sample};

/// Tools that are counted one by one, over all hosts; calls of others count as calls of `other`. Bounds the page, and
/// the memory of a server that is given other bundles again and again.
const MAX_TOOLS: usize = 1000;

/// The label for tools beyond [`MAX_TOOLS`], and for calls in which no tool was found. No tool's: those have a version.
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
/// let metrics = CallMetrics::new();
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

/// A counter for each value of an enumeration. A slot learns its name when it first counts.
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

#[derive(Debug, Default)]
struct Counts {
    in_flight: AtomicI64,
    ok: [AtomicU64; 2],
    /// By class, of calls that change nothing and of calls that do.
    failed: [Slots<64>; 2],
    starts: Slots<5>,
    limits: Slots<{ LimitName::ALL.len() }>,
    violations: Slots<16>,
    approved: AtomicU64,
    not_approved: AtomicU64,
    durations: [AtomicU64; BUCKETS.len()],
    /// Longer ones, too.
    all_durations: AtomicU64,
    micros: AtomicU64,
    other: ToolCounts,
    /// Locked by a reload and by a page, never by a call.
    tools: Mutex<BTreeMap<String, Arc<ToolCounts>>>,
}

impl Counts {
    fn tools(&self) -> MutexGuard<'_, BTreeMap<String, Arc<ToolCounts>>> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner)
    }

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
    /// No counts yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A listener for one host, for [`HostBuilder::listener`](crate::HostBuilder::listener).
    #[must_use]
    pub fn listener(&self) -> Arc<HostMetrics> {
        Arc::new(HostMetrics {
            counts: self.counts.clone(),
            tools: OnceLock::new(),
        })
    }

    /// The counts as they are now.
    #[must_use]
    pub fn page(&self) -> MetricsPage {
        let mut page = MetricsPage::default();
        page.calls(&self.counts);
        page
    }
}

impl HostMetrics {
    /// Has calls of the tools of this host counted one by one. To be called once the host is built; what it serves
    /// does not change.
    pub fn serves(&self, host: &Host) {
        let mut known = self.counts.tools();
        let mut own = HashMap::new();
        for tool in host.tools().map(|tool| tool.contract.major_id()) {
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
        let slot = match kind {
            DriverKind::Component => 0,
            DriverKind::Http => 1,
            DriverKind::Form => 2,
            DriverKind::Exec => 3,
            DriverKind::Other(_) => 4,
        };
        let name = match kind {
            DriverKind::Other(_) => OTHER,
            kind => kind.as_str(),
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
        let [unchanging, mutating] = &counts.ok;
        match call.class {
            None => {
                let ok = if call.mutating { mutating } else { unchanging };
                ok.fetch_add(1, Ordering::Relaxed);
                tool.ok.fetch_add(1, Ordering::Relaxed);
            }
            Some(class) => {
                let [unchanging, mutating] = &counts.failed;
                let failed = if call.mutating { mutating } else { unchanging };
                let name = || json!(class).as_str().unwrap_or(OTHER).to_owned();
                failed.add(class as usize, name, 1);
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
            counts.violations.add(*kind as usize, name, *count);
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
