//! Recorded calls that somebody hands over.

use std::sync::LazyLock;

use toolward_ledger::cassette::{Cassette, CassetteCall};

/// A cassette that the ledger's own code wrote.
static WRITTEN: LazyLock<Cassette> = LazyLock::new(|| {
    let bytes = include_bytes!("../corpus/cassette/several");
    Cassette::read(bytes, None).expect("the seed is a cassette")
});

/// A cassette. Of the ledger of the seeds there is one checkpoint: whatever is taken under its name
/// has the calls that it signed, in their order, each at most once and none in another form.
pub fn cassette(data: &[u8]) -> bool {
    let Ok(read) = Cassette::read(data, None) else {
        return false;
    };
    assert!(!read.is_verified, "no key was named");
    for call in &read.calls {
        assert!(
            call.outcome.code.is_some() || call.output.is_some(),
            "a call without a result"
        );
    }
    if read.origin == WRITTEN.origin {
        let mut written = WRITTEN.calls.iter();
        let signed = |call: &CassetteCall| written.any(|one| without_detail(one, call));
        assert!(read.calls.iter().all(signed), "a call that was not signed");
    }
    true
}

/// Whether both are the same call. What was said about a failure may be left out.
fn without_detail(written: &CassetteCall, read: &CassetteCall) -> bool {
    let mut written = written.clone();
    if read.detail.is_none() {
        written.detail = None;
    }
    written == *read
}
