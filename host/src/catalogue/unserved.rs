//! Why a tool that no driver serves has none: for people in words, for programs in codes.

use std::fmt;

use serde_json::{Value, json};
use toolward_policy::{Rejection, ToolRoutes};

/// How many drivers an error names. Each of them may hold [`MAX_TEXT_BYTES`] for each reason.
const MAX_NAMED: usize = 32;

/// Longest text of one reason in an error, in bytes: it quotes the driver's document.
const MAX_TEXT_BYTES: usize = 200;

/// Why drivers of the contract's own publisher do not serve it. Callers are not told about other publishers' drivers.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Unserved {
    /// Those drivers, by id.
    pub drivers: Vec<UnservedDriver>,
    /// Whether no driver serves the contract, and only the region that the policy asks for is in the way.
    pub only_region: bool,
}

/// A driver that says it implements a contract, and does not serve it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UnservedDriver {
    /// Its id.
    pub id: String,
    /// Who published it.
    pub publisher: String,
    /// Every reason; at least one.
    pub reasons: Vec<Rejection>,
}

impl fmt::Display for UnservedDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reasons: Vec<String> = self.reasons.iter().map(text).collect();
        write!(f, "the driver `{}`: {}", self.id, reasons.join("; "))
    }
}

impl Unserved {
    pub(super) fn of(planned: &ToolRoutes<'_>) -> Self {
        let own = planned
            .rejected
            .iter()
            .filter(|rejected| rejected.implementation.publisher == planned.contract.publisher);
        let drivers = own.map(|rejected| UnservedDriver {
            id: rejected.implementation.driver.id.to_string(),
            publisher: rejected.implementation.publisher.to_owned(),
            reasons: rejected.reasons.clone(),
        });
        Self {
            drivers: drivers.collect(),
            only_region: planned.lacks_only_region(),
        }
    }

    /// The drivers with their reasons, as an error's cause has them; `None` if there are none.
    pub(crate) fn cause(&self) -> Option<Value> {
        if self.drivers.is_empty() {
            return None;
        }
        let rejected: Vec<Value> = self
            .drivers
            .iter()
            .take(MAX_NAMED)
            .map(|driver| {
                let reasons = driver.reasons.iter();
                let reasons = reasons.map(|one| json!({ "code": one.code(), "text": text(one) }));
                json!({
                    "driver": driver.id,
                    "publisher": driver.publisher,
                    "reasons": reasons.collect::<Vec<_>>(),
                })
            })
            .collect();
        let more = self.drivers.len().saturating_sub(MAX_NAMED);
        Some(match more {
            0 => json!({ "rejected": rejected }),
            more => json!({ "rejected": rejected, "more": more }),
        })
    }
}

/// A reason in words. What a driver's document says of itself may be long.
fn text(reason: &Rejection) -> String {
    let mut text = reason.to_string();
    text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
    text
}
