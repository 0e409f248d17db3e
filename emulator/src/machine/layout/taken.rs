//! Boxes that MMAs of one sum take for other numbers than MMAs before them: of another type, or with another sign.

use super::depths::{Pair, Slice};
use crate::diagnostic::Severity;
use crate::machine::arithmetic::formats::Format;
use crate::machine::cluster::Cluster;

/// What an MMA takes the numbers of an operand for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Taken {
    /// If its kind has several.
    pub format: Option<Format>,
    pub negated: bool,
}

impl Taken {
    /// `takes A for FP16`, or whether it is negated, as far as another one differs in that.
    fn named(self, other: Taken, operand: &str) -> String {
        match self.format.filter(|_| self.format != other.format) {
            Some(format) => format!("takes {operand} for {}", format.name()),
            None if self.negated => format!("negates {operand}"),
            None => format!("does not negate {operand}"),
        }
    }
}

impl Cluster<'_> {
    /// An MMA adds a product of two boxes to a sum to which another one has added a product of the same two, taken otherwise.
    pub fn taken_in_two_ways(&mut self, new: &Pair, old: &Pair, slices: [Slice; 2]) {
        let differs = |n: &usize| new.taken[*n] != old.taken[*n];
        let Some(n) = (0..2).find(differs) else { return };
        let (operand, bit) = [("A", 13), ("B", 14)][n];
        let (is, was) = (new.taken[n].named(old.taken[n], operand), old.taken[n].named(new.taken[n], operand));
        let of_type = new.taken[n].format != old.taken[n].format;
        let (code, rule) = match of_type {
            true => (
                "type-mismatch",
                "Bits 7 to 9 of the instruction descriptor are the type of A, bits 10 to 12 that of B (PTX ISA 9.7.16.4.2). A box holds numbers of one type, and nothing \
                 converts them on their way."
                    .to_string(),
            ),
            false => (
                "instruction-descriptor",
                format!(
                    "Bit {bit} of the instruction descriptor negates {operand} (PTX ISA 9.7.16.4.2; of wgmma, imm-scale-a and imm-scale-b). As a rule, the \
                     depths of one product are all added with the same sign."
                ),
            ),
        };
        let help = "Give all MMAs of these two boxes the same instruction descriptor.".to_string();
        let mut diagnostic =
            self.problem(code, new.site, format!("an MMA {is}, and another one of the same sum {was}"), &rule, help);
        // Numbers whose halves are subtracted from each other may lie in one box, as real and imaginary parts do.
        diagnostic.severity = if of_type { Severity::Finding } else { Severity::Note };
        if old.site != new.site {
            diagnostic.labels.push(self.label(old.site, format!("this MMA {was}, of the same box")));
        }
        diagnostic.labels.push(self.label(slices[n].load, slices[n].brought(operand)));
        self.findings.add_alike(diagnostic);
    }
}
