//! `st.async` and `red.async`: a copy of what a thread's registers hold, to the shared memory of a CTA of the cluster, or a reduction
//! there (PTX ISA, st.async, red.async).

use crate::machine::cluster::{Cluster, Stop};
use crate::machine::state::{At, Pending};
use crate::machine::tma::bounding_box::Rows;
use crate::machine::tma::{Copy, Fill};
use crate::machine::warp::registers::lanes;
use crate::order::{Stamp, Strength, Sum};
use crate::program::atomic::AsyncStoreOp;
use crate::program::op::TmaKind;
use crate::protocol::What;
use crate::report::Memory;
use crate::tensor_map::{Element, Swizzle};
use rustc_hash::FxHasher;
use smallvec::smallvec;
use std::hash::{Hash, Hasher};

impl Cluster<'_> {
    /// Each lane's store ends by itself, at any time, and its mbarrier counts the bytes then. It goes through the generic proxy.
    pub fn async_store(&mut self, at: At, op: &AsyncStoreOp) -> Result<(), Stop> {
        let At { w, f, mask, site } = at;
        let each = usize::from(op.bytes);
        let total = (each * op.s.len()) as u32;
        let blank = self.stores_blank(site);
        for lane in lanes(mask) {
            let slot = self.shared_slot(at, lane, &op.to, true, total, total)?;
            let one = At { mask: 1 << lane, ..at };
            let Some(&(named, _)) = self.barrier_addresses(one, &op.barrier, true)?.first() else { continue };
            if named.cta != slot.cta {
                return Err(Some(Box::new(self.problem(
                    "copy-barrier",
                    site,
                    format!("the data goes to CTA {}, the mbarrier lies in CTA {}", slot.cta, named.cta),
                    "The mbarrier of st.async and red.async lies in the CTA that gets the data (PTX ISA, st.async).",
                    "Map both addresses to the same CTA (mapa).".into(),
                ))));
            }
            self.reach(w, slot.cta, site);
            let barrier = self.barrier(w, named, site, "named by a store")?;
            let mut data = Memory::undefined(total as usize);
            for (n, &reg) in op.s.iter().enumerate() {
                data.store(each * n, each, self.warps[w].registers.lane(reg, lane), true);
            }
            if blank {
                data.mark_blank(0, total as usize);
            }
            let b = &self.barriers[barrier as usize];
            let (stamp, epoch) = (b.stamp(site, self.index), b.next_epoch());
            // A reduction is relaxed, at the scope of the cluster.
            let (strength, sum) =
                if op.update.is_some() { (Strength::Cluster, Sum::Last) } else { (Strength::Weak, Sum::No) };
            let stamp = Stamp { asynchronous: false, strength, sum, ..stamp };
            self.touch_shared(w, slot, total, stamp, true);
            if op.update.is_none() {
                let mut hasher = FxHasher::default();
                data.bytes.hash(&mut hasher);
                self.check_copies_apart(barrier, slot, total, hasher.finish(), site, w);
            }
            self.barriers[barrier as usize].promise(slot.cta, site, false);
            let issue = self.record.add(w, 1 << lane, site, What::Issue { tells: 1, commit: None });
            let copy = Copy {
                site,
                issue,
                warp: w,
                kind: TmaKind::Forward,
                rows: smallvec![Rows::plain(total, None)],
                swizzle: Swizzle::None,
                element: Element::U8,
                shared: smallvec![slot],
                from: None,
                barriers: smallvec![barrier],
                epochs: smallvec![epoch],
                bytes: total,
                extent: total,
                data: Some(data),
                update: op.update.map(|update| (update, total)),
                fill: Fill::Zero,
                blank: false,
                order: self.warps[w].starts(),
                writes: stamp,
                known: self.warps[w].views.of_others(),
                map_read: None,
                read: true,
                done: false,
            };
            let n = self.begin_copy(copy);
            let done = self.warps[w].fragments[f].ready_at + self.costs.shared_load + self.jitter(2000);
            self.push_event(done, Pending::CopyDone(n));
        }
        self.acted();
        Ok(())
    }
}
