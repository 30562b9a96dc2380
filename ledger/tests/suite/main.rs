//! Ledgers as hosts and operators use them, and as others tamper with them.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod trees;
