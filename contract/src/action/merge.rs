//! The narrowing rules: what a contract inherits from its action, and what it must not relax (AIP-14,
//! "Action implementation"). Finds no action.

use super::{Action, Implements};
use crate::capability::{CapabilitySet, Class};
use crate::codes;
use crate::diagnostic::{Position, Report};
use crate::shared::{self, Given, GivenRequires};
use crate::terms::{Approval, Requires};

/// What a contract says itself, before its action is merged in. `None`: not said.
pub(crate) struct Claims {
    pub(crate) mutates: Option<Given<CapabilitySet>>,
    pub(crate) requires: GivenRequires,
    pub(crate) approval: Option<Given<Approval>>,
    pub(crate) risk_level: Option<Given<u8>>,
    pub(crate) category: Option<Given<String>>,
    pub(crate) target_kind: Option<Given<String>>,
    pub(crate) fires_events: Option<Given<Vec<String>>>,
}

/// What holds for a contract.
pub(crate) struct Merged {
    pub(crate) mutates: CapabilitySet,
    pub(crate) requires: Requires,
    pub(crate) approval: Approval,
    pub(crate) risk_level: u8,
    pub(crate) fires_events: Vec<String>,
}

/// Merges an action into a contract's claims; every widening is reported with both values.
pub(crate) fn merge(claims: Claims, implements: &Implements, report: &mut Report<'_>) -> Merged {
    let Some(action) = implements.action() else {
        // Of an action that was not found nothing is known.
        if matches!(implements, Implements::Nothing) {
            refuse_alone(&claims, report);
        }
        return unmerged(claims);
    };
    let mut floor = Floor { action, report };
    let merged = Merged {
        mutates: floor.mutates(claims.mutates),
        requires: floor.requires(&claims.requires),
        approval: floor.approval(claims.approval),
        risk_level: floor.risk_level(claims.risk_level),
        fires_events: floor.fires_events(claims.fires_events),
    };
    floor.fixed("category", claims.category, action.category.as_deref());
    floor.fixed(
        "target_kind",
        claims.target_kind,
        action.effective_target_kind(),
    );
    merged
}

/// An action, below which a contract must not go.
struct Floor<'a, 'r, 'f> {
    action: &'a Action,
    report: &'r mut Report<'f>,
}

impl Floor<'_, '_, '_> {
    fn widened(&mut self, at: Position, field: &str, rule: &str, floor: &str, claim: &str) {
        let message = format!(
            "expected `{field}` {rule} (action `{}`: {floor}), found {claim}",
            self.action.id
        );
        let hint = format!("leave `{field}` out to inherit it");
        self.report
            .add_with_hint(&codes::ACTION_WIDENED, at, message, hint);
    }

    fn mutates(&mut self, claim: Option<Given<CapabilitySet>>) -> CapabilitySet {
        let floor = &self.action.mutates;
        let Some(given) = claim else {
            return floor.clone();
        };
        if !given.value.covers(floor) {
            let rule = "to include all that the action mutates";
            let (floor, claim) = (floor.to_string(), given.value.to_string());
            self.widened(given.at, "mutates", rule, &floor, &claim);
        }
        given.value.union(&self.action.mutates)
    }

    fn requires(&mut self, claim: &GivenRequires) -> Requires {
        let mut requires = claim.all().capabilities;
        for (key, class) in Class::required() {
            let required = self.action.requires.capabilities.of_class(class);
            let floor: CapabilitySet = required.cloned().collect();
            let own: CapabilitySet = requires.of_class(class).cloned().collect();
            let mut parts = claim.parts.iter();
            if let Some((_, _, given)) = parts.find(|(_, of, _)| of == class)
                && !own.covers(&floor)
            {
                let rule = "to include all that the action requires";
                let field = format!("requires.{key}");
                let (floor, own) = (spelled(&floor, class), spelled(&own, class));
                self.widened(given.at, &field, rule, &floor, &own);
            }
            requires = requires.union(&floor);
        }
        Requires {
            capabilities: requires,
        }
    }

    fn approval(&mut self, claim: Option<Given<Approval>>) -> Approval {
        let floor = &self.action.approval;
        let Some(given) = claim else {
            return floor.clone();
        };
        if given.value.effective() < floor.effective() {
            let rule = "to be at least as strict as the action's";
            let (floor, claim) = (floor.to_string(), given.value.to_string());
            self.widened(given.at, "approval", rule, &floor, &claim);
            return self.action.approval.clone();
        }
        // What a policy asks for is known only to who resolves it: it can't be compared with another one,
        // and must not replace `always`.
        let own = given.value;
        let asks_always = floor.effective() == Approval::Always;
        if matches!(own, Approval::Policy(_)) && asks_always && own != *floor {
            return Approval::Always;
        }
        own
    }

    fn risk_level(&mut self, claim: Option<Given<u8>>) -> u8 {
        let floor = self.action.risk_level;
        let Some(given) = claim else {
            return floor;
        };
        if given.value < floor {
            let rule = "to be at least the action's";
            let (floor, claim) = (floor.to_string(), given.value.to_string());
            self.widened(given.at, "risk_level", rule, &floor, &claim);
        }
        given.value.max(floor)
    }

    fn fires_events(&mut self, claim: Option<Given<Vec<String>>>) -> Vec<String> {
        let floor = &self.action.fires_events;
        let Some(given) = claim else {
            return floor.clone();
        };
        if !floor.iter().all(|event| given.value.contains(event)) {
            let rule = "to include all events of the action";
            let (floor, claim) = (floor.join(", "), given.value.join(", "));
            self.widened(given.at, "fires_events", rule, &floor, &claim);
        } else if !given.value.is_empty() {
            shared::without_effect("fires_events", given.at, shared::NO_EVENTS, self.report);
        }
        given.value
    }

    /// A field that a contract can only repeat.
    fn fixed(&mut self, field: &str, claim: Option<Given<String>>, floor: Option<&str>) {
        let Some(given) = claim else { return };
        // An empty text is as good as none.
        if floor.unwrap_or_default() != given.value {
            let message = format!(
                "expected `{field}` as the action has it (action `{}`: {}), found {}",
                self.action.id,
                floor.filter(|floor| !floor.is_empty()).unwrap_or("none"),
                given.value
            );
            self.report
                .add(&codes::ACTION_OVERRIDDEN, given.at, message);
        }
    }
}

/// Refuses the fields that only an action gives a meaning.
fn refuse_alone(claims: &Claims, report: &mut Report<'_>) {
    let places = [
        ("category", claims.category.as_ref().map(|given| given.at)),
        (
            "target_kind",
            claims.target_kind.as_ref().map(|given| given.at),
        ),
        (
            "fires_events",
            claims.fires_events.as_ref().map(|given| given.at),
        ),
    ];
    for (field, at) in places {
        if let Some(at) = at {
            let message = format!("expected `{field}` only beside `implements`, found it alone");
            report.add(&codes::ACTION_FIELD_ALONE, at, message);
        }
    }
}

fn unmerged(claims: Claims) -> Merged {
    Merged {
        mutates: claims.mutates.map(|given| given.value).unwrap_or_default(),
        requires: claims.requires.all(),
        approval: claims.approval.map_or(Approval::Auto, |given| given.value),
        risk_level: claims.risk_level.map_or(0, |given| given.value),
        fires_events: Vec::new(),
    }
}

/// The scopes of one class as the field lists them.
fn spelled(set: &CapabilitySet, class: &Class) -> String {
    let scopes: Vec<String> = set
        .of_class(class)
        .map(crate::capability::Capability::scope)
        .collect();
    format!("[{}]", scopes.join(", "))
}
