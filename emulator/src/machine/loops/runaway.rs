//! The loop that a run did not come out of before its instructions were used up.

use crate::diagnostic::{Diagnostic, Label};
use crate::machine::cluster::Cluster;
use crate::program::op::{Op, Reg};
use smallvec::SmallVec;

/// Warp instructions before the last allowed one in which rounds are counted, at most; of a small budget it is a quarter.
const WATCHED: u64 = 1 << 20;

/// From which instruction on rounds are counted, where so many are allowed in all and this one is the last.
pub fn watched_from(allowed: u64, last: u64) -> u64 {
    last.saturating_sub(WATCHED.min(allowed / 4))
}

/// Branches back that a warp took, and how often since it took the branch back of a loop around them: of loops that it may be in.
#[derive(Debug, Default)]
pub struct Loops(SmallVec<[(u32, u64); 2]>);

/// A loop, and how often it went round while it was watched.
struct Runaway {
    warp: usize,
    /// From its first instruction to the branch back.
    first: usize,
    last: usize,
    rounds: u64,
    /// It waits for somebody.
    waits: bool,
}

impl Cluster<'_> {
    /// A warp takes a branch back, from here to there.
    #[cold]
    pub fn watch_round(&mut self, w: usize, pc: u32, target: u32) {
        let loops = &mut self.warps[w].loops.0;
        loops.retain(|known| known.0 == pc || !(target..pc).contains(&known.0));
        match loops.iter_mut().find(|known| known.0 == pc) {
            Some(known) => known.1 += 1,
            None => loops.push((pc, 1)),
        }
    }

    /// Of the loops that warps are in, the one that went round most often; one that waits for somebody only if there is no other.
    fn runaway(&self) -> Option<Runaway> {
        let code = &self.kernel.code;
        let warps = (0..self.warps.len()).filter_map(|w| {
            let inside = |first: usize, last: usize| {
                self.warps[w].fragments.iter().any(|f| (first..=last).contains(&(f.pc as usize)))
            };
            let around = self.warps[w].loops.0.iter().filter_map(|&(branch, rounds)| {
                let last = branch as usize;
                let Op::Branch { target, .. } = code.get(last)?.op else { return None };
                let first = target as usize;
                let waits = code.get(first..=last)?.iter().any(|inst| matches!(inst.op, Op::BarrierWait { .. }));
                (rounds > 1 && inside(first, last)).then_some(Runaway { warp: w, first, last, rounds, waits })
            });
            // A loop in one that goes round comes to its end.
            around.max_by_key(|l| (l.last - l.first, l.rounds))
        });
        warps.max_by_key(|l| (!l.waits, l.rounds))
    }

    /// What is said of a loop that ends only after more instructions than are left, where nobody else goes on.
    pub fn outlasts_the_run(&self, w: usize) -> Option<Diagnostic> {
        let (all, one) = (self.options.max_instructions, self.options.max_instructions_of_one());
        let alone = self.budget == one && one < all;
        let most = match alone {
            true => format!("the {one} warp instructions that one cluster may execute"),
            false => format!("the {all} warp instructions that the run may execute"),
        };
        let (site, looks) = self.endless(w)?;
        let does = if looks { "asks for what does not happen, and gives up" } else { "goes round and round, and ends" };
        let mut d = self.problem(
            "instruction-budget",
            site,
            format!("{} {does} only after more than {most}", self.warp_name(w)),
            "A run has a budget of instructions, so that a kernel that never ends is reported. All others wait, or go round as well, and nobody changes \
             what they look at: the run is ended at once.",
            format!(
                "Check which value ends the loop, and that another thread, which does not wait for this one, brings it about; a kernel that is meant to give up \
                 can be given more instructions{}",
                if alone { ": with --max-instructions N, one cluster gets N / 16." } else { " (--max-instructions)." }
            ),
        );
        if looks {
            let mask = self.warps[w].fragments.first().map_or(0, |f| f.mask);
            self.tell_what_it_reads(w, mask, site, &mut d);
        }
        d.labels.extend(self.what_counts(w));
        Some(d)
    }

    /// Where a warp counts the rounds of the loop that it is in, or looks at the clock, and that decides whether it is left.
    fn what_counts(&self, w: usize) -> Option<Label> {
        let (leaving, begins) = self.warps[w].rounds.leaving()?;
        let code = &self.kernel.code;
        let decide = || leaving.members.iter().filter(|at| !leaving.idle.contains(at)).map(|&at| &code[at as usize]);
        let time = decide().find(|inst| matches!(inst.op, Op::Special { which, .. } if which.is_time()));
        if let Some(time) = time {
            return Some(self.label(time.site, "it looks at the clock here, which would end it at last"));
        }
        let kept = |reg: &Reg| match reg {
            Reg::B32(n) => begins.b32.contains(n),
            Reg::B64(n) => begins.b64.contains(n),
            _ => false,
        };
        let counts = decide()
            .find(|inst| inst.facts.plain && inst.defs.iter().any(|reg| kept(reg) && inst.uses.contains(reg)))?;
        Some(self.label(counts.site, "it counts its rounds here, which would end it at last"))
    }

    /// What is said of a run that used up its instructions, here.
    pub fn out_of_budget(&self, site: u32) -> Diagnostic {
        let (all, one) = (self.options.max_instructions, self.options.max_instructions_of_one());
        let alone = self.instructions > one && one < all;
        let spent = match alone {
            true => format!("the run was ended after {one} warp instructions of one cluster"),
            false => format!("the run was ended after {all} warp instructions"),
        };
        let found = |site: u32, title: String, help: String| {
            let rule = "A run has a budget of instructions, so that a kernel that never ends is reported.";
            let more = match alone {
                true => {
                    "; a kernel that needs more can be given more: with --max-instructions N, one cluster gets N / 16."
                }
                false => "; a kernel that needs more can be given more (--max-instructions).",
            };
            self.problem("instruction-budget", site, title, rule, help + more)
        };
        let Some(lap) = self.runaway() else {
            return found(site, spent, "Look for a loop whose end is never reached".into());
        };
        let title = format!("{spent}: {} goes round and round", self.warp_name(lap.warp));
        let (labels, help) = self.tell_loop(&lap);
        Diagnostic { labels, ..found(self.kernel.code[lap.last].site, title, help) }
    }

    /// Where the loop is that a warp goes round in for ever, what keeps it going, and one thing to try.
    pub fn tell_endless_loop(&self, w: usize) -> Option<(Vec<Label>, String)> {
        let last = self.endless_branch(w)? as usize;
        let Op::Branch { target, .. } = self.kernel.code.get(last)?.op else { return None };
        Some(self.tell_loop(&Runaway { warp: w, first: target as usize, last, rounds: 0, waits: false }))
    }

    fn tell_loop(&self, lap: &Runaway) -> (Vec<Label>, String) {
        let code = &self.kernel.code;
        let text = format!("this branch leads back to `{}`, time and again", self.place(code[lap.first].site).text);
        let mut labels = vec![self.label(code[lap.last].site, text)];
        let (more, help) = self.what_decides(lap);
        labels.extend(more);
        (labels, help)
    }

    /// What keeps a loop going, and one thing to try.
    fn what_decides(&self, lap: &Runaway) -> (Vec<Label>, String) {
        let code = &self.kernel.code;
        let round = &code[lap.first..=lap.last];
        let branch = &code[lap.last];
        if !branch.facts.guarded {
            let leaves = |inst: &&crate::program::op::Inst| match &inst.op {
                Op::Branch { target, .. } => !(lap.first..=lap.last).contains(&(*target as usize)),
                Op::BranchTable { .. } | Op::Exit => true,
                _ => false,
            };
            return match round.iter().find(leaves) {
                Some(inst) => {
                    let way = self.label(inst.site, "only from here a way leads out of the loop");
                    (vec![way], "Look why the loop is never left there".into())
                }
                None => (vec![], "Nothing leads out of the loop: give its branch a condition".into()),
            };
        }
        let Some(decider) = self.kernel.writers().last(lap.last, Reg::Pred(branch.guard)) else {
            return (vec![], "Look why the branch's predicate stays as it is".into());
        };
        if !(lap.first..=lap.last).contains(&decider) {
            let label =
                self.label(code[decider].site, "what decides whether it does is computed here, before the loop");
            return (vec![label], "Compute the branch's predicate anew in each round".into());
        }
        let mut labels = vec![self.label(code[decider].site, "this decides whether it does")];
        if !matches!(code[decider].op, Op::Setp { .. }) {
            return (labels, "Look why this never lets the loop end".into());
        }
        let whole = |reg: &&Reg| matches!(reg, Reg::B32(_) | Reg::B64(_));
        let changed = code[decider].uses.iter().filter(whole).filter_map(|&reg| {
            let at = self.kernel.writers().last(decider, reg)?;
            (lap.first..=lap.last).contains(&at).then_some((reg, at))
        });
        let changed: Vec<(Reg, usize)> = changed.collect();
        let registers = &self.warps[lap.warp].registers;
        let active = self.warps[lap.warp].fragments.iter().find(|f| (lap.first..=lap.last).contains(&(f.pc as usize)));
        let lane = active.map_or(0, |f| f.mask.trailing_zeros() as usize % 32);
        let text = &self.place(code[decider].site).text;
        let opcode = text.split_whitespace().find(|word| word.starts_with("setp")).unwrap_or_default();
        let is_real = opcode.rsplit('.').next().is_some_and(|ty| ty.starts_with('f') || ty.starts_with("bf"));
        for &(reg, at) in &changed {
            let text = match registers.defined(reg) >> lane & 1 {
                _ if is_real => "what it compares is changed here".into(),
                1 => {
                    format!("what it compares is changed here: in lane {lane} it is {} now", registers.lane(reg, lane))
                }
                _ => "what it compares is changed here, and undefined now".into(),
            };
            labels.push(self.label(code[at].site, text));
        }
        let help = match changed.as_slice() {
            [] => "Nothing in the loop changes what is compared there: change it in each round",
            _ => "Look whether what is compared there ever becomes what ends the loop",
        };
        (labels, help.into())
    }
}
