//! The system calls that a traced process is made to execute, with their arguments.
//!
//! A call without its own case gets -1 for each argument: no file, process or address, and no flags
//! that the kernel knows. The kernel then refuses a call that would affect the whole machine, with
//! an error that differs from the filter's.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;

use super::scene::Scene;
use super::tracee::{Answer, Tracee};

/// The newest call whose name is known here.
pub(super) const NEWEST: u64 = 470;

/// The numbers of x32 start here.
pub(super) const X32: u64 = 0x4000_0000;

/// Calls that are not made. One takes the registers from the stack, two end the thread and the
/// process, and two are the kernel's own calls for probes, which no filter sees.
pub(super) const LEFT_OUT: [u64; 5] = [15, 60, 231, 335, 336];

const NONE: u64 = u64::MAX;
/// `AT_FDCWD`.
const HERE: u64 = (-100_i64).cast_unsigned();

pub(super) struct Case {
    pub(super) number: u64,
    /// Describes its arguments; empty if they are all -1.
    pub(super) what: &'static str,
    pub(super) arguments: [u64; 6],
}

/// The names of the calls.
pub(super) fn names() -> BTreeMap<u64, &'static str> {
    let lines = include_str!("calls.txt").lines();
    let pairs = lines.map(|line| line.split_once(' ').unwrap());
    pairs
        .map(|(number, name)| (number.parse().unwrap(), name))
        .collect()
}

/// Data to which arguments point, in the memory of the process.
pub(super) struct Addresses {
    /// A file that the process must not change.
    file: u64,
    /// An unused name next to it.
    new: u64,
    /// A name in a directory that may be written.
    made: u64,
    /// A socket's address, and its length.
    datagrams: (u64, u64),
    program: u64,
    attribute: u64,
    queue: u64,
    times: u64,
    one: u64,
    nice: u64,
    how: u64,
    /// Zeros, for calls that write to memory.
    space: u64,
    /// An open file of a directory that may be written. It is open for reading if the profile
    /// allows only that, and missing if the profile allows neither.
    open: u64,
    /// A file that the process must not change, open for reading; missing if it can't be opened.
    outside: u64,
    /// The process's own `/proc/self/pagemap`; missing if it is not open.
    page_map: u64,
    neighbour: u64,
    itself: u64,
    /// The group of `file`, which the file's owner may set.
    group: u64,
}

impl Addresses {
    /// Writes the data to the memory of the process.
    pub(super) fn write(process: &Tracee, itself: u32, scene: &Scene) -> Self {
        const MMAP: u64 = 9;
        const OPENAT: u64 = 257;
        let memory = process.call(MMAP, [0, 0x8000, 3, 0x22, NONE, 0]);
        let Answer::Value(memory @ 1..) = memory else {
            panic!("no memory: {memory:?}");
        };
        let mut next = memory.cast_unsigned();
        let mut put = |bytes: &[u8]| {
            let address = next;
            process.write(address, bytes);
            next += (u64::try_from(bytes.len()).unwrap() + 16) & !7;
            address
        };
        let path = |name: &str| {
            let mut path = scene.path(name).as_os_str().as_bytes().to_vec();
            path.push(0);
            path
        };
        let numbers = |numbers: &[u64]| -> Vec<u8> {
            numbers
                .iter()
                .flat_map(|number| number.to_ne_bytes())
                .collect()
        };
        // `AF_UNIX`, and the path.
        let mut socket = 1_u16.to_ne_bytes().to_vec();
        socket.extend(path("outside/datagrams"));
        let kept = put(&path("notes/kept"));
        let outside = put(&path("outside/file"));
        let (for_reading, for_both) = (0, 2);
        let opened =
            |path: u64, flags: u64| match process.call(OPENAT, [HERE, path, flags, 0, 0, 0]) {
                Answer::Value(file @ 0..) => Some(file.cast_unsigned()),
                _ => None,
            };
        let open = opened(kept, for_both).or_else(|| opened(kept, for_reading));
        Self {
            outside: opened(outside, for_reading).unwrap_or(NONE),
            page_map: page_map(itself).unwrap_or(NONE),
            file: outside,
            new: put(&path("outside/new")),
            made: put(&path("notes/made")),
            datagrams: (put(&socket), u64::try_from(socket.len()).unwrap()),
            program: put(b"/bin/true\0"),
            attribute: put(b"user.toolward\0"),
            queue: put(b"/toolward-injected\0"),
            times: put(&numbers(&[1, 0, 1, 0])),
            one: put(&numbers(&[1, 1])),
            // `struct sched_attr`: its size, no policy, no flags, and a nice value.
            nice: put(&numbers(&[56, 0, 19, 0, 0, 0, 0])),
            // `struct open_how`: for writing, emptied.
            how: put(&numbers(&[0o1001, 0, 0])),
            space: put(&[0; 4096]),
            open: open.unwrap_or(NONE),
            neighbour: scene.neighbour().into(),
            itself: itself.into(),
            group: scene.path("outside/file").metadata().unwrap().gid().into(),
        }
    }
}

