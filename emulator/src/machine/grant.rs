//! Tensor memory of an SM that several clusters share: who gets which columns, and when.

use super::chip::Chip;
use super::outbox::Columns;
use super::tensor::COLUMNS;

impl Chip<'_> {
    /// Gives tensor memory of an SM to those that wait for it, in their order.
    pub fn grant(&mut self, n: usize, end: u64) -> bool {
        let mut granted = false;
        loop {
            let group = &mut self.groups[n];
            let taken = |cta: usize| group.columns.iter().filter(|h| h.1 == cta).fold(0, |mask, h| mask | h.2);
            let fits = |&(index, Columns { cta, columns, peer, .. }): &(u32, Columns)| {
                let others = |&(other, rank): &(u32, usize)| {
                    other != index && (rank == cta || peer.is_some() && rank == cta ^ 1)
                };
                if group.permits.iter().any(others) {
                    return None;
                }
                let used = taken(cta) | if peer.is_some() { taken(cta ^ 1) } else { 0 };
                (0..COLUMNS).step_by(columns as usize).find(|&column| used & slots(column, columns) == 0)
            };
            let Some((w, column)) = group.waiting.iter().enumerate().find_map(|(w, wait)| Some((w, fits(wait)?)))
            else {
                return granted;
            };
            let (index, request) = group.waiting.remove(w);
            let Columns { cta, columns, warp, peer } = request;
            let given = [Some((cta, warp)), peer.map(|peer| (cta ^ 1, peer))];
            for &(rank, _) in given.iter().flatten() {
                group.columns.push((index, rank, slots(column, columns)));
                group.permits.push((index, rank));
            }
            if let Some(at) = self.running.iter().position(|r| r.index == index) {
                given.into_iter().flatten().for_each(|(_, warp)| self.cluster(at).granted(warp, column, end));
                self.go_on(at, end);
                granted = true;
            }
        }
    }
}

/// Slots of 32 columns, as bits.
pub fn slots(column: u32, columns: u32) -> u16 {
    let bits = (1u32 << (columns / 32)) - 1;
    (bits << (column / 32)) as u16
}
