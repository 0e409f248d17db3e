//! Work on the threads of the host.

use crate::Options;
use std::num::NonZeroUsize;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Threads that a run may use. The host is asked once: on Linux it looks into several files.
pub fn threads(options: &Options) -> usize {
    static ALL: OnceLock<usize> = OnceLock::new();
    let all = || *ALL.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from));
    options.threads.map_or_else(all, NonZeroUsize::get)
}

/// Does pieces of work side by side. Their results, in their order.
pub fn side_by_side<T: Send>(threads: usize, pieces: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let threads = threads.min(pieces);
    if threads <= 1 {
        return (0..pieces).map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n >= pieces {
                return done;
            }
            done.push((n, work(n)));
        }
    };
    let mut done = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(worker)).collect();
        let mut done = worker();
        for other in others {
            match other.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_unstable_by_key(|&(n, _)| n);
    done.into_iter().map(|(_, result)| result).collect()
}
