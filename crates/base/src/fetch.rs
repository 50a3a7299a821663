//! What will be needed soon is asked for, so that it is in the cache by then.
//!
//! `unsafe` has this one use in the simulator: the instruction has no safe form. It changes nothing, and what it is
//! asked for need not be there.

/// Bytes of a line of the cache.
const LINE: usize = 64;

/// Asks for the lines of `what`, which is a hint to the processor and nothing else.
#[inline(always)]
#[expect(unsafe_code, reason = "the instruction has no safe form; it neither reads nor writes")]
pub fn fetch<T: ?Sized>(what: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start = std::ptr::from_ref(what).cast::<i8>();
        for at in (0..size_of_val(what)).step_by(LINE) {
            // SAFETY: the address lies within `what`.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.add(at)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = what;
}
