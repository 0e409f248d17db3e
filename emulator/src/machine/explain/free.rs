//! Races of a buffer that is used in rounds: who reads it says when it is free again, and who writes it anew does not wait for that, or is not told.

use super::copy::Cure;
use super::names::{counted, distinct};
use crate::diagnostic::{Label, Meaning};
use crate::machine::barrier::mbarrier::Came;
use crate::machine::cluster::Cluster;
use crate::machine::state::{ActorKind, Race, RaceMemory};
use crate::order::Stamp;

const RULE: &str = "What is read may be overwritten only by who knows that: who has waited for an mbarrier at which the readers arrive when they have read it \
                    (PTX ISA 8.9.5, 9.7.13.15.13, 9.7.13.15.16).";

/// Who reads, and who writes: its warps.
struct Sides {
    reads: Stamp,
    reader: usize,
    writers: Vec<usize>,
}

impl Cluster<'_> {
    /// Who reads says at an mbarrier that the buffer is free, and a warp that writes it, or has it written, never waits there.
    pub fn cure_of_a_missing_wait(&self, race: &Race) -> Option<Cure> {
        let sides = self.sides(race)?;
        let (writer, told) = self.writer_that_is_not_told(&sides)?;
        let (who, reader) = (self.warp_name(writer), self.warp_name(sides.reader));
        // It reads what it was told of: else it is the reader that does not wait.
        let passed = &self.warps[sides.reader].passed;
        let tells = |n: u32| self.barriers[n as usize].came.iter().any(|came| came.warp == writer);
        if race.conflict.first_writes && !passed.iter().any(|p| p.phase.is_some() && tells(p.barrier)) {
            return None;
        }
        if let Some(cure) = self.told_at_home(&sides, writer, &told) {
            return Some(cure);
        }
        // A wait is for an mbarrier of the own CTA.
        let home = self.warps[writer].cta;
        let &(barrier, came) = told.iter().find(|(n, _)| self.barriers[*n as usize].cta == home)?;
        let name = self.barrier_name(barrier);
        let text = format!("{reader} arrives at {name} here, when it has read it; {who} never waits for that");
        Some(Cure {
            labels: vec![self.label(came.site, text)],
            ..Cure::new(
                RULE,
                format!(
                    "Let {who} wait for {name} before it writes {{}} again: mbarrier.try_wait.parity, with parity 1 in the first round, which passes on a \
                     fresh mbarrier."
                ),
            )
        })
    }

    /// A warp that writes, or has it written, waits until the buffer is free, and not for this reader: it arrives nowhere while others do, or the mbarrier
    /// is complete with the arrival of one of them.
    pub fn cure_of_a_reader_not_counted(&self, race: &Race) -> Option<Cure> {
        let sides = self.sides(race)?;
        let reader = sides.reader;
        // It has waited as it should, for each phase once: else the wait is wrong.
        let waited = |w: usize, n: u32| {
            let mut passed = self.warps[w].passed.iter();
            passed.any(|p| p.barrier == n && p.phase.is_some() && p.fresh && !p.again && !p.lost)
        };
        let writers = || sides.writers.iter().copied().filter(|&w| w != reader);
        let tells = |w: usize, n: u32| self.barriers[n as usize].came.iter().any(|came| came.warp == w);
        let all = || (0..self.barriers.len() as u32).filter(|&n| self.barriers[n as usize].valid);
        // Who announces bytes says of nothing that it is free.
        let announces = |site: u32| self.kernel.code.iter().any(|inst| inst.site == site && inst.op.announces());
        let words = |n: u32| -> Vec<Came> {
            let came = self.comes_by_threads(&self.barriers[n as usize]).copied();
            came.filter(|came| !announces(came.site)).collect()
        };
        let told = |w: usize, of: usize| all().find(|&n| waited(w, n) && tells(of, n));
        writers().find_map(|writer| {
            let data = told(reader, writer)?;
            // Others that are told of the same data, or the reader itself, arrive where the writer waits.
            let free = all().find(|&n| {
                let mut words = words(n).into_iter();
                n != data
                    && self.warps[writer].passed.iter().any(|p| p.barrier == n)
                    && words.any(|came| came.warp == reader || waited(came.warp, data))
            })?;
            let b = &self.barriers[free as usize];
            // What its MMAs have read, its commit tells.
            if b.came.iter().any(|came| came.warp == reader && self.is_commit(came.site)) {
                return None;
            }
            let (name, who) = (self.barrier_name(free), self.warp_name(reader));
            let init = self.label(
                b.init.site,
                format!("{name} is initialised for {} a phase", counted(b.expected, "arrival")),
            );
            if words(free).iter().all(|came| came.warp != reader) {
                let other = words(free).into_iter().find(|came| waited(came.warp, data))?;
                let text = format!(
                    "{} arrives at {name} here, for which {} waits; {who} never does",
                    self.warp_name(other.warp),
                    self.warp_name(writer)
                );
                let help = format!("Let {who} arrive at {name}, too, behind its access, and initialise it for as many arrivals as there are readers.");
                return Some(Cure { labels: vec![self.label(other.site, text), init], ..Cure::new(RULE, help) });
            }
            let arrivers = self.warps_that_arrive(b);
            if arrivers <= b.expected {
                return None;
            }
            let help = format!(
                "Initialise {name} for as many arrivals as there are readers, and let each arrive in every round: {arrivers} warps arrive at it, and it \
                 counts {}.",
                b.expected
            );
            Some(Cure { labels: vec![init.that_means(Meaning::CountsTooFew)], ..Cure::new(RULE, help) })
        })
    }

    /// The same of a warp of another CTA, which waits for the mbarrier of that name in its own.
    pub fn cure_of_word_at_home(&self, race: &Race) -> Option<Cure> {
        let sides = self.sides(race)?;
        let (writer, told) = self.writer_that_is_not_told(&sides)?;
        self.told_at_home(&sides, writer, &told)
    }

    fn sides(&self, race: &Race) -> Option<Sides> {
        let (first, second) = (race.conflict.first, race.second);
        let (reads, writes) = match (race.conflict.first_writes, race.conflict.second_writes) {
            (false, true) => (first, second),
            (true, false) => (second, first),
            _ => return None,
        };
        let reader = match self.kind(reads)? {
            ActorKind::Warp(w) | ActorKind::Mmas { warp: w, .. } => w as usize,
            _ => return None,
        };
        let RaceMemory::Shared(cta) = race.memory else { return None };
        let writers = match self.kind(writes)? {
            ActorKind::Warp(w) | ActorKind::AsyncCopies(w) => vec![w as usize],
            ActorKind::Mbarrier => self.issuers_of_load(writes.site, cta, race.conflict.byte as u32),
            _ => return None,
        };
        Some(Sides { reads, reader, writers })
    }

    /// The warps whose copies, by this statement, write a byte of a CTA's shared memory.
    fn issuers_of_load(&self, site: u32, cta: usize, byte: u32) -> Vec<usize> {
        let there = |copy: &&crate::machine::tma::Copy| {
            let mut to = copy.shared.iter();
            copy.site == site && to.any(|to| to.cta == cta && (to.offset..to.offset + copy.extent).contains(&byte))
        };
        let copies = self.copies.iter().filter(there).map(|copy| copy.warp);
        distinct(copies.chain(self.askers(site, cta, byte)))
    }

    /// A warp that writes, and waits for none of the mbarriers at which the reader arrives behind its access; and these, the nearest first.
    fn writer_that_is_not_told(&self, sides: &Sides) -> Option<(usize, Vec<(u32, Came)>)> {
        let commits = matches!(self.kind(sides.reads), Some(ActorKind::Mmas { .. }));
        let behind = |came: &&Came| {
            let own = came.warp == sides.reader && !came.bytes && self.is_commit(came.site) == commits;
            own && self.comes_behind(came.site, sides.reads.site)
        };
        let valid = (0..self.barriers.len() as u32).filter(|&n| self.barriers[n as usize].valid);
        let mut told: Vec<(u32, Came)> =
            valid.filter_map(|n| Some((n, *self.barriers[n as usize].came.iter().find(behind)?))).collect();
        told.sort_by_key(|(_, came)| came.site.wrapping_sub(sides.reads.site));
        let waits = |w: usize, n: u32| self.warps[w].passed.iter().any(|passed| passed.barrier == n);
        // Where the reader waits, too, it is told, and does not tell. Where others wait who bring nothing here, it tells of something else.
        let brings = |w: usize| {
            sides.writers.contains(&w)
                || self.copies.iter().any(|copy| copy.warp == w)
                || self.responses.iter().any(|response| response.warp == w)
        };
        let for_others = |n: u32| (0..self.warps.len()).any(|w| waits(w, n) && !brings(w));
        told.retain(|&(n, _)| !waits(sides.reader, n) && !for_others(n));
        let mut writers = sides.writers.iter().filter(|&&w| w != sides.reader);
        let writer = *writers.find(|&&w| !told.is_empty() && told.iter().all(|&(n, _)| !waits(w, n)))?;
        Some((writer, told))
    }

    /// Of phases that were complete before copies for which more bytes came than were announced: a warp whose copies come goes round without waiting
    /// for those who read the bytes.
    pub fn tell_who_runs_ahead(&mut self) {
        for (barrier, place, copies) in std::mem::take(&mut self.early_phases) {
            let Some((label, help)) = self.runs_ahead(barrier, &copies) else { continue };
            self.findings.amend("phase-completed-early", &place, |d| {
                if d.labels.iter().all(|known| known.place != label.place) {
                    d.labels.push(label);
                    d.help = help;
                }
            });
        }
    }

    fn runs_ahead(&self, barrier: u32, copies: &[u32]) -> Option<(Label, String)> {
        let passes = |w: usize, n: u32| self.warps[w].passed.iter().any(|passed| passed.barrier == n);
        let came = self.barriers[barrier as usize].came.iter();
        let issuers = distinct(came.filter(|came| came.bytes && copies.contains(&came.site)).map(|came| came.warp));
        let reads = |w: usize| passes(w, barrier) && !issuers.contains(&w);
        issuers.iter().find_map(|&w| {
            let told = (0..self.barriers.len() as u32).filter(|&n| {
                let b = &self.barriers[n as usize];
                n != barrier && b.valid && b.cta == self.warps[w].cta && !passes(w, n)
            });
            let mut told = told.filter_map(|n| {
                let b = &self.barriers[n as usize];
                let came = b.came.iter().find(|came| !came.bytes && reads(came.warp))?;
                // Nobody waits there at all, or those who issue the same copies in other CTAs do.
                let nobody = (0..self.warps.len()).all(|w| !passes(w, n));
                let twin = |m: u32| self.barriers[m as usize].valid && self.barriers[m as usize].offset == b.offset;
                let others = || issuers.iter().any(|&w| (0..self.barriers.len() as u32).any(|m| twin(m) && passes(w, m)));
                (nobody || others()).then_some((n, came.site))
            });
            let (n, site) = told.next()?;
            let (who, name) = (self.warp_name(w), self.barrier_name(n));
            let text = format!("this arrives at {name}, when the bytes have been read; {who}, whose copies come too early, never waits for that");
            let help = format!(
                "Let {who} wait for {name} before it issues the copies of the next round: mbarrier.try_wait.parity, with parity 1 in the first round, which \
                 passes on a fresh mbarrier."
            );
            Some((self.label(site, text), help))
        })
    }

    fn told_at_home(&self, sides: &Sides, writer: usize, told: &[(u32, Came)]) -> Option<Cure> {
        let home = self.warps[writer].cta;
        let (barrier, came, twin) = told.iter().find_map(|&(n, came)| {
            let b = &self.barriers[n as usize];
            let awaited = |&m: &u32| {
                let other = &self.barriers[m as usize];
                let twin = other.valid && other.cta == home && other.cta != b.cta && other.offset == b.offset;
                twin && self.warps[writer].passed.iter().any(|passed| passed.barrier == m)
            };
            Some((n, came, (0..self.barriers.len() as u32).find(awaited)?))
        })?;
        let (name, there) = (self.barrier_name(barrier), self.barrier_name(twin));
        let who = match self.is_commit(came.site) {
            true => "this commit".to_string(),
            false => self.warp_name(sides.reader),
        };
        let text = format!(
            "{who} arrives at {name} alone; {}, whose copy writes here, waits for {there}",
            self.warp_name(writer)
        );
        let help = match self.is_commit(came.site) {
            true => format!(
                "Let the commit arrive at {there}, too: tcgen05.commit with .multicast::cluster and a mask of all CTAs whose copies write what its MMAs \
                 read; and initialise the mbarrier for the commits of all of them."
            ),
            false => format!(
                "Let {who} arrive at {there}, too: mbarrier.arrive with .shared::cluster, at the address that mapa gives for CTA {home}; and initialise \
                 the mbarrier for the readers of all CTAs."
            ),
        };
        Some(Cure { labels: vec![self.label(came.site, text)], ..Cure::new(RULE, help) })
    }
}
