//! Which statements store the same columns of a product in each lane: each lane has a row of it, and the statement the column. And which store what the
//! registers of `wgmma.mma_async` hold.

use super::writers::Writers;
use crate::program::Kernel;
use crate::program::facts::{Way, ways_lead};
use crate::program::op::{FALSE, Op, Reg, Space, TRUE, TensorShape};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

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

/// A search for what a statement stores.
struct Search<'a> {
    kernel: &'a Kernel,
    /// So many statements may be looked at still.
    left: u32,
    /// What was found.
    loads: Loads,
    /// The columns that the register is computed from which is looked at: the load, and which of its registers it is.
    columns: SmallVec<[(u32, u32); 4]>,
    /// The statements that load what is added from memory.
    added: Loads,
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
        let mut found = OfStores::default();
        let mut instructions: FxHashMap<u32, u32> = FxHashMap::default();
        let stores = || self.code.iter().enumerate().filter(|(_, inst)| matches!(inst.op, Op::Store(_)));
        stores().for_each(|(_, inst)| *instructions.entry(inst.site).or_default() += 1);
        for (at, inst) in stores().filter(|(_, inst)| instructions[&inst.site] == 1) {
            let Op::Store(op) = &inst.op else { continue };
            let mut search = Search {
                kernel: self,
                left: MOST,
                loads: Loads::new(),
                columns: Default::default(),
                added: Loads::new(),
            };
            if let Some(stored) = search.stored(at, &op.s) {
                found.stores.insert(inst.site, stored);
                found.added.extend(search.added);
            }
        }
        found
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
    fn stored(&mut self, at: usize, regs: &[Reg]) -> Option<Stored> {
        let mut columns = SmallVec::<[_; 4]>::new();
        for &reg in regs {
            if self.from(at, reg, DEEP) != Some(From::Columns) {
                return None;
            }
            columns.push(std::mem::take(&mut self.columns));
        }
        let alone = self.added.is_empty();
        // One number of a row that all registers are computed with, as a factor, says nothing of where the others belong that are loaded from memory.
        let each_its_own = (1..columns.len()).all(|n| !columns[..n].contains(&columns[n]));
        columns.iter_mut().for_each(|columns| columns.sort_unstable());
        let in_a_row = in_a_row(columns.iter().flatten().copied());
        (alone || each_its_own).then(|| Stored { loads: std::mem::take(&mut self.loads), in_a_row, alone })
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
                self.added.push(inst.site);
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
