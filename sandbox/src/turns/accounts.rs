//! Accounts of processor time over the last ten seconds, which decide who gets the next turn. This
//! module only decides; [`super`] waits and wakes.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

/// The number of parts of the last ten seconds. One part is dropped at a time.
const BUCKETS: usize = 10;

/// The length of one part.
const BUCKET: Duration = Duration::from_secs(1);

/// The most accounts in addition to the shared one. Further principals and publishers use the
/// shared account, so that memory is bounded.
const MOST_ACCOUNTS: usize = 4096;

/// The key of the shared account, which is used beyond [`MOST_ACCOUNTS`].
const SHARED: u64 = 0;

/// The nanoseconds that were spent in the last ten seconds.
#[derive(Debug, Default)]
struct Window {
    parts: [u64; BUCKETS],
    total: u64,
    /// The current bucket, counted from the start of the clock.
    latest: u64,
}

impl Window {
    fn advance(&mut self, bucket: u64) {
        let gone = bucket.saturating_sub(self.latest);
        for past in 1..=gone.min(BUCKETS as u64) {
            let part = part_of(self.latest.saturating_add(past));
            if let Some(part) = self.parts.get_mut(part) {
                self.total = self.total.saturating_sub(std::mem::take(part));
            }
        }
        self.latest = self.latest.max(bucket);
    }

    fn add(&mut self, nanoseconds: u64, bucket: u64) {
        self.advance(bucket);
        if let Some(part) = self.parts.get_mut(part_of(self.latest)) {
            *part = part.saturating_add(nanoseconds);
            self.total = self.total.saturating_add(nanoseconds);
        }
    }

    fn total(&mut self, bucket: u64) -> u64 {
        self.advance(bucket);
        self.total
    }
}

fn part_of(bucket: u64) -> usize {
    usize::try_from(bucket % BUCKETS as u64).unwrap_or_default()
}

#[derive(Debug, Default)]
struct Account {
    window: Window,
    /// The number of calls that have the account open.
    holders: u32,
}

/// The two accounts from which a call spends. They stay open until [`Accounts::close`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Payer {
    principal: u64,
    publisher: u64,
}

/// A claim to a turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claim {
    pub(super) payer: Payer,
    /// Whether its guest did not take an earlier turn. All other claims come first.
    pub(super) tardy: bool,
    /// The number of the claim, which rises with each claim. Among equal claims, the oldest comes
    /// first.
    pub(super) number: u64,
}

/// An account for each principal, and one for each publisher whose drivers the principal runs.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    by_key: HashMap<u64, Account>,
    /// Keys with a secret, so that no one can choose names with colliding accounts.
    keys: RandomState,
    swept: u64,
}

impl Accounts {
    /// The accounts of a principal that runs a driver of a publisher.
    pub(super) fn open(&mut self, principal: &str, publisher: &str, now: Duration) -> Payer {
        self.sweep(bucket_of(now));
        Payer {
            principal: self.account(self.keys.hash_one(principal)),
            publisher: self.account(self.keys.hash_one((principal, publisher))),
        }
    }

    /// Closes the two accounts of a call. Spent time counts until its window has passed.
    pub(super) fn close(&mut self, payer: Payer) {
        for key in [payer.principal, payer.publisher] {
            if let Some(account) = self.by_key.get_mut(&key) {
                account.holders = account.holders.saturating_sub(1);
            }
        }
    }

    /// Counts spent time.
    pub(super) fn spend(&mut self, payer: Payer, spent: Duration, now: Duration) {
        let nanoseconds = nanoseconds(spent);
        for key in [payer.principal, payer.publisher] {
            if let Some(account) = self.by_key.get_mut(&key) {
                account.window.add(nanoseconds, bucket_of(now));
            }
        }
    }

