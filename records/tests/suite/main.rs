//! Records of a real host: the hostile guest of `tests/guests` behind contracts made for
//! these tests. Build it with `cargo xtask guests`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod calls;
mod descriptions;
mod fixture;
mod foreign_words;
mod objects;
mod other_forms;
mod schemas;
