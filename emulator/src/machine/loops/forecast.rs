//! How long a loop goes on that counts its rounds, or looks at the clock: whether it is left before the run's instructions are used up.
//!
//! One round is computed for all that are left, lane by lane: of each register that decides, what it is now, between what it lies in all of these
//! rounds, and by how much it grows in each. Where every branch is sure to go the way that it went, and registers grow as was assumed, the loop
//! outlasts the run.

use crate::machine::cluster::Cluster;
use crate::machine::warp::registers::lanes;
use crate::program::flow::leaving::Leaving;
use crate::program::op::{Inst, Logic, Op, Reg, Special};
use crate::program::opcode;
use rustc_hash::{FxHashMap, FxHashSet};

/// What is known of a loop's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forecast {
    /// It comes after all that the run may execute.
    Outlasts,
    /// What it counts, or the clock, may end it before.
    Leaves,
    Unknown,
}

/// Rounds that are left at most, and cycles that they take at most.
#[derive(Clone, Copy, Debug)]
pub struct Left {
    pub rounds: i128,
    pub cycles: u64,
}

/// A register in all rounds that are left, as a number without sign.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Value {
    now: i128,
    low: i128,
    high: i128,
    /// By so much it grows in each round, if that is so.
    step: Option<i128>,
}

/// A predicate: as it is now, and whether it is so in all rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Truth {
    now: bool,
    sure: bool,
}

impl Value {
    fn fixed(now: i128) -> Value {
        Value { now, low: now, high: now, step: Some(0) }
    }

    fn is_fixed(&self) -> bool {
        self.step == Some(0)
    }

    fn growing(now: i128, step: i128, rounds: i128) -> Value {
        let then = now + step * rounds;
        Value { now, low: now.min(then), high: now.max(then), step: Some(step) }
    }

    fn plus(self, other: Value) -> Value {
        let step = self.step.zip(other.step).map(|(a, b)| a + b);
        Value { now: self.now + other.now, low: self.low + other.low, high: self.high + other.high, step }
    }

    fn negated(self) -> Value {
        Value { now: -self.now, low: -self.high, high: -self.low, step: self.step.map(|step| -step) }
    }

    /// In so many bits without sign; where it passes from the largest to zero, it may be anything.
    fn wrapped(self, bits: u32) -> Value {
        let turns = self.low >> bits;
        match self.high >> bits == turns {
            true => self.less(turns << bits),
            false => Value { now: self.now & ((1 << bits) - 1), low: 0, high: (1 << bits) - 1, step: None },
        }
    }

    /// The same bits as a number with a sign.
    fn with_sign(self, bits: u32) -> Value {
        let half = 1i128 << (bits - 1);
        let turn = |n: i128| if n < half { 0 } else { 2 * half };
        match turn(self.low) == turn(self.high) {
            true => self.less(turn(self.low)),
            false => Value { now: self.now - turn(self.now), low: -half, high: half - 1, step: None },
        }
    }

    fn less(self, by: i128) -> Value {
        Value { now: self.now - by, low: self.low - by, high: self.high - by, ..self }
    }
}

impl Truth {
    fn not(self) -> Truth {
        Truth { now: !self.now, ..self }
    }

    fn with(self, logic: Logic, other: Truth) -> Truth {
        let (now, decides) = match logic {
            Logic::And => (self.now && other.now, false),
            Logic::Or => (self.now || other.now, true),
            Logic::Xor => return Truth { now: self.now != other.now, sure: self.sure && other.sure },
        };
        let alone = |one: Truth| one.sure && one.now == decides;
        Truth { now, sure: self.sure && other.sure || alone(self) || alone(other) }
    }
}

/// How two numbers are compared: as they are now, and whether it is so for all.
fn compare(how: &str, a: Value, b: Value) -> Option<Truth> {
    let below = |a: Value, b: Value| Truth { now: a.now < b.now, sure: a.high < b.low || a.low >= b.high };
    Some(match how {
        "lt" | "lo" => below(a, b),
        "gt" | "hi" => below(b, a),
        "ge" | "hs" => below(a, b).not(),
        "le" | "ls" => below(b, a).not(),
        "eq" | "ne" => {
            let (fixed, apart) = (a.is_fixed() && b.is_fixed(), a.high < b.low || b.high < a.low);
            let equal = Truth { now: a.now == b.now, sure: fixed || apart };
            if how == "eq" { equal } else { equal.not() }
        }
        _ => return None,
    })
}

