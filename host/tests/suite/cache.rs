//! The cache of compiled drivers: an artifact is used if it is genuine, and replaced if not.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use toolward_bundle::component::{ComponentContent, Surface};
use toolward_host::{Cache, CompileError, CompileReason, Compiler, EngineProfile, Host, InProcess};
use toolward_signing::archive::{Contents, to_stored_bytes};
use toolward_signing::envelope::Envelope;
use toolward_signing::key::SigningKey;
use toolward_signing::manifest::FileDigest;
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::{self, ReopenFn, UnreadFile, VerifyOptions};
use toolward_signing::{Digest, MANIFEST_TYPE};

use crate::fixture::{Extra, Fixture, hostile_wasm, still_serves};

/// The time limit of each step, longer than any step takes.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Counts how often something is compiled.
#[derive(Debug, Clone, Default)]
struct Counting(Arc<AtomicUsize>);

impl Compiler for Counting {
    fn compile(&self, wasm: &[u8], profile: &EngineProfile) -> Result<Vec<u8>, CompileError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        InProcess.compile(wasm, profile)
    }
}

/// Serves one call from a new host on this cache. Returns how often it compiled.
async fn compiled(fixture: &Fixture, cache: &Path) -> usize {
    let counting = Counting::default();
    let host = fixture
        .builder()
        .compiler(counting.clone())
        .cache(Cache::open(cache).unwrap())
        .build()
        .unwrap();
    still_serves(&host).await;
    still_serves(&host).await;
    counting.0.load(Ordering::SeqCst)
}

fn artifacts(cache: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(cache.join("artefacts"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .flat_map(|path| std::fs::read_dir(path).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect()
}

fn overwrite(path: &Path, bytes: &[u8]) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(path, bytes).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o400)).unwrap();
}

#[tokio::test]
async fn a_genuine_artifact_is_used_and_anything_else_compiled_again() {
    let fixture = Fixture::new(Extra::default());
    let directory = tempfile::tempdir().unwrap();
    let cache = directory.path().join("cache");
    assert_eq!(compiled(&fixture, &cache).await, 1, "nothing is there yet");
    assert_eq!(compiled(&fixture, &cache).await, 0, "it is there now");

    let [artifact] = &artifacts(&cache)[..] else {
        panic!("{:?}", artifacts(&cache))
    };
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&cache), mode(artifact)), (0o700, 0o400));
    let genuine = std::fs::read(artifact).unwrap();

    // One bit changed in a header, in code or in the signature; then a cut file, a longer file and
    // an empty file.
    let end = genuine.len();
    for at in [0, 64, end / 2, end - 65, end - 64, end - 1] {
        let mut changed = genuine.clone();
        changed[at] ^= 1;
        overwrite(artifact, &changed);
        assert_eq!(compiled(&fixture, &cache).await, 1, "byte {at} was changed");
        assert_eq!(compiled(&fixture, &cache).await, 0, "and is repaired");
    }
    let longer = [genuine.as_slice(), b"x"].concat();
    for bytes in [
        &genuine[..end - 1],
        &genuine[..end - 64],
        &genuine[..63],
        &longer,
        b"",
    ] {
        overwrite(artifact, bytes);
        assert_eq!(compiled(&fixture, &cache).await, 1);
    }
}