    /// The index of the claim that comes first. Tardy claims come last. Before them, the principal
    /// with the least spent time comes first, then its publisher with the least spent time, then
    /// the oldest claim.
    pub(super) fn first(
        &mut self,
        claims: impl Iterator<Item = Claim>,
        now: Duration,
    ) -> Option<usize> {
        let bucket = bucket_of(now);
        let order = |claim: Claim| {
            (
                claim.tardy,
                self.spent(claim.payer.principal, bucket),
                self.spent(claim.payer.publisher, bucket),
                claim.number,
            )
        };
        let ordered = claims.map(order).enumerate();
        ordered
            .min_by_key(|(_, order)| *order)
            .map(|(index, _)| index)
    }

    fn spent(&mut self, key: u64, bucket: u64) -> u64 {
        let account = self.by_key.get_mut(&key);
        account.map_or(0, |account| account.window.total(bucket))
    }

    /// Opens the account of a key, or the shared account if [`MOST_ACCOUNTS`] accounts exist.
    fn account(&mut self, key: u64) -> u64 {
        let has_room = self.by_key.len() < MOST_ACCOUNTS;
        let key = match has_room || self.by_key.contains_key(&key) {
            true => key,
            false => SHARED,
        };
        let account = self.by_key.entry(key).or_default();
        account.holders = account.holders.saturating_add(1);
        key
    }

