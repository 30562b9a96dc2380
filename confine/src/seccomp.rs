//! The filters for system calls (seccomp), for everything that Landlock has no rules for. By
//! default, a process that runs guests may make only the calls of an allow-list.
//!
//! A refused call fails with `EPERM`, and the process continues. Some calls fail with `ENOSYS`
//! instead: a C library tries them first, but can do without them on an older kernel. Before its
//! rules, a filter checks the machine and the ABI.

pub(super) mod allowed;
pub(super) mod arguments;
pub(super) mod denied;

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, sock_filter};

use serde::Serialize;

use self::arguments::{Built, CallRules};
use crate::ConfineError;

/// The system calls that a confined process may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SystemCalls {
    /// Only the calls that serving needs. All other calls are refused, including calls of newer
    /// kernels.
    #[default]
    AllowList,
    /// All calls except the known harmful ones. For a machine on which serving needs a call that is
    /// not in the allow-list.
    DenyList,
}

impl SystemCalls {
    /// Its name in configuration and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AllowList => "allow-list",
            Self::DenyList => "deny-list",
        }
    }
}

/// The parameters of a filter.
#[derive(Debug, Clone)]
pub(crate) struct CallFilter {
    pub(crate) list: SystemCalls,
    /// The sockets that can be made.
    pub(crate) network: Network,
    /// The only listening sockets on which connections can be accepted.
    pub(crate) listeners: Vec<i32>,
    /// Open descriptors of `/proc/self/pagemap`. Under an allow-list, the process may ask them only
    /// which pages were written.
    pub(crate) page_maps: Vec<i32>,
}

/// The network access of a confined process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Network {
    /// No socket can be made, except connected pairs of Unix sockets.
    #[default]
    None,
    /// TCP connections to these ports and to port 53, for name resolution. No listening, no Unix
    /// sockets except connected pairs, no raw packets. Datagrams (UDP) can go anywhere, since names
    /// are resolved with them.
    Ports(Vec<u16>),
    /// Connections to any port, and datagrams. No listening, no Unix sockets except connected
    /// pairs, no raw packets.
    Any,
}

/// The calls that fail with `ENOSYS` under a deny-list. A C library then uses a call whose flags a
/// filter can see.
const KNOWN: [i64; 1] = [libc::SYS_clone3];

/// As [`KNOWN`], for programs outside the sandbox and for builds. Also has `openat2`: a filter
/// can't see its mode, so it could make files with set-id bits.
const UNSEEN: [i64; 2] = [libc::SYS_clone3, libc::SYS_openat2];

impl CallFilter {
    /// A filter without listening sockets and page maps.
    pub(super) fn new(list: SystemCalls, network: Network) -> Self {
        Self {
            list,
            network,
            listeners: Vec::new(),
            page_maps: Vec::new(),
        }
    }

    /// Refuses the calls that this filter does not allow, on this thread and its later threads.
    pub(super) fn apply(&self) -> Result<(), ConfineError> {
        install_built(|machine| match self.list {
            SystemCalls::AllowList => filter(
                allowed::rules(self)?,
                [REFUSED, SeccompAction::Allow],
                machine,
                &FALLS_BACK,
                true,
            ),
            SystemCalls::DenyList => deny(denied::rules(self, false)?, machine, &KNOWN),
        })
    }
}

/// Refuses the known harmful calls, and all sockets except connected pairs, but allows starting
/// programs.
pub(super) fn apply_to_broker() -> Result<(), ConfineError> {
    let calls = CallFilter::new(SystemCalls::DenyList, Network::None);
    install_built(|machine| deny(denied::rules(&calls, true)?, machine, &KNOWN))
}

/// The filter for a program that an operator lets run. It refuses the known harmful calls, and
/// sockets and processes unless they are allowed. `None` if this code has no filters for the
/// machine.
pub(super) fn for_program(
    network: Network,
    processes: bool,
) -> Result<Option<BpfProgram>, ConfineError> {
    let calls = CallFilter::new(SystemCalls::DenyList, network);
    build(|machine| {
        let rules = denied::rules_of_program(&calls, processes)?;
        deny(rules, machine, &UNSEEN)
    })
}

/// Refuses all sockets except connected pairs, and the calls that are known to be harmful in the
/// programs of a build.
pub(super) fn apply_to_build() -> Result<(), ConfineError> {
    let calls = CallFilter::new(SystemCalls::DenyList, Network::None);
    install_built(|machine| deny(denied::rules_of_build(&calls)?, machine, &UNSEEN))
}

/// Makes calls that are not in `rules` fail with `ENOSYS`.
pub(super) fn apply_only(rules: impl FnOnce() -> Built<CallRules>) -> Result<(), ConfineError> {
    let missing = SeccompAction::Errno(libc::ENOSYS.cast_unsigned());
    let answers = [missing, SeccompAction::Allow];
    install_built(|machine| filter(rules()?, answers, machine, &[], false))
}

fn build(
    built: impl FnOnce(TargetArch) -> Built<BpfProgram>,
) -> Result<Option<BpfProgram>, ConfineError> {
    let built = machine().map(built).transpose();
    built.map_err(|error| ConfineError::Refused(error.into()))
}

fn install_built(built: impl FnOnce(TargetArch) -> Built<BpfProgram>) -> Result<(), ConfineError> {
    build(built)?.as_ref().map_or(Ok(()), install)
}

