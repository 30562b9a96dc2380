//! Measures the cost of a call over MCP, and the shares of the sandbox and of the protocol. One
//! server has a driver that echoes its input, and a native tool that does the same. Both are called
//! over stdio and over HTTP. The driver is also called through the host alone. Over stdio and
//! through the host, it is also called with each call recorded in a ledger by another process. All
//! ways take turns, so that other work of the machine affects them equally.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark may stop, and reports"
)]

use std::path::Path;
use std::time::{Duration, Instant};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::sync::CancellationToken;
use toolward_bundle::content::Content;
use toolward_host::{Host, HostBuilder, Request};
use toolward_mcp::principal::{Principal, Tools};
use toolward_mcp::stdio;
use toolward_mcp::{Connection, ServerFeatures, Service};
use toolward_policy::Policy;

mod client;
mod recorded;
use client::{Client, Web, Wire};
use recorded::Recorded;

const SANDBOXED: &str = "plain.echo";
const NATIVE: &str = "native.echo";

/// About 200 bytes of input.
const INPUT: &str = r#"{"customer":"c-1029","items":[{"sku":"a-1","count":3,"price":12.5},{"sku":"b-2","count":1,"price":99.0}],"note":"leave it with the neighbours, please","urgent":false,"tags":["x","y"]}"#;

/// How often each way has its turn, and the calls of one turn.
const ROUNDS: usize = 100;
const CALLS: usize = 100;
/// The number of calls at once when calls per second are counted, and the number of all calls.
const AT_ONCE: usize = 8;
const MANY: usize = 20_000;

/// The server, and a native tool without a sandbox next to the tools of the host.
#[derive(Clone)]
struct Both(Connection);

impl stdio::Handler for Both {
    fn long_calls_runtime(&self) -> Option<&Handle> {
        self.0.long_calls_runtime()
    }
}

impl ServerHandler for Both {
    fn get_info(&self) -> ServerConfig {
        self.0.get_info()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name != NATIVE {
            return self.0.call_tool(request, context).await;
        }
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        Ok(CallToolResult::structured(arguments).into())
    }
}

fn anybody() -> Principal {
    Principal {
        name: "anybody".into(),
        tools: Tools::All,
        may_approve: false,
    }
}

/// One way to make a call, and how long it took each time.
struct Way<'a> {
    name: &'static str,
    call: Box<dyn FnMut() + 'a>,
    times: Vec<Duration>,
}

impl<'a> Way<'a> {
    fn new(name: &'static str, call: impl FnMut() + 'a) -> Self {
        Self {
            name,
            call: Box::new(call),
            times: Vec::new(),
        }
    }

    fn turn(&mut self) {
        // Warms the caches after the other ways.
        (self.call)();
        for _ in 0..CALLS {
            let start = Instant::now();
            (self.call)();
            self.times.push(start.elapsed());
        }
    }

    fn quantile(&self, hundredths: usize) -> Duration {
        let place = self.times.len() * hundredths / 100;
        self.times.get(place).copied().unwrap_or_default()
    }
}

/// Calls the host from a thread that slept until it was asked, like a server's thread.
struct Woken {
    asks: tokio::sync::mpsc::Sender<()>,
    answers: std::sync::mpsc::Receiver<()>,
}

impl Woken {
    fn new(runtime: &Runtime, host: &Host) -> Self {
        let (asks, mut asked) = tokio::sync::mpsc::channel(1);
        let (answer, answers) = std::sync::mpsc::channel();
        let host = host.clone();
        runtime.spawn(async move {
            while asked.recv().await.is_some() {
                let reply = host.call(Request::new(SANDBOXED, INPUT)).await;
                assert!(reply.result.is_ok(), "{}", reply.envelope());
                if answer.send(()).is_err() {
                    return;
                }
            }
        });
        Self { asks, answers }
    }

    fn call(&self) {
        self.asks.blocking_send(()).expect("a task");
        self.answers.recv().expect("an answer");
    }
}

/// A host and a client of its tools over stdio.
struct Side {
    host: Host,
    wire: Wire,
}

/// Returns by how many microseconds the second median exceeds the first.
fn more(than: &Way<'_>, way: &Way<'_>) -> f64 {
    let [than, way] = [than, way].map(|way| way.quantile(50).as_secs_f64() * 1e6);
    way - than
}

