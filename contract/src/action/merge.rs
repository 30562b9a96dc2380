//! The narrowing rules: the fields that a contract inherits from its action, and the action's
//! limits that the contract must not relax (AIP-14, "Action implementation"). `reference` finds the
//! action.

use super::{Action, Implementation};
use crate::capability::{Capability, CapabilitySet, Class};
use crate::codes;
use crate::diagnostic::{FileReport, Position};
use crate::shared::{self, RequiresParts};
use crate::source::PlacedValue;
use crate::terms::{Approval, Requires};

/// The claims of a contract before its action is merged in. `None` means not stated, or not valid.
pub(crate) struct Claims {
    pub(crate) mutates: Option<PlacedValue<CapabilitySet>>,
    pub(crate) requires: RequiresParts,
    pub(crate) approval: Option<PlacedValue<Approval>>,
    pub(crate) risk_level: Option<PlacedValue<u8>>,
    pub(crate) category: Option<PlacedValue<String>>,
    pub(crate) target_kind: Option<PlacedValue<String>>,
    pub(crate) fires_events: Option<PlacedValue<Vec<String>>>,
}

/// The terms that apply to a contract after the merge.
pub(crate) struct MergedTerms {
    pub(crate) mutates: CapabilitySet,
    pub(crate) requires: Requires,
    pub(crate) approval: Approval,
    pub(crate) risk_level: u8,
    pub(crate) fires_events: Vec<String>,
}

/// Merges an action into a contract's claims. Reports each claim that exceeds the action's limits,
/// with both values.
pub(crate) fn merge(
    claims: Claims,
    implements: Option<&Option<Implementation>>,
    report: &FileReport<'_>,
) -> MergedTerms {
    let Some(Some(Implementation { action, .. })) = implements else {
        // Some fields have no meaning without an action. An action that is named but not found
        // might give them one.
        if implements.is_none() {
            refuse_alone(&claims, report);
        }
        return unmerged(claims);
    };
    let floor = Floor { action, report };
    let merged = MergedTerms {
        mutates: floor.mutates(claims.mutates),
        requires: floor.requires(&claims.requires),
        approval: floor.approval(claims.approval),
        risk_level: floor.risk_level(claims.risk_level),
        fires_events: floor.fires_events(claims.fires_events),
    };
    floor.fixed("category", claims.category, action.category.as_deref());
    let target_kind = action.effective_target_kind();
    floor.fixed("target_kind", claims.target_kind, target_kind);
    merged
}

/// An action as the minimum for a contract.
struct Floor<'a> {
    action: &'a Action,
    report: &'a FileReport<'a>,
}

