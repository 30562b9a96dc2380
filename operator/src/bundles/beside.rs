//! A directory under work beside verified bundles: it takes none of their ids, and none that belongs to their
//! publishers.

use std::collections::BTreeSet;

use toolward_bundle::content::Content;
use toolward_bundle::text::visible_line;
use toolward_signing::trust::TrustStore;

use crate::error::{Code, Error, Kind};

/// Refuses what is under work where one of its ids is an id of a verified bundle, or lies inside a prefix of such a
/// bundle's publisher. A publisher of all ids, by `*` or a bare key, takes in no other ids than those of its bundles.
pub(super) fn check(own: &Content, verified: &[Content], trust: &TrustStore) -> Result<(), Error> {
    let own = ids(own);
    for content in verified {
        let publisher = content.origin.publisher();
        let (bundle, name) = (&content.manifest.id, visible_line(&publisher, 200));
        if let Some(id) = own.intersection(&ids(content)).next() {
            return Err(clash(format!("{id} is an id of {bundle} by {name}")));
        }
        let prefixes = trust.publisher(&publisher).map(|known| known.prefixes());
        let mut prefixes = prefixes.into_iter().flatten();
        let inside = prefixes
            .by_ref()
            .filter(|prefix| prefix.as_str() != "*")
            .find_map(|prefix| own.iter().find(|id| prefix.covers(id)).zip(Some(prefix)));
        if let Some((id, prefix)) = inside {
            return Err(clash(format!(
                "{id} is inside the prefix {prefix} of {name}, who made {bundle}"
            )));
        }
    }
    Ok(())
}

fn clash(what: String) -> Error {
    let message = format!("the directory of --dev does not go with the bundles beside it: {what}");
    Error::new(Kind::Refused, Code::DevClash, message)
        .hint("give what is under work an id of its own, or name it alone")
}

/// The ids of a bundle and of all that it brings, of tools without their versions.
fn ids(content: &Content) -> BTreeSet<&str> {
    let tools = content.tools.iter().map(|entry| entry.tool.id.as_str());
    let drivers = content.drivers.iter().map(|entry| &entry.driver);
    let drivers = drivers.chain(&content.denied);
    let prompts = content.prompts.iter().map(|entry| entry.prompt.id.as_str());
    tools
        .chain(drivers.map(|driver| driver.id.as_str()))
        .chain(prompts)
        .chain([content.manifest.id.as_str()])
        .collect()
}
