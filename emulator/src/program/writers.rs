//! Which statement a register's value may come from: for hints, which take one of them for all.
//!
//! Registers that are never alive together share a place. So a statement that stands above and writes the place may have written another
//! register: only one from which a way leads here counts.

use super::flow::successors;
use super::op::{Inst, Reg};
use rustc_hash::{FxHashMap, FxHashSet};

/// The statements that write registers, and the ways between them, by blocks: statements between which there is no branch and no place to
/// branch to. A kernel that is written out has thousands of statements, and few of these.
#[derive(Debug)]
pub struct Writers {
    /// Of a register, in the order of the code.
    of: FxHashMap<Reg, Vec<usize>>,
    /// Where blocks begin, and the end of the last.
    begins: Vec<usize>,
    /// The blocks that lead to each.
    before: Vec<Vec<usize>>,
}

impl Writers {
    pub fn new(code: &[Inst]) -> Writers {
        let mut of: FxHashMap<Reg, Vec<usize>> = FxHashMap::default();
        for (at, inst) in code.iter().enumerate() {
            inst.defs.iter().for_each(|&reg| of.entry(reg).or_default().push(at));
        }
        let next = successors(code, true);
        let mut begins = vec![0, code.len()];
        for (at, to) in next.iter().enumerate().filter(|(at, to)| **to != [at + 1]) {
            begins.push(at + 1);
            begins.extend(to);
        }
        begins.sort_unstable();
        begins.dedup();
        let mut writers = Writers { of, before: vec![Vec::new(); begins.len()], begins };
        for block in 0..writers.begins.len() - 1 {
            for &to in &next[writers.begins[block + 1] - 1] {
                let to = writers.block(to);
                writers.before[to].push(block);
            }
        }
        writers
    }

    fn block(&self, at: usize) -> usize {
        self.begins.partition_point(|&begin| begin <= at) - 1
    }

    /// The statement that has written this register, for who reads it here. Where several may have, the last of those above; or, since a loop
    /// may be laid out so that what comes first stands below, the first of all.
    pub fn last(&self, at: usize, reg: Reg) -> Option<usize> {
        let writers = self.of.get(&reg)?;
        let among = |from: usize, to: usize| {
            let above = &writers[..writers.partition_point(|&writer| writer < to)];
            above.last().copied().filter(|&writer| writer >= from)
        };
        let here = self.block(at);
        if let Some(writer) = among(self.begins[here], at) {
            return Some(writer);
        }
        let (mut seen, mut open) = (FxHashSet::default(), self.before[here].clone());
        let mut found = Vec::new();
        while let Some(block) = open.pop() {
            if !seen.insert(block) {
                continue;
            }
            match among(self.begins[block], self.begins[block + 1]) {
                Some(writer) => found.push(writer),
                None => open.extend(&self.before[block]),
            }
        }
        let above = found.iter().filter(|&&writer| writer < at).max();
        above.or(found.iter().min()).copied()
    }
}
