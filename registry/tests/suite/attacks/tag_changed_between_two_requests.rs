//! A registry whose tag has another target at the second request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::attacks::held;
use crate::sample::{Sample, client};
use crate::scripted::{Held, Say, Scripted, pull_code};

#[tokio::test]
async fn a_tag_that_changes_between_two_requests_can_not_mix_two_bundles() {
    let first = held();
    let second = Held::new(&Sample::new(150_000, &[1]));
    let asks = Arc::new(AtomicUsize::new(0));
    let (one, two, count) = (first.clone(), second.clone(), asks.clone());
    let server = Scripted::start(move |asked| {
        if asked.target.ends_with("/manifests/1") && count.fetch_add(1, Ordering::SeqCst) > 0 {
            return two.answer(asked);
        }
        match one.answer(asked) {
            Say::Answer(404, ..) => two.answer(asked),
            said => said,
        }
    });
    let artifact = pull_code(&client(), &server).await.unwrap();
    assert_eq!(artifact.digest, first.digest);
    assert_eq!(asks.load(Ordering::SeqCst), 1, "the tag is asked for once");
}
