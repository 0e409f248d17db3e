//! What a run takes, whatever else this machine computes meanwhile.

use emulator::{Launch, Options, Program, Report};
use std::num::NonZeroUsize;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Processor time that this thread has had. Where the system does not tell, the time on the clock, which is no less.
pub fn processor_time() -> Duration {
    static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let clock = BEGIN.elapsed();
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.and_then(|told| told.split_whitespace().next()?.parse().ok());
    nanoseconds.map_or(clock, Duration::from_nanos)
}

/// A run under the default schedule, all of it on this thread, and the processor time that it took.
pub fn run(program: &Program, launch: &Launch, max_instructions: u64) -> (Report, Duration) {
    let options = Options { max_instructions, threads: Some(NonZeroUsize::MIN), ..Default::default() };
    let begun = processor_time();
    let report = emulator::run(program, launch, &options);
    (report, processor_time() - begun)
}
