//! `tcgen05.st`: from registers to tensor memory.

use super::cells::Use;
use super::supplies::WHOLE;
use super::{CELL, COLUMNS, Halves};
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::state::{ActorKind, At, Race, RaceMemory};
use crate::order::Stamp;
use crate::program::op::{Address, Reg, TensorShape};

/// Where a `tcgen05.st` puts what.
struct StoredCells<'a> {
    shape: TensorShape,
    s: &'a [u16],
    unpack: bool,
    lane: u32,
    column: u32,
    columns: u32,
}

/// The cells that a register goes to. Unpacked, its halves go to the low halves of two neighbours.
fn cells(column: u32, value: u32, unpack: bool) -> [(u32, u32); 2] {
    if unpack { [(column, value & 0xffff), (column + 1, value >> 16)] } else { [(column, value), (column, value)] }
}

/// A load brings back what was stored: only what MMAs leave is multiplied.
fn without_factor(value: u32, factor: f32) -> u32 {
    if factor == 1.0 { value } else { (f32::from_bits(value) / factor).to_bits() }
}

impl Cluster<'_> {
    pub fn tensor_store(
        &mut self,
        at: At,
        shape: TensorShape,
        tensor: &Address,
        s: &[u16],
        unpack: bool,
    ) -> Result<(), Stop> {
        let At { w, f, site, .. } = at;
        let c = self.warps[w].cta;
        let registers = if unpack { 2 * s.len() } else { s.len() };
        let (lane, column, columns) = self.tensor_range(at, shape, registers, tensor)?;
        self.settle();
        self.check_tensor_store(at, c, &StoredCells { shape, s, unpack, lane, column, columns });
        let warp = &mut self.warps[w];
        let factor = self.options.tensor_load_factor;
        if factor != 1.0 && unpack {
            self.factor_fails.get_or_insert((site, "it unpacks halves of columns"));
        }
        let plain = shape == TensorShape::S32x32b && !unpack && factor == 1.0;
        for (r, &reg) in s.iter().enumerate() {
            let defined = warp.registers.defined(Reg::B32(reg));
            if plain && defined == u32::MAX {
                self.ctas[c].tensor.set_column(lane / 32, column + r as u32, &warp.registers.b32[usize::from(reg)]);
                continue;
            }
            let origin = warp.origins.get(&Reg::B32(reg)).copied().unwrap_or(0);
            for t in 0..32 {
                let (dl, dc) = shape.cell(t, r as u32, unpack);
                let ok = defined >> t & 1 == 1;
                let value = without_factor(warp.registers.b32[usize::from(reg)][t as usize], factor);
                for (dc, value) in cells(dc, value, unpack) {
                    self.ctas[c].tensor.set(lane + dl, column + dc, value, ok);
                    if !ok {
                        self.ctas[c].tensor.set_origin(column + dc, origin);
                    }
                }
            }
        }
        let (_, time) = self.when(w, f);
        self.warps[w].stores_done_at = time + self.costs.tensor_load + u64::from(columns);
        Ok(())
    }

    /// Holds a `tcgen05.st` against what was accessed before, while the cells still hold that.
    fn check_tensor_store(&mut self, at: At, c: usize, cells: &StoredCells) {
        let At { w, site, .. } = at;
        let &StoredCells { shape, lane, column, columns, .. } = cells;
        let actor = self.queue_actor(w, |warp| &mut warp.stores, ActorKind::TensorStores);
        let warp = &mut self.warps[w];
        warp.stores.epoch += 1;
        warp.stores_issued.push(warp.epoch);
        warp.views.after.raise(actor, warp.stores.epoch);
        let stamp = Stamp::new(actor, warp.stores.epoch, site, self.index);
        // Of what its warp has told others, that it was issued.
        let issued = Stamp { epoch: warp.epoch, ..stamp };
        let memory = RaceMemory::Tensor(c);
        if self.options.judges() {
            self.chunks_to_tensor(w, site, cells.s);
            let quarter = (lane / 32) as usize;
            shape.starts(column).into_iter().for_each(|from| self.supplies.stores(c, (from, columns)));
            match shape {
                TensorShape::S32x32b => self.note_supply(c, quarter..quarter + 1, (column, columns), site, false),
                // Half of the lanes: what the others hold is not followed.
                _ => shape
                    .starts(column)
                    .into_iter()
                    .for_each(|from| self.supplies.read(c, (from, columns), WHOLE, None)),
            }
        }
        let mut same = None;
        for from in shape.starts(column) {
            let at = u64::from(lane / 32 * COLUMNS + from) * CELL;
            let end = at + u64::from(columns) * CELL;
            let halves = Halves::of(lane, shape.size().0);
            if let Some(race) = self.touch_cells(w, c, at, end - at, halves, Use::of(stamp, true)) {
                let same = *same.get_or_insert_with(|| self.cells_hold_the_same(w, c, cells));
                self.race(Race { same_value: same && self.stored_once(&race), ..race });
            }
            // The halves of a quarter are apart, as other cells would be.
            let half = if halves == Halves::Upper { u64::from(4 * COLUMNS) * CELL } else { 0 };
            if self.options.judges() && self.stored_cells.add_again(issued, memory, at + half..end + half) {
                self.rewrites.add(issued, memory, at, end);
            }
        }
    }

    /// Whether the first of two accesses of tensor memory is a `tcgen05.st`, and the first one there since its warp told anything last.
    fn stored_once(&self, race: &Race) -> bool {
        let Race { conflict, memory, .. } = race;
        let Some(ActorKind::TensorStores(by)) = self.kind(conflict.first) else { return false };
        let issued = self.warps.get(by as usize).and_then(|warp| {
            let nth = conflict.first.epoch.checked_sub(1)?;
            warp.stores_issued.get(nth as usize).copied()
        });
        issued.is_some_and(|epoch| !self.rewrites.has(Stamp { epoch, ..conflict.first }, *memory, conflict.byte))
    }

    /// Whether the cells hold already what a `tcgen05.st` puts there.
    fn cells_hold_the_same(&self, w: usize, c: usize, stored: &StoredCells) -> bool {
        let &StoredCells { shape, s, unpack, lane, column, .. } = stored;
        if self.blank.is_some() || !self.options.computes() {
            return false;
        }
        let registers = &self.warps[w].registers;
        let factor = self.options.tensor_load_factor;
        s.iter().enumerate().all(|(r, &reg)| {
            registers.defined(Reg::B32(reg)) == u32::MAX
                && (0..32).all(|t| {
                    let (dl, dc) = shape.cell(t, r as u32, unpack);
                    let value = without_factor(registers.b32[usize::from(reg)][t as usize], factor);
                    let holds = |(dc, value)| self.ctas[c].tensor.get(lane + dl, column + dc) == (value, true);
                    cells(dc, value, unpack).into_iter().all(holds)
                })
        })
    }
}
