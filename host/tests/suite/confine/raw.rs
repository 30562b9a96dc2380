//! Calls that no safe function makes: what somebody does who has escaped.

#![expect(unsafe_code, reason = "no safe function makes these calls")]

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::net::TcpListener;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

/// How something is sent.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sending {
    To,
    Message,
    Messages,
}

/// What a call answered: nothing, or the number of an error.
fn answer(result: libc::c_long) -> Result<(), i32> {
    match result {
        -1 => Err(std::io::Error::last_os_error().raw_os_error().unwrap()),
        _ => Ok(()),
    }
}

fn tcp_socket() -> Option<OwnedFd> {
    // SAFETY: numbers only.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
    // SAFETY: it was just made, and nobody else has it.
    (socket >= 0).then(|| unsafe { OwnedFd::from_raw_fd(socket) })
}

/// Connects by sending: the address goes with the first bytes.
pub(super) fn fast_open(port: u16, how: Sending) -> bool {
    let Some(socket) = tcp_socket() else {
        return false;
    };
    let socket = socket.as_raw_fd();
    let mut address = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from_ne_bytes([127, 0, 0, 1]),
        },
        sin_zero: [0; 8],
    };
    let length = size_of_val(&address) as libc::socklen_t;
    let mut byte = *b"x";
    let mut part = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: byte.len(),
    };
    // SAFETY: all of it may be nought.
    let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
    message.msg_hdr.msg_name = (&raw mut address).cast();
    message.msg_hdr.msg_namelen = length;
    message.msg_hdr.msg_iov = &raw mut part;
    message.msg_hdr.msg_iovlen = 1;
    let flags = libc::MSG_FASTOPEN | libc::MSG_NOSIGNAL;
    // SAFETY: what is pointed to lives until the end of this function.
    let sent = unsafe {
        match how {
            Sending::To => libc::sendto(
                socket,
                part.iov_base,
                part.iov_len,
                flags,
                (&raw const address).cast(),
                length,
            ),
            Sending::Message => libc::sendmsg(socket, &raw const message.msg_hdr, flags),
            Sending::Messages => {
                libc::syscall(libc::SYS_sendmmsg, socket, &raw mut message, 1, flags) as isize
            }
        }
    };
    sent > 0
}

/// Listens on whatever port is free.
pub(super) fn listen_anywhere() -> bool {
    // SAFETY: numbers only.
    tcp_socket().is_some_and(|socket| unsafe { libc::listen(socket.as_raw_fd(), 1) } == 0)
}

pub(super) fn accept(listener: &TcpListener) -> Result<(), i32> {
    let nobody = std::ptr::null_mut::<libc::c_void>();
    let listener = listener.as_raw_fd();
    // SAFETY: no address is asked for.
    answer(unsafe { libc::syscall(libc::SYS_accept, listener, nobody, nobody) })
}

