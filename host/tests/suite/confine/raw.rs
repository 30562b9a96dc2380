//! System calls that no safe function makes, but that an escaped guest could make.

#![expect(unsafe_code, reason = "no safe function makes these calls")]

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::net::TcpListener;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

/// The system call that sends.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sending {
    To,
    Message,
    Messages,
}

/// The result of a system call: success, or the number of an error.
fn answer(result: libc::c_long) -> Result<(), i32> {
    match result {
        -1 => Err(std::io::Error::last_os_error().raw_os_error().unwrap()),
        _ => Ok(()),
    }
}

fn tcp_socket() -> Option<OwnedFd> {
    // SAFETY: passes only numbers.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
    // SAFETY: the descriptor was just created, and has no other owner.
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
    // SAFETY: all fields may be zero.
    let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
    message.msg_hdr.msg_name = (&raw mut address).cast();
    message.msg_hdr.msg_namelen = length;
    message.msg_hdr.msg_iov = &raw mut part;
    message.msg_hdr.msg_iovlen = 1;
    let flags = libc::MSG_FASTOPEN | libc::MSG_NOSIGNAL;
    // SAFETY: all pointers are valid until the end of this function.
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

/// Listens on any free port.
pub(super) fn listen_anywhere() -> bool {
    // SAFETY: passes only numbers.
    tcp_socket().is_some_and(|socket| unsafe { libc::listen(socket.as_raw_fd(), 1) } == 0)
}

pub(super) fn accept(listener: &TcpListener) -> Result<(), i32> {
    let nobody = std::ptr::null_mut::<libc::c_void>();
    let listener = listener.as_raw_fd();
    // SAFETY: null pointers mean that no address is requested.
    answer(unsafe { libc::syscall(libc::SYS_accept, listener, nobody, nobody) })
}

/// Creates objects that all processes of the user can see, and removes them.
pub(super) fn make_shared() -> [(&'static str, bool); 4] {
    let private = libc::IPC_PRIVATE;
    let name = c"/toolward-escaped";
    // SAFETY: passes numbers, and a static name.
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

/// Requests the process's id with a system call number of x32, if the machine has x32.
pub(super) fn call_of_x32() -> Result<(), i32> {
    if !cfg!(target_arch = "x86_64") {
        return Err(libc::EPERM);
    }
    // SAFETY: the call has no arguments.
    answer(unsafe { libc::syscall(libc::SYS_getpid | 0x4000_0000) })
}

/// Creates processes that end at once: one in new namespaces (user and network) with each of the
/// two system calls, and one without new namespaces.
pub(super) fn make_processes() -> [(&'static str, bool); 3] {
    let namespaces = libc::CLONE_NEWUSER | libc::CLONE_NEWNET;
    let signal = u64::from(libc::SIGCHLD.cast_unsigned());
    // The first version of the kernel's `struct clone_args`.
    let mut arguments = [0_u64; 8];
    arguments[0] = u64::from(namespaces.cast_unsigned());
    arguments[4] = signal;
    // SAFETY: works like `fork`, without a separate stack. The child ends at once, and all pointers
    // are to local variables.
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

/// Restricts another process to the first processor.
pub(super) fn pin(process: i32) -> bool {
    let first = 1_u64;
    // SAFETY: the mask is valid until the end, and has the given length.
    unsafe {
        let size = size_of_val(&first);
        libc::syscall(libc::SYS_sched_setaffinity, process, size, &raw const first) == 0
    }
}

/// Reads the adjustment of the clock, which changes nothing.
pub(super) fn clock() -> Result<(), i32> {
    // SAFETY: all fields may be zero, and the value is valid until the end.
    unsafe {
        let mut state: libc::timex = std::mem::zeroed();
        answer(libc::adjtimex(&raw mut state).min(0).into())
    }
}

/// Makes an `ioctl` request to standard input, with a pointer to a byte.
pub(super) fn request(request: u64, byte: u8) -> Result<(), i32> {
    // SAFETY: the requests used here read one byte.
    answer(unsafe { libc::syscall(libc::SYS_ioctl, 0, request, &raw const byte) })
}

/// Opens a terminal. Returns the side that the test reads without blocking, and the side for a
/// process.
pub(super) fn terminal() -> (File, File) {
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC | libc::O_NONBLOCK;
    let mut name = [0; 64];
    // SAFETY: the buffer has the given length, and the opened descriptor has no other owner.
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
