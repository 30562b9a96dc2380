//! Compiling in separate processes. Broker and workers are this same program, which runs one of the
//! "tests" at the end of this file.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;
use toolward_bundle::component::Surface;
use toolward_host::compile::broker::{run_broker, run_worker};
use toolward_host::{Broker, BrokerCommand, Cache, CallError, CompileLimits, Host};

use crate::fixture::{Extra, Fixture, error, still_serves};

/// A cache, and a mark that identifies the processes of one test.
pub(crate) struct CompileBackend {
    directory: tempfile::TempDir,
}

impl CompileBackend {
    pub(crate) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    fn mark(&self) -> &str {
        self.directory.path().to_str().unwrap()
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.directory.path().join("cache")
    }

    /// A broker whose workers run this "test".
    pub(crate) fn command(&self, worker: &str) -> BrokerCommand {
        // The mark is passed as one more test name, which no test has.
        let only = |name: &str| {
            let name = format!("broker::{name}");
            ["--exact", &name, self.mark(), "--ignored", "--nocapture"]
                .map(OsString::from)
                .to_vec()
        };
        BrokerCommand {
            program: std::env::current_exe().unwrap(),
            broker: only("broker_process"),
            worker: only(worker),
        }
    }

    fn broker(&self, worker: &str) -> Broker {
        Broker::builder(self.command(worker))
            .cache(self.cache())
            .start()
            .unwrap()
    }

    fn host(&self, worker: &str) -> Host {
        host(self.broker(worker))
    }

    /// The ids of the existing processes of the broker and its workers.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        entries
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|id| *id != std::process::id())
            .filter(|id| {
                // A zombie process has no command line.
                std::fs::read(format!("/proc/{id}/cmdline"))
                    .is_ok_and(|line| String::from_utf8_lossy(&line).contains(self.mark()))
            })
            .collect()
    }

    fn wait_for_processes(&self, count: usize) {
        let until = Instant::now() + Duration::from_secs(20);
        while self.processes().len() != count {
            assert!(Instant::now() < until, "{:?}", self.processes());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn artifacts(&self) -> Vec<PathBuf> {
        let all = std::fs::read_dir(self.cache().join("artefacts")).unwrap();
        all.flat_map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap())
            .map(|entry| entry.unwrap().path())
            .collect()
    }
}

fn host(broker: Broker) -> Host {
    Host::builder()
        .bundle(Fixture::new(Extra::default()).content())
        .broker(broker)
        .build()
        .unwrap()
}

async fn refused(host: &Host) -> CallError {
    error(host, json!({"do": "echo"})).await
}

