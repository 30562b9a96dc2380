//! The checks before the rules of a filter: machine, calls of another ABI, and calls
//! that are answered with `ENOSYS`.

use seccompiler::{BpfProgram, TargetArch, sock_filter};

/// Calls that a C library tries first and replaces when the kernel has no such call.
/// Another error than `ENOSYS` would be final:
///
/// * `clone3` keeps its flags where no filter sees them; glibc then takes `clone`.
/// * `mseal` (Linux 6.10) is for the dynamic loader, when it loads a way to look up
///   names.
pub(super) const FALLS_BACK: [libc::c_long; 2] = [libc::SYS_clone3, MSEAL];

/// The same number on each machine, as of all calls since Linux 5.1.
const MSEAL: libc::c_long = 462;

/// The newest call that the lists were written with: `listns`, Linux 6.19. A C
/// library that knows a newer one works on kernels without it, too.
const NEWEST: u32 = 470;

/// What the numbers of the x32 calls have in common. They are the same calls on
/// the same machine, so that a list of numbers alone lets them pass.
const X32: u32 = 0x4000_0000;

/// Where a filter is shown the number of a call, and the machine that the number is
/// of.
const NUMBER: u32 = 0;
const MACHINE: u32 = 4;

/// Which calls are answered with `ENOSYS`.
pub(super) struct Absent<'a> {
    pub(super) calls: &'a [libc::c_long],
    /// All that are newer than this code.
    pub(super) newer: bool,
}

/// Prepends the checks that hold for all rules to `program`. Calls by the numbers of
/// another ABI, such as 32 bits (`int 0x80`) and x32, are refused; they don't end the
/// process. Jumps are relative, so those of `program` stay valid.
pub(super) fn guarded(program: BpfProgram, machine: TargetArch, absent: &Absent<'_>) -> BpfProgram {
    let refused = libc::EPERM.cast_unsigned();
    let missing = libc::ENOSYS.cast_unsigned();
    let mut whole = vec![load(MACHINE)];
    whole.extend(unless(libc::BPF_JEQ, audit(&machine), refused));
    whole.push(load(NUMBER));
    if machine == TargetArch::x86_64 {
        whole.extend(when(libc::BPF_JGE, X32, refused));
    }
    if absent.newer {
        whole.extend(when(libc::BPF_JGT, NEWEST, missing));
    }
    for call in absent.calls {
        // A number of a call is small.
        if let Ok(call) = u32::try_from(*call) {
            whole.extend(when(libc::BPF_JEQ, call, missing));
        }
    }
    whole.extend(program);
    whole
}

/// A filter that answers `calls` with `answer` and lets the others pass. For use with a filter that refuses calls by
/// the numbers of another ABI.
pub(crate) fn answering(calls: &[libc::c_long], answer: u32) -> BpfProgram {
    let mut whole = vec![load(NUMBER)];
    for call in calls {
        // A number of a call is small.
        if let Ok(call) = u32::try_from(*call) {
            whole.extend([
                instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, call),
                instruction(libc::BPF_RET | libc::BPF_K, 0, 0, answer),
            ]);
        }
    }
    let pass = libc::SECCOMP_RET_ALLOW;
    whole.push(instruction(libc::BPF_RET | libc::BPF_K, 0, 0, pass));
    whole
}

/// How the kernel names the machine to a filter (`AUDIT_ARCH_…`).
fn audit(machine: &TargetArch) -> u32 {
    const LITTLE_ENDIAN_64: u32 = 0xc000_0000;
    LITTLE_ENDIAN_64
        | match machine {
            TargetArch::x86_64 => 62,
            TargetArch::aarch64 => 183,
            TargetArch::riscv64 => 243,
        }
}

fn load(offset: u32) -> sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset)
}

/// Answers with an error where the comparison holds.
fn when(comparison: u32, operand: u32, error: u32) -> [sock_filter; 2] {
    [
        instruction(libc::BPF_JMP | comparison | libc::BPF_K, 0, 1, operand),
        answer(error),
    ]
}

/// Answers with an error where the comparison does not hold.
fn unless(comparison: u32, operand: u32, error: u32) -> [sock_filter; 2] {
    [
        instruction(libc::BPF_JMP | comparison | libc::BPF_K, 1, 0, operand),
        answer(error),
    ]
}

fn answer(error: u32) -> sock_filter {
    let value = libc::SECCOMP_RET_ERRNO | error;
    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, value)
}

fn instruction(code: u32, if_true: u8, if_false: u8, operand: u32) -> sock_filter {
    sock_filter {
        // The codes are bits of the lower half.
        code: code as u16,
        jt: if_true,
        jf: if_false,
        k: operand,
    }
}
