//! Conditions on the arguments of calls. A filter sees numbers and can't follow
//! pointers.

use std::collections::BTreeMap;

use seccompiler::{SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

/// By call, the cases in which its rule applies; always, if there are none.
pub(crate) type CallRules = BTreeMap<i64, Vec<SeccompRule>>;
pub(crate) type Built<T> = Result<T, seccompiler::BackendError>;

/// System calls: their names, as Linux has them, and numbers on this machine.
pub(crate) type Calls = &'static [(&'static str, i64)];

/// A table of system calls. The last ones are older forms, which only x86-64 has.
macro_rules! calls {
    ($($(#[$only:meta])* $call:ident)* $(; x86_64: $($old:ident)*)?) => {
        &[
            $($(#[$only])* $crate::seccomp::arguments::named(stringify!($call), libc::$call),)*
            $($(
                #[cfg(target_arch = "x86_64")]
                $crate::seccomp::arguments::named(stringify!($old), libc::$old),
            )*)?
        ]
    };
}
pub(crate) use calls;

/// A call by its constant, such as `SYS_read`.
pub(crate) const fn named(constant: &'static str, number: i64) -> (&'static str, i64) {
    (constant.split_at("SYS_".len()).1, number)
}

/// These calls with any arguments.
pub(crate) fn always(calls: Calls) -> impl Iterator<Item = (i64, Vec<SeccompRule>)> {
    calls.iter().map(|(_, call)| (*call, Vec::new()))
}

/// The bits of a socket's kind; the others of this argument are flags.
pub(super) const KINDS: u64 = 0xf;

/// Connects and sends in one call (`MSG_FASTOPEN`), which Landlock does not check.
pub(super) const FAST_OPEN: u64 = 0x2000_0000;

/// Calls that take [`FAST_OPEN`], and the argument that has it.
pub(super) const SENDING: [(i64, u8); 3] = [
    (libc::SYS_sendto, 3),
    (libc::SYS_sendmsg, 2),
    (libc::SYS_sendmmsg, 3),
];

/// The bits of a mode that make a program run with its owner's or group's rights.
pub(crate) const SET_ID: u64 = 0o6000;

/// Every flag of `clone` that makes a namespace. `CLONE_NEWTIME` is a flag of `clone3`
/// alone.
pub(super) const NAMESPACES: u64 = number(
    libc::CLONE_NEWNS
        | libc::CLONE_NEWCGROUP
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUSER
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET,
);

/// The argument that the kernel sees for this number: its lower half counts.
pub(super) const fn number(value: i32) -> u64 {
    value.cast_unsigned() as u64
}

/// A condition on the lower half of an argument, which is all that the kernel looks at
/// where it takes an `int`.
pub(super) fn condition(argument: u8, is: SeccompCmpOp, value: u64) -> Built<SeccompCondition> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, is, value)
}

/// A rule of such conditions, all of which hold.
pub(super) fn all<const N: usize>(conditions: [(u8, SeccompCmpOp, u64); N]) -> Built<SeccompRule> {
    let each = conditions.into_iter();
    let each = each.map(|(argument, is, value)| condition(argument, is, value));
    SeccompRule::new(each.collect::<Built<_>>()?)
}

/// A rule of one such condition.
pub(crate) fn when(argument: u8, is: SeccompCmpOp, value: u64) -> Built<SeccompRule> {
    all([(argument, is, value)])
}

/// Whether an argument points nowhere, or somewhere.
pub(super) fn null(argument: u8, is: bool) -> Built<Vec<SeccompRule>> {
    let is = match is {
        true => SeccompCmpOp::Eq,
        false => SeccompCmpOp::Ne,
    };
    let whole = SeccompCondition::new(argument, SeccompCmpArgLen::Qword, is, 0)?;
    Ok(vec![SeccompRule::new(vec![whole])?])
}

/// The argument is one of these.
pub(crate) fn one_of(argument: u8, values: &[u64]) -> Built<Vec<SeccompRule>> {
    let each = values.iter();
    each.map(|value| when(argument, SeccompCmpOp::Eq, *value))
        .collect()
}

/// These bits of the argument are `value`.
pub(super) fn masked(argument: u8, mask: u64, value: u64) -> Built<SeccompRule> {
    when(argument, SeccompCmpOp::MaskedEq(mask), value)
}

/// Any of these bits is set.
pub(super) fn any_bit(argument: u8, bits: u64) -> Built<Vec<SeccompRule>> {
    let each = (0..u32::BITS).map(|bit| 1_u64 << bit);
    each.filter(|bit| bits & bit != 0)
        .map(|bit| masked(argument, bit, bit))
        .collect()
}

/// Memory is writable or executable, never both: of `mmap` and `mprotect`.
pub(crate) fn not_writable_and_executable() -> Built<Vec<SeccompRule>> {
    let [write, execute] = [number(libc::PROT_WRITE), number(libc::PROT_EXEC)];
    [0, write, execute]
        .into_iter()
        .map(|rights| masked(2, write | execute, rights))
        .collect()
}

/// `clone` makes a thread of this process, in the same namespaces.
pub(crate) fn thread() -> Built<Vec<SeccompRule>> {
    let thread = number(libc::CLONE_THREAD);
    Ok(vec![masked(0, thread | NAMESPACES, thread)?])
}

/// Commands of `fcntl` that are about a descriptor of this process. Not commands that have
/// signals sent (`F_SETOWN`), leases and notices of directories.
///
/// None of `kept` is duplicated.
pub(crate) fn fcntl(kept: &[i32]) -> Built<Vec<SeccompRule>> {
    let commands = [
        libc::F_GETFD,
        libc::F_SETFD,
        libc::F_GETFL,
        libc::F_SETFL,
        libc::F_GETLK,
        libc::F_SETLK,
        libc::F_SETLKW,
        libc::F_OFD_GETLK,
        libc::F_OFD_SETLK,
        libc::F_OFD_SETLKW,
        libc::F_ADD_SEALS,
        libc::F_GET_SEALS,
    ];
    let mut rules = one_of(1, &commands.map(number))?;
    for command in [libc::F_DUPFD, libc::F_DUPFD_CLOEXEC] {
        let mut conditions = vec![condition(1, SeccompCmpOp::Eq, number(command))?];
        conditions.extend(other_than(0, kept)?);
        rules.push(SeccompRule::new(conditions)?);
    }
    Ok(rules)
}

/// The argument is none of these descriptors: all conditions of one rule.
pub(super) fn other_than(argument: u8, descriptors: &[i32]) -> Built<Vec<SeccompCondition>> {
    let each = descriptors.iter();
    each.map(|descriptor| condition(argument, SeccompCmpOp::Ne, number(*descriptor)))
        .collect()
}

/// `prctl` names a thread or a piece of memory.
pub(crate) fn prctl() -> Built<Vec<SeccompRule>> {
    let options = [libc::PR_SET_NAME, libc::PR_GET_NAME, libc::PR_SET_VMA];
    one_of(0, &options.map(number))
}

/// The process that a call is about is this one.
pub(crate) fn itself(argument: u8) -> Built<Vec<SeccompRule>> {
    let itself = rustix::process::getpid().as_raw_pid();
    one_of(argument, &[number(itself)])
}
