//! `tcgen05.alloc` and `tcgen05.dealloc`: columns of tensor memory, of one CTA or of a pair, alone on their SM or not.

use super::cells::Use;
use super::{CELL, COLUMNS, Halves};
use crate::diagnostic::Severity;
use crate::machine::chip::outbox::{Columns, Item};
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::explain::elsewhere::{Elsewhere, SPACE_RULE};
use crate::machine::explain::names::counted;
use crate::machine::state::{At, PairAllocation, Race, Slot, Span};
use crate::machine::warp::State;
use crate::order::Reason;
use crate::program::RESERVED_SHARED;
use crate::program::limits;
use crate::program::op::{Address, Reg};
use crate::protocol::What;
use crate::report::EventKind;

impl Cluster<'_> {
    pub fn tensor_alloc(&mut self, at: At, address: &Address, columns: u16, pair: bool) -> Result<(), Stop> {
        let At { w, f, mask, site } = at;
        let c = self.warps[w].cta;
        self.whole_warp(w, mask, site)?;
        let columns = self.warps[w].registers.b32[usize::from(columns)][0];
        if let Some(beyond) = limits::columns(false, columns.into()) {
            return Err(self.beyond(site, beyond));
        }
        if let Some((by, given_up)) = self.ctas[c].tensor_relinquished {
            let help = if by == w {
                "Relinquish after the last allocation."
            } else {
                "Let the warp that allocates give up the right, behind its last allocation; or put a CTA barrier (bar.sync) between the \
                 allocation and what other warps do."
            };
            let mut diagnostic = self.problem(
                "tensor-relinquished",
                site,
                "this CTA has given up its right to allocate tensor memory".into(),
                "After tcgen05.relinquish_alloc_permit, the CTA must not allocate (PTX ISA 9.7.16.7.1).",
                help.into(),
            );
            let who = self.warp_name(by);
            diagnostic.labels.push(self.label(given_up, format!("{who} gave it up here")));
            return Err(Some(Box::new(diagnostic)));
        }
        let base = self.warps[w].registers.lane(address.base, 0) as u64;
        let whole = base.wrapping_add(address.offset as u64);
        if let Some(Elsewhere { whose, .. }) = self.not_shared(w, whole, false) {
            return Err(Some(Box::new(self.problem(
                "out-of-bounds",
                site,
                format!(
                    "tcgen05.alloc would write its result to {whole:#x}, which is no shared address: it is {whose}"
                ),
                SPACE_RULE,
                "Give it the address of a shared variable of 4 bytes: `mov.u32 %r, slot;`.".into(),
            ))));
        }
        let (rank, slot) = (whole as usize >> 24 & 0xff, whole as u32 & 0x00ff_ffff);
        if address.base != Reg::Sink && rank != c && rank < self.ctas.len() {
            return Err(Some(Box::new(self.problem(
                "out-of-bounds",
                site,
                format!("tcgen05.alloc would write its result to {whole:#x}, in the shared memory of CTA {rank} of the cluster"),
                "The destination of tcgen05.alloc is a 32-bit location in the CTA's own shared memory (PTX ISA 9.7.16.7.1).",
                "Pass the address of the CTA's own variable, as `mov.u32 %r, slot;` gives it.".into(),
            ))));
        }
        if !slot.is_multiple_of(4) || slot < RESERVED_SHARED || slot as usize + 4 > self.ctas[c].shared.bytes.len() {
            let end = self.ctas[c].shared.bytes.len();
            let short = self.short_of_shared(u64::from(slot) + 4).filter(|_| slot.is_multiple_of(4));
            let what = match short.is_some() {
                true => format!("behind the CTA's shared memory, which ends at {end:#x}"),
                false => "not 4 aligned bytes of the CTA's shared memory".into(),
            };
            return Err(Some(Box::new(self.problem(
                "out-of-bounds",
                site,
                format!("tcgen05.alloc writes its result to {slot:#x}: {what}"),
                "The destination of tcgen05.alloc is a 32-bit location in shared memory (PTX ISA 9.7.16.7.1).",
                short.unwrap_or_else(|| "Pass the address of a shared variable.".into()),
            ))));
        }
        let known = self.ctas[c].granted.iter().position(|granted| granted.0 == w);
        // While it waits for its peer, the peer can find it.
        let mut waits = State::TensorAlloc { pair: pair.then_some(columns) };
        let granted = match known.map(|n| self.ctas[c].granted.remove(n)) {
            Some((_, column)) => Some(column),
            None if pair => self.pair_alloc(at, columns, &mut waits)?,
            None if self.shares_sm() => {
                self.ask_for_columns(at, columns, None);
                None
            }
            None => self.ctas[c].tensor.fit(columns, None),
        };
        let Some(column) = granted else {
            self.warps[w].fragments[f].state = waits;
            return Ok(());
        };
        self.settle();
        self.record.add(w, mask, site, What::Alloc { columns: columns as u16, pair });
        let allocation = self.ctas[c].tensor.allocate(column, columns, site);
        self.columns_grow(c, columns, site);
        if pair {
            // What the warp has said before does not tell that it has got them.
            let warp = &mut self.warps[w];
            warp.advance();
            let epoch = warp.epoch;
            self.ctas[c].allocated_with_peer.push(PairAllocation { allocation, warp: w, epoch });
        }
        let stamp = self.stamp(w, mask, site);
        self.touch_shared(w, Slot { cta: c, offset: slot }, 4, stamp, true);
        self.ctas[c].shared.store(slot as usize, 4, column.into(), true);
        let (actor, time) = self.when(w, f);
        let end = time + self.costs.tensor_alloc;
        self.warps[w].fragments[f].ready_at = end;
        self.trace(c, actor, Span::of_warp(w, time, end), site, || EventKind::TensorAlloc { column, columns });
        Ok(())
    }

    /// A CTA's allocations should not grow from one to the next. GPUs were not seen to mind: a note.
    fn columns_grow(&mut self, c: usize, columns: u32, site: u32) {
        let Some((before, earlier)) =
            self.ctas[c].last_columns.replace((columns, site)).filter(|last| last.0 < columns)
        else {
            return;
        };
        let mut diagnostic = self.problem(
            "tensor-columns",
            site,
            format!("tcgen05.alloc gives {columns} columns to a CTA whose allocation before had {before}"),
            "The number of columns should not increase between two allocations of a CTA (PTX ISA, tcgen05.alloc).",
            "Allocate the larger part first, or all columns at once.".into(),
        );
        diagnostic.severity = Severity::Note;
        diagnostic.labels.push(self.label(earlier, format!("{before} columns were allocated here")));
        self.findings.add(diagnostic);
    }

    /// `tcgen05.alloc.cta_group::2` is one allocation, by a warp of each CTA of the pair: the first to come waits for the
    /// other, and both get the same columns.
    fn pair_alloc(&mut self, at: At, columns: u32, waits: &mut State) -> Result<Option<u32>, Stop> {
        let c = self.warps[at.w].cta;
        let peer = c ^ 1;
        if peer >= self.ctas.len() {
            return Err(Some(Box::new(self.problem(
                "pair-leader",
                at.site,
                format!(
                    "tcgen05.alloc with cta_group::2 in CTA {c} of a cluster of {}: it has no peer",
                    self.ctas.len()
                ),
                "cta_group::2 needs the two CTAs of a pair, ranks 2i and 2i + 1 of a cluster (PTX ISA, tcgen05).",
                "Launch clusters of an even number of CTAs, or use cta_group::1.".into(),
            ))));
        }
        self.should_have_started(at.w, peer, at.site);
        let mut waiting = None;
        for (n, warp) in self.warps.iter().enumerate().filter(|(_, warp)| warp.cta == peer) {
            for (k, fragment) in warp.fragments.iter().enumerate() {
                if let State::TensorAlloc { pair: Some(asked) } = fragment.state {
                    waiting = Some((n, k, asked));
                }
            }
        }
        let Some((n, k, asked)) = waiting else { return Ok(None) };
        if asked != columns {
            return Err(Some(Box::new(self.problem(
                "tensor-columns",
                at.site,
                format!("the CTAs of a pair ask for {columns} and {asked} columns of tensor memory"),
                "Both CTAs of a pair allocate together, the same number of columns (PTX ISA, tcgen05.alloc).",
                "Give the same number in both.".into(),
            ))));
        }
        if self.shares_sm() {
            self.ask_for_columns(at, columns, Some(n));
            *waits = State::TensorAlloc { pair: None };
            self.warps[n].fragments[k].state = waits.clone();
            return Ok(None);
        }
        let Some(column) = self.ctas[c].tensor.fit(columns, Some(&self.ctas[peer].tensor)) else { return Ok(None) };
        self.ctas[peer].granted.push((n, column));
        let time = self.warps[at.w].fragments[at.f].ready_at;
        let fragment = &mut self.warps[n].fragments[k];
        fragment.state = State::Ready;
        fragment.ready_at = fragment.ready_at.max(time);
        self.lower_horizon(time);
        Ok(Some(column))
    }

    /// CTAs of other clusters may hold columns on this SM: the chip gives them out where the window ends.
    fn ask_for_columns(&mut self, at: At, columns: u32, peer: Option<usize>) {
        let time = self.warps[at.w].fragments[at.f].ready_at;
        let cta = self.warps[at.w].cta;
        self.outbox.push(time, Item::TensorAlloc(Columns { cta, columns, warp: at.w, peer }));
    }

    /// The chip has given columns to this warp, which waits for them: it goes on.
    pub fn granted(&mut self, w: usize, column: u32, time: u64) {
        let warp = &mut self.warps[w];
        self.ctas[warp.cta].granted.push((w, column));
        for fragment in warp.fragments.iter_mut().filter(|f| matches!(f.state, State::TensorAlloc { .. })) {
            fragment.state = State::Ready;
            fragment.ready_at = fragment.ready_at.max(time);
        }
        self.acted();
    }

    pub fn tensor_free(&mut self, at: At, tensor: u16, columns: u16) -> Result<(), Stop> {
        let At { w, f, mask, site } = at;
        let c = self.warps[w].cta;
        self.whole_warp(w, mask, site)?;
        let address = self.warps[w].registers.b32[usize::from(tensor)][0];
        let columns = self.warps[w].registers.b32[usize::from(columns)][0];
        let held = self.ctas[c].tensor.allocation(address & 0xffff);
        let Some(allocation) = held.filter(|a| a.column == address && a.columns == columns) else {
            let mut diagnostic = self.problem(
                "tensor-free-mismatch",
                site,
                format!("{} at {address:#x} freed, but no such allocation is held", counted(columns, "column")),
                "tcgen05.dealloc takes an address that tcgen05.alloc gave (PTX ISA 9.7.16.7.1), and all of its \
                 columns: freeing a part is not modelled.",
                "Pass the address and column count of the allocation.".into(),
            );
            // It was one that somebody has freed: a warp of the CTA does for all.
            if self.ctas[c].tensor.held().is_empty()
                && let Some(freed) = self.ctas[c].tensor.freed(address & 0xffff)
            {
                diagnostic.labels.push(self.label(freed, "freed here before"));
                diagnostic.help =
                    "Free each allocation once: let one warp of the CTA execute this tcgen05.dealloc, and no other."
                        .into();
            }
            for a in self.ctas[c].tensor.held() {
                diagnostic.labels.push(self.label(a.site, format!("held: {} columns at {:#x}", a.columns, a.column)));
            }
            return Err(Some(Box::new(diagnostic)));
        };
        self.peer_must_have_allocated(w, allocation, site);
        let stamp = self.stamp(w, mask, site);
        for quarter in 0..4 {
            let at = u64::from(quarter * COLUMNS + allocation.column) * CELL;
            let frees = Use { frees: true, ..Use::of(stamp, true) };
            let race = self.touch_cells(w, c, at, u64::from(columns) * CELL, Halves::Both, frees);
            // Freeing asks for order, not for fences.
            let unordered = |race: &Race| matches!(race.conflict.reason, Reason::Unordered | Reason::NotAcquired);
            if let Some(race) = race.filter(unordered) {
                self.race(race);
            }
        }
        self.ctas[c].tensor.free(allocation, site);
        self.record.add(w, mask, site, What::Free { columns: columns as u16 });
        let (actor, time) = self.when(w, f);
        self.warps[w].fragments[f].ready_at += self.costs.tensor_alloc;
        self.trace(c, actor, Span::of_warp(w, time, time), site, || EventKind::TensorFree {
            column: allocation.column,
            columns,
        });
        if self.shares_sm() {
            self.outbox.push(time, Item::TensorFree { cta: c, column: allocation.column, columns });
            return Ok(());
        }
        self.try_again(time, |_, state| matches!(state, State::TensorAlloc { .. }));
        Ok(())
    }
}