fn one_after_the_other(runtime: &Runtime, side: &mut Side, recorded: &mut Side, web: &mut Web) {
    let Side { host, wire } = side;
    let host: &Host = host;
    let (wire, web) = (std::cell::RefCell::new(wire), std::cell::RefCell::new(web));
    let woken = Woken::new(runtime, host);
    let mut ways = [
        Way::new("host.call, woken", || woken.call()),
        Way::new("host.call", || {
            let reply = runtime.block_on(host.call(Request::new(SANDBOXED, INPUT)));
            assert!(reply.result.is_ok(), "{}", reply.envelope());
        }),
        Way::new("stdio, native", || wire.borrow_mut().call(NATIVE, INPUT)),
        Way::new("stdio, driver", || wire.borrow_mut().call(SANDBOXED, INPUT)),
        Way::new("host.call, ledger", || {
            let call = recorded.host.call(Request::new(SANDBOXED, INPUT));
            let reply = runtime.block_on(call);
            assert!(reply.result.is_ok(), "{}", reply.envelope());
        }),
        Way::new("stdio, driver, ledger", || {
            recorded.wire.call(SANDBOXED, INPUT);
        }),
        Way::new("HTTP, native", || web.borrow_mut().call(NATIVE, INPUT)),
        Way::new("HTTP, driver", || web.borrow_mut().call(SANDBOXED, INPUT)),
    ];
    for _ in 0..ROUNDS {
        for way in &mut ways {
            way.turn();
        }
    }
    println!("one call after the other    median       p99");
    for way in &mut ways {
        way.times.sort_unstable();
        let (median, most) = (way.quantile(50), way.quantile(99));
        println!("  {:24} {median:9.1?} {most:9.1?}", way.name);
    }
    let [
        _,
        alone,
        native,
        driver,
        alone_recorded,
        driver_recorded,
        web_native,
        web_driver,
    ] = &ways;
    let sandbox = |driver: &Way<'_>, native: &Way<'_>| {
        driver.quantile(50).saturating_sub(native.quantile(50))
    };
    println!(
        "  the sandbox, on stdio    {:9.1?}",
        sandbox(driver, native)
    );
    println!(
        "  the sandbox, over HTTP   {:9.1?}",
        sandbox(web_driver, web_native)
    );
    println!("  the protocol, on stdio   {:9.1?}", sandbox(driver, alone));
    println!(
        "  the protocol, over HTTP  {:9.1?}",
        sandbox(web_driver, alone)
    );
    println!(
        "  the ledger, in the host  {:+7.1} µs",
        more(alone, alone_recorded)
    );
    println!(
        "  the ledger, on stdio     {:+7.1} µs",
        more(driver, driver_recorded)
    );
}

fn many_at_once(runtime: &Runtime, host: &Host, wire: &mut Wire, web: &Web) {
    println!("calls per second, {AT_ONCE} at once");
    let report = |name: &str, run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        let rate = MANY as f64 / start.elapsed().as_secs_f64();
        println!("  {name:24} {rate:9.0}");
    };
    report("host.call", &mut || {
        let task = |_| {
            let host = host.clone();
            runtime.spawn(async move {
                for _ in 0..MANY / AT_ONCE {
                    let reply = host.call(Request::new(SANDBOXED, INPUT)).await;
                    assert!(reply.result.is_ok(), "{}", reply.envelope());
                }
            })
        };
        let tasks: Vec<_> = (0..AT_ONCE).map(task).collect();
        for task in tasks {
            runtime.block_on(task).expect("its calls");
        }
    });
    for (name, tool) in [("stdio, native", NATIVE), ("stdio, driver", SANDBOXED)] {
        report(name, &mut || wire.many(tool, INPUT, AT_ONCE, MANY));
    }
    for (name, tool) in [("HTTP, native", NATIVE), ("HTTP, driver", SANDBOXED)] {
        report(name, &mut || {
            std::thread::scope(|scope| {
                for _ in 0..AT_ONCE {
                    let mut client = web.another();
                    scope.spawn(move || {
                        client.open();
                        for _ in 0..MANY / AT_ONCE {
                            client.call(tool, INPUT);
                        }
                    });
                }
            });
        });
    }
}

fn main() {
    if recorded::records() {
        return;
    }
    let recorder = Recorded::start();
    let bundle = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/guests/plain");
    let content = Content::from_dev(&bundle).expect("a bundle; run `cargo xtask guests` first");
    let service = |builder: HostBuilder| {
        let host = builder.bundle(content.clone()).build().expect("a host");
        let contents = std::slice::from_ref(&content);
        let features = ServerFeatures::new(host.clone(), contents, &Policy::empty(), usize::MAX);
        (host, Service::new(features.expect("features")))
    };
    let runtime = Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let shutdown = CancellationToken::new();
    let side = |host, service: &Service| {
        let handler = Both(service.connection(Some(anybody())));
        let mut wire = client::wire(&runtime, handler, &shutdown);
        wire.open();
        Side { host, wire }
    };

    let (host, serving) = service(Host::builder());
    let mut plain = side(host, &serving);
    let handler = move || Both(serving.connection(None));
    let mut web = client::web(&runtime, handler, anybody(), &shutdown);
    web.open();
    let (host, serving) = service(Host::builder().recorder(recorder.remote.clone()));
    let mut recorded = side(host, &serving);

    one_after_the_other(&runtime, &mut plain, &mut recorded, &mut web);
    many_at_once(&runtime, &plain.host, &mut plain.wire, &web);
    shutdown.cancel();
    recorder.end();
}
