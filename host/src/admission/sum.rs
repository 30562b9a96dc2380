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
    used: AtomicU64,
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
            used: AtomicU64::new(0),
        }
    }

    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Takes an amount, up to `overdraft` beyond shares and sum.
    pub(super) fn take(
        &self,
        principal: &Held,
        publisher: &Held,
        amount: u64,
        overdraft: u64,
    ) -> Result<(), Full> {
        let most = |allowed: u64| allowed.saturating_add(overdraft);
        self.add(
            &principal.0,
            amount,
            most(self.principal_share),
            Share::Principal,
        )?;
        let taken = self.add(
            &publisher.0,
            amount,
            most(self.publisher_share),
            Share::Publisher,
        );
        taken.inspect_err(|_| principal.give_back(amount))?;
        let taken = self.add(&self.used, amount, most(self.allowed), Share::All);
        taken.inspect_err(|_| {
            principal.give_back(amount);
            publisher.give_back(amount);
        })
    }

    pub(super) fn give_back(&self, principal: &Held, publisher: &Held, amount: u64) {
        principal.give_back(amount);
        publisher.give_back(amount);
        self.used.fetch_sub(amount, Ordering::SeqCst);
    }

    /// The error of what had to make room.
    pub(super) fn exceeded(&self) -> Exceeded {
        Exceeded::new(self.name, self.used().max(self.allowed), self.allowed)
    }

    fn add(
        &self,
        counter: &AtomicU64,
        amount: u64,
        allowed: u64,
        share: Share,
    ) -> Result<(), Full> {
        let sum = |used: u64| used.checked_add(amount).filter(|sum| *sum <= allowed);
        let added = counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, sum);
        added.map(drop).map_err(|used| Full {
            exceeded: Exceeded::new(self.name, used.saturating_add(amount), allowed),
            share,
        })
    }
}
