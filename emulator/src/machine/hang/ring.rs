//! Who would come to a barrier, and waits elsewhere before: on to that wait, and perhaps round to the first one.

use super::Blocked;
use crate::diagnostic::Diagnostic;
use crate::machine::cluster::Cluster;
use crate::machine::warp::State;
use crate::program::op::{Inst, Op};

/// So many are drawn that wait for each other.
const MOST: usize = 8;

/// Somebody who waits, and would come to a barrier by going on.
struct Held<'b> {
    who: &'b Blocked,
    /// By this statement.
    site: u32,
}

impl Cluster<'_> {
    /// Adds to a CTA barrier, or to that of the cluster, which lacks somebody, who would come to it and waits elsewhere; and who waits for each
    /// other so, if it is the barrier itself that they wait for in the end.
    pub fn add_held(&self, blocked: &[Blocked], root: &Blocked, d: &mut Diagnostic) {
        let Some(first) = self.held_before(blocked, root) else { return };
        let Some((at, elsewhere)) = self.waits_where(first.who) else { return };
        let who = self.warp_name(first.who.warp);
        let label = self.label(first.site, format!("{who} would come to it here, but waits {at} {elsewhere} before"));
        match d.labels.iter_mut().find(|known| known.place == label.place) {
            Some(known) => known.text += &format!("; {}", label.text),
            None => d.labels.push(label),
        }
        d.help = format!("Look first at what {who} waits for: it comes here only behind that.");
        let mut ring = vec![root, first.who];
        while let Some(next) = ring.last().and_then(|last| self.held_before(blocked, last)) {
            if std::ptr::eq(next.who, root) {
                let drawn = ring.iter().filter_map(|b| Some((self.warp_name(b.warp), self.waits_where(b)?.1)));
                let drawn: String = drawn.map(|(who, what)| format!("{who} → {what} → ")).collect();
                let count = if ring.len() == 2 { "two" } else { "these" };
                let last = self.warp_name(root.warp);
                d.title += &format!(": {count} warps wait for each other: {drawn}{last}");
                d.help = format!("Let {who} come to what {last} waits for before it waits {at} {elsewhere} itself.");
                return;
            }
            if ring.len() == MOST || ring.iter().any(|known| std::ptr::eq(*known, next.who)) {
                return;
            }
            ring.push(next.who);
        }
    }

    /// Of those who wait elsewhere and have not come to what somebody waits for, the one who is nearest to a statement by which it would.
    fn held_before<'b>(&self, blocked: &'b [Blocked], waiter: &Blocked) -> Option<Held<'b>> {
        let comes = |inst: &Inst| match waiter.state {
            State::CtaBarrier(id) => self.is_of_cta_barrier(inst, id) == Some(true),
            State::ClusterBarrier => matches!(inst.op, Op::ClusterArrive { .. }),
            _ => false,
        };
        let mut sites: Vec<u32> = self.kernel.code.iter().filter(|inst| comes(inst)).map(|inst| inst.site).collect();
        if let State::Mbarrier { barrier, .. } = waiter.state {
            sites = self.arrival_sites(self.barriers[barrier as usize].offset);
        }
        let cta = self.warps[waiter.warp].cta;
        let lacks = |b: &&Blocked| {
            let warp = &self.warps[b.warp];
            let own = warp.cta == cta;
            b.warp != waiter.warp
                && b.state != waiter.state
                && self.waits_where(b).is_some()
                && match waiter.state {
                    State::CtaBarrier(id) => own && self.ctas[cta].named[id as usize].who >> (warp.index % 32) & 1 == 0,
                    State::ClusterBarrier => warp.cluster_arrived & b.mask == 0,
                    _ => own,
                }
        };
        let ways = blocked.iter().filter(lacks).flat_map(|who| {
            sites.iter().filter_map(move |&site| Some((self.leads_to(who, &[site])?, Held { who, site })))
        });
        ways.min_by_key(|(far, _)| *far).map(|(_, held)| held)
    }

    /// What somebody waits for, and whether `at` it or `for` it, if others bring it about.
    fn waits_where(&self, b: &Blocked) -> Option<(&'static str, String)> {
        Some(match b.state {
            State::Mbarrier { barrier, .. } => ("for", self.barrier_name(barrier)),
            State::CtaBarrier(id) => ("at", format!("CTA barrier {id}")),
            State::ClusterBarrier => ("at", "the cluster barrier".into()),
            State::TensorAlloc { .. } => ("for", "tensor memory".into()),
            State::Registers(_) => ("for", "registers".into()),
            _ => return None,
        })
    }
}
