//! Of clusters that share SMs and are stuck: who holds the tensor memory that this one waits for.

use super::Blocked;
use crate::diagnostic::Diagnostic;
use crate::machine::chip::grant::Wanted;
use crate::machine::cluster::Cluster;
use crate::machine::explain::names::counted;
use crate::machine::warp::State;
use crate::program::op::{Inst, Op};

impl Cluster<'_> {
    /// What this cluster waits for, and what comes of that.
    pub fn wanted_by_this(&self) -> Option<&[Wanted]> {
        let (links, _) = self.wanted_columns.as_ref()?;
        links.first().filter(|link| link.cluster == self.index).map(|_| &links[..])
    }

    /// It waits for another cluster, which waits for it.
    pub fn is_in_ring(&self) -> bool {
        self.wanted_by_this().is_some() && self.wanted_columns.as_ref().is_some_and(|(_, ring)| *ring)
    }

    /// A warp waits in `tcgen05.alloc` for what another cluster holds.
    pub fn stuck_between_clusters(&self, root: &Blocked) -> Diagnostic {
        let links = self.wanted_by_this().unwrap_or_default();
        let text = |link: &Wanted| {
            let Wanted { cluster, cta, columns, holder, held } = *link;
            let holds = match held {
                0 => "the right to allocate".to_string(),
                held => counted(held, "column"),
            };
            format!(
                "cluster {cluster} waits for {} on the SM of its CTA {cta}, where cluster {holder} holds {holds}",
                counted(columns, "column")
            )
        };
        let all: Vec<String> = links.iter().map(text).collect();
        let (title, help) = if self.is_in_ring() {
            (
                format!("clusters wait for each other's tensor memory: {}", all.join("; ")),
                "Ask for no more columns than all CTAs that an SM has room for can have together, and relinquish the right to allocate \
                 before anything waits for another CTA.",
            )
        } else {
            (
                format!("tcgen05.alloc waits for ever: {}", all.join("; ")),
                "Let the cluster that holds it free its tensor memory, and relinquish the right to allocate, before it waits for others.",
            )
        };
        let mut d = self.hang(root.site, title, help.into());
        d.labels = vec![self.label(root.site, format!("{} waits for tensor memory", self.warp_name(root.warp)))];
        d
    }

    /// It waits in a `tcgen05.alloc` of a pair, and nobody of the other CTA comes to one: those who wait there wait for something else.
    pub fn allocates_alone(&self, blocked: &[Blocked], waiter: &Blocked) -> bool {
        let State::TensorAlloc { pair: Some(_) } = waiter.state else { return false };
        let peer = self.warps[waiter.warp].cta ^ 1;
        let allocs = |inst: &&Inst| matches!(inst.op, Op::TensorAlloc { .. });
        let sites: Vec<u32> = self.kernel.code.iter().filter(allocs).map(|inst| inst.site).collect();
        let comes = |other: &Blocked| {
            let there = matches!(other.state, State::TensorAlloc { .. });
            self.warps[other.warp].cta == peer && (there || self.leads_to(other, &sites).is_some())
        };
        self.ctas[peer].tensor.held().is_empty() && !blocked.iter().any(comes)
    }

    /// A warp waits in the `tcgen05.alloc` of a pair for the other CTA.
    pub fn stuck_without_peer(&self, root: &Blocked) -> Diagnostic {
        let mut d = self.hang(
            root.site,
            format!("tcgen05.alloc of {} waits for the other CTA of its pair", self.warp_name(root.warp)),
            "With cta_group::2, let one warp of each CTA of the pair execute tcgen05.alloc.".into(),
        );
        d.rule =
            "With cta_group::2, one warp from each of the peer CTAs allocates, collectively (PTX ISA, tcgen05.alloc)."
                .into();
        d
    }
}
