//! Values that are loaded and reach nobody. Where a tile has fewer elements than a CTA has threads, compilers let several warps load an element and compute with it,
//! and one of them store what comes of it: that one may overwrite the element before the others have loaded it, which is a race without effect.

use super::drafts::Draft;
use crate::diagnostic::Severity;
use crate::machine::cluster::Cluster;
use crate::machine::state::{ActorKind, Race};
use crate::machine::warp::registers::Registers;
use crate::order::Stamp;
use crate::program::flow::predecessors;
use crate::program::op::{L64, Op, Reg, Special};
use rustc_hash::{FxHashMap, FxHashSet};

/// Who reads, where that is no warp of this cluster.
const STRANGER: u32 = u32::MAX;

impl Cluster<'_> {
    /// The warp that reads in a race, if one side reads.
    pub fn reader_of(&self, race: &Race) -> Option<u32> {
        let reader = match (race.conflict.first_writes, race.conflict.second_writes) {
            (true, false) => race.second,
            (false, true) => race.conflict.first,
            _ => return None,
        };
        Some(match self.kind(reader) {
            Some(ActorKind::Warp(w)) => w,
            _ => STRANGER,
        })
    }

    /// What the readers of a race have read reaches nobody: it ends in stores that no lane of these warps executes, and the write is by one of those.
    pub fn reads_for_nobody(&self, race: &Race) -> bool {
        let (first, second) = (race.conflict.first, race.second);
        let (writer, reader) = if race.conflict.first_writes { (first, second) } else { (second, first) };
        let warps = race.readers.iter().map(|&w| (w != STRANGER).then_some(w as usize)).collect::<Option<Vec<usize>>>();
        warps.is_some_and(|warps| !warps.is_empty() && self.ends_in_guarded_stores(reader, writer, &warps))
    }

    /// A race to the letter, without effect.
    pub fn explain_read_for_nobody(&self, race: &Race, place: &str) -> Draft {
        let (first, second) = (race.conflict.first, race.second);
        let (writer, reader) = if race.conflict.first_writes { (first, second) } else { (second, first) };
        Draft {
            severity: Severity::Note,
            ..Draft::of(race, None)(
                "race-global",
                format!(
                    "{} reads {place}, {} writes it, and nothing orders the two; no store depends on what is read",
                    self.who_of_grid(reader),
                    self.who_of_grid(writer)
                ),
                vec![
                    self.label(reader.site, format!("{} reads it here", self.who_of_grid(reader))),
                    self.label(writer.site, format!("{} writes it here", self.who_of_grid(writer))),
                ],
                super::UNUSED_RULE,
                "Let the warps that store what comes of it load it, and no others.".into(),
            )
        }
    }

    /// What a statement loads goes through registers only, and into stores that none of the warps executes, the writer's among them.
    fn ends_in_guarded_stores(&self, loaded: Stamp, writer: Stamp, warps: &[usize]) -> bool {
        let (code, next) = (&self.kernel.code, self.kernel.leads());
        // Registers with what was loaded in them, in front of each instruction.
        let mut holding: FxHashMap<usize, FxHashSet<Reg>> = FxHashMap::default();
        let mut todo = vec![];
        for (at, inst) in code.iter().enumerate().filter(|(_, inst)| inst.site == loaded.site) {
            // Halves of a wide register have names of their own: too rare to follow.
            if !matches!(inst.op, Op::Load(_)) || inst.defs.iter().any(|reg| matches!(reg, Reg::B128(_))) {
                return false;
            }
            for &to in &next[at] {
                holding.entry(to).or_default().extend(inst.defs.iter().copied());
                todo.push(to);
            }
        }
        let mut stores = vec![];
        while let Some(at) = todo.pop() {
            let (Some(inst), Some(mut held)) = (code.get(at), holding.get(&at).cloned()) else { continue };
            if held.contains(&Reg::Pred(inst.guard)) {
                return false;
            }
            let takes = inst.uses.iter().any(|reg| held.contains(reg));
            match &inst.op {
                _ if !takes && inst.facts.guarded => {}
                _ if !takes => inst.defs.iter().for_each(|reg| _ = held.remove(reg)),
                Op::Store(_) if inst.facts.guarded => stores.push(at),
                _ if inst.facts.plain => held.extend(inst.defs.iter().copied()),
                _ => return false,
            }
            for &to in &next[at] {
                let known = holding.entry(to).or_default();
                let before = known.len();
                known.extend(held.iter().copied());
                if known.len() > before {
                    todo.push(to);
                }
            }
        }
        stores.sort_unstable();
        stores.dedup();
        let before = predecessors(next);
        let left_out = |w: usize, at: usize| {
            let (guard, negated) = (code[at].guard, code[at].guard_negated);
            let mut asked =
                Fixed { cluster: self, warp: w, before: &before, under_way: vec![], known: FxHashMap::default() };
            asked.value(at, Reg::Pred(guard)).is_some_and(|set| set == [u64::from(negated); 32])
        };
        // The store that the load races with is one of them: an element is updated in place.
        stores.iter().any(|&at| code[at].site == writer.site)
            && warps.iter().all(|&w| stores.iter().all(|&at| left_out(w, at)))
    }
}

