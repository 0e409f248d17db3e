//! Accumulators of one type that are taken for another, and products that nobody reads.

use crate::diagnostic::Severity;
use crate::machine::cluster::Cluster;
use crate::machine::mma::instruction_descriptor::Accumulator;
use crate::machine::mma::issued::Recent;
use crate::machine::state::{ActorKind, Cta};
use crate::machine::tensor_memory::{CELL, COLUMNS, Halves};
use crate::program::op::{Op, Reg};
use crate::program::opcode;

/// Instructions that compute with numbers, not with bits.
const ARITHMETIC: [&str; 10] = ["cvt", "add", "sub", "mul", "fma", "mad", "max", "min", "ex2", "setp"];

/// Whether an instruction computes with FP32 numbers: `cvt.rn.f16x2.f32`, `add.f32`. The type of its sources comes last.
fn takes_fp32(text: &str) -> bool {
    let mut parts = opcode(text).split('.');
    parts.next().is_some_and(|name| ARITHMETIC.contains(&name)) && parts.next_back() == Some("f32")
}

fn name(of: Accumulator) -> &'static str {
    match of {
        Accumulator::F16 => "FP16",
        Accumulator::F32 => "FP32",
        Accumulator::S32 => "S32",
    }
}

const TYPE_OF_D: &str = "Bits 4 and 5 of the instruction descriptor are the type of D: 0 is FP16, 1 is FP32, 2 is S32 (PTX ISA 9.7.16.4.2).";

