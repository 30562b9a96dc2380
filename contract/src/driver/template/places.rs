//! Where the placeholders of a request stand in the document.

use std::collections::BTreeMap;

use super::{SlotSource, Template};
use crate::diagnostic::Position;
use crate::source::{Content, Node};

/// The first text that uses each name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    names: BTreeMap<(SlotSource, String), Position>,
}

impl Places {
    /// Those below a value: every text that is a template counts, whichever field it is of.
    pub(in crate::driver) fn of(node: &Node) -> Places {
        let mut places = Places::default();
        places.add(node);
        places
    }

    /// Where a name is used first; `None` where no text of the value uses it.
    pub(in crate::driver) fn find(&self, source: SlotSource, name: &str) -> Option<Position> {
        self.names.get(&(source, name.to_owned())).copied()
    }

    fn add(&mut self, node: &Node) {
        match &node.content {
            Content::Text(text) => {
                let Ok(template) = Template::parse(text) else {
                    return;
                };
                for source in [SlotSource::Input, SlotSource::Context] {
                    for name in template.names(source) {
                        let key = (source, name.to_owned());
                        self.names.entry(key).or_insert(node.at);
                    }
                }
            }
            Content::List(items) => items.iter().for_each(|item| self.add(item)),
            Content::Mapping(entries) => entries.iter().for_each(|entry| self.add(&entry.value)),
            _ => {}
        }
    }
}
