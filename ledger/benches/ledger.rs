//! Measures the costs of recording: a mutating call's two rows, in units of one `fdatasync` of 600
//! bytes from the same run; a queued row on the caller's thread and in the writer; verifying; and
//! the bytes on disk for each row.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark, as a test"
)]

use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use toolward_ledger::payload::Keep;
use toolward_ledger::record::{
    Attempt, Call, Code, Ended, Event, Hex, Id, Invocation, Native, Number, Opened, Outcome, Part,
    Rule, Started, Tool, Version, Word,
};
use toolward_ledger::{Durability, Entry, Filter, LedgerOptions, Reader, Recorder, Writer};

fn open(folder: &Path) -> Writer {
    let opened = Opened {
        build: Version::parse("0.1.0").expect("a version"),
        bundles: Vec::new(),
        bundles_set: None,
        confinement: Word::parse("full").expect("a word"),
        cut: Number::default(),
        policy: None,
    };
    let mut options = LedgerOptions::new(folder.join("ledger"));
    options.keep = Keep::None;
    Writer::open(options, opened).expect("a ledger")
}

fn invocation(number: u64) -> Invocation {
    let [high, low] = [0x0198_0000_0000_7000_u64, number].map(u64::to_be_bytes);
    let mut bytes = [0; 16];
    bytes
        .iter_mut()
        .zip(high.iter().chain(&low))
        .for_each(|(byte, from)| *byte = *from);
    Invocation::from_bytes(bytes)
}

/// The parts of a call that a host keeps with a route.
struct Parts {
    call: Call,
    outcome: Outcome,
}

impl Parts {
    fn new() -> Self {
        let id = |text| Id::parse(text).expect("an id");
        let part = |bundle| Hex([bundle; 32]);
        Self {
            call: Call {
                context: None,
                cut: Number::default(),
                driver: Some(Part {
                    bundle: part(1),
                    id: id("text-stats"),
                    publisher: id("acme"),
                }),
                input: None,
                mutates: Vec::new(),
                native: Native::default(),
                parent: None,
                person: None,
                policy: Some(part(2)),
                rejected: Vec::new(),
                rerun_of: None,
                root: None,
                rules: vec![Rule::parse("grant:3").expect("a rule")],
                surface: Some(part(3)),
                tool: Some(Part {
                    bundle: part(1),
                    id: Tool::parse("text.stats@1.4.0").expect("a tool"),
                    publisher: id("acme"),
                }),
            },
            outcome: Outcome {
                attempts: vec![Attempt {
                    code: None,
                    driver: id("text-stats"),
                    us: Number::from(812),
                }],
                cancel_reason: None,
                class: None,
                code: None::<Code>,
                cut: Number::default(),
                detail: None,
                fuel: Number::from(182_734),
                late: false,
                limit: None,
                memory: Number::from(1_245_184),
                origin: None,
                output: None,
                repeats: None,
                stage: Word::parse("run").expect("a word"),
                us: Number::from(1034),
                violations: Default::default(),
            },
        }
    }

    fn read_only(&self, id: u64) -> Entry {
        let (call, outcome) = (Some(self.call.clone()), self.outcome.clone());
        let ended = Ended {
            call,
            invocation: invocation(id),
            outcome,
        };
        Entry::new(Event::Ended(Box::new(ended))).principal("alice")
    }

    fn started(&self, id: u64) -> Entry {
        let started = Started {
            call: self.call.clone(),
            invocation: invocation(id),
        };
        Entry::new(Event::Started(Box::new(started)))
            .principal("alice")
            .matters()
    }

    fn ended(&self, id: u64) -> Entry {
        let outcome = self.outcome.clone();
        Entry::new(Event::Ended(Box::new(Ended {
            call: None,
            invocation: invocation(id),
            outcome,
        })))
    }
}

fn mutating(writer: &Writer, parts: &Parts, id: u64) {
    for entry in [parts.started(id), parts.ended(id)] {
        writer
            .append(entry, Durability::Disk)
            .wait()
            .expect("a row");
    }
}

/// Medians of one `fdatasync` of 600 bytes and of `work`, taken in turns.
fn beside_fdatasync(
    folder: &Path,
    rounds: usize,
    mut work: impl FnMut(usize),
) -> (Duration, Duration) {
    let mut file = std::fs::File::create(folder.join("bare")).expect("a file");
    let (mut bare, mut own) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let start = Instant::now();
        file.write_all(&[7; 600]).expect("writes");
        file.sync_data().expect("syncs");
        bare.push(start.elapsed());
        let start = Instant::now();
        work(round);
        own.push(start.elapsed());
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    };
    (median(&mut bare), median(&mut own))
}

