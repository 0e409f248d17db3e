//! `isspacep`: in which state space a generic address lies (PTX ISA, isspacep).

use crate::machine::cluster::Cluster;
use crate::machine::warp::registers::lanes;
use crate::machine::warp::step::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW};
use crate::program::op::{AddressSpace, Reg};

impl Cluster<'_> {
    /// Sets `p` in the lanes whose generic address lies in the window of a space. What lies in no other window is global.
    pub fn is_space(&mut self, w: usize, mask: u32, p: u16, s: Reg, space: AddressSpace) {
        let own = self.warps[w].cta as u64;
        let mut value = 0;
        for lane in lanes(mask) {
            let address = self.warps[w].registers.lane(s, lane) as u64;
            let window = address & !0xffff_ffff;
            let constant = || self.global.find(address, 1).is_some_and(|(n, _)| self.global.buffers[n].constant);
            let lies = match space {
                AddressSpace::SharedCluster => window == SHARED_WINDOW,
                // The CTA's rank stands in bits 24 and up (silicon/address).
                AddressSpace::SharedCta => window == SHARED_WINDOW && (address & 0xffff_ffff) >> 24 == own,
                AddressSpace::Local => window == LOCAL_WINDOW,
                AddressSpace::Param => window == PARAM_WINDOW,
                AddressSpace::Const => constant(),
                AddressSpace::Global => window != SHARED_WINDOW && window != LOCAL_WINDOW && !constant(),
            };
            value |= u32::from(lies) << lane;
        }
        self.warps[w].registers.write_pred(p, mask, value);
    }
}
