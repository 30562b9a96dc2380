//! A transport, a route and a call for a test, with names that exist only in the test.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty, Full};
use ipnet::IpNet;
use toolward_contract::capability::HostPattern;
use toolward_egress::{
    Call, Error, LookupPermit, NoSecrets, Resolve, Resolving, ResponseBody, Rules, SecretValues,
    Timeouts, TransportSettings, ValueError,
};
use toolward_policy::{CallLimits, HostGrant, HostTerms, SecretBinding, SecretPosition};
use zeroize::Zeroizing;

/// Answers for names. Each name has a list of answers, of which the last one stays.
#[derive(Default)]
pub(crate) struct Names {
    answers: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    pub(crate) asked: AtomicUsize,
}

impl Names {
    pub(crate) fn of(names: &[(&str, &[&[&str]])]) -> Arc<Names> {
        let read = |answer: &&[&str]| answer.iter().map(|ip| ip.parse().unwrap()).collect();
        let answers = names
            .iter()
            .map(|(name, answers)| ((*name).to_owned(), answers.iter().map(read).collect()));
        Arc::new(Names {
            answers: Mutex::new(answers.collect()),
            asked: AtomicUsize::new(0),
        })
    }

    /// `a.example`, `b.example` and `evil.example`, all on 127.0.0.1.
    pub(crate) fn local() -> Arc<Names> {
        let here: &[&[&str]] = &[&["127.0.0.1"]];
        Names::of(&[
            ("a.example", here),
            ("b.example", here),
            ("evil.example", here),
        ])
    }
}

impl Resolve for Names {
    fn resolve<'a>(&'a self, host: &'a str, _: LookupPermit) -> Resolving<'a> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut names = self.answers.lock().unwrap();
        let answer = match names.get_mut(host) {
            Some(answers) if answers.len() > 1 => Ok(answers.remove(0)),
            Some(answers) => Ok(answers[0].clone()),
            None => Err(io::Error::other("no such name")),
        };
        Box::pin(async move { answer })
    }
}

/// A transport that resolves `names`, without the system's root certificates.
pub(crate) fn transport(names: &Arc<Names>) -> TransportSettings {
    TransportSettings {
        resolver: Arc::<Names>::clone(names),
        system_roots: false,
        ..TransportSettings::default()
    }
}

/// A rule that allows reading over plain http from a name on 127.0.0.1.
pub(crate) fn local(host: &str, port: u16) -> HostGrant {
    HostGrant {
        host: HostPattern::parse(&format!("{host}:{port}")).unwrap(),
        unsafe_methods: false,
        terms: HostTerms {
            plain_http: true,
            addresses: vec!["127.0.0.1/32".parse::<IpNet>().unwrap()],
            ..HostTerms::default()
        },
    }
}

/// A rule that allows all methods over plain http to a name on 127.0.0.1.
pub(crate) fn writing(host: &str, port: u16) -> HostGrant {
    HostGrant {
        unsafe_methods: true,
        ..local(host, port)
    }
}

/// `rule` with changed terms.
pub(crate) fn on_terms(mut rule: HostGrant, change: impl FnOnce(&mut HostTerms)) -> HostGrant {
    change(&mut rule.terms);
    rule
}

pub(crate) fn limits() -> CallLimits {
    CallLimits {
        http_timeout: Duration::from_secs(60),
        http_requests_total: 1000,
        egress_bytes: 256 << 20,
        ..CallLimits::default()
    }
}

/// The deadline of calls that are ended by nothing else.
pub(crate) fn deadline() -> Instant {
    Instant::now() + Duration::from_secs(120)
}

/// A call of a fresh transport under `rules`.
pub(crate) fn call(rules: Vec<HostGrant>) -> Call {
    call_with(&Names::local(), rules, limits())
}

pub(crate) fn call_with(names: &Arc<Names>, rules: Vec<HostGrant>, limits: CallLimits) -> Call {
    let rules = Arc::new(Rules::new(rules, Vec::new()).unwrap());
    let egress = transport(names).build().egress("alpha", rules);
    egress.call(limits, deadline(), None, Arc::new(NoSecrets))
}

/// The values of secrets.
pub(crate) struct Values(pub(crate) HashMap<&'static str, &'static str>);

impl Values {
    pub(crate) fn of(values: &[(&'static str, &'static str)]) -> Arc<Values> {
        Arc::new(Values(values.iter().copied().collect()))
    }
}

impl SecretValues for Values {
    fn get(&self, slug: &str) -> Result<Zeroizing<Vec<u8>>, ValueError> {
        let value = self.0.get(slug).ok_or_else(|| ValueError::new("not set"))?;
        Ok(Zeroizing::new(value.as_bytes().to_vec()))
    }
}

/// A rule for a token in `authorization` to a name, with any path.
pub(crate) fn token(host: &str, port: u16) -> (String, SecretBinding) {
    let binding = SecretBinding {
        host: host.to_owned(),
        port,
        position: SecretPosition::Header("authorization".to_owned()),
        methods: vec!["GET".to_owned(), "POST".to_owned()],
        path_prefix: "/".to_owned(),
    };
    ("token".to_owned(), binding)
}

pub(crate) fn get(url: &str) -> Request<Empty<Bytes>> {
    Request::get(url).body(Empty::new()).expect("a URL")
}

pub(crate) fn request(method: Method, url: &str, body: &str) -> Request<Full<Bytes>> {
    let body = Full::new(Bytes::copy_from_slice(body.as_bytes()));
    let request = Request::builder().method(method).uri(url).body(body);
    request.expect("a URL")
}

pub(crate) async fn send_get(call: &Call, url: &str) -> Result<Response<ResponseBody>, Error> {
    call.send(get(url), Timeouts::default()).await
}

/// The body of a response.
pub(crate) async fn text(response: Response<ResponseBody>) -> Result<String, Error> {
    let body = response.into_body().collect().await?.to_bytes();
    Ok(String::from_utf8_lossy(&body).into_owned())
}

/// The code of the error that refused or ended a request; `sent` if there was none.
pub(crate) fn code<T>(result: Result<T, Error>) -> &'static str {
    result.map_or_else(|error| error.code(), |_| "sent")
}

/// Long enough for a packet on loopback to arrive.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

/// Waits for `condition`, at most for half a minute.
pub(crate) async fn eventually(condition: impl Fn() -> bool) {
    for _ in 0..3000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never became true");
}

/// A body of unknown length.
pub(crate) struct Chunks {
    chunks: VecDeque<Bytes>,
    trailers: Option<HeaderMap>,
    hangs: bool,
}

impl Chunks {
    pub(crate) fn of(chunks: &[&str]) -> Chunks {
        let chunks = chunks
            .iter()
            .map(|chunk| Bytes::copy_from_slice(chunk.as_bytes()));
        Chunks {
            chunks: chunks.collect(),
            trailers: None,
            hangs: false,
        }
    }

    pub(crate) fn with_trailers(self, trailers: HeaderMap) -> Chunks {
        Chunks {
            trailers: Some(trailers),
            ..self
        }
    }

    /// A body with the same chunks that never ends.
    pub(crate) fn hanging(self) -> Chunks {
        Chunks {
            hangs: true,
            ..self
        }
    }
}

impl Body for Chunks {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(chunk) = self.chunks.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(chunk))));
        }
        if self.hangs {
            return Poll::Pending;
        }
        let trailers = self.trailers.take();
        Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
    }
}
