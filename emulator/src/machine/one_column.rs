//! Whether what the lanes of a warp store is of the same columns of a product in each: each lane has a row of it, and the statement the column.

use super::cluster::Cluster;
use crate::program::op::{FALSE, Op, Reg, TRUE, TensorShape};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};

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

/// A search for what a statement stores.
struct Search {
    /// So many statements may be looked at still.
    left: Cell<u32>,
    /// What was found.
    loads: RefCell<Loads>,
}

impl Cluster<'_> {
    /// Whether a statement stores what is computed from registers of `tcgen05.ld` that hold the same columns in each lane, and from nothing else.
    pub fn stores_of_one_column(&self, site: u32) -> bool {
        self.loads_of_columns(site).is_some()
    }

    /// The same: the loads.
    pub fn loads_of_columns(&self, site: u32) -> Option<Loads> {
        let mut stores = (0..).zip(&self.kernel.code).filter(|(_, inst)| inst.site == site);
        let (Some((at, inst)), None) = (stores.next(), stores.next()) else { return None };
        let Op::Store(op) = &inst.op else { return None };
        let search = Search { left: Cell::new(MOST), loads: RefCell::default() };
        let is_one = |&reg: &Reg| self.computed_from(at, reg, DEEP, &search) == Some(From::Columns);
        op.s.iter().all(is_one).then(|| search.loads.into_inner())
    }

    fn computed_from(&self, at: usize, reg: Reg, deep: u32, search: &Search) -> Option<From> {
        let constant = match reg {
            Reg::B32(n) => self.kernel.constants32.iter().any(|constant| constant.0 == n),
            Reg::B64(n) => self.kernel.constants64.iter().any(|constant| constant.0 == n),
            Reg::Pred(n) => n == TRUE || n == FALSE,
            _ => false,
        };
        if constant {
            return Some(From::Numbers);
        }
        search.left.set(search.left.get().checked_sub(1)?);
        let writer = self.writers().only(at, reg).filter(|_| deep > 0)?;
        let inst = &self.kernel.code[writer];
        match inst.op {
            _ if inst.facts.guarded => None,
            Op::TensorLoad { shape: TensorShape::S32x32b, .. } => {
                let mut loads = search.loads.borrow_mut();
                if !loads.contains(&inst.site) {
                    loads.push(inst.site);
                }
                Some(From::Columns)
            }
            // Which of several it is may differ from lane to lane.
            Op::Select32 { .. } | Op::Select64 { .. } | Op::Special { .. } => None,
            _ if inst.facts.plain => {
                let mut from = From::Numbers;
                for &used in &inst.uses {
                    if self.computed_from(writer, used, deep - 1, search)? == From::Columns {
                        from = From::Columns;
                    }
                }
                Some(from)
            }
            _ => None,
        }
    }
}
