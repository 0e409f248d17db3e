//! The states that arrivals at mbarriers give, and waits take.
//!
//! A state is opaque (PTX ISA, mbarrier.arrive). Here its lower half is the number of the phase, the 20 bits above that the arrivals that were pending, and the
//! rest tells which mbarrier it is of.

use crate::diagnostic::Severity;
use crate::machine::cluster::Cluster;
use crate::machine::warp::registers::lanes;
use crate::program::op::Reg;

/// Numbers of mbarriers that are told apart; 0 is of none.
const TOLD_APART: u32 = 4095;

fn of(barrier: u32) -> u64 {
    u64::from(1 + barrier % TOLD_APART)
}

/// What an arrival gives, before it is counted.
pub fn token(barrier: u32, phase: u64, pending: u32) -> u64 {
    phase & 0xffff_ffff | u64::from(pending) << 32 | of(barrier) << 52
}

impl Cluster<'_> {
    /// Lanes wait for the end of the phase that a state is of: it is that of the mbarrier, or the one before.
    pub fn check_state(&mut self, w: usize, mask: u32, barrier: u32, state: u16, site: u32) {
        let now = self.barriers[barrier as usize].phase;
        let wrong = lanes(mask).find_map(|lane| {
            let token = self.warps[w].registers.lane(Reg::B64(state), lane) as u64;
            let behind = (now as u32).wrapping_sub(token as u32);
            (token >> 52 != of(barrier) || behind > 1).then_some((token, behind))
        });
        let Some((token, behind)) = wrong else { return };
        let name = self.barrier_name(barrier);
        let other = (0..self.barriers.len() as u32).find(|&other| other != barrier && token >> 52 == of(other));
        let what = match other {
            _ if token >> 52 == of(barrier) => {
                format!("of its phase {}, and {behind} phases are complete since that began", token as u32)
            }
            Some(other) => format!("of an arrival at {}", self.barrier_name(other)),
            None => format!("{token:#x}, which no arrival has given"),
        };
        let mut diagnostic = self.problem(
            "mbarrier-parity",
            site,
            format!("{} waits for {name} by a state that is {what}", self.warp_name(w)),
            "A wait takes the state that an arrival at the same mbarrier gave in its current phase, or in the one before; what others do is not defined (PTX ISA \
             9.7.13.15.16).",
            format!("Keep the state of the last arrival at {name}, and wait by it before the next phase is complete; or wait by .parity."),
        );
        diagnostic.severity = Severity::Finding;
        self.findings.add(diagnostic);
    }
}
