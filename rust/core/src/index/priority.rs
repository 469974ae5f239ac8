//! Threads that work in the background, behind those that match.

/// How far behind, as `nice`: about a thirtieth of the time of a thread that competes for the same processor, and all of
/// a processor that nobody else wants. A turn takes milliseconds: with a tenth (10), every hundredth match of an article
/// waited for one.
#[cfg(target_os = "linux")]
const NICE: i32 = 15;

/// Puts this thread behind others, if it is not. On Linux niceness is a thread's own (nice(2), "C library/kernel
/// differences"), which the threads that it starts begin with; where it belongs to the process, nothing is done.
pub(super) fn work_in_background() {
    #[cfg(target_os = "linux")]
    if rustix::process::getpriority_process(None).is_ok_and(|own| own < NICE) {
        // Refused only in unusual sandboxes, where the thread competes like any other.
        let _ = rustix::process::setpriority_process(None, NICE);
    }
}