/// Bits of a type of whole numbers, and whether it has a sign.
fn whole(ty: &str) -> Option<(u32, bool)> {
    Some(match ty {
        "u32" | "b32" => (32, false),
        "s32" => (32, true),
        "u64" | "b64" => (64, false),
        "s64" => (64, true),
        _ => return None,
    })
}

/// A loop, and one of the lanes in it.
struct Round<'c, 'a> {
    cluster: &'c Cluster<'a>,
    w: usize,
    lane: usize,
    leaving: &'c Leaving,
    left: Left,
    /// By how much registers grew in the last round, where they did.
    steps: &'c FxHashMap<Reg, [i128; 32]>,
    values: FxHashMap<Reg, Option<Value>>,
    truths: FxHashMap<u16, Option<Truth>>,
    /// All branches so far are sure.
    sure: bool,
}

impl Cluster<'_> {
    /// Of the loop from `target` to this branch, by how much its registers grow.
    pub fn forecast(
        &self,
        w: usize,
        mask: u32,
        branch: u32,
        leaving: &Leaving,
        steps: &FxHashMap<Reg, [i128; 32]>,
        left: Left,
    ) -> Forecast {
        let mut all = Forecast::Outlasts;
        for lane in lanes(mask) {
            let (values, truths) = (FxHashMap::default(), FxHashMap::default());
            let round = Round { cluster: self, w, lane, leaving, left, steps, values, truths, sure: true };
            match round.goes_on(branch) {
                None => return Forecast::Unknown,
                Some(false) => all = Forecast::Leaves,
                Some(true) => {}
            }
        }
        all
    }
}

impl Round<'_, '_> {
    /// Whether the round is sure to be like the last one; `None`: this is not known.
    fn goes_on(mut self, branch: u32) -> Option<bool> {
        let code = &self.cluster.kernel.code;
        let Op::Branch { target, .. } = code.get(branch as usize)?.op else { return None };
        let mut pc = target;
        let mut seen = FxHashSet::default();
        loop {
            let inst = code.get(pc as usize)?;
            if !seen.insert(pc) {
                return None;
            }
            let conditional = inst.facts.guarded;
            pc = match inst.op {
                Op::Branch { reconverge, .. } if conditional && !self.leaving.branches.contains(&pc) => reconverge,
                Op::Branch { target, .. } => {
                    let taken = self.executes(inst)?;
                    if pc == branch {
                        break if taken { Some(()) } else { None };
                    }
                    if taken { target } else { pc + 1 }
                }
                Op::Exit | Op::Trap(_) if !self.executes(inst)? => pc + 1,
                Op::Exit | Op::Trap(_) | Op::BranchTable { .. } => return None,
                _ if self.leaving.idle.contains(&pc) => pc + 1,
                _ => {
                    if self.executes(inst)? {
                        self.execute(inst)?;
                    }
                    pc + 1
                }
            };
        }?;
        Some(self.sure && self.grows_as_assumed(branch)?)
    }

    /// Whether an instruction is executed now.
    fn executes(&mut self, inst: &Inst) -> Option<bool> {
        if !inst.facts.guarded {
            return Some(true);
        }
        let guard = self.truth(inst.guard)?;
        self.sure &= guard.sure;
        Some(guard.now != inst.guard_negated)
    }

    fn before(&self, reg: Reg) -> Value {
        let now = self.cluster.warps[self.w].registers.lane(reg, self.lane) as i128;
        let step = self.steps.get(&reg).map_or(0, |steps| steps[self.lane]);
        Value::growing(now, step, self.left.rounds).wrapped(if matches!(reg, Reg::B32(_)) { 32 } else { 64 })
    }

    fn value(&self, reg: Reg) -> Option<Value> {
        match self.values.get(&reg) {
            Some(value) => *value,
            None => Some(self.before(reg)),
        }
    }

    fn truth(&self, pred: u16) -> Option<Truth> {
        match self.truths.get(&pred) {
            Some(truth) => *truth,
            None => Some(Truth { now: self.now(pred), sure: true }),
        }
    }

    fn now(&self, pred: u16) -> bool {
        self.cluster.warps[self.w].registers.lane(Reg::Pred(pred), self.lane) != 0
    }

