//! Phases whose copies bring other bytes than were announced: which statements announced them, and which copies came.

use super::names::{counted, counted_are, distinct};
use crate::diagnostic::{Diagnostic, Label, Meaning, Severity};
use crate::machine::barrier::mbarrier::{Bytes, Mbarrier, Traffic, sum};
use crate::machine::cluster::Cluster;
use crate::machine::hang::Blocked;
use crate::machine::hang::role::Barred;
use crate::program::op::{Op, TmaKind};
use crate::protocol::{Doubt, Step, What, Why};

/// What to do where bytes are announced behind the arrivals of their phase.
pub const ANNOUNCE: &str = "Announce the bytes with the arrival itself (mbarrier.arrive.expect_tx), or let an arrival of the phase come behind the \
                            announcement: in the same thread, or behind a barrier with it.";

const LATE_RULE: &str = "A phase completes as soon as none of its arrivals and none of the bytes announced so far are pending; what is announced \
                         behind that counts for the next one (PTX ISA 9.7.13.15.5, 9.7.13.15.6).";

const RULE: &str = "A phase completes when its arrivals are there and the bytes that were announced for it (expect_tx) are those that copies have \
                    brought (complete_tx): each tensor copy brings its whole box, also where that hangs over the tensor's edge (PTX ISA, \
                    mbarrier, tracking asynchronous operations).";

