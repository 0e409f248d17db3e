//! Operations that need another CTA of the cluster: it must be known to have started, and a pair's tensor memory to be allocated by
//! both before one frees it.
//!
//! That the CTAs of a cluster are resident together does not say that each has begun. Any message from a warp of the CTA tells it:
//! a cluster barrier, relaxed or not, an arrival at an mbarrier, a flag.

use crate::diagnostic::Severity;
use crate::machine::cluster::Cluster;
use crate::machine::tensor_memory::Allocation;

impl Cluster<'_> {
    /// A warp is about to use another CTA's memory.
    pub fn must_have_started(&mut self, w: usize, target: usize, site: u32) {
        self.needs(
            w,
            target,
            site,
            Severity::Finding,
            "The shared memory of another CTA can be used only once it is known to have started: before that the access faults (CUDA \
             programming guide, distributed shared memory).",
        );
    }

    /// A warp is about to allocate together with another CTA. On a B300 the allocation waited for a peer that came late
    /// (NVIDIA/cutlass#3435: what fails is that the other one frees before), and kernels of ThunderKittens begin so.
    pub fn should_have_started(&mut self, w: usize, target: usize, site: u32) {
        self.needs(
            w,
            target,
            site,
            Severity::Note,
            "Who executes tcgen05.alloc.cta_group::2 must make sure that the peer CTA has been launched (PTX ISA 9.7.16.7.1; \
             NVIDIA/cutlass#3316).",
        );
    }

    fn needs(&mut self, w: usize, target: usize, site: u32, severity: Severity, rule: &str) {
        if !self.options.judges() || self.warps[w].met & (1 << target) != 0 {
            return;
        }
        let mut of_target = self.warps.iter().filter(|warp| warp.cta == target);
        if of_target.any(|warp| self.warps[w].has_heard_of(warp.actor, 1)) {
            self.warps[w].met |= 1 << target;
            return;
        }
        let from = self.warps[w].cta;
        let mut diagnostic = self.problem(
            "cta-not-started",
            site,
            format!("CTA {target} may not have started when CTA {from} needs it"),
            rule,
            "Put a cluster barrier before it, which all threads of both CTAs pass: barrier.cluster.arrive (.relaxed will do) and \
             barrier.cluster.wait."
                .to_string(),
        );
        diagnostic.severity = severity;
        diagnostic.labels[0].text = format!("nothing has told this warp of CTA {from} that CTA {target} runs");
        self.findings.add(diagnostic);
    }

    /// A pair's columns are about to be freed in this CTA: its peer's allocation of them must be over.
    pub fn peer_must_have_allocated(&mut self, w: usize, allocation: Allocation, site: u32) {
        let cta = self.warps[w].cta;
        let peer = cta ^ 1;
        let mine = self.ctas[cta].allocated_with_peer.iter().rposition(|own| own.allocation == allocation);
        let Some(mine) = mine.filter(|_| self.options.judges()) else { return };
        let theirs = self.ctas[peer].allocated_with_peer.get(mine).copied();
        if theirs.is_some_and(|theirs| self.warps[w].has_heard_of(self.warps[theirs.warp].actor, theirs.epoch)) {
            return;
        }
        let mut diagnostic = self.problem(
            "pair-freed-early",
            site,
            format!("CTA {cta} may free the pair's tensor memory before CTA {peer} has got it"),
            "Both CTAs of a pair allocate together, and neither may free before the other's tcgen05.alloc is over: otherwise the launch \
             fails (NVIDIA/cutlass issue 3435, measured on a B300).",
            "Put a cluster barrier between the allocation and tcgen05.dealloc, which all threads of both CTAs pass.".to_string(),
        );
        diagnostic.severity = Severity::Finding;
        diagnostic.labels[0].text = format!("freed here by CTA {cta}");
        if let Some(theirs) = theirs {
            let text = format!("CTA {peer} allocates here; nothing orders the two");
            diagnostic.labels.push(self.label(theirs.allocation.site, text));
        }
        self.findings.add(diagnostic);
    }
}
