//! `setmaxnreg`: registers that warps of a CTA give back, and others take.

use super::{State, Warp};
use crate::diagnostic::{Diagnostic, Label, Severity};
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::explain::names::{counted, distinct};
use crate::machine::hang::Blocked;
use crate::machine::state::At;
use crate::program::op::{Inst, Op};
use crate::program::registers::MOST_REGISTERS;
use crate::protocol::What;
use std::cmp::Ordering;
use std::collections::BTreeMap;

const CODE: &str = "register-count";

/// Warps of a warpgroup.
const WARPS: u32 = 4;

/// A `setmaxnreg` that a warp has executed.
#[derive(Clone, Copy, Debug)]
pub struct Resized {
    count: u32,
    /// It is `.inc`.
    more: bool,
    site: u32,
    /// The warp's epoch then: who has heard of it knows that it was executed.
    epoch: u32,
}

impl Resized {
    fn what(&self) -> (u32, bool) {
        (self.count, self.more)
    }

    /// What one warp does here instead of the other is worth no more than a note. It is undefined all the same: but where each gives some
    /// away, if not as many, an H100 goes on, and CUTLASS has such a kernel for B200s; where one gives none, an H100 waits for ever.
    fn both_give(&self, instead: Option<&Resized>) -> bool {
        !self.more && instead.is_some_and(|it| !it.more)
    }
}

fn way(more: bool) -> &'static str {
    if more { "inc" } else { "dec" }
}

