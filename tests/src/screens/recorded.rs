//! Values that differ from run to run. Each is replaced by the value at the same place in the
//! recorded screen.

use std::collections::BTreeSet;

use crate::support::varying::{Kind, Value, values};

/// Returns the screen with the values of the recorded one, if both have values of the same kinds
/// and lengths in the same order, and equal values at the same places. Otherwise returns the screen
/// unchanged, so that it differs.
pub(super) fn replaced(screen: &str, recorded: &str) -> String {
    let (new, old) = (values(screen), values(recorded));
    let alike = |((_, kind, value), (_, other, known)): (&Value<'_>, &Value<'_>)| {
        kind == other && value.len() == known.len()
    };
    let pairs = || new.iter().zip(&old);
    // Two times may be equal.
    let named = || pairs().filter(|((_, kind, _), _)| *kind != Kind::Time);
    let both: BTreeSet<_> = named().map(|(new, old)| (new.2, old.2)).collect();
    let news: BTreeSet<_> = named().map(|(new, _)| new.2).collect();
    let olds: BTreeSet<_> = named().map(|(_, old)| old.2).collect();
    let same_places = both.len() == news.len() && both.len() == olds.len();
    if new.len() != old.len() || !pairs().all(alike) || !same_places {
        return screen.to_owned();
    }
    let mut replaced = String::new();
    let mut end = 0;
    for ((at, _, value), (_, _, known)) in pairs() {
        replaced.push_str(screen.get(end..*at).unwrap());
        replaced.push_str(known);
        end = at + value.len();
    }
    replaced + screen.get(end..).unwrap()
}

#[test]
fn values_of_a_run_are_replaced_with_recorded_ones_in_their_places() {
    let digest = "0123456789abcdef";
    let screen = |directory: &str, port: &str, time: &str, id: &str, other: &str| {
        format!(
            "in /tmp/.tmp{directory}/home: http://127.0.0.1:{port}/ {id} {other} at {time}Z, {id}"
        )
    };
    let time = "2026-11-29T06:50:52";
    let recorded = screen("AAAAAA", "40001", time, digest, "fedcba9876543210");
    let later = "2027-01-02T03:04:05";
    let again = screen("b2Cd3E", "51234", later, "aaaaaaaaaaaaaaaa", digest);
    assert_eq!(replaced(&again, &recorded), recorded);
    // A port that became a digest, a missing value, and one id in place of two.
    for other in [
        again.replace("127.0.0.1:51234", digest),
        again.replace(later, ""),
        screen("b2Cd3E", "51234", later, digest, digest),
        again.replace("home", "work"),
    ] {
        assert_ne!(replaced(&other, &recorded), recorded, "{other}");
    }
}