    /// Removes, once per bucket, the accounts that no call has open and whose window has passed.
    fn sweep(&mut self, bucket: u64) {
        if bucket > self.swept {
            self.swept = bucket;
            self.by_key
                .retain(|_, account| account.holders > 0 || account.window.total(bucket) > 0);
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn bucket_of(now: Duration) -> u64 {
    now.as_secs() / BUCKET.as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const SLICE: Duration = Duration::from_millis(1);

    /// The payer of the claim that comes first. Each claim is older than the next.
    fn first(accounts: &mut Accounts, payers: &[Payer], now: Duration) -> Payer {
        let claims = payers.iter().zip(0..).map(|(payer, number)| Claim {
            payer: *payer,
            tardy: false,
            number,
        });
        payers[accounts.first(claims, now).unwrap()]
    }

    /// Runs slices of guests that always want a turn, and counts them.
    fn turns(accounts: &mut Accounts, payers: &[Payer], slices: u32) -> Vec<u32> {
        let mut numbers: Vec<u64> = (0..payers.len() as u64).collect();
        let mut counts = vec![0; payers.len()];
        for (slice, next) in (0..slices).zip(payers.len() as u64..) {
            let now = SLICE * slice;
            let claims = payers.iter().zip(&numbers).map(|(payer, number)| Claim {
                payer: *payer,
                tardy: false,
                number: *number,
            });
            let index = accounts.first(claims, now).unwrap();
            accounts.spend(payers[index], SLICE, now);
            counts[index] += 1;
            numbers[index] = next;
        }
        counts
    }

    #[test]
    fn whoever_has_spent_least_goes_first_and_among_equals_the_oldest() {
        let mut accounts = Accounts::default();
        let alice = accounts.open("alice", "acme", Duration::ZERO);
        let bob = accounts.open("bob", "acme", Duration::ZERO);
        assert_eq!(first(&mut accounts, &[bob, alice], SLICE), bob);
        assert_eq!(first(&mut accounts, &[alice, bob], SLICE), alice);
        accounts.spend(alice, SLICE, SLICE);
        assert_eq!(first(&mut accounts, &[alice, bob], SLICE), bob);
        accounts.spend(bob, SLICE * 2, SLICE);
        assert_eq!(first(&mut accounts, &[alice, bob], SLICE), alice);
    }

    #[test]
    fn what_was_spent_counts_for_ten_seconds() {
        let mut accounts = Accounts::default();
        let alice = accounts.open("alice", "acme", Duration::ZERO);
        let bob = accounts.open("bob", "acme", Duration::ZERO);
        accounts.spend(alice, SECOND, SECOND / 2);
        accounts.spend(bob, SLICE, SECOND * 5);
        assert_eq!(first(&mut accounts, &[alice, bob], SECOND * 9), bob);
        assert_eq!(first(&mut accounts, &[alice, bob], SECOND * 11), alice);
        // After a long time, neither account has any spent time left.
        assert_eq!(first(&mut accounts, &[bob, alice], SECOND * 1000), bob);
    }

    #[test]
    fn principals_share_equally_however_many_calls_each_makes() {
        let mut accounts = Accounts::default();
        let mut payers = vec![accounts.open("greedy", "acme", Duration::ZERO); 96];
        payers.push(accounts.open("modest", "acme", Duration::ZERO));
        let counts = turns(&mut accounts, &payers, 9600);
        assert_eq!(counts[96], 4800);
        assert!(counts[..96].iter().all(|count| *count == 50), "{counts:?}");
    }

    #[test]
    fn many_publishers_give_a_principal_no_more_and_share_what_it_has() {
        let mut accounts = Accounts::default();
        let mut payers: Vec<_> = (0..9)
            .map(|number| accounts.open("many", &format!("publisher{number}"), Duration::ZERO))
            .collect();
        payers.push(accounts.open("one", "acme", Duration::ZERO));
        let counts = turns(&mut accounts, &payers, 9000);
        assert_eq!(counts[9], 4500);
        assert_eq!(counts[..9], [500; 9]);
        // A publisher does not get a larger part of a principal's time by more calls either.
        let mut accounts = Accounts::default();
        let mut payers = vec![accounts.open("alice", "busy", Duration::ZERO); 9];
        payers.push(accounts.open("alice", "quiet", Duration::ZERO));
        assert_eq!(turns(&mut accounts, &payers, 9000)[9], 4500);
    }

    #[test]
    fn one_that_did_not_take_its_turn_goes_after_all_others() {
        let mut accounts = Accounts::default();
        let payer = accounts.open("alice", "acme", Duration::ZERO);
        let other = accounts.open("bob", "acme", Duration::ZERO);
        accounts.spend(other, SECOND, Duration::ZERO);
        let claims = [(payer, true), (other, false)];
        let claims = claims
            .iter()
            .zip(0..)
            .map(|((payer, tardy), number)| Claim {
                payer: *payer,
                tardy: *tardy,
                number,
            });
        assert_eq!(accounts.first(claims, SLICE), Some(1));
        assert_eq!(accounts.first(std::iter::empty(), SLICE), None);
    }

    #[test]
    fn idle_accounts_go_after_ten_seconds_and_open_ones_stay() {
        let mut accounts = Accounts::default();
        let gone = accounts.open("gone", "acme", Duration::ZERO);
        accounts.spend(gone, SLICE, Duration::ZERO);
        accounts.close(gone);
        let open = accounts.open("open", "acme", Duration::ZERO);
        accounts.spend(open, SLICE, Duration::ZERO);
        let other = accounts.open("other", "acme", SECOND * 9);
        assert_eq!(accounts.by_key.len(), 6);
        accounts.close(other);
        let again = accounts.open("again", "acme", SECOND * 12);
        assert_eq!(accounts.by_key.len(), 4, "open and again");
        assert_ne!(again, open);
        assert_eq!(accounts.open("open", "acme", SECOND * 12), open);
    }

    #[test]
    fn principals_without_number_share_one_account() {
        let mut accounts = Accounts::default();
        for number in 0..3 * MOST_ACCOUNTS {
            let payer = accounts.open(&number.to_string(), "acme", Duration::ZERO);
            accounts.spend(payer, SLICE, Duration::ZERO);
            accounts.close(payer);
        }
        assert_eq!(accounts.by_key.len(), MOST_ACCOUNTS + 1);
        let crowded = accounts.open("late", "acme", Duration::ZERO);
        assert_eq!((crowded.principal, crowded.publisher), (SHARED, SHARED));
        accounts.open("later", "acme", SECOND * 20);
        assert_eq!(accounts.by_key.len(), 3, "there is room again");
    }
}
