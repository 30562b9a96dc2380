//! The memory that messages take: no more than there is, and nobody takes more than is
//! left for all others.

use std::sync::{Arc, Mutex, PoisonError};

use super::answers::Wrong;

/// Memory that messages of all principals take from.
#[derive(Debug)]
pub(super) struct Memory {
    all: usize,
    left: Mutex<usize>,
}

/// What one principal has taken of it.
#[derive(Debug, Default)]
pub(super) struct Share {
    taken: Mutex<usize>,
}

/// Memory that a message holds; dropped, it is left to others.
#[derive(Debug)]
pub(super) struct Held {
    memory: Arc<Memory>,
    share: Arc<Share>,
    bytes: usize,
}

impl Memory {
    /// So many bytes.
    pub(super) fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            all: bytes,
            left: Mutex::new(bytes),
        })
    }

    /// Takes bytes for a principal with this share.
    pub(super) fn hold(self: &Arc<Self>, share: &Arc<Share>, bytes: usize) -> Result<Held, Wrong> {
        let mut held = Held {
            memory: Arc::clone(self),
            share: Arc::clone(share),
            bytes: 0,
        };
        held.grow(bytes)?;
        Ok(held)
    }
}

impl Held {
    /// Takes more.
    pub(super) fn grow(&mut self, bytes: usize) -> Result<(), Wrong> {
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
                Err(Wrong::TooComplex(message.to_owned()))
            }
            _ if *taken > self.bytes => Err(Wrong::TooMany("large messages")),
            _ => Err(Wrong::Busy),
        }
    }
}

impl Drop for Held {
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
        let memory = Memory::new(100);
        let [one, two, three] = [(); 3].map(|()| Arc::<Share>::default());
        let first = memory.hold(&one, 50).unwrap();
        assert_eq!(
            memory.hold(&one, 1).unwrap_err(),
            Wrong::TooMany("large messages")
        );
        let mut second = memory.hold(&two, 20).unwrap();
        second.grow(5).unwrap();
        assert_eq!(second.grow(1).unwrap_err(), Wrong::Busy);
        let third = memory.hold(&three, 12).unwrap();
        assert_eq!(
            memory.hold(&three, 1).unwrap_err(),
            Wrong::TooMany("large messages")
        );
        drop(first);
        second.grow(1).unwrap();
        drop((second, third));
        assert_eq!(*memory.left.lock().unwrap(), 100);
        assert_eq!(*two.taken.lock().unwrap(), 0);
    }

    #[test]
    fn what_never_fits_is_not_told_to_come_back() {
        let memory = Memory::new(100);
        let share = Arc::default();
        assert!(matches!(memory.hold(&share, 51), Err(Wrong::TooComplex(_))));
        assert!(memory.hold(&share, usize::MAX).is_err());
        assert_eq!(*memory.left.lock().unwrap(), 100);
    }
}
