//! The narrowing rules: what a contract inherits from its action, and what it must not relax (AIP-14,
//! "Action implementation"). Finds no action.

use super::Action;
use crate::capability::{CapabilitySet, Class};
use crate::codes;
use crate::diagnostic::{Position, Report};
use crate::shared::{Given, GivenRequires};
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
pub(crate) fn merge(
    claims: Claims,
    action: Option<(&Action, Position)>,
    report: &mut Report<'_>,
) -> Merged {
    let Some((action, _)) = action else {
        return alone(claims, report);
    };
    let mut widened = |at: Position, field: &str, rule: &str, floor: String, claim: String| {
        let message = format!(
            "expected `{field}` {rule} (action `{}`: {floor}), found {claim}",
            action.id
        );
        let hint = format!("leave `{field}` out to inherit it");
        report.add_with_hint(&codes::ACTION_WIDENED, at, message, hint);
    };

    let mutates = match &claims.mutates {
        None => action.mutates.clone(),
        Some(given) => {
            if !given.value.covers(&action.mutates) {
                let rule = "to include all that the action mutates";
                widened(
                    given.at,
                    "mutates",
                    rule,
                    action.mutates.to_string(),
                    given.value.to_string(),
                );
            }
            given.value.union(&action.mutates)
        }
    };
    let mut requires = claims.requires.all().capabilities;
    for (key, class) in Class::required() {
        let floor: CapabilitySet = action
            .requires
            .capabilities
            .of_class(class)
            .cloned()
            .collect();
        let said = claims
            .requires
            .parts
            .iter()
            .filter(|(_, given_class, _)| given_class == class);
        let places: Vec<Position> = said.map(|(_, _, given)| given.at).collect();
        let own: CapabilitySet = requires.of_class(class).cloned().collect();
        if let Some(&at) = places.first()
            && !own.covers(&floor)
        {
            let rule = "to include all that the action requires";
            widened(
                at,
                &format!("requires.{key}"),
                rule,
                spelled(&floor, class),
                spelled(&own, class),
            );
        }
        requires = requires.union(&floor);
    }
    let approval = match &claims.approval {
        None => action.approval.clone(),
        Some(given) if given.value.effective() < action.approval.effective() => {
            widened(
                given.at,
                "approval",
                "to be at least as strict as the action's",
                action.approval.to_string(),
                given.value.to_string(),
            );
            action.approval.clone()
        }
        // Two policies that differ can't be compared: each counts as `always`.
        Some(given) => match (&given.value, &action.approval) {
            (Approval::Policy(own), Approval::Policy(floor)) if own != floor => Approval::Always,
            _ => given.value.clone(),
        },
    };
    let risk_level = match &claims.risk_level {
        None => action.risk_level,
        Some(given) => {
            if given.value < action.risk_level {
                widened(
                    given.at,
                    "risk_level",
                    "to be at least the action's",
                    action.risk_level.to_string(),
                    given.value.to_string(),
                );
            }
            given.value.max(action.risk_level)
        }
    };
    let fires_events = match &claims.fires_events {
        None => action.fires_events.clone(),
        Some(given) => {
            if !action
                .fires_events
                .iter()
                .all(|event| given.value.contains(event))
            {
                let rule = "to include all events of the action";
                widened(
                    given.at,
                    "fires_events",
                    rule,
                    action.fires_events.join(", "),
                    given.value.join(", "),
                );
            }
            given.value.clone()
        }
    };
    for (field, claim, floor) in [
        ("category", &claims.category, &action.category),
        ("target_kind", &claims.target_kind, &action.target_kind),
    ] {
        if let Some(given) = claim
            && floor.as_ref() != Some(&given.value)
        {
            let floor = floor.as_deref().unwrap_or("none");
            let message = format!(
                "expected `{field}` as the action has it (action `{}`: {floor}), found {}",
                action.id, given.value
            );
            report.add(&codes::ACTION_OVERRIDDEN, given.at, message);
        }
    }
    Merged {
        mutates,
        requires: Requires {
            capabilities: requires,
        },
        approval,
        risk_level,
        fires_events,
    }
}

fn alone(claims: Claims, report: &mut Report<'_>) -> Merged {
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
