//! Processor time: what a test takes, whatever else its machine computes meanwhile. Shared by tests of several crates.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// What this thread has had. Where the system does not tell, the time on the clock, which is no less.
pub fn time() -> Duration {
    static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let clock = BEGIN.elapsed();
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.and_then(|told| told.split_whitespace().next()?.parse().ok());
    // A thread that asks has had some; 0 is said where it is not counted.
    nanoseconds.filter(|told| *told > 0).map_or(clock, Duration::from_nanos)
}
