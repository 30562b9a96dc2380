//! The approval request that a person sees before a call runs, and their verdict. The
//! stage that asks is [`crate::pipeline::approve`].

mod verdict;

use serde_json::Value;
use toolward_sandbox::imports::BoxFuture;

pub(crate) use verdict::Marks;
pub use verdict::{ApprovalKeys, ApprovalScope, Remembered, Verdict};

/// A request for a person's approval of one call. Its texts come from bundles and
/// callers and are untrusted: show them through [`toolward_bundle::text::visible`].
#[derive(Debug, Clone)]
pub struct ApprovalRequest {
    /// The invocation's id.
    pub invocation: String,
    /// Who calls.
    pub principal: String,
    /// The tool as `id@version`.
    pub tool: String,
    /// The tool as `id@major`.
    pub tool_id: String,
    /// Its display name.
    pub name: String,
    /// Who published the contract.
    pub publisher: String,
    /// BLAKE3 of the manifest of the contract's bundle, 64 hex digits.
    pub bundle: String,
    /// The driver that would run.
    pub driver: String,
    /// Who published the driver.
    pub driver_publisher: String,
    /// BLAKE3 of the manifest of the driver's bundle, 64 hex digits.
    pub driver_bundle: String,
    /// The hosts that the driver declares.
    pub driver_hosts: Vec<String>,
    /// The regions that the driver claims.
    pub driver_regions: Vec<String>,
    /// The drivers that take over, in this order, if `driver` fails. An approval covers these
    /// drivers, so show all of them or don't accept an approval.
    pub fallbacks: Vec<NamedDriver>,
    /// The input as it would be used, with `[hidden]` for each value that the contract marks
    /// `writeOnly` or `x-sensitive`.
    pub input: Value,
    /// The request that the host makes for this call; `None` unless the driver is of `kind: http`.
    pub request: Option<ShownRequest>,
    /// A digest of the whole input, hidden values and the call's context included. An approval of
    /// [`ApprovalScope::Call`] holds only for this digest. Equal inputs have equal digests as long
    /// as the process runs.
    pub input_digest: [u8; 32],
    /// The effects that the call itself may have, such as `changes workspace:/notes`. The effects
    /// of nested calls are in `chain`.
    pub effects: Vec<String>,
    /// The highest risk level, 0 to 3, of the contract and of all tools it may call.
    pub risk: u8,
    /// Why a person is asked.
    pub reasons: Vec<String>,
    /// The cost of a call, if it is expensive.
    pub cost: Option<String>,
    /// Whether a person must be asked each time, so that the verdict must not be remembered.
    pub each_time: bool,
    /// Whether `preapproved` in a grant of the policy could replace the person's answer.
    pub can_be_preapproved: bool,
    /// Tools that the call may call in turn and that the approval also covers, at most 20. Tools
    /// that change something come first. Show all of them, each with all its effects, or don't
    /// accept an approval.
    pub chain: Vec<Chained>,
    /// Tools that the call may call in turn and that the approval does not cover. Each is approved
    /// separately, if it needs approval.
    pub apart: Vec<String>,
    /// The tools that led to this call, outermost first; empty if the host's caller
    /// made it.
    pub called_by: Vec<String>,
    /// The manifest digests of the bundles of the tools in `called_by`, and of their drivers'
    /// bundles.
    pub called_by_bundles: Vec<String>,
    /// What the approver reports about this request before the verdict.
    pub(crate) marks: Marks,
}

impl ApprovalRequest {
    /// Reports that a person sees the request from now on. Events and the ledger record this time,
    /// or the time of the verdict if the approver does not call this method.
    pub fn mark_asked(&self) {
        self.marks.asked.send_replace(true);
    }

    /// Reports that an earlier approval would have covered the call but has expired.
    pub fn mark_expired(&self, earlier: Remembered) {
        // The first report counts.
        let _ = self.marks.expired.set(earlier);
    }
}

/// The request of a driver of `kind: http`, as it will be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownRequest {
    /// The method, in upper case.
    pub method: String,
    /// The URL: printable ASCII without spaces, with `[secret:NAME]` for each secret, and
    /// `[hidden]`, encoded, for values that are not shown. At most 10 KiB.
    pub url: String,
    /// The JSON body; `None` if it has no body. Values that are not shown are `[hidden]`.
    pub body: Option<Value>,
}

