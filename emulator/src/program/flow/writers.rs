//! Which statement a register's value may come from: for hints, which take one of them for all.
//!
//! Registers that are never alive together share a place. So a statement that stands above and writes the place may have written another
//! register: only one from which a way leads here counts.

use super::successors;
use crate::program::op::{Inst, Reg};
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
        let found = self.all(at, reg);
        let above = found.iter().filter(|&&writer| writer < at).max();
        above.or(found.iter().min()).copied()
    }

    /// The same where it is the only one.
    pub fn only(&self, at: usize, reg: Reg) -> Option<usize> {
        let found = self.all(at, reg);
        found.first().copied().filter(|_| found.len() == 1)
    }

    /// The statements that may have written this register, for who reads it here.
    pub fn all(&self, at: usize, reg: Reg) -> Vec<usize> {
        let Some(writers) = self.of.get(&reg) else { return vec![] };
        let among = |from: usize, to: usize| {
            let above = &writers[..writers.partition_point(|&writer| writer < to)];
            above.last().copied().filter(|&writer| writer >= from)
        };
        let here = self.block(at);
        if let Some(writer) = among(self.begins[here], at) {
            return vec![writer];
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
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::load;

    /// `%r1` is written above for something else, and below, where the loop begins, for who reads it: a place that two registers share.
    #[test]
    fn who_stands_above_and_leads_elsewhere_has_not_written_it() {
        let text = ".version 8.7
            .target sm_100a
            .address_size 64
            .visible .entry k(.param .u64 out) {
            .reg .b32 %r<4>;
            .reg .b64 %rd<2>;
            .reg .pred %p<2>;
            ld.param.u64 %rd0, [out];
            mov.u32 %r1, %tid.x;
            st.global.u32 [%rd0], %r1;
            bra.uni HEAD;
            BODY:
            st.global.u32 [%rd0+4], %r1;
            ret;
            HEAD:
            setp.eq.u32 %p1, %r1, 0;
            mov.u32 %r1, %ntid.x;
            @%p1 bra BODY;
            mov.u32 %r1, %laneid;
            bra.uni BODY;
            }";
        let program = load(text).expect("it loads");
        let code = &program.kernels[0].code;
        let at = |text: &str, n: usize| {
            let is = |inst: &&(usize, &Inst)| program.kernels[0].sites[inst.1.site as usize].text.starts_with(text);
            code.iter().enumerate().filter(|inst| is(&inst)).nth(n).expect(text).0
        };
        let writers = Writers::new(code);
        let reads = |text: &str, n: usize| {
            let at = at(text, n);
            let regs = code[at].uses.iter().filter(|reg| matches!(reg, Reg::B32(_)));
            regs.filter_map(|reg| writers.last(at, *reg)).collect::<Vec<_>>()
        };
        assert_eq!(reads("st.global", 0), [at("mov.u32", 0)]);
        assert_eq!(reads("setp", 0), [at("mov.u32", 0)]);
        // Both that lead there stand below: the first of them.
        assert_eq!(reads("st.global", 1), [at("mov.u32", 1)]);
        assert_eq!(writers.last(0, Reg::B32(u16::MAX)), None);
    }
}