impl Floor<'_> {
    fn widened(&self, at: Position, field: &str, rule: &str, floor: &str, claim: &str) {
        let message = format!(
            "expected `{field}` {rule} (action `{}`: {floor}), found {claim}",
            self.action.id
        );
        let hint = format!("leave `{field}` out to inherit it");
        self.report
            .add_with_hint(&codes::ACTION_WIDENED, at, message, hint);
    }

    /// Returns the claim, or the action's value if there is no claim. Reports a claim that `holds`
    /// refuses.
    fn claimed<T: Clone>(
        &self,
        claim: Option<PlacedValue<T>>,
        (field, rule, floor): (&str, &str, &T),
        holds: impl FnOnce(&T) -> bool,
        shown: fn(&T) -> String,
    ) -> T {
        let Some(claim) = claim else {
            return floor.clone();
        };
        if !holds(&claim.value) {
            self.widened(claim.at, field, rule, &shown(floor), &shown(&claim.value));
        }
        claim.value
    }

    fn mutates(&self, claim: Option<PlacedValue<CapabilitySet>>) -> CapabilitySet {
        let floor = &self.action.mutates;
        let of = ("mutates", "to include all that the action mutates", floor);
        let own = self.claimed(claim, of, |own| own.covers(floor), ToString::to_string);
        own.union(floor)
    }

    fn requires(&self, claim: &RequiresParts) -> Requires {
        let mut capabilities = claim.all().capabilities;
        for (key, class) in Class::required() {
            let of_class =
                |set: &CapabilitySet| -> CapabilitySet { set.of_class(class).cloned().collect() };
            let floor = of_class(&self.action.requires.capabilities);
            let own = of_class(&capabilities);
            let mut parts = claim.parts.iter();
            if let Some((_, _, given)) = parts.find(|(_, of, _)| of == class)
                && !own.covers(&floor)
            {
                let rule = "to include all that the action requires";
                let field = format!("requires.{key}");
                self.widened(given.at, &field, rule, &spelled(&floor), &spelled(&own));
            }
            capabilities = capabilities.union(&floor);
        }
        Requires { capabilities }
    }

    fn approval(&self, claim: Option<PlacedValue<Approval>>) -> Approval {
        let floor = &self.action.approval;
        let Some(claim) = claim else {
            return floor.clone();
        };
        if claim.value.effective() < floor.effective() {
            let rule = "to be at least as strict as the action's";
            let (floor, own) = (floor.to_string(), claim.value.to_string());
            self.widened(claim.at, "approval", rule, &floor, &own);
            return self.action.approval.clone();
        }
        // Policies are resolved elsewhere. An unresolved policy can't be compared with another
        // policy, and must not replace `always`.
        let own = claim.value;
        let asks_always = floor.effective() == Approval::Always;
        if matches!(own, Approval::Policy(_)) && asks_always && own != *floor {
            return Approval::Always;
        }
        own
    }

    fn risk_level(&self, claim: Option<PlacedValue<u8>>) -> u8 {
        let floor = &self.action.risk_level;
        let of = ("risk_level", "to be at least the action's", floor);
        let own = self.claimed(claim, of, |own| own >= floor, ToString::to_string);
        own.max(*floor)
    }

    fn fires_events(&self, claim: Option<PlacedValue<Vec<String>>>) -> Vec<String> {
        let floor = &self.action.fires_events;
        let Some(claim) = claim else {
            return floor.clone();
        };
        if !floor.iter().all(|event| claim.value.contains(event)) {
            let rule = "to include all events of the action";
            let (floor, own) = (floor.join(", "), claim.value.join(", "));
            self.widened(claim.at, "fires_events", rule, &floor, &own);
        } else if !claim.value.is_empty() {
            shared::without_effect("fires_events", claim.at, shared::NO_EVENTS, self.report);
        }
        claim.value
    }

    /// Checks a field in which a contract can only repeat the action's value.
    fn fixed(&self, field: &str, claim: Option<PlacedValue<String>>, floor: Option<&str>) {
        // An empty text counts as missing.
        let floor = floor.unwrap_or_default();
        if let Some(claim) = claim.filter(|claim| claim.value != floor) {
            let message = format!(
                "expected `{field}` as the action has it (action `{}`: {}), found {}",
                self.action.id,
                if floor.is_empty() { "none" } else { floor },
                claim.value
            );
            self.report
                .add(&codes::ACTION_OVERRIDDEN, claim.at, message);
        }
    }
}

/// Refuses the fields that have a meaning only with an action.
fn refuse_alone(claims: &Claims, report: &FileReport<'_>) {
    let places = [
        ("category", claims.category.as_ref().map(|claim| claim.at)),
        (
            "target_kind",
            claims.target_kind.as_ref().map(|claim| claim.at),
        ),
        (
            "fires_events",
            claims.fires_events.as_ref().map(|claim| claim.at),
        ),
    ];
    for (field, at) in places {
        if let Some(at) = at {
            let message = format!("expected `{field}` only beside `implements`, found it alone");
            report.add(&codes::ACTION_FIELD_ALONE, at, message);
        }
    }
}

fn unmerged(claims: Claims) -> MergedTerms {
    MergedTerms {
        mutates: claims.mutates.map(|claim| claim.value).unwrap_or_default(),
        requires: claims.requires.all(),
        approval: claims.approval.map_or(Approval::Auto, |claim| claim.value),
        risk_level: claims.risk_level.map_or(0, |claim| claim.value),
        fires_events: Vec::new(),
    }
}

/// The scopes of one class, formatted as in the field.
fn spelled(set: &CapabilitySet) -> String {
    let scopes: Vec<String> = set.iter().map(Capability::scope).collect();
    format!("[{}]", scopes.join(", "))
}
