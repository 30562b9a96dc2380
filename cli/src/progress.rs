//! Progress of long work: a bar on standard error, only if standard error is a terminal.

use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use toolward_operator::Progress;

/// How long work takes before a bar is shown.
pub(crate) const SHOW_DELAY: Duration = Duration::from_millis(400);

pub(crate) struct Bar {
    bar: ProgressBar,
    started: std::time::Instant,
    visible: bool,
    turn: Mutex<Turn>,
}

/// The part of the program that uses the terminal now.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// Nothing is shown.
    #[default]
    Nobody,
    /// The bar, as a spinner.
    Bar,
    /// Another part of the program. `spin` states whether the bar returns afterwards.
    Held { spin: bool },
}

impl Bar {
    /// A bar that appears on a terminal if `shown`.
    pub(crate) fn new(what: impl Into<String>, shown: bool) -> Self {
        let visible = std::io::stderr().is_terminal() && shown;
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3}% {elapsed:>3}");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        bar.set_message(what.into());
        Self {
            bar,
            started: std::time::Instant::now(),
            visible,
            turn: Mutex::default(),
        }
    }

    /// Shows that work is going on, without its amount.
    pub(crate) fn spin(&self) {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *turn {
            Turn::Held { spin } => *spin = true,
            Turn::Bar => {}
            Turn::Nobody if self.visible => {
                *turn = Turn::Bar;
                self.show();
            }
            Turn::Nobody => {}
        }
    }

    /// Removes the bar until the returned value is dropped, while another part of the program uses
    /// the terminal.
    pub(crate) fn hold(&self) -> Hold<'_> {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let spin = match *turn {
            Turn::Bar => {
                self.bar.disable_steady_tick();
                self.bar.finish_and_clear();
                self.bar.set_draw_target(ProgressDrawTarget::hidden());
                true
            }
            Turn::Held { spin } => spin,
            Turn::Nobody => false,
        };
        *turn = Turn::Held { spin };
        Hold(self)
    }

    /// Removes the bar permanently.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn show(&self) {
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
            self.bar.set_style(style);
        }
        self.bar.reset();
        self.bar.set_draw_target(ProgressDrawTarget::stderr());
        self.bar.enable_steady_tick(Duration::from_millis(120));
    }

    /// Replaces the words next to the bar.
    pub(crate) fn say(&self, message: String) {
        self.bar.set_message(message);
    }
}

impl Progress for Bar {
    /// Shows how much is done, once the work has taken a while.
    fn set(&self, done: u64, total: u64) {
        if !self.visible || self.started.elapsed() < SHOW_DELAY {
            return;
        }
        if self.bar.is_hidden() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_length(total);
        self.bar.set_position(done);
    }
}

/// Keeps a bar off the terminal until this value is dropped.
pub(crate) struct Hold<'b>(&'b Bar);

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        let bar = self.0;
        let mut turn = bar.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let spin = *turn == Turn::Held { spin: true };
        *turn = Turn::Nobody;
        drop(turn);
        if spin {
            bar.spin();
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.clear();
    }
}
