//! A shared memory budget for messages. One principal may take at most half of what is
//! left.

use std::sync::{Arc, Mutex, PoisonError};

use super::responses::Rejection;

/// The budget of all principals.
#[derive(Debug)]
pub(super) struct MemoryBudget {
    all: usize,
    left: Mutex<usize>,
}

/// What one principal has taken of the budget.
#[derive(Debug, Default)]
pub(super) struct MemoryShare {
    taken: Mutex<usize>,
}

/// Memory that a message holds. Dropping it returns it to the budget.
#[derive(Debug)]
pub(super) struct HeldMemory {
    memory: Arc<MemoryBudget>,
    share: Arc<MemoryShare>,
    bytes: usize,
}

impl MemoryBudget {
    /// A budget of so many bytes.
    pub(super) fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            all: bytes,
            left: Mutex::new(bytes),
        })
    }

    /// Takes bytes for a principal with this share.
    pub(super) fn hold(
        self: &Arc<Self>,
        share: &Arc<MemoryShare>,
        bytes: usize,
    ) -> Result<HeldMemory, Rejection> {
        let mut held = HeldMemory {
            memory: Arc::clone(self),
            share: Arc::clone(share),
            bytes: 0,
        };
        held.grow(bytes)?;
        Ok(held)
    }
}

impl HeldMemory {
    /// Takes more.
    pub(super) fn grow(&mut self, bytes: usize) -> Result<(), Rejection> {
        let mut left = self
            .memory
            .left
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut taken = self
            .share
            .taken
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let then_taken = taken.saturating_add(bytes);
        match left.checked_sub(bytes) {
            Some(then_left) if then_taken <= then_left => {
                (*taken, *left) = (then_taken, then_left);
                self.bytes = self.bytes.saturating_add(bytes);
                Ok(())
            }
            _ if self.bytes.saturating_add(bytes) > self.memory.all / 2 => {
                let message = "expected a message that takes less memory: fewer values";
                Err(Rejection::TooComplex(message.to_owned()))
            }
            _ if *taken > self.bytes => Err(Rejection::TooMany("large messages")),
            _ => Err(Rejection::Busy),
        }
    }
}

impl Drop for HeldMemory {
    fn drop(&mut self) {
        let mut left = self
            .memory
            .left
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut taken = self
            .share
            .taken
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *left = left.saturating_add(self.bytes);
        *taken = taken.saturating_sub(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_takes_more_than_is_left_for_others_and_all_comes_back() {
        let memory = MemoryBudget::new(100);
        let [one, two, three] = [(); 3].map(|()| Arc::<MemoryShare>::default());
        let first = memory.hold(&one, 50).unwrap();
        assert_eq!(
            memory.hold(&one, 1).unwrap_err(),
            Rejection::TooMany("large messages")
        );
        let mut second = memory.hold(&two, 20).unwrap();
        second.grow(5).unwrap();
        assert_eq!(second.grow(1).unwrap_err(), Rejection::Busy);
        let third = memory.hold(&three, 12).unwrap();
        assert_eq!(
            memory.hold(&three, 1).unwrap_err(),
            Rejection::TooMany("large messages")
        );
        drop(first);
        second.grow(1).unwrap();
        drop((second, third));
        assert_eq!(*memory.left.lock().unwrap(), 100);
        assert_eq!(*two.taken.lock().unwrap(), 0);
    }

    #[test]
    fn what_never_fits_is_not_told_to_come_back() {
        let memory = MemoryBudget::new(100);
        let share = Arc::default();
        assert!(matches!(
            memory.hold(&share, 51),
            Err(Rejection::TooComplex(_))
        ));
        assert!(memory.hold(&share, usize::MAX).is_err());
        assert_eq!(*memory.left.lock().unwrap(), 100);
    }
}