/// The number of the descriptor by which a process has its `pagemap` open.
fn page_map(process: u32) -> Option<u64> {
    let open = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    let mut open = open.map(Result::unwrap);
    let map =
        open.find(|file| std::fs::read_link(file.path()).is_ok_and(|to| to.ends_with("pagemap")))?;
    map.file_name().to_str()?.parse().ok()
}

/// Writes the path of a file that must not change, at an address of 32 bits.
pub(super) fn path_for_32_bits(process: &Tracee, scene: &Scene) -> u64 {
    const MMAP: u64 = 9;
    // The usual flags, and `MAP_32BIT`.
    let memory = process.call(MMAP, [0, 4096, 3, 0x22 | 0x40, NONE, 0]);
    let Answer::Value(memory @ 1..) = memory else {
        panic!("no memory: {memory:?}");
    };
    let path = scene.path("outside/file");
    process.write(memory.cast_unsigned(), path.as_os_str().as_bytes());
    memory.cast_unsigned()
}

/// All calls, by number.
pub(super) fn all(at: &Addresses) -> Vec<Case> {
    let mut own: BTreeMap<u64, Vec<Case>> = BTreeMap::new();
    let groups = [
        files(at),
        attributes(at),
        processes(at),
        network(at),
        memory(at),
        itself(at),
    ];
    for (number, what, first) in groups.into_iter().flatten() {
        let mut arguments = [0; 6];
        for (argument, value) in arguments.iter_mut().zip(first) {
            *argument = value;
        }
        let case = Case {
            number,
            what,
            arguments,
        };
        own.entry(number).or_default().push(case);
    }
    let numbers = (0..=NEWEST).chain([NEWEST + 1, 512, 999]);
    let left_out = |number: &u64| LEFT_OUT.contains(number);
    numbers
        .filter(|number| !left_out(number))
        .flat_map(|number| {
            own.remove(&number).unwrap_or_else(|| {
                vec![Case {
                    number,
                    what: "",
                    arguments: [NONE; 6],
                }]
            })
        })
        .collect()
}