    fn execute(&mut self, inst: &Inst) -> Option<()> {
        let text = &self.cluster.kernel.sites.get(inst.site as usize)?.text;
        let parts: Vec<&str> = opcode(text).split('.').collect();
        match &inst.op {
            Op::Setp { d, q, a, b, logic, .. } => {
                let (bits, sign) = whole(parts.last()?)?;
                let reg = |n: u16| if bits == 32 { Reg::B32(n) } else { Reg::B64(n) };
                let value = |n: u16| self.value(reg(n)).map(|value| if sign { value.with_sign(bits) } else { value });
                let found = compare(parts.get(1)?, value(*a)?, value(*b)?)?;
                let combined = |one: Truth| match *logic {
                    None => Some(one),
                    Some((logic, p, negated)) => {
                        let other = self.truth(p)?;
                        Some(one.with(logic, if negated { other.not() } else { other }))
                    }
                };
                let (first, second) = (combined(found)?, combined(found.not())?);
                d.iter().for_each(|&d| _ = self.truths.insert(d, Some(first)));
                q.iter().for_each(|&q| _ = self.truths.insert(q, Some(second)));
                return Some(());
            }
            &Op::Pred { logic, d, a, a_negated, b, negate } => {
                let a = self.truth(a)?;
                let both = (if a_negated { a.not() } else { a }).with(logic, self.truth(b)?);
                self.truths.insert(d, Some(if negate { both.not() } else { both }));
                return Some(());
            }
            _ => {}
        }
        let &[d] = &*inst.defs else { return None };
        let value = match (&inst.op, parts.as_slice()) {
            (&Op::Special { which, .. }, _) if which.is_time() => {
                self.time(which, if matches!(d, Reg::B64(_)) { 64 } else { 32 })
            }
            (_, [what @ ("add" | "sub"), ty]) if inst.facts.plain => {
                let &[a, b] = &*inst.uses else { return None };
                let (a, b) = (self.value(a)?, self.value(b)?);
                Some(a.plus(if *what == "sub" { b.negated() } else { b }).wrapped(whole(ty)?.0))
            }
            (_, ["mov", _]) if inst.uses.len() == 1 => self.value(inst.uses[0]),
            (_, ["cvt", to, from]) => {
                let ((to, _), (_, sign)) = (whole(to)?, whole(from)?);
                let value = self.value(*inst.uses.first()?)?;
                (!sign || value.high < 1 << 31).then(|| value.wrapped(to))
            }
            _ => None,
        };
        let value = value.or_else(|| self.same_again(inst, d))?;
        match d {
            Reg::Pred(p) => _ = self.truths.insert(p, Some(Truth { now: value.now != 0, sure: true })),
            _ => _ = self.values.insert(d, Some(value)),
        }
        Some(())
    }

    /// What is made of the same in each round, or found in memory, is what it was, if nothing else has taken its place.
    fn same_again(&self, inst: &Inst, d: Reg) -> Option<Value> {
        let fixed = |&reg: &Reg| match reg {
            Reg::Pred(p) => self.truth(p).is_some_and(|truth| truth.sure),
            reg => self.value(reg).is_some_and(|value| value.is_fixed()),
        };
        let looks = matches!(inst.op, Op::Load(_) | Op::Atomic(_) | Op::BarrierWait { .. });
        let code = &self.cluster.kernel.code;
        let alone = self.leaving.members.iter().filter(|&&at| code[at as usize].defs.contains(&d)).count() == 1;
        let now = self.cluster.warps[self.w].registers.lane(d, self.lane) as i128;
        (alone && (looks || inst.facts.plain) && inst.uses.iter().all(fixed)).then_some(Value::fixed(now))
    }

    fn time(&self, which: Special, bits: u32) -> Option<Value> {
        let now = self.cluster.special(self.w, which, self.lane as u32);
        let mhz = self.cluster.costs.clock_mhz.max(1);
        let more = match which {
            Special::Timer(from) => (u128::from(self.left.cycles) * 1000 / u128::from(mhz)) >> from,
            _ => self.left.cycles.into(),
        };
        let low = i128::from(now);
        let value = Value { now: low, low, high: low + more as i128 + 1, step: None };
        Some(value.wrapped(bits))
    }

    /// Registers that decide grow in this round as in the last.
    fn grows_as_assumed(&self, branch: u32) -> Option<bool> {
        let begins = self.leaving.begins(branch)?;
        let b32 = begins.b32.iter().map(|&n| (Reg::B32(n), 32));
        let mut registers = b32.chain(begins.b64.iter().map(|&n| (Reg::B64(n), 64)));
        let grow = registers.all(|(reg, bits)| {
            let before = self.before(reg);
            match (before.step, self.values.get(&reg)) {
                (Some(step), Some(after)) => *after == Some(before.plus(Value::fixed(step)).wrapped(bits)),
                (step, None) => step == Some(0),
                (None, _) => false,
            }
        });
        let same = begins.pred.iter().all(|&p| match self.truths.get(&p) {
            Some(truth) => truth.is_some_and(|truth| truth.sure && truth.now == self.now(p)),
            None => true,
        });
        Some(grow && same)
    }
}
