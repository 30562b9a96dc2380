//! Searches a catalogue of 10,000 tools. A model waits for the result, so the goal is less than 10
//! ms for any query.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use toolward_support::search::{SearchDocument, SearchIndex};

const TOOLS: usize = 10_000;

const VERBS: [&str; 12] = [
    "list", "create", "delete", "update", "search", "export", "import", "merge", "convert",
    "validate", "send", "archive",
];
const THINGS: [&str; 20] = [
    "invoice",
    "customer",
    "ticket",
    "image",
    "document",
    "calendar",
    "message",
    "repository",
    "contract",
    "payment",
    "report",
    "contact",
    "folder",
    "comment",
    "branch",
    "order",
    "product",
    "shipment",
    "recording",
    "translation",
];

/// A word that occurs in few tools.
fn rare(number: usize) -> String {
    let letters = "bcdfghjklmnpqrstvwxz".as_bytes();
    let mut left = number;
    let mut word = String::new();
    for vowel in ["a", "e", "i", "o"] {
        let letter = letters.get(left % letters.len()).copied().unwrap_or(b'x');
        word.push(char::from(letter));
        word.push_str(vowel);
        left /= letters.len();
    }
    word
}

struct Made {
    name: String,
    title: String,
    description: String,
}

fn made() -> Vec<Made> {
    let one = |number: usize| {
        let verb = VERBS
            .iter()
            .cycle()
            .nth(number % VERBS.len())
            .copied()
            .unwrap_or_default();
        let thing = THINGS
            .iter()
            .cycle()
            .nth(number / VERBS.len() % THINGS.len());
        let thing = thing.copied().unwrap_or_default();
        let vendor = rare(number / 240);
        Made {
            name: format!("{vendor}.{thing}-{verb}"),
            title: format!("{verb} {thing} in {vendor}"),
            description: format!(
                "Use this to {verb} one or more {thing} objects of {vendor}. Takes the id of the \
                 {thing} and returns what was changed, with a link. Fails when the {thing} is \
                 locked, when the account has no access to it, or when {} is not set up.",
                rare(number)
            ),
        }
    };
    (0..TOOLS).map(one).collect()
}

fn search(criterion: &mut Criterion) {
    let made = made();
    let documents = || {
        made.iter().map(|tool| SearchDocument {
            name: &tool.name,
            id: &tool.name,
            title: &tool.title,
            description: &tool.description,
            ..SearchDocument::default()
        })
    };
    let index = SearchIndex::build(documents());
    let mut group = criterion.benchmark_group("search of 10,000 tools");
    let common = "use this to take the id and return what was changed with a link or fail";
    for (label, query) in [
        ("two words", "export invoices"),
        (
            "a sentence",
            "convert an image of a customer to another format please",
        ),
        ("words that all tools have", common),
        (
            "beginnings",
            "cus inv doc tra rep mes cal con ship rec bra pay",
        ),
        (
            "slips",
            "invioce custmoer reprots docuemnt calendra mesage paymnet trnaslation",
        ),
        ("nothing", "qqqqqqq zzzzzzz"),
    ] {
        group.bench_function(label, |bencher| {
            bencher.iter(|| index.search_among(black_box(query), |_| true));
        });
    }
    group.finish();
    let mut group = criterion.benchmark_group("index of 10,000 tools");
    group.sample_size(10);
    group.bench_function("build", |bencher| {
        bencher.iter(|| SearchIndex::build(documents()))
    });
    group.finish();
}

criterion_group!(benches, search);
criterion_main!(benches);
