//! The facts of a tool, including why no driver serves it. Lists over MCP, records, policy reviews
//! and the command show them.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};
use toolward_contract::tool::Tool;
use toolward_policy::{
    Confirmed, ContextLack, Contract, Decision, Denial, Effects, Policy, Rejection, ToolRoutes,
    Withheld,
};
use toolward_state::Withdrawal;

use super::icon::Icon;
use super::routes::{DriverFacts, LoadedDriver, asks_each_time, changes};
use crate::admission::Gate;
use crate::api::approval::Chained;
use crate::api::result::{CallError, ErrorClass, ErrorCode, Reply};
use crate::recording::RecordedTool;

/// A tool of a host.
///
/// ```
/// use toolward_host::Host;
/// use toolward_policy::Decision;
///
/// fn list(host: &Host) {
///     for tool in host.tools() {
///         for driver in &tool.drivers {
///             let verdict = match &driver.decision {
///                 Decision::Allow(_) => "allowed".to_owned(),
///                 Decision::Ask(_, reasons) => format!("asks: {reasons:?}"),
///                 Decision::Deny(denial) => format!("blocked: {denial}"),
///             };
///             let (id, publisher) = (&tool.contract.id, &tool.publisher);
///             println!("{id} of {publisher}, by {}: {verdict}", driver.id);
///         }
///     }
/// }
/// ```
pub struct ToolFacts {
    /// Its contract. Untrusted text.
    pub contract: Arc<Tool>,
    /// Who published it; `dev:<dir>` for an unsigned bundle.
    pub publisher: Arc<str>,
    /// BLAKE3 of its bundle's manifest, 64 hex digits.
    pub bundle: Arc<str>,
    /// The drivers that may serve it, in order of preference.
    pub drivers: Vec<Arc<DriverFacts>>,
    /// Why drivers of the same publisher can't serve it.
    pub unserved: Unserved,
    /// Its icon, or its bundle's. Untrusted bytes.
    pub icon: Option<Icon>,
    pub(crate) major_id: Arc<str>,
    pub(crate) version: String,
    /// `id@version`, as results name it.
    pub(crate) full_id: Arc<str>,
    /// Whether its bundle is unsigned, in development.
    pub(crate) dev: bool,
    pub(crate) withdrawal: Arc<Withdrawal>,
    /// The admission gates of this tool and of its publisher.
    pub(crate) gates: [Arc<Gate>; 2],
    /// The tool's names in records; `None` unless calls are recorded.
    pub(crate) recorded: Option<RecordedTool>,
}

impl ToolFacts {
    /// The effects of a call by any driver that policy lets run, nested calls included; `None`
    /// without such a driver: then no call can run.
    pub fn effects(&self) -> Option<Effects> {
        let allowed = self.open_drivers().filter_map(|driver| driver.allowed());
        allowed.map(|one| one.effects).reduce(Effects::join)
    }

    /// Why calls without a context can't run, if the contract requires one
    /// and the operator gives none.
    pub fn context(&self) -> Option<&ContextLack> {
        let mut first = None;
        for driver in self.open_drivers() {
            let lack = driver.contexts.lack()?;
            first.get_or_insert(lack);
        }
        first
    }

    /// The claims of the contract that the operator confirms for all of its drivers.
    pub fn confirmed(&self) -> Confirmed {
        let allowed = self.open_drivers().filter_map(|driver| driver.allowed());
        let confirmed = allowed.map(|one| one.confirmed).reduce(Confirmed::and);
        confirmed.unwrap_or_default()
    }

    /// The drivers by which a call may run.
    pub(crate) fn open_drivers(&self) -> impl Iterator<Item = &Arc<DriverFacts>> {
        self.served_drivers().filter(|driver| driver.is_open())
    }

    /// The drivers that were not withdrawn.
    pub(crate) fn served_drivers(&self) -> impl Iterator<Item = &Arc<DriverFacts>> {
        let drivers = self.drivers.iter();
        drivers.filter(|driver| driver.withdrawal.withdrawn().is_none())
    }

