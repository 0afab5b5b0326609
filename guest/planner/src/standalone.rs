//! What `no_std` leaves to a component: an allocator, and what to do on a panic.

use core::alloc::Layout;

use alloc::alloc::{alloc, realloc};

#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}

// The compiler calls memcmp and its kin, which libc has.
#[link(name = "c")]
unsafe extern "C" {}

/// The allocator as the component model calls it. On this target wit-bindgen leaves it to libc's, which is not linked.
///
/// # Safety
/// Called by the host only: `old` and `old_len` are zero, or what an earlier call returned and was asked for.
#[unsafe(no_mangle)]
unsafe extern "C" fn cabi_realloc(old: *mut u8, old_len: usize, align: usize, new_len: usize) -> *mut u8 {
    if new_len == 0 {
        return core::ptr::without_provenance_mut(align);
    }
    // SAFETY: the canonical ABI passes a power of two as `align`, and `old` as it was returned for `old_len`.
    let block = unsafe {
        if old_len == 0 {
            alloc(Layout::from_size_align_unchecked(new_len, align))
        } else {
            realloc(old, Layout::from_size_align_unchecked(old_len, align), new_len)
        }
    };
    if block.is_null() {
        core::arch::wasm32::unreachable();
    }
    block
}
