//! Elicitation: the questions of a driver that needs an answer, and the call that
//! resumes with the answers. Collecting them is up to the caller.

mod open_forms;
mod questions;
mod resume;
mod sample;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use open_forms::{OpenForm, OpenForms};
pub(crate) use questions::{Asker, CheckedQuestions, unavailable};
pub(crate) use resume::{CallIdentity, Resumed, check, gone};

/// How often one call may ask, so that a driver can't wear a person down.
pub(crate) const MAX_ROUNDS: u32 = toolward_policy::own::ROUNDS as u32;

/// The kinds of questions that a caller can have answered. Default: none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Answerable {
    /// Forms, by the person behind the caller.
    pub form: bool,
    /// Messages, by the caller's model.
    pub sample: bool,
    /// The caller's workspace roots.
    pub roots: bool,
}

/// What a driver asks for. Its form was checked; its content is untrusted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ask {
    /// A form for a person.
    Form {
        /// The text for the person. Show it through [`toolward_bundle::text::visible`],
        /// after the tool's and publisher's names.
        message: String,
        /// A flat JSON Schema object of primitive properties (MCP elicitation).
        schema: Value,
    },
    /// Parameters of MCP `sampling/createMessage`.
    Sample(Value),
    /// The caller's workspace roots.
    Roots,
}

/// One question of a driver.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Unique among the questions asked at once.
    pub key: String,
    /// What is asked.
    pub ask: Ask,
}

/// What a call had spent when it asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Units of fuel.
    pub fuel: u64,
    /// Milliseconds of its deadline.
    pub milliseconds: u64,
    /// Attempts.
    pub attempts: u32,
}

/// A call that stopped to ask, with everything that resuming it takes. The host trusts
/// it when the call resumes: keep it, or authenticate it before you hand it out.
///
/// Such a call ends with [`Reply::asked`](crate::Reply::asked). Make it again with the answers:
///
/// ```
/// use serde_json::json;
/// use toolward_host::{Answer, Answerable, Ask, Host, Question, Reply, Request, Resume};
///
/// async fn call(host: &Host) -> Reply {
///     let forms = Answerable { form: true, ..Answerable::default() };
///     let request = Request::new("notes.ask", "{}").answerable(forms);
///     let mut reply = host.call(request.clone()).await;
///     while let Some(asked) = reply.asked.take() {
///         let answer = |question: &Question| match &question.ask {
///             Ask::Form { schema, .. } if schema["required"] == json!(["title"]) => {
///                 Answer::Accepted(json!({"title": "Notes"}))
///             }
///             _ => Answer::Declined,
///         };
///         let questions = asked.questions.iter();
///         let answers = questions.map(|one| (one.key.clone(), answer(one))).collect();
///         reply = host.call(request.clone().resume(Resume { asked: *asked, answers })).await;
///     }
///     reply
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Asked {
    /// The invocation's id, which it keeps.
    pub invocation: String,
    /// Who called; nobody else may resume it.
    pub principal: String,
    /// The tool as `id@version`.
    pub tool: String,
    /// The tool as `id@major`.
    pub tool_id: String,
    /// Who published the tool.
    pub publisher: String,
    /// The driver that asks.
    pub driver: String,
    /// Who published the driver.
    pub driver_publisher: String,
    /// BLAKE3 of the manifest of the driver's bundle, 64 hex digits.
    pub bundle: String,
    /// BLAKE3 of the call's validated input and context, 64 hex digits.
    pub input: String,
    /// How often this call has asked, from 1.
    pub round: u32,
    /// What it asks, in order.
    pub questions: Vec<Question>,
    /// Opaque state of the driver. May contain secrets.
    #[serde(with = "base64_bytes")]
    pub state: Vec<u8>,
    /// What it has spent of its budgets.
    pub spent: Spent,
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Answer {
    /// An answer: the object of a form, MCP's `CreateMessageResult`, or MCP's
    /// `ListRootsResult`.
    Accepted(Value),
    /// The person declined.
    Declined,
    /// The person dismissed the question.
    Cancelled,
}

/// Resumes a call: what it asked, and the answers by their keys.
#[derive(Debug, Clone, PartialEq)]
pub struct Resume {
    /// The call as it stopped.
    pub asked: Asked,
    /// One per question.
    pub answers: Vec<(String, Answer)>,
}

mod base64_bytes {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map_err(D::Error::custom)
    }
}
