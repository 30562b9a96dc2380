//! The store as commands and hosts use it: several processes, processes killed at any point, and
//! changed files.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail the test"
)]

mod arrivals;
mod crash;
mod damage;
mod installing;
mod marks;
mod places;
mod processes;
mod records;
mod renewing;
mod searching;
mod support;
mod surfaces;