impl Cluster<'_> {
    /// Nothing can go on: the bytes of the current phase do not come out even.
    pub fn stuck_bytes(&self, blocked: &[Blocked], site: u32, barrier: u32, wait: Label) -> Diagnostic {
        let b = &self.barriers[barrier as usize];
        let name = self.barrier_name(barrier);
        let (announced, brought) = (sum(&b.traffic.announced), sum(&b.traffic.brought));
        let mut d = self.problem(
            "hang",
            site,
            format!("{name} never completes phase {}: {}", b.phase, uneven(&b.traffic)),
            RULE,
            self.cure_of_bytes(b, &b.traffic),
        );
        d.labels = self.byte_labels(&b.traffic);
        if d.labels.is_empty() {
            d.labels.push(self.label(b.init.site, "initialised here; no bytes are announced for it"));
        }
        d.labels.insert(usize::from(!b.traffic.announced.is_empty()), wait);
        // What is known to be another copy's doing comes first.
        if announced > brought
            && let Some((site, other)) = self.brought_elsewhere(barrier).or_else(|| self.brings_elsewhere(barrier))
        {
            let told = self.barrier_name(other);
            let there = &self.barriers[other as usize];
            let twin = there.offset == b.offset && there.cta != b.cta;
            let alone = twin && self.is_plain_load(site);
            let text = match alone {
                true => format!(
                    "this copy, of those whose bytes are announced, has no .multicast::cluster: it goes to CTA {} alone, and tells {told}",
                    there.cta
                ),
                false => format!("this copy, of those whose bytes are announced, tells {told}"),
            };
            // Where others tell this one, what is announced is meant for it.
            let at = if brought > 0 { 0 } else { d.labels.len() };
            let leaves_out = twin && !alone && self.is_multicast_load(site) && !self.is_request(site);
            let meaning = if leaves_out { Meaning::LeavesOut } else { Meaning::Plain };
            d.labels.insert(at, self.label(site, text).that_means(meaning));
            d.help = match twin {
                true if alone => format!(
                    "If CTA {} is to get these bytes, too, write .multicast::cluster, and a mask of all that get them; else let a thread of CTA {} copy its own, or \
                     announce fewer bytes there.",
                    b.cta, b.cta
                ),
                true if self.is_request(site) => format!(
                    "Let the request have .multicast::cluster::all: without, its response comes to the CTA that asks alone, and not to CTA {}.",
                    b.cta
                ),
                true if leaves_out => {
                    format!("Let the CTA mask of this multicast name CTA {}, too: its bit {} is not set.", b.cta, b.cta)
                }
                _ => format!("Let the copy tell {name}: its bytes are announced there."),
            };
        } else if let Some((site, what)) = self.leaves_bytes(b).or_else(|| comes_too_often(&b.traffic)) {
            let place = self.place(site);
            let known = d.labels.iter().position(|label| label.place == place);
            let label = known.map(|at| d.labels.remove(at)).unwrap_or_else(|| self.label(site, ""));
            d.labels.insert(0, Label { text: format!("{}{what}", label.text), ..label });
        } else if announced > brought
            && let Some((copy, barred)) = self.copy_barred(blocked, b)
        {
            self.add_barred(&mut d, copy, "this would bring bytes, but was never executed", &barred);
        }
        d
    }

    /// A copy behind what announces the bytes of a phase that is never executed, and what keeps all from it.
    fn copy_barred(&self, blocked: &[Blocked], b: &Mbarrier) -> Option<(u32, Barred)> {
        let announced = b.traffic.announced.first()?.site;
        let mut never = self.copies_behind(announced).filter(|&site| !self.has_arrived(site));
        let of_all = never.find_map(|site| Some((site, self.barred(blocked, site, |_| true)?)));
        // Or a CTA of a pair leaves out its part of what both bring.
        let lacks = sum(&b.traffic.announced).saturating_sub(sum(&b.traffic.brought));
        let mut halves = b
            .traffic
            .brought
            .iter()
            .filter(|copy| lacks.is_multiple_of(copy.bytes) && self.is_load_of_a_pair(copy.site));
        of_all.or_else(|| {
            halves.find_map(|copy| {
                let of_pair = [b.cta, b.cta ^ 1];
                of_pair.into_iter().find_map(|c| Some((copy.site, self.barred(blocked, copy.site, |cta| cta == c)?)))
            })
        })
    }

    /// A load of which both CTAs of a pair may tell the mbarrier of one.
    fn is_load_of_a_pair(&self, site: u32) -> bool {
        self.kernel.code.iter().any(|inst| inst.site == site && matches!(&inst.op, Op::Tma(op) if op.pair))
    }

    /// The copies behind what announces bytes, before another wait or announcement.
    fn copies_behind(&self, announced: u32) -> impl Iterator<Item = u32> {
        let behind = self.kernel.code.iter().skip_while(move |inst| inst.site != announced).skip(1);
        let ends = |op: &Op| op.announces() || matches!(op, Op::BarrierWait { .. });
        let copies = behind.take_while(move |inst| !ends(&inst.op)).filter(|inst| matches!(inst.op, Op::Tma(_)));
        copies.map(|inst| inst.site)
    }

    /// Copies leave as many bytes of the buffers that they write as the phase lacks: the first of them, and what it leaves.
    fn leaves_bytes(&self, b: &Mbarrier) -> Option<(u32, String)> {
        let lacking = sum(&b.traffic.announced).checked_sub(sum(&b.traffic.brought))?;
        // Where each begins, the bytes that it lacks, in all CTAs, and the first copy to it.
        let mut buffers: Vec<(u32, i64, u32)> = Vec::new();
        for brought in &b.traffic.brought {
            // Where a statement writes, its last copies tell: in whichever stage.
            let mut copies = self.copies.iter().rev().filter(|c| c.site == brought.site && !c.shared.is_empty());
            let copy = copies.next()?;
            let (start, bytes) = self.buffer_of(copy.shared[0].offset)?;
            let mut other = || copies.any(|other| other.shared[0].cta != copy.shared[0].cta);
            // Of a multicast, each mbarrier hears of what is written in its own CTA.
            let ctas = if brought.times > 1 && copy.shared.len() == 1 && other() { 2 } else { 1 };
            let filled = brought.bytes as i64;
            match buffers.iter_mut().find(|known| known.0 == start) {
                Some(known) => known.1 -= filled,
                None => buffers.push((start, i64::from(bytes) * ctas - filled, copy.site)),
            }
        }
        let left: u64 = buffers.iter().map(|buffer| buffer.1.max(0) as u64).sum();
        let &(start, bytes, site) = buffers.iter().find(|buffer| buffer.1 > 0)?;
        let (bytes, left) = (bytes as u64, Some(left).filter(|left| *left == lacking)?);
        let all = if left == bytes { String::new() } else { format!(", {left} with those of others") };
        Some((site, format!(", which leaves {} of {}{all}", counted(bytes, "byte"), self.shared_name(start))))
    }

    /// The thread that announced the bytes of the current phase has issued a copy behind that, and before it announced others, that has told another
    /// mbarrier alone, and brings what lacks here: which it has told. In a ring, the same statement tells this one in other rounds.
    fn brought_elsewhere(&self, barrier: u32) -> Option<(u32, u32)> {
        let here = &self.barriers[barrier as usize];
        let site = here.traffic.announced.first()?.site;
        let steps = &self.record.steps;
        let announces = |step: &Step| matches!(step.what, What::Arrive { bytes: 1.., .. });
        let at = steps.iter().rposition(|step| {
            step.site == site && matches!(step.what, What::Arrive { barrier: b, bytes: 1.., .. } if b == barrier)
        })?;
        let by = steps[at];
        let behind =
            steps.iter().enumerate().skip(at + 1).filter(|(_, s)| s.warp == by.warp && s.lanes & by.lanes != 0);
        let copies = behind
            .take_while(|(_, s)| !announces(s))
            .filter(|(_, s)| matches!(s.what, What::Issue { commit: None, .. }));
        // A statement that brings bytes here in this phase, too, is meant for both: threads of other CTAs execute it.
        let mut copies = copies.filter(|(_, copy)| here.traffic.brought.iter().all(|known| known.site != copy.site));
        let lacks = sum(&here.traffic.announced).saturating_sub(sum(&here.traffic.brought));
        copies.find_map(|(copy, issued)| {
            let told = || {
                steps.iter().skip(copy).filter_map(|s| match s.what {
                    What::Done { issue, barrier, bytes, .. } if issue as usize == copy => Some((barrier, bytes)),
                    _ => None,
                })
            };
            let fits = told().all(|(to, bytes)| to != barrier && bytes > 0 && lacks.is_multiple_of(bytes.into()));
            let (other, _) = told().next().filter(|&(other, _)| fits && self.may_be_meant_for(barrier, other))?;
            Some((issued.site, other))
        })
    }

    /// A copy that is issued behind the announcement of this mbarrier's bytes, before another wait or announcement, has told only others, and brings
    /// what lacks here: which it has told.
    fn brings_elsewhere(&self, barrier: u32) -> Option<(u32, u32)> {
        let here = &self.barriers[barrier as usize];
        let announced = here.traffic.announced.first()?.site;
        let lacks = sum(&here.traffic.announced).saturating_sub(sum(&here.traffic.brought));
        let brought = |b: &'_ Mbarrier, site: u32, fits: &dyn Fn(&Bytes) -> bool| {
            let mut all = b.traffic.brought.iter().chain(&b.traffic_before.brought);
            all.any(|copy| copy.site == site && fits(copy))
        };
        let what_lacks = |copy: &Bytes| lacks.is_multiple_of(copy.bytes / u64::from(copy.times.max(1)));
        let mut copies = self.copies_behind(announced).filter(|&site| !brought(here, site, &|_| true));
        copies.find_map(|site| {
            let astray = |n: &u32| {
                let other = &self.barriers[*n as usize];
                other.valid && brought(other, site, &what_lacks) && self.may_be_meant_for(barrier, *n)
            };
            (0..self.barriers.len() as u32).find(astray).map(|other| (site, other))
        })
    }

    /// Whether copies that have told another mbarrier may be meant for this one: that is the same of another CTA, or they have brought it more than
    /// was announced there. Else each is at home there.
    fn may_be_meant_for(&self, barrier: u32, other: u32) -> bool {
        let (here, there) = (&self.barriers[barrier as usize], &self.barriers[other as usize]);
        let too_many = |traffic: &Traffic| sum(&traffic.brought) > sum(&traffic.announced);
        here.offset == there.offset || too_many(&there.traffic) || too_many(&there.traffic_before)
    }

    /// What brings bytes here brings them to other CTAs, too, and there they are announced.
    fn is_announced_elsewhere(&self, b: &Mbarrier) -> bool {
        let announced = |b: &Mbarrier| !b.traffic.announced.is_empty() || !b.traffic_before.announced.is_empty();
        b.traffic.brought.iter().all(|copy| self.is_multicast_load(copy.site))
            && self.at_offset(b).any(|twin| twin.cta != b.cta && announced(twin))
    }

    /// It asks for a cluster to take over.
    pub fn is_request(&self, site: u32) -> bool {
        self.kernel.code.iter().any(|inst| inst.site == site && matches!(inst.op, Op::TryCancel { .. }))
    }

    /// A load into the shared memory of its own CTA, which tells an mbarrier there.
    fn is_plain_load(&self, site: u32) -> bool {
        let plain = |op: &Op| matches!(op, Op::Tma(op) if op.kind == TmaKind::Load && op.targets.is_none() && !op.pair);
        self.kernel.code.iter().any(|inst| inst.site == site && plain(&inst.op))
    }

    /// A load, or a request, of which all CTAs of a mask, or of the cluster, get the bytes.
    fn is_multicast_load(&self, site: u32) -> bool {
        let multicast = |op: &Op| match op {
            Op::Tma(op) => op.targets.is_some(),
            Op::TryCancel { all, .. } => *all,
            _ => false,
        };
        self.kernel.code.iter().any(|inst| inst.site == site && multicast(&inst.op))
    }

    /// A copy brings bytes to a phase after that in which it was issued: that one was complete without them.
    pub fn bytes_after_phase(&mut self, barrier: u32, epoch: u32, site: u32, bytes: u32) {
        let b = &self.barriers[barrier as usize];
        let Some(phase) = b.phase_of(epoch).filter(|&phase| phase < b.phase) else { return };
        // Of the phase before, what was announced is known; what is still on its way to it comes on top.
        let before = phase + 1 == b.phase;
        self.barriers[barrier as usize].traffic.late += u64::from(bytes);
        let b = &self.barriers[barrier as usize];
        let mut traffic = if before { b.traffic_before.clone() } else { Traffic::default() };
        traffic.bring(site, bytes);
        for copy in self.copies.iter().filter(|copy| !copy.done) {
            let to = copy.barriers.iter().zip(&copy.epochs).any(|(&to, &of)| to == barrier && of == epoch);
            if to {
                traffic.bring(copy.site, copy.bytes);
            }
        }
        // It has the bytes that are announced for it: an earlier phase, which was too early itself, has left it others.
        if before && traffic.late > 0 && traffic.own() == sum(&traffic.announced) {
            return;
        }
        self.barriers[barrier as usize].was_early = true;
        let b = &self.barriers[barrier as usize];
        let name = self.barrier_name(barrier);
        let mut d = self.problem(
            "phase-completed-early",
            site,
            match before {
                // Its first copies count for the phase behind that of the arrival that should have announced them.
                true if !b.has_announced => format!(
                    "{name} completes its phases, from phase 0 on, before their bytes are there: {}",
                    uneven(&traffic)
                ),
                true => format!("{name} completes phase {phase} before all its bytes are there: {}", uneven(&traffic)),
                false => format!("{name} completes phase {phase} before all its bytes are there, and a later one, too"),
            },
            RULE,
            self.cure_of_bytes(b, &traffic),
        );
        d.severity = Severity::Finding;
        d.labels = self.byte_labels(&traffic);
        if before && traffic.announced.is_empty() {
            for &(site, n) in b.previous.iter().take(2) {
                d.labels.insert(0, self.label(site, format!("{} from here, without bytes", counted(n, "arrival"))));
            }
        }
        if before && traffic.own() > sum(&traffic.announced) && !traffic.announced.is_empty() {
            let known =
                |label: &Label| self.early_phases.iter().any(|(b, place, _)| *b == barrier && *place == label.place);
            let copies = traffic.brought.iter().map(|bytes| bytes.site).collect();
            let first =
                d.labels.first().filter(|label| !known(label)).map(|label| (barrier, label.place.clone(), copies));
            self.early_phases.extend(first);
        }
        self.findings.add(d);
    }

    /// Bytes that are announced by no arrival, and before none: in this run they came in time. One finding for each such statement.
    pub fn announced_late(&mut self, doubts: &[Doubt]) {
        let mut told: Vec<u32> = Vec::new();
        for doubt in doubts {
            let Why::AnnouncedLate { barrier, phase, sure: true } = doubt.why else { continue };
            if told.contains(&doubt.site) {
                continue;
            }
            told.push(doubt.site);
            let name = self.barrier_name(barrier);
            let title = format!("{name} may complete phase {phase} before its bytes are announced");
            let mut d = self.problem("phase-completed-early", doubt.site, title, LATE_RULE, ANNOUNCE.into());
            d.severity = Severity::Finding;
            d.labels = vec![self.label(doubt.site, "announced here; no arrival of the phase comes behind this")];
            let came = self.barriers[barrier as usize].came.iter().filter(|came| !came.bytes);
            let arrivals = came.map(|came| (came.site, format!("{} arrives here", self.warp_name(came.warp))));
            d.labels.extend(arrivals.take(2).map(|(site, text)| self.label(site, text)));
            self.findings.add(d);
        }
    }

    /// What makes the bytes of a phase come out even: of each announcement, where one statement makes several.
    fn cure_of_bytes(&self, b: &Mbarrier, traffic: &Traffic) -> String {
        let (announced, own) = (sum(&traffic.announced), traffic.own());
        let issuers = distinct(b.came.iter().filter(|came| came.bytes).map(|came| came.warp)).len();
        match traffic.announced.as_slice() {
            _ if !traffic.completed.is_empty() => {
                let (all, completed) = (own + sum(&traffic.completed), sum(&traffic.completed));
                format!(
                    "Announce {all} bytes, which is what comes, or let copies and mbarrier.complete_tx ({completed} of these) come to {announced} together."
                )
            }
            _ if own == 0 => "Issue the copies that bring the bytes, or announce none.".into(),
            [] if self.is_announced_elsewhere(b) => format!(
                "Announce {own} bytes in CTA {}, too: what goes to several CTAs counts at the mbarrier of each (mbarrier.arrive.expect_tx by a thread of \
                 that CTA, or at the address that mapa gives for it).",
                b.cta
            ),
            // One that counts them all, and none whose copies bring the bytes of several mbarriers.
            [] if issuers > 1
                && b.expected as usize >= issuers
                && !traffic.brought.iter().any(|copy| self.is_multicast_load(copy.site)) =>
            {
                format!(
                    "Let each of the {issuers} warps that issue copies announce the bytes of its own in its arrival: mbarrier.arrive.expect_tx, {own} bytes \
                 together."
                )
            }
            [] => format!(
                "Let the thread that issues the copies announce their {own} bytes in its arrival: mbarrier.arrive.expect_tx with {own} as \
                 its count of bytes."
            ),
            [Bytes { times: 1, .. }] => {
                format!("Announce {own} bytes, or let the copies of a phase bring {announced}.")
            }
            &[Bytes { site, times, .. }] if own.is_multiple_of(times.into()) => {
                let announced_by = b.came.iter().filter(|came| came.site == site);
                let ctas = distinct(announced_by.map(|came| self.warps[came.warp].cta));
                let who = if ctas.len() > 1 { format!(" ({} CTAs announce)", ctas.len()) } else { String::new() };
                let each = own / u64::from(times);
                format!(
                    "Announce {each} bytes in each of the {times} announcements{who}, or let the copies of a phase bring {announced}."
                )
            }
            _ => format!(
                "Let the announcements of a phase come to {own} bytes together, or let its copies bring {announced}."
            ),
        }
    }

    /// A phase lacks arrivals, copies have brought it bytes, and no statement announces them.
    pub fn is_unannounced(&self, b: &Mbarrier) -> bool {
        let lacks = b.pending > 0 && b.pending < b.expected && b.traffic.own() > 0;
        lacks && b.traffic.announced.is_empty() && !self.may_be_announced(b.offset)
    }

    /// The arrival that lacks is that of the announcement.
    pub fn tell_unannounced(&self, d: &mut Diagnostic, b: &Mbarrier) {
        let own = b.traffic.own();
        d.title += &format!(", and its copies bring {} that nothing announces", counted(own, "byte"));
        d.help = format!(
            "Let the arrival that is missing announce the bytes: mbarrier.arrive.expect_tx, by the thread that issues the copies; the announcements of \
             a phase come to {own} bytes together."
        );
        d.labels.extend(self.byte_labels(&b.traffic));
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
        let completed = traffic.completed.iter().take(2);
        let completed =
            completed.map(|b| self.label(b.site, format!("this completes {}{}", counted(b.bytes, "byte"), times(b))));
        announced.chain(brought).chain(completed).collect()
    }
}

