//! The series that are measured, each with what its figures are.

/// One curve.
pub(super) struct Series {
    pub(super) id: &'static str,
    /// The part of the chore that measures it.
    pub(super) part: &'static str,
    pub(super) title: &'static str,
    /// What its sizes count.
    pub(super) counts: Counts,
    pub(super) unit: Unit,
}

/// What sizes count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Counts {
    Bytes,
    Calls,
    Tools,
    Bundles,
    Megabytes,
}

/// What figures are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Milliseconds,
    Megabytes,
}

impl Counts {
    /// After a size, with the space before it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Bytes => " bytes",
            Self::Calls => " calls",
            Self::Tools => " tools",
            Self::Bundles => " bundles",
            Self::Megabytes => " MB",
        }
    }
}

impl Unit {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Milliseconds => "ms",
            Self::Megabytes => "MB",
        }
    }
}

const fn series(
    id: &'static str,
    part: &'static str,
    title: &'static str,
    counts: Counts,
    unit: Unit,
) -> Series {
    Series {
        id,
        part,
        title,
        counts,
        unit,
    }
}

use Counts::{Bundles, Bytes, Calls, Tools};
use Unit::{Megabytes, Milliseconds};

/// All of them, in the order of the page.
#[rustfmt::skip]
pub(super) const ALL: [Series; 20] = [
    series("input-text", "sizes", "a call, its input one text", Bytes, Milliseconds),
    series("input-list", "sizes", "a call, its input a list of numbers", Bytes, Milliseconds),
    series("output-text", "sizes", "a call, its output one text", Bytes, Milliseconds),
    series("output-list", "sizes", "a call, its output a list of numbers", Bytes, Milliseconds),
    series("at-once", "at-once", "calls at once, until all are answered", Calls, Milliseconds),
    series("at-once-memory", "at-once", "calls at once, the server's memory at most", Calls, Megabytes),
    series("tools-start", "tools", "tools installed: a start", Tools, Milliseconds),
    series("tools-memory", "tools", "tools installed: memory of a server", Tools, Megabytes),
    series("tools-list", "tools", "tools installed: `tools/list`", Tools, Milliseconds),
    series("tools-search", "tools", "tools installed: a search", Tools, Milliseconds),
    series("tools-call", "tools", "tools installed: a call", Tools, Milliseconds),
    series("updates", "updates", "bundles updated during calls: until all are served", Bundles, Milliseconds),
    series("updates-last", "updates", "bundles updated during calls: from the end of the last update until all are served", Bundles, Milliseconds),
    series("updates-call", "updates", "bundles updated during calls: one of these calls, median", Bundles, Milliseconds),
    series("updates-slow", "updates", "bundles updated during calls: one of these calls, slowest", Bundles, Milliseconds),
    series("component-compile", "components", "a component: a first start, which compiles, to the first answer", Counts::Megabytes, Milliseconds),
    series("component-map", "components", "a component: a later start, to the first answer", Counts::Megabytes, Milliseconds),
    series("component-call", "components", "a component: a call", Counts::Megabytes, Milliseconds),
    series("nested-depth", "nested", "nested calls, each within the one before", Calls, Milliseconds),
    series("nested-sequence", "nested", "nested calls, one after the other", Calls, Milliseconds),
];
