//! After the last warp of a cluster has ended: what it left behind.

use crate::diagnostic::{Diagnostic, Severity};
use crate::machine::cluster::Cluster;
use crate::machine::state::Cta;
use crate::machine::tensor_memory::Allocation;
use crate::report::{CtaState, Memory};

impl Cluster<'_> {
    /// After the last warp has ended and the engines have drained.
    pub fn finish(&mut self) {
        let held = |c: usize| self.ctas[c].tensor.held().into_iter().map(move |allocation| (c, allocation));
        for (c, allocation) in (0..self.ctas.len()).flat_map(held).collect::<Vec<_>>() {
            let name = self.tensor_name(allocation.column);
            let mut diagnostic = Diagnostic {
                code: "tensor-memory-leak",
                severity: Severity::Finding,
                title: format!("{} columns of tensor memory ({name}) are never freed", allocation.columns),
                labels: vec![self.label(allocation.site, "allocated here; the CTA ends without a tcgen05.dealloc")],
                rule: "All tensor memory must be freed before the kernel ends (PTX ISA 9.7.16.7.1): a later CTA on this SM would \
                       wait for it in its own tcgen05.alloc."
                    .into(),
                help: "Let one warp execute tcgen05.dealloc with the same address and column count, after a CTA barrier that \
                       follows the last tcgen05.wait::ld."
                    .into(),
                count: 1, confirmed: None,
            };
            if let Some(freed) = self.freed_by_the_peer(c, allocation) {
                diagnostic.title = format!(
                    "{} columns of tensor memory ({name}) of CTA {c} are never freed, and those of its pair's other CTA are",
                    allocation.columns
                );
                diagnostic
                    .labels
                    .push(self.label(freed, format!("CTA {} frees its columns here, and CTA {c} does not", c ^ 1)));
                diagnostic.rule = "With cta_group::2, one warp of each CTA of the pair executes tcgen05.alloc, and one warp of each tcgen05.dealloc (PTX ISA \
                                   9.7.16.7.1): a later CTA on this SM would wait for the columns in its own tcgen05.alloc."
                    .into();
                diagnostic.help = "Let one warp of both CTAs of the pair execute the tcgen05.dealloc.".into();
            }
            self.findings.add(diagnostic);
        }
        self.registers_of_warpgroups();
        self.slices_never_read();
        self.tiles_never_stored();
        self.never_written();
    }

    /// Columns that a CTA holds were allocated together with the other CTA of its pair, which has freed its own: where.
    fn freed_by_the_peer(&self, c: usize, allocation: Allocation) -> Option<u32> {
        let of_a_pair = self.ctas[c].allocated_with_peer.iter().any(|pair| pair.allocation == allocation);
        let peer = self.ctas.get(c ^ 1).filter(|_| of_a_pair)?;
        peer.tensor.freed(allocation.column)
    }

    /// The CTAs as they left their memories.
    pub fn snapshots(&mut self) -> Vec<CtaState> {
        self.settle();
        self.ctas.iter().map(|cta| self.snapshot(cta)).collect()
    }

    fn snapshot(&self, cta: &Cta) -> CtaState {
        let dynamic = self.kernel.dynamic_start as usize;
        let part = |range: std::ops::Range<usize>| {
            let mut memory = Memory::undefined(range.len());
            for (n, at) in range.enumerate() {
                let (value, defined) = cta.shared.load(at, 1);
                memory.store(n, 1, value, defined);
                if cta.shared.is_blank(at) {
                    memory.mark_blank(n, 1);
                }
            }
            memory
        };
        let mut tensor = cta.tensor.snapshot();
        if self.is_blank() {
            tensor.blank = tensor.defined.clone();
        }
        CtaState {
            cta: cta.id,
            dynamic_shared: part(dynamic..cta.shared.bytes.len()),
            static_shared: part(crate::program::RESERVED_SHARED as usize..self.kernel.static_end as usize),
            tensor,
            tensor_columns: cta.tensor.most,
        }
    }
}
