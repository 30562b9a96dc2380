//! Elicitation: the questions of a driver, and the call that resumes with the answers. The caller
//! must collect the answers.

mod questions;
mod resume;
mod sample;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolward_support::helper::lock;

pub(crate) use questions::{Asker, CheckedQuestions, unavailable};
pub(crate) use resume::{CallIdentity, RejectedAnswer, Resumed, check, gone};

/// How often one call may ask, so that a driver can't wear a person down.
pub(crate) const MAX_ROUNDS: u32 = toolward_policy::own::ROUNDS as u32;

/// Which questions a caller can have answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Answerable {
    /// Forms for the person behind the caller.
    pub form: bool,
    /// Samples of the caller's model.
    pub sample: bool,
    /// The caller's workspace roots.
    pub roots: bool,
}

/// The content of a driver's question. Its structure was checked, but its texts are untrusted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
    /// The content of the question.
    pub ask: Ask,
}

/// The budgets that a call had spent when it asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Units of fuel.
    pub fuel: u64,
    /// Milliseconds of its time.
    pub milliseconds: u64,
    /// Attempts.
    pub attempts: u32,
}

/// A call that stopped to ask, with everything that it needs to resume. The host trusts this value
/// when the call resumes: keep it, or authenticate it before you hand it out.
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
pub struct Asked {
    /// The invocation's id, which the resumed call keeps.
    pub invocation: String,
    /// The principal of the call; no one else may resume it.
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
    /// The questions, in order.
    pub questions: Vec<Question>,
    /// Opaque state of the driver. May contain secrets.
    #[serde(with = "toolward_sandbox::result::base64")]
    pub state: Vec<u8>,
    /// The budgets that it has spent.
    pub spent: Spent,
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// An answer: the object of a form, MCP's `CreateMessageResult`, or MCP's
    /// `ListRootsResult`.
    Accepted(Value),
    /// The person declined.
    Declined,
    /// The person dismissed the question.
    Cancelled,
}

/// Resumes a call: the call that asked, and the answers by the questions' keys.
#[derive(Debug, Clone, PartialEq)]
pub struct Resume {
    /// The call that stopped to ask.
    pub asked: Asked,
    /// One answer per question.
    pub answers: Vec<(String, Answer)>,
}

/// How long a form of a driver of `kind: form` stays open.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);
/// The most principals with an open form, which bounds the memory.
const MAX_PRINCIPALS: usize = 4096;

/// The open forms of drivers of `kind: form`, at most one for each principal, so that a caller
/// can't wear a person down with parallel calls. Maps each principal to an invocation and the time
/// when its form closes.
#[derive(Debug, Default)]
pub(crate) struct OpenForms {
    open: Mutex<HashMap<String, (String, Instant)>>,
}

impl OpenForms {
    /// A handle to the form of an invocation, which may be open or be opened later.
    pub(crate) fn opened(forms: &Arc<Self>, principal: &str, invocation: &str) -> OpenForm {
        OpenForm {
            forms: Some(forms.clone()),
            principal: principal.to_owned(),
            invocation: invocation.to_owned(),
        }
    }

    /// Opens the form of an invocation.
    ///
    /// # Errors
    /// How long to wait, at most, before another attempt: until the principal's other form closes,
    /// or [`ANSWER_TIMEOUT`] if too many principals have forms.
    pub(crate) fn open(&self, principal: &str, invocation: &str) -> Result<(), Duration> {
        let now = Instant::now();
        let mut open = lock(&self.open);
        open.retain(|_, (_, until)| *until > now);
        match open.get(principal) {
            Some((other, until)) if other != invocation => {
                return Err(until.saturating_duration_since(now));
            }
            None if open.len() >= MAX_PRINCIPALS => return Err(ANSWER_TIMEOUT),
            _ => {}
        }
        let until = now.checked_add(ANSWER_TIMEOUT).unwrap_or(now);
        open.insert(principal.to_owned(), (invocation.to_owned(), until));
        Ok(())
    }

    /// Closes the form of an invocation. Returns whether it was open.
    pub(crate) fn close(&self, principal: &str, invocation: &str) -> bool {
        let now = Instant::now();
        let mut open = lock(&self.open);
        match open.get(principal) {
            Some((own, until)) if own == invocation => {
                let in_time = *until > now;
                open.remove(principal);
                in_time
            }
            _ => false,
        }
    }
}

/// The form of one call. Dropping this handle closes the form. So the person is no longer asked
/// once the call ends, unless the call handed its question to its caller.
pub(crate) struct OpenForm {
    /// `None` if the form must stay open.
    forms: Option<Arc<OpenForms>>,
    principal: String,
    invocation: String,
}

impl OpenForm {
    /// Leaves the form open, because its question goes to the caller.
    pub(crate) fn keep(mut self) {
        self.forms = None;
    }
}

impl Drop for OpenForm {
    fn drop(&mut self) {
        if let Some(forms) = &self.forms {
            forms.close(&self.principal, &self.invocation);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets all open forms expire.
    fn expire(forms: &OpenForms) {
        let now = Instant::now();
        lock(&forms.open)
            .values_mut()
            .for_each(|(_, until)| *until = now);
    }

    #[test]
    fn a_principal_has_one_open_form_and_others_have_theirs() {
        let forms = OpenForms::default();
        assert_eq!(forms.open("ada", "1"), Ok(()));
        assert!(forms.open("ada", "2").is_err());
        assert_eq!(forms.open("ada", "1"), Ok(()), "its next round");
        assert_eq!(forms.open("eve", "3"), Ok(()));
        assert!(!forms.close("eve", "1"));
        assert!(forms.close("ada", "1"));
        assert!(!forms.close("ada", "1"), "once");
        assert_eq!(forms.open("ada", "2"), Ok(()));
    }

    #[test]
    fn a_form_that_nobody_answers_closes() {
        let forms = OpenForms::default();
        assert_eq!(forms.open("ada", "1"), Ok(()));
        expire(&forms);
        assert!(!forms.close("ada", "1"));
        assert_eq!(forms.open("ada", "1"), Ok(()));
        expire(&forms);
        assert_eq!(forms.open("ada", "2"), Ok(()));
    }

    #[test]
    fn however_many_principals_ask_memory_is_bounded() {
        let forms = OpenForms::default();
        for number in 0..MAX_PRINCIPALS {
            assert_eq!(forms.open(&format!("p{number}"), "1"), Ok(()));
        }
        assert!(forms.open("one more", "1").is_err());
        assert_eq!(forms.open("p0", "1"), Ok(()));
    }
}
