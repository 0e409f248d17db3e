//! Tensor memory of an SM that several clusters share: who gets which columns, and when.

use super::outbox::Columns;
use super::{Chip, Group};
use crate::machine::tensor_memory::COLUMNS;

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
            if let Some(at) = self.find(index) {
                given.into_iter().flatten().for_each(|(_, warp)| self.cluster(at).granted(warp, column, end));
                self.go_on(at, end);
                granted = true;
            }
        }
    }
}

/// A cluster waits in `tcgen05.alloc` for what another one holds on the SM of one of its CTAs.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub cluster: u32,
    pub cta: usize,
    pub columns: u32,
    pub holder: u32,
    pub held: u32,
}

impl Chip<'_> {
    /// Clusters that wait for each other's tensor memory, or else those of which each waits for the next one's; and whether they do so for
    /// each other.
    pub fn wanted_columns(&self) -> Option<(Vec<Wanted>, bool)> {
        let links: Vec<Wanted> = self.groups.iter().flat_map(wanted_of).collect();
        let next = |link: &Wanted| links.iter().find(|other| other.cluster == link.holder);
        let mut first = None;
        for start in &links {
            let mut chain = vec![*start];
            while let Some(link) = chain.last().and_then(next) {
                if let Some(at) = chain.iter().position(|known| known.cluster == link.cluster) {
                    return Some((chain.split_off(at), true));
                }
                chain.push(*link);
            }
            first.get_or_insert(chain);
        }
        first.map(|chain| (chain, false))
    }
}

fn wanted_of(group: &Group) -> impl Iterator<Item = Wanted> + '_ {
    group.waiting.iter().flat_map(move |&(cluster, Columns { cta, columns, peer, .. })| {
        let here = move |rank: usize| rank == cta || peer.is_some() && rank == cta ^ 1;
        let others = move |(other, rank): (u32, usize)| other != cluster && here(rank);
        let with_permit = group.permits.iter().filter(move |&&permit| others(permit)).map(|permit| permit.0);
        let with_columns = group.columns.iter().filter(move |held| others((held.0, held.1))).map(|held| held.0);
        with_permit.chain(with_columns).map(move |holder| {
            let theirs = group.columns.iter().filter(move |held| held.0 == holder && here(held.1));
            let held = theirs.map(|held| 32 * held.2.count_ones()).max().unwrap_or(0);
            Wanted { cluster, cta, columns, holder, held }
        })
    })
}

/// Slots of 32 columns, as bits.
pub fn slots(column: u32, columns: u32) -> u16 {
    let bits = (1u32 << (columns / 32)) - 1;
    (bits << (column / 32)) as u16
}
