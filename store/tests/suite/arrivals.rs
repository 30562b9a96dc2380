//! The order of installed tools.

use crate::support::{Place, Release, install, now};
use toolward_bundle::libraries::NoLibraries;

fn arrived(place: &Place) -> Vec<String> {
    let arrivals = place.open().arrivals().unwrap();
    assert!(arrivals.iter().all(|(publisher, _)| publisher == "acme"));
    arrivals.into_iter().map(|(_, tool)| tool).collect()
}

#[test]
fn a_tool_keeps_its_place_when_its_bundle_is_updated_and_what_an_update_adds_comes_last() {
    let place = Place::new();
    let store = place.open();
    assert!(store.arrivals().unwrap().is_empty());
    // Installed in another order than by name.
    for id in ["demo.zebra", "demo.apple", "demo.mango"] {
        install(&store, &Release::named(id, 1));
    }
    let expected = ["demo.zebra@1", "demo.apple@1", "demo.mango@1"];
    assert_eq!(arrived(&place), expected);
    install(&store, &Release::named("demo.zebra", 2));
    assert_eq!(arrived(&place), expected);

    // A removed tool loses its position, even if it is installed again.
    store.remove("demo.zebra", now()).unwrap();
    assert_eq!(arrived(&place), ["demo.apple@1", "demo.mango@1"]);
    install(&store, &Release::named("demo.zebra", 3));
    let expected = ["demo.apple@1", "demo.mango@1", "demo.zebra@1"];
    assert_eq!(arrived(&place), expected);

    // The bundle of the first tool is updated to another tool, which comes last.
    let renamed = Release {
        tool: "demo.banana".to_owned(),
        ..Release::named("demo.apple", 2)
    };
    let bundle = renamed.bundle();
    let held = store
        .install(&bundle, &crate::support::options(), &NoLibraries)
        .unwrap();
    let toolward_store::InstallOutcome::Held { held, .. } = held else {
        panic!("expected another surface to be held, found {held:?}");
    };
    let verify = crate::support::verifier();
    store
        .accept("demo.apple", &held.surface, &verify, now())
        .unwrap();
    let expected = ["demo.mango@1", "demo.zebra@1", "demo.banana@1"];
    assert_eq!(arrived(&place), expected);
}

#[test]
fn a_state_of_before_keeps_the_order_that_it_has() {
    let place = Place::new();
    let store = place.open();
    for id in ["demo.zebra", "demo.apple", "demo.mango"] {
        install(&store, &Release::named(id, 1));
    }
    drop(store);
    let sql = rusqlite::Connection::open(place.state()).unwrap();
    sql.execute_batch("DROP TABLE arrival").unwrap();
    let expected = ["demo.zebra@1", "demo.apple@1", "demo.mango@1"];
    assert_eq!(arrived(&place), expected);
    install(&place.open(), &Release::named("demo.zebra", 2));
    assert_eq!(arrived(&place), expected);
}
