//! After the last warp of a cluster has ended: what it left behind.

use super::cluster::Cluster;
use super::state::Cta;
use crate::diagnostic::{Diagnostic, Severity};
use crate::report::{CtaState, Memory};

impl Cluster<'_> {
    /// After the last warp has ended and the engines have drained.
    pub fn finish(&mut self) {
        for allocation in self.ctas.iter().flat_map(|cta| cta.tensor.held()).collect::<Vec<_>>() {
            let name = self.tensor_name(allocation.column);
            let diagnostic = Diagnostic {
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
            self.findings.add(diagnostic);
        }
        self.registers_of_warpgroups();
        self.slices_never_read();
        self.never_written();
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
