//! A page of Prometheus's text format, version 0.0.4: `# HELP`, `# TYPE`, and a line for each sample.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{BUCKETS, Counts, OTHER, ToolCounts};

/// A page of metrics.
#[derive(Debug, Clone, Default)]
pub struct MetricsPage {
    text: String,
}

/// What a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sample {
    /// A count that only grows.
    Counter(u64),
    /// A value that grows and shrinks.
    Gauge(i64),
}

impl MetricsPage {
    /// The page.
    #[must_use]
    pub fn text(self) -> String {
        self.text
    }

    /// Adds a metric without labels. `name` must be one of Prometheus (`[a-zA-Z_:][a-zA-Z0-9_:]*`) that the page does
    /// not have yet, and `help` one line without a backslash.
    pub fn add(&mut self, name: &str, help: &str, sample: Sample) {
        let (kind, value) = match sample {
            Sample::Counter(count) => ("counter", i128::from(count)),
            Sample::Gauge(value) => ("gauge", i128::from(value)),
        };
        self.head(name, kind, help);
        self.sample(name, &[], value);
    }

    pub(super) fn calls(&mut self, counts: &Counts) {
        let name = "toolward_calls_total";
        self.head(name, "counter", "Calls that have ended, by class of error.");
        let mutating = ["false", "true"];
        for (mutating, ok) in mutating.iter().zip(&counts.ok) {
            self.count(name, &[("class", "ok"), ("mutating", mutating)], ok);
        }
        for (mutating, failed) in mutating.iter().zip(&counts.failed) {
            for (class, count) in failed.named() {
                self.sample(name, &[("class", class), ("mutating", mutating)], count);
            }
        }
        self.tools(counts);
        let in_flight = Sample::Gauge(counts.in_flight.load(Ordering::Relaxed));
        self.add(
            "toolward_calls_in_flight",
            "Calls that have not ended.",
            in_flight,
        );
        self.durations(counts);
        let starts = counts.starts.named();
        self.labelled(
            "toolward_driver_starts_total",
            "Starts of drivers.",
            "kind",
            starts,
        );
        let limits = counts.limits.named();
        self.labelled(
            "toolward_limits_hit_total",
            "Calls that ended at a limit.",
            "limit",
            limits,
        );
        let violations = counts.violations.named();
        self.labelled(
            "toolward_violations_total",
            "Attempts of drivers at what they were not granted.",
            "kind",
            violations,
        );
        let answers = [
            ("approved", &counts.approved),
            ("not_approved", &counts.not_approved),
        ];
        let answers = answers.map(|(answer, count)| (answer, count.load(Ordering::Relaxed)));
        self.labelled(
            "toolward_approvals_total",
            "Calls about which a person was asked.",
            "answer",
            answers.into_iter(),
        );
    }

    fn tools(&mut self, counts: &Counts) {
        let name = "toolward_tool_calls_total";
        self.head(name, "counter", "Calls that have ended, by tool.");
        let tools = counts.tools();
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
        // Counted after the buckets, and read after them: not smaller than their sum.
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

    /// Label values are names of this program and ids of tools, which have nothing that needs to be escaped.
    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
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
