//! Issue slots: each of the four schedulers of an SM issues one warp instruction a cycle, to the warps whose number is the
//! scheduler's modulo 4. Warps run ahead of each other here, so slots are counted, not handed out in order.

/// Cycles that are counted together.
const SPAN: u64 = 64;
/// Spans that are remembered: a warp runs ahead of the others by no more.
const KEPT: usize = 64;

/// What a scheduler has issued in the latest spans: number of the span, 256ths of cycles.
#[derive(Debug)]
pub struct Slots([(u64, u64); KEPT]);

impl Default for Slots {
    fn default() -> Slots {
        Slots([(0, 0); KEPT])
    }
}

impl Slots {
    /// The first cycle from this one on in which there is a slot; it is taken. A slot takes so many 256ths of a cycle.
    pub fn take(&mut self, time: u64, slowed: u64) -> u64 {
        let mut span = time / SPAN;
        loop {
            let slot = &mut self.0[span as usize % KEPT];
            if slot.0 > span {
                // Long past: forgotten.
                return time;
            }
            if slot.0 < span {
                *slot = (span, 0);
            }
            if slot.1 < SPAN * 256 {
                slot.1 += slowed;
                return time.max(span * SPAN);
            }
            span += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduler_issues_one_instruction_a_cycle() {
        let mut slots = Slots::default();
        let mut last = 0;
        for _ in 0..1000 {
            last = last.max(slots.take(100, 256));
        }
        // 1000 instructions that are all ready at cycle 100 take 1000 cycles, counted in whole spans.
        assert!((1024..1100 + SPAN).contains(&last), "{last}");
        assert_eq!(slots.take(5000, 256), 5000);
    }
}
