//! The record of calls: rows about calls, under a Merkle tree (RFC 6962) that is signed regularly
//! (C2SP checkpoints). Anyone with a signed checkpoint can detect whether a row that it covers was
//! changed, deleted or moved. Texts of callers and tools are in a second file, from which they can
//! be erased. The book's page about the format describes what the ledger proves against each
//! attacker.
//!
//! A host records through [`Recorder`]; [`Writer`] writes the files, from a separate thread.
//! [`remote`] puts a socket between recorder and writer, so that the process that runs guests has
//! neither files nor key. [`Reader`] lists, verifies, proves and exports; [`Maintenance`] signs,
//! prunes and erases.
//!
//! ```
//! use toolward_ledger::record::{Closed, Event, Number, Opened, Version, Word};
//! use toolward_ledger::{Durability, Entry, LedgerOptions, Reader, Recorder, Writer};
//!
//! # fn main() -> Result<(), toolward_ledger::Error> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let directory = folder.path().join("ledger");
//! let opened = Opened {
//!     build: Version::parse("0.1.0")?,
//!     bundles: Vec::new(),
//!     bundles_set: None,
//!     confinement: Word::parse("none")?,
//!     cut: Number::default(),
//!     policy: None,
//! };
//! let writer = Writer::open(LedgerOptions::new(&directory), opened)?;
//! let entry = Entry::new(Event::Closed(Closed { why: None }));
//! // The row is on the disk once `wait` returns.
//! writer.append(entry, Durability::Disk).wait()?;
//! writer.close()?;
//!
//! let verified = Reader::open(&directory, None)?.verify(&[])?;
//! assert!(verified.holds());
//! assert_eq!((verified.rows, verified.signed), (3, 3));
//! # Ok(())
//! # }
//! ```
//!
//! # What it costs
//!
//! Measured by `cargo bench -p toolward-ledger` on two cores that other builds kept busy, without
//! link-time optimisation and with 16 codegen units. The benchmark ran with priority over other
//! processes. F is the median time of one `fdatasync` of 600 bytes in the same run.
//!
//! | what | goal | result |
//! |---|---|---|
//! | a mutating call alone: two durable rows | 2 F + 100 µs | 428 µs (F = 168 µs) |
//! | the same with 64 callers | F / 2 a call | 0.11 F a call (F = 260 µs) |
//! | a queued row, on the caller's thread | 2 µs | 0.97 µs |
//! | a queued row, processor time of caller and writer | 7 µs | 8.3 µs, missed |
//! | a read-only call's row on disk | 1,000 bytes | 821 bytes |
//! | a mutating call's two rows on disk | 1,800 bytes | 1,027 bytes |
//! | verifying 1,000,000 rows | 400,000 rows/s | 709,000 rows/s |
//! | the first list of 1,000,000 rows, which makes the index | 10 s | 6.7 s |
//! | a list, once the index exists | 20 ms | 1.5 ms |
//! | opening and closing a ledger of 1,000,000 rows | | 3.3 ms |

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(
    not(feature = "sqlite"),
    expect(
        dead_code,
        reason = "the files' side of entries, trees and checkpoints"
    )
)]

#[cfg(feature = "sqlite")]
mod append;
pub mod cassette;
pub mod checkpoint;
#[cfg(feature = "sqlite")]
mod directory;
mod error;
#[cfg(feature = "sqlite")]
mod given;
#[cfg(feature = "sqlite")]
mod maintenance;
pub mod payload;
#[cfg(feature = "sqlite")]
mod reader;
pub mod record;
mod recorder;
#[cfg(feature = "sqlite")]
pub mod remote;
#[cfg(feature = "sqlite")]
mod sessions;
pub mod tree;
#[cfg(feature = "sqlite")]
mod writer;

pub use error::Error;
#[cfg(feature = "sqlite")]
pub use maintenance::Maintenance;
#[cfg(feature = "sqlite")]
pub use reader::{
    CassetteExport, DamagedRow, EndRow, Filter, Finding, ListedRow, MissingPayload, Payload,
    PayloadState, Proofs, Reader, RecordedCall, Row, Selection, VerifiedLedger,
};
pub use recorder::{Durability, Entry, Given, Pending, Recorder};
#[cfg(feature = "sqlite")]
pub use writer::{LedgerOptions, Writer, WrittenRows};
