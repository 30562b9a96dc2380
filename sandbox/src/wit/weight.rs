//! The memory that values take in the host. For lifting a value (copying it out of the guest),
//! wasmtime charges its own units ("hostcall fuel"): 48 for each value within another value, and
//! one for each byte of a text. The formulas follow `wasmtime::component::Val` of the version in
//! Cargo.lock.

use std::collections::HashSet;
use std::ptr;
use std::sync::Arc;

use toolward_bundle::component::Type;
use wasmtime::component::Val;

/// Units for a value within another value.
const CHARGED: u64 = size_of::<Val>() as u64;

/// The most bytes that a value within another value takes: a vector with one element is allocated
/// for four.
const PLACE: u64 = 4 * size_of::<Val>() as u64 + OVERHEAD;

/// The bytes that an allocator adds to each allocation.
const OVERHEAD: u64 = 16;

/// The most bytes of the host's memory, rounded up, that a value of this type takes for each unit
/// that lifting the value is charged.
pub(super) fn of_type(ty: &Arc<Type>) -> u64 {
    let mut seen = HashSet::new();
    let mut open = vec![ty];
    let mut worst = 1;
    while let Some(ty) = open.pop() {
        // A type that is used twice has the same weight, so it is visited once.
        if seen.insert(ptr::from_ref::<Type>(ty).addr()) {
            worst = worst.max(of_node(ty));
            open.extend(ty.inner());
        }
    }
    worst
}

/// The same for a type without its inner types.
fn of_node(ty: &Type) -> u64 {
    let alone = |name: &str| ratio(PLACE + allocated(name.len()), CHARGED + name.len() as u64);
    match ty {
        Type::String => ratio(PLACE + allocated(1), CHARGED + 1),
        Type::Enum(cases) => cases.iter().map(|name| alone(name)).max().unwrap_or(1),
        Type::Variant(cases) => cases.iter().map(|(name, _)| alone(name)).max().unwrap_or(1),
        Type::Flags(names) => {
            let mut names: Vec<usize> = names.iter().map(String::len).collect();
            names.sort_unstable();
            let (mut texts, mut charged) = (0, CHARGED);
            let mut worst = ratio(PLACE, CHARGED);
            for (index, length) in names.iter().enumerate() {
                texts += allocated(*length);
                charged += *length as u64;
                let own = vector(index + 1, size_of::<String>()) + texts;
                worst = worst.max(ratio(PLACE + own, charged));
            }
            worst
        }
        Type::Record(fields) => {
            let names = fields.iter().map(|(name, _)| name.len());
            let charged: usize = names.clone().sum();
            let own = vector(fields.len(), size_of::<(String, Val)>())
                + names.map(allocated).sum::<u64>();
            // Each field counts its own place, so the places are subtracted here.
            let own = own.saturating_sub(PLACE * fields.len() as u64);
            ratio(PLACE + own, CHARGED + charged as u64)
        }
        _ => ratio(PLACE, CHARGED),
    }
}

fn ratio(memory: u64, charged: u64) -> u64 {
    memory.div_ceil(charged)
}

/// The bytes of a vector that grew to this length.
fn vector(length: usize, element: usize) -> u64 {
    match length {
        0 => 0,
        _ => (length.next_power_of_two().max(4) * element) as u64 + OVERHEAD,
    }
}

/// The bytes of a text of this length.
fn allocated(length: usize) -> u64 {
    match length {
        0 => 0,
        _ => (length as u64).next_multiple_of(16) + OVERHEAD,
    }
}

/// The bytes that a value takes in addition to its own place.
pub(super) fn of_value(value: &Val) -> u64 {
    let boxed = |value: &Option<Box<Val>>| match value {
        Some(value) => size_of::<Val>() as u64 + OVERHEAD + of_value(value),
        None => 0,
    };
    match value {
        Val::String(text) | Val::Enum(text) => allocated(text.capacity()),
        Val::List(values) | Val::Tuple(values) => {
            let place = (values.capacity() * size_of::<Val>()) as u64 + OVERHEAD;
            values.iter().map(of_value).fold(place, u64::saturating_add)
        }
        Val::Record(fields) => {
            let place = (fields.capacity() * size_of::<(String, Val)>()) as u64 + OVERHEAD;
            let fields = fields.iter();
            let fields = fields.map(|(name, value)| allocated(name.len()) + of_value(value));
            fields.fold(place, u64::saturating_add)
        }
        Val::Flags(names) => {
            let place = (names.capacity() * size_of::<String>()) as u64 + OVERHEAD;
            let names = names.iter().map(|name| allocated(name.len()));
            names.fold(place, u64::saturating_add)
        }
        Val::Variant(case, value) => allocated(case.len()) + boxed(value),
        Val::Option(value) | Val::Result(Ok(value) | Err(value)) => boxed(value),
        _ => 0,
    }
}
