//! Measures installing, loading, and a start with many contracts, and how much of that time
//! hashing, signatures, parsing and the disk take. Goal: a start loads 1,000 contracts within 100
//! ms, with a warm index.
//!
//! The bundles of a start are in memory (`/dev/shm`, if it exists). A start would read them from
//! the system's cache anyway, and a thousand installations on a disk would wait for it a thousand
//! times.

#![expect(clippy::print_stdout, reason = "shares are for whoever runs it")]

use std::fs::File;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use criterion::{BenchmarkId, Criterion, Throughput};
use toolward_author::{PackOptions, Sealed, pack};
use toolward_bundle::Content;
use toolward_bundle::libraries::NoLibraries;
use toolward_signing::archive;
use toolward_signing::envelope::Envelope;
use toolward_signing::key::SigningKey;
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::{self, Bundle, Verified, VerifyOptions};
use toolward_signing::{Digest, Refusal};
use toolward_store::{InstallOptions, Store};

type Failure = Box<dyn std::error::Error>;

/// The largest file of a bundle that is made here, in bytes.
const PIECE: usize = 10_000_000;

fn options() -> InstallOptions {
    InstallOptions {
        source: "a benchmark".to_owned(),
        now: SystemTime::now(),
        allow_rollback: None,
        accept: None,
    }
}

fn verifier(trust: &TrustStore) -> impl Fn(&mut File) -> Result<Verified<Bundle>, Refusal> + Sync {
    |file| verify::archive_file(file, trust, &VerifyOptions::default())
}

fn contract(id: &str) -> String {
    format!(
        "---\nid: {id}\nname: Statistics of a text\n\
         description: Counts the words, lines and characters of a text, and tells how long reading it takes.\n\
         version: 1.2.3\n\
         inputs:\n  type: object\n  properties:\n    text: {{ type: string, maxLength: 100000 }}\n    \
         language: {{ type: string, enum: [en, de, fr] }}\n  required: [text]\n\
         outputs:\n  type: object\n  properties:\n    words: {{ type: integer }}\n    lines: {{ type: integer }}\n    \
         characters: {{ type: integer }}\n  required: [words]\n\
         tags: [text, statistics]\n---\nCounts.\n"
    )
}

/// A signed bundle with this many contracts, and files of `size` bytes together.
fn bundle(
    number: usize,
    contracts: usize,
    size: usize,
    key: &SigningKey,
) -> Result<Vec<u8>, Failure> {
    let directory = tempfile::tempdir_in(fast())?;
    let write = |name: &str, bytes: &[u8]| -> Result<(), Failure> {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().ok_or("no folder")?)?;
        Ok(std::fs::write(path, bytes)?)
    };
    let head = format!(
        "id = \"bench.b{number}\"\nversion = \"1.0.0\"\nsequence = 1\npublisher = \"bench\"\n\
         created = \"2026-11-21T08:00:00Z\"\n"
    );
    write("bundle.toml", head.as_bytes())?;
    for tool in 0..contracts {
        let id = format!("bench.b{number}.tool{tool}");
        write(&format!("tools/{id}/TOOL.md"), contract(&id).as_bytes())?;
    }
    for (piece, start) in (0..size).step_by(PIECE).enumerate() {
        write(
            &format!("icons/{piece}.bin"),
            &noise(PIECE.min(size - start), piece),
        )?;
    }
    let packed = pack(directory.path(), &PackOptions::default())?;
    let mut sealed = Sealed::new(&packed);
    sealed.sign(key)?;
    let signed = directory.path().join("signed");
    sealed.write_directory(&signed)?;
    let trust = TrustStore::for_key(key.public());
    let bundle = verify::open(&signed, &trust, &VerifyOptions::default())?;
    Ok(archive::to_stored_bytes(&bundle.contents()?))
}

/// Bytes that don't compress.
fn noise(length: usize, seed: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64 ^ seed as u64;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

fn fast() -> &'static Path {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        memory
    } else {
        Path::new("/tmp")
    }
}

/// The shortest time of some runs, which depends least on other load on the machine.
fn shortest<R>(runs: usize, mut work: impl FnMut() -> R) -> Duration {
    let times = (0..runs).map(|_| {
        let start = Instant::now();
        black_box(work());
        start.elapsed()
    });
    times.min().unwrap_or_default()
}

/// How often a start is repeated for its processor time, which is counted in hundredths of a
/// second.
const RUNS: u32 = 10;

/// The processor time of this process so far (proc(5): fields 14 and 15 of `stat`), which depends
/// little on other load.
fn processor_time() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(str::parse::<u64>);
    let ticks: u64 = ticks.collect::<Result<Vec<_>, _>>().ok()?.iter().sum();
    Some(Duration::from_millis(ticks * 10))
}

/// Measures reading, hashing, signatures and parsing of these bundles, one after the other on one
/// thread.
fn shares(
    label: &str,
    objects: &[std::path::PathBuf],
    bundles: &[Verified<Bundle>],
    key: &SigningKey,
) {
    let disk = shortest(3, || {
        objects
            .iter()
            .filter_map(|path| std::fs::read(path).ok())
            .count()
    });
    let hashing = shortest(3, || {
        let files = bundles.iter().flat_map(|bundle| bundle.files.values());
        files.map(|bytes| Digest::of(bytes)).collect::<Vec<_>>()
    });
    let public = key.public();
    let signature = shortest(3, || {
        let envelopes = bundles
            .iter()
            .filter_map(|bundle| Envelope::parse(&bundle.envelope_bytes).ok());
        let verified = envelopes.filter(|envelope| {
            let message = envelope.to_be_signed();
            envelope
                .signatures()
                .iter()
                .all(|one| public.verify(&message, &one.sig).is_ok())
        });
        verified.count()
    });
    let manifest = shortest(3, || {
        let parsed = bundles
            .iter()
            .map(|bundle| toolward_signing::manifest::Manifest::parse(&bundle.manifest_bytes));
        parsed.filter(Result::is_ok).count()
    });
    let contracts = shortest(1, || {
        let parsed = bundles
            .iter()
            .map(|bundle| Content::from_verified(bundle.clone()));
        parsed.filter(Result::is_ok).count()
    });
    println!(
        "{label}: on one thread: disk {disk:.1?}, hashing {hashing:.1?}, envelope and signature {signature:.1?}, \
         manifest {manifest:.1?}, parsing of contracts {contracts:.1?}"
    );
}

