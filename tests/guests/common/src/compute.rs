//! Time and control flow: loops, recursion, traps.

use std::cell::Cell;
use std::hint::black_box;
use std::num::NonZeroU64;

use serde_json::{Value, json};

use crate::{Ending, Input};

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// Rises with every call that this instance serves: 1 in a fresh one.
pub(crate) fn count() -> Value {
    COUNT.with(|count| {
        count.set(count.get() + 1);
        json!(count.get())
    })
}

pub(crate) fn spin() -> Ending {
    let mut n = 0u64;
    loop {
        n = black_box(n.wrapping_add(1));
    }
}

/// Spends its time in the host instead of in its own code.
pub(crate) fn spin_in_host_calls() -> Ending {
    loop {
        black_box(wasip2::clocks::monotonic_clock::now());
    }
}

/// Recurses `levels` deep, or until the stack ends where it is 0.
pub(crate) fn recurse(levels: u64) -> Value {
    fn down(level: u64, end: u64) -> u64 {
        let frame = black_box([level; 16]);
        if level == end {
            0
        } else {
            down(level + 1, end) + frame[(level % 16) as usize] % 2
        }
    }
    json!(down(1, if levels == 0 { u64::MAX } else { levels }))
}

/// Recurses deeply with no frame in the guest's own memory (Ackermann's
/// function), so that only the engine's stack can run out.
pub(crate) fn recurse_lean(n: u64) -> Value {
    fn ackermann(m: u64, n: u64) -> u64 {
        match (m, n) {
            (0, n) => n + 1,
            (m, 0) => ackermann(m - 1, 1),
            (m, n) => ackermann(m - 1, ackermann(m, n - 1)),
        }
    }
    json!(ackermann(black_box(3), n))
}

/// Divides without the language's own check, so that the engine's trap is hit.
pub(crate) fn divide(n: u64) -> Value {
    // SAFETY: none, as the divisor is zero. The engine defines what follows: a trap.
    let zero = unsafe { NonZeroU64::new_unchecked(black_box(0)) };
    json!(black_box(n) / zero)
}

/// Recurses without touching the stack in linear memory, so that the engine's
/// own stack ends first.
pub(crate) fn recurse_in_registers(levels: u64) -> Value {
    #[inline(never)]
    fn down(level: u64, end: u64) -> u64 {
        if level == end {
            0
        } else {
            (down(level + 1, end) ^ level).rotate_left(7)
        }
    }
    json!(down(1, if levels == 0 { u64::MAX } else { levels }))
}

pub(crate) fn trap() -> Ending {
    #[cfg(target_family = "wasm")]
    core::arch::wasm32::unreachable();
    #[cfg(not(target_family = "wasm"))]
    std::process::abort()
}

/// Panics with `name`, followed by `n` bytes.
pub(crate) fn panic(input: &Input) -> Ending {
    panic!("{}{}", input.name, "p".repeat(input.n as usize))
}
