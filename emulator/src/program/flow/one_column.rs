//! Which statements store the same columns of a product in each lane: each lane has a row of it, and the statement the column. And which store what the
//! registers of `wgmma.mma_async` hold.

use super::writers::Writers;
use crate::program::Kernel;
use crate::program::facts::{Way, ways_lead};
use crate::program::op::{FALSE, Op, Reg, Space, TRUE, TensorShape};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::cell::RefCell;

/// So many statements are looked at for a store, and so deep.
const MOST: u32 = 256;
const DEEP: u32 = 24;

/// What a register is computed from, in one way.
#[derive(Clone, Copy, PartialEq)]
enum From {
    /// Numbers that are the same in all lanes.
    Numbers,
    /// Columns of a product, too, that are the same in all lanes.
    Columns,
}

/// The statements of `tcgen05.ld` that a store is fed by.
pub type Loads = SmallVec<[u32; 4]>;

/// First registers of accumulators.
pub type Accumulators = SmallVec<[u16; 2]>;

/// What the stores of columns store.
#[derive(Debug, Default)]
pub struct OfStores {
    stores: FxHashMap<u32, Stored>,
    /// The statements that load from memory what is added to columns, as a matrix C is.
    added: FxHashSet<u32>,
}

/// Columns one behind the other, of one load: its statement, the first of them, counted from the load's first, and how many there are.
pub type InARow = (u32, u32, u32);

/// What a statement stores.
#[derive(Debug)]
struct Stored {
    loads: Loads,
    in_a_row: Option<InARow>,
    /// And nothing that was loaded from memory.
    alone: bool,
}

/// What is computed from columns and stored, with what says whether it is stored again.
struct Found {
    at: usize,
    site: u32,
    stored: Stored,
    /// Of each register that it stores: the columns that it is computed from, and the statement that has written it.
    columns: SmallVec<[Columns; 4]>,
    written: SmallVec<[(usize, Reg); 4]>,
    /// The statements that load what is added.
    added: Loads,
}

/// Columns, or numbers in memory: the load, and which of its registers it is.
type Columns = SmallVec<[(u32, u32); 4]>;

/// A search for what a statement stores.
struct Search<'a> {
    kernel: &'a Kernel,
    /// So many statements may be looked at still.
    left: u32,
    /// What was found.
    loads: Loads,
    /// The columns that the register is computed from which is looked at.
    columns: Columns,
    /// What is added to it from memory: in the same way.
    added: Columns,
}

impl Kernel {
    /// Which statements write registers: found out once, when it is asked for.
    pub fn writers(&self) -> &Writers {
        self.writers.get_or_init(|| Writers::new(&self.code))
    }

    /// Whether a statement stores what is computed from registers of `tcgen05.ld` that hold the same columns in each lane, and from nothing else.
    pub fn stores_of_one_column(&self, site: u32) -> bool {
        self.of_stores().stores.get(&site).is_some_and(|stored| stored.alone)
    }

    /// The loads of a statement that stores what is computed from such registers, and from what is loaded from memory, as a matrix C that is added.
    pub fn loads_of_columns(&self, site: u32) -> Option<&Loads> {
        self.of_stores().stores.get(&site).map(|stored| &stored.loads)
    }

    /// The columns that such a statement stores, if they are one behind the other.
    pub fn columns_in_a_row(&self, site: u32) -> Option<InARow> {
        self.of_stores().stores.get(&site)?.in_a_row
    }

    /// Whether a statement loads what is computed with such registers, and stored.
    pub fn is_added_to_columns(&self, site: u32) -> bool {
        self.of_stores().added.contains(&site)
    }

    fn of_stores(&self) -> &OfStores {
        self.columns.get_or_init(|| self.stores_of_columns())
    }

    /// The first registers of the accumulators of `wgmma.mma_async` that a statement stores something of, if it stores what is computed from them and from
    /// constants alone, and no MMA begins between the reading of the registers and the store.
    pub fn stored_accumulators(&self, site: u32) -> Option<&Accumulators> {
        self.accumulators.get_or_init(|| self.stores_of_accumulators()).get(&site)
    }