fn code(error: &CallError) -> &str {
    error.cause.as_ref().unwrap()["code"].as_str().unwrap()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn a_driver_is_compiled_by_a_worker_kept_and_found_again() {
    let backend = CompileBackend::new();
    let first = backend.host("worker_process");
    still_serves(&first).await;
    assert_eq!(backend.artifacts().len(), 1);
    drop(first);
    backend.wait_for_processes(0);

    let second = backend.host("worker_that_crashes");
    still_serves(&second).await;
}

#[tokio::test]
async fn a_host_is_built_with_a_broker_that_is_started_later_and_once() {
    let backend = CompileBackend::new();
    let builder = Broker::builder(backend.command("worker_process"));
    let broker = builder.cache(backend.cache()).open().unwrap();
    let host = host(broker.clone());
    assert_eq!(backend.processes().len(), 0);
    assert_eq!(code(&refused(&host).await), "compiler-unavailable");
    broker.start().unwrap();
    broker.start().unwrap();
    still_serves(&host).await;
    backend.wait_for_processes(1);
}

#[tokio::test]
async fn the_signing_key_lies_apart_from_what_a_serving_process_reads() {
    let backend = CompileBackend::new();
    let broker = backend.broker("worker_process");
    still_serves(&host(broker.clone())).await;
    let (cache, artifacts) = (backend.cache(), broker.artifacts().unwrap());
    assert_eq!(mode(&cache), 0o700);
    let private = cache.join("private");
    assert_eq!(
        (mode(&private), mode(&private.join("key.pem"))),
        (0o700, 0o600)
    );
    assert!(!private.starts_with(&artifacts));
    assert_eq!(mode(&backend.artifacts()[0]), 0o400);
}

#[tokio::test]
async fn without_a_cache_the_artifact_comes_back_signed() {
    let backend = CompileBackend::new();
    let broker = Broker::builder(backend.command("worker_process"));
    still_serves(&host(broker.start().unwrap())).await;
    assert!(!backend.cache().exists());
}

#[tokio::test]
async fn an_artifact_that_is_larger_than_the_whole_cache_comes_back_signed() {
    let backend = CompileBackend::new();
    let mut broker = Broker::builder(backend.command("worker_process")).cache(backend.cache());
    broker.cache_limit = 1000;
    still_serves(&host(broker.start().unwrap())).await;
    assert_eq!(backend.artifacts(), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn a_changed_artifact_is_never_mapped_and_made_anew() {
    let backend = CompileBackend::new();
    still_serves(&backend.host("worker_process")).await;
    let [artifact] = &backend.artifacts()[..] else {
        panic!("{:?}", backend.artifacts())
    };
    let genuine = std::fs::read(artifact).unwrap();
    let mut changed = genuine.clone();
    changed[genuine.len() / 2] ^= 1;
    std::fs::set_permissions(artifact, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(artifact, changed).unwrap();

    let error = refused(&backend.host("worker_that_crashes")).await;
    assert_eq!(code(&error), "compile-crashed", "it was compiled again");
    still_serves(&backend.host("worker_process")).await;
    assert_eq!(std::fs::read(artifact).unwrap(), genuine);
    assert_eq!(backend.artifacts().len(), 1);
}

#[tokio::test]
async fn an_artifact_that_another_broker_signed_is_not_taken() {
    let (own, foreign) = (CompileBackend::new(), CompileBackend::new());
    still_serves(&foreign.host("worker_process")).await;
    still_serves(&own.host("worker_process")).await;
    let (theirs, ours) = (foreign.artifacts().remove(0), own.artifacts().remove(0));
    let genuine = std::fs::read(&ours).unwrap();
    std::fs::remove_file(&ours).unwrap();
    std::fs::copy(&theirs, &ours).unwrap();
    assert!(std::fs::read(&ours).unwrap() != genuine);

    let error = refused(&own.host("worker_that_crashes")).await;
    assert_eq!(code(&error), "compile-crashed", "it was compiled again");
    still_serves(&own.host("worker_process")).await;
    assert!(std::fs::read(&ours).unwrap() == genuine);
    assert_eq!(own.artifacts(), [ours]);
}

#[tokio::test]
async fn a_worker_that_takes_too_long_is_ended_and_its_driver_refused_for_good() {
    let backend = CompileBackend::new();
    let limits = CompileLimits {
        wall: Duration::from_secs(5),
        ..CompileLimits::default()
    };
    let broker = Broker::builder(backend.command("worker_that_sleeps"))
        .cache(backend.cache())
        .limits(limits);
    let host = host(broker.start().unwrap());
    let started = Instant::now();
    let error = refused(&host).await;
    assert_eq!(code(&error), "compile-time");
    assert!(!error.retryable);
    assert!(started.elapsed() < Duration::from_secs(40));
    assert_eq!(backend.processes().len(), 1, "the broker alone is left");
    assert_eq!(backend.artifacts(), Vec::<PathBuf>::new());

    let again = Instant::now();
    assert_eq!(code(&refused(&host).await), "compile-time");
    assert!(again.elapsed() < limits.wall, "the verdict is kept");
}

/// The hostile driver with a module whose memory is too large for any host. It compiles, and the
/// engine refuses to load it.
fn too_large() -> Fixture {
    let fixture = Fixture::new(Extra::default());
    let path = "drivers/hostile/driver.wasm";
    let mut wasm = std::fs::read(fixture.path().join(path)).unwrap();
    let module = wat::parse_str("(module (memory 65536))").unwrap();
    wasm.extend([1, u8::try_from(module.len()).unwrap()]);
    wasm.extend(module);
    // One instance of the new module, which comes after all others.
    let modules = Surface::read(&wasm).unwrap().modules;
    wasm.extend([2, 4, 1, 0, u8::try_from(modules - 1).unwrap(), 0]);
    fixture.write(path, wasm);
    fixture
}

#[tokio::test]
async fn a_component_that_the_engine_refuses_at_load_is_invalid_at_once() {
    let backend = CompileBackend::new();
    let own = tempfile::tempdir().unwrap();
    let (fixture, cache) = (too_large(), own.path().join("cache"));
    let hosts = || {
        let builder = || Host::builder().bundle(fixture.content());
        let bare = Broker::builder(backend.command("worker_process"));
        [
            builder().broker(backend.broker("worker_process")),
            builder().broker(bare.start().unwrap()),
            builder().cache(Cache::open(&cache).unwrap()),
            builder(),
        ]
        .map(|builder| builder.build().unwrap())
    };
    // The second time, a cache (if used) has the artifact.
    for _ in 0..2 {
        for host in hosts() {
            let error = refused(&host).await;
            assert_eq!(code(&error), "compile-invalid", "{error:?}");
            assert!(!error.retryable && error.retry_after.is_none());
            assert!(error.message.contains("memory"), "{error}");
            assert_eq!(
                error.hint.as_deref(),
                Some("report this to the driver's publisher")
            );
        }
    }
}

#[tokio::test]
async fn a_worker_that_was_killed_by_the_system_is_no_verdict_on_the_driver() {
    let backend = CompileBackend::new();
    let host = backend.host("worker_that_is_killed_once");
    let error = refused(&host).await;
    assert_eq!(code(&error), "compiler-unavailable");
    assert!(error.retryable);
    still_serves(&host).await;
}

#[tokio::test]
async fn a_worker_that_crashes_is_a_verdict_with_what_it_said() {
    let backend = CompileBackend::new();
    let host = backend.host("worker_that_crashes");
    let error = refused(&host).await;
    assert_eq!(code(&error), "compile-crashed");
    assert!(error.message.contains("the worker's last words"), "{error}");
    assert!(error.message.len() < 5000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_has_gone_is_no_verdict_on_the_driver() {
    let backend = CompileBackend::new();
    let host = backend.host("worker_that_sleeps");
    let call = tokio::spawn({
        let host = host.clone();
        async move { refused(&host).await }
    });
    backend.wait_for_processes(2);
    let broker = backend.processes().into_iter().min().unwrap();
    let id = rustix::process::Pid::from_raw(broker.cast_signed()).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
    let error = call.await.unwrap();
    assert_eq!(code(&error), "compiler-unavailable");
    assert!(error.retryable);
    assert_eq!(code(&refused(&host).await), "compiler-unavailable");
}

#[tokio::test]
async fn a_broker_that_is_no_broker_is_told_from_a_bad_driver() {
    let backend = CompileBackend::new();
    let command = BrokerCommand {
        program: "/bin/false".into(),
        ..backend.command("worker_process")
    };
    let broker = Broker::builder(command).cache(backend.cache());
    let error = refused(&host(broker.start().unwrap())).await;
    assert_eq!(code(&error), "compiler-unavailable");

    let command = BrokerCommand {
        program: backend.directory.path().join("missing"),
        ..backend.command("worker_process")
    };
    let error = Broker::builder(command).start().unwrap_err();
    assert_eq!(error.code(), "broker-unavailable");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_goes_takes_broker_and_worker_with_it() {
    let backend = CompileBackend::new();
    let host = backend.host("worker_that_sleeps");
    let call = tokio::spawn({
        let host = host.clone();
        async move { refused(&host).await }
    });
    backend.wait_for_processes(2);
    call.abort();
    drop(host);
    let _ = call.await;
    backend.wait_for_processes(0);
}

#[tokio::test]
async fn only_so_many_are_compiled_at_once_and_the_rest_wait() {
    let backend = CompileBackend::new();
    let fixture = Fixture::new(Extra::default());
    for number in 0..6 {
        let id = format!("hostile.more{number}");
        fixture.tool(&id, "");
        fixture.driver(&format!("more{number}"), &id, Extra::default());
        // Other bytes, so that each driver is compiled separately.
        let path = format!("drivers/more{number}/driver.wasm");
        let wasm = std::fs::read(fixture.path().join(&path)).unwrap();
        let section = [&[0, 6, 4][..], b"more", &[number]].concat();
        fixture.write(&path, [wasm, section].concat());
    }
    let mut broker = Broker::builder(backend.command("worker_process")).cache(backend.cache());
    broker.workers = NonZeroUsize::new(2).unwrap();
    let host = Host::builder()
        .bundle(fixture.content())
        .broker(broker.start().unwrap())
        .build()
        .unwrap();
    let calls = (0..6).map(|number| {
        let host = host.clone();
        let tool = format!("hostile.more{number}");
        tokio::spawn(async move {
            let request = toolward_host::Request::with_value(tool, json!({"do": "echo"}));
            host.call(request).await.result.unwrap();
        })
    });
    let calls: Vec<_> = calls.collect();
    let mut most = 0;
    while !calls.iter().all(tokio::task::JoinHandle::is_finished) {
        most = most.max(backend.processes().len());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(backend.artifacts().len(), 6);
    assert!(most <= 3, "a broker and two workers, not {most}");
}

/// The process of a broker in these tests.
#[test]
#[ignore = "a process of its own, started by the tests above"]
fn broker_process() {
    run_broker().unwrap();
}

/// The process of a worker in these tests.
#[test]
#[ignore = "a process of its own, started by a broker"]
fn worker_process() {
    run_worker().unwrap();
}

#[test]
#[ignore = "a process of its own, started by a broker"]
fn worker_that_sleeps() {
    let parent = rustix::process::getppid();
    let until = Instant::now() + Duration::from_secs(60);
    // If a broker was killed, its test process must not stay behind.
    while Instant::now() < until && rustix::process::getppid() == parent {
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
#[ignore = "a process of its own, started by a broker"]
fn worker_that_crashes() {
    eprintln!("the worker's last words {}", "x".repeat(100_000));
    std::process::abort();
}

#[test]
#[ignore = "a process of its own, started by a broker"]
fn worker_that_is_killed_once() {
    let mark = std::env::args().find(|argument| Path::new(argument).is_dir());
    // The broker lets the worker write nowhere else.
    let before = Path::new(&mark.unwrap()).join("cache/killed");
    if before.exists() {
        run_worker().unwrap();
    } else {
        std::fs::write(before, "").unwrap();
        let this = rustix::process::getpid();
        rustix::process::kill_process(this, rustix::process::Signal::KILL).unwrap();
    }
}
