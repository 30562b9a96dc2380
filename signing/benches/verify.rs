//! Compares the verification of a 10 MB bundle with the least possible work on one thread: reading
//! and BLAKE3 for a directory, zstd and BLAKE3 for an archive. The goal is at least half the speed
//! of that work.
//!
//! Besides Criterion's figures, it prints ratios from interleaved runs, which depend little on
//! other load on the machine.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput};
use toolward_signing::archive::{self, Contents};
use toolward_signing::envelope::Envelope;
use toolward_signing::key::SigningKey;
use toolward_signing::manifest::{
    self, Artifacts, FileEntry, FileRole, MANIFEST_TYPE, Manifest, ToolsEntry,
};
use toolward_signing::path::BundlePath;
use toolward_signing::timestamp::Timestamp;
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::{self, VerifyOptions};
use toolward_signing::{Digest, Refusal};

const SIZE: usize = 10_000_000;

struct Bundle {
    _folder: tempfile::TempDir,
    directory: PathBuf,
    archive: PathBuf,
    files: Vec<PathBuf>,
    trust: TrustStore,
}

/// Bytes that compress about as well as a component does (2 to 3 times).
fn component(size: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut bytes = Vec::with_capacity(size + 64);
    while bytes.len() < size {
        let random = next();
        if random % 3 == 0 && bytes.len() > 4096 {
            let back = 1 + usize::try_from(random >> 8).unwrap_or(0) % 4096;
            let length = 8 + usize::try_from(random >> 40).unwrap_or(0) % 24;
            let start = bytes.len() - back;
            let end = (start + length).min(bytes.len());
            bytes.extend_from_within(start..end);
        } else {
            bytes.extend(random.to_le_bytes().map(|byte| byte & 0x7f));
        }
    }
    bytes.truncate(size);
    bytes
}

fn bundle() -> Result<Bundle, Box<dyn std::error::Error>> {
    let files: Vec<(BundlePath, FileRole, Vec<u8>)> = [
        ("drivers/big/DRIVER.md", FileRole::Driver, b"---\n".to_vec()),
        (
            "drivers/big/driver.wasm",
            FileRole::Component,
            component(SIZE),
        ),
        ("tools/big/TOOL.md", FileRole::Contract, b"---\n".to_vec()),
    ]
    .into_iter()
    .map(|(path, role, bytes)| Ok((BundlePath::parse(path)?, role, bytes)))
    .collect::<Result<_, Refusal>>()?;
    let tools = b"{}\n";
    let manifest = Manifest {
        id: "big.bundle".to_owned(),
        version: "1.0.0".parse()?,
        sequence: 1,
        publisher: "bench".to_owned(),
        created: Timestamp::parse("2026-01-01T00:00:00Z")?,
        expires: None,
        min_host: None,
        provenance: false,
        artifacts: Artifacts {
            tools: ToolsEntry {
                path: BundlePath::parse("tools.json")?,
                blake3: Digest::of(tools),
                size: tools.len() as u64,
                version: 2,
            },
            files: files
                .iter()
                .map(|(path, role, bytes)| FileEntry {
                    path: path.clone(),
                    blake3: Digest::of(bytes),
                    size: bytes.len() as u64,
                    role: *role,
                })
                .collect(),
        },
    };
    let key = SigningKey::generate()?;
    let manifest = manifest.to_bytes()?;
    let mut envelope = Envelope::new(MANIFEST_TYPE, manifest.clone());
    envelope.sign(&key);
    let envelope = envelope.to_bytes()?;
    let mut contents: Vec<(BundlePath, &[u8])> = files
        .iter()
        .map(|(path, _, bytes)| (path.clone(), bytes.as_slice()))
        .collect();
    contents.push((BundlePath::parse("tools.json")?, tools));
    let folder = tempfile::tempdir()?;
    let archive_path = folder.path().join("big.toolbundle");
    let contents = Contents {
        envelope: &envelope,
        manifest: &manifest,
        provenance: None,
        files: contents,
    };
    std::fs::write(&archive_path, archive::to_bytes(&contents)?)?;
    let trust = TrustStore::for_key(key.public());
    let verified = verify::open(&archive_path, &trust, &VerifyOptions::default())?;
    let directory = folder.path().join("big");
    let mut files = Vec::new();
    for (path, bytes) in &verified.files {
        let path = directory.join(path.as_str());
        std::fs::create_dir_all(path.parent().unwrap_or(&directory))?;
        std::fs::write(&path, bytes)?;
        files.push(path);
    }
    std::fs::write(directory.join(manifest::FILE), &manifest)?;
    std::fs::write(directory.join(manifest::ENVELOPE_FILE), &envelope)?;
    Ok(Bundle {
        directory,
        archive: archive_path,
        files,
        trust,
        _folder: folder,
    })
}

