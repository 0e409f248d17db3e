//! Registers that the warps of a CTA give to its pool and take from it (`setmaxnreg`): whether a warp may wait for some for ever.

use super::clock::Clock;
use super::machine::Shape;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Registers a thread that a warp has more than at first.
#[derive(Debug, Default)]
struct Has {
    now: i32,
    /// At most, behind all that it gives early.
    most: i32,
}

/// Who gave and took registers so far.
///
/// What is given early, behind no warp that takes some, is given in every interleaving, whoever waits for registers. So who waits does it
/// behind all that: either the warps of a CTA can all have the most that they ever have from then on, at once, and nobody waits for ever;
/// or nothing is given but early, and the recorded run, which came to its end, shows that there are enough. Otherwise it is in doubt.
#[derive(Debug, Default)]
pub(super) struct Registers {
    warps: FxHashMap<u16, Has>,
    takes: Vec<(usize, u32)>,
    /// Step and statement of each that gave some behind one that takes some, and the warp.
    late: Vec<(u32, u32, u16)>,
}

impl Registers {
    /// A warp takes so many, at this place in its sequence.
    pub fn takes(&mut self, warp: u16, count: u16, place: (usize, u32)) {
        if count > 0 {
            self.takes.push(place);
        }
        let has = self.warps.entry(warp).or_default();
        has.now += i32::from(count);
        has.most = has.most.max(has.now);
    }

    /// A warp gives so many, in this step, of this statement.
    pub fn gives(&mut self, (step, site): (u32, u32), warp: u16, count: u16, clock: &Clock) {
        if count == 0 {
            return;
        }
        let has = self.warps.entry(warp).or_default();
        has.now -= i32::from(count);
        if self.takes.iter().any(|take| clock.get(take.0) >= take.1) {
            self.late.push((step, site, warp));
        } else {
            has.most = has.now;
        }
    }

    /// Steps and statements whose registers somebody may wait for that they wait for.
    pub fn in_doubt(&self, shape: &Shape) -> Vec<(u32, u32)> {
        let each = shape.warps() as u16;
        let most = |cta: u16| self.warps.iter().filter(|has| has.0 / each == cta).map(|has| has.1.most).sum::<i32>();
        let ctas: BTreeSet<u16> = self.warps.keys().map(|warp| warp / each).collect();
        let short: BTreeSet<u16> = ctas.into_iter().filter(|&cta| most(cta) > 0).collect();
        self.late.iter().filter(|late| short.contains(&(late.2 / each))).map(|&(step, site, _)| (step, site)).collect()
    }
}