fn sizes(criterion: &mut Criterion, key: &SigningKey) -> Result<(), Failure> {
    let trust = TrustStore::for_key(key.public());
    for megabytes in [1_usize, 10, 200] {
        let bytes = bundle(0, 1, megabytes * 1_000_000, key)?;
        let verify = verifier(&trust);
        let verified = verify::archive_bytes(&bytes, &trust, &VerifyOptions::default())?;
        let place = tempfile::tempdir()?;
        let store = Store::open(
            &place.path().join("store"),
            &place.path().join("state/trust.db"),
        )?;
        let name = format!("{megabytes} MB");
        let mut group = criterion.benchmark_group("bundle");
        group
            .sample_size(10)
            .throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(BenchmarkId::new("install", &name), |bencher| {
            bencher.iter_custom(|runs| {
                let mut spent = Duration::ZERO;
                for _ in 0..runs {
                    let _ = store.remove("bench.b0", SystemTime::now());
                    let _ = store.gc();
                    let start = Instant::now();
                    assert!(store.install(&verified, &options(), &NoLibraries).is_ok());
                    spent += start.elapsed();
                }
                spent
            });
        });
        group.bench_function(BenchmarkId::new("verify and load", &name), |bencher| {
            bencher.iter(|| assert!(store.load("bench.b0", &verify, SystemTime::now()).is_ok()));
        });
        group.finish();
        let object = place.path().join(format!(
            "store/objects/{}.toolbundle",
            verified.manifest_digest
        ));
        let disk = shortest(3, || {
            let copy = place.path().join("copy");
            let _ = std::fs::write(&copy, &bytes);
            std::fs::File::open(&copy).and_then(|file| file.sync_all())
        });
        println!("{name}: writing the same bytes to disk takes {disk:.1?}");
        shares(&name, &[object], &[verified], key);
    }
    Ok(())
}

fn start(
    criterion: &mut Criterion,
    bundles: usize,
    contracts: usize,
    key: &SigningKey,
) -> Result<(), Failure> {
    let trust = TrustStore::for_key(key.public());
    let verify = verifier(&trust);
    let place = tempfile::tempdir_in(fast())?;
    let (directory, state) = (
        place.path().join("store"),
        place.path().join("state/trust.db"),
    );
    let store = Store::open(&directory, &state)?;
    let mut all = Vec::new();
    let mut objects = Vec::new();
    for number in 0..bundles {
        let verified = verify::archive_bytes(
            &bundle(number, contracts, 0, key)?,
            &trust,
            &VerifyOptions::default(),
        )?;
        store.install(&verified, &options(), &NoLibraries)?;
        objects.push(directory.join(format!("objects/{}.toolbundle", verified.manifest_digest)));
        all.push(verified);
    }
    drop(store);
    let name = format!("{} contracts in {bundles} bundles", bundles * contracts);
    let mut group = criterion.benchmark_group("start");
    group.sample_size(10);
    group.bench_function(BenchmarkId::new("list of tools", &name), |bencher| {
        bencher.iter(|| {
            let tools = Store::open(&directory, &state).and_then(|store| store.tools());
            assert_eq!(tools.map(|all| all.len()).ok(), Some(bundles * contracts));
        });
    });
    group.bench_function(
        BenchmarkId::new("all verified, and the list of tools", &name),
        |bencher| {
            bencher.iter(|| {
                let store = Store::open(&directory, &state);
                let loaded = store.and_then(|store| {
                    Ok((
                        store.load_all_as(
                            &|file, _| verify(file),
                            &|bundle| bundle,
                            SystemTime::now(),
                        )?,
                        store.tools()?,
                    ))
                });
                assert!(loaded.is_ok_and(|(all, _)| all.iter().all(|one| one.bundle.is_ok())));
            });
        },
    );
    group.finish();
    let before = processor_time();
    for _ in 0..RUNS {
        let store = Store::open(&directory, &state)?;
        black_box((
            store.load_all_as(&|file, _| verify(file), &|bundle| bundle, SystemTime::now())?,
            store.tools()?,
        ));
    }
    if let (Some(before), Some(after)) = (before, processor_time()) {
        let each = after.saturating_sub(before) / RUNS;
        println!(
            "{name}: all verified, and the list: {each:.1?} of processor time, on all threads together"
        );
    }
    shares(&name, &objects, &all, key);
    Ok(())
}

fn main() -> Result<(), Failure> {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(3))
        .configure_from_args();
    let key = SigningKey::from_bytes(&[7; 32]);
    start(&mut criterion, 1_000, 1, &key)?;
    start(&mut criterion, 100, 10, &key)?;
    start(&mut criterion, 1_000, 10, &key)?;
    sizes(&mut criterion, &key)?;
    criterion.final_summary();
    Ok(())
}
