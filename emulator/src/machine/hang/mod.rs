//! Explains why nothing can go on any more: the root first, the other waiters in one line each.

pub mod barrier;
pub mod columns;
pub mod commit;
pub mod flag;
pub mod groups;
pub mod mbarrier;
pub mod never;
pub mod ring;
pub mod role;
pub mod root;
pub mod rounds;
pub mod targets;
pub mod twins;
pub mod ways;

use crate::diagnostic::{Diagnostic, Label, Place, Severity, Subject};
use crate::machine::barrier::mbarrier::{Mbarrier, sum};
use crate::machine::barrier::scopes::Order;
use crate::machine::cluster::Cluster;
use crate::machine::explain::names::{counted, counted_are};
use crate::machine::warp::State;
use crate::program::op::{Inst, Op};
use root::Chain;
use std::cell::OnceCell;

/// A fragment that cannot go on.
pub struct Blocked {
    pub warp: usize,
    pub mask: u32,
    pub site: u32,
    pub state: State,
    /// Of each instruction, whether its first lane's guard there holds, where its place in the launch decides that: once it is asked for.
    pub decided: OnceCell<Vec<Option<bool>>>,
}

/// The mbarrier that it waits for.
pub fn barrier_of(b: &Blocked) -> Option<u32> {
    if let State::Mbarrier { barrier, .. } = b.state { Some(barrier) } else { None }
}

/// Whether two wait for the same.
fn alike(one: &State, other: &State) -> bool {
    match (one, other) {
        (State::Mbarrier { barrier, parity, .. }, State::Mbarrier { barrier: b, parity: p, .. }) => {
            (barrier, parity) == (b, p)
        }
        _ => one == other,
    }
}

/// Why a run is stuck.
struct Stuck<'b> {
    root: &'b Blocked,
    chain: Chain,
    /// They wait for each other, and nothing has come to any of them so far.
    fresh: bool,
}

const NOTHING: &str = "nothing changes in its loop that decides whether it is left";

/// Places that a hang names.
const MOST_LABELS: usize = 6;