/// A driver that serves an approved call if the driver before it fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedDriver {
    /// Its id.
    pub id: String,
    /// Who published it.
    pub publisher: String,
    /// BLAKE3 of the manifest of its bundle, 64 hex digits.
    pub bundle: String,
    /// The hosts that it declares, at most 20.
    pub hosts: Vec<String>,
    /// The regions that it claims, at most 20.
    pub regions: Vec<String>,
}

impl NamedDriver {
    /// Whether an approval question can show this driver in full.
    pub(crate) fn is_shown_whole(&self) -> bool {
        let Self {
            id,
            publisher,
            bundle: _,
            hosts,
            regions,
        } = self;
        let mut words = hosts.iter().chain(regions).chain([id, publisher]);
        let most = MAX_COVERED;
        hosts.len() <= most
            && regions.len() <= most
            && words.all(|text| text.chars().nth(MAX_TEXT_CHARS).is_none())
    }
}

/// A tool that is covered by the approval of a call of another tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chained {
    /// The tool as `id@major`.
    pub tool: String,
    /// Who published its contract.
    pub publisher: String,
    /// The publishers of the drivers that may serve it, each once.
    pub driver_publishers: Vec<String>,
    /// BLAKE3 of the manifests of the bundles that serve it, 64 hex digits each: the contract's
    /// bundle first, then its drivers' bundles.
    pub bundles: Vec<String>,
    /// The changes that it makes, such as `changes workspace:/notes`.
    pub effects: Vec<String>,
    /// Its risk level, 0 to 3.
    pub risk: u8,
}

/// The most tools that one approval covers, as many as a person reads. Also the most hosts, and the
/// most regions, of a driver that a question shows.
const MAX_COVERED: usize = 20;
/// The most effects of the covered tools together.
const MAX_EFFECTS: usize = 40;
/// The most characters of a name or an effect; longer texts would be cut.
const MAX_TEXT_CHARS: usize = 200;

impl Chained {
    /// The publishers of its drivers that did not publish the tool itself.
    pub fn foreign_drivers(&self) -> impl Iterator<Item = &str> {
        let publishers = self.driver_publishers.iter().map(String::as_str);
        publishers.filter(|publisher| *publisher != self.publisher)
    }

    fn is_shown_whole(&self) -> bool {
        let mut words = self.effects.iter().chain([&self.tool]);
        words.all(|text| text.chars().nth(MAX_TEXT_CHARS).is_none())
    }
}

/// The tools that a call may call in turn: the tools that its approval covers, and the other tools.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Chain {
    pub(crate) covered: Vec<Chained>,
    pub(crate) apart: Vec<String>,
}

impl Chain {
    /// Takes pairs of a tool and whether a person must be asked about the tool each time. If so,
    /// the tool is not covered. A tool that does not fit into a request is not covered either,
    /// since the person can't have seen it.
    pub(crate) fn of(reached: impl IntoIterator<Item = (Chained, bool)>) -> Self {
        let mut reached: Vec<(Chained, bool)> = reached.into_iter().collect();
        reached.sort_by(|(a, _), (b, _)| {
            let harmless = |tool: &Chained| tool.effects.is_empty() && tool.risk == 0;
            (harmless(a).cmp(&harmless(b))).then_with(|| a.tool.cmp(&b.tool))
        });
        let mut chain = Self::default();
        let mut room = MAX_EFFECTS;
        for (tool, each_time) in reached {
            let left = room.checked_sub(tool.effects.len());
            match left {
                Some(left)
                    if !each_time && chain.covered.len() < MAX_COVERED && tool.is_shown_whole() =>
                {
                    room = left;
                    chain.covered.push(tool);
                }
                _ => chain.apart.push(tool.tool),
            }
        }
        chain
    }
}

/// The part of an approval request that is the same for all calls by one route.
pub(crate) struct ApprovalQuestion {
    pub(crate) effects: Vec<String>,
    pub(crate) risk: u8,
    pub(crate) reasons: Vec<String>,
    /// The tools that the call may call in turn.
    pub(crate) chain: Chain,
    /// Whether the call needs approval even if the call that led to it was approved.
    pub(crate) each_time: bool,
    /// Whether `preapproved` in a grant could replace the answer.
    pub(crate) can_be_preapproved: bool,
}

