//! Phases whose copies bring other bytes than were announced: which statements announced them, and which copies came.

use super::cluster::Cluster;
use super::mbarrier::{Bytes, Mbarrier, Traffic, sum};
use super::names::{counted, counted_are};
use crate::diagnostic::{Diagnostic, Label, Severity};
use crate::program::op::Op;

const RULE: &str = "A phase completes when its arrivals are there and the bytes that were announced for it (expect_tx) are those that copies have \
                    brought (complete_tx): each tensor copy brings its whole box, also where that hangs over the tensor's edge (PTX ISA, \
                    mbarrier, tracking asynchronous operations).";

impl Cluster<'_> {
    /// Nothing can go on: the bytes of the current phase do not come out even.
    pub fn stuck_bytes(&self, site: u32, barrier: u32, wait: Label) -> Diagnostic {
        let b = &self.barriers[barrier as usize];
        let name = self.barrier_name(barrier);
        let (announced, brought) = (sum(&b.traffic.announced), sum(&b.traffic.brought));
        let mut d = self.problem(
            "hang",
            site,
            format!("{name} never completes phase {}: {}", b.phase, uneven(announced, brought)),
            RULE,
            cure(announced, brought),
        );
        d.labels = self.byte_labels(&b.traffic);
        if d.labels.is_empty() {
            d.labels.push(self.label(b.init.site, "initialised here; no bytes are announced for it"));
        }
        d.labels.insert(usize::from(!b.traffic.announced.is_empty()), wait);
        if announced > brought
            && let Some((site, other)) = self.brings_elsewhere(barrier)
        {
            d.labels.push(self.label(site, format!("this copy, behind that, tells {}", self.barrier_name(other))));
            d.help = format!("Let the copy tell {name}: its bytes are announced there.");
        }
        d
    }

    /// A copy that is issued behind the announcement of this mbarrier's bytes, before another wait, and has told only others: which it has
    /// told.
    fn brings_elsewhere(&self, barrier: u32) -> Option<(u32, u32)> {
        let here = &self.barriers[barrier as usize];
        let announced = here.traffic.announced.first()?.site;
        let behind = self.kernel.code.iter().skip_while(|inst| inst.site != announced).skip(1);
        let copies = behind.take_while(|inst| !matches!(inst.op, Op::BarrierWait { .. }));
        let tells = |b: &Mbarrier, site: u32| {
            let mut brought = b.traffic.brought.iter().chain(&b.traffic_before.brought);
            brought.any(|copy| copy.site == site)
        };
        let mut copies = copies.filter(|inst| matches!(inst.op, Op::Tma(_)) && !tells(here, inst.site));
        copies.find_map(|inst| {
            let others = self.barriers.iter().position(|other| other.valid && tells(other, inst.site))?;
            Some((inst.site, others as u32))
        })
    }

    /// A copy brings bytes to a phase after that in which it was issued: that one was complete without them.
    pub fn bytes_after_phase(&mut self, barrier: u32, epoch: u32, site: u32, bytes: u32) {
        let b = &self.barriers[barrier as usize];
        let Some(phase) = b.phase_of(epoch).filter(|&phase| phase < b.phase) else { return };
        // Of the phase before, what was announced is known; what is still on its way to it comes on top.
        let before = phase + 1 == b.phase;
        let mut traffic = if before { b.traffic_before.clone() } else { Traffic::default() };
        traffic.bring(site, bytes);
        for copy in self.copies.iter().filter(|copy| !copy.done) {
            let to = copy.barriers.iter().zip(&copy.epochs).any(|(&to, &of)| to == barrier && of == epoch);
            if to {
                traffic.bring(copy.site, copy.bytes);
            }
        }
        let name = self.barrier_name(barrier);
        let (announced, brought) = (sum(&traffic.announced), sum(&traffic.brought));
        let mut d = self.problem(
            "phase-completed-early",
            site,
            match before {
                true => format!(
                    "{name} completes phase {phase} before all its bytes are there: {}",
                    uneven(announced, brought)
                ),
                false => format!("{name} completes phase {phase} before all its bytes are there, and a later one, too"),
            },
            RULE,
            cure(announced, brought),
        );
        d.severity = Severity::Finding;
        d.labels = self.byte_labels(&traffic);
        if before && traffic.announced.is_empty() {
            for &(site, n) in b.previous.iter().take(2) {
                d.labels.insert(0, self.label(site, format!("{} from here, without bytes", counted(n, "arrival"))));
            }
        }
        self.findings.add(d);
    }

    fn byte_labels(&self, traffic: &Traffic) -> Vec<Label> {
        let times = |b: &Bytes| if b.times == 1 { String::new() } else { format!(", in {} times", b.times) };
        let announced = traffic.announced.iter().take(2);
        let announced = announced
            .map(|b| self.label(b.site, format!("{} announced here{}", counted_are(b.bytes, "byte"), times(b))));
        let brought = traffic.brought.iter().take(4).map(|b| {
            let copies =
                if b.times == 1 { "this copy brings".into() } else { format!("{} copies from here bring", b.times) };
            self.label(b.site, format!("{copies} {}", counted(b.bytes, "byte")))
        });
        announced.chain(brought).collect()
    }
}

fn uneven(announced: u64, brought: u64) -> String {
    let copies = if brought == 0 {
        "copies bring none".into()
    } else {
        format!("its copies bring {}", counted(brought, "byte"))
    };
    match announced {
        0 => format!("no bytes are announced, {copies}"),
        n => format!("{} announced, {copies}", counted_are(n, "byte")),
    }
}

fn cure(announced: u64, brought: u64) -> String {
    match (announced, brought) {
        (_, 0) => "Issue the copies that bring the bytes, or announce none.".into(),
        (0, brought) => format!(
            "Let the thread that issues the copies announce their {brought} bytes in its arrival: mbarrier.arrive.expect_tx with \
             {brought} as its count of bytes."
        ),
        _ => format!("Announce {brought} bytes, or let the copies of a phase bring {announced}."),
    }
}