impl Cluster<'_> {
    /// Adds the finding for a run that is stuck.
    pub fn explain_hang(&mut self) {
        if let Some(diagnostic) = self.outlasting().and_then(|w| self.outlasts_the_run(w)) {
            self.findings.add(diagnostic);
            return;
        }
        let blocked = self.all_blocked();
        let Some(Stuck { root, chain, fresh }) = self.root_of(&blocked) else { return };
        let left_bytes = |n: u32| {
            let b = &self.barriers[n as usize];
            // What an early phase has left comes on top: where bytes lack, that is another matter.
            let too_many = sum(&b.traffic.brought) > sum(&b.traffic.announced);
            b.bytes != 0 && (b.traffic.late > 0 || b.was_early && too_many)
        };
        if let Some(n) = barrier_of(root).filter(|&n| left_bytes(n)) {
            let brought = self.barriers[n as usize].came.iter().filter(|came| came.bytes);
            let places: Vec<Place> = brought.map(|came| self.place(came.site)).collect();
            self.findings.hangs_by_late_bytes.extend(places);
        }
        let drawn = self.draw_ring(&blocked, &chain);
        // Of two that wait for each other, it is known who should arrive before.
        let partner = chain.waits.get(1).filter(|_| drawn.is_some() && chain.waits.len() == 2);
        let mut diagnostic = self.tell_root(&blocked, root, partner.and_then(|&n| blocked.get(n)));
        if let Some(drawn) = drawn {
            diagnostic.title = if fresh { format!("{}: {drawn}", diagnostic.title) } else { drawn };
        }
        let root_place = self.place(root.site);
        let at_root = diagnostic.labels.iter().position(|label| label.place == root_place).unwrap_or_default();
        if let (Some(label), Some(subject)) = (diagnostic.labels.get_mut(at_root), self.waits_for(root)) {
            label.concerns(subject);
        }
        self.tell_others(&blocked, root, &chain, &mut diagnostic);
        self.tell_ended_ctas(&mut diagnostic);
        self.findings.add(diagnostic);
    }

    /// The barrier that somebody waits for.
    fn waits_for(&self, b: &Blocked) -> Option<Subject> {
        match b.state {
            State::Mbarrier { barrier, .. } => Some(self.subject(barrier)),
            State::CtaBarrier(id) => Some(Subject::CtaBarrier { cta: self.warps[b.warp].cta, id }),
            _ => None,
        }
    }

    /// Fragments that cannot go on, the likeliest roots first.
    fn all_blocked(&self) -> Vec<Blocked> {
        let mut blocked = Vec::new();
        let mut asking = false;
        for (w, warp) in self.warps.iter().enumerate() {
            for fragment in warp.fragments.iter() {
                // Blocked in a barrier, the program counter is behind the instruction already.
                let behind =
                    matches!(fragment.state, State::CtaBarrier(_) | State::WarpSync(_) | State::ClusterBarrier);
                let pc = fragment.pc.saturating_sub(u32::from(behind));
                let here = self.kernel.code.get(pc as usize).map_or(0, |i| i.site);
                let asks = warp.asks.filter(|_| matches!(fragment.state, State::Ready | State::Chip(_)));
                let endless = self.endless(w).filter(|_| fragment.state == State::Ready);
                let asks = endless.map(|(site, _)| (site, 0)).or(asks);
                let site = asks.map_or(here, |(site, _)| site);
                let spins = endless.and_then(|(site, _)| self.spins_at_a_wait(w, site, fragment.mask));
                // Who asks for what never comes keeps all others waiting.
                asking |= asks.is_some() && spins.is_none();
                let (mask, state) = (fragment.mask, spins.unwrap_or_else(|| fragment.state.clone()));
                blocked.push(Blocked { warp: w, mask, site, state, decided: OnceCell::new() });
            }
        }
        let rank = |state: &State| match state {
            State::Ready | State::Chip(_) if asking => 0,
            State::Mbarrier { .. } => 0,
            State::TensorAlloc { .. } | State::BulkGroups { .. } | State::Wgmma { .. } | State::Registers(_) => 1,
            State::ClusterBarrier => 2,
            State::CtaBarrier(_) => 2,
            State::WarpSync(_) => 3,
            State::Ready | State::Chip(_) => 4,
            State::Meeting => 5,
        };
        blocked.sort_by_key(|b| (rank(&b.state), b.warp));
        blocked
    }

    /// A warp goes round a loop for ever in which it asks for a phase that is not complete, and would go on if it were: it waits as one in
    /// `mbarrier.try_wait` does.
    fn spins_at_a_wait(&self, w: usize, site: u32, mask: u32) -> Option<State> {
        let asks = |inst: &Inst| match inst.op {
            Op::BarrierWait { p, .. } if inst.site == site && !inst.facts.unread => Some(p),
            _ => None,
        };
        let p = self.kernel.code.iter().find_map(asks)?;
        // The last answer was no, or came by the time limit.
        let asked = self.warps[w].asks.filter(|asks| asks.0 == site).map(|asks| asks.1);
        let since = asked.or(self.warps[w].unheeded.iter().any(|no| no.site == site).then_some(0))?;
        let used = |b: &Mbarrier| b.uses.iter().find(|used| (used.warp, used.site) == (w, site)).map(|used| used.epoch);
        let barriers = self.barriers.iter().zip(0..).filter_map(|(b, n)| Some((used(b)?, n)));
        let barrier: u32 = barriers.max()?.1;
        let parity = (self.barriers[barrier as usize].phase & 1) as u32;
        Some(State::Mbarrier { barrier, parity, p, mask, since, order: Order { relaxed: false, wide: false } })
    }

    /// The wait that is to be told, and those that it follows from.
    fn root_of<'b>(&self, blocked: &'b [Blocked]) -> Option<Stuck<'b>> {
        let mut root = blocked.first()?;
        // All have arrived, and bytes are missing or too many: others wait for who waits there.
        let lacks_bytes = |b: &&Blocked| match b.state {
            State::Mbarrier { barrier, .. } => {
                let barrier = &self.barriers[barrier as usize];
                barrier.pending == 0 && barrier.bytes != 0
            }
            _ => false,
        };
        // Or a phase that has begun does not end: what others wait for begins behind it.
        let begun = blocked.iter().find(lacks_bytes).or_else(|| self.begun(blocked));
        root = begun.unwrap_or(root);
        // What would arrive is stuck at a CTA barrier itself: that one is the root.
        if let State::Mbarrier { barrier, .. } = root.state {
            let sites = self.arrival_sites(self.barriers[barrier as usize].offset);
            let held =
                |b: &&Blocked| matches!(b.state, State::CtaBarrier(_)) && sites.iter().any(|&site| site > b.site);
            root = blocked.iter().find(held).unwrap_or(root);
        }
        // Who should arrive there waits itself: on to that wait.
        let mut chain = self.wait_chain(blocked, root);
        // A wait that is wrong whatever others do, or for more arrivals than come elsewhere; of those that wait for each other, one at a
        // stage that the other side leaves out, or, where nothing has come to any of them, the one whose work comes first.
        let members = chain.ring.and_then(|ring| chain.waits.get(ring..)).unwrap_or_default();
        let members: Vec<&Blocked> = members.iter().filter_map(|&n| blocked.get(n)).collect();
        // Who goes round a loop for ever waits for nobody.
        let endless = blocked.iter().find(|b| b.state == State::Ready && self.endless(b.warp).is_some());
        let between = blocked.iter().find(|b| matches!(b.state, State::TensorAlloc { .. }) && self.is_in_ring());
        let alone = blocked.iter().find(|b| self.allocates_alone(blocked, b));
        let odd = between
            .or(alone)
            .or(endless)
            .or_else(|| self.wrong_by_itself(blocked))
            .or_else(|| self.counts_too_many(blocked));
        // Of those that wait for each other where nothing has come yet, the ring is told all the same.
        let mut fresh_ring = None;
        let odd = odd.or_else(|| {
            let (one, other) = self.each_before_the_other(blocked)?;
            fresh_ring = Some(vec![one, other]);
            Some(one)
        });
        let odd = odd.or_else(|| members.iter().copied().find(|b| self.other_stage(blocked, b).is_some()));
        let odd = odd.or_else(|| {
            let first = self.first_of_fresh(&members)?;
            let at = members.iter().position(|b| std::ptr::eq(*b, first))?;
            fresh_ring = Some(members[at..].iter().chain(&members[..at]).copied().collect());
            Some(first)
        });
        // A long ring says less than a phase that has begun in it, and so does one of which arrivals are astray.
        let long = chain.ring.is_some_and(|ring| chain.waits.len() > ring + 2);
        let astray = |b: &&Blocked| barrier_of(b).is_some_and(|n| self.idle_twin(blocked, n).is_some());
        let odd = odd.or_else(|| begun.filter(|b| chain.ring.is_some() && (long || astray(b))));
        let fresh = fresh_ring.is_some();
        if let Some(odd) = odd {
            let place = |wait: &Blocked| blocked.iter().position(|b| std::ptr::eq(b, wait));
            chain = match fresh_ring {
                Some(ring) => Chain { waits: ring.into_iter().filter_map(place).collect(), ring: Some(0) },
                None => Chain { waits: place(odd).into_iter().collect(), ring: None },
            };
        }
        // Or who should arrive stands at a CTA barrier.
        let last = chain.waits.last().filter(|_| chain.ring.is_none()).and_then(|&last| blocked.get(last));
        chain.waits.extend(last.and_then(|last| self.held_at_cta_barrier(blocked, last)));
        // Of those who wait for each other, the one that the others were found by.
        root = chain.ring.or(chain.waits.len().checked_sub(1)).map_or(root, |at| &blocked[chain.waits[at]]);
        Some(Stuck { root, chain, fresh })
    }

    /// What is wrong at the root. `partner`: of two that wait for each other, the other one.
    fn tell_root(&self, blocked: &[Blocked], root: &Blocked, partner: Option<&Blocked>) -> Diagnostic {
        match &root.state {
            State::Mbarrier { barrier, parity, .. } => self.wrong_wait(root).unwrap_or_else(|| {
                let mut d = self.stuck_mbarrier(blocked, root, (*barrier, *parity), partner);
                self.add_readers_of_a_response(root, *barrier, &mut d);
                d
            }),
            State::TensorAlloc { pair: Some(_) }
                if self.ctas[self.warps[root.warp].cta ^ 1].tensor.held().is_empty() =>
            {
                self.stuck_without_peer(root)
            }
            State::ClusterBarrier => {
                let arrived: u32 = self.warps.iter().map(|w| (w.cluster_arrived & w.live).count_ones()).sum();
                let live: u32 = self.warps.iter().map(|w| w.live.count_ones()).sum();
                let mut d = self.hang(
                    root.site,
                    format!("the cluster barrier waits for {} and gets {arrived}", counted(live, "thread")),
                    "Let all threads of all CTAs of the cluster arrive.".into(),
                );
                self.add_held(blocked, root, &mut d);
                d
            }
            State::TensorAlloc { .. } if self.wanted_by_this().is_some() => self.stuck_between_clusters(root),
            State::TensorAlloc { .. } => {
                let mut d = self.hang(
                    root.site,
                    "tcgen05.alloc waits for columns that are never freed".into(),
                    "Free tensor memory that is no longer used, or ask for fewer columns.".into(),
                );
                for a in self.ctas[self.warps[root.warp].cta].tensor.held() {
                    d.labels.push(self.label(a.site, format!("{} held since here", counted_are(a.columns, "column"))));
                    if a.site == root.site {
                        d.help = "Let one warp of the CTA alone execute this tcgen05.alloc: here several do, or one does again.".into();
                    }
                }
                d
            }
            State::Wgmma { number, .. } => {
                let lacks: Vec<String> =
                    self.wgmma_lacks(root.warp, *number).iter().map(|warp| format!("warp {warp}")).collect();
                self.hang(
                    root.site,
                    format!(
                        "{} waits for a wgmma that {} of its warpgroup never executes",
                        self.warp_name(root.warp),
                        if lacks.is_empty() { "a warp".to_string() } else { lacks.join(" and ") }
                    ),
                    "Let all four warps of the warpgroup execute the same wgmmas, equally often.".into(),
                )
            }
            State::Registers(lacks) => self.stuck_registers(blocked, root, *lacks),
            State::CtaBarrier(id) => self.stuck_cta_barrier(blocked, root, *id),
            State::Ready if self.endless(root.warp).is_some() && !self.warps[root.warp].rounds.asks() => {
                self.stuck_in_a_loop(root)
            }
            State::Ready | State::Chip(_) => {
                let mut d = self.hang(
                    root.site,
                    format!("{} asks again and again for what does not happen", self.warp_name(root.warp)),
                    "Let somebody bring it about in every run: what CTAs wait for must come from CTAs that run at the same time.".into(),
                );
                self.tell_what_it_reads(root.warp, root.mask, root.site, &mut d);
                d
            }
            _ => self.hang(
                root.site,
                format!("{} cannot go on", self.warp_name(root.warp)),
                "Let all lanes of the mask reach this instruction.".into(),
            ),
        }
    }

    /// A warp goes round a loop for ever.
    fn stuck_in_a_loop(&self, root: &Blocked) -> Diagnostic {
        let looks = self.endless(root.warp).is_some_and(|(_, looks)| looks);
        let who = self.warp_name(root.warp);
        // It has just passed, and the branch goes back all the same: what says no is what is asked for.
        let warp = &self.warps[root.warp];
        let passes = warp.passed.last().filter(|passed| passed.site == root.site && warp.asks.is_none());
        let passes = passes.map(|passed| self.barrier_name(passed.barrier));
        let (why, help) = match (self.unread_in_a_loop(root.warp), looks) {
            _ if passes.is_some() => (
                format!("its wait for {} passes, and it goes back all the same", passes.unwrap_or_default()),
                "Let the branch go back while the predicate of the wait is false, as in `@!%p bra WAIT;`.",
            ),
            (Some(name), _) => (
                format!("nothing reads what its wait for {name} says"),
                "Let the branch back depend on the predicate of the wait, and go back while that is false, as in `@!%p bra WAIT;`.",
            ),
            (None, true) => (
                "what it looks at here never changes any more".into(),
                "Check which value ends the loop, and that another thread, which does not wait for this one, brings it about.",
            ),
            (None, false) => (
                NOTHING.into(),
                "Check the condition of the branch: some round must change a register that it depends on.",
            ),
        };
        let mut d = self.hang(root.site, format!("{who} goes round for ever: {why}"), help.into());
        if looks {
            self.tell_what_it_reads(root.warp, root.mask, root.site, &mut d);
        } else if let Some((labels, help)) = self.tell_endless_loop(root.warp).filter(|_| why == NOTHING) {
            (d.labels, d.help) = (labels, help);
        }
        d
    }

    /// What a load or an atomic operation of global memory finds that a warp makes again and again, and what it would have to be.
    pub fn tell_what_it_reads(&self, w: usize, mask: u32, site: u32, d: &mut Diagnostic) {
        let Some(inst) = self.kernel.code.iter().find(|inst| inst.site == site) else { return };
        let (address, bytes) = match &inst.op {
            Op::Load(load) => (&load.address, usize::from(load.bytes)),
            Op::Atomic(atomic) => (&atomic.address, usize::from(atomic.bytes)),
            _ => return,
        };
        let lane = mask.trailing_zeros() as usize % 32;
        let base = self.warps[w].registers.lane(address.base, lane) as u64;
        let Some((buffer, offset)) = self.global.find(base.wrapping_add(address.offset as u64), bytes as u64) else {
            return;
        };
        let at = (buffer, offset);
        let buffer = &self.global.buffers[buffer];
        let (place, (value, defined)) = (buffer.describe(offset), buffer.memory.load(offset as usize, bytes));
        let holds = if defined { format!("{value}") } else { "nothing that was written".into() };
        if let Some(label) = d.labels.first_mut() {
            label.text = format!("it finds {holds} at {place}");
        }
        self.tell_who_could_change_it(site, at, d);
    }

    /// CTAs of the cluster that have ended, while others wait.
    fn tell_ended_ctas(&self, d: &mut Diagnostic) {
        let has_ended = |cta: &usize| self.warps.iter().filter(|warp| warp.cta == *cta).all(|warp| warp.live == 0);
        let ended: Vec<String> = (0..self.ctas.len()).filter(has_ended).map(|cta| format!("CTA {cta}")).collect();
        match ended.as_slice() {
            [] => {}
            [one] => {
                d.help += &format!(
                    " {one} of the cluster has ended: look first whether it should still copy, multiply or arrive."
                )
            }
            all => {
                d.help += &format!(
                    " {} of the cluster have ended: look first whether they should still copy, multiply or arrive.",
                    all.join(", ")
                )
            }
        }
    }

    /// A line for each of the others.
    fn tell_others(&self, blocked: &[Blocked], root: &Blocked, chain: &Chain, diagnostic: &mut Diagnostic) {
        let root_place = self.place(root.site);
        // Those who wait for the root first; those for whom there is no room are counted.
        let mut unnamed = 0;
        let others = (0..blocked.len()).filter(|n| !chain.waits.contains(n));
        for n in chain.waits.iter().rev().copied().chain(others) {
            let b = &blocked[n];
            // Its other lanes say why.
            let parted = |other: &Blocked| other.warp == b.warp && !matches!(other.state, State::Meeting);
            if matches!(b.state, State::Meeting) && blocked.iter().any(parted) {
                continue;
            }
            let text = match &b.state {
                State::Mbarrier { barrier, parity, .. } => {
                    format!("waits for {} (parity {parity})", self.barrier_name(*barrier))
                }
                State::TensorAlloc { .. } => "waits for tensor memory".into(),
                State::ClusterBarrier => "waits at the cluster barrier".into(),
                State::BulkGroups { .. } => "waits for its bulk groups".into(),
                State::Registers(_) => "waits for registers".into(),
                State::Wgmma { .. } => "waits for its wgmma groups".into(),
                State::CtaBarrier(id) => format!("waits at CTA barrier {id}"),
                State::WarpSync(_) => "waits in bar.warp.sync".into(),
                State::Meeting => "waits for the lanes it parted from".into(),
                State::Ready | State::Chip(_) => "polls".into(),
            };
            let place = self.place(b.site);
            let subject = self.waits_for(b);
            if let Some(known) = diagnostic.labels.iter_mut().find(|l| l.place == place) {
                subject.into_iter().for_each(|subject| known.concerns(subject));
                continue;
            }
            if place == root_place {
                continue;
            }
            if diagnostic.labels.len() >= MOST_LABELS {
                unnamed += 1;
                continue;
            }
            // Those who wait for each other are all the cause.
            let aside = chain.ring.is_none_or(|ring| !chain.waits[ring..].contains(&n));
            // Lanes that came here apart wait here together.
            let same = blocked.iter().filter(|other| other.warp == b.warp && other.site == b.site);
            let mask = same.filter(|other| alike(&other.state, &b.state)).fold(0, |all, other| all | other.mask);
            let lanes = if mask.count_ones() < 32 { format!(" ({})", Self::lanes_text(mask)) } else { String::new() };
            let label = Label::new(place, format!("{} {text}{lanes}", self.warp_name(b.warp)));
            diagnostic.labels.push(Label { aside, about: subject.into_iter().collect(), ..label });
        }
        if let Some(last) = diagnostic.labels.last_mut().filter(|_| unnamed > 0) {
            last.text += &format!(
                "; {} elsewhere",
                if unnamed == 1 { "one more waits".into() } else { format!("{unnamed} more wait") }
            );
        }
    }

    pub fn hang(&self, site: u32, title: String, help: String) -> Diagnostic {
        let mut d = self.problem(
            "hang",
            site,
            title,
            "Every wait must be matched by what it waits for, in every run: an mbarrier's phase by its arrivals and \
             bytes (PTX ISA 9.7.13.15.6), a CTA barrier by its threads (9.7.13.1).",
            help,
        );
        d.severity = Severity::Error;
        d
    }
}
