//! `st.bulk`: a thread fills shared memory of its CTA with zeroes, as a plain store does, through the generic proxy (PTX ISA, st.bulk).

use super::access::{Access, Target};
use super::cluster::{Cluster, Stop};
use super::state::At;
use super::warp::lanes;
use crate::program::op::{Address, Reg, Space};

/// What a size is a multiple of, and what it may be at most (PTX ISA, st.bulk).
const STEP: u64 = 8;
const MOST: u64 = 16_777_216;

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
            if !bytes.is_multiple_of(STEP) || bytes > MOST {
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
            let fits = |end: u64| end <= self.ctas[own].shared.bytes.len() as u64;
            let Some(start) = (match target {
                Target::Shared(cta, start) if cta == own && fits(u64::from(start) + bytes) => Some(start),
                _ => None,
            }) else {
                let from = self.describe_target(&target);
                let end = self.ctas[own].shared.bytes.len();
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
            };
            let stamp = self.stamp(w, one.mask, site);
            self.order(one, &[(lane, target)], bytes, true, false, stamp);
            let shared = &mut self.ctas[own].shared;
            let (start, len) = (start as usize, bytes as usize);
            shared.bytes[start..start + len].fill(0);
            shared.mark(start, len, true);
            if shared.has_blanks() {
                shared.fill_in(start, len);
            }
            self.published.forget_range(own, start as u64, bytes);
            self.charge(one, &[(lane, target)], len, false);
        }
        self.acted();
        Ok(())
    }
}
