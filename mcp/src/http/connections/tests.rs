//! Which connections are admitted, and which are dropped for them.

use super::*;

const SHORT: Duration = Duration::from_secs(2);

fn connections(most: usize, per_address: usize, per_principal: usize) -> Arc<Connections> {
    Connections::new(&HttpLimits {
        connections: most,
        connections_per_address: per_address,
        connections_per_principal: per_principal,
        newcomer_within: SHORT,
        ..HttpLimits::default()
    })
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Whether a connection was asked to leave.
fn left(counted: &mut Counted) -> bool {
    counted.left.try_recv().is_ok()
}

fn principal(name: &str) -> Arc<str> {
    name.into()
}

#[test]
fn a_newcomer_of_the_older_half_makes_room_and_a_proven_connection_never_does() {
    let all = connections(10, 10, 10);
    let (now, here) = (Instant::now(), address("192.0.2.1"));
    let mut proven: Vec<Counted> = (0..4).map(|_| all.admit(here, now).unwrap()).collect();
    for counted in &proven {
        counted.place.prove(&principal("alice"));
    }
    let mut open: Vec<Counted> = (0..6).map(|_| all.admit(here, now).unwrap()).collect();
    for _ in 0..1000 {
        open.push(all.admit(here, now).unwrap());
        let gone: Vec<usize> = (0..open.len()).filter(|at| left(&mut open[*at])).collect();
        assert_eq!(gone.len(), 1, "{gone:?}");
        // One of the three oldest of six makes room.
        assert!(gone[0] < 3, "{gone:?}");
        open.remove(gone[0]);
    }
    assert!(!proven.iter_mut().any(left));
    for counted in &open {
        counted.place.prove(&principal("alice"));
    }
    assert!(all.admit(here, now).is_none());
    assert!(!open.iter_mut().any(left));
    drop((proven, open));
    assert!(lock(&all.open).all.is_empty());
}

#[test]
fn which_one_makes_room_is_drawn_by_lot() {
    let all = connections(64, 64, 64);
    let (now, here) = (Instant::now(), address("192.0.2.1"));
    let mut drawn = std::collections::HashSet::new();
    for _ in 0..50 {
        let mut open: Vec<Counted> = (0..64).map(|_| all.admit(here, now).unwrap()).collect();
        let _one_more = all.admit(here, now).unwrap();
        drawn.insert(open.iter_mut().position(left).unwrap());
    }
    // The chance that all fifty are equal is one in 32^49.
    assert!(drawn.len() > 1);
    assert!(drawn.iter().all(|at| *at < 32), "{drawn:?}");
}

#[test]
fn an_address_makes_room_for_itself_and_takes_none_from_others() {
    let all = connections(5, 2, 5);
    let now = Instant::now();
    let mut other = all.admit(address("192.0.2.2"), now).unwrap();
    let mut first = all.admit(address("192.0.2.1"), now).unwrap();
    let mut second = all.admit(address("::ffff:192.0.2.1"), now).unwrap();
    let _third = all.admit(address("192.0.2.1"), now).unwrap();
    assert!(left(&mut first) && !left(&mut second) && !left(&mut other));
    second.place.prove(&principal("alice"));
    _third.place.prove(&principal("alice"));
    assert!(all.admit(address("192.0.2.1"), now).is_none());
    assert!(!left(&mut other));
}

#[test]
fn this_machine_is_one_address_and_so_is_a_network_of_ipv6() {
    for (one, other, same) in [
        ("127.0.0.1", "127.255.0.9", true),
        ("127.0.0.1", "::ffff:127.0.0.2", true),
        ("127.0.0.1", "::1", true),
        ("192.0.2.1", "::ffff:192.0.2.1", true),
        ("192.0.2.1", "192.0.2.2", false),
        ("2001:db8::1", "2001:db8::2:3:4:5", true),
        ("2001:db8::1", "2001:db8:0:1::1", false),
    ] {
        let equal = network(address(one)) == network(address(other));
        assert_eq!(equal, same, "{one} {other}");
    }
}

#[test]
fn newcomers_have_less_time_while_half_of_the_places_are_taken() {
    let all = connections(8, 6, 8);
    let (now, here) = (Instant::now(), address("192.0.2.1"));
    let mut slow: Vec<Counted> = (0..3).map(|_| all.admit(here, now).unwrap()).collect();
    slow[1].place.prove(&principal("alice"));
    let later = now + SHORT;
    let mut elsewhere = all.admit(address("192.0.2.2"), now).unwrap();
    assert!(!slow.iter_mut().any(left));
    // Half of the places of its address are taken, so connections of other addresses stay.
    let all_here = connections(100, 6, 8);
    let mut here_only: Vec<Counted> = (0..3).map(|_| all_here.admit(here, now).unwrap()).collect();
    let mut other = all_here.admit(address("192.0.2.2"), now).unwrap();
    let _next = all_here.admit(here, later);
    assert!(here_only.iter_mut().all(left) && !left(&mut other));
    // Half of all places are taken, so the newcomers of all addresses go. The proven connection
    // stays.
    let _next = all.admit(address("192.0.2.3"), later);
    let gone: Vec<bool> = slow.iter_mut().map(left).collect();
    assert_eq!(gone, [true, false, true]);
    assert!(left(&mut elsewhere));
}

#[test]
fn a_principal_keeps_no_more_connections_than_its_share() {
    let all = connections(10, 10, 2);
    let (now, here) = (Instant::now(), address("192.0.2.1"));
    let admit = |name: &str| {
        let counted = all.admit(here, now).unwrap();
        counted.place.prove(&principal(name));
        counted
    };
    let (one, two, three) = (admit("alice"), admit("alice"), admit("alice"));
    assert!(
        !one.place.is_last.load(Ordering::Relaxed)
            && !two.place.is_last.load(Ordering::Relaxed)
            && three.place.is_last.load(Ordering::Relaxed)
    );
    assert!(!admit("bob").place.is_last.load(Ordering::Relaxed));
    // A connection beyond its principal's share frees no place.
    drop(three);
    assert!(admit("alice").place.is_last.load(Ordering::Relaxed));
    drop(one);
    assert!(!admit("alice").place.is_last.load(Ordering::Relaxed));
}
