//! Progress on long work: a bar on standard error, only where a person looks
//! at it.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::Output;

/// How long work takes before a bar is worth showing.
pub(crate) const PATIENCE: Duration = Duration::from_millis(400);

pub(crate) struct Bar {
    bar: ProgressBar,
    started: std::time::Instant,
    visible: bool,
}

impl Bar {
    pub(crate) fn new(what: impl Into<String>, output: &Output) -> Self {
        let visible = std::io::stderr().is_terminal() && !output.json();
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {percent}% {elapsed}") {
            bar.set_style(style);
        }
        bar.set_message(what.into());
        Self {
            bar,
            started: std::time::Instant::now(),
            visible,
        }
    }

    /// Shows that something is going on, without knowing how much.
    pub(crate) fn spin(&self) {
        if !self.visible || !self.bar.is_hidden() {
            return;
        }
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
            self.bar.set_style(style);
        }
        self.bar.set_draw_target(ProgressDrawTarget::stderr());
        self.bar.enable_steady_tick(Duration::from_millis(120));
    }

    /// Replaces the words beside the bar.
    pub(crate) fn say(&self, message: String) {
        self.bar.set_message(message);
    }

    /// Shows how much is done, once the work has taken a while.
    pub(crate) fn set(&self, done: u64, total: u64) {
        if !self.visible || self.started.elapsed() < PATIENCE {
            return;
        }
        if self.bar.is_hidden() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_length(total);
        self.bar.set_position(done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