/// What all processes of the user see, once it is made. Taken away again.
pub(super) fn make_shared() -> [(&'static str, bool); 4] {
    let private = libc::IPC_PRIVATE;
    let name = c"/toolward-escaped";
    // SAFETY: numbers, and a name that lives for ever.
    unsafe {
        let memory = libc::shmget(private, 1, 0o600);
        let semaphore = libc::semget(private, 1, 0o600);
        let queue = libc::msgget(private, 0o600);
        let flags = libc::O_CREAT | libc::O_RDWR;
        let named = libc::mq_open(
            name.as_ptr(),
            flags,
            0o600,
            std::ptr::null::<libc::mq_attr>(),
        );
        libc::shmctl(memory, libc::IPC_RMID, std::ptr::null_mut());
        libc::semctl(semaphore, 0, libc::IPC_RMID);
        libc::msgctl(queue, libc::IPC_RMID, std::ptr::null_mut());
        libc::mq_unlink(name.as_ptr());
        [
            ("make shared memory", memory >= 0),
            ("make a semaphore", semaphore >= 0),
            ("make a message queue", queue >= 0),
            ("make a named message queue", named >= 0),
        ]
    }
}

/// Asks for the process's number by a number that only x32 has, where there is x32.
pub(super) fn call_of_x32() -> Result<(), i32> {
    if !cfg!(target_arch = "x86_64") {
        return Err(libc::EPERM);
    }
    // SAFETY: it takes nothing.
    answer(unsafe { libc::syscall(libc::SYS_getpid | 0x4000_0000) })
}

/// Makes processes that end at once: one in a user's and a network's namespace of its
/// own, by both calls, and one in none.
pub(super) fn make_processes() -> [(&'static str, bool); 3] {
    let namespaces = libc::CLONE_NEWUSER | libc::CLONE_NEWNET;
    let signal = u64::from(libc::SIGCHLD.cast_unsigned());
    // The kernel's `struct clone_args`, as it was at first.
    let mut arguments = [0_u64; 8];
    arguments[0] = u64::from(namespaces.cast_unsigned());
    arguments[4] = signal;
    // SAFETY: as `fork` does, without a stack of its own; the child ends at once, and
    // nothing is pointed to but what lives here.
    unsafe {
        let zero = 0_usize;
        let clone = |flags: i32| {
            libc::syscall(
                libc::SYS_clone,
                flags | libc::SIGCHLD,
                zero,
                zero,
                zero,
                zero,
            )
        };
        let ends = |child: libc::c_long| {
            if child == 0 {
                libc::_exit(0);
            }
            if child > 0 {
                libc::waitpid(child as libc::pid_t, std::ptr::null_mut(), 0);
            }
            child > 0
        };
        let size = size_of_val(&arguments);
        [
            ("make a namespace", ends(clone(namespaces))),
            (
                "make a namespace by clone3",
                ends(libc::syscall(
                    libc::SYS_clone3,
                    arguments.as_mut_ptr(),
                    size,
                )),
            ),
            ("make a process", ends(clone(0))),
        ]
    }
}

/// Lets another process run on the first processor only.
pub(super) fn pin(process: i32) -> bool {
    let first = 1_u64;
    // SAFETY: the mask lives until the end, and is as long as is said.
    unsafe {
        let size = size_of_val(&first);
        libc::syscall(libc::SYS_sched_setaffinity, process, size, &raw const first) == 0
    }
}

/// Asks how the clock is adjusted, which changes nothing.
pub(super) fn clock() -> Result<(), i32> {
    // SAFETY: all of it may be nought, and lives until the end.
    unsafe {
        let mut state: libc::timex = std::mem::zeroed();
        answer(libc::adjtimex(&raw mut state).min(0).into())
    }
}

/// A request to standard input that points to a byte.
pub(super) fn request(request: u64, byte: u8) -> Result<(), i32> {
    // SAFETY: the requests that are made here read one byte.
    answer(unsafe { libc::syscall(libc::SYS_ioctl, 0, request, &raw const byte) })
}

/// A terminal: where it is looked at, without waiting, and where a process has it.
pub(super) fn terminal() -> (File, File) {
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC | libc::O_NONBLOCK;
    let mut name = [0; 64];
    // SAFETY: the buffer is as long as is said, and what was opened is nobody else's.
    let master = unsafe {
        let master = libc::posix_openpt(flags);
        assert!(master >= 0);
        let master = File::from_raw_fd(master);
        let number = master.as_raw_fd();
        assert_eq!(libc::grantpt(number), 0);
        assert_eq!(libc::unlockpt(number), 0);
        assert_eq!(libc::ptsname_r(number, name.as_mut_ptr(), name.len()), 0);
        master
    };
    let name = name.map(|byte| byte as u8);
    let name = CStr::from_bytes_until_nul(&name).unwrap().to_str().unwrap();
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    let slave = options.custom_flags(libc::O_NOCTTY).open(name).unwrap();
    (master, slave)
}
