//! A directory under work beside verified bundles: it takes none of their ids, and none that belongs to their
//! publishers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use toolward_bundle::content::Content;
use toolward_bundle::text::visible_line;
use toolward_signing::id::Prefix;
use toolward_signing::trust::Publisher;

use crate::error::{Code, Error, Kind};

/// The ids that nothing under work may take: those of verified bundles, and all inside a prefix of their publishers. They
/// stay taken when a bundle or its publisher is withdrawn, since agents know them.
#[derive(Debug, Default)]
pub(crate) struct Reserved {
    /// Bundle and publisher by id.
    ids: BTreeMap<String, String>,
    /// With the publisher's name. A publisher of all ids, by `*` or a bare key, takes in no other ids than those of its
    /// bundles.
    prefixes: Vec<(Prefix, String)>,
}

impl Reserved {
    /// The ids of verified bundles, and of the publishers that signed them.
    pub(crate) fn of(verified: &[Content], publishers: &[Arc<Publisher>]) -> Self {
        let signed = verified.iter().filter(|content| !content.origin.is_dev());
        let ids = signed.flat_map(|content| {
            let publisher = content.origin.publisher();
            let by = format!(
                "{} by {}",
                content.manifest.id,
                visible_line(&publisher, 200)
            );
            ids(content)
                .into_iter()
                .map(move |id| (id.to_owned(), by.clone()))
        });
        let prefixes = publishers.iter().flat_map(|publisher| {
            let narrow = publisher
                .prefixes()
                .iter()
                .filter(|prefix| prefix.as_str() != "*");
            narrow.map(|prefix| (prefix.clone(), visible_line(publisher.name(), 200)))
        });
        Self {
            ids: ids.collect(),
            prefixes: prefixes.collect(),
        }
    }

    /// Refuses what is under work where it takes one of these ids.
    pub(crate) fn check(&self, own: &Content) -> Result<(), Error> {
        for id in ids(own) {
            if let Some(bundle) = self.ids.get(id) {
                return Err(clash(format!("{id} is an id of {bundle}")));
            }
            if let Some((prefix, name)) = self.prefixes.iter().find(|(prefix, _)| prefix.covers(id))
            {
                return Err(clash(format!(
                    "{id} is inside the prefix {prefix} of {name}"
                )));
            }
        }
        Ok(())
    }
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
