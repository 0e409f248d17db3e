//! Proxy fences that stand on the wrong side: in front of the stores that they are meant for, in front of the barrier where their thread hears of these, or
//! where who lets the asynchronous proxy read hears nothing of them.

use crate::diagnostic::Label;
use crate::machine::cluster::Cluster;
use crate::machine::state::ActorKind;
use crate::order::Stamp;
use crate::program::facts::{Way, ways_lead};
use crate::program::op::{Op, Space};

/// A proxy fence of a run that does not cover a store: the warp that executed it, and where.
#[derive(Clone, Copy, Debug)]
pub struct Misplaced {
    warp: usize,
    site: u32,
    side: Side,
}

#[derive(Clone, Copy, Debug)]
enum Side {
    /// The warp that stores executed it in front of that.
    InFront,
    /// Who lets the asynchronous proxy read executed it, and had not synchronised with who stores.
    Early,
    /// Who lets the asynchronous proxy read has not synchronised with the warp since.
    Unheard,
}

impl Cluster<'_> {
    /// A fence that would cover a store if it stood elsewhere, where a warp lets the asynchronous proxy read what was stored.
    pub fn misplaced_fence(&self, first: Stamp, reader: usize) -> Option<Misplaced> {
        let Some(ActorKind::Warp(writer)) = self.kind(first) else { return None };
        let (writer, views) = (writer as usize, &self.warps.get(reader)?.views);
        let all = |w: usize| self.warps.get(w).map_or(&[][..], |warp| &warp.proxy_fences[..]).iter().rev();
        // One that stands behind other stores is meant for those.
        let fences = |w: usize| all(w).filter(|&&(site, _)| !self.is_behind_other_stores(site, first.site));
        let in_front = fences(writer).find(|&&(site, _)| self.leads_straight(site, first.site));
        if let Some(&(site, _)) = in_front {
            return Some(Misplaced { warp: writer, site, side: Side::InFront });
        }
        let unheard = fences(writer).find(|&&(site, epoch)| {
            let heard = writer == reader || views.came_before(self.warps[writer].actor) > epoch;
            !heard && (site > first.site || self.leads_straight(first.site, site))
        });
        if let Some(&(site, _)) = unheard {
            return Some(Misplaced { warp: writer, site, side: Side::Unheard });
        }
        let &(site, _) = fences(reader).next().filter(|_| reader != writer)?;
        Some(Misplaced { warp: reader, site, side: Side::Early })
    }

    fn is_behind_other_stores(&self, fence: u32, store: u32) -> bool {
        let stores = |op: &Op| match op {
            Op::Store(store) => !matches!(store.space, Space::Global | Space::Local),
            Op::MatrixStore { .. } | Op::BarrierInit { .. } => true,
            _ => false,
        };
        let mut others = self.kernel.code.iter().filter(|inst| inst.site != store && stores(&inst.op));
        others.any(|inst| self.leads_straight(inst.site, fence))
    }

    /// Whether a way leads from one statement to another on which nobody is told anything, nor waited for.
    pub fn leads_straight(&self, from: u32, to: u32) -> bool {
        let tells = |op: &Op| {
            matches!(
                op,
                Op::CtaBarrier { .. }
                    | Op::BarrierReduce { .. }
                    | Op::BarrierArrive { .. }
                    | Op::BarrierWait { .. }
                    | Op::ClusterArrive { .. }
                    | Op::ClusterWait { .. }
            )
        };
        self.leads_past_none(from, to, tells)
    }

    /// Whether a way leads from one statement to another past no wait for an mbarrier.
    pub fn leads_past_no_wait(&self, from: u32, to: u32) -> bool {
        self.leads_past_none(from, to, |op| matches!(op, Op::BarrierWait { .. }))
    }

    /// Whether a way leads from one statement to another past none of these.
    pub fn leads_past_none(&self, from: u32, to: u32, ends: impl Fn(&Op) -> bool) -> bool {
        let code = &self.kernel.code;
        let mut begins = (0..code.len()).filter(|&at| code[at].site == from);
        begins.any(|at| {
            ways_lead(code, at, |_, inst| match inst.site == to {
                true => Way::Found,
                false if ends(&inst.op) => Way::Ends,
                false => Way::On,
            })
        })
    }

    /// The fence's place, why it does not cover the stores, and what to do.
    pub fn tell_misplaced(&self, fence: Misplaced, reader: &str) -> (Label, &'static str) {
        let who = self.warp_name(fence.warp);
        let (text, help) = match fence.side {
            Side::InFront => (
                format!("{who} executes this fence in front of the stores: it covers what came before it"),
                "Let every thread that stores execute fence.proxy.async.shared::cta after its stores, before the barrier: this one stands on the wrong side of the \
                 stores.",
            ),
            Side::Early => (
                format!(
                    "{who} executes this fence before it has synchronised with who stores: it does not cover the stores"
                ),
                "Let every thread that stores execute fence.proxy.async.shared::cta after its stores, before the barrier: this one stands on the wrong \
                 side of it.",
            ),
            Side::Unheard => (
                format!("{who} executes this fence, and {reader} has not synchronised with it since"),
                "Let every thread that stores execute fence.proxy.async.shared::cta after its stores, before the barrier: this one stands on the wrong side of it.",
            ),
        };
        (self.label(fence.site, text), help)
    }
}
