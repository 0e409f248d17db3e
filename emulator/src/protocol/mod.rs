//! Whether any interleaving of a launch's barrier operations can get stuck.
//!
//! What the warps of a cluster did to wait for each other is [recorded](record) while it runs: a set of sequences, one for each set of
//! lanes, and what engines do at their end. That run was one interleaving of them. Three things can be said of the others:
//!
//! - **Proved**: none gets stuck. The [certificate] follows what comes before what in *every* interleaving (program order, and each wait
//!   behind all that it needs), and asks of each barrier:
//!   1. every wait for phase *k* comes behind the completion of phase *k − 1*, and phase *k + 1* needs something that comes behind
//!      the wait: a parity then tells phase *k* from all others;
//!   2. all that counts for phase *k* comes behind the completion of phase *k − 1*, so that it counts for no earlier one;
//!   3. bytes are announced before the last arrival of their phase, so that it does not complete without them.
//!
//!   If all of that holds, it holds in every interleaving: take one that departs from the recorded run for the first time, by a wait
//!   that passes in another phase or by something that counts for another one. All that came before is ordered as recorded, so that
//!   1 to 3 say that it cannot. And none gets stuck: of what would be left undone take something with nothing before it left undone;
//!   all that it waits for has been done. The recorded run came to its end, so everything has its turn.
//! - **Refuted**: an [interleaving](search) was found in which something waits for ever, or more arrive than a phase takes.
//! - **Not proved**: neither. It says why.
//!
//! All of it is said of the paths that the warps took. Where those depend on times, [`Timing`] says so; where warps wait for values in
//! memory, nothing is proved. Four things are taken for granted: lanes of a warp that have met again stay together up to the next branch
//! (as compilers for GPUs arrange it); waits of lanes that have [parted] for one phase are one wait; what waits for something that is not recorded (groups of copies, the end of another grid) is let go
//! whatever the others do; and columns of tensor memory that other clusters hold are given back, unless an allocation is doubted.

mod certificate;
mod clock;
mod clusters;
mod doubt;
mod machine;
mod parted;
mod phases;
mod record;
mod registers;
mod search;
#[cfg(test)]
mod tests;

pub use doubt::{Doubt, Why};
pub use machine::Shape;
pub use record::{NONE, Record, Step, Timing, What};
pub use search::{Stuck, Waiting};

/// What is said of one cluster.
#[derive(Debug)]
pub enum Verdict {
    Proved,
    /// An interleaving that gets stuck, and what the recorded run had not ordered.
    Refuted(Box<Stuck>, Vec<Doubt>),
    /// What the recorded run had not ordered; no interleaving was found that gets stuck.
    Doubtful(Vec<Doubt>),
    /// There were too many operations.
    TooLong,
    /// The record lacks something that the run waited for.
    NotModelled,
}

/// Judges the record of a cluster that ran to its end; it is not [full](Record::is_full).
pub fn judge(record: &Record, shape: &Shape) -> Verdict {
    let Some(mut certificate) = certificate::examine(record, shape) else { return Verdict::TooLong };
    if !search::replays(record, &certificate, shape) {
        return Verdict::NotModelled;
    }
    if certificate.doubts.is_empty() {
        return Verdict::Proved;
    }
    match search::find(record, &mut certificate, shape) {
        Some(stuck) => Verdict::Refuted(Box::new(stuck), certificate.doubts),
        None => Verdict::Doubtful(certificate.doubts),
    }
}
