//! Work for several threads: whoever needs it does it, and others help from the background.

use super::priority::work_in_background;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;

/// Processors that this process may use. Asking the system means to read files, which takes longer than to register a
/// subscription.
pub(crate) fn processors() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

fn join<T>(handle: ScopedJoinHandle<'_, T>) -> T {
    handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Does two pieces of work that need nothing of each other; the second on a thread of its own if it is `large`.
pub(super) fn both<A, B: Send>(large: bool, own: impl FnOnce() -> A, aside: impl FnOnce() -> B + Send) -> (A, B) {
    if !large {
        return (own(), aside());
    }
    std::thread::scope(|scope| {
        let aside = scope.spawn(|| {
            work_in_background();
            aside()
        });
        let own = own();
        (own, join(aside))
    })
}

/// Does the work for numbers below `count`, a `part` of them at a time, and puts the results in order. Threads take the
/// next part when they have done one, so that none waits for another that is kept from its processor.
pub(super) fn parts<T: Send>(count: usize, part: usize, work: impl Fn(Range<usize>) -> Vec<T> + Sync) -> Vec<T> {
    let helpers = if count < 2 * part { 0 } else { processors().min(count / part) - 1 };
    if helpers == 0 {
        return work(0..count);
    }
    let next = AtomicUsize::new(0);
    let take = || {
        let starts = std::iter::repeat_with(|| next.fetch_add(part, Ordering::Relaxed));
        let starts = starts.take_while(|start| *start < count);
        starts.map(|start| (start, work(start..count.min(start + part)))).collect::<Vec<_>>()
    };
    let mut done = std::thread::scope(|scope| {
        let help = || {
            work_in_background();
            take()
        };
        let handles: Vec<_> = (0..helpers).map(|_| scope.spawn(help)).collect();
        let mut done = take();
        done.extend(handles.into_iter().flat_map(join));
        done
    });
    done.sort_unstable_by_key(|(start, _)| *start);
    done.into_iter().flat_map(|(_, results)| results).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order() {
        for count in [0, 1, 9, 10, 20, 21, 1000] {
            assert_eq!(parts(count, 10, |numbers| numbers.collect()), (0..count).collect::<Vec<_>>());
        }
        for large in [false, true] {
            assert_eq!(both(large, || 1, || 2), (1, 2));
        }
    }
}
