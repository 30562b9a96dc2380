//! Calls a handler without a host, in the tests of a driver's own crate. Types are converted
//! through JSON like in a component. Schemas, limits and policy are missing, since the host checks
//! them. For a handler that uses secrets, tools, the network or buckets, [`Grants`] simulates the
//! host's grants. `toolward test` runs the contract's examples with the host.

#[cfg(feature = "keyvalue")]
mod bucket;
mod grants;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::bindings::toolward::driver::types as wit;
use crate::{Answer, Call, Error, IntoOutcome, Outcome, Questions, Reply, run};

#[cfg(feature = "keyvalue")]
pub(crate) use bucket::TestBucket;
pub use grants::Grants;
#[cfg(feature = "http")]
pub(crate) use grants::answer;
#[cfg(feature = "keyvalue")]
pub(crate) use grants::bucket;
#[cfg(not(target_family = "wasm"))]
pub(crate) use grants::{call_tool, secret, store_secret};

/// Makes one call with an empty context, as the first attempt.
///
/// ```
/// use toolward_guest::{testing, Call, Error};
///
/// fn double(call: Call<u32>) -> Result<u32, Error> {
///     call.input.checked_mul(2).ok_or_else(|| Error::new("input_invalid", "too large"))
/// }
///
/// let reply = testing::invoke(double, 21.into()).unwrap();
/// assert_eq!(reply.structured(), &serde_json::json!(42));
/// assert_eq!(testing::invoke(double, u32::MAX.into()).unwrap_err().code(), "input_invalid");
/// ```
///
/// # Errors
/// The errors of the handler; `input_unavailable` if it asks questions, since no one can answer.
/// Use [`TestCall`] for questions.
pub fn invoke<I, O, E>(
    handler: impl FnOnce(Call<I>) -> Result<O, E>,
    input: Value,
) -> Result<Reply<Value>, Error>
where
    I: DeserializeOwned,
    O: IntoOutcome,
    E: Into<Error>,
{
    match TestCall::new(input).run(handler)? {
        Outcome::Done(reply) => Ok(reply),
        Outcome::Ask(_) => Err(Error::new(
            "input_unavailable",
            "the driver asks, and nobody is here to answer",
        )),
    }
}

/// A call with a context, a later attempt, or answers to questions.
///
/// ```
/// use serde_json::{json, Value};
/// use toolward_guest::testing::TestCall;
/// use toolward_guest::{Answer, Call, Error, Outcome, Questions};
///
/// fn confirm(call: Call<Value>) -> Result<Outcome<bool>, Error> {
///     match call.resume() {
///         None => Ok(Questions::new().roots("roots").state(&1)?.into()),
///         Some(resume) => Ok(Outcome::done(
///             resume.state::<u32>()? == 1
///                 && matches!(resume.answer::<Value>("roots")?, Answer::Accepted(_)),
///         )),
///     }
/// }
///
/// let Outcome::Ask(questions) = TestCall::new(json!({})).run(confirm).unwrap() else {
///     panic!("it should ask");
/// };
/// let call = TestCall::new(json!({})).answers(&questions, [("roots", Answer::Accepted(json!([])))]);
/// assert_eq!(call.run(confirm).unwrap(), Outcome::done(json!(true)));
/// ```
#[derive(Clone, Debug)]
pub struct TestCall(wit::Invocation);

impl TestCall {
    /// Creates a first attempt with this input.
    pub fn new(input: Value) -> Self {
        TestCall(wit::Invocation {
            id: "00000000-0000-7000-8000-000000000000".to_owned(),
            tool: "test".to_owned(),
            tool_version: "0.0.0".to_owned(),
            input: input.to_string(),
            context: "{}".to_owned(),
            attempt: 1,
            remaining_ms: 30_000,
            idempotency_key: "test".to_owned(),
            resume: None,
        })
    }

    /// Sets the context.
    #[must_use]
    pub fn context(mut self, context: Value) -> Self {
        self.0.context = context.to_string();
        self
    }

    /// Sets the number of the attempt, from 1.
    #[must_use]
    pub fn attempt(mut self, attempt: u32) -> Self {
        self.0.attempt = attempt;
        self
    }

    /// Turns it into the call that follows these questions, with answers by key.
    #[must_use]
    pub fn answers<'a>(
        mut self,
        questions: &Questions,
        answers: impl IntoIterator<Item = (&'a str, Answer<Value>)>,
    ) -> Self {
        let answers = answers.into_iter().map(|(key, answer)| wit::Answer {
            key: key.to_owned(),
            reply: match answer {
                Answer::Accepted(value) => wit::Reply::Accepted(value.to_string()),
                Answer::Declined => wit::Reply::Declined,
                Answer::Cancelled => wit::Reply::Cancelled,
            },
        });
        self.0.resume = Some(wit::Resumption {
            state: questions.saved_state().to_vec(),
            answers: answers.collect(),
        });
        self
    }

    /// Makes the call.
    ///
    /// # Errors
    /// The errors of the handler.
    pub fn run<I, O, E>(
        self,
        handler: impl FnOnce(Call<I>) -> Result<O, E>,
    ) -> Result<Outcome<Value>, Error>
    where
        I: DeserializeOwned,
        O: IntoOutcome,
        E: Into<Error>,
    {
        match run(self.0, handler).map_err(Error::from_raw)? {
            wit::Outcome::Done(output) => Ok(Outcome::Done(Reply::from_raw(output)?)),
            wit::Outcome::NeedsInput(request) => Ok(Outcome::Ask(Questions::from_raw(request)?)),
        }
    }
}