    pub(crate) fn is_served(&self) -> bool {
        self.withdrawal.withdrawn().is_none()
    }

    /// This tool as shown in an approval request for another tool that may call it, with the
    /// manifest digests of its bundle and of its drivers' bundles. Also returns whether a person is
    /// asked about this tool each time.
    pub(super) fn chained(
        &self,
        drivers: &[Arc<LoadedDriver>],
        policy: &Policy,
    ) -> (Chained, bool) {
        let publishers: BTreeSet<&str> = drivers.iter().map(|driver| &*driver.publisher).collect();
        let bundles = drivers.iter().map(|driver| &*driver.bundle);
        let bundles = std::iter::once(&*self.bundle).chain(bundles);
        let chained = Chained {
            tool: self.major_id.to_string(),
            publisher: self.publisher.to_string(),
            driver_publishers: publishers.into_iter().map(str::to_owned).collect(),
            bundles: bundles.map(str::to_owned).collect(),
            effects: changes(&self.contract).collect(),
            risk: self.contract.risk_level,
        };
        (chained, asks_each_time(&self.signed(), policy))
    }

    /// The contract as policy decides about it.
    pub(super) fn signed(&self) -> Contract<'_> {
        Contract {
            tool: &self.contract,
            publisher: &self.publisher,
        }
    }

    /// The lines of a policy that would allow a call which the policy blocked. They are for people
    /// and not part of the reply, since an agent may read the reply.
    pub fn lines_to_add(&self, reply: &Reply) -> Option<String> {
        let error = reply.result.as_ref().err()?;
        if !error.is_denial() {
            return None;
        }
        let Some(driver) = &reply.metadata.driver else {
            // Without a driver, only a missing context can have blocked the call.
            return self.context().map(ContextLack::lines_to_add);
        };
        self.denial(driver).map(Denial::lines_to_add)
    }

    /// Fewer lines than [`ToolFacts::lines_to_add`], as an example that grants only some of the
    /// hosts and workspaces.
    pub fn narrower_lines(&self, reply: &Reply) -> Option<String> {
        let driver = reply.metadata.driver.as_ref()?;
        self.denial(driver).map(Denial::narrower_lines)
    }

    fn denial(&self, driver: &str) -> Option<&Denial> {
        self.drivers.iter().find_map(|one| match &one.decision {
            Decision::Deny(denial) if *one.id == *driver => Some(denial),
            _ => None,
        })
    }

    /// The declared hosts and workspaces that a rule with `partial` withholds, over all drivers
    /// that policy lets run.
    pub fn without(&self) -> Vec<&Withheld> {
        let mut all: Vec<&Withheld> = Vec::new();
        for driver in &self.drivers {
            for one in driver.without() {
                if !all.contains(&one) {
                    all.push(one);
                }
            }
        }
        all
    }
}

/// The most drivers that an error names. Each may add [`MAX_TEXT_BYTES`] for each of its reasons.
const MAX_NAMED: usize = 32;

/// The most bytes of one reason in an error, which quotes the driver's document.
const MAX_TEXT_BYTES: usize = 200;

/// Why drivers of the contract's own publisher do not serve it. Callers learn nothing about other
/// publishers' drivers.
#[derive(Debug, Clone, Default)]
pub struct Unserved {
    /// The drivers that can't serve it, by id.
    pub drivers: Vec<UnservedDriver>,
    /// Whether no driver serves the contract, and the region that the policy requires is the only
    /// reason.
    pub only_region: bool,
}

/// A driver that declares a contract but does not serve it.
#[derive(Debug, Clone)]
pub struct UnservedDriver {
    /// Its id.
    pub id: String,
    /// Who published it.
    pub publisher: String,
    /// All reasons, at least one.
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

