//! The collector buffer, in which the tensor core may keep the A of an MMA for the next ones (PTX ISA, tcgen05.mma, .collector_usage).
//!
//! What it holds changes no value here: an MMA multiplies the A that it names (assumption `collector-holds-a`). But `::use` and
//! `::lastuse` allow the tensor core to take A out of the buffer, so that it must hold that A.

use super::cluster::Cluster;
use super::instruction_descriptor::InstructionDescriptor;
use super::mma::Source;
use crate::diagnostic::Severity;
use crate::program::kind::{Format, Kind};
use crate::program::tensor_core::Collector;

/// A as an MMA reads it: where, how many rows, of which kind and format, and in which direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct A {
    source: Source,
    rows: u32,
    kind: Kind,
    format: Format,
    mn_major: bool,
}

impl A {
    pub fn of(source: Source, i: &InstructionDescriptor) -> A {
        A { source, rows: i.m, kind: i.kind, format: i.a, mn_major: i.a_mn_major }
    }
}

/// What a CTA's collector buffer holds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Buffer {
    #[default]
    Empty,
    /// What the MMA of this statement has filled it with.
    Holds(A, u32),
    /// The MMA of this statement has let go of what it held.
    Discarded(u32),
}

impl Cluster<'_> {
    /// An MMA of these CTAs is issued: it may need what the buffer holds, and says what becomes of that.
    pub fn collect(&mut self, site: u32, group: &[usize], usage: Collector, a: A) {
        if matches!(usage, Collector::Use | Collector::LastUse) {
            let held = self.ctas[group[0]].collector;
            self.check_collector(site, usage, a, held);
        }
        for &c in group {
            let buffer = &mut self.ctas[c].collector;
            *buffer = match (usage, *buffer) {
                (Collector::Fill, _) => Buffer::Holds(a, site),
                (Collector::Use, held) => held,
                (_, Buffer::Holds(..)) => Buffer::Discarded(site),
                (_, held) => held,
            };
        }
    }

    fn check_collector(&mut self, site: u32, usage: Collector, a: A, held: Buffer) {
        let (what, other) = match held {
            Buffer::Holds(held, _) if held == a => return,
            Buffer::Holds(_, fill) => ("which holds another one", Some((fill, "this MMA fills it with another A"))),
            Buffer::Discarded(last) => ("which no longer holds it", Some((last, "this MMA lets go of what it held"))),
            Buffer::Empty => ("which nothing has filled", None),
        };
        let mut diagnostic = self.problem(
            "collector-not-filled",
            site,
            format!("an MMA with {} may take its A from the collector buffer, {what}", usage.name()),
            "With .collector::a::use or ::lastuse an A that was filled in before must still be in the buffer; an MMA without \
             a .collector, or with ::discard or ::lastuse, lets go of it (PTX ISA, tcgen05.mma, .collector_usage).",
            "Give the first MMA of those that share this A .collector::a::fill, and this one no .collector if it is not among them."
                .into(),
        );
        diagnostic.severity = Severity::Finding;
        diagnostic.labels.extend(other.map(|(site, text)| self.label(site, text)));
        self.findings.add(diagnostic);
    }
}
