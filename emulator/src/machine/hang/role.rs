//! A role that nobody takes: the guard behind which a statement lies that was never executed, and what it compares.

use super::Blocked;
use crate::diagnostic::Diagnostic;
use crate::machine::cluster::Cluster;
use crate::machine::explain::names::{distinct, spans};
use crate::program::flow::known::Known;
use crate::program::flow::predecessors;
use crate::program::op::{Alu, Inst, Logic, Op, Reg, ShuffleMode, Special};
use std::cell::Cell;

/// So many statements on the way to a value are looked at.
const DEEP: u32 = 12;
/// And so many for all threads together.
const MOST: u32 = 1 << 15;

/// What to do about a guard that keeps everybody from a statement, by where threads stand in the launch.
const NOBODY_GOES: &str =
    "Let some of those who come to the guard pass it: check which warp, lane or CTA it asks for, and which come there.";

/// A guard at which all who have come there have gone the way that leads past a statement.
pub struct Barred {
    guard: usize,
    /// It is that of the statement itself.
    own: bool,
    /// What its predicate would have to be.
    wanted: bool,
    /// The warps that have come there.
    came: Vec<usize>,
}

/// A lane of a warp.
#[derive(Clone, Copy)]
struct Who {
    warp: usize,
    lane: u32,
}

