//! The kinds of records and their fields. Fields are in the order of RFC 8785, sorted by name: they are written
//! in this order.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::record::names::{
    Action, Code, Hash, Hex, Id, Invocation, NativeId, Number, Person, Rule, Session, Tool,
    TraceParent, Version, Word,
};

/// A type of record fields: written without what is empty, read without what is unknown.
macro_rules! fields {
    ($($(#[$outer:meta])* $name:ident $(<$of:ident>)? {
        $($(#[$inner:meta])* $field:ident: $type:ty $(, if $empty:literal)?;)*
    })+) => { $(
        $(#[$outer])*
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name $(<$of>)? {
            $($(#[$inner])* $(#[serde(default, skip_serializing_if = $empty)])? pub $field: $type,)*
        }
    )+ };
}

/// Words of a closed set.
macro_rules! words {
    ($($(#[$outer:meta])* $name:ident { $($(#[$inner:meta])* $word:ident,)+ })+) => { $(
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name { $($(#[$inner])* $word,)+ }
    )+ };
}

/// Why a call was abandoned that did not run: its start was recorded too late.
pub const NOT_DISPATCHED: &str = "not-dispatched";

fields! {
    /// A session starts.
    Opened {
        /// The version of the program.
        build: Version;
        /// Digests of the manifests of its bundles, sorted.
        bundles: Vec<Hash>, if "Vec::is_empty";
        /// SHA-256 over the digests of all of them, sorted: also of bundles that did not fit.
        bundles_set: Option<Hash>, if "Option::is_none";
        /// What the process that runs guests is confined by.
        confinement: Word;
        /// How many entries of lists did not fit into the record.
        cut: Number, if "Number::is_zero";
        /// Digest of the policy.
        policy: Option<Hash>, if "Option::is_none";
    }

    /// A tool or a driver, and whose it is.
    Part<N> {
        /// Digest of the manifest of its bundle.
        bundle: Hash;
        /// Its id; a tool's with the version.
        id: N;
        /// The bundle's publisher.
        publisher: Id;
    }

    /// Bytes that a caller, guest or server made.
    Content {
        /// [`commitment`](crate::payload::commitment) to the bytes and their salt, where they are kept.
        commitment: Option<Hash>, if "Option::is_none";
        /// How many bytes.
        size: Number;
    }

    /// A driver that did not serve the call.
    Rejected {
        /// The driver.
        driver: Id;
        /// Why not.
        why: Code;
    }

    /// What its caller's protocol calls a call: names of closed grammars. Text of any other form is left out.
    #[derive(Default)]
    Native {
        /// The id of the request: of MCP that of JSON-RPC, as text.
        call_id: Option<NativeId>, if "Option::is_none";
        /// The id that a model's API gave the tool call.
        tool_call_id: Option<NativeId>, if "Option::is_none";
        /// The trace that the call is part of.
        traceparent: Option<TraceParent>, if "Option::is_none";
    }

    /// What is known of a call when it is written.
    Call {
        /// Its context.
        context: Option<Content>, if "Option::is_none";
        /// How many entries of lists did not fit into the record.
        cut: Number, if "Number::is_zero";
        /// The driver that was picked.
        driver: Option<Part<Id>>, if "Option::is_none";
        /// Its input.
        input: Option<Content>, if "Option::is_none";
        /// What it changes, by its contract.
        mutates: Vec<Action>, if "Vec::is_empty";
        /// What its caller's protocol calls it.
        native: Native, if "Native::is_empty";
        /// The invocation that made this call.
        parent: Option<Invocation>, if "Option::is_none";
        /// On whose behalf it is made. The writer fills it in.
        person: Option<Person>, if "Option::is_none";
        /// Digest of the policy that decided.
        policy: Option<Hash>, if "Option::is_none";
        /// The other drivers, and why each fell out.
        rejected: Vec<Rejected>, if "Vec::is_empty";
        /// The recorded call that this one repeats.
        rerun_of: Option<Invocation>, if "Option::is_none";
        /// The first invocation of the chain, for calls that a tool made.
        root: Option<Invocation>, if "Option::is_none";
        /// The rules that gave something.
        rules: Vec<Rule>, if "Vec::is_empty";
        /// Digest of the tool's surface.
        surface: Option<Hash>, if "Option::is_none";
        /// The tool; none where the name is unknown.
        tool: Option<Part<Tool>>, if "Option::is_none";
    }

    /// One start of a driver.
    Attempt {
        /// Why it failed; none where it did not.
        code: Option<Code>, if "Option::is_none";
        /// The driver.
        driver: Id;
        /// Microseconds that it took.
        us: Number;
    }

    /// How a call ended.
    Outcome {
        /// The starts of drivers, in order.
        attempts: Vec<Attempt>, if "Vec::is_empty";
        /// Why it was cancelled: `caller`, `disconnected`, `shutdown` or `parent`; none where it was not.
        cancel_reason: Option<Word>, if "Option::is_none";
        /// The class of the error.
        class: Option<Word>, if "Option::is_none";
        /// Why it has no output; none if it has one.
        code: Option<Code>, if "Option::is_none";
        /// How many entries of lists did not fit into the record.
        cut: Number, if "Number::is_zero";
        /// Messages, causes, unknown names and subjects of violations.
        detail: Option<Content>, if "Option::is_none";
        /// Units of fuel that all attempts consumed.
        fuel: Number, if "Number::is_zero";
        /// Whether the row was written after the reply went out. The writer sets it.
        late: bool, if "is_false";
        /// The limit that was reached.
        limit: Option<Word>, if "Option::is_none";
        /// Peak memory of an attempt, in bytes.
        memory: Number, if "Number::is_zero";
        /// Who made the error: host, driver, person.
        origin: Option<Word>, if "Option::is_none";
        /// The output.
        output: Option<Content>, if "Option::is_none";
        /// The invocation whose reply this call got, since it repeated an id that its caller gave.
        repeats: Option<Invocation>, if "Option::is_none";
        /// The stage in which it ended.
        stage: Word;
        /// Microseconds from request to result.
        us: Number;
        /// What the driver tried without a grant, counted by kind.
        violations: BTreeMap<Word, Number>, if "BTreeMap::is_empty";
    }

    /// A call that may change something is about to be dispatched.
    Started {
        /// The call.
        call: Call;
        /// Its id.
        invocation: Invocation;
    }

    /// A dispatched call has ended, or one got the reply of an earlier one.
    Ended {
        /// The call; none if its [`Started`] has it.
        call: Option<Call>, if "Option::is_none";
        /// Its id.
        invocation: Invocation;
        /// How it ended.
        outcome: Outcome;
    }

    /// A call ended before it was dispatched.
    Refused {
        /// What is known of the call.
        call: Call;
        /// Its id.
        invocation: Invocation;
        /// How it ended.
        outcome: Outcome;
    }

    /// A call was answered from a cassette: no driver was started.
    Replayed {
        /// The call.
        call: Call;
        /// Its id.
        invocation: Invocation;
        /// The ledger that the cassette is from: the digits of its origin.
        ledger: Hex<16>;
        /// The recorded call whose result it got.
        of: Invocation;
        /// How it ended.
        outcome: Outcome;
    }

    /// Refusals of one principal, beyond the first, which got separate rows.
    RefusedMore {
        /// How many of each code.
        codes: BTreeMap<Code, Number>, if "BTreeMap::is_empty";
        /// How many entries of lists did not fit into the record.
        cut: Number, if "Number::is_zero";
        /// Whose they were; none for many.
        person: Option<Person>, if "Option::is_none";
        /// When the first of them was.
        since: Number;
    }

    /// Something was done about a bundle. The store's own row is what counts.
    Trust {
        /// What was done.
        action: TrustAction;
        /// Digest of the bundle's manifest.
        bundle: Option<Hash>, if "Option::is_none";
        /// The bundle.
        id: Id;
        /// Whose it is.
        publisher: Option<Id>, if "Option::is_none";
        /// Its sequence.
        sequence: Option<Number>, if "Option::is_none";
        /// Its version.
        version: Option<Version>, if "Option::is_none";
    }

    /// A person was asked, or something became of the answer.
    Approval {
        /// The person's answer.
        answer: Option<Answer>, if "Option::is_none";
        /// What happened.
        event: ApprovalEvent;
        /// The call that it was about.
        invocation: Option<Invocation>, if "Option::is_none";
        /// Who was asked. The writer fills it in.
        person: Option<Person>, if "Option::is_none";
        /// The rule that asks.
        rule: Option<Rule>, if "Option::is_none";
        /// What the answer holds for: `call`, or `session`.
        scope: Option<Word>, if "Option::is_none";
        /// The tool.
        tool: Option<Tool>, if "Option::is_none";
        /// Until when it holds, in microseconds since 1970.
        until: Option<Number>, if "Option::is_none";
    }

    /// A call whose process ended before it did, or whose start was recorded too late for it to run.
    Abandoned {
        /// Its id.
        invocation: Invocation;
        /// The session that it belonged to.
        of: Session;
        /// [`NOT_DISPATCHED`] where it did not run; none where its process ended.
        why: Option<Code>, if "Option::is_none";
    }

    /// Rows that could not be written.
    Gap {
        /// How many.
        missing: Number;
        /// When the first of them was.
        since: Number;
        /// Why.
        why: Code;
    }

    /// Payloads and names were deleted.
    Erased {
        /// All that were made before this moment.
        before: Option<Number>, if "Option::is_none";
        /// Those of this invocation.
        invocation: Option<Invocation>, if "Option::is_none";
        /// How many payloads.
        payloads: Number;
        /// Those of this principal, and the name.
        person: Option<Person>, if "Option::is_none";
    }

    /// Records were deleted; their leaves stay.
    Pruned {
        /// All rows before this one: whole groups of 256, from the first row on.
        to: Number;
    }

    /// A session ended in good order, or for a reason.
    Closed {
        /// Why, where it was not in good order.
        why: Option<Code>, if "Option::is_none";
    }
}

words! {
    /// What was done about a bundle.
    TrustAction {
        /// It was installed.
        Installed,
        /// Its update waits for a person.
        Held,
        /// A held update was accepted.
        Accepted,
        /// An older release was put back.
        RolledBack,
        /// It was revoked.
        Revoked,
    }

    /// What happened to an approval.
    ApprovalEvent {
        /// A person was asked.
        Asked,
        /// A person answered.
        Answered,
        /// The answer holds for later calls.
        Remembered,
        /// A person took it back: a question, by denying another one about the same tool.
        Revoked,
        /// Its time is over: that of a question, or, where there is a scope, that of an answer which held.
        Expired,
    }

    /// A person's answer.
    Answer {
        /// Yes.
        Approved,
        /// No.
        Denied,
    }
}

impl Native {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

impl Opened {
    /// Of the digests of the bundles' manifests, in any order.
    pub fn of(
        build: Version,
        mut bundles: Vec<Hash>,
        confinement: Word,
        policy: Option<Hash>,
    ) -> Self {
        bundles.sort_unstable();
        bundles.dedup();
        let mut set = Sha256::new();
        for bundle in &bundles {
            set.update(bundle.0);
        }
        Self {
            build,
            bundles_set: (!bundles.is_empty()).then(|| Hex(set.finalize().into())),
            bundles,
            confinement,
            cut: Number::default(),
            policy,
        }
    }
}