    fn stores_of_accumulators(&self) -> FxHashMap<u32, Accumulators> {
        let stores = self.code.iter().enumerate().filter_map(|(at, inst)| {
            let regs = match &inst.op {
                Op::Store(op) => op.s.to_vec(),
                Op::MatrixStore { s, .. } => s.iter().map(|&reg| Reg::B32(reg)).collect(),
                _ => return None,
            };
            Some((inst.site, self.accumulators_in(at, regs)?))
        });
        stores.collect()
    }

    fn accumulators_in(&self, store: usize, regs: Vec<Reg>) -> Option<Accumulators> {
        let constant = |reg: Reg| match reg {
            Reg::B32(n) => self.constants32.iter().any(|constant| constant.0 == n),
            Reg::B64(n) => self.constants64.iter().any(|constant| constant.0 == n),
            Reg::Pred(n) => n == TRUE || n == FALSE,
            _ => false,
        };
        let mut open: Vec<(usize, Reg)> = regs.into_iter().map(|reg| (store, reg)).collect();
        let (mut seen, mut found) = (FxHashSet::default(), Accumulators::new());
        while let Some((at, reg)) = open.pop() {
            if constant(reg) || !seen.insert((at, reg)) {
                continue;
            }
            if seen.len() > MOST as usize {
                return None;
            }
            let writers = self.writers().all(at, reg);
            if writers.is_empty() {
                return None;
            }
            for writer in writers {
                let inst = &self.code[writer];
                match &inst.op {
                    Op::Wgmma(op) => {
                        let stale = |n: usize, inst: &crate::program::Inst| match &inst.op {
                            _ if n == store => Way::Ends,
                            Op::Wgmma(_) => Way::Found,
                            _ => Way::On,
                        };
                        if at != store && ways_lead(&self.code, at, stale) {
                            return None;
                        }
                        let first = *op.d.first()?;
                        if !found.contains(&first) {
                            found.push(first);
                        }
                    }
                    Op::Special { .. } => return None,
                    _ if inst.facts.plain => open.extend(inst.uses.iter().map(|&used| (writer, used))),
                    _ => return None,
                }
            }
        }
        (!found.is_empty()).then_some(found)
    }

    fn stores_of_columns(&self) -> OfStores {
        let mut instructions: FxHashMap<u32, u32> = FxHashMap::default();
        let stores = || self.code.iter().enumerate().filter(|(_, inst)| matches!(inst.op, Op::Store(_)));
        stores().for_each(|(_, inst)| *instructions.entry(inst.site).or_default() += 1);
        let alone = stores().filter(|(_, inst)| instructions[&inst.site] == 1);
        let all: FxHashMap<usize, Found> = alone
            .filter_map(|(at, inst)| {
                let Op::Store(op) = &inst.op else { return None };
                Some((at, Search::new(self).found(at, inst.site, &op.s)?))
            })
            .collect();
        let again: FxHashSet<usize> = all.values().flat_map(|found| self.stored_again(found, &all)).collect();
        let mut of_stores = OfStores::default();
        for (_, found) in all.into_iter().filter(|(at, _)| !again.contains(at)) {
            of_stores.stores.insert(found.site, found.stored);
            of_stores.added.extend(found.added);
        }
        of_stores
    }

    /// The statements that store the same numbers, or other numbers of memory with the same columns, before those are loaded anew; and the first of them. A number
    /// of a row that is spread over it, or is a factor of others, says nothing of where these belong.
    fn stored_again(&self, first: &Found, all: &FxHashMap<usize, Found>) -> Vec<usize> {
        let same = |other: &Found| match first.stored.alone {
            true => first.written.iter().any(|number| other.written.contains(number)),
            false => first.columns.iter().any(|columns| other.columns.contains(columns)),
        };
        let again = RefCell::new(Vec::new());
        ways_lead(&self.code, first.at, |at, inst| {
            if first.stored.loads.contains(&inst.site) {
                return Way::Ends;
            }
            if all.get(&at).is_some_and(same) {
                again.borrow_mut().extend([first.at, at]);
            }
            Way::On
        });
        again.into_inner()
    }
}

