//! Questions to the caller or its user, and the answers.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;
use crate::bindings::toolward::driver::types as wit;

/// Questions, and the state that the driver needs when they are answered. The driver is then called
/// again, in a new instance.
///
/// Each kind of question is a capability that the contract must declare (`requires.user`) and the
/// operator must grant. Keys are unique within one request.
///
/// ```
/// use serde_json::{json, Value};
/// use toolward_guest::{Answer, Call, Error, Outcome, Questions};
///
/// fn greet(call: Call<Value>) -> Result<Outcome<String>, Error> {
///     let Some(resume) = call.resume() else {
///         let schema = json!({
///             "type": "object",
///             "properties": {"name": {"type": "string"}},
///             "required": ["name"],
///         });
///         return Ok(Questions::new().form("who", "Whom shall I greet?", schema).into());
///     };
///     match resume.answer::<Value>("who")? {
///         Answer::Accepted(form) => Ok(Outcome::done(format!("Hello, {}!", form["name"]))),
///         Answer::Declined | Answer::Cancelled => Err(Error::new("greet:nobody", "nobody to greet")),
///     }
/// }
/// # let asked = toolward_guest::testing::invoke(greet, json!({}));
/// # assert_eq!(asked.unwrap_err().code(), "input_unavailable");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Questions {
    questions: Vec<(String, Ask)>,
    state: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq)]
enum Ask {
    Form {
        message: String,
        schema: serde_json::Value,
    },
    Sample(serde_json::Value),
    Roots,
}

impl Questions {
    /// Creates an empty list of questions. The host requires at least one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the person to fill in a form: a flat JSON Schema object whose
    /// properties are strings, numbers, booleans or enumerations.
    #[must_use]
    pub fn form(
        self,
        key: impl Into<String>,
        message: impl Into<String>,
        schema: serde_json::Value,
    ) -> Self {
        self.push(
            key,
            Ask::Form {
                message: message.into(),
                schema,
            },
        )
    }

    /// Asks the caller's model, with the parameters of MCP `sampling/createMessage`.
    #[must_use]
    pub fn sample(self, key: impl Into<String>, parameters: serde_json::Value) -> Self {
        self.push(key, Ask::Sample(parameters))
    }

    /// Asks for the caller's workspace roots.
    #[must_use]
    pub fn roots(self, key: impl Into<String>) -> Self {
        self.push(key, Ask::Roots)
    }

    /// Sets the state that [`Resume::state`] returns, at most 64 KiB of JSON. The caller can read
    /// the state, but can't change it.
    ///
    /// # Errors
    /// `upstream_error` if the value has no JSON form.
    pub fn state(self, state: &impl Serialize) -> Result<Self, Error> {
        Ok(self.state_bytes(serde_json::to_vec(state)?))
    }

    /// Sets the state to these bytes, for state that is not JSON.
    #[must_use]
    pub fn state_bytes(mut self, state: impl Into<Vec<u8>>) -> Self {
        self.state = state.into();
        self
    }

    /// The questions' keys, in the order in which they were asked.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.questions.iter().map(|(key, _)| key.as_str())
    }

    /// The state that was set, as bytes.
    pub fn saved_state(&self) -> &[u8] {
        &self.state
    }

    fn push(mut self, key: impl Into<String>, ask: Ask) -> Self {
        self.questions.push((key.into(), ask));
        self
    }

    #[cfg(any(feature = "std", not(target_family = "wasm")))]
    pub(crate) fn from_raw(raw: wit::InputRequest) -> Result<Self, Error> {
        let mut questions = Questions::new().state_bytes(raw.state);
        for question in raw.questions {
            let ask = match question.ask {
                wit::Ask::Form(form) => Ask::Form {
                    message: form.message,
                    schema: serde_json::from_str(&form.schema)?,
                },
                wit::Ask::Sample(parameters) => Ask::Sample(serde_json::from_str(&parameters)?),
                wit::Ask::Roots => Ask::Roots,
            };
            questions = questions.push(question.key, ask);
        }
        Ok(questions)
    }

    pub(crate) fn into_raw(self) -> Result<wit::InputRequest, Error> {
        let questions = self
            .questions
            .into_iter()
            .map(|(key, ask)| wit::Question {
                key,
                ask: match ask {
                    Ask::Form { message, schema } => wit::Ask::Form(wit::Form {
                        message,
                        schema: schema.to_string(),
                    }),
                    Ask::Sample(parameters) => wit::Ask::Sample(parameters.to_string()),
                    Ask::Roots => wit::Ask::Roots,
                },
            })
            .collect::<Vec<_>>();
        if questions.is_empty() {
            return Err(Error::new("internal", "the driver asks, but asks nothing"));
        }
        Ok(wit::InputRequest {
            questions,
            state: self.state,
        })
    }
}

/// The answer to one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer<T> {
    /// An answer, whose form the host has checked.
    Accepted(T),
    /// The person declined to answer.
    Declined,
    /// The person dismissed the question.
    Cancelled,
}

/// The answers to the questions of the previous call, and its state.
#[derive(Clone, Debug)]
pub struct Resume(wit::Resumption);

impl Resume {
    /// The state given with the questions.
    ///
    /// # Errors
    /// `upstream_error` if it is not the JSON of an `S`.
    pub fn state<S: DeserializeOwned>(&self) -> Result<S, Error> {
        Ok(serde_json::from_slice(&self.0.state)?)
    }

    /// The state as bytes.
    pub fn state_bytes(&self) -> &[u8] {
        &self.0.state
    }

    /// The answer to the question with this key.
    ///
    /// # Errors
    /// `internal` if no such question was asked, `upstream_error` if the answer is not the JSON of
    /// a `T`.
    pub fn answer<T: DeserializeOwned>(&self, key: &str) -> Result<Answer<T>, Error> {
        let answer = self.0.answers.iter().find(|answer| answer.key == key);
        match answer.map(|answer| &answer.reply) {
            Some(wit::Reply::Accepted(json)) => Ok(Answer::Accepted(serde_json::from_str(json)?)),
            Some(wit::Reply::Declined) => Ok(Answer::Declined),
            Some(wit::Reply::Cancelled) => Ok(Answer::Cancelled),
            None => Err(Error::new(
                "internal",
                format!("no question with the key {key} was asked"),
            )),
        }
    }

    pub(crate) fn from_raw(raw: wit::Resumption) -> Self {
        Resume(raw)
    }
}