    /// The drivers with their reasons in the form of an error's cause; `None` without drivers.
    pub(crate) fn cause(&self) -> Option<Value> {
        if self.drivers.is_empty() {
            return None;
        }
        let rejected = self.drivers.iter().take(MAX_NAMED).map(|driver| {
            let reasons = driver.reasons.iter();
            let reasons = reasons.map(|one| json!({ "code": one.code(), "text": text(one) }));
            json!({
                "driver": driver.id,
                "publisher": driver.publisher,
                "reasons": reasons.collect::<Vec<_>>(),
            })
        });
        let rejected: Vec<Value> = rejected.collect();
        let more = self.drivers.len().saturating_sub(MAX_NAMED);
        Some(match more {
            0 => json!({ "rejected": rejected }),
            more => json!({ "rejected": rejected, "more": more }),
        })
    }
}

/// A reason in words, shortened because it quotes the driver's document.
fn text(reason: &Rejection) -> String {
    let mut text = reason.to_string();
    text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
    text
}

/// A tool that a host knows but does not serve, since its bundle is not loaded or was withdrawn.
/// Calls to it end with an error that states this, and not with [`ErrorCode::NOT_FOUND`].
///
/// ```
/// use toolward_host::{ErrorCode, Host, Request, WithheldReason, WithheldTool};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), toolward_host::HostError> {
/// let revoked = WithheldTool {
///     id: "text.stats".to_owned(),
///     major: 1,
///     publisher: "acme".to_owned(),
///     aliases: Vec::new(),
///     mcp_name: None,
///     reason: WithheldReason::Withdrawn,
/// };
/// let host = Host::builder().withheld([revoked]).build()?;
/// let reply = host.call(Request::new("text.stats", "{}")).await;
/// assert_eq!(reply.result.unwrap_err().code, ErrorCode::WITHDRAWN);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithheldTool {
    /// Its id.
    pub id: String,
    /// Its major version.
    pub major: u64,
    /// Its publisher, when its bundle was last verified.
    pub publisher: String,
    /// Its former ids, which callers may still use.
    pub aliases: Vec<String>,
    /// The MCP name that its contract requests.
    pub mcp_name: Option<String>,
    /// Why it is not served.
    pub reason: WithheldReason,
}

/// Why a tool is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithheldReason {
    /// Its bundle does not verify now: it was revoked, it expired, or its publisher is no longer
    /// trusted.
    Withdrawn,
    /// The operator has not accepted the changes of its bundle.
    Held,
}

impl WithheldTool {
    /// The tool of this contract.
    pub fn of(contract: &Tool, publisher: &str, reason: WithheldReason) -> Self {
        Self {
            id: contract.id.to_string(),
            major: contract.version.major,
            publisher: publisher.to_owned(),
            aliases: contract.aliases.clone(),
            mcp_name: contract.mcp_name.clone(),
            reason,
        }
    }

    /// `id@major`.
    pub fn major_id(&self) -> String {
        format!("{}@{}", self.id, self.major)
    }

    /// The error that ends calls to it. The text is for callers: it states neither who withdrew the
    /// bundle nor what changed in it.
    pub fn refusal(&self) -> CallError {
        let tool = self.major_id();
        match self.reason {
            WithheldReason::Withdrawn => withdrawn(
                &tool,
                "its bundle was revoked, has expired or can't be verified now",
            ),
            WithheldReason::Held => CallError::new(
                ErrorCode::HELD,
                ErrorClass::PolicyBlocked,
                format!("`{tool}` is held: its bundle waits until the operator accepts an update"),
            )
            .with_hint(ErrorCode::HELD.ask_the_operator("look at the update")),
        }
    }

    /// Whether `name` is its id, `id@major` or one of its aliases.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.has_id(name) || self.aliases.iter().any(|alias| alias == name)
    }

    /// Whether `name` is its id or `id@major`.
    pub(crate) fn has_id(&self, name: &str) -> bool {
        self.id == name || self.major_id() == name
    }
}

pub(crate) fn withdrawn(tool: &str, reason: &str) -> CallError {
    CallError::new(
        ErrorCode::WITHDRAWN,
        ErrorClass::PolicyBlocked,
        format!("`{tool}` has been withdrawn: {reason}"),
    )
    .with_hint(ErrorCode::WITHDRAWN.ask_the_operator("install another release"))
}
