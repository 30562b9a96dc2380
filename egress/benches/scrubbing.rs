//! Measures the cost of searching for one secret in a body of 16 MiB, which arrives in chunks like
//! from a connection.

#![expect(clippy::expect_used, reason = "a benchmark may stop")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use toolward_egress::scrub::{Patterns, Scrubber};

const SECRET: &[u8] = b"sk-live_9aZ/4+Qm7Tt0xWc3Vb8NyK1rUe6HgD5f";

const BODY: usize = 16 << 20;

const CHUNK: usize = 16 << 10;

/// Pseudo-random numbers, the same in each run (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).expect("64 bits") % end
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(0x20 + self.below(0x5f)).expect("ASCII")
    }
}

/// 16 MiB of the text that `piece` writes.
fn body(piece: impl Fn(&mut Numbers, &mut Vec<u8>)) -> Vec<Bytes> {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut text = Vec::with_capacity(BODY + 1024);
    while text.len() < BODY {
        piece(&mut numbers, &mut text);
    }
    text.truncate(BODY);
    text.chunks(CHUNK).map(Bytes::copy_from_slice).collect()
}

fn records(numbers: &mut Numbers, text: &mut Vec<u8>) {
    const WORDS: &[&str] = &[
        "issue", "open", "the", "server", "does", "not", "answer", "when", "a", "request", "is",
        "sent", "twice", "closed", "by", "token", "value", "secret", "and", "user",
    ];
    let words: Vec<&str> = (0..12)
        .map(|_| *WORDS.get(numbers.below(WORDS.len())).expect("a word"))
        .collect();
    let number = numbers.below(100_000);
    let line = format!(
        "{{\"id\": {number}, \"node_id\": \"MDU6SXNzdWUx{number}\", \"title\": \"{}\", \"score\": {}.5}},\n",
        words.join(" "),
        number / 7
    );
    text.extend_from_slice(line.as_bytes());
}

fn letters(numbers: &mut Numbers, text: &mut Vec<u8>) {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    text.push(*LETTERS.get(numbers.below(64)).expect("a letter"));
}

fn escape(text: &mut Vec<u8>, written: &str) {
    text.extend_from_slice(written.as_bytes());
}

fn scrub(chunks: &[Bytes], patterns: &Arc<Patterns>) -> usize {
    let mut scrubber = Scrubber::new(Arc::clone(patterns));
    let pushed: usize = chunks
        .iter()
        .map(|chunk| black_box(scrubber.push(chunk.clone())).len())
        .sum();
    pushed + scrubber.finish().len()
}

fn scrubbing(criterion: &mut Criterion) {
    let patterns = Arc::new(Patterns::of_values([SECRET]));
    let bodies = [
        ("plain/records", body(records)),
        ("plain/base64", body(letters)),
        (
            "escapes/percent",
            body(|numbers, text| escape(text, &format!("%{:02X}", numbers.byte()))),
        ),
        (
            "escapes/percent-twice",
            body(|numbers, text| escape(text, &format!("%25{:02x}", numbers.byte()))),
        ),
        (
            "escapes/json-unicode",
            body(|numbers, text| escape(text, &format!("\\u00{:02x}", numbers.byte()))),
        ),
        (
            "escapes/json-short",
            body(|numbers, text| {
                let kinds = ["\\n", "\\\"", "\\\\", "\\/", "\\t"];
                escape(text, kinds.get(numbers.below(5)).expect("five kinds"));
            }),
        ),
        (
            "escapes/html-numbers",
            body(|numbers, text| escape(text, &format!("&#{};", numbers.byte()))),
        ),
        (
            "escapes/html-names",
            body(|numbers, text| {
                let kinds = ["&amp;", "&lt;", "&quot;", "&#x27;", "&sol;"];
                escape(text, kinds.get(numbers.below(5)).expect("five kinds"));
            }),
        ),
    ];
    let mut group = criterion.benchmark_group("scrub");
    group.throughput(Throughput::Bytes(BODY as u64));
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(3));
    for (name, chunks) in &bodies {
        group.bench_function(*name, |bencher| bencher.iter(|| scrub(chunks, &patterns)));
    }
    group.finish();
    criterion.bench_function("patterns of one secret", |bencher| {
        bencher.iter(|| Patterns::of_values([black_box(SECRET)]));
    });
}

criterion_group!(benches, scrubbing);
criterion_main!(benches);
