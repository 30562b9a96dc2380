//! The progress of several verifications as that of one.

use std::sync::{Mutex, PoisonError};

use toolward_signing::verify::VerifyProgress;

use crate::report::Progress;

/// Tells the sum of what several threads have verified.
pub(super) struct JointProgress(Mutex<State>);

struct State {
    each: Vec<VerifyProgress>,
    whole: Box<dyn Progress + Send>,
}

impl JointProgress {
    pub(super) fn of(count: usize, whole: Box<dyn Progress + Send>) -> Self {
        let none = VerifyProgress { done: 0, total: 0 };
        let each = vec![none; count];
        Self(Mutex::new(State { each, whole }))
    }

    /// Sets how far one has come. Its total counts once it has begun.
    pub(super) fn set(&self, number: usize, progress: VerifyProgress) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(one) = state.each.get_mut(number) {
            *one = progress;
        }
        let sum = |part: fn(&VerifyProgress) -> u64| state.each.iter().map(part).sum();
        (state.whole).set(sum(|one| one.done), sum(|one| one.total));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[derive(Default)]
    struct Last(Arc<Mutex<(u64, u64)>>);

    impl Progress for Last {
        fn set(&self, done: u64, total: u64) {
            *self.0.lock().unwrap() = (done, total);
        }
    }

    #[test]
    fn the_whole_is_the_sum() {
        let last = Last::default();
        let seen = Arc::clone(&last.0);
        let joint = JointProgress::of(2, Box::new(last));
        for (number, done, total, whole) in [
            (0, 1, 10, (1, 10)),
            (1, 5, 5, (6, 15)),
            (0, 9, 10, (14, 15)),
        ] {
            joint.set(number, VerifyProgress { done, total });
            assert_eq!(*seen.lock().unwrap(), whole);
        }
    }
}
