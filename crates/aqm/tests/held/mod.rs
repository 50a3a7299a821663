//! An allocator that counts what each thread holds: of the test that has this module.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, which knows what each thread holds.
struct Counting;

thread_local! {
    /// Bytes that this thread holds.
    pub static HELD: Cell<usize> = const { Cell::new(0) };
}

fn held(more: usize, less: usize) {
    // Not while the thread ends: its counter is gone by then.
    let _ = HELD.try_with(|held| held.set(held.get().wrapping_add(more).wrapping_sub(less)));
}

// SAFETY: every call goes to the system's allocator as it is; counting touches nothing of it and does not allocate.
#[expect(unsafe_code, reason = "an allocator cannot be written without")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        held(layout.size(), 0);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        held(0, layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(memory, layout) }
    }
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        held(size, layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
