//! A tape: the recorded calls of a cassette, with which a host answers calls instead of running
//! drivers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolward_ledger::cassette::{Cassette, CassetteCall};
use toolward_ledger::record::{Hash, Hex, Id, Person};
use toolward_ledger::tree::leaf_hash;
use toolward_sandbox::result::shortened;
use toolward_support::helper::lock;

/// The most recorded inputs that are compared with an unrecorded input to find the nearest.
const MAX_COMPARED: usize = 32;
/// The most differences that are named.
const MAX_DIFFERENCES: usize = 8;

/// Recorded calls with which a host answers calls
/// ([`HostBuilder::replaying`](crate::HostBuilder::replaying)). Each recorded call is used once. A
/// call that one clone has used is used for all clones.
#[derive(Clone)]
pub struct Tape {
    calls: Arc<Mutex<Calls>>,
    /// The ledger of the recording: the hexadecimal digits at the end of the ledger's origin.
    pub(crate) ledger: Hex<16>,
    loose: bool,
}

/// By principal and the id of the tool, in recorded order.
type Calls = HashMap<(String, String), Vec<Recorded>>;

struct Recorded {
    call: CassetteCall,
    /// A digest of the input that does not depend on spaces or the order of properties.
    input: Hash,
    used: bool,
}

/// The recorded call whose result a reply contains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replayed {
    /// Its id.
    pub invocation: String,
    /// When its end was recorded, in microseconds since 1970.
    pub at: u64,
    /// The recorded version of the tool, if it differs from the call, and the properties in which
    /// the inputs differ, at most eight in all. In a reply, empty unless the tape is
    /// [loose](Tape::loose).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<String>,
}

/// The call that a tape must answer.
pub(crate) struct Wanted<'a> {
    pub(crate) principal: &'a str,
    pub(crate) tool: &'a str,
    /// `id@version`.
    pub(crate) full_id: &'a str,
    /// The publisher in the form of records.
    pub(crate) publisher: &'a Id,
    pub(crate) input: &'a Value,
}

/// The unused recorded calls of the tool, reported if none matches.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Nearest {
    /// The recorded calls of the tool that were not used yet.
    pub(crate) left: usize,
    /// The recorded call with the fewest differences, among the first 32.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nearest: Option<Replayed>,
}

impl Tape {
    /// Creates a tape from the calls of a cassette. `principal` returns the principal of a recorded
    /// person. Calls of a person without a principal are not used.
    ///
    /// ```
    /// use toolward_host::{Host, HostError, LOCAL, Tape};
    /// use toolward_ledger::cassette::{Cassette, CassetteError};
    /// use toolward_ledger::checkpoint::Verifier;
    ///
    /// fn tape(file: &[u8], ledger: &Verifier) -> Result<Tape, CassetteError> {
    ///     let cassette = Cassette::read(file, Some(ledger))?;
    ///     Ok(Tape::new(cassette, |_| Some(LOCAL.to_owned())))
    /// }
    ///
    /// fn host(tape: &Tape) -> Result<Host, HostError> {
    ///     Host::builder().replaying(tape).build()
    /// }
    /// ```
    pub fn new(cassette: Cassette, principal: impl Fn(Option<&Person>) -> Option<String>) -> Self {
        let ledger = cassette.ledger().unwrap_or(Hex([0; 16]));
        let mut calls = Calls::new();
        for call in cassette.calls {
            let Some(principal) = principal(call.person.as_ref()) else {
                continue;
            };
            let Ok(input) = serde_json::from_slice(&call.input) else {
                continue;
            };
            let tool = call.tool.id.as_str();
            // Without the version.
            let id = tool.split_once('@').map_or(tool, |(id, _)| id);
            let key = (principal, id.to_owned());
            calls.entry(key).or_default().push(Recorded {
                input: digest(input),
                call,
                used: false,
            });
        }
        Self {
            calls: Arc::new(Mutex::new(calls)),
            ledger,
            loose: false,
        }
    }

    /// Answers a call whose input was not recorded with the next recorded call of the tool, and
    /// returns the differences.
    #[must_use]
    pub fn loose(mut self) -> Self {
        self.loose = true;
        self
    }

    /// How many calls the tape can still answer.
    pub fn left(&self) -> usize {
        let calls = lock(&self.calls);
        let all = calls.values().flatten();
        all.filter(|recorded| !recorded.used).count()
    }

    /// Whether the tape has calls of this principal, used or not.
    pub fn answers(&self, principal: &str) -> bool {
        let calls = lock(&self.calls);
        calls.keys().any(|(name, _)| name == principal)
    }

    /// Takes the next recorded call of this principal with this tool and input.
    pub(crate) fn take(&self, wanted: &Wanted<'_>) -> Result<(CassetteCall, Replayed), Nearest> {
        let input = digest(wanted.input.clone());
        let mut calls = lock(&self.calls);
        let key = (wanted.principal.to_owned(), wanted.tool.to_owned());
        let Some(recorded) = calls.get_mut(&key) else {
            return Err(Nearest::default());
        };
        let mut open = recorded.iter_mut().filter(|one| {
            // A tool of this name by another publisher is a different tool.
            !one.used && one.call.tool.publisher == *wanted.publisher
        });
        let mut others: Vec<&mut Recorded> = Vec::new();
        let mut left = 0;
        let exact = open.find_map(|one| {
            if one.input == input && one.call.tool.id.as_str() == wanted.full_id {
                return Some(one);
            }
            left += 1;
            if others.len() < MAX_COMPARED {
                others.push(one);
            }
            None
        });
        if let Some(one) = exact {
            return Ok(one.taken(Vec::new()));
        }
        if self.loose && !others.is_empty() {
            let next = others.swap_remove(0);
            let differs = next.differences(wanted);
            return Ok(next.taken(differs));
        }
        let compared = others
            .iter()
            .map(|one| one.replayed(one.differences(wanted)));
        Err(Nearest {
            left,
            nearest: compared.min_by_key(|one| one.differs.len()),
        })
    }
}

impl Recorded {
    fn taken(&mut self, differs: Vec<String>) -> (CassetteCall, Replayed) {
        self.used = true;
        (self.call.clone(), self.replayed(differs))
    }

    fn replayed(&self, differs: Vec<String>) -> Replayed {
        Replayed {
            invocation: self.call.invocation.to_string(),
            at: self.call.at.get(),
            differs,
        }
    }

    /// Names the differences: the recorded id with its version, and properties of the input.
    fn differences(&self, wanted: &Wanted<'_>) -> Vec<String> {
        let recorded = self.call.tool.id.as_str();
        let version = (recorded != wanted.full_id).then(|| recorded.to_owned());
        let input: Value = serde_json::from_slice(&self.call.input).unwrap_or_default();
        let mut names: Vec<String> = version.into_iter().collect();
        match (&input, wanted.input) {
            (Value::Object(before), Value::Object(now)) => {
                let gone = before.keys().filter(|name| !now.contains_key(*name));
                let other = now
                    .iter()
                    .filter(|(name, value)| before.get(*name) != Some(value));
                let all = gone.chain(other.map(|(name, _)| name));
                names.extend(
                    all.take(MAX_DIFFERENCES)
                        .map(|name| shortened(name.clone())),
                );
            }
            (before, now) if before != now => names.push("/".to_owned()),
            _ => {}
        }
        names.truncate(MAX_DIFFERENCES);
        names
    }
}

/// A digest that is equal for equal values, regardless of the order of their properties.
fn digest(mut value: Value) -> Hash {
    value.sort_all_objects();
    leaf_hash(value.to_string().as_bytes())
}