/// Asks a person to approve calls. The verdict must come from a person, never from a tool or a
/// model.
///
/// ```
/// use std::pin::Pin;
/// use toolward_bundle::text::visible_line;
/// use toolward_host::{ApprovalRequest, Approver, Chained, Host, Verdict};
///
/// /// Asks at a window of the application.
/// struct Window;
///
/// impl Window {
///     async fn confirm(&self, question: &str) -> bool {
///         println!("{question}");
///         false
///     }
/// }
///
/// impl Approver for Window {
///     fn ask<'a>(
///         &'a self,
///         request: &'a ApprovalRequest,
///     ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
///         Box::pin(async move {
///             if request.risk == 3 {
///                 return Verdict::Unavailable;
///             }
///             let ApprovalRequest { tool, publisher, effects, input, .. } = request;
///             let mut question = format!("{tool} of {publisher}: {} {input}", effects.join(", "));
///             for Chained { tool, effects, .. } in &request.chain {
///                 question.push_str(&format!("; then {tool}: {}", effects.join(", ")));
///             }
///             request.mark_asked();
///             match self.confirm(&visible_line(&question, 10_000)).await {
///                 true => Verdict::Approved,
///                 false => Verdict::Denied(None),
///             }
///         })
///     }
/// }
///
/// # fn main() -> Result<(), toolward_host::HostError> {
/// let host = Host::builder().approver(Window).build()?;
/// # Ok(())
/// # }
/// ```
pub trait Approver: Send + Sync {
    /// Shows the request to a person and returns their verdict. The call waits for the verdict; its
    /// deadline starts afterwards.
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Verdict>;

    /// Returns the answer that this call brings to an earlier call's question
    /// ([`Verdict::Answered`]), if [`Approver::ask`] has not returned it. The host records this
    /// answer, but the answer approves nothing.
    fn unused_answer(&self) -> Option<Verdict> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, effects: usize) -> (Chained, bool) {
        let effects = (0..effects).map(|number| format!("changes database:{number}"));
        let tool = Chained {
            tool: format!("{name}@1"),
            publisher: "acme".to_owned(),
            driver_publishers: vec!["acme".to_owned()],
            bundles: Vec::new(),
            effects: effects.collect(),
            risk: 0,
        };
        (tool, false)
    }

    fn covered(chain: &Chain) -> Vec<&str> {
        chain.covered.iter().map(|one| one.tool.as_str()).collect()
    }

    #[test]
    fn what_changes_something_comes_first() {
        let mut risky = tool("m.risky", 0);
        risky.0.risk = 2;
        let chain = Chain::of([tool("a.reads", 0), risky, tool("z.writes", 1)]);
        assert_eq!(covered(&chain), ["m.risky@1", "z.writes@1", "a.reads@1"]);
        assert!(chain.apart.is_empty());
    }

    #[test]
    fn a_yes_covers_no_more_tools_than_a_question_has_room_for() {
        let many = (0..MAX_COVERED + 3).map(|number| tool(&format!("w{number:03}"), 1));
        let chain = Chain::of(many);
        assert_eq!(chain.covered.len(), MAX_COVERED);
        assert_eq!(chain.apart, ["w020@1", "w021@1", "w022@1"]);
    }

    #[test]
    fn a_tool_is_covered_with_all_that_it_changes_or_not_at_all() {
        let chain = Chain::of([tool("a", MAX_EFFECTS - 1), tool("b", 2), tool("c", 1)]);
        assert_eq!(covered(&chain), ["a@1", "c@1"]);
        assert_eq!(chain.apart, ["b@1"]);
        let mut long = tool("long", 1);
        long.0.effects = vec!["x".repeat(MAX_TEXT_CHARS + 1)];
        assert_eq!(Chain::of([long]).apart, ["long@1"]);
    }

    #[test]
    fn what_is_asked_about_each_time_is_not_covered() {
        let (always, _) = tool("always", 1);
        assert_eq!(Chain::of([(always, true)]).apart, ["always@1"]);
    }
}