/// Values that registers of a warp have whenever it comes to an instruction.
struct Fixed<'a, 'c> {
    cluster: &'a Cluster<'c>,
    warp: usize,
    before: &'a [Vec<usize>],
    under_way: Vec<usize>,
    /// What was asked before, by the statement that writes it.
    known: FxHashMap<(usize, Reg), Option<L64>>,
}

/// So many statements behind each other, and no more, are followed back.
const DEEPEST: usize = 64;

impl Fixed<'_, '_> {
    /// The value in front of an instruction, if one statement alone has written it, of values that are as fixed: a predicate as 0 or 1.
    fn value(&mut self, at: usize, reg: Reg) -> Option<L64> {
        let Some(by) = self.writer(at, reg)? else {
            // A constant, which nothing writes.
            return self.read(&self.registers(), reg);
        };
        if let Some(known) = self.known.get(&(by, reg)) {
            return *known;
        }
        if self.under_way.contains(&by) || self.under_way.len() == DEEPEST {
            return None;
        }
        self.under_way.push(by);
        let value = self.written(by, reg);
        self.under_way.pop();
        self.known.insert((by, reg), value);
        value
    }

    /// What a statement writes to a register.
    fn written(&mut self, at: usize, reg: Reg) -> Option<L64> {
        let inst = &self.cluster.kernel.code[at];
        if inst.facts.guarded || !inst.facts.plain {
            return None;
        }
        let mut registers = self.registers();
        match inst.op {
            Op::Special { d, which } if stays(which) => {
                let value = |lane: usize| self.cluster.special(self.warp, which, lane as u32);
                (0..32).for_each(|lane| registers.set_lane(d, lane, value(lane).into()));
                registers.set_defined(d, u32::MAX, u32::MAX);
            }
            Op::Special { .. } | Op::ActiveMask { .. } => return None,
            ref op => {
                for &used in inst.uses.iter() {
                    let Some(value) = self.value(at, used) else { continue };
                    (0..32).for_each(|lane| registers.set_lane(used, lane, value[lane].into()));
                    registers.set_defined(used, u32::MAX, u32::MAX);
                }
                let undefined = registers.undefined(inst, u32::MAX);
                registers.compute(u32::MAX, op);
                inst.defs.iter().for_each(|&d| registers.set_defined(d, u32::MAX, !undefined));
            }
        }
        self.read(&registers, reg)
    }

    /// Registers of which only constants have a value.
    fn registers(&self) -> Registers {
        Registers::new(self.cluster.kernel, self.cluster.warps[self.warp].cta, None)
    }

    fn read(&self, registers: &Registers, reg: Reg) -> Option<L64> {
        let whole = registers.defined(reg) == u32::MAX && !matches!(reg, Reg::B128(_));
        whole.then(|| std::array::from_fn(|lane| registers.lane(reg, lane) as u64))
    }

    /// The one statement by which a register can have been written last. `Some(None)`: there is none. `None`: there are several, or it may not have been written.
    fn writer(&self, at: usize, reg: Reg) -> Option<Option<usize>> {
        let code = &self.cluster.kernel.code;
        if !code.iter().any(|inst| inst.defs.contains(&reg)) {
            return Some(None);
        }
        let (mut seen, mut todo, mut writer) = (FxHashSet::default(), vec![at], None);
        while let Some(at) = todo.pop() {
            if at == 0 {
                return None;
            }
            for &at in self.before[at].iter().filter(|&&at| seen.insert(at)) {
                match code[at].defs.contains(&reg) {
                    true if writer.is_some_and(|known| known != at) => return None,
                    true => writer = Some(at),
                    false => todo.push(at),
                }
            }
        }
        writer.map(Some)
    }
}

/// A special register that holds one value while a thread runs.
fn stays(which: Special) -> bool {
    matches!(which, Special::Tid(_) | Special::Ntid(_) | Special::Ctaid(_) | Special::Nctaid(_) | Special::Lane)
}