impl Cluster<'_> {
    /// An MMA takes elements of A, several of which lie in a column, from columns that an MMA has written last: those hold sums, one in each.
    pub fn check_no_product(&mut self, cta: usize, halves: Halves, from: u32, site: u32) {
        if !self.options.judges() {
            return;
        }
        let written = |column: u32| {
            let Cta { tensor_shadow, upper_shadow, .. } = &self.ctas[cta];
            let shadow = upper_shadow.as_ref().filter(|_| !halves.has(false)).unwrap_or(tensor_shadow);
            let by = shadow.writer(u64::from(column) * CELL)?;
            let queue = matches!(self.kind(by), Some(ActorKind::Mmas { .. }));
            // Lanes that an MMA does not write may have been stored before.
            let all_lanes = self.issued.by(by.site).is_none_or(|mma| mma.disabled == [0; 2]);
            (queue && all_lanes && !self.is_tensor_copy(by.site)).then_some((column, by.site))
        };
        let Some((column, mma)) = (from..COLUMNS.min(from + 8)).find_map(written) else { return };
        let mut diagnostic = self.problem(
            "type-mismatch",
            site,
            format!("an MMA takes {} for A, which holds sums of another MMA", self.tensor_name(column)),
            "Elements of A lie packed in tensor memory, 32 bytes of a row in 8 columns; an accumulator has one element of a row in each column (PTX \
             ISA, tcgen05.mma, tcgen05.ld).",
            format!(
                "Let A begin where tcgen05.st has stored it: this MMA takes columns {from} to {}. If it is meant to take a product, load that (tcgen05.ld), \
                 convert it and store it for A.",
                from + 7
            ),
        );
        diagnostic.severity = Severity::Finding;
        diagnostic.labels[0].text = format!("A is taken from columns {from} to {} here", from + 7);
        diagnostic.labels.push(self.label(mma, "this MMA has written there last"));
        self.supplies.takes_sums(cta, from, diagnostic);
    }

    /// An MMA writes all lanes of an accumulator (`whole`), or adds to it: what did the last one leave there? Who computes the same
    /// product again, as one does to measure, loses nothing.
    pub fn check_accumulator(&mut self, new: &Recent, adds: bool, whole: bool) {
        let Some(&old) = self.issued.last_of(new.ctas.0, new.layout.halves(), new.d.0, new.columns) else { return };
        if (old.ctas, old.d, old.layout) != (new.ctas, new.d, new.layout) {
            return;
        }
        let site = new.stamp.site;
        if adds && old.of != new.of {
            let column = self.tensor_name(new.d.0);
            let (is, was) = (name(new.of), name(old.of));
            let mut diagnostic = self.problem(
                "type-mismatch",
                site,
                format!("an MMA adds in {is} to the accumulator in {column}, which is {was}"),
                TYPE_OF_D,
                "Give all MMAs of one accumulator the same type of D.".into(),
            );
            diagnostic.severity = Severity::Finding;
            diagnostic.labels.push(self.label(old.stamp.site, format!("this MMA leaves {was}")));
            self.findings.add(diagnostic);
        } else if !adds && whole && !old.read && old.operands != new.operands {
            let column = self.tensor_name(new.d.0);
            let mut diagnostic = self.problem(
                "product-overwritten",
                site,
                format!("an MMA overwrites the product in {column}, which nobody has read"),
                "With enable-input-d false, an MMA does not add to D but overwrites it (PTX ISA, tcgen05.mma).",
                "Let only the first MMA of a sum begin it: its enable-input-d is false, that of the others true."
                    .into(),
            );
            diagnostic.severity = Severity::Finding;
            if old.stamp.site != site {
                diagnostic.labels.push(self.label(old.stamp.site, "this MMA computed the product"));
            }
            self.findings.add(diagnostic);
        }
    }

    /// The statement that computes with what a load brings to these registers as with FP32 numbers. It follows from the kernel alone.
    fn taken_for_fp32(&self, site: u32, d: &[u16]) -> Option<u32> {
        // Something else may have been written there.
        let code = &self.kernel.code;
        if code.iter().any(|inst| matches!(inst.op, Op::TensorStore { .. } | Op::TensorCopy(_))) {
            return None;
        }
        let load = code.iter().position(|inst| inst.site == site)?;
        let mut open: Vec<Reg> = d.iter().map(|&reg| Reg::B32(reg)).collect();
        for inst in &code[load + 1..] {
            if inst.uses.iter().any(|reg| open.contains(reg)) {
                let text = self.place(inst.site).text;
                if takes_fp32(&text) {
                    return Some(inst.site);
                }
                if text.starts_with("mov.") {
                    open.extend(inst.defs.iter().copied());
                    continue;
                }
            }
            open.retain(|reg| !inst.defs.contains(reg));
            if open.is_empty() {
                return None;
            }
        }
        None
    }

    /// These registers are loaded from columns of tensor memory: whose accumulator they hold, and what it is taken for.
    pub fn check_accumulator_type(
        &mut self,
        site: u32,
        cta: usize,
        (halves, column, columns): (Halves, u32, u32),
        d: &[u16],
    ) {
        let Some(&Recent { of, stamp, .. }) = self.issued.last_of(cta, halves, column, columns) else { return };
        if of == Accumulator::F32 {
            return;
        }
        let (is, mma) = (name(of), stamp.site);
        let load = (site, d.first().copied());
        let used = match self.issued.taken_for_fp32.get(&load) {
            Some(known) => *known,
            None => {
                let used = self.taken_for_fp32(site, d);
                self.issued.taken_for_fp32.insert(load, used);
                used
            }
        };
        let Some(used) = used else { return };
        let mut diagnostic = self.problem(
            "type-mismatch",
            site,
            format!("the {is} accumulator of an MMA in {} is taken for FP32 numbers", self.tensor_name(column)),
            &format!("{TYPE_OF_D} tcgen05.ld copies bits and converts nothing."),
            "Set bits 4 and 5 of the instruction descriptor to 1 for an FP32 accumulator.".into(),
        );
        diagnostic.severity = Severity::Finding;
        diagnostic.labels[0].text = "loaded here".into();
        diagnostic.labels.push(self.label(mma, format!("this MMA writes {is}")));
        diagnostic.labels.push(self.label(used, "FP32 numbers are computed with here"));
        self.findings.add(diagnostic);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_of_the_sources_comes_last() {
        for (text, is) in [
            ("cvt.rn.f16x2.f32 %r1, %f1, %f2;", true),
            ("@%p1 add.f32 %f1, %f2, %f3;", true),
            ("cvt.rn.f32.s32 %f1, %r1;", false),
            ("mov.f32 %f1, %f2;", false),
            ("st.global.v4.f32 [%rd1], {%f1, %f2, %f3, %f4};", false),
            ("add.f16x2 %r1, %r2, %r3;", false),
        ] {
            assert_eq!(takes_fp32(text), is, "{text}");
        }
    }
}