/// A component that was left unread when a bundle in the file `object` was verified.
fn unread(object: &Path, wasm: &[u8]) -> UnreadFile {
    let (key, path, tools) = (SigningKey::from_bytes(&[7; 32]), "driver.wasm", b"{}");
    let manifest = format!(
        "schema = 1\nid = \"hostile.bundle\"\nversion = \"1.0.0\"\nsequence = 1\npublisher = \"hostile\"\n\
         created = \"2026-01-01T00:00:00Z\"\n[artifacts.tools]\npath = \"tools.json\"\n\
         blake3 = \"{}\"\nsize = 2\nversion = 1\n[[artifacts.files]]\npath = \"{path}\"\n\
         blake3 = \"{}\"\nsize = {}\nrole = \"component\"\n",
        Digest::of(tools),
        Digest::of(wasm),
        wasm.len()
    );
    let mut envelope = Envelope::new(MANIFEST_TYPE, manifest.clone().into_bytes());
    envelope.sign(&key);
    let stored = to_stored_bytes(&Contents {
        envelope: &envelope.to_bytes().unwrap(),
        manifest: manifest.as_bytes(),
        provenance: None,
        files: vec![
            ("tools.json".parse().unwrap(), tools),
            (path.parse().unwrap(), wasm),
        ],
    });
    std::fs::write(object, stored).unwrap();
    let options = VerifyOptions {
        now: None,
        ..VerifyOptions::default()
    };
    let known = |_: &FileDigest| Some(Arc::from(*b"facts"));
    let trust = TrustStore::for_key(key.public());
    let mut file = std::fs::File::open(object).unwrap();
    let path_of_object = object.to_owned();
    let reopen: Arc<ReopenFn> = Arc::new(move || std::fs::File::open(&path_of_object));
    let bundle = verify::stored_file(&mut file, &trust, &options, &known, &reopen).unwrap();
    bundle.unread[path].clone()
}

#[tokio::test]
async fn an_unread_component_is_refused_if_it_was_changed_and_not_read_if_its_code_is_cached() {
    let fixture = Fixture::new(Extra::default());
    let directory = tempfile::tempdir().unwrap();
    let [cache, object] = ["cache", "object"].map(|name| directory.path().join(name));
    let file = unread(&object, &std::fs::read(hostile_wasm()).unwrap());
    let host_with = |falsify: fn(&mut Surface)| {
        let mut content = fixture.content();
        let component = content.drivers[0].component.as_mut().unwrap();
        component.content = ComponentContent::Unread(file.clone());
        falsify(&mut component.surface);
        let cache = Cache::open(&cache).unwrap();
        Host::builder()
            .bundle(content)
            .cache(cache)
            .build()
            .unwrap()
    };
    let host = || host_with(|_| {});
    let good = std::fs::read(&object).unwrap();
    let mut changed = good.clone();
    changed[good.len() / 2] ^= 1;

    let first = host();
    std::fs::write(&object, &changed).unwrap();
    let error = crate::fixture::error(&first, serde_json::json!({"do": "echo"})).await;
    assert_eq!(error.code.as_str(), "upstream_error");
    assert_eq!(error.cause.unwrap()["code"], "component-changed");
    assert_eq!(artifacts(&cache), Vec::<PathBuf>::new());
    // The facts in a cache that someone else wrote.
    std::fs::write(&object, &good).unwrap();
    let false_facts = host_with(|surface| surface.imports.clear());
    let error = crate::fixture::error(&false_facts, serde_json::json!({"do": "echo"})).await;
    assert_eq!(error.cause.unwrap()["code"], "component-changed");
    assert_eq!(artifacts(&cache), Vec::<PathBuf>::new());
    // This is not a verdict on the component.
    std::fs::write(&object, &good).unwrap();
    still_serves(&first).await;

    std::fs::write(&object, &changed).unwrap();
    still_serves(&host()).await;
}

#[test]
fn a_small_genuine_artifact_is_loaded_without_another_thread() {
    let fixture = Fixture::new(Extra::default());
    let directory = tempfile::tempdir().unwrap();
    let cache = directory.path().join("cache");
    // The runtime has at most one other thread, which is busy with something else.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build()
        .unwrap();
    runtime.block_on(async {
        assert_eq!(compiled(&fixture, &cache).await, 1);
        let (end, busy) = channel::<()>();
        let thread = tokio::task::spawn_blocking(move || busy.recv());
        let loaded = tokio::time::timeout(TEST_TIMEOUT, compiled(&fixture, &cache));
        assert_eq!(loaded.await, Ok(0));
        drop(end);
        assert!(thread.await.unwrap().is_err());
    });
}