impl Cluster<'_> {
    /// Without `.maxnreg`, or `.minnctapersm` and a size of block, the assembler does not know how many registers a thread begins with, and
    /// passes it over (ptxas 13.5 says so).
    pub fn set_registers(&mut self, at: At, count: u32, more: bool) -> Result<(), Stop> {
        let At { w, f, mask, site } = at;
        self.whole_warp(w, mask, site)?;
        if self.kernel.max_registers.is_none() {
            self.without_effect();
            return Ok(());
        }
        let this = Resized { count, more, site, epoch: self.warps[w].epoch };
        if let Some(wrong) = self.against_warpgroup(w, this) {
            self.findings.add(wrong);
        }
        let (c, has) = (self.warps[w].cta, self.warps[w].most_registers);
        let order = has.cmp(&count);
        if order == if more { Ordering::Greater } else { Ordering::Less } {
            return Err(Some(Box::new(self.wrong_way(w, site, more, count))));
        }
        let lacks = count.saturating_sub(has);
        if more && lacks > self.ctas[c].spare_registers {
            self.warps[w].fragments[f].state = State::Registers(lacks);
            return Ok(());
        }
        if self.options.judges()
            && let Some(note) = self.since_the_last(w, this)
        {
            self.findings.add(note);
        }
        let spare = &mut self.ctas[c].spare_registers;
        if more {
            *spare -= lacks;
            self.warps[w].most_registers = has.max(count);
            self.warps[w].register_counts.push(this);
            self.record.add(w, mask, site, What::TakeRegisters { count: lacks as u16 });
            return Ok(());
        }
        *spare += has.saturating_sub(count);
        self.warps[w].most_registers = has.min(count);
        self.warps[w].register_counts.push(this);
        let given = has.saturating_sub(count) as u16;
        self.record.add(w, mask, site, What::GiveRegisters { count: given });
        let time = self.warps[w].fragments[f].ready_at;
        self.try_again(time, |cta, state| cta == c && matches!(state, State::Registers(_)));
        Ok(())
    }

    /// A note: nothing is wrong with such a `setmaxnreg`, but somebody may count on it.
    fn without_effect(&mut self) {
        // What is missing is missing for all of them.
        let all = || self.kernel.code.iter().filter(|inst| matches!(inst.op, Op::SetRegisters { .. }));
        let mut sites = distinct(all().map(|inst| inst.site)).into_iter();
        let Some(site) = sites.next() else { return };
        let (why, help) = match self.kernel.too_many_registers {
            Some(most) => (
                format!(".maxnreg {most} is ignored, since a thread can have {MOST_REGISTERS}"),
                format!("Write .maxnreg {MOST_REGISTERS} or less: so many that all threads of the CTA fit into the 65,536 registers of an SM."),
            ),
            None => (
                "nothing says how many registers a thread begins with".to_string(),
                "Say it by .maxnreg, or by .minnctapersm with .reqntid or .maxntid (in CUDA: __launch_bounds__ with the CTAs of an SM)."
                    .to_string(),
            ),
        };
        let mut diagnostic = self.problem(
            "setmaxnreg-without-effect",
            site,
            format!("setmaxnreg has no effect: {why}"),
            "setmaxnreg moves registers between warps, from the number with which all of them begin: the kernel must say that number (PTX \
             ISA, setmaxnreg); ptxas 13.5 ignores it otherwise.",
            help,
        );
        diagnostic.severity = Severity::Note;
        diagnostic.labels.extend(sites.map(|site| self.label(site, "nor has this one")));
        self.findings.add(diagnostic);
    }

    fn wrong_way(&self, w: usize, site: u32, more: bool, count: u32) -> Diagnostic {
        let has = self.warps[w].most_registers;
        let (which, than, other) = if more { ("inc", "at most", "dec") } else { ("dec", "at least", "inc") };
        self.problem(
            CODE,
            site,
            format!("setmaxnreg.{which} to {count} registers a thread, of which {} has {has}", self.warp_name(w)),
            "Before setmaxnreg.dec a warp has at least the registers that it names, before setmaxnreg.inc at most (PTX ISA, setmaxnreg).",
            format!("Use setmaxnreg.{other}, or a number for which the warp has {than} as many."),
        )
    }

    /// All warps of a warpgroup execute the same `setmaxnreg`s: said at the end of a run.
    pub fn registers_of_warpgroups(&mut self) {
        let mut found = Vec::new();
        for group in self.warps.chunk_by(|a, b| a.cta == b.cta && a.index / WARPS == b.index / WARPS) {
            // The first of those that have executed most.
            let Some(most) = group.iter().rev().max_by_key(|warp| warp.register_counts.len()) else { continue };
            // Where each other warp first does something else; what is more than a note comes first.
            let apart = |other: &'_ Warp| {
                let instead = |n: usize| other.register_counts.get(n).copied();
                let all = || most.register_counts.iter().enumerate().map(|(n, this)| (*this, instead(n)));
                let wrong = |(this, it): &(Resized, Option<Resized>)| !this.both_give(it.as_ref());
                let mut differ = all().filter(|(this, it)| it.map(|it| it.what()) != Some(this.what()));
                let grave = differ.clone().find(wrong);
                grave.or_else(|| differ.next())
            };
            let all: Vec<_> =
                group.iter().filter_map(|other| apart(other).map(|(this, it)| (other, this, it))).collect();
            let grave = all.iter().find(|(_, this, it)| !this.both_give(it.as_ref()));
            let Some((other, this, instead)) = grave.or(all.first()) else { continue };
            let diagnostic = self.other_registers(most, *this, other, instead.as_ref());
            // It is told already where both have executed one.
            if !diagnostic.labels.iter().any(|label| self.findings.tells(CODE, diagnostic.severity, &label.place)) {
                found.push(diagnostic);
            }
        }
        found.into_iter().for_each(|diagnostic| self.findings.add(diagnostic));
    }

    /// A warp executes a `setmaxnreg`, another one of its warpgroup another one or none.
    fn other_registers(&self, warp: &Warp, this: Resized, other: &Warp, instead: Option<&Resized>) -> Diagnostic {
        let text = match instead {
            None => "does not".to_string(),
            Some(Resized { count, more, .. }) => format!("setmaxnreg.{} to {count} instead", way(*more)),
        };
        let first = warp.index / WARPS * WARPS;
        let last = self.warps.iter().filter(|w| w.cta == warp.cta).map(|w| w.index).max().unwrap_or(first);
        let mut diagnostic = self.problem(
            CODE,
            this.site,
            format!(
                "warp {} executes setmaxnreg.{} to {}, warp {} of its warpgroup {text}",
                warp.index,
                way(this.more),
                this.count,
                other.index
            ),
            "The same setmaxnreg is executed by all warps of a warpgroup; otherwise the behaviour is undefined (PTX ISA, setmaxnreg).",
            format!(
                "Let warps {first} to {} execute it, each in its role if they have several.",
                last.min(first + WARPS - 1)
            ),
        );
        let there = instead.map(|it| self.label(it.site, format!("executed by warp {}", other.index)));
        diagnostic.labels.extend(there);
        // The run goes on, to show the rest.
        diagnostic.severity = if this.both_give(instead) { Severity::Note } else { Severity::Finding };
        diagnostic
    }

    /// The `setmaxnreg` that a warp comes to is another one than a warp of its warpgroup has executed.
    fn against_warpgroup(&self, w: usize, this: Resized) -> Option<Diagnostic> {
        let warp = &self.warps[w];
        let theirs = |other: &'_ Warp| other.register_counts.get(warp.register_counts.len()).copied();
        let differs = |other: &&Warp| theirs(other).is_some_and(|it| it.what() != this.what());
        let other = self.others_of_warpgroup(warp).find(differs)?;
        Some(self.other_registers(warp, this, other, theirs(other).as_ref()))
    }

    fn others_of_warpgroup<'a>(&'a self, warp: &'a Warp) -> impl Iterator<Item = &'a Warp> {
        let group = |other: &&Warp| other.cta == warp.cta && other.index / WARPS == warp.index / WARPS;
        self.warps.iter().filter(group).filter(|other| other.index != warp.index && other.live != 0)
    }

    /// A warp has executed a `setmaxnreg` before, and its warpgroup has not synchronised since. A note: kernels of Triton leave it at that.
    fn since_the_last(&self, w: usize, this: Resized) -> Option<Diagnostic> {
        let warp = &self.warps[w];
        let before = warp.register_counts.last()?;
        let unknown = |other: &&Warp| {
            let theirs = other.register_counts.get(warp.register_counts.len() - 1);
            theirs.is_none_or(|it| !warp.has_heard_of(other.actor, it.epoch))
        };
        let other = self.others_of_warpgroup(warp).find(unknown)?;
        let mut diagnostic = self.problem(
            "setmaxnreg-unordered",
            this.site,
            format!(
                "warp {} executes setmaxnreg.{} to {}, and does not know that warp {} of its warpgroup has executed the one before",
                warp.index,
                way(this.more),
                this.count,
                other.index
            ),
            "After a setmaxnreg, all warps of the warpgroup synchronise explicitly before they execute another one (PTX ISA, setmaxnreg).",
            "Put a barrier of the warpgroup between the two: bar.sync with a number of its own, and 128 threads.".into(),
        );
        diagnostic.severity = Severity::Note;
        diagnostic.labels.push(self.label(before.site, "the one before; nothing orders all four warps behind it"));
        Some(diagnostic)
    }

    /// Waits for registers, and of the warps of its CTA that wait for something, too, none would come to where it gives some back: what they
    /// wait for makes no difference.
    pub fn is_starved(&self, blocked: &[Blocked], waiter: &Blocked) -> bool {
        let sites = self.places_that_give();
        let cta = |b: &Blocked| self.warps[b.warp].cta;
        let comes = |other: &Blocked| {
            cta(other) == cta(waiter) && other.warp != waiter.warp && self.leads_to(other, &sites).is_some()
        };
        matches!(waiter.state, State::Registers(_)) && !blocked.iter().any(comes)
    }

    /// A hang: nobody gives back what this warp asks for.
    pub fn stuck_registers(&self, blocked: &[Blocked], waiter: &Blocked, lacks: u32) -> Diagnostic {
        let (w, site) = (waiter.warp, waiter.site);
        let warp = &self.warps[w];
        let spare = self.ctas[warp.cta].spare_registers;
        let title = format!(
            "setmaxnreg.inc of {} waits for {} a thread more, and the other warps of its CTA have left {spare}",
            self.warp_name(w),
            counted(lacks, "register")
        );
        let begin = self.kernel.max_registers.unwrap_or(0);
        let mut d = self.hang(
            site,
            title,
            format!("Let setmaxnreg.dec give as many back as setmaxnreg.inc takes: every warp begins with {begin} a thread (.maxnreg, or what .minnctapersm leaves)."),
        );
        d.rule = "setmaxnreg.inc waits until the CTA's pool has enough registers, and only setmaxnreg.dec of its other warps fills it \
                  (PTX ISA, setmaxnreg)."
            .into();
        if let Some((label, help)) = self.gives_none(blocked, warp.cta).or_else(|| self.gives_later(blocked, waiter)) {
            d.labels.push(label);
            d.help = help;
        }
        d.labels
            .extend(self.pool_account(warp.cta).into_iter().filter(|label| label.place.line != self.place(site).line));
        d
    }

    /// Some warps of a warpgroup have given registers back, and others have not, and do not come to where they would.
    fn gives_none(&self, blocked: &[Blocked], c: usize) -> Option<(Label, String)> {
        let sites = self.places_that_give();
        let of_cta: Vec<&Warp> = self.warps.iter().filter(|warp| warp.cta == c).collect();
        of_cta.chunk_by(|a, b| a.index / WARPS == b.index / WARPS).find_map(|group| {
            let gives = |warp: &&Warp| warp.register_counts.first().copied().filter(|it| !it.more);
            let given = group.iter().find_map(gives)?;
            let comes = |warp: &Warp| {
                let of_warp = |b: &&Blocked| self.warps[b.warp].cta == c && self.warps[b.warp].index == warp.index;
                blocked.iter().filter(of_warp).any(|b| self.leads_to(b, &sites).is_some())
            };
            let never = |warp: &&&Warp| warp.register_counts.is_empty() && !comes(warp);
            let others: Vec<u32> = group.iter().filter(never).map(|warp| warp.index).collect();
            let (first, last) = (group.first()?.index, group.last()?.index);
            let does = if others.len() == 1 { "does" } else { "do" };
            let text = format!("{} of this warpgroup {does} not execute it", these_warps(&others));
            let help = format!("Let all warps of the warpgroup, {first} to {last}, execute this setmaxnreg.dec.");
            (!others.is_empty()).then(|| (self.label(given.site, text), help))
        })
    }

    /// The statements that give registers back.
    fn places_that_give(&self) -> Vec<u32> {
        let gives = |inst: &&Inst| matches!(inst.op, Op::SetRegisters { more: false, .. });
        self.kernel.code.iter().filter(gives).map(|inst| inst.site).collect()
    }

    /// A warp that stands at a barrier of the CTA would give registers back behind it.
    fn gives_later(&self, blocked: &[Blocked], waiter: &Blocked) -> Option<(Label, String)> {
        let sites = self.places_that_give();
        let stands = |other: &&Blocked| {
            matches!(other.state, State::CtaBarrier(_))
                && self.warps[other.warp].cta == self.warps[waiter.warp].cta
                && self.warps[other.warp].register_counts.is_empty()
        };
        let (other, site) = blocked.iter().filter(stands).find_map(|other| {
            let near = |&site: &u32| self.leads_to(other, &[site]);
            Some((other, sites.iter().copied().filter(|site| near(site).is_some()).min_by_key(near)?))
        })?;
        let State::CtaBarrier(id) = other.state else { return None };
        let (who, takes) = (self.warp_name(other.warp), self.warp_name(waiter.warp));
        let text = format!("{who} would give registers back here, behind CTA barrier {id}");
        let help = format!(
            "Let setmaxnreg.dec stand in front of CTA barrier {id}: {takes} comes there only when it has got its registers."
        );
        Some((self.label(site, text), help))
    }

    /// Which statements have filled the pool of a CTA, and which have emptied it: one of these numbers is wrong where the pool has too few.
    fn pool_account(&self, c: usize) -> Vec<Label> {
        let begin = self.kernel.max_registers.unwrap_or(0).next_multiple_of(8);
        let mut all: BTreeMap<(bool, u32, u32), Vec<u32>> = BTreeMap::new();
        for warp in self.warps.iter().filter(|warp| warp.cta == c) {
            let mut has = begin;
            for &Resized { count, more, site, .. } in &warp.register_counts {
                all.entry((more, site, has.abs_diff(count))).or_default().push(warp.index);
                has = count;
            }
        }
        let label = |((more, site, by), warps): ((bool, u32, u32), Vec<u32>)| {
            let does = if more { "took" } else { "gave" };
            self.label(site, format!("{} {does} {} a thread here", these_warps(&warps), counted(by, "register")))
        };
        all.into_iter().map(label).collect()
    }
}

/// `warp 1`, `warps 1 to 4`, `warps 1, 3`.
fn these_warps(warps: &[u32]) -> String {
    match warps {
        [one] => format!("warp {one}"),
        [first, .., last] if (last - first) as usize + 1 == warps.len() => format!("warps {first} to {last}"),
        _ => format!("warps {}", warps.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
    }
}
