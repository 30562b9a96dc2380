//! Bundles from end to end, without a host: written, packed, signed, verified,
//! read.

mod authoring;
mod checking;
mod reading;
mod scaffolding;
mod support;
