//! A wait for an mbarrier that never ends: arrivals, bytes or all of them are missing, or its phase went by.

use super::Blocked;
use super::never::NEVER_EXECUTED;
use super::role::Barred;
use super::root::by_site;
use super::twins::leaves_out;
use crate::diagnostic::{Diagnostic, Meaning, join_labels};
use crate::machine::barrier::mbarrier::{Came, Mbarrier};
use crate::machine::cluster::Cluster;
use crate::machine::explain::names::{counted, distinct};
use crate::program::op::Op;
use crate::protocol::{Step, What};
use std::collections::BTreeMap;

/// So many phases that a waiter has not seen are no matter of its parity: something arrives too often.
const OFTEN: u32 = 5;

/// What to do about an mbarrier at which more threads arrive in a round than it counts.
pub fn counts_too_few_threads(name: &str, arrivals: u32, expected: u32) -> String {
    format!(
        "Initialise {name} for as many arrivals as come in one phase: {arrivals} arrive in a round, and it counts {expected}. If it counts what it should, \
         let no more arrive."
    )
}

/// What to do about an mbarrier at which more warps arrive in a phase than it counts.
pub fn counts_too_few(name: &str, arrivers: u32, expected: u32) -> String {
    format!(
        "Initialise {name} for as many arrivals as come in one phase: {arrivers} warps arrive at it, and it counts {expected}."
    )
}

