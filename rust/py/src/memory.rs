//! The allocator of the module.
#![allow(unsafe_code)]

use mimalloc::MiMalloc;

/// Building an index makes and drops many small allocations, and this allocator is quicker at that than the system's.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Gives memory that a build has freed back to the system, instead of keeping it for the next one.
pub(crate) fn give_back() {
    // SAFETY: takes no pointers; documented as callable at any time from any thread.
    unsafe { libmimalloc_sys::mi_collect(true) }
}