#[tokio::test]
async fn an_artifact_of_another_cache_is_not_trusted() {
    let fixture = Fixture::new(Extra::default());
    let directory = tempfile::tempdir().unwrap();
    let (own, foreign) = (
        directory.path().join("own"),
        directory.path().join("foreign"),
    );
    assert_eq!(compiled(&fixture, &foreign).await, 1);
    Cache::open(&own).unwrap();
    let artifact = artifacts(&foreign).remove(0);
    let planted = own.join(artifact.strip_prefix(&foreign).unwrap());
    std::fs::create_dir_all(planted.parent().unwrap()).unwrap();
    std::fs::copy(&artifact, &planted).unwrap();
    assert_eq!(compiled(&fixture, &own).await, 1);
}

#[tokio::test]
async fn a_link_or_a_file_that_others_may_write_is_not_trusted() {
    let fixture = Fixture::new(Extra::default());
    let directory = tempfile::tempdir().unwrap();
    let cache = directory.path().join("cache");
    assert_eq!(compiled(&fixture, &cache).await, 1);
    let artifact = artifacts(&cache).remove(0);

    std::fs::set_permissions(&artifact, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(
        compiled(&fixture, &cache).await,
        1,
        "others could have written it"
    );

    let elsewhere = directory.path().join("elsewhere");
    std::fs::rename(&artifact, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &artifact).unwrap();
    assert_eq!(
        compiled(&fixture, &cache).await,
        1,
        "a link leads elsewhere"
    );
}

#[tokio::test]
async fn a_driver_that_is_larger_than_the_whole_cache_runs_and_is_not_kept() {
    let fixture = Fixture::new(Extra::default());
    let directory = tempfile::tempdir().unwrap();
    let cache = directory.path().join("cache");
    let host = fixture
        .builder()
        .cache(Cache::open(&cache).unwrap().limit(1000))
        .build()
        .unwrap();
    still_serves(&host).await;
    assert_eq!(artifacts(&cache), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn a_host_goes_on_with_a_driver_that_made_room_for_another() {
    let directory = tempfile::tempdir().unwrap();
    let cache = directory.path().join("cache");
    let host = |fixture: &Fixture, limit: u64| {
        let cache = Cache::open(&cache).unwrap().limit(limit);
        fixture.builder().cache(cache).build().unwrap()
    };
    let first = host(&Fixture::new(Extra::default()), Cache::DEFAULT_LIMIT_BYTES);
    still_serves(&first).await;
    let [artifact] = &artifacts(&cache)[..] else {
        panic!("{:?}", artifacts(&cache))
    };
    let size = std::fs::metadata(artifact).unwrap().len();

    // Another bundle: the same driver with other bytes.
    let other = Fixture::new(Extra::default());
    let path = "drivers/hostile/driver.wasm";
    let wasm = std::fs::read(other.path().join(path)).unwrap();
    let section = [&[0, 6, 4][..], b"more", &[1]].concat();
    other.write(path, [wasm, section].concat());
    let second = host(&other, size * 3 / 2);
    still_serves(&second).await;
    assert_eq!(artifacts(&cache).len(), 1);
    assert!(!artifact.exists());
    still_serves(&first).await;
}

#[test]
fn a_cache_that_others_may_enter_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let cache = directory.path().join("cache");
    std::fs::create_dir(&cache).unwrap();
    std::fs::set_permissions(&cache, std::fs::Permissions::from_mode(0o755)).unwrap();
    let error = Cache::open(&cache).unwrap_err();
    assert_eq!(error.code(), "cache-unusable");
    assert!(error.to_string().contains("755"), "{error}");
}

#[tokio::test]
async fn a_compiler_that_fails_is_asked_once_and_the_call_says_so() {
    #[derive(Debug)]
    struct Broken(AtomicUsize);
    impl Compiler for Broken {
        fn compile(&self, _: &[u8], _: &EngineProfile) -> Result<Vec<u8>, CompileError> {
            assert_eq!(self.0.fetch_add(1, Ordering::SeqCst), 0, "asked again");
            Err(CompileError::new(CompileReason::Crashed, "too hard"))
        }
    }
    let host = Host::builder()
        .bundle(Fixture::new(Extra::default()).content())
        .compiler(Broken(AtomicUsize::new(0)))
        .build()
        .unwrap();
    for _ in 0..2 {
        let error = crate::fixture::error(&host, serde_json::json!({"do": "echo"})).await;
        assert_eq!(error.code.as_str(), "upstream_error");
        assert!(error.message.contains("too hard"), "{error}");
    }
}

/// A compiler that counts, and compiles only once it is notified.
#[derive(Debug, Clone)]
struct Slow {
    counting: Counting,
    begun: Arc<tokio::sync::Notify>,
    may: Arc<Mutex<Receiver<()>>>,
    tell: Sender<()>,
}

impl Default for Slow {
    fn default() -> Self {
        let (tell, may) = channel();
        Self {
            counting: Counting::default(),
            begun: Arc::default(),
            may: Arc::new(Mutex::new(may)),
            tell,
        }
    }
}

impl Slow {
    fn go_on(&self) {
        self.tell.send(()).unwrap();
    }
}

impl Compiler for Slow {
    fn compile(&self, wasm: &[u8], profile: &EngineProfile) -> Result<Vec<u8>, CompileError> {
        self.begun.notify_one();
        let told = self.may.lock().unwrap();
        told.recv_timeout(Duration::from_secs(60)).unwrap();
        self.counting.compile(wasm, profile)
    }
}

/// A host whose driver has not been compiled yet and compiles slowly.
fn slow() -> (Host, Slow) {
    let slow = Slow::default();
    let host = Host::builder()
        .bundle(Fixture::new(Extra::default()).content())
        .compiler(slow.clone())
        .build()
        .unwrap();
    (host, slow)
}

/// Makes the first call, and cancels it while its driver compiles.
async fn begin_and_leave(host: &Host, slow: &Slow) {
    tokio::select! {
        reply = crate::fixture::run(host, serde_json::json!({"do": "echo"})) => panic!("{reply:?}"),
        () = slow.begun.notified() => {}
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_call_that_is_dropped_while_its_driver_compiles_leaves_it_to_the_next() {
    let (host, slow) = slow();
    begin_and_leave(&host, &slow).await;
    slow.go_on();
    still_serves(&host).await;
    let compiled = slow.counting.0.load(Ordering::SeqCst);
    assert_eq!(compiled, 1, "the first went on");
}

#[test]
fn a_runtime_that_ends_while_a_driver_compiles_is_no_verdict_on_the_driver() {
    let (host, slow) = slow();
    let first = runtime();
    first.block_on(begin_and_leave(&host, &slow));
    first.shutdown_background();
    slow.go_on();
    runtime().block_on(still_serves(&host));
}

#[test]
fn a_runtime_that_nobody_drives_any_more_holds_up_no_other() {
    let (host, slow) = slow();
    let idle = runtime();
    idle.block_on(begin_and_leave(&host, &slow));
    slow.go_on();
    runtime().block_on(async {
        tokio::time::timeout(Duration::from_secs(60), still_serves(&host))
            .await
            .expect("it is held up");
    });
    drop(idle);
}

#[tokio::test]
async fn a_compiler_that_panics_is_asked_once_and_the_call_says_so() {
    #[derive(Debug)]
    struct Panicking(Arc<AtomicUsize>);
    impl Compiler for Panicking {
        fn compile(&self, _: &[u8], _: &EngineProfile) -> Result<Vec<u8>, CompileError> {
            self.0.fetch_add(1, Ordering::SeqCst);
            panic!("in a test");
        }
    }
    let asked = Arc::new(AtomicUsize::new(0));
    let host = Host::builder()
        .bundle(Fixture::new(Extra::default()).content())
        .compiler(Panicking(asked.clone()))
        .build()
        .unwrap();
    for _ in 0..2 {
        let error = crate::fixture::error(&host, serde_json::json!({"do": "echo"})).await;
        assert_eq!(error.code.as_str(), "upstream_error");
        assert!(error.message.contains("panicked"), "{error}");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}