impl Cluster<'_> {
    /// What lacks. `partner`: of two that wait for each other, the other one.
    pub fn stuck_mbarrier(
        &self,
        blocked: &[Blocked],
        root: &Blocked,
        (barrier, parity): (u32, u32),
        partner: Option<&Blocked>,
    ) -> Diagnostic {
        let b = &self.barriers[barrier as usize];
        let name = self.barrier_name(barrier);
        let got = b.expected - b.pending;
        let wait = self.label(
            root.site,
            format!("{} waits for {name}, parity {parity} (phase {})", self.warp_name(root.warp), b.phase),
        );
        let init = self.made_for(barrier);
        if got > 0 && b.pending > 0 {
            let mut d = self.hang(
                b.init.site,
                format!(
                    "{name} never completes phase {}: it waits for {} and gets {got}",
                    b.phase,
                    counted(b.expected, "arrival")
                ),
                match b.expected == 32 * got && self.due(root).is_empty() {
                    true => format!(
                        "One lane of a warp arrives where 32 are counted: let all lanes arrive (this stands under elect, or a guard that \
                         lets one lane pass), or initialise it for {}.",
                        counted(got, "arrival")
                    ),
                    false => format!(
                        "Initialise it for as many arrivals as happen in a phase ({got}), or let the missing ones arrive."
                    ),
                },
            );
            // Of an arrival that lacks, the wait tells more than the count.
            d.labels = if self.is_made_for_too_many(b) { vec![init, wait] } else { vec![wait, init] };
            for (site, n) in by_site(&b.arrivals).into_iter().take(2) {
                let warps =
                    b.came.iter().filter(|came| (came.site, came.phase, came.bytes) == (site, b.phase, false)).count();
                let lanes = n.checked_div(warps as u32).filter(|&lanes| lanes < 32 && lanes * warps as u32 == n);
                let of = match lanes {
                    Some(lanes) if b.expected > n && !self.is_commit(site) => {
                        format!(
                            ": {} of {}",
                            counted(lanes, "lane"),
                            if warps == 1 { "one warp".into() } else { format!("each of {warps} warps") }
                        )
                    }
                    _ => String::new(),
                };
                d.labels.push(self.label(site, format!("{} from here{of}", counted(n, "arrival"))));
            }
            if self.is_unannounced(b) {
                self.tell_unannounced(&mut d, b);
            }
            // Made for whole warps, and what has come is a commit, of the warp that waits for them: it is meant for another one.
            let own = |site: u32| b.came.iter().any(|came| (came.warp, came.site) == (root.warp, site));
            let astray = |&(site, _): &(u32, u32)| self.is_commit(site) && own(site);
            if b.expected.is_multiple_of(32) && b.arrivals.iter().all(astray) {
                d.labels.rotate_right(1);
            }
            if let Some((site, barred)) = self.arrival_barred(blocked, b) {
                self.add_barred(&mut d, site, NEVER_EXECUTED, &barred);
            } else if let Some((site, other)) = self.commit_elsewhere(barrier) {
                d.help = leaves_out(b.cta);
                // What is to be changed comes first.
                let place = self.place(site);
                d.labels.retain(|label| label.place != place);
                let text = format!("this arrives at {}, and not at {name}", self.barrier_name(other));
                d.labels.insert(0, self.label(site, text));
            } else if let Some(twin) = self.idle_twin(blocked, barrier) {
                self.arrivals_elsewhere(&mut d, barrier, twin);
            } else if self.all_arrive_at_home(b, got) {
                let all = b.expected / got;
                d.help = format!(
                    "{name} is initialised for the arrivals of {all} CTAs, and each CTA arrives at its own mbarrier alone: let all arrive at {name}, \
                     too, by mbarrier.arrive with .shared::cluster, at the address that mapa gives for its CTA; a commit by .multicast::cluster, with a \
                     mask of all CTAs."
                );
            }
            return d;
        }
        if b.bytes != 0 && (b.pending == 0 || got == 0) {
            let mut d = self.stuck_bytes(blocked, root.site, barrier, wait);
            let known = d.labels.iter().any(|label| label.meaning == Meaning::LeavesOut);
            if let Some(twin) = self.idle_twin(blocked, barrier).filter(|_| b.bytes > 0 && !known) {
                self.bytes_elsewhere(&mut d, barrier, twin);
            }
            return d;
        }
        let known = self.warps[root.warp].views.came_before(b.actor);
        if b.next_epoch() > known + 2 {
            // Phases went by that the waiter never saw.
            let arrivers = self.warps_that_arrive(b);
            let arrivals = self.arrivals_of_a_round(barrier).filter(|&arrivals| arrivals > b.expected);
            let arrivals = arrivals.or_else(|| self.more_arrive_than_it_counts(barrier));
            let never_changes = self.asks_for_one_parity(root, (barrier, parity));
            let mut d = self.hang(
                root.site,
                format!(
                    "the wait for {name}, parity {parity}, never ends: {} complete before it came",
                    counted(b.phase, "phase") + if b.phase == 1 { " was" } else { " were" }
                ),
                match b.history.iter().any(|&(_, site)| self.is_commit(site)) {
                    _ if let Some(times) = never_changes => format!(
                        "This statement asks for parity {parity} each time, {times} times so far: let the parity change from one phase to the next; in a ring, \
                         when the stage begins at 0 again."
                    ),
                    _ if arrivers > b.expected => counts_too_few(&name, arrivers, b.expected),
                    _ if arrivals.is_some() => counts_too_few_threads(&name, arrivals.unwrap_or_default(), b.expected),
                    false if b.next_epoch() > known + OFTEN => "Let those who arrive do so once for each wait: behind their loop, not in every round of it."
                        .into(),
                    true => "Let one arrival complete one phase for each wait: a single tcgen05.commit, after the last MMA.".into(),
                    false => "Wait for the phases one after the other: phase n has parity n mod 2, and the parity goes on from one \
                              round of the loop to the next."
                        .into(),
                },
            );
            d.labels = vec![wait];
            if never_changes.is_none() && (arrivers > b.expected || arrivals.is_some()) {
                d.labels.insert(0, init.that_means(Meaning::CountsTooFew));
            }
            let mut sites: Vec<u32> = b.history.iter().map(|&(_, site)| site).collect();
            sites.dedup();
            for site in sites.into_iter().take(3) {
                d.labels.push(self.label(site, "an arrival from here completed a phase"));
            }
            return d;
        }
        if let Some(rounds) = self.unequal_rounds(blocked, root) {
            return self.tell_unequal_rounds(root, &rounds, &name, wait);
        }
        if b.phase > 0 {
            // By threads: what its own copies and MMAs tell a warp comes from nobody else.
            let seen = self.has_seen(root, barrier, b.phase - 1);
            // Nor does who has not seen the last phase hold itself up: its parity is that of the phase behind it.
            let held_up = self.held_up(blocked, root).filter(|who| seen || *who != self.warp_name(root.warp));
            let own = |came: &Came| came.warp == root.warp && !came.bytes && !self.is_commit(came.site);
            let arrivers = self.warps_that_arrive(b);
            let too_few = !seen && arrivers > b.expected;
            // Its first wait there is for what comes behind a phase that is complete, and holds up who would arrive for that.
            let waited = self.warps[root.warp].passed.iter().any(|passed| passed.barrier == barrier);
            let passes_over = !seen && !waited && self.would_arrive(blocked, root, b.offset);
            let mut d = self.hang(
                root.site,
                format!("the wait for phase {} of {name} (parity {parity}) never ends: nothing arrives any more after phase {}", b.phase, b.phase - 1),
                match held_up {
                    _ if too_few => counts_too_few(&name, arrivers, b.expected),
                    // It has seen that phase, so the parity is right: what lacks is an arrival, or this wait is one too many.
                    None if seen => format!(
                        "{} has seen phase {} and waits for one more: let what arrived for phase {} come once more, or let this wait go \
                         round as often.",
                        self.warp_name(root.warp),
                        b.phase - 1,
                        b.phase - 1
                    ),
                    _ if b.came.iter().all(own) => format!(
                        "Nobody but {} has arrived at it: let those who use what it guards arrive when they are done with it, in every round.",
                        self.warp_name(root.warp)
                    ),
                    Some(due) if !passes_over => format!(
                        "Let {due}, whose arrival completed phase {}, arrive once more before it waits where it does now.",
                        b.phase - 1
                    ),
                    _ => format!(
                        "Phase n has parity n mod 2: to wait for phase {}, use parity {}.",
                        b.phase - 1,
                        (b.phase - 1) % 2
                    ),
                },
            );
            d.labels = vec![wait];
            if too_few {
                d.labels.insert(0, init);
            }
            for (site, _) in by_site(&b.previous).into_iter().take(2) {
                d.labels.push(self.label(site, format!("the last arrival (phase {}) came from here", b.phase - 1)));
            }
            return d;
        }
        if let Some(site) = self.adds_what_it_takes(b) {
            let mut d = self.hang(
                root.site,
                format!("the wait for {name} never ends: what arrives at it adds as many arrivals to the phase before"),
                "Write cp.async.mbarrier.arrive.noinc, where the mbarrier is initialised for these arrivals; without .noinc others have to arrive as \
                 often as it is initialised for."
                    .into(),
            );
            d.rule = "cp.async.mbarrier.arrive without .noinc raises the pending count of the phase by one when it is executed, and lowers it by one when \
                      the copies are complete (PTX ISA, cp.async.mbarrier.arrive)."
                .into();
            let text = format!("without .noinc: this adds to the pending count of {name} what it takes away");
            d.labels = vec![self.label(site, text), wait, init];
            return d;
        }
        self.never_told(blocked, root, (barrier, parity), wait, partner)
    }

    /// Who waits would ask for another cluster next, and waits until the last response is read: those who have waited for that response, and have never
    /// said that they have read it.
    pub fn add_readers_of_a_response(&self, root: &Blocked, barrier: u32, d: &mut Diagnostic) {
        let b = &self.barriers[barrier as usize];
        let mut asked = self.responses.iter().filter(|response| response.warp == root.warp).peekable();
        let asks = asked.peek().is_some_and(|response| self.leads_past_no_wait(root.site, response.site));
        if !asks {
            return;
        }
        let answered: Vec<u32> = asked.flat_map(|response| response.targets.iter().map(|target| target.1)).collect();
        let came = |w: usize| b.came.iter().any(|came| came.warp == w);
        let reads = |w: usize| {
            let passed = self.warps[w].passed.iter().rev().find(|passed| answered.contains(&passed.barrier))?;
            Some((w, passed.site))
        };
        let all: Vec<(usize, u32)> = (0..self.warps.len()).filter_map(reads).collect();
        // Of warps that read it together, one may speak for all.
        let of = |(w, site): (usize, u32)| (self.warps[w].cta, site);
        let spoken_for = |one: (usize, u32)| all.iter().any(|&other| of(other) == of(one) && came(other.0));
        let readers: Vec<(usize, u32)> =
            all.iter().copied().filter(|&one| one.0 != root.warp && !spoken_for(one)).collect();
        if readers.is_empty() || readers.len() > b.pending as usize {
            return;
        }
        let name = self.barrier_name(barrier);
        let who: Vec<String> = readers.iter().map(|&(w, _)| self.warp_name(w)).collect();
        let who = who.join(" and ");
        let waits = |&(w, site): &(usize, u32)| {
            self.label(site, format!("{} waits for the response here, and never arrives at {name}", self.warp_name(w)))
        };
        join_labels(&mut d.labels, readers.iter().map(waits).collect());
        d.help = format!(
            "Let {who} arrive at {name} behind the last use of the response, in every round: the next request, which overwrites it, waits for that."
        );
    }

    /// A warp has passed the same wait before, more than once and always with this parity, and by no other statement waits for this mbarrier: how often.
    fn asks_for_one_parity(&self, root: &Blocked, (barrier, parity): (u32, u32)) -> Option<usize> {
        let waits = || self.waits_at(barrier).filter(|(step, _)| usize::from(step.warp) == root.warp);
        let same = |(step, of): (&Step, u8)| (step.site, u32::from(of)) == (root.site, parity);
        let times = waits().count();
        (times > 1 && waits().all(same)).then_some(times)
    }

    /// A statement that arrives at mbarriers of this group and was never executed, and what keeps all from it.
    fn arrival_barred(&self, blocked: &[Blocked], b: &Mbarrier) -> Option<(u32, Barred)> {
        let mut named = self.arrival_sites_anywhere(b.offset);
        named.extend(self.sure_to_arrive(b.offset));
        let mut never = named.into_iter().filter(|&site| !self.has_arrived(site));
        never.find_map(|site| Some((site, self.barred(blocked, site, |_| true)?)))
    }

    /// So many arrivals of threads come in a round, where all that arrive have come round equally often, each by one statement.
    fn arrivals_of_a_round(&self, barrier: u32) -> Option<u32> {
        if self.record.is_off() || self.record.is_full() {
            return None;
        }
        let mut by: BTreeMap<(u16, u32, u32), u32> = BTreeMap::new();
        let mut all = 0u64;
        for step in &self.record.steps {
            let What::Arrive { barrier: to, count, .. } = step.what else { continue };
            if to == barrier && count > 0 {
                *by.entry((step.warp, step.lanes, step.site)).or_default() += 1;
                all += u64::from(count);
            }
        }
        let &rounds = by.values().next()?;
        let of_a_round = all / u64::from(rounds);
        let even = by.values().all(|&times| times == rounds) && all.is_multiple_of(rounds.into());
        u32::try_from(of_a_round).ok().filter(|_| even)
    }

    /// So many threads arrive in a round, if these are more than the mbarrier counts: all warps that arrive do so equally often (but for who has been
    /// kept from the last time), and nobody waits for more phases than that.
    pub fn more_arrive_than_it_counts(&self, barrier: u32) -> Option<u32> {
        if self.record.is_off() || self.record.is_full() {
            return None;
        }
        /// Of a warp.
        #[derive(Default)]
        struct Arrives {
            lanes: u32,
            times: u32,
            count: u32,
        }
        let mut by: BTreeMap<u16, Arrives> = BTreeMap::new();
        let mut waits: BTreeMap<u16, u32> = BTreeMap::new();
        for step in &self.record.steps {
            match step.what {
                What::Arrive { barrier: to, count: count @ 1.., .. } if to == barrier => {
                    let warp = by.entry(step.warp).or_default();
                    warp.lanes |= step.lanes;
                    warp.times += step.lanes.count_ones();
                    warp.count += count;
                }
                What::Wait { barrier: of, .. } if of == barrier => *waits.entry(step.warp).or_default() += 1,
                _ => {}
            }
        }
        let rounds = |warp: &Arrives| warp.times.checked_div(warp.lanes.count_ones()).unwrap_or_default();
        let (fewest, most) = (by.values().map(rounds).min()?, by.values().map(rounds).max()?);
        let a_round = |warp: &Arrives| warp.count.checked_div(rounds(warp)).unwrap_or_default();
        let arrivals: u32 = by.values().map(a_round).sum();
        let awaited = waits.values().copied().max().unwrap_or_default();
        let is_even = fewest > 0 && most <= fewest + 1 && (1..=most).contains(&awaited);
        (is_even && arrivals > self.barriers[barrier as usize].expected).then_some(arrivals)
    }

    /// What comes to it by threads themselves: neither bytes nor commits.
    pub fn comes_by_threads<'a>(&'a self, b: &'a Mbarrier) -> impl Iterator<Item = &'a Came> {
        b.came.iter().filter(|came| !came.bytes && !self.is_commit(came.site))
    }

    /// So many warps arrive, by threads, in one round or another of the latest: not who did so once, before the rounds began.
    pub fn warps_that_arrive(&self, b: &Mbarrier) -> u32 {
        let count = |since: u64| {
            let late = self.comes_by_threads(b).filter(|came| came.phase >= since);
            distinct(late.map(|came| came.warp)).len() as u32
        };
        // Where each arrival completes a phase, a round has as many phases as arrivers.
        count(b.phase.saturating_sub(count(0).into()))
    }

    /// Copies of threads arrive at a mbarrier of which no other arrival has come, and raise its count by as much.
    fn adds_what_it_takes(&self, b: &Mbarrier) -> Option<u32> {
        let code = self.kernel.code.iter().enumerate();
        let mut sites = code.filter_map(|(at, inst)| match &inst.op {
            Op::AsyncArrive { address, counted: false } => {
                let here = self.named(at, address) == Some(i64::from(b.offset));
                let alone = b.came.iter().any(|came| came.site == inst.site)
                    && b.came.iter().all(|came| came.site == inst.site);
                (here && alone && b.pending == b.expected && b.phase == 0).then_some(inst.site)
            }
            _ => None,
        });
        sites.next()
    }

    /// The mbarriers of this variable count the arrivals of so many CTAs, and get those of their own alone.
    fn all_arrive_at_home(&self, b: &Mbarrier, got: u32) -> bool {
        let twins = self.at_offset(b).count() as u32;
        let own = |b: &Mbarrier| b.came.iter().all(|came| came.bytes || self.warps[came.warp].cta == b.cta);
        twins > 1 && b.expected == got * twins && self.at_offset(b).all(|twin| own(twin) && !twin.came.is_empty())
    }
}
