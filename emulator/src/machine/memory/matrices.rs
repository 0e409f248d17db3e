//! `ldmatrix` and `stmatrix`: matrices between shared memory and the registers of a warp.

use super::resolve::{Access, Target};
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::state::{At, RaceMemory, Slot};
use crate::program::matrix::{MatrixShape, Piece};
use crate::program::op::{Address, Packed, Reg};

impl Cluster<'_> {
    /// Rows of 16 bytes, of which each lane names one, to or from registers. Padded elements come to lie in the low bits of their bytes
    /// (assumption `unpacked-by-ldmatrix`).
    pub fn matrix(
        &mut self,
        at: At,
        address: &Address,
        shape: MatrixShape,
        regs: &[u16],
        load: bool,
    ) -> Result<(), Stop> {
        let At { w, f, mask, site } = at;
        self.whole_warp(w, mask, site)?;
        let stamp = self.stamp(w, mask, site);
        let blank = self.stores_blank(site);
        let (bytes, mut rows) = (shape.element(), Vec::<Slot>::with_capacity(32));
        let packed = shape.packed();
        let touched = packed.map_or(16, Packed::bytes) as u32;
        // All of them before a register is written: it may be that of the addresses.
        for lane in 0..regs.len().checked_sub(1).map_or(0, |last| shape.rows(last).end) {
            let slot = self.shared_slot(at, lane, address, false, 16, 16)?;
            rows.push(slot);
        }
        if load && self.trail.is_some() {
            let places: Vec<_> =
                rows.iter().enumerate().map(|(n, row)| (n, Target::Shared(row.cta, row.offset))).collect();
            self.note_trail(at, &places, touched.into(), Access::Load);
        }
        if !load && self.options.judges() && shape == (MatrixShape::Halves { transposed: false }) {
            self.note_matrices_of_sums(w, site, &rows);
        }
        if self.options.judges() && !blank {
            let places = rows.iter().enumerate().map(|(n, row)| (n, Target::Shared(row.cta, row.offset)));
            self.check_lanes_apart(at, places, touched, (!load, true));
        }
        let known = self.races.len();
        self.raced = (!load).then(Vec::new);
        let mut again = false;
        for (n, &slot) in rows.iter().enumerate() {
            self.rewrites.again.set(false);
            self.touch_shared(w, slot, touched, stamp, !load);
            // What is there already is by this statement where an earlier row goes to the same place.
            again |= self.rewrites.again.take() && !rows[..n].contains(&slot);
        }
        let raced = self.raced.take().unwrap_or_default();
        if again || !raced.is_empty() {
            let same = !blank && self.rows_hold_the_same(w, shape, regs, &rows);
            if again && !same {
                for &Slot { cta, offset } in &rows {
                    self.rewrites.add(stamp, RaceMemory::Shared(cta), offset.into(), u64::from(offset + touched));
                }
            }
            let unwritten = rows.iter().any(|slot| !self.ctas[slot.cta].shared.is_defined(slot.offset as usize));
            self.settle_stores(raced, known, same, unwritten);
        }
        for (n, &reg) in regs.iter().enumerate() {
            for t in 0..32 {
                for piece in 0..4 / bytes {
                    let Piece { row, byte } = shape.piece(n, t, piece);
                    let slot = rows[row];
                    let start = slot.offset as usize;
                    // The bytes of memory, and the bits of them that are meant.
                    let (place, long, bits) = match packed {
                        Some(packed) => {
                            let (first, last) = packed.place(byte).into_inner();
                            let within = packed.bits() * byte - 8 * first;
                            (start + first, last - first + 1, within..within + packed.bits())
                        }
                        None => (start + byte, bytes, 0..8 * bytes),
                    };
                    let shared = &mut self.ctas[slot.cta].shared;
                    let registers = &mut self.warps[w].registers;
                    let cell = &mut registers.b32[usize::from(reg)][t];
                    let (shift, target) = (8 * bytes * piece, Target::Shared(slot.cta, place as u32));
                    if load {
                        let (value, defined) = shared.load(place, long);
                        let value = value >> bits.start & ((1 << bits.len()) - 1);
                        let blank = shared.any_blank(place, long);
                        let kept = if piece == 0 { 0 } else { *cell & ((1 << shift) - 1) };
                        *cell = kept | (value as u32) << shift;
                        let before = piece == 0 || registers.defined(Reg::B32(reg)) >> t & 1 == 1;
                        registers.set_defined(Reg::B32(reg), 1 << t, if defined && before { u32::MAX } else { 0 });
                        if !defined {
                            let origin = self.origin_of_memory(w, target, long, site);
                            self.warps[w].origins.insert(Reg::B32(reg), origin);
                        }
                        if blank {
                            self.loaded_blank(site);
                        }
                    } else {
                        let value = *cell >> shift & (u32::MAX >> (32 - 8 * bytes));
                        let defined = registers.defined(Reg::B32(reg)) >> t & 1 == 1;
                        shared.store(place, bytes, value.into(), defined);
                        if blank {
                            shared.mark_blank(place, bytes);
                        }
                        if !defined {
                            let origin = self.origin_of_register(w, Reg::B32(reg), site);
                            self.keep_origin(w, target, bytes, origin);
                        }
                    }
                }
            }
            if load {
                let warp = &mut self.warps[w];
                let time = warp.fragments[f].ready_at + self.costs.shared_load;
                warp.on_the_way.push(&warp.registers, Reg::B32(reg), time);
            }
        }
        Ok(())
    }

    /// Whether rows hold already what a `stmatrix` puts there.
    fn rows_hold_the_same(&self, w: usize, shape: MatrixShape, regs: &[u16], rows: &[Slot]) -> bool {
        let (bytes, registers) = (shape.element(), &self.warps[w].registers);
        regs.iter().enumerate().all(|(n, &reg)| {
            registers.defined(Reg::B32(reg)) == u32::MAX
                && (0..32).all(|t| {
                    (0..4 / bytes).all(|piece| {
                        let Piece { row, byte } = shape.piece(n, t, piece);
                        let (shared, at) = (&self.ctas[rows[row].cta].shared, rows[row].offset as usize + byte);
                        let new =
                            registers.b32[usize::from(reg)][t] >> (8 * bytes * piece) & (u32::MAX >> (32 - 8 * bytes));
                        shared.load(at, bytes) == (new.into(), true) && !shared.any_blank(at, bytes)
                    })
                })
        })
    }
}
