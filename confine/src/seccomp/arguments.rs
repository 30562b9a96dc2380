//! Conditions on the arguments of calls. A filter sees only numbers and can't follow pointers.

use std::collections::BTreeMap;

use seccompiler::{SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

/// For each call, the cases in which the filter's answer applies; without cases, it always applies.
pub(crate) type CallRules = BTreeMap<i64, Vec<SeccompRule>>;
pub(crate) type Built<T> = Result<T, seccompiler::BackendError>;

/// System calls: their Linux names, and their numbers on this machine.
pub(crate) type Calls = &'static [(&'static str, i64)];

/// Makes a table of system calls. The calls after `x86_64:` are older forms, which exist only
/// there.
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

/// A call from its constant, such as `SYS_read`.
pub(crate) const fn named(constant: &'static str, number: i64) -> (&'static str, i64) {
    (constant.split_at("SYS_".len()).1, number)
}

/// These calls with any arguments.
pub(crate) fn always(calls: Calls) -> impl Iterator<Item = (i64, Vec<SeccompRule>)> {
    calls.iter().map(|(_, call)| (*call, Vec::new()))
}

/// In the argument for a socket's kind, the bits of the kind. The other bits are flags.
pub(super) const KINDS: u64 = 0xf;

/// The flag that connects and sends in one call (`MSG_FASTOPEN`), which Landlock does not check.
pub(super) const FAST_OPEN: u64 = 0x2000_0000;

/// Calls that accept [`FAST_OPEN`], and the position of their argument for flags.
pub(super) const SENDING: [(i64, u8); 3] = [
    (libc::SYS_sendto, 3),
    (libc::SYS_sendmsg, 2),
    (libc::SYS_sendmmsg, 3),
];

/// The bits of a mode that make a program run with its owner's or group's rights.
pub(crate) const SET_ID: u64 = 0o6000;

/// Every flag of `clone` that makes a namespace. `CLONE_NEWTIME` is a flag of `clone3` only.
pub(super) const NAMESPACES: u64 = number(
    libc::CLONE_NEWNS
        | libc::CLONE_NEWCGROUP
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUSER
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET,
);

/// The argument of a call for this number. Only the lower half of the argument matters.
pub(super) const fn number(value: i32) -> u64 {
    value.cast_unsigned() as u64
}

/// A condition on the lower half of an argument. The kernel uses only that half of an `int`
/// argument.
pub(super) fn condition(argument: u8, is: SeccompCmpOp, value: u64) -> Built<SeccompCondition> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, is, value)
}

/// A rule that applies if all these conditions are true.
pub(super) fn all<const N: usize>(conditions: [(u8, SeccompCmpOp, u64); N]) -> Built<SeccompRule> {
    let each = conditions.into_iter();
    let each = each.map(|(argument, is, value)| condition(argument, is, value));
    SeccompRule::new(each.collect::<Built<_>>()?)
}

/// A rule with one condition.
pub(crate) fn when(argument: u8, is: SeccompCmpOp, value: u64) -> Built<SeccompRule> {
    all([(argument, is, value)])
}

/// The argument is a null pointer if `is` is `Eq`, or is any other pointer if `is` is `Ne`.
pub(super) fn null(argument: u8, is: SeccompCmpOp) -> Built<Vec<SeccompRule>> {
    let whole = SeccompCondition::new(argument, SeccompCmpArgLen::Qword, is, 0)?;
    Ok(vec![SeccompRule::new(vec![whole])?])
}

/// The argument is one of `values`.
pub(crate) fn one_of(argument: u8, values: &[u64]) -> Built<Vec<SeccompRule>> {
    let each = values.iter();
    each.map(|value| when(argument, SeccompCmpOp::Eq, *value))
        .collect()
}

/// The argument's bits in `mask` equal `value`.
pub(super) fn masked(argument: u8, mask: u64, value: u64) -> Built<SeccompRule> {
    when(argument, SeccompCmpOp::MaskedEq(mask), value)
}

/// The argument has at least one of `bits`.
pub(super) fn any_bit(argument: u8, bits: u64) -> Built<Vec<SeccompRule>> {
    let each = (0..u32::BITS).map(|bit| 1_u64 << bit);
    each.filter(|bit| bits & bit != 0)
        .map(|bit| masked(argument, bit, bit))
        .collect()
}

/// For `mmap` and `mprotect`: memory is writable or executable, never both.
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

/// Commands of `fcntl` about a descriptor of this process. Leases, directory notifications and
/// commands that cause signals (`F_SETOWN`) are not included.
///
/// Descriptors in `kept` can't be duplicated.
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

/// Conditions for one rule: together they mean that the argument is none of `descriptors`.
pub(super) fn other_than(argument: u8, descriptors: &[i32]) -> Built<Vec<SeccompCondition>> {
    let each = descriptors.iter();
    each.map(|descriptor| condition(argument, SeccompCmpOp::Ne, number(*descriptor)))
        .collect()
}

/// `prctl` sets or reads a thread's name, or names a piece of memory.
pub(crate) fn prctl() -> Built<Vec<SeccompRule>> {
    let options = [libc::PR_SET_NAME, libc::PR_GET_NAME, libc::PR_SET_VMA];
    one_of(0, &options.map(number))
}

/// The first argument is the id of this process.
pub(crate) fn itself() -> Built<Vec<SeccompRule>> {
    let itself = rustix::process::getpid().as_raw_pid();
    one_of(0, &[number(itself)])
}