impl Cluster<'_> {
    /// The guard that has kept all warps of these CTAs from a statement: there is one only, and nobody who is blocked would come to the statement
    /// by going on.
    pub fn barred(&self, blocked: &[Blocked], site: u32, of_cta: impl Fn(usize) -> bool) -> Option<Barred> {
        let warps = (0..self.warps.len()).filter(|&w| of_cta(self.warps[w].cta)).collect();
        self.kept_from(blocked, site, warps)
    }

    /// The same of some warps.
    pub fn kept_from(&self, blocked: &[Blocked], site: u32, warps: Vec<usize>) -> Option<Barred> {
        let code = &self.kernel.code;
        if blocked.iter().any(|b| warps.contains(&b.warp) && self.leads_to(b, &[site]).is_some()) {
            return None;
        }
        let mut statements = (0..code.len()).filter(|&at| code[at].site == site);
        let statement = statements.next().filter(|_| statements.next().is_none())?;
        let came = |at: usize| -> Vec<usize> {
            warps.iter().copied().filter(|&w| self.forks.of(w, at).contains(&true)).collect()
        };
        let went = |at: usize, side: usize| warps.iter().any(|&w| self.forks.of(w, at)[side]);
        let reached = self.reached(&went);
        if reached[statement] {
            let left = code[statement].facts.guarded && went(statement, 0) && !went(statement, 1);
            let wanted = !code[statement].guard_negated;
            return left.then(|| Barred { guard: statement, own: true, wanted, came: came(statement) });
        }
        // Back from the statement to what was reached: by one guard alone.
        let next = self.kernel.leads();
        let before = predecessors(next);
        let (mut seen, mut open, mut guards) = (vec![false; code.len() + 1], vec![statement], Vec::new());
        while let Some(at) = open.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            let (there, beyond): (Vec<usize>, Vec<usize>) = before[at].iter().partition(|&&from| reached[from]);
            guards.extend(there);
            open.extend(beyond);
        }
        let guards = distinct(guards.into_iter());
        let &[guard] = guards.as_slice() else { return None };
        let came = came(guard);
        // Of its two ways, the one that nobody has taken.
        let wanted = went(guard, 0) != code[guard].guard_negated;
        (!came.is_empty()).then_some(Barred { guard, own: false, wanted, came })
    }

    /// The same of a run that goes on: all warps of a CTA have come to that guard.
    pub fn barred_from_all(&self, site: u32, cta: usize) -> Option<Barred> {
        let all = self.warps.iter().filter(|warp| warp.cta == cta).count();
        self.barred(&[], site, |of| of == cta).filter(|barred| barred.came.len() == all)
    }

    /// The instructions to which the ways lead that were taken. Behind a wait that does not end, it is as if it had.
    fn reached(&self, went: &impl Fn(usize, usize) -> bool) -> Vec<bool> {
        let code = &self.kernel.code;
        let next = self.kernel.leads();
        let (mut reached, mut open) = (vec![false; code.len() + 1], vec![0]);
        while let Some(at) = open.pop() {
            if std::mem::replace(&mut reached[at], true) || at == code.len() {
                continue;
            }
            let guarded = code[at].facts.guarded;
            match code[at].op {
                Op::Branch { target, .. } if guarded => {
                    open.extend(went(at, 1).then_some(target as usize));
                    open.extend(went(at, 0).then_some(at + 1));
                }
                Op::Exit | Op::Trap(_) if guarded => open.extend(went(at, 0).then_some(at + 1)),
                _ => open.extend(&next[at]),
            }
        }
        reached
    }

    /// Adds to a hang where the guard stands, who has come there, and what it compares; and a label at the statement, if it has none. What it
    /// compares by the places of threads alone is what to look at.
    pub fn add_barred(&self, d: &mut Diagnostic, site: u32, text: &str, barred: &Barred) {
        let &Barred { guard, own, ref came, .. } = barred;
        let mut said = match (self.called_together(came), own) {
            (Some(who), true) => format!("{who} here, and none executes it"),
            (Some(who), false) => format!("{who} here, and none goes on to it"),
            (None, true) => "nobody who comes here executes it".into(),
            (None, false) => "nobody who comes here goes on to it".into(),
        };
        if let Some(values) = self.compares(barred) {
            said += &format!(": {values}");
            d.help = NOBODY_GOES.into();
        }
        let guard = self.label(self.kernel.code[guard].site, said);
        for label in [self.label(site, text), guard] {
            match d.labels.iter_mut().find(|known| known.place == label.place) {
                Some(known) if label.text == text || known.text.contains(&label.text) => {}
                Some(known) => known.text += &format!("; {}", label.text),
                None => d.labels.push(label),
            }
        }
    }

    /// Warps of one CTA that come somewhere.
    fn called_together(&self, warps: &[usize]) -> Option<String> {
        let cta = self.warps[*warps.first()?].cta;
        let of = if self.ctas.len() > 1 { format!(" of CTA {cta}") } else { String::new() };
        let one_cta = warps.iter().all(|&w| self.warps[w].cta == cta);
        let named = spans(warps.iter().map(|&w| self.warps[w].index));
        one_cta.then(|| match warps.len() {
            1 => format!("warp {named}{of} comes"),
            _ => format!("warps {named}{of} come"),
        })
    }

    /// The comparison that keeps all threads of these warps, and what each side is for them, where their places in the launch decide it.
    fn compares(&self, barred: &Barred) -> Option<String> {
        let code = &self.kernel.code;
        let threads: u32 = self.launch.block.iter().product();
        let lanes = |&warp: &usize| {
            let first = self.warps[warp].index * 32;
            (0..32).filter(move |lane| first + lane < threads).map(move |lane| Who { warp, lane })
        };
        let all: Vec<Who> = barred.came.iter().flat_map(lanes).collect();
        let left = Cell::new(MOST);
        self.deciders(barred.guard, code[barred.guard].guard, barred.wanted, DEEP).into_iter().find_map(|(at, pred)| {
            let Op::Setp { f: Alu::Compare32(_), a, b, .. } = code[at].op else { return None };
            let sides = |&who: &Who| -> Option<[u32; 2]> {
                let sides = [self.value_of(at, a, who, (DEEP, &left))?, self.value_of(at, b, who, (DEEP, &left))?];
                let mut known = Known::default();
                [a, b].iter().zip(sides).for_each(|(&reg, side)| known.set_number(reg, Some(side)));
                known.execute(&code[at], &self.kernel.constants32);
                // What may be negative is not read as that here.
                let plain = sides.iter().all(|&side| side <= i32::MAX as u32);
                (plain && known.pred(pred) == Some(!barred.wanted)).then_some(sides)
            };
            let sides: Vec<[u32; 2]> = all.iter().map(sides).collect::<Option<_>>()?;
            let [one, other] = [0, 1].map(|n| spans(distinct(sides.iter().map(|side| side[n])).into_iter()));
            Some(format!("`{}` compares {one} with {other}", self.place(code[at].site).text))
        })
    }

    /// The comparisons each of which, by itself, keeps a predicate from being as it is wanted, and the predicate that it makes.
    fn deciders(&self, at: usize, pred: u16, wanted: bool, deep: u32) -> Vec<(usize, u16)> {
        let Some(writer) = self.kernel.writers().only(at, Reg::Pred(pred)).filter(|_| deep > 0) else { return vec![] };
        let inst = &self.kernel.code[writer];
        match inst.op {
            _ if inst.facts.guarded => vec![],
            Op::Setp { .. } => vec![(writer, pred)],
            Op::Pred { logic, a, a_negated: false, b, negate: false, .. }
                if logic == if wanted { Logic::And } else { Logic::Or } =>
            {
                [a, b].into_iter().flat_map(|of| self.deciders(writer, of, wanted, deep - 1)).collect()
            }
            _ => vec![],
        }
    }

    /// What a register holds in front of an instruction, where the thread's place in the launch decides it. So deep, and so many statements in all.
    fn value_of(&self, at: usize, reg: u16, who: Who, (deep, left): (u32, &Cell<u32>)) -> Option<u32> {
        let constants = &self.kernel.constants32;
        if let Some(&(_, value)) = constants.iter().find(|constant| constant.0 == reg) {
            return Some(value);
        }
        left.set(left.get().checked_sub(1)?);
        let writer = self.kernel.writers().only(at, Reg::B32(reg)).filter(|_| deep > 0)?;
        let inst: &Inst = &self.kernel.code[writer];
        let value = |reg: u16, who: Who| self.value_of(writer, reg, who, (deep - 1, left));
        match inst.op {
            _ if inst.facts.guarded => None,
            Op::Special { which, .. } if !which.is_time() && which != Special::Sm => {
                Some(self.special(who.warp, which, who.lane) as u32)
            }
            // Of a lane of the whole warp.
            Op::Shuffle { mode: ShuffleMode::Index, d, a, b, c, .. } if d == reg && value(c, who)? == 31 => {
                let lane = value(b, who)? & 31;
                value(a, Who { lane, ..who })
            }
            _ => {
                let mut known = Known::default();
                for &used in &inst.uses {
                    let Reg::B32(used) = used else { return None };
                    known.set_number(used, Some(value(used, who)?));
                }
                known.execute(inst, constants);
                known.number(reg, constants)
            }
        }
    }
}
