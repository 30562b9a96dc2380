//! The pages of the program's file that are in this process's memory.

#![expect(
    unsafe_code,
    reason = "the headers of the loaded program, and madvise(2)"
)]

use std::ffi::c_int;

/// Takes the program's code and constants out of this process's memory. Most of them were used only
/// when the program started. A page that is used again comes back from the kernel's cache of files.
pub fn release() {
    // SAFETY: `of_program` accepts what the function passes, and keeps none of it.
    unsafe { libc::dl_iterate_phdr(Some(of_program), std::ptr::null_mut()) };
}

/// Releases the pages of the program. The program is passed first, before its libraries, so this
/// ends the iteration.
///
/// # Safety
/// `program` must be valid, with its headers.
unsafe extern "C" fn of_program(
    program: *mut libc::dl_phdr_info,
    _size: usize,
    _data: *mut libc::c_void,
) -> c_int {
    // SAFETY: the caller promises that `program` and its headers are valid.
    let (base, headers) = unsafe {
        let program = &*program;
        let count = usize::from(program.dlpi_phnum);
        let headers = std::slice::from_raw_parts(program.dlpi_phdr, count);
        (program.dlpi_addr, headers)
    };
    let page = rustix::param::page_size() as u64;
    // A page that was written would lose its content, so only read-only segments are released.
    let read_only =
        |one: &&libc::Elf64_Phdr| one.p_type == libc::PT_LOAD && one.p_flags & libc::PF_W == 0;
    for header in headers.iter().filter(read_only) {
        let start = base.wrapping_add(header.p_vaddr);
        let end = start.wrapping_add(header.p_memsz) / page * page;
        let start = start.next_multiple_of(page);
        let length = end.saturating_sub(start) as usize;
        // SAFETY: the range is within a segment that nothing wrote to, and the kernel maps the
        // file's content again when it is read. If this fails, the pages stay.
        let _ = unsafe { libc::madvise(start as *mut _, length, libc::MADV_DONTNEED) };
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kilobytes of files in this process's memory.
    fn resident() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssFile:"));
        let number = line.and_then(|rest| rest.split_whitespace().next());
        number.unwrap().parse().unwrap()
    }

    #[test]
    fn pages_leave_the_memory() {
        let before = resident();
        release();
        let after = resident();
        assert!(after < before * 3 / 4, "{before} kB, then {after} kB");
    }
}