const REFUSED: SeccompAction = SeccompAction::Errno(libc::EPERM.cast_unsigned());

fn deny(rules: CallRules, machine: TargetArch, absent: &[i64]) -> Built<BpfProgram> {
    filter(
        rules,
        [SeccompAction::Allow, REFUSED],
        machine,
        absent,
        false,
    )
}

/// A filter that answers calls in `rules` with `listed`, and all others with `others`. Calls in
/// `absent` fail with `ENOSYS`; if `newer` is true, so do all calls after [`NEWEST`].
fn filter(
    rules: CallRules,
    [others, listed]: [SeccompAction; 2],
    machine: TargetArch,
    absent: &[i64],
    newer: bool,
) -> Built<BpfProgram> {
    let filter = SeccompFilter::new(rules, others, listed, machine)?;
    Ok(guarded(filter.try_into()?, machine, absent, newer))
}

/// Installs a filter on this thread if the kernel has filters.
pub(super) fn install(program: &BpfProgram) -> Result<(), ConfineError> {
    match seccompiler::apply_filter(program) {
        Ok(()) => Ok(()),
        Err(seccompiler::Error::Prctl(error) | seccompiler::Error::Seccomp(error))
            if [libc::EINVAL, libc::ENOSYS]
                .map(Some)
                .contains(&error.raw_os_error()) =>
        {
            Ok(())
        }
        Err(error) => Err(ConfineError::Refused(error.into())),
    }
}

/// The machine's architecture; `None` if this code has no filters for it.
pub(super) fn machine() -> Option<TargetArch> {
    std::env::consts::ARCH.try_into().ok()
}

/// Whether this kernel has filters, and this code supports the machine.
pub(super) fn is_available() -> bool {
    machine().is_some()
        && std::fs::read_to_string("/proc/self/status")
            .is_ok_and(|status| status.lines().any(|line| line.starts_with("Seccomp:")))
}

/// A C library tries these calls first, and does without them only if they fail with `ENOSYS`. Any
/// other error is final.
///
/// * `clone3` has its flags in memory, where a filter can't see them; glibc then uses `clone`.
/// * `mseal` (Linux 6.10) is called by the dynamic loader when it loads a plug-in for name
///   resolution.
const FALLS_BACK: [libc::c_long; 2] = [libc::SYS_clone3, MSEAL];

/// The number is the same on all machines, like the numbers of all calls since Linux 5.1.
const MSEAL: libc::c_long = 462;

/// The newest call that was known when the lists were written: `listns`, Linux 6.19. A C library
/// that uses a newer call also works on kernels without it.
const NEWEST: u32 = 470;

/// The bit that all numbers of x32 calls have. These are calls of the same machine under other
/// numbers, so a deny-list of numbers alone would let them pass.
const X32: u32 = 0x4000_0000;

/// The offsets, in a filter's data, of a call's number and of its machine.
const NUMBER: u32 = 0;
const MACHINE: u32 = 4;

/// Puts checks in front of `program`, so that they come before its rules. Calls with the numbers of
/// another ABI, such as 32 bits (`int 0x80`) and x32, are refused without ending the process. Jumps
/// are relative, so the jumps of `program` stay valid.
fn guarded(program: BpfProgram, machine: TargetArch, absent: &[i64], newer: bool) -> BpfProgram {
    let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();
    let missing = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
    let mut whole = vec![
        load(MACHINE),
        // On this machine, skips the refusal.
        jump(libc::BPF_JEQ, audit(&machine), 1, 0),
        answer(refused),
        load(NUMBER),
    ];
    if machine == TargetArch::x86_64 {
        whole.extend(when(libc::BPF_JGE, X32, refused));
    }
    if newer {
        whole.extend(when(libc::BPF_JGT, NEWEST, missing));
    }
    whole.extend(each(absent, missing));
    whole.extend(program);
    whole
}

/// A filter that answers `calls` with `answer` and allows all others. It must be combined with a
/// filter that refuses calls with the numbers of another ABI.
pub(crate) fn answering(calls: &[libc::c_long], answer: u32) -> BpfProgram {
    let mut whole = vec![load(NUMBER)];
    whole.extend(each(calls, answer));
    whole.push(self::answer(libc::SECCOMP_RET_ALLOW));
    whole
}

fn each(calls: &[libc::c_long], answer: u32) -> impl Iterator<Item = sock_filter> {
    // All numbers of calls fit into 32 bits.
    let numbers = calls.iter().filter_map(|call| u32::try_from(*call).ok());
    numbers.flat_map(move |call| when(libc::BPF_JEQ, call, answer))
}

/// The kernel's value for the machine in a filter's data (`AUDIT_ARCH_…`).
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

/// Answers with `value` if the comparison is true.
fn when(comparison: u32, operand: u32, value: u32) -> [sock_filter; 2] {
    [jump(comparison, operand, 0, 1), answer(value)]
}

fn jump(comparison: u32, operand: u32, if_true: u8, if_false: u8) -> sock_filter {
    let code = libc::BPF_JMP | comparison | libc::BPF_K;
    instruction(code, if_true, if_false, operand)
}

fn answer(value: u32) -> sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, value)
}

fn instruction(code: u32, if_true: u8, if_false: u8, operand: u32) -> sock_filter {
    sock_filter {
        // The codes use only the lower 16 bits.
        code: code as u16,
        jt: if_true,
        jf: if_false,
        k: operand,
    }
}
