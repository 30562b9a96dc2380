//! The pages of the program's file that are in this process's memory.

#![expect(
    unsafe_code,
    reason = "the headers of the loaded program, and madvise(2)"
)]

/// Takes the program's code and constants out of this process's memory. Most of them were used by
/// its start only. A page that is used again comes back from the kernel's cache of files.
pub fn release() {
    // SAFETY: the call only returns a number.
    let fact = |kind| unsafe { libc::getauxval(kind) };
    let (first, count) = (fact(libc::AT_PHDR), fact(libc::AT_PHNUM));
    let page = fact(libc::AT_PAGESZ);
    if first == 0 || page == 0 {
        return;
    }
    // SAFETY: the kernel states where the program's headers are in memory, and they stay there.
    let headers: &[libc::Elf64_Phdr] =
        unsafe { std::slice::from_raw_parts(first as *const _, count as usize) };
    let own = headers.iter().find(|one| one.p_type == libc::PT_PHDR);
    let base = own.map_or(0, |own| first.wrapping_sub(own.p_vaddr));
    let loaded = headers.iter().filter(|one| one.p_type == libc::PT_LOAD);
    // A page that was written would lose its content.
    for header in loaded.filter(|one| one.p_flags & libc::PF_W == 0) {
        let start = base.wrapping_add(header.p_vaddr);
        let end = start.wrapping_add(header.p_memsz) / page * page;
        let start = start.next_multiple_of(page);
        let length = end.saturating_sub(start) as usize;
        // SAFETY: the range is within a segment that nothing wrote to, and the kernel maps the
        // file's content again when it is read. If this fails, the pages stay.
        let _ = unsafe { libc::madvise(start as *mut _, length, libc::MADV_DONTNEED) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kilobytes of the program's code and constants in this process's memory.
    fn resident() -> u64 {
        let program = std::env::current_exe().unwrap();
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let (mut is_counted, mut sum) = (false, 0);
        for line in maps.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [_, rights, _, _, _, path] => {
                    is_counted = program == std::path::Path::new(path) && !rights.contains('w');
                }
                ["Rss:", kilobytes, _] if is_counted => sum += kilobytes.parse::<u64>().unwrap(),
                _ => {}
            }
        }
        sum
    }

    #[test]
    fn pages_leave_the_memory() {
        let before = resident();
        // Other tests run at the same time, and bring pages back.
        let mut after = (0..100).map(|_| {
            release();
            resident()
        });
        assert!(after.any(|after| after < before * 3 / 4), "{before} kB");
    }
}