fn plain_directory(files: &[PathBuf]) -> std::io::Result<()> {
    for file in files {
        let bytes = std::fs::read(file)?;
        black_box(blake3::hash(&bytes));
        black_box(bytes);
    }
    Ok(())
}

fn plain_archive(path: &Path) -> std::io::Result<()> {
    let compressed = std::fs::read(path)?;
    let bytes = zstd::stream::decode_all(compressed.as_slice())?;
    black_box(blake3::hash(&bytes));
    black_box(bytes);
    Ok(())
}

/// Decompresses with zstd in one call into a buffer of the right size, the fastest way.
fn plain_archive_at_once(path: &Path) -> std::io::Result<()> {
    let compressed = std::fs::read(path)?;
    let bytes = zstd::bulk::decompress(&compressed, SIZE + 1024 * 1024)?;
    black_box(blake3::hash(&bytes));
    black_box(bytes);
    Ok(())
}

/// The median time of each of two tasks that run alternately.
fn in_turns(
    mut one: impl FnMut() -> bool,
    mut other: impl FnMut() -> bool,
) -> (Duration, Duration) {
    let mut times = (Vec::new(), Vec::new());
    for _ in 0..101 {
        let start = Instant::now();
        assert!(one());
        times.0.push(start.elapsed());
        let start = Instant::now();
        assert!(other());
        times.1.push(start.elapsed());
    }
    let median = |mut times: Vec<Duration>| {
        times.sort();
        times.get(times.len() / 2).copied().unwrap_or_default()
    };
    (median(times.0), median(times.1))
}

#[expect(clippy::print_stdout, reason = "a benchmark's report")]
fn ratio(name: &str, plain: impl FnMut() -> bool, verify: impl FnMut() -> bool) {
    let (plain, verify) = in_turns(plain, verify);
    println!(
        "ratio {name}: plain {plain:?}, verified {verify:?}, {:.2} of the plain speed",
        plain.as_secs_f64() / verify.as_secs_f64()
    );
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bundle = bundle()?;
    let options = VerifyOptions::default();
    let directory = || verify::open(&bundle.directory, &bundle.trust, &options).is_ok();
    let archive = || verify::open(&bundle.archive, &bundle.trust, &options).is_ok();

    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("directory-10MB");
    group.throughput(Throughput::Bytes(SIZE as u64));
    group.bench_function("read-and-blake3", |b| {
        b.iter(|| plain_directory(&bundle.files))
    });
    group.bench_function("verify", |b| b.iter(directory));
    group.finish();
    let mut group = criterion.benchmark_group("archive-10MB");
    group.throughput(Throughput::Bytes(SIZE as u64));
    group.bench_function("zstd-and-blake3", |b| {
        b.iter(|| plain_archive(&bundle.archive))
    });
    group.bench_function("verify", |b| b.iter(archive));
    group.finish();
    criterion.final_summary();

    let in_memory: Vec<Vec<u8>> = bundle
        .files
        .iter()
        .map(std::fs::read)
        .collect::<Result<_, _>>()?;
    let hash_only = || {
        in_memory.iter().for_each(|bytes| {
            black_box(blake3::hash(bytes));
        });
        true
    };
    ratio("directory, against BLAKE3 in memory", hash_only, directory);
    ratio(
        "directory, against reading and BLAKE3",
        || plain_directory(&bundle.files).is_ok(),
        directory,
    );
    ratio(
        "archive, against streaming zstd and BLAKE3",
        || plain_archive(&bundle.archive).is_ok(),
        archive,
    );
    ratio(
        "archive, against zstd at once and BLAKE3",
        || plain_archive_at_once(&bundle.archive).is_ok(),
        archive,
    );
    Ok(())
}
