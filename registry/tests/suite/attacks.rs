//! Attacks by a registry, or by whoever stands between, a module for each: what was tried, the code it is refused
//! with, and what did not happen.

mod another_blob;
mod endless_blob;
mod realm_elsewhere;
mod redirect_elsewhere;
mod tag_changed_between_two_requests;
mod truncated_blob;

use crate::sample::Sample;
use crate::scripted::{Asked, Held, Say, Scripted};

/// A server that is honest but for what `lie` says.
pub(crate) fn lying(
    held: &Held,
    lie: impl Fn(&Asked) -> Option<Say> + Send + Sync + 'static,
) -> Scripted {
    let held = held.clone();
    Scripted::start(move |asked| lie(asked).unwrap_or_else(|| held.answer(asked)))
}

/// What a registry holds of a bundle of some size.
pub(crate) fn held() -> Held {
    Held::new(&Sample::new(200_000, &[1]))
}
