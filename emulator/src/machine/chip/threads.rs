//! Work on the threads of the host.

use crate::Options;
use std::any::Any;
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

/// Threads that a run may use. The host is asked once: on Linux it looks into several files.
pub fn threads(options: &Options) -> usize {
    static ALL: OnceLock<usize> = OnceLock::new();
    let all = || *ALL.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from));
    options.threads.map_or_else(all, NonZeroUsize::get)
}

type Job<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Threads that do work side by side, as long as a run lasts. Each has items of its own, by their place among all, and helps others when
/// it is done: what a cluster holds stays in the caches of one core, and in one thread's part of the allocator.
pub struct Crew<'a> {
    queue: Mutex<Queue<'a>>,
    /// There is work, all of it is done, or the run is over.
    changed: Condvar,
}

struct Queue<'a> {
    /// Those of each thread.
    waiting: Vec<VecDeque<Job<'a>>>,
    /// Jobs that wait or are being done.
    open: usize,
    panic: Option<Box<dyn Any + Send>>,
    over: bool,
}

impl<'a> Queue<'a> {
    /// The next job for a thread.
    fn next(&mut self, thread: usize) -> Option<Job<'a>> {
        self.waiting[thread].pop_front().or_else(|| self.waiting.iter_mut().max_by_key(|jobs| jobs.len())?.pop_back())
    }
}

/// Sends the threads home, also if the run panics.
struct Over<'c, 'a>(&'c Crew<'a>);

impl Drop for Over<'_, '_> {
    fn drop(&mut self) {
        self.0.queue().over = true;
        self.0.changed.notify_all();
    }
}

impl<'a> Crew<'a> {
    /// Does a run, beside whose thread so many less one wait for work.
    pub fn of<T>(threads: usize, run: impl FnOnce(Arc<Crew<'a>>) -> T) -> T {
        let waiting = (0..threads.max(1)).map(|_| VecDeque::new()).collect();
        let queue = Mutex::new(Queue { waiting, open: 0, panic: None, over: false });
        let crew = Arc::new(Crew { queue, changed: Condvar::new() });
        std::thread::scope(|scope| {
            for thread in 1..threads {
                let crew = crew.clone();
                scope.spawn(move || crew.work(thread));
            }
            let _over = Over(&crew);
            run(crew.clone())
        })
    }

    fn queue(&self) -> MutexGuard<'_, Queue<'a>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, thread: usize) {
        let mut queue = self.queue();
        while !queue.over {
            queue = self.turn(queue, thread);
        }
    }

    /// Does the next job, while the queue is free for others, or waits until something has changed.
    fn turn<'q>(&'q self, mut queue: MutexGuard<'q, Queue<'a>>, thread: usize) -> MutexGuard<'q, Queue<'a>> {
        let Some(job) = queue.next(thread) else {
            return self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        };
        drop(queue);
        let outcome = catch_unwind(AssertUnwindSafe(job));
        let mut queue = self.queue();
        queue.open -= 1;
        if let Err(panic) = outcome {
            queue.panic.get_or_insert(panic);
        }
        if queue.open == 0 {
            self.changed.notify_all();
        }
        queue
    }

    /// Does the work on each of some items. The results, in the order of the items.
    pub fn all<I: Send + 'a, T: Send + 'a>(&self, items: Vec<I>, work: impl Fn(I) -> T + Send + Sync + 'a) -> Vec<T> {
        if items.len() <= 1 {
            return items.into_iter().map(work).collect();
        }
        let (work, results) = (Arc::new(work), Arc::new(Mutex::new(Vec::with_capacity(items.len()))));
        let mut queue = self.queue();
        let threads = queue.waiting.len();
        queue.open += items.len();
        for (n, item) in items.into_iter().enumerate() {
            let (work, results) = (work.clone(), results.clone());
            queue.waiting[n % threads].push_back(Box::new(move || {
                let result = work(item);
                results.lock().unwrap_or_else(PoisonError::into_inner).push((n, result));
            }));
        }
        self.changed.notify_all();
        while queue.open > 0 {
            queue = self.turn(queue, 0);
        }
        if let Some(panic) = queue.panic.take() {
            drop(queue);
            resume_unwind(panic);
        }
        drop(queue);
        let mut done = std::mem::take(&mut *results.lock().unwrap_or_else(PoisonError::into_inner));
        done.sort_unstable_by_key(|&(n, _)| n);
        done.into_iter().map(|(_, result)| result).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::Barrier;

    /// Four items that wait for each other, twice: four threads do them, the same ones.
    #[test]
    fn items_are_done_side_by_side_by_the_same_threads() {
        let (barrier, names) = (Barrier::new(4), Mutex::new(HashSet::new()));
        Crew::of(4, |crew| {
            for round in 0..2 {
                let done = crew.all(vec![1, 2, 3, 4], |n| {
                    barrier.wait();
                    names.lock().unwrap().insert(std::thread::current().id());
                    10 * n
                });
                assert_eq!(done, [10, 20, 30, 40], "round {round}");
            }
        });
        assert_eq!(names.into_inner().unwrap().len(), 4);
    }

    #[test]
    fn a_panic_is_that_of_the_run_and_all_else_is_done() {
        let done = Mutex::new(0);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            Crew::of(3, |crew| {
                crew.all((0..20).collect(), |n: u32| {
                    assert!(n != 7, "seven");
                    *done.lock().unwrap() += 1;
                })
            })
        }));
        let panic = outcome.expect_err("one panics");
        assert_eq!(
            panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied()),
            Some("seven")
        );
        assert_eq!(done.into_inner().unwrap(), 19);
    }
}