type Row = (u64, &'static str, Vec<u64>);

/// Files that the process must not change, by their paths.
fn files(at: &Addresses) -> Vec<Row> {
    let Addresses {
        file, new, made, ..
    } = *at;
    // Flags for writing: one empties the file, and one creates it.
    let (emptied, made_anew) = (0o1001, 0o101);
    let set_id = 0o4755;
    vec![
        (2, "a file outside, emptied", vec![file, emptied, 0]),
        (2, "made with a set-id bit", vec![made, made_anew, set_id]),
        (2, "not made, any mode", vec![file, 0, NONE]),
        (257, "a file outside, emptied", vec![HERE, file, emptied, 0]),
        (
            257,
            "made with a set-id bit",
            vec![HERE, made, made_anew, set_id],
        ),
        (
            257,
            "a nameless file with a set-id bit",
            vec![HERE, made, 0o20_200_002, set_id],
        ),
        (257, "not made, any mode", vec![HERE, file, 0, NONE]),
        (437, "a file outside, emptied", vec![HERE, file, at.how, 24]),
        (85, "a new file outside", vec![new, 0o4755]),
        (76, "a file outside, emptied", vec![file, 0]),
        (82, "a file outside", vec![file, new]),
        (264, "a file outside", vec![HERE, file, HERE, new]),
        (316, "a file outside", vec![HERE, file, HERE, new, 0]),
        (83, "a directory outside", vec![new, 0o777]),
        (258, "a directory outside", vec![HERE, new, 0o777]),
        (84, "outside", vec![new]),
        (86, "a file outside", vec![file, new]),
        (265, "a file outside", vec![HERE, file, HERE, new, 0]),
        (
            265,
            "into a directory that may be written",
            vec![HERE, file, HERE, made, 0],
        ),
        (87, "a file outside", vec![file]),
        (263, "a file outside", vec![HERE, file, 0]),
        (88, "in a directory that may be written", vec![file, made]),
        (
            266,
            "in a directory that may be written",
            vec![file, HERE, made],
        ),
        (133, "a file with a set-id bit", vec![made, 0o104_755, 0]),
        (
            259,
            "a file with a set-id bit",
            vec![HERE, made, 0o104_755, 0],
        ),
        (133, "a pipe", vec![made, 0o010_644, 0]),
        (259, "a pipe", vec![HERE, made, 0o010_644, 0]),
        (59, "a program", vec![at.program, 0, 0]),
        (322, "a program", vec![HERE, at.program, 0, 0, 0]),
    ]
}

/// Rights, owners, times and attributes.
fn attributes(at: &Addresses) -> Vec<Row> {
    let Addresses {
        file,
        open,
        outside,
        attribute,
        one,
        space,
        group,
        ..
    } = *at;
    let (mode, set_id) = (0o777, 0o4755);
    // The user stays the same.
    let same = NONE;
    vec![
        (90, "a file outside", vec![file, mode]),
        (91, "a set-id bit", vec![open, set_id]),
        (91, "no set-id bit", vec![NONE, mode]),
        (91, "a file outside, open", vec![outside, mode]),
        (93, "a file outside, open", vec![outside, same, group]),
        (
            190,
            "a file outside, open",
            vec![outside, attribute, one, 1, 0],
        ),
        (280, "a file outside, open", vec![outside, 0, at.times, 0]),
        (16, "a file's attributes", vec![outside, 0x4008_6602, space]),
        (
            16,
            "attributes, extended",
            vec![outside, 0x401c_5820, space],
        ),
        (16, "a file's verity", vec![outside, 0x4080_6685, space]),
        (16, "encryption", vec![outside, 0x800c_6613, space]),
        (
            16,
            "another file's blocks",
            vec![outside, 0x4004_9409, open],
        ),
        (
            16,
            "blocks that are equal",
            vec![outside, 0xc018_9436, space],
        ),
        (16, "a snapshot", vec![outside, 0x5000_9401, space]),
        (16, "a subvolume", vec![outside, 0x5000_940e, space]),
        (16, "a file system, frozen", vec![outside, 0xc004_5877, 0]),
        (16, "attributes, read", vec![outside, 0x8008_6601, space]),
        (268, "a file outside", vec![HERE, file, mode]),
        (452, "a file outside", vec![HERE, file, mode, 0]),
        (92, "a file outside", vec![file, same, group]),
        (94, "a file outside", vec![file, same, group]),
        (93, "an open file", vec![open, same, group]),
        (260, "a file outside", vec![HERE, file, same, group, 0]),
        (188, "a file outside", vec![file, attribute, one, 1, 0]),
        (189, "a file outside", vec![file, attribute, one, 1, 0]),
        (190, "an open file", vec![open, attribute, one, 1, 0]),
        (197, "a file outside", vec![file, attribute]),
        (198, "a file outside", vec![file, attribute]),
        (199, "an open file", vec![open, attribute]),
        (
            463,
            "a file outside",
            vec![HERE, file, 0, attribute, space, 16],
        ),
        (466, "a file outside", vec![HERE, file, 0, attribute]),
        (469, "a file outside", vec![HERE, file, space, 24, 0]),
        (132, "a file outside", vec![file, at.times]),
        (235, "a file outside", vec![file, at.times]),
        (261, "a file outside", vec![HERE, file, at.times]),
        (280, "a file outside", vec![HERE, file, at.times, 0]),
        (280, "an open file", vec![NONE, 0, NONE, 0]),
        (303, "a file outside", vec![HERE, file, space, space, 0]),
    ]
}

/// Another process of the same user.
fn processes(at: &Addresses) -> Vec<Row> {
    let Addresses {
        neighbour,
        itself,
        one,
        space,
        ..
    } = *at;
    let kill = 9;
    vec![
        (62, "another process", vec![neighbour, kill]),
        (200, "another process", vec![neighbour, kill]),
        (234, "another process", vec![neighbour, neighbour, kill]),
        (234, "itself, no signal", vec![itself, itself, 0]),
        (129, "another process", vec![neighbour, kill, space]),
        (
            297,
            "another process",
            vec![neighbour, neighbour, kill, space],
        ),
        (101, "another process", vec![16, neighbour, 0, 0]),
        (434, "another process", vec![neighbour, 0]),
        (
            310,
            "another process",
            vec![neighbour, space, 1, space, 1, 0],
        ),
        (
            311,
            "another process",
            vec![neighbour, space, 1, space, 1, 0],
        ),
        (312, "another process", vec![neighbour, itself, 2, 0, 0]),
        (274, "another process", vec![neighbour, space, space]),
        (
            302,
            "the limits of another process",
            vec![neighbour, 0, one, 0],
        ),
        (302, "its own", vec![0, 0, 0, space]),
        (141, "another process", vec![0, neighbour, 19]),
        (141, "itself", vec![0, 0, 19]),
        (251, "another process", vec![1, neighbour, 3 << 13]),
        (203, "another process", vec![neighbour, 8, one]),
        (203, "itself", vec![0, 8, one]),
        (142, "another process", vec![neighbour, space]),
        (144, "another process", vec![neighbour, 3, space]),
        (314, "another process", vec![neighbour, at.nice, 0]),
        (256, "another process", vec![neighbour, 64, one, one]),
        (
            279,
            "another process",
            vec![neighbour, 1, one, one, space, 0],
        ),
        (109, "another process", vec![neighbour, neighbour]),
    ]
}

fn network(at: &Addresses) -> Vec<Row> {
    let (unix, inet, inet6, netlink, packet) = (1, 2, 10, 16, 17);
    let (stream, datagram, raw, ordered) = (1, 2, 3, 5);
    let space = at.space;
    let (address, length) = at.datagrams;
    let fast_open = 0x2000_0000;
    let socket = 1;
    vec![
        (41, "TCP", vec![inet, stream, 6]),
        (41, "UDP, IPv6", vec![inet6, datagram, 0]),
        (41, "MPTCP", vec![inet, stream, 262]),
        (41, "raw", vec![inet, raw, 1]),
        (41, "Unix", vec![unix, stream, 0]),
        (41, "Unix, datagrams", vec![unix, datagram, 0]),
        (41, "netlink", vec![netlink, raw, 0]),
        (41, "packets", vec![packet, raw, 0]),
        (53, "connected", vec![unix, stream, 0, space]),
        (53, "datagrams", vec![unix, datagram, 0, space]),
        (53, "in order", vec![unix, ordered, 0, space]),
        (
            42,
            "a socket of another process",
            vec![NONE, address, length],
        ),
        (
            44,
            "to a socket of another process",
            vec![NONE, space, 1, 0, address, length],
        ),
        (
            44,
            "connecting",
            vec![NONE, space, 1, fast_open, address, length],
        ),
        (46, "a message", vec![NONE, space, 0]),
        (46, "connecting", vec![NONE, space, fast_open]),
        (307, "messages", vec![NONE, space, 1, 0]),
        (307, "connecting", vec![NONE, space, 1, fast_open]),
        (43, "another socket", vec![0, 0, 0]),
        (288, "another socket", vec![0, 0, 0, 0]),
        (54, "a usual option", vec![NONE, socket, 2, space, 4]),
        (54, "a filter", vec![NONE, socket, 26, space, 16]),
        (54, "a device", vec![NONE, socket, 25, space, 4]),
        (54, "a table of the firewall", vec![NONE, 0, 64, space, 96]),
    ]
}

fn memory(at: &Addresses) -> Vec<Row> {
    let space = at.space;
    let (read, write, execute) = (1, 2, 4);
    let (page, private) = (4096, 0x22);
    vec![
        (
            9,
            "for writing",
            vec![0, page, read | write, private, NONE, 0],
        ),
        (
            9,
            "for executing",
            vec![0, page, read | execute, private, NONE, 0],
        ),
        (
            9,
            "for both",
            vec![0, page, read | write | execute, private, NONE, 0],
        ),
        (10, "for writing", vec![1, page, read | write]),
        (10, "for executing", vec![1, page, read | execute]),
        (10, "for both", vec![1, page, read | write | execute]),
        (28, "not needed", vec![1, page, 4]),
        (28, "broken memory", vec![1, page, 100]),
        (28, "memory to be put out of use", vec![1, page, 101]),
        (319, "in memory", vec![at.attribute, 0]),
        (324, "what there is", vec![0, 0, 0]),
        (324, "all processors of the machine", vec![1, 0, 0]),
        (29, "shared memory", vec![0, page, 0o1600]),
        (64, "a semaphore", vec![0, 1, 0o1600]),
        (68, "a queue", vec![0, 0o1600]),
        (240, "a named queue", vec![at.queue, 0o102, 0o600, 0]),
        (202, "waking", vec![space, 1, 1]),
    ]
}

fn itself(at: &Addresses) -> Vec<Row> {
    const THREAD: u64 = 0x0001_0000;
    const SHARED: u64 = 0x0000_0900;
    let space = at.space;
    vec![
        // A thread must share memory and signals, so the kernel refuses this one.
        (56, "a thread", vec![THREAD, 0, 0, 0, 0]),
        (56, "a process", vec![17, 0, 0, 0, 0]),
        (56, "a user's namespace", vec![0x1000_0000 | 17, 0, 0, 0, 0]),
        (
            56,
            "a thread in a network of its own",
            vec![0x4000_0000 | THREAD | SHARED, 0, 0, 0, 0],
        ),
        (
            56,
            "a thread with a host name of its own",
            vec![0x0400_0000 | THREAD | SHARED, 0, 0, 0, 0],
        ),
        (16, "what is there to read", vec![NONE, 0x541b, space]),
        (16, "a terminal's modes", vec![NONE, 0x5401, space]),
        (
            16,
            "the pages that were written",
            vec![at.page_map, 0xc060_6610, space],
        ),
        (
            16,
            "the pages, of another file",
            vec![0, 0xc060_6610, space],
        ),
        (0, "no file", vec![NONE, space, 8]),
        (0, "its map of pages", vec![at.page_map, space, 8]),
        (17, "no file", vec![NONE, space, 8, 0]),
        (17, "its map of pages", vec![at.page_map, space, 8, 0]),
        (32, "no file", vec![NONE]),
        (32, "its map of pages", vec![at.page_map]),
        (
            72,
            "another number for its map of pages",
            vec![at.page_map, 0, 0],
        ),
        (317, "a listener", vec![1, 8, 0]),
        (16, "typing", vec![NONE, 0x5412, space]),
        (
            16,
            "typing, with high bits",
            vec![NONE, 0x1_0000_5412, space],
        ),
        (16, "the console", vec![NONE, 0x541c, space]),
        (16, "a terminal of its own", vec![NONE, 0x540e, 0]),
        (72, "flags", vec![NONE, 1, 0]),
        (72, "a lock", vec![NONE, 6, space]),
        (
            72,
            "signals to another process",
            vec![at.open, 8, at.neighbour],
        ),
        (72, "a lease", vec![at.open, 1024, 0]),
        (72, "notices of a directory", vec![at.open, 1026, 2]),
        (157, "a thread's name", vec![15, space, 0, 0, 0]),
        (157, "whether it may be traced", vec![4, 1, 0, 0, 0]),
        (157, "a signal at its parent's end", vec![1, 9, 0, 0, 0]),
        (157, "its memory map", vec![35, 1, 0, 0, 0]),
        (218, "", vec![space]),
    ]
}
