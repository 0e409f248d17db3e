//! Who made an access of global memory, for messages: the CTA by its place in the grid, the warp, and the lanes if they were not all.
//!
//! An access is remembered with the number of its actor in its cluster. The cluster may have ended when somebody of another one races with it:
//! the scheduler then asks here who the actor was, and leaves the answer with the cluster that speaks of it.

use crate::machine::chip::Chip;
use crate::machine::cluster::{Cluster, cluster_extent};
use crate::machine::state::ActorKind;
use crate::machine::warp::registers::lanes;
use crate::order::{ActorId, Stamp};
use rustc_hash::FxHashMap;
use std::fmt::{self, Display, Formatter};

/// Actors of clusters that have ended, at most, of which more than the CTA is kept: whole warps need not be.
const MOST: usize = 1 << 16;

/// An actor, as messages name it. Few are ever named: the text is made then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    Warp(WarpOf),
    /// What has run by itself since a warp began it.
    CopiesOf(WarpOf),
    /// Of a CTA.
    Engine(&'static str, [u32; 3]),
    Cta([u32; 3]),
    /// A CTA of the cluster that begins with this one.
    OneOf([u32; 3]),
}

/// Actors of clusters that have ended.
#[derive(Debug, Default)]
pub struct Parties {
    /// By the number of the cluster, and then by ascending number of the actor.
    of: FxHashMap<u32, Vec<(ActorId, Party)>>,
    /// How many there are.
    count: usize,
}

impl Parties {
    /// Those of a cluster, by ascending number, as far as there is room.
    fn keep(&mut self, cluster: u32, actors: impl Iterator<Item = (ActorId, Party)>) {
        let actors: Vec<_> = actors.take(MOST - self.count).collect();
        if !actors.is_empty() {
            self.count += actors.len();
            self.of.insert(cluster, actors);
        }
    }

    fn find(&self, cluster: u32, actor: ActorId) -> Option<Party> {
        let known = self.of.get(&cluster)?;
        known.binary_search_by_key(&actor, |known| known.0).ok().map(|n| known[n].1)
    }
}

/// A warp, or some of its lanes, in a CTA of a launch with such blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarpOf {
    block: [u32; 3],
    cta: [u32; 3],
    warp: u32,
    part: Option<u32>,
}

impl Display for WarpOf {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let WarpOf { block, cta, warp, part } = *self;
        let cta = in_grid(cta);
        match part {
            Some(mask) if mask.count_ones() == 1 => {
                write!(f, "thread {} of {cta}", triple(thread(block, warp * 32 + mask.trailing_zeros())))
            }
            Some(mask) => write!(f, "warp {warp} ({}) of {cta}", some_lanes(mask)),
            None => write!(f, "warp {warp} of {cta}"),
        }
    }
}

impl Display for Party {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Party::Warp(warp) => warp.fmt(f),
            Party::CopiesOf(warp) => write!(f, "cp.async of {warp}"),
            Party::Engine(what, cta) => write!(f, "{what} for {}", in_grid(cta)),
            Party::Cta(cta) => f.write_str(&in_grid(cta)),
            Party::OneOf(first) => write!(f, "a CTA of the cluster that begins with {}", in_grid(first)),
        }
    }
}

/// The thread of this number in its CTA.
pub fn thread([x, y, _]: [u32; 3], n: u32) -> [u32; 3] {
    let (x, y) = (x.max(1), y.max(1));
    [n % x, n / x % y, n / x / y]
}

pub fn triple([x, y, z]: [u32; 3]) -> String {
    format!("({x}, {y}, {z})")
}

fn in_grid(cta: [u32; 3]) -> String {
    format!("CTA {}", triple(cta))
}

