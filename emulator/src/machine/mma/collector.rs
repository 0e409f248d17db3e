//! The collector buffers, in which the tensor core may keep the A of an MMA, or the B of one with `.ws`, for the next ones (PTX ISA,
//! tcgen05.mma, .collector_usage).
//!
//! What they hold changes no value here: an MMA multiplies what it names (assumption `collector-holds-a`). But `::use` and `::lastuse` allow
//! the tensor core to take the operand out of the buffer, so that it must hold that one.

use super::Source;
use super::instruction_descriptor::InstructionDescriptor;
use crate::diagnostic::Severity;
use crate::machine::cluster::Cluster;
use crate::program::kind::{Format, Kind};
use crate::program::tensor_core::{Collector, Usage};

/// An operand as an MMA reads it: where, how many rows, of which kind and format, and in which direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Held {
    source: Source,
    rows: u32,
    kind: Kind,
    format: Format,
    mn_major: bool,
}

impl Held {
    pub fn a(source: Source, i: &InstructionDescriptor) -> Held {
        Held { source, rows: i.m, kind: i.kind, format: i.a, mn_major: i.a_mn_major }
    }

    pub fn b(source: Source, i: &InstructionDescriptor) -> Held {
        Held { source, rows: i.n, kind: i.kind, format: i.b, mn_major: i.b_mn_major }
    }
}

/// What one of a CTA's collector buffers holds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Buffer {
    #[default]
    Empty,
    /// What the MMA of this statement has filled it with.
    Holds(Held, u32),
    /// The MMA of this statement has let go of what it held.
    Discarded(u32),
}

impl Cluster<'_> {
    /// An MMA of these CTAs is issued: it may need what the buffer holds, and says what becomes of that.
    pub fn collect(&mut self, site: u32, group: &[usize], collector: Collector, operand: Held) {
        let usage = collector.usage;
        if matches!(usage, Usage::Use | Usage::LastUse) {
            let held = self.ctas[group[0]].collectors[collector.buffer];
            self.check_collector(site, collector, operand, held);
        }
        for &c in group {
            let buffer = &mut self.ctas[c].collectors[collector.buffer];
            *buffer = match (usage, *buffer) {
                (Usage::Fill, _) => Buffer::Holds(operand, site),
                (Usage::Use, held) => held,
                (_, Buffer::Holds(..)) => Buffer::Discarded(site),
                (_, held) => held,
            };
        }
    }

    fn check_collector(&mut self, site: u32, collector: Collector, operand: Held, held: Buffer) {
        let which = collector.operand();
        let (what, other) = match held {
            Buffer::Holds(held, _) if held == operand => return,
            Buffer::Holds(_, fill) => {
                ("which holds another one", Some((fill, format!("this MMA fills it with another {which}"))))
            }
            Buffer::Discarded(last) => {
                ("which no longer holds it", Some((last, "this MMA lets go of what it held".to_string())))
            }
            Buffer::Empty => ("which nothing has filled", None),
        };
        let Collector { buffer, usage } = collector;
        let (article, buffer) = (if which == "A" { "an" } else { "a" }, Collector::BUFFERS[buffer]);
        let mut diagnostic = self.problem(
            "collector-not-filled",
            site,
            format!(
                "an MMA with .collector::{buffer}::{} may take its {which} from the collector buffer, {what}",
                usage.name()
            ),
            &format!(
                "With .collector::{buffer}::use or ::lastuse {article} {which} that was filled in before must still be in the buffer; an MMA without \
                 a .collector, or with ::discard or ::lastuse, lets go of it (PTX ISA, tcgen05.mma, .collector_usage)."
            ),
            format!(
                "Give the first MMA of those that share this {which} .collector::{buffer}::fill, and this one no .collector if it is not among them."
            ),
        );
        diagnostic.severity = Severity::Finding;
        diagnostic.labels.extend(other.map(|(site, text)| self.label(site, text)));
        self.findings.add(diagnostic);
    }
}
