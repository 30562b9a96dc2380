//! The kinds of records and their fields. Fields are written in the order of their declarations,
//! which are therefore sorted by name, as RFC 8785 requires.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::record::names::{
    Action, Code, Hash, Hex, Id, Invocation, NativeId, Number, Person, Rule, Session, Tool,
    TraceParent, Version, Word,
};
use crate::record::wire::Wire;

/// Types of record fields. A field with `if` is left out if it is empty. Unknown fields are not
/// accepted.
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

        impl $(<$of: Wire>)? Wire for $name $(<$of>)? {
            fn put(&self, to: &mut Vec<u8>) {
                $(self.$field.put(to);)*
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                Some(Self { $($field: Wire::take(from)?,)* })
            }
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

        impl Wire for $name {
            fn put(&self, to: &mut Vec<u8>) {
                to.push(*self as u8);
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                let [word] = Wire::take(from)?;
                [$(Self::$word,)+].get(usize::from(word)).copied()
            }
        }
    )+ };
}

/// The reason of an abandoned call that did not run because its start was recorded too late.
pub const NOT_DISPATCHED: &str = "not-dispatched";

fields! {
    /// A session starts.
    Opened {
        /// The version of the program.
        build: Version;
        /// Digests of the manifests of its bundles, sorted.
        bundles: Vec<Hash>, if "Vec::is_empty";
        /// SHA-256 over the sorted digests of all bundles, including bundles that did not fit into
        /// `bundles`.
        bundles_set: Option<Hash>, if "Option::is_none";
        /// The confinement of the process that runs guests.
        confinement: Word;
        /// How many entries of lists did not fit into the record.
        cut: Number, if "Number::is_zero";
        /// Digest of the policy.
        policy: Option<Hash>, if "Option::is_none";
    }

    /// A tool or a driver, with its publisher and bundle.
    Part<N> {
        /// Digest of the manifest of its bundle.
        bundle: Hash;
        /// Its id; the id of a tool includes the version.
        id: N;
        /// The bundle's publisher.
        publisher: Id;
    }

    /// Bytes that a caller, guest or server made.
    Content {
        /// [`commitment`](crate::payload::commitment) to the bytes, if the bytes are kept.
        commitment: Option<Hash>, if "Option::is_none";
        /// How many bytes.
        size: Number;
    }

    /// A driver that did not serve the call.
    Rejected {
        /// The driver.
        driver: Id;
        /// Why it did not serve the call.
        why: Code;
    }

    /// The ids of a call in its caller's protocol. An id that does not match the grammar of its
    /// type is left out.
    #[derive(Default)]
    Native {
        /// The id of the request, as text; for MCP, the JSON-RPC id.
        call_id: Option<NativeId>, if "Option::is_none";
        /// The id that a model's API gave the tool call.
        tool_call_id: Option<NativeId>, if "Option::is_none";
        /// The trace that the call is part of.
        traceparent: Option<TraceParent>, if "Option::is_none";
    }

    /// The facts of a call that are known when the record is written.
    Call {
        /// Its context.
        context: Option<Content>, if "Option::is_none";
        /// How many entries of lists did not fit into the record.
        cut: Number, if "Number::is_zero";
        /// The driver that was picked last.
        driver: Option<Part<Id>>, if "Option::is_none";
        /// Its input.
        input: Option<Content>, if "Option::is_none";
        /// The capabilities that it changes, by its contract.
        mutates: Vec<Action>, if "Vec::is_empty";
        /// The ids of the call in its caller's protocol.
        native: Native, if "Native::is_empty";
        /// The invocation that made this call.
        parent: Option<Invocation>, if "Option::is_none";
        /// The principal on whose behalf it is made. The writer fills it in.
        person: Option<Person>, if "Option::is_none";
        /// Digest of the policy that decided.
        policy: Option<Hash>, if "Option::is_none";
        /// Drivers that were considered but can't serve the call, each with the reason. If the
        /// policy denies `driver`, it is one of them.
        rejected: Vec<Rejected>, if "Vec::is_empty";
        /// The recorded call that this one repeats.
        rerun_of: Option<Invocation>, if "Option::is_none";
        /// The first invocation of the chain, for nested calls.
        root: Option<Invocation>, if "Option::is_none";
        /// The rules by which the policy allowed or denied the call.
        rules: Vec<Rule>, if "Vec::is_empty";
        /// Digest of the surface of the tool's bundle: what a model or a policy sees of it.
        surface: Option<Hash>, if "Option::is_none";
        /// The tool; `None` if the name is unknown.
        tool: Option<Part<Tool>>, if "Option::is_none";
    }

    /// One start of a driver.
    Attempt {
        /// Why it failed; `None` if it did not.
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
        /// Why it was cancelled: `caller`, `disconnected`, `shutdown` or `parent`; `None` if it was
        /// not.
        cancel_reason: Option<Word>, if "Option::is_none";
        /// The class of the error.
        class: Option<Word>, if "Option::is_none";
        /// Why it has no output; `None` if it has one.
        code: Option<Code>, if "Option::is_none";
        /// How many entries of lists did not fit into the record.
        cut: Number, if "Number::is_zero";
        /// Messages, causes, unknown names and subjects of violations.
        detail: Option<Content>, if "Option::is_none";
        /// Units of fuel that all attempts consumed.
        fuel: Number, if "Number::is_zero";
        /// Whether the row was written after the reply was sent. The writer sets it.
        late: bool, if "is_false";
        /// The limit that was reached.
        limit: Option<Word>, if "Option::is_none";
        /// The highest peak memory of an attempt, in bytes.
        memory: Number, if "Number::is_zero";
        /// Who made the error: host, driver, person.
        origin: Option<Word>, if "Option::is_none";
        /// The output.
        output: Option<Content>, if "Option::is_none";
        /// The earlier invocation whose reply this call got, because the caller gave both the same
        /// id.
        repeats: Option<Invocation>, if "Option::is_none";
        /// The stage in which it ended.
        stage: Word;
        /// Microseconds from request to result.
        us: Number;
        /// How often the driver attempted something without a grant, by kind.
        violations: BTreeMap<Word, Number>, if "BTreeMap::is_empty";
    }

    /// A call that may change something is about to be dispatched.
    Started {
        /// The call.
        call: Call;
        /// Its id.
        invocation: Invocation;
    }

    /// A dispatched call has ended, or a call got the reply of an earlier call.
    Ended {
        /// The call; `None` if its [`Started`] has it.
        call: Option<Call>, if "Option::is_none";
        /// Its id.
        invocation: Invocation;
        /// How it ended.
        outcome: Outcome;
    }

    /// A call ended before it was dispatched.
    Refused {
        /// The known facts of the call.
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
        /// The ledger from which the cassette was exported: the digits of the ledger's origin.
        ledger: Hex<16>;
        /// The recorded call whose result this call got.
        of: Invocation;
        /// How it ended.
        outcome: Outcome;
    }

    /// Refusals, and questions for approval, that were counted instead of recorded. The first few
    /// of each principal in a second have separate rows.
    RefusedMore {
        /// Their number by code.
        codes: BTreeMap<Code, Number>, if "BTreeMap::is_empty";
        /// How many entries of lists did not fit into the record.
        cut: Number, if "Number::is_zero";
        /// Their principal; `None` if they have none, or many.
        person: Option<Person>, if "Option::is_none";
        /// When the first of them was.
        since: Number;
    }

    /// A bundle was installed, revoked or otherwise changed. The log of the bundle store is
    /// authoritative.
    Trust {
        /// What was done.
        action: TrustAction;
        /// Digest of the bundle's manifest.
        bundle: Option<Hash>, if "Option::is_none";
        /// The bundle.
        id: Id;
        /// Its publisher.
        publisher: Option<Id>, if "Option::is_none";
        /// Its sequence.
        sequence: Option<Number>, if "Option::is_none";
        /// Its version.
        version: Option<Version>, if "Option::is_none";
    }

    /// A step of an approval: a question or an answer, or what happened to one of them later.
    Approval {
        /// The person's answer.
        answer: Option<Answer>, if "Option::is_none";
        /// What happened.
        event: ApprovalEvent;
        /// The call that the approval was about.
        invocation: Option<Invocation>, if "Option::is_none";
        /// Who was asked. The writer fills it in.
        person: Option<Person>, if "Option::is_none";
        /// The rule that asks.
        rule: Option<Rule>, if "Option::is_none";
        /// The scope of the answer: `call` or `session`.
        scope: Option<Word>, if "Option::is_none";
        /// The tool.
        tool: Option<Tool>, if "Option::is_none";
        /// When the answer expires, in microseconds since 1970.
        until: Option<Number>, if "Option::is_none";
    }

    /// A call that was unfinished when its process ended, or that did not run because its start was
    /// recorded too late.
    Abandoned {
        /// Its id.
        invocation: Invocation;
        /// The session that the call belonged to.
        of: Session;
        /// [`NOT_DISPATCHED`] if the call did not run; `None` if its process ended.
        why: Option<Code>, if "Option::is_none";
    }

    /// Rows that could not be written.
    Gap {
        /// The number of rows.
        missing: Number;
        /// When the first of them was.
        since: Number;
        /// Why they could not be written.
        why: Code;
    }

    /// Payloads and names were deleted.
    Erased {
        /// If set, all payloads before this time were deleted.
        before: Option<Number>, if "Option::is_none";
        /// If set, the payloads of this invocation were deleted.
        invocation: Option<Invocation>, if "Option::is_none";
        /// The number of deleted payloads.
        payloads: Number;
        /// If set, the payloads and the name of this principal were deleted.
        person: Option<Person>, if "Option::is_none";
    }

    /// Records were deleted; their leaves stay.
    Pruned {
        /// The records of all rows before this row were deleted. The number is a multiple of 256.
        to: Number;
    }

    /// A session ended, in good order or for the reason in `why`.
    Closed {
        /// Why it ended, if not in good order.
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
        /// The question was withdrawn: the person denied another question about the same tool.
        Revoked,
        /// The question expired; or, if `scope` is set, the remembered answer.
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
    /// Whether no id is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

impl Opened {
    /// The first record of a session, from the digests of the bundles' manifests in any order.
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