/// Measures numbers that are not the time of one function.
fn measured() {
    let folder = tempfile::tempdir().expect("a directory");
    let parts = Parts::new();
    let writer = open(folder.path());
    let (bare, alone) = beside_fdatasync(folder.path(), 400, |round| {
        mutating(&writer, &parts, round as u64)
    });
    println!(
        "one fdatasync of 600 bytes, F: {bare:?}; a mutating call alone: {alone:?}, {:.2} F",
        ratio(alone, bare)
    );

    const CALLERS: u64 = 64;
    const EACH: u64 = 50;
    let (bare, together) = beside_fdatasync(folder.path(), 7, |round| {
        std::thread::scope(|scope| {
            for caller in 0..CALLERS {
                let (writer, parts) = (&writer, &parts);
                let first = 1_000_000 * (round as u64 + 1) + caller * EACH;
                scope.spawn(move || {
                    (first..first + EACH).for_each(|id| mutating(writer, parts, id))
                });
            }
        });
    });
    let each = together / (CALLERS * EACH) as u32;
    println!(
        "F: {bare:?}; a mutating call of 64 callers: {each:?}, {:.2} F",
        ratio(each, bare)
    );
    writer.close().expect("closes");

    let folder = tempfile::tempdir().expect("a directory");
    let writer = open(folder.path());
    const ROWS: u64 = 1_000_000;
    let start = Instant::now();
    let own_before = processor();
    for id in 0..ROWS {
        writer
            .append(parts.read_only(id), Durability::Queued)
            .wait()
            .expect("queues");
    }
    writer.close().expect("closes");
    let (took, own) = (start.elapsed(), processor() - own_before);
    println!(
        "{ROWS} queued rows: {took:?}, {:?} a row; processor of caller and writer {:?} a row",
        took / ROWS as u32,
        own / ROWS as u32
    );
    let path = folder.path().join("ledger");
    let bytes = std::fs::metadata(path.join("records.sqlite"))
        .expect("a file")
        .len();
    println!("a read-only call's row: {} bytes on disk", bytes / ROWS);
    let mut reader = Reader::open(&path, None).expect("a ledger");
    let (start, own) = (Instant::now(), processor());
    assert!(reader.verify(&[]).expect("verifies").holds());
    let own = processor() - own;
    println!(
        "verified: {:.0} rows/s, {:.0} a second of processor",
        ROWS as f64 / start.elapsed().as_secs_f64(),
        ROWS as f64 / own.as_secs_f64()
    );
    let filter = Filter {
        tool: Some("text.stats".to_owned()),
        principal: Some("alice".to_owned()),
        ..Filter::default()
    };
    let (start, own) = (Instant::now(), processor());
    reader.list(&filter).expect("lists");
    println!(
        "first list, with the index: {:?}, processor {:?}",
        start.elapsed(),
        processor() - own
    );
    let start = Instant::now();
    reader.list(&filter).expect("lists");
    println!("list again: {:?}", start.elapsed());
    let start = Instant::now();
    drop(open(folder.path()));
    println!(
        "opened and closed, with 1,000,000 rows: {:?}",
        start.elapsed()
    );

    let folder = tempfile::tempdir().expect("a directory");
    let writer = open(folder.path());
    const CALLS: u64 = 20_000;
    for id in 0..CALLS {
        writer
            .append(parts.started(id), Durability::Queued)
            .wait()
            .expect("queues");
        writer
            .append(parts.ended(id), Durability::Queued)
            .wait()
            .expect("queues");
    }
    writer.close().expect("closes");
    let bytes = std::fs::metadata(folder.path().join("ledger/records.sqlite"))
        .expect("a file")
        .len();
    println!(
        "a mutating call's two rows: {} bytes on disk",
        bytes / CALLS
    );
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

/// Processor time of this process.
fn processor() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

fn benchmarks(criterion: &mut Criterion) {
    // Measures only under `cargo bench`, not when benchmarks are listed or tested.
    if std::env::args().any(|argument| argument == "--bench") {
        measured();
    }
    let folder = tempfile::tempdir().expect("a directory");
    let parts = Parts::new();
    let writer = open(folder.path());
    let mut id = 0;
    criterion.bench_function("append queued, on the caller's thread", |b| {
        b.iter_custom(|rounds| {
            // Adds rows in bursts that fit into the queue, so that the writer is not measured.
            let mut took = Duration::ZERO;
            let mut left = rounds;
            while left > 0 {
                let burst = left.min(1000);
                let start = Instant::now();
                for _ in 0..burst {
                    id += 1;
                    black_box(writer.append(parts.read_only(id), Durability::Queued))
                        .wait()
                        .expect("queues");
                }
                took += start.elapsed();
                left -= burst;
                writer.flush().wait().expect("flushes");
            }
            took
        });
    });
    criterion.bench_function("append durable", |b| {
        b.iter(|| {
            id += 1;
            writer
                .append(parts.read_only(id), Durability::Disk)
                .wait()
                .expect("a row");
        });
    });
    let record = toolward_ledger::record::Record {
        at: Number::from(1_795_000_000_000_000),
        session: Hex([5; 16]),
        event: parts.read_only(1).event().clone(),
    };
    let line = record.encode();
    criterion.bench_function("encode a record", |b| {
        b.iter(|| black_box(&record).encode())
    });
    criterion.bench_function("read a record", |b| {
        b.iter(|| toolward_ledger::record::Record::parse(black_box(&line)).expect("a record"));
    });
}

criterion_group!(benches, benchmarks);
criterion_main!(benches);
