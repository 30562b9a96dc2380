//! What a contract or a driver of the same major version does now and did not do before: changes and needs that were
//! added, inputs and outputs that are dropped.

use toolward_bundle::codes;
use toolward_bundle::documents::Located;
use toolward_contract::capability::CapabilitySet;
use toolward_contract::diagnostic::Diagnostic;
use toolward_contract::driver::Driver;
use toolward_contract::tool::Tool;

use super::line;

/// Capabilities that a field of a contract gained.
pub(super) struct AddedEffects {
    pub(super) field: &'static str,
    capabilities: CapabilitySet,
}

impl AddedEffects {
    pub(super) fn says(&self) -> String {
        let added: Vec<String> = self.capabilities.iter().map(ToString::to_string).collect();
        format!("has {}", added.join(", "))
    }
}

/// What `new` declares and `old` did not. A caller, or a driver of another bundle, relied on less.
pub(super) fn added(old: &Tool, new: &Tool) -> Vec<AddedEffects> {
    let fields = [
        ("mutates", &old.mutates, &new.mutates),
        (
            "requires",
            &old.requires.capabilities,
            &new.requires.capabilities,
        ),
    ];
    let gained = fields.into_iter().map(|(field, old, new)| AddedEffects {
        field,
        capabilities: old.missing(new),
    });
    gained
        .filter(|gained| !gained.capabilities.is_empty())
        .collect()
}

/// Inputs and outputs that a driver carried before and drops in the same major version.
pub(super) fn dropped(old: &Driver, new: &Located<Driver>) -> Vec<Diagnostic> {
    let driver = &new.value;
    let (before, now) = (&old.version, &driver.version);
    if line(before.major, before.minor) != line(now.major, now.minor) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for entry in &driver.implements {
        let Some(earlier) = old
            .implements
            .iter()
            .find(|earlier| earlier.named() == entry.named())
        else {
            continue;
        };
        let lists = [
            ("drop_inputs", &earlier.drop_inputs, &entry.drop_inputs),
            ("drop_outputs", &earlier.drop_outputs, &entry.drop_outputs),
        ];
        for (field, earlier, dropped) in lists {
            let added = dropped.iter().filter(|name| !earlier.contains(name));
            found.extend(added.map(|name| {
                let message = format!(
                    "`{field}` of {} has {name:?}, unlike {} {before}",
                    entry.named(),
                    driver.id
                );
                Diagnostic::new(&codes::DRIVER_DROPS_ADDED, &new.path, entry.at, message)
                    .with_hint("give the driver a new major version, or carry the value as before")
            }));
        }
    }
    found
}
