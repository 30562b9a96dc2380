//! What a tool of some bundles reaches over `requires.tools`, for explanations.

use std::collections::BTreeSet;

use toolward_bundle::content::Content;
use toolward_contract::capability::{Capability, Class};
use toolward_contract::driver::Driver;
use toolward_contract::tool::Tool;
use toolward_policy::{Effects, Request};

pub(crate) fn reachable<'a>(
    contents: impl Iterator<Item = &'a Content> + Clone,
    tool: &Tool,
    driver: &Driver,
) -> Request {
    let mut seen = BTreeSet::new();
    let mut open = called(tool, driver);
    let mut effects = Effects::default();
    while let Some(name) = open.pop() {
        let tools = contents.clone().flat_map(|content| &content.tools);
        let named = tools.map(|entry| entry.tool.as_ref());
        let named = named.filter(|tool| tool.id.as_str() == name || tool.major_id() == name);
        for tool in named {
            if !seen.insert(tool.major_id()) {
                continue;
            }
            for entry in contents
                .clone()
                .flat_map(|content| content.drivers_for(tool))
            {
                effects = effects.join(Effects::of(tool, &entry.driver));
                open.extend(called(tool, &entry.driver));
            }
        }
    }
    Request::reaching(effects)
}

fn called(tool: &Tool, driver: &Driver) -> Vec<String> {
    let declared = tool.declaration().union(&driver.requires.capabilities);
    declared
        .of_class(&Class::Tool)
        .map(Capability::scope)
        .collect()
}