/// `lanes 0 to 15`, `lanes 0, 2, 7`; of more than four that do not follow each other: the first ones, and how many.
fn some_lanes(mask: u32) -> String {
    let all: Vec<usize> = lanes(mask).collect();
    match all.as_slice() {
        [first, .., last] if last - first + 1 == all.len() => format!("lanes {first} to {last}"),
        [a, b, c, _, _, ..] => format!("{} lanes: {a}, {b}, {c}, …", all.len()),
        few => format!("lanes {}", few.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}

impl Cluster<'_> {
    /// How messages across CTAs name an actor of this cluster. `site`: the statement of the access, if it is known.
    pub fn party(&self, actor: ActorId, site: Option<u32>) -> Option<Party> {
        let of_cta = |what: &'static str, cta: usize| Party::Engine(what, self.ctas[cta].id);
        let of_warp = |w: u32, parts: bool| {
            let warp = self.warps.get(w as usize)?;
            let part = warp.parts.iter().find(|part| parts && part.1 == actor).map(|part| part.0);
            Some(WarpOf { block: self.launch.block, cta: self.ctas[warp.cta].id, warp: warp.index, part })
        };
        Some(match *self.actors.get(actor as usize)? {
            ActorKind::Warp(w) | ActorKind::TensorLoads(w) | ActorKind::TensorStores(w) => {
                Party::Warp(of_warp(w, true)?)
            }
            ActorKind::AsyncCopies(w) => Party::CopiesOf(of_warp(w, false)?),
            ActorKind::BulkReads { warp } | ActorKind::BulkWrites { warp } | ActorKind::MapReads { warp, .. } => {
                of_cta("the TMA engine", self.warps.get(warp as usize)?.cta)
            }
            ActorKind::Mbarrier => {
                let what = site.and_then(|site| self.called_async(site)).unwrap_or("the TMA engine");
                // What arrives at an mbarrier is data of its CTA.
                match self.barriers.iter().find(|b| b.actor == actor) {
                    Some(b) => of_cta(what, b.cta),
                    None => return None,
                }
            }
            ActorKind::Mmas { warp, .. } | ActorKind::Wgmmas { warp } => {
                of_cta("the tensor core", self.warps.get(warp as usize)?.cta)
            }
            ActorKind::NonCoherent | ActorKind::Prerequisite | ActorKind::Commits | ActorKind::ClusterBarrier => {
                return None;
            }
        })
    }

    /// Like [`Cluster::who`], with its CTA where the grid has several.
    pub fn who_of_grid(&self, stamp: Stamp) -> String {
        let alone = self.launch.grid.iter().product::<u32>() <= 1;
        if alone || stamp.cluster != self.index {
            return self.who(stamp);
        }
        self.party(stamp.actor, Some(stamp.site)).map_or_else(|| self.who(stamp), |party| party.to_string())
    }

    /// Who made an access in another cluster.
    pub fn stranger(&self, stamp: Stamp) -> String {
        match self.strangers.get(&(stamp.cluster, stamp.actor)) {
            Some(party) => party.to_string(),
            None => "another CTA".into(),
        }
    }

    /// Those of its actors that are no whole warp, by ascending number.
    pub fn parts_and_engines(&self) -> impl Iterator<Item = (ActorId, Party)> {
        let of_global = |kind: &ActorKind| !matches!(kind, ActorKind::TensorLoads(_) | ActorKind::TensorStores(_));
        let rest = (self.warps.len()..self.actors.len()).filter(move |&n| of_global(&self.actors[n]));
        rest.filter_map(|n| Some((n as ActorId, self.party(n as ActorId, None)?)))
    }
}

impl Chip<'_> {
    /// A cluster ends: who its actors were is asked later.
    pub fn remember_parties(&mut self, cluster: &Cluster) {
        if self.s.options.judges() && self.s.launch.grid.iter().product::<u32>() > 1 {
            self.parties.keep(cluster.index, cluster.parts_and_engines());
        }
    }

    /// Who made an access, in whichever cluster, running or ended.
    pub fn party(&mut self, stamp: Stamp) -> Option<Party> {
        if let Some(at) = self.find(stamp.cluster) {
            return self.cluster(at).party(stamp.actor, Some(stamp.site));
        }
        if let Some(known) = self.parties.find(stamp.cluster, stamp.actor) {
            return Some(known);
        }
        // A cluster begins with an actor for each of its warps, one CTA after the other.
        let launch = self.s.launch;
        let extent = cluster_extent(self.s.kernel, launch);
        let [cx, cy, _] = extent;
        let warps = launch.block.iter().product::<u32>().div_ceil(32);
        let first = self.first_cta(stamp.cluster, extent);
        let cta = |rank: u32| [first[0] + rank % cx, first[1] + rank / cx % cy, first[2] + rank / (cx * cy)];
        let rank = stamp.actor / warps.max(1);
        let size = extent.iter().product::<u32>();
        match rank < size {
            true => {
                let warp = stamp.actor % warps.max(1);
                Some(Party::Warp(WarpOf { block: launch.block, cta: cta(rank), warp, part: None }))
            }
            false if size == 1 => Some(Party::Cta(first)),
            false => Some(Party::OneOf(first)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actors_are_kept_as_far_as_there_is_room() {
        let of = |cluster: u32, many: u32| (0..many).map(move |n| (2 * n, Party::Cta([cluster, n, 0])));
        let mut parties = Parties::default();
        (0..3).for_each(|cluster| parties.keep(cluster, of(cluster, MOST as u32 / 2 + 1)));
        assert_eq!(parties.find(0, 6), Some(Party::Cta([0, 3, 0])));
        assert_eq!(parties.find(0, 7), None);
        assert_eq!(parties.find(1, MOST as u32 - 4), Some(Party::Cta([1, MOST as u32 / 2 - 2, 0])));
        assert_eq!((parties.find(1, MOST as u32 - 2), parties.find(2, 0)), (None, None));
        assert_eq!(parties.count, MOST);
    }

    #[test]
    fn lanes_are_named_as_few_words_as_they_need() {
        assert_eq!(some_lanes(0x0000_ffff), "lanes 0 to 15");
        assert_eq!(some_lanes(0b1000_0101), "lanes 0, 2, 7");
        assert_eq!(some_lanes(0x5555_5555), "16 lanes: 0, 2, 4, …");
        let one = WarpOf { block: [8, 8, 1], cta: [1, 0, 2], warp: 1, part: Some(1 << 3) };
        assert_eq!(Party::Warp(one).to_string(), "thread (3, 4, 0) of CTA (1, 0, 2)");
    }
}