/// A copy brings its bytes so often that the phase gets too many of them, and comes as often as the others without these.
fn comes_too_often(traffic: &Traffic) -> Option<(u32, String)> {
    let surplus = sum(&traffic.brought).checked_sub(sum(&traffic.announced)).filter(|&surplus| surplus > 0)?;
    let often = |copy: &&Bytes| {
        let once = copy.bytes / u64::from(copy.times.max(1));
        let more = surplus.checked_div(once).filter(|more| more * once == surplus && *more < u64::from(copy.times));
        let others = || traffic.brought.iter().filter(|other| other.site != copy.site);
        let as_often = |more: u64| others().all(|other| u64::from(other.times) + more == u64::from(copy.times));
        others().next().is_some() && more.is_some_and(as_often)
    };
    let copy = traffic.brought.iter().find(often)?;
    Some((copy.site, ", more often than the others".to_string()))
}

fn uneven(traffic: &Traffic) -> String {
    let copies = match traffic.own() {
        0 => "copies bring none".into(),
        own => format!("its copies bring {}", counted(own, "byte")),
    };
    let late = match traffic.late {
        0 => String::new(),
        late => format!(", and those of an earlier phase leave it {}", counted(late, "byte")),
    };
    let completed = match sum(&traffic.completed) {
        0 => String::new(),
        n => format!(", and mbarrier.complete_tx completes {}", counted(n, "byte")),
    };
    match sum(&traffic.announced) {
        0 => format!("no bytes are announced, {copies}{late}{completed}"),
        n => format!("{} announced, {copies}{late}{completed}", counted_are(n, "byte")),
    }
}
