//! What a run takes, whatever else its machine computes meanwhile.

use super::processor;
use emulator::{Launch, Options, Program, Report};
use std::num::NonZeroUsize;
use std::time::Duration;

/// A run under the default schedule, all of it on this thread, and the processor time that it took.
pub fn run(program: &Program, launch: &Launch, max_instructions: u64) -> (Report, Duration) {
    let options = Options { max_instructions, threads: Some(NonZeroUsize::MIN), ..Default::default() };
    let begun = processor::time();
    let report = emulator::run(program, launch, &options);
    (report, processor::time() - begun)
}
