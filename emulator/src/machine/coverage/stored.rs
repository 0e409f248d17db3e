//! What warps load and store of products, and where: for [`super::placed`].
//!
//! Of what threads store it is known which sum it is of where it is computed from registers of `tcgen05.ld` alone, or from those of `wgmma.mma_async`, and
//! each lane stores 16 bytes of a row, or the lanes store rows of D in global memory, one behind the other.

use super::chunks::{Order, Reordered};
use super::exchanged::Piece;
use super::lanes;
use super::placed::{Of, Seen, Stored};
use super::sums::Sum;
use crate::machine::cluster::Cluster;
use crate::machine::layout::drawn_up::{are_rows_of, places_in};
use crate::machine::layout::slices::Tile;
use crate::machine::memory::resolve::Target;
use crate::machine::state::{ActorKind, Slot};
use crate::machine::tensor_memory::{Halves, LANES};
use crate::machine::tma::box_origin::Origin;
use crate::order::GRANULE;
use crate::tensor_map::Element;
use smallvec::SmallVec;
use std::sync::Arc;

impl Cluster<'_> {
    /// A warp loads an accumulator from tensor memory.
    pub fn note_load_of_sums(&mut self, w: usize, site: u32, (halves, column): (Halves, u32)) {
        let cta = self.warps[w].cta;
        let of = self.issued.last_of(cta, halves, column, 1).and_then(|mma| {
            // Where both CTAs of a pair hold the same half of an operand, that is told.
            let halves = |sum: &&Sum| sum.of.iter().all(|lines| lines.len() < 2 || lines[0] != lines[1]);
            let sum = self.sums.held(mma.ctas.0, mma.d.0).filter(halves)?;
            let rows = *sum.of[0].get(cta.checked_sub(mma.ctas.0)?)?;
            let each = rows.whole && rows.rows == i64::from(LANES) && mma.d.2 == mma.columns;
            let row = each.then(|| rows.first + i64::from(self.warps[w].index % 4 * LANES / 4));
            Some(Arc::new(Of { rows, columns: sum.of[1].clone(), mma: sum.mma, row, epoch: mma.stamp.epoch }))
        });
        match of {
            Some(of) => self.placed.loaded.insert((w, site), (of, column)),
            None => self.placed.loaded.remove(&(w, site)),
        };
    }

    /// Lanes of a warp store so many bytes each.
    pub fn note_store_of_sums(&mut self, w: usize, site: u32, bytes: usize, targets: &[(usize, Target)]) {
        let of_columns = self.kernel.multiplies && self.kernel.stores_of_one_column(site);
        if of_columns
            && self.warpgroups.is_empty()
            && self.placed.stores.insert((self.warps[w].index % 4, site))
            && let Some(rows) = lanes::rows_of(targets)
        {
            let straight = self.in_columns(w, site).is_some_and(|of| of.row.is_some());
            self.placed.note_lanes(&rows, straight, site, None);
        }
        let directly = matches!(targets.first(), Some((_, Target::Global { .. })));
        if !self.warpgroups.is_empty() && directly {
            // Of eight rows, four lanes have neighbouring columns each.
            if let Some(of) = self.in_registers(w, site) {
                self.note_rows_of_sums(w, site, of, (4, bytes), targets);
            }
            return;
        }
        if self.placed.loaded.is_empty() || !directly && bytes != GRANULE as usize {
            return;
        }
        if self.kernel.loads_of_columns(site).is_none() {
            return;
        }
        let of = self.in_columns(w, site);
        if directly {
            return of.into_iter().for_each(|of| self.note_rows_of_sums(w, site, of, (1, bytes), targets));
        }
        let Some(places) = places_in(self.warps[w].cta, targets) else { return };
        let columns = self.kernel.columns_in_a_row(site).and_then(|(load, first, count)| {
            let (_, column) = self.placed.loaded.get(&(w, load))?;
            Some((column + first, count))
        });
        self.placed.stored.insert((w, site), Stored { epoch: self.warps[w].epoch, places, of, columns });
    }

    /// What a statement stores of a product that the warp has loaded from tensor memory, whatever it adds to that: the sum belongs where the product does.
    fn in_columns(&self, w: usize, site: u32) -> Option<Arc<Of>> {
        let loads = self.kernel.loads_of_columns(site)?;
        let mut all = loads.iter().map(|load| self.placed.loaded.get(&(w, *load)).map(|loaded| &loaded.0));
        let first = all.next().flatten();
        first.filter(|_| all.all(|of| of == first)).cloned()
    }

    /// A warp stores 8 x 8 matrices, of which each of these rows has 16 bytes.
    pub fn note_matrices_of_sums(&mut self, w: usize, site: u32, rows: &[Slot]) {
        let cta = self.warps[w].cta;
        if self.warpgroups.is_empty() || rows.iter().any(|row| row.cta != cta) {
            return;
        }
        let Some(of) = self.in_registers(w, site) else { return };
        let places = rows.iter().map(|row| row.offset).collect();
        self.placed
            .stored
            .insert((w, site), Stored { epoch: self.warps[w].epoch, places, of: Some(of), columns: None });
    }

    /// What a statement stores of an accumulator in registers.
    fn in_registers(&self, w: usize, site: u32) -> Option<Arc<Of>> {
        let (cta, first) = (self.warps[w].cta, self.warpgroup_of(w));
        let &[register] = self.kernel.stored_accumulators(site)?.as_slice() else { return None };
        let sum = self.sums.in_registers(cta, (first as u32) << 16 | u32::from(register))?;
        Some(Arc::new(Of { rows: *sum.of[0].first()?, columns: sum.of[1].clone(), mma: sum.mma, row: None, epoch: 0 }))
    }

    /// A warp stores rows of a product to global memory, so many lanes and bytes of each lane a row.
    fn note_rows_of_sums(
        &mut self,
        w: usize,
        site: u32,
        of: Arc<Of>,
        each: (usize, usize),
        targets: &[(usize, Target)],
    ) {
        if self.placed.direct.get(&(w, site)).is_some_and(|last| *last == of) {
            return;
        }
        if let Some(to) = self.rows_in_global(of.columns[0].size, each, targets) {
            self.placed.stored_from(site, &of, (to.address, to.at[1]));
            self.placed.add(Seen { copy: site, to, of: Of::clone(&of), by_threads: true });
        }
        self.placed.direct.insert((w, site), of);
    }

    /// Where in a matrix of so many columns lanes store, if it begins where its buffer does.
    fn rows_in_global(
        &self,
        columns: i64,
        (lanes, bytes): (usize, usize),
        targets: &[(usize, Target)],
    ) -> Option<Origin> {
        let &[(_, Target::Global { buffer, offset: first }), ..] = targets else { return None };
        let Target::Global { offset: second, .. } = targets.get(lanes)?.1 else { return None };
        let pitch = second.checked_sub(first).filter(|&pitch| pitch > (lanes * bytes) as u64)?;
        let place = |n: usize| first + (n / lanes) as u64 * pitch + (n % lanes * bytes) as u64;
        let straight = |(n, target): (usize, &(usize, Target))| target.1 == Target::Global { buffer, offset: place(n) };
        if targets.len() != LANES as usize / 4 || !targets.iter().enumerate().all(straight) {
            return None;
        }
        let (given, there) = (self.launch.buffers.get(buffer)?, &self.global.buffers[buffer]);
        if given.row_bytes.is_some_and(|row| u64::from(row) != pitch) {
            return None;
        }
        let element = match given.element_bytes.map_or(pitch / columns.max(1) as u64, u64::from) {
            1 => Element::U8,
            2 => Element::U16,
            4 => Element::U32,
            _ => return None,
        };
        let width = u64::from(element.bits() / 8);
        Some(Origin {
            element,
            at: [(first % pitch / width) as i64, (first / pitch) as i64],
            sizes: [pitch / width, there.memory.bytes.len() as u64 / pitch],
            address: there.base,
            plane: 0,
            folded: None,
        })
    }

    /// A tensor copy stores a box of two dimensions.
    pub fn note_place_of_sums(&mut self, cta: usize, tile: &Tile) {
        let Some(to) = tile.origin.filter(|_| tile.rows > 0 && !self.placed.stored.is_empty()) else { return };
        let chunk = GRANULE as u32;
        let mut found: Option<&Arc<Of>> = None;
        let mut rows = SmallVec::<[(Arc<Of>, i64); 8]>::new();
        let mut order = Order::new();
        // Each warp has 32 lanes of the accumulator.
        for row in (0..tile.rows).step_by(LANES as usize / 4) {
            for column in 0..tile.pitch / chunk {
                let at = tile.swizzle.apply(tile.start + row * tile.pitch + column * chunk);
                let Some(writer) = self.ctas[cta].shared_shadow.writer(at.into()) else { return };
                let Some(ActorKind::Warp(w)) = self.kind(writer) else { return };
                let stored = self.placed.stored.get(&(w as usize, writer.site));
                // By the same statement since then it may have stored something else.
                let Some(stored) = stored.filter(|stored| stored.epoch == writer.epoch) else { continue };
                if !are_rows_of(&stored.places, tile) {
                    let places = stored.places.iter().map(|&at| tile.place(at));
                    let (rows, bytes): (lanes::Rows, SmallVec<[u32; 32]>) = places.unzip();
                    if bytes.iter().all(|byte| *byte == bytes[0]) {
                        let straight = stored.of.as_ref().is_some_and(|of| of.row.is_some());
                        self.placed.note_lanes(&rows, straight, writer.site, Some(tile.site));
                    }
                    return;
                }
                let Some(of) = stored.of.as_ref() else { return };
                if row == 0 {
                    order.push((writer.site, stored.columns));
                }
                let own = || stored.places.first().map(|&at| i64::from(tile.place(at).0));
                if let Some(own) = of.row.and_then(|_| own()) {
                    rows.push((Arc::clone(of), to.at[1] + own));
                }
                match found {
                    Some(other) if other != of => return,
                    _ => found = Some(of),
                }
            }
        }
        let Some(of) = found.map(|of| Of::clone(of)) else { return };
        // Where B's own columns are multiplied in another order, that of D may be theirs.
        let lines = || of.columns.iter();
        let straight =
            lines().all(|line| line.whole) && lines().zip(lines().skip(1)).all(|(one, next)| one.end() == next.first);
        if straight && order.len() == (tile.pitch / chunk) as usize {
            if self.placed.chunks.is_none() {
                self.placed.chunks = Reordered::of(&order, tile.site);
            }
            // Threads store the columns of a whole box one behind the other.
            let columns: Option<SmallVec<[(u32, u32); 8]>> = order.iter().map(|chunk| chunk.1).collect();
            let columns = columns.filter(|all| all.windows(2).all(|two| two[0].0 + two[0].1 == two[1].0));
            if let Some(columns) = columns.filter(|all| !all.is_empty()) {
                let (column, count) = (columns[0].0, columns.iter().map(|part| part.1).sum());
                let piece = Piece { at: to.at[0], column, columns: count, copy: tile.site, mma: of.mma };
                self.placed.pieces.add((cta, of.epoch, (to.address, to.plane), to.at[1]), piece);
            }
        }
        let address = to.address.wrapping_add_signed(to.plane);
        rows.into_iter().for_each(|(of, at)| self.placed.stored_from(tile.site, &of, (address, at)));
        self.placed.add(Seen { copy: tile.site, to, of, by_threads: false });
    }
}
