//! Finding tools among installed bundles.

use crate::support::{Place, Release, install, now};

#[test]
fn installed_tools_are_found_by_id_description_tag_and_publisher() {
    let place = Place::new();
    let store = place.open();
    install(&store, &Release::named("demo.alpha", 1));
    let beta = Release {
        description: "Says goodbye.".to_owned(),
        ..Release::named("demo.beta", 1)
    };
    install(&store, &beta);
    let ids = |query: &str| -> Vec<String> {
        let found = store.search(query, 10).unwrap();
        found.into_iter().map(|tool| tool.entry.id).collect()
    };
    assert_eq!(ids("ALPHA"), ["demo.alpha"]);
    assert_eq!(ids("goodbye"), ["demo.beta"]);
    assert_eq!(ids("greeting"), ["demo.alpha", "demo.beta"]);
    assert_eq!(ids("acme").len(), 2);
    assert_eq!(store.search("acme", 1).unwrap().len(), 1);
    let tools = store.tools().unwrap();
    assert_eq!(tools[0].major_id, "demo.alpha@1");
    assert_eq!(tools[0].entry.tags, ["greeting"]);
    assert_eq!(tools[1].bundle, "demo.beta");
    store.remove("demo.beta", now()).unwrap();
    assert!(ids("goodbye").is_empty());
}
