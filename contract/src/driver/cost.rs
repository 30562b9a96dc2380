//! What a call costs: `cost_override` of a driver and of its entries. TOOL.md has a class and no units.

use std::fmt;

use serde::Serialize;

use super::{Driver, Implements};
use crate::codes;
use crate::diagnostic::Report;
use crate::shared;
use crate::source::Fields;
use crate::terms::CostClass;
use crate::tool::Tool;

/// `cost_override`. `None`: what stands above it, which is the driver's for an entry, and the contract's for a driver.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CostOverride {
    /// Cost of a call, finite and not negative. AIP-30 counts in thousandths of a cent.
    pub cost_units_per_call: Option<f64>,
    /// Replaces the contract's class.
    pub cost_class: Option<CostClass>,
    /// Three capital letters, as in ISO 4217.
    pub currency: Option<String>,
}

/// What a call of a contract through a driver costs, as its publishers say.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Cost {
    /// Cost of a call, finite and not negative; `None` where nobody states it.
    pub units_per_call: Option<f64>,
    /// The currency, where one is stated. Nothing is converted.
    pub currency: Option<String>,
    /// The class.
    pub class: CostClass,
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.units_per_call {
            Some(units) => write!(f, "{units}")?,
            None => f.write_str("unpriced")?,
        }
        if let (Some(_), Some(currency)) = (self.units_per_call, &self.currency) {
            write!(f, " {currency}")?;
        }
        match self.class {
            CostClass::Trivial => Ok(()),
            class => write!(f, ", {class}"),
        }
    }
}

impl Driver {
    /// What a call of `tool` through `entry` costs: each part is the entry's, else the driver's, else the contract's.
    #[must_use]
    pub fn cost(&self, tool: &Tool, entry: &Implements) -> Cost {
        let (entry, driver) = (&entry.cost_override, &self.cost_override);
        let units = entry.cost_units_per_call.or(driver.cost_units_per_call);
        let currency = entry.currency.as_ref().or(driver.currency.as_ref());
        let class = entry.cost_class.or(driver.cost_class);
        Cost {
            units_per_call: units,
            currency: currency.cloned(),
            class: class.unwrap_or(tool.cost_class),
        }
    }
}

/// Reads `cost_override` of a driver or of an entry.
pub(super) fn read(fields: &mut Fields<'_>, report: &mut Report<'_>) -> CostOverride {
    let Some(mut inner) = report.fields(fields.take("cost_override")) else {
        return CostOverride::default();
    };
    let units = inner.take("cost_units_per_call");
    let cost_units_per_call = units.and_then(|field| report.amount(&field));
    let cost_class = shared::cost_class(&mut inner, report);
    let currency = inner.take("currency").and_then(|field| {
        let found = report.read(field.text())?;
        if found.len() == 3 && found.chars().all(|c| c.is_ascii_uppercase()) {
            return Some(found.to_owned());
        }
        let name = &field.name;
        let message = format!("expected `{name}` to be three capital letters, found {found:?}");
        report.add(&codes::WRONG_VALUE, field.at, message);
        None
    });
    report.unknown(inner);
    CostOverride {
        cost_units_per_call,
        cost_class,
        currency,
    }
}
