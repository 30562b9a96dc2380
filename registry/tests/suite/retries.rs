//! Failed transfers are retried after a short delay, and only a limited number of times.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use toolward_registry::ClientLimits;
use toolward_signing::archive::Effort;

use crate::sample::{Sample, builder, by_key_one, client};
use crate::scripted::{Held, Say, Scripted, pull_code, range, status, with};

#[tokio::test]
async fn a_connection_that_breaks_in_the_middle_is_taken_up_there() {
    let sample = Sample::new(600_000, &[1]);
    let held = Held::new(&sample);
    let path = held.content_path();
    let (size, honest) = (held.content.len(), held.clone());
    let server = Scripted::start(move |asked| {
        if !asked.is("GET", &path) {
            return honest.answer(asked);
        }
        // Each connection transfers 100,000 bytes and then breaks.
        let from = asked.from().unwrap_or(0);
        let to = size.min(from + 100_000);
        let body = honest.content[from..to].to_vec();
        match from {
            0 => Say::Cut(200, vec![], size, body),
            from => Say::Cut(206, vec![range(from, size)], size - from, body),
        }
    });
    let downloads = tempfile::tempdir().unwrap();
    let target = server.reference("a:1");
    let pulled = client()
        .pull(&target, downloads.path(), None, by_key_one)
        .await
        .unwrap();
    assert!(pulled.archive(Effort::Exact, Vec::new()).unwrap() == sample.archive());
    let asked = server.asked();
    let content = asked
        .iter()
        .filter(|asked| asked.is("GET", &held.content_path()));
    let ranges: Vec<_> = content.map(|asked| asked.from().unwrap_or(0)).collect();
    assert!(ranges.len() >= 6, "{ranges:?}");
    assert!(
        ranges.windows(2).all(|pair| pair[0] < pair[1]),
        "{ranges:?}"
    );
}

#[tokio::test]
async fn a_pull_that_failed_leaves_what_the_next_one_goes_on_from() {
    let held = Held::new(&Sample::new(400_000, &[1]));
    let path = held.content_path();
    let broken = Arc::new(AtomicUsize::new(0));
    let (honest, count) = (held.clone(), broken.clone());
    let server = Scripted::start(move |asked| {
        if asked.is("GET", &path) {
            match count.fetch_add(1, Ordering::SeqCst) {
                0 => {
                    let part = honest.content[..120_000].to_vec();
                    return Say::Cut(200, vec![], honest.content.len(), part);
                }
                1 => return status(400),
                _ => {}
            }
        }
        honest.answer(asked)
    });
    let downloads = tempfile::tempdir().unwrap();
    let target = server.reference("a:1");
    let failure = client()
        .pull(&target, downloads.path(), None, by_key_one)
        .await
        .unwrap_err();
    assert_eq!(failure.code(), "registry-failed");
    let left = std::fs::read_dir(downloads.path())
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let length = left.metadata().unwrap().len();
    assert!(length > 0 && length <= 120_000);
    client()
        .pull(&target, downloads.path(), None, by_key_one)
        .await
        .unwrap();
    let last = server.asked().pop().unwrap();
    assert_eq!(last.from(), Some(usize::try_from(length).unwrap()));
}

#[tokio::test]
async fn retry_after_is_waited_for() {
    for busy in [429, 503] {
        let held = Held::new(&Sample::new(100, &[1]));
        let asks = AtomicUsize::new(0);
        let server = Scripted::start(move |asked| {
            if asked.target.ends_with("/manifests/1") && asks.fetch_add(1, Ordering::SeqCst) == 0 {
                return with(busy, &[("Retry-After", "1")]);
            }
            held.answer(asked)
        });
        let started = Instant::now();
        pull_code(&client(), &server).await.unwrap();
        assert!(started.elapsed() >= Duration::from_secs(1));
        assert_eq!(server.count("GET", "/manifests/1"), 2);
    }
}

#[tokio::test]
async fn a_retry_after_beyond_all_patience_is_not_waited_for() {
    for after in ["3600", "4294967295"] {
        let server = Scripted::start(move |_| with(503, &[("Retry-After", after)]));
        let started = Instant::now();
        assert_eq!(
            pull_code(&client(), &server).await.unwrap_err(),
            "registry-busy"
        );
        assert!(started.elapsed() < Duration::from_secs(30));
        assert_eq!(server.asked().len(), 1);
    }
    let server = Scripted::start(move |_| with(503, &[("Retry-After", "40")]));
    let limits = ClientLimits {
        patience: Duration::from_secs(2),
        ..Default::default()
    };
    let impatient = builder().limits(limits).build().unwrap();
    let started = Instant::now();
    let code = pull_code(&impatient, &server).await.unwrap_err();
    assert_eq!(code, "registry-busy");
    assert!(started.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn trying_again_ends_at_the_limit_and_at_the_deadline() {
    let server = Scripted::start(|_| Say::Nothing);
    let code = pull_code(&client(), &server).await.unwrap_err();
    assert_eq!(code, "registry-unreachable");
    assert_eq!(server.asked().len(), 5, "once, and four times again");

    let limits = ClientLimits {
        total: Duration::from_secs(1),
        retries: 1000,
        ..Default::default()
    };
    let impatient = builder().limits(limits).build().unwrap();
    let started = Instant::now();
    let code = pull_code(&impatient, &server).await.unwrap_err();
    assert!(["registry-unreachable", "registry-timeout"].contains(&code.as_str()));
    assert!(started.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn a_refusal_is_not_tried_again() {
    for (said, code) in [
        (400, "registry-failed"),
        (403, "registry-credentials-refused"),
        (404, "registry-not-found"),
    ] {
        let server = Scripted::start(move |_| status(said));
        assert_eq!(pull_code(&client(), &server).await.unwrap_err(), code);
        assert_eq!(server.asked().len(), 1);
    }
}

#[tokio::test]
async fn an_upload_that_breaks_goes_on_from_what_the_registry_has() {
    let sample = Sample::new(9 * 1024 * 1024, &[1]);
    let outgoing = sample.outgoing();
    let held = Held::new(&sample);
    let got = Arc::new(std::sync::Mutex::new((Vec::new(), 0_usize)));
    let state = got.clone();
    let server = Scripted::start(move |asked| {
        let session = [("Location", "/v2/a/blobs/uploads/1?state=s")];
        let mut state = state.lock().unwrap();
        match asked.method.as_str() {
            "HEAD" => status(404),
            "POST" => with(202, &session),
            "PATCH" => {
                state.1 += 1;
                if state.1 == 2 {
                    // Half of the chunk arrives, and then the connection breaks.
                    let half = asked.body.len() / 2;
                    state.0.extend_from_slice(&asked.body[..half]);
                    return Say::Nothing;
                }
                let from: usize = asked
                    .header("content-range")
                    .unwrap()
                    .split('-')
                    .next()
                    .unwrap()
                    .parse()
                    .unwrap();
                assert_eq!(from, state.0.len());
                state.0.extend_from_slice(&asked.body);
                let range = format!("0-{}", state.0.len() - 1);
                with(202, &[session[0], ("Range", &range)])
            }
            "GET" => {
                let range = format!("0-{}", state.0.len() - 1);
                with(204, &[session[0], ("Range", &range)])
            }
            _ => status(201),
        }
    });
    let target = server.reference("a:1");
    client().push(&outgoing, &target, None).await.unwrap();
    assert!(got.lock().unwrap().0 == held.content);
    assert_eq!(server.count("GET", "/uploads/1"), 1);
}
