//! What all calls together hold of one resource, with shares for principals and publishers
//! as for slots.

use std::sync::atomic::{AtomicU64, Ordering};

use toolward_policy::{LimitName, Limits};

use crate::exceeded::Exceeded;

/// The sum over all calls of one admission.
#[derive(Debug)]
pub(super) struct Sum {
    name: LimitName,
    pub(super) allowed: u64,
    principal_share: u64,
    publisher_share: u64,
    used: Held,
}

/// What one principal or publisher holds.
#[derive(Debug, Default)]
pub(super) struct Held(AtomicU64);

/// There is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full {
    pub(super) exceeded: Exceeded,
    pub(super) share: Share,
}

/// Whose part is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    Principal,
    Publisher,
    All,
}

impl Held {
    pub(super) fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn give_back(&self, amount: u64) {
        self.0.fetch_sub(amount, Ordering::SeqCst);
    }
}

impl Sum {
    /// A share is at least `call`, which one call may need: with very many slots, the part of one principal would
    /// be too small for any.
    pub(super) fn new(name: LimitName, allowed: u64, call: u64, limits: &Limits) -> Self {
        let concurrency = u128::from(limits.concurrency.max(1));
        let share = |calls: u32| {
            let share = u128::from(allowed).saturating_mul(u128::from(calls)) / concurrency;
            u64::try_from(share)
                .unwrap_or(u64::MAX)
                .max(call)
                .min(allowed)
        };
        Self {
            name,
            allowed,
            principal_share: share(limits.concurrency_per_principal),
            publisher_share: share(limits.concurrency_per_publisher),
            used: Held::default(),
        }
    }

    pub(super) fn used(&self) -> u64 {
        self.used.now()
    }

    /// Takes an amount, up to `overdraft` beyond shares and sum.
    pub(super) fn take(
        &self,
        principal: &Held,
        publisher: Option<&Held>,
        amount: u64,
        overdraft: u64,
    ) -> Result<(), Full> {
        let own = [
            Some((principal, self.principal_share, Share::Principal)),
            publisher.map(|publisher| (publisher, self.publisher_share, Share::Publisher)),
        ];
        let all = (&self.used, self.allowed, Share::All);
        let parts = own.into_iter().flatten().chain([all]);
        for (number, (held, allowed, share)) in parts.clone().enumerate() {
            let taken = self.add(held, amount, allowed.saturating_add(overdraft), share);
            if taken.is_err() {
                (parts.take(number)).for_each(|(held, ..)| held.give_back(amount));
                return taken;
            }
        }
        Ok(())
    }

    pub(super) fn give_back(&self, principal: &Held, publisher: Option<&Held>, amount: u64) {
        for held in [Some(principal), publisher, Some(&self.used)] {
            held.into_iter().for_each(|held| held.give_back(amount));
        }
    }

    /// The error of what had to make room.
    pub(super) fn exceeded(&self) -> Exceeded {
        Exceeded::new(self.name, self.used().max(self.allowed), self.allowed)
    }

    fn add(&self, held: &Held, amount: u64, allowed: u64, share: Share) -> Result<(), Full> {
        let sum = |used: u64| used.checked_add(amount).filter(|sum| *sum <= allowed);
        let added = held.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, sum);
        added.map(drop).map_err(|used| Full {
            exceeded: Exceeded::new(self.name, used.saturating_add(amount), allowed),
            share,
        })
    }
}