/// Columns of registers one behind the other: whether the columns are so, too.
fn in_a_row(mut columns: impl Iterator<Item = (u32, u32)>) -> Option<InARow> {
    let (load, first) = columns.next()?;
    let mut count = 1;
    for column in columns {
        if column != (load, first + count) {
            return None;
        }
        count += 1;
    }
    Some((load, first, count))
}

impl Search<'_> {
    fn new(kernel: &Kernel) -> Search<'_> {
        Search { kernel, left: MOST, loads: Loads::new(), columns: Columns::new(), added: SmallVec::new() }
    }

    fn found(&mut self, at: usize, site: u32, regs: &[Reg]) -> Option<Found> {
        let (mut columns, mut written) = (SmallVec::<[Columns; 4]>::new(), SmallVec::new());
        let mut added = Loads::new();
        for &reg in regs {
            if self.from(at, reg, DEEP) != Some(From::Columns) {
                return None;
            }
            let mut own = std::mem::take(&mut self.columns);
            own.sort_unstable();
            own.dedup();
            let mut from_memory = std::mem::take(&mut self.added);
            from_memory.sort_unstable();
            from_memory.dedup();
            for numbers in from_memory.chunk_by(|one, next| one.0 == next.0) {
                // What is made of more numbers than it has columns, as the sum of a row is, has none of its own.
                if numbers.len() > own.len() {
                    return None;
                }
                added.push(numbers[0].0);
            }
            columns.push(own);
            written.extend(self.kernel.writers().only(at, reg).map(|writer| (writer, reg)));
        }
        let alone = added.is_empty();
        // One number of a row that all registers are computed with, as a factor, says nothing of where the others belong that are loaded from memory.
        let each_its_own = (1..columns.len()).all(|n| !columns[..n].contains(&columns[n]));
        let in_a_row = in_a_row(columns.iter().flatten().copied());
        let stored = Stored { loads: std::mem::take(&mut self.loads), in_a_row, alone };
        (alone || each_its_own).then_some(Found { at, site, stored, columns, written, added })
    }

    fn from(&mut self, at: usize, reg: Reg, deep: u32) -> Option<From> {
        let kernel = self.kernel;
        let constant = match reg {
            Reg::B32(n) => kernel.constants32.iter().any(|constant| constant.0 == n),
            Reg::B64(n) => kernel.constants64.iter().any(|constant| constant.0 == n),
            Reg::Pred(n) => n == TRUE || n == FALSE,
            _ => false,
        };
        if constant {
            return Some(From::Numbers);
        }
        self.left = self.left.checked_sub(1)?;
        let writer = kernel.writers().only(at, reg).filter(|_| deep > 0)?;
        let inst = &kernel.code[writer];
        match inst.op {
            _ if inst.facts.guarded => None,
            Op::TensorLoad { shape: TensorShape::S32x32b, ref d, pack, .. } => {
                if !self.loads.contains(&inst.site) {
                    self.loads.push(inst.site);
                }
                let which = d.iter().position(|&to| Reg::B32(to) == reg)?;
                self.columns.push((inst.site, which as u32 * if pack { 2 } else { 1 }));
                Some(From::Columns)
            }
            Op::Load(ref op) if matches!(op.space, Space::Global | Space::Shared | Space::Generic | Space::Param) => {
                let which = op.d.iter().position(|&to| to == reg)?;
                self.added.push((inst.site, which as u32));
                Some(From::Numbers)
            }
            // Which of several it is may differ from lane to lane.
            Op::Select32 { .. } | Op::Select64 { .. } | Op::Special { .. } => None,
            _ if inst.facts.plain => {
                if let Some((packed, part)) = self.part_of_a_pair(writer, reg) {
                    return self.from(packed, part, deep - 1);
                }
                let mut from = From::Numbers;
                for &used in &inst.uses {
                    if self.from(writer, used, deep - 1)? == From::Columns {
                        from = From::Columns;
                    }
                }
                Some(from)
            }
            _ => None,
        }
    }

    /// A statement takes a register apart that another one has put together: that one, and the part which this register is.
    fn part_of_a_pair(&self, writer: usize, reg: Reg) -> Option<(usize, Reg)> {
        let Op::Repack { d: parts, s: whole, d_bits, .. } = &self.kernel.code[writer].op else { return None };
        let (&[whole], n) = (&whole[..], parts.iter().position(|part| *part == reg)?) else { return None };
        let packed = self.kernel.writers().only(writer, whole)?;
        let inst = &self.kernel.code[packed];
        match &inst.op {
            Op::Repack { d, s, s_bits, .. } if d.len() == 1 && s_bits == d_bits && !inst.facts.guarded => {
                Some((packed, *s.get(n)?))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of each statement that stores: whether it is known which columns it stores.
    fn known(body: &str) -> Vec<bool> {
        let text = format!(
            ".version 8.7\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 to)\n{{\n.shared .align 16 .b8 c[1024];\n.reg .b32 %r<16>;\n\
             .reg .b64 %to;\n.reg .pred %p;\nld.param.u64 %to, [to];\nmov.u32 %r15, %tid.x;\nsetp.lt.u32 %p, %r15, 64;\nTILE:\n\
             tcgen05.ld.sync.aligned.32x32b.x4.b32 {{%r0, %r1, %r2, %r3}}, [%r15];\ntcgen05.wait::ld.sync.aligned;\n{body}\n@%p bra TILE;\nret;\n}}\n"
        );
        let program = crate::load(&text).unwrap_or_else(|errors| panic!("{errors:#?}"));
        let kernel = &program.kernels[0];
        let stores = kernel.code.iter().filter(|inst| matches!(inst.op, Op::Store(_)));
        stores.map(|inst| kernel.loads_of_columns(inst.site).is_some()).collect()
    }

    const C: &str = "ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [c];\nld.shared.v4.b32 {%r8, %r9, %r10, %r11}, [c+16];\n";

    /// Four times, of the registers `d`, `a`, and `c` from these on.
    fn four(op: &str, d: u32, a: u32, c: u32) -> String {
        (0..4).map(|n| format!("{op} %r{}, %r{}, %r{};\n", d + n, a + n, c + n)).collect()
    }

    #[test]
    fn each_number_goes_to_one_place() {
        assert_eq!(known("st.global.v2.b32 [%to], {%r0, %r1};\nst.global.v2.b32 [%to+8], {%r2, %r3};"), [true, true]);
        assert_eq!(known("st.global.v2.b32 [%to], {%r0, %r1};\nst.global.v2.b32 [%to+8], {%r0, %r1};"), [false, false]);
        let either = "@%p bra ONE;\nst.global.v2.b32 [%to], {%r0, %r1};\nbra BOTH;\nONE:\nst.shared.v2.b32 [c], {%r0, %r1};\nBOTH:";
        assert_eq!(known(either), [true, true], "one of two ways");
        let round = "AGAIN:\nst.global.v2.b32 [%to], {%r0, %r1};\nadd.s64 %to, %to, 8;\n@%p bra AGAIN;";
        assert_eq!(known(round), [false], "all over a row");
        // Other numbers of the same columns may be stored, too.
        let two = "st.global.b32 [%to], %r0;\nneg.f32 %r4, %r0;\nst.global.b32 [%to+64], %r4;";
        assert_eq!(known(two), [true, true]);
    }

    #[test]
    fn what_is_added_to_columns_is_of_each_its_own() {
        let store = |at: u32, d: u32| {
            format!("st.global.v4.b32 [%to+{at}], {{%r{d}, %r{}, %r{}, %r{}}};\n", d + 1, d + 2, d + 3)
        };
        let added = format!("{C}{}{}", four("add.f32", 4, 0, 4), store(0, 4));
        assert_eq!(known(&added), [true]);
        let factors = format!("{added}{}{}", four("mul.f32", 8, 0, 8), store(16, 8));
        assert_eq!(known(&factors), [false, false], "eight numbers of memory, by four factors");
        let sum = format!(
            "{C}add.f32 %r4, %r4, %r5;\nadd.f32 %r4, %r4, %r6;\nadd.f32 %r0, %r0, %r4;\nst.global.b32 [%to], %r0;"
        );
        assert_eq!(known(&sum), [false], "a sum of three");
        let one = format!("{C}add.f32 %r0, %r0, %r4;\nst.global.b32 [%to], %r0;");
        assert_eq!(known(&one), [true]);
    }
}
