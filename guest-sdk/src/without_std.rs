//! Replaces the parts of `std` that a component needs: a global allocator on wasi-libc's `malloc`,
//! and `cabi_realloc`. wasi-libc comes with every compiler for this target, and `malloc` imports
//! nothing.
#![expect(
    unsafe_code,
    reason = "an allocator; each block names what it relies on"
)]

use core::alloc::{GlobalAlloc, Layout};
use core::ffi::c_void;
use core::ptr;

#[link(name = "c")]
unsafe extern "C" {
    fn malloc(size: usize) -> *mut c_void;
    fn aligned_alloc(align: usize, size: usize) -> *mut c_void;
    fn calloc(count: usize, size: usize) -> *mut c_void;
    fn realloc(pointer: *mut c_void, size: usize) -> *mut c_void;
    fn free(pointer: *mut c_void);
}

/// The alignment that `malloc` guarantees, on which `std` also relies.
const MALLOC_ALIGN: usize = 8;

struct LibcAllocator;

#[global_allocator]
static ALLOCATOR: LibcAllocator = LibcAllocator;

// SAFETY: `malloc`, `calloc`, `realloc` and `aligned_alloc` return null, or memory of this size
// without another owner, aligned to `MALLOC_ALIGN` or to the requested alignment. `free` accepts
// memory from any of these functions. None of them unwinds.
unsafe impl GlobalAlloc for LibcAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match layout.align() <= MALLOC_ALIGN {
            // SAFETY: C allows any size.
            true => unsafe { malloc(layout.size()) }.cast(),
            // SAFETY: the alignment is a power of two. The size is a multiple of the alignment, and
            // does not overflow: a `Layout` guarantees that its size, rounded up to its alignment,
            // fits an `isize`.
            false => {
                let size = layout.size().next_multiple_of(layout.align());
                unsafe { aligned_alloc(layout.align(), size) }.cast()
            }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= MALLOC_ALIGN {
            // SAFETY: C allows any size.
            return unsafe { calloc(1, layout.size()) }.cast();
        }
        // SAFETY: this is the caller's layout, and all bytes are written.
        let new = unsafe { self.alloc(layout) };
        if !new.is_null() {
            unsafe { new.write_bytes(0, layout.size()) };
        }
        new
    }

    unsafe fn dealloc(&self, pointer: *mut u8, _: Layout) {
        // SAFETY: the pointer came from one of the functions above.
        unsafe { free(pointer.cast()) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if layout.align() <= MALLOC_ALIGN {
            // SAFETY: the pointer came from one of the functions above.
            return unsafe { realloc(pointer.cast(), size) }.cast();
        }
        // SAFETY: the caller promises that this layout is valid. Both allocations have room for the
        // smaller size, and don't overlap. The old allocation is not used again.
        unsafe {
            let new = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !new.is_null() {
                ptr::copy_nonoverlapping(pointer, new, size.min(layout.size()));
                self.dealloc(pointer, layout);
            }
            new
        }
    }
}

/// Allocates memory for values that the host passes, by the canonical ABI. With `std`, a function
/// of wasi-libc does this.
#[unsafe(no_mangle)]
unsafe extern "C" fn cabi_realloc(
    old: *mut u8,
    old_size: usize,
    align: usize,
    size: usize,
) -> *mut u8 {
    if size == 0 {
        return ptr::without_provenance_mut(align);
    }
    // SAFETY: the ABI's alignments are at most 8; `old` came from this function if `old_size` is
    // not 0.
    let new = unsafe {
        match old_size {
            0 => malloc(size),
            _ => realloc(old.cast(), size),
        }
    };
    if new.is_null() {
        core::arch::wasm32::unreachable();
    }
    new.cast()
}
