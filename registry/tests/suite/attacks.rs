//! Attacks by a registry or by someone on the path to it, a module for each: the attempt, the code
//! of its refusal, and the effects that did not occur.

mod another_blob;
mod endless_blob;
mod realm_elsewhere;
mod redirect_elsewhere;
mod tag_changed_between_two_requests;
mod truncated_blob;

use crate::sample::Sample;
use crate::scripted::{Asked, Held, Say, Scripted};

/// A server that answers honestly, except for requests that `lie` answers.
pub(crate) fn lying(
    held: &Held,
    lie: impl Fn(&Asked) -> Option<Say> + Send + Sync + 'static,
) -> Scripted {
    let held = held.clone();
    Scripted::start(move |asked| lie(asked).unwrap_or_else(|| held.answer(asked)))
}

/// The contents of a registry with a bundle of about 200 kB.
pub(crate) fn held() -> Held {
    Held::new(&Sample::new(200_000, &[1]))
}
