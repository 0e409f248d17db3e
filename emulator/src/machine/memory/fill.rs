//! `st.bulk`: a thread fills shared memory of its CTA with zeroes, as a plain store does, through the generic proxy (PTX ISA, st.bulk).

use super::resolve::{Access, Target};
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::state::At;
use crate::machine::warp::registers::lanes;
use crate::program::op::{Address, Reg, Space, fills};

/// What an address, and a size, is a multiple of.
const STEP: u64 = 8;

const RULE: &str = "st.bulk fills a number of bytes of the CTA's shared memory that is a multiple of 8, up to 16,777,216 (PTX ISA, st.bulk).";

impl Cluster<'_> {
    pub fn fill(&mut self, at: At, space: Space, address: &Address, size: Reg) -> Result<(), Stop> {
        let At { w, mask, site, .. } = at;
        if mask & !self.warps[w].registers.defined(size) != 0 {
            return Err(self.undefined_operand(w, site, size, "the size"));
        }
        for lane in lanes(mask) {
            let one = At { mask: 1 << lane, ..at };
            let bytes = self.warps[w].registers.lane(size, lane) as u64;
            if !fills(bytes) {
                return Err(Some(Box::new(self.problem(
                    "bulk-size",
                    site,
                    format!("{} fills {bytes} bytes", self.thread_name(w, lane)),
                    RULE,
                    "Round the size up to a multiple of 8, and check that it is in bytes.".into(),
                ))));
            }
            if bytes == 0 {
                continue;
            }
            let target = self.targets(one, space, address, STEP, Access::Store)?[0].1;
            let own = self.warps[w].cta;
            let end = self.ctas[own].shared.bytes.len();
            let start = match target {
                Target::Shared(cta, start) if cta == own && u64::from(start) + bytes <= end as u64 => start as usize,
                _ => {
                    let from = self.describe_target(&target);
                    return Err(Some(Box::new(self.problem(
                        "out-of-bounds",
                        site,
                        format!(
                            "{} would fill {bytes} bytes from {from} on, which do not lie in its CTA's shared memory: that ends at {end:#x}",
                            self.thread_name(w, lane)
                        ),
                        RULE,
                        "Check the address and the size against those of the buffer.".into(),
                    ))));
                }
            };
            let stamp = self.stamp(w, one.mask, site);
            self.order(one, &[(lane, target)], bytes, true, false, stamp);
            let len = bytes as usize;
            self.ctas[own].shared.zero(start, len);
            self.published.forget_range(own, start as u64, bytes);
            self.charge(one, &[(lane, target)], len, false);
        }
        self.acted();
        Ok(())
    }
}
