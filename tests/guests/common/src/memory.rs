//! Memory: taken in steps, at once, without end, and outside its bounds.

use std::hint::black_box;

use serde_json::{Value, json};

const MIB: usize = 1024 * 1024;

/// Takes `mib` MiB, one at a time, and keeps and touches all of it.
pub(crate) fn in_steps(mib: u64) -> Value {
    let mut kept: Vec<Vec<u8>> = Vec::new();
    for _ in 0..mib {
        kept.push(black_box(vec![1; MIB]));
    }
    json!(kept.len())
}

pub(crate) fn at_once(mib: u64) -> Value {
    let bytes = usize::try_from(mib)
        .unwrap_or(usize::MAX)
        .saturating_mul(MIB);
    let all = black_box(vec![1u8; bytes.min(isize::MAX as usize)]);
    json!(all.len() / MIB)
}

pub(crate) fn forever() -> ! {
    let mut kept: Vec<Vec<u8>> = Vec::new();
    loop {
        kept.push(black_box(vec![1; MIB]));
    }
}

/// Reads the last word of the address space, which no memory of 64 MiB has.
pub(crate) fn out_of_bounds() -> Value {
    let address = black_box(0xffff_fff0_usize) as *const u32;
    // SAFETY: none. The engine is to stop it, which is what the test is about.
    json!(unsafe { address.read_volatile() })
}
