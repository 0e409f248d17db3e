//! The tensor core at work on `tcgen05.mma`: operands are read, later D is written.

use super::Source;
use crate::machine::arithmetic::batch::spare_operands;
use crate::machine::arithmetic::operand::Operand;
use crate::machine::cluster::Cluster;
use crate::machine::tma::prefetches::Prefetches;
use crate::report::EventKind;

impl Cluster<'_> {
    /// The tensor core reads the operands of an MMA.
    pub fn mma_read(&mut self, n: usize) {
        if let Source::Tensor(_) = self.mmas[n].a {
            self.settle();
        }
        let mut operands = spare_operands();
        let m = &self.mmas[n];
        let (i, g) = (m.descriptor, m.group.len() as u32);
        let (rows, lanes) = i.layout(m.group.len(), m.lane).a_in_tensor(i.m / g);
        if self.blank.is_some() {
            // Which rows hold defined values, and nothing else.
            for ((&c, a), n) in m.group.iter().zip(&mut operands.a).zip(0..) {
                match m.a {
                    Source::Shared(d) => a.look(0, &self.ctas[c].shared, &d, i.m / g, i.a_mn_major),
                    Source::Tensor(column) => {
                        a.look_at_tensor(0, &self.ctas[c].tensor, column, rows, lanes);
                    }
                }
                let before = (n * i.n / g) as usize;
                operands.b.look(before, &self.ctas[c].shared, &m.b, i.n / g, i.b_mn_major);
            }
            self.mmas[n].operands = Some(operands);
            return;
        }
        for (&c, a) in m.group.iter().zip(&mut operands.a) {
            match m.a {
                Source::Shared(d) => a.read(&self.ctas[c].shared, &d, i.m / g, i.a_mn_major),
                Source::Tensor(column) => {
                    a.read_tensor(&self.ctas[c].tensor, column, rows, lanes);
                }
            }
            operands.b.read(&self.ctas[c].shared, &m.b, i.n / g, i.b_mn_major);
        }
        if self.options.keep_operands
            && let Some(event) = m.event
            && let EventKind::Mma(mma) = &mut self.trace[event].kind
        {
            mma.a.elements = operands.a.iter().flat_map(|part| part.bits.as_flattened().iter().copied()).collect();
            mma.b.elements = operands.b.bits.as_flattened().to_vec();
        }
        self.mmas[n].operands = Some(operands);
    }

    /// A in tensor memory has been read, and parts of it hold no value: the reason, where none is known yet.
    fn say_why_a_lacks(&mut self, n: usize) {
        let m = &self.mmas[n];
        let lacks = |operand: &Operand| operand.defined.iter().any(|&defined| !defined);
        if m.origin != 0 || !m.operands.as_ref().is_some_and(|operands| operands.a.iter().any(lacks)) {
            return;
        }
        let (i, group) = (m.descriptor, m.group.clone());
        let ctas = group.len();
        let layout = i.layout(ctas, m.lane);
        let rows = layout.a_in_tensor(i.m / ctas as u32).0;
        self.mmas[n].origin = self.origin_of_a(m.site, m.w, &group, (m.a, layout.halves()), rows);
    }

    /// The product is in tensor memory: from now on, who looks sees it.
    pub fn mma_done(&mut self, n: usize, time: u64) {
        if self.mmas[n].read_late {
            self.mma_read(n);
            self.say_why_a_lacks(n);
        }
        if let Some(mut operands) = self.mmas[n].operands.take() {
            if self.mmas[n].factors.is_some() {
                self.read_factors(n, &mut operands);
            }
            match self.blank {
                Some(_) => self.batches.define(&self.mmas[n], operands, &mut self.ctas),
                None => {
                    let prefetches = &mut Prefetches::of(&mut self.unfetched, &self.global);
                    self.batches.add(self.options.numerics, &self.mmas[n], operands, &mut self.ctas, prefetches);
                }
            }
        }
        self.mmas.free(n);
        self.end = self.end.max(time);
    }
}
