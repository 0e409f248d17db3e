//! Copies read their tensor map by themselves, some time after they were issued (PTX ISA, asynchronous copy operations): who changes a map in
//! global memory has to know that those before have read it.
//!
//! Who waits for the mbarrier of a load knows it, and who waits for the bulk group of a store, also with .read. Libraries wait in the same way
//! before they change the maps of loads (assumption `maps-of-loads-by-groups`), and the warp's other lanes count as the one that waits: the
//! engine takes a warp's copies one after the other.

use super::tensor_maps::{MAP_BYTES, MapPlace};
use crate::machine::cluster::Cluster;
use crate::machine::explain::drafts::Draft;
use crate::machine::memory::Runs;
use crate::machine::state::{ActorKind, Race};
use crate::machine::warp::Queue;
use crate::order::{ActorId, Stamp, Views};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

const RULE: &str = "A copy reads its tensor map as the first part of what it does by itself, some time after the instruction: until it is known to be \
                    done, the map stays as it is (PTX ISA, asynchronous copy operations, cp.async.bulk.wait_group).";

/// The maps that a warp's copies read: loads, and stores.
#[derive(Debug, Default)]
pub struct MapReads {
    loads: Queue,
    stores: Queue,
    /// For each lane the groups that it has committed since.
    committed: FxHashMap<usize, VecDeque<Committed>>,
}

/// A group that a lane has committed: its number, and how many loads and stores there were then.
#[derive(Clone, Copy, Debug)]
struct Committed {
    group: u32,
    loads: u32,
    stores: u32,
}

impl Cluster<'_> {
    /// A warp's copy reads its map. Gives what who waits for the mbarrier of a load knows then.
    pub fn read_map(
        &mut self,
        w: usize,
        time: u64,
        (buffer, offset): MapPlace,
        load: bool,
        site: u32,
    ) -> (ActorId, u32) {
        let fresh = (!self.map_reads.contains_key(&w)).then(|| {
            let [loads, stores] =
                [true, false].map(|loads| Queue::of(self.actor(ActorKind::MapReads { warp: w as u32, loads })));
            MapReads { loads, stores, ..MapReads::default() }
        });
        let reads = self.map_reads.entry(w).or_insert_with(|| fresh.unwrap_or_default());
        let queue = if load { &mut reads.loads } else { &mut reads.stores };
        queue.epoch += 1;
        let (actor, epoch) = (queue.actor, queue.epoch);
        // The tensormap proxy has fences of its own.
        self.touch_global(
            w,
            time,
            Runs::one(buffer, offset, MAP_BYTES as u32),
            Stamp::new(actor, epoch, site, self.index),
            false,
        );
        (actor, epoch)
    }

    /// A lane commits a bulk group: what the warp's copies have read of maps belongs to it.
    pub fn commit_map_reads(&mut self, w: usize, lane: usize) {
        if !self.map_reads.contains_key(&w) {
            return;
        }
        let group = self.bulk_groups(w, lane).next;
        if let Some(reads) = self.map_reads.get_mut(&w) {
            let now = Committed { group, loads: reads.loads.epoch, stores: reads.stores.epoch };
            reads.committed.entry(lane).or_default().push_back(now);
        }
    }

    /// A lane has waited for its bulk groups up to this one.
    pub fn pass_map_reads(&mut self, w: usize, lane: usize, last: u32) {
        let Some(reads) = self.map_reads.get_mut(&w) else { return };
        let Some(committed) = reads.committed.get_mut(&lane) else { return };
        let waited = committed.partition_point(|committed| committed.group <= last);
        if let Some(known) = committed.drain(..waited).next_back() {
            self.warps[w].views.hb.raise(reads.loads.actor, known.loads);
            self.warps[w].views.hb.raise(reads.stores.actor, known.stores);
        }
    }

    /// Whether an access is a copy's reading of its map, which has come before in time: that orders nothing else, but is enough for who changes the
    /// map then. The commit of an MMA that multiplied what the copy brought tells as much.
    pub fn has_read_its_map(&self, access: Stamp, views: &Views) -> bool {
        matches!(self.kind(access), Some(ActorKind::MapReads { .. })) && views.came_before(access.actor) >= access.epoch
    }

    /// Somebody changes a map that a copy of its cluster may not have read yet.
    pub fn map_in_use(&self, race: &Race, place: &str) -> Option<Draft> {
        let (copy, change) = (race.conflict.first, race.second);
        let Some(ActorKind::MapReads { loads, .. }) = self.kind(copy) else { return None };
        let help = if loads {
            "Wait for the phase of the mbarrier that the copy completes before the map is changed, or give each group of copies a map of its own."
        } else {
            "Before the map is changed, let the thread that issued the store execute cp.async.bulk.commit_group and \
             cp.async.bulk.wait_group.read 0, and tell who changes it; or give each group of stores a map of its own."
        };
        let who = self.who_of_grid(change);
        Some(Draft::of(race, None)(
            "race-global",
            format!("{who} changes {place}, part of the tensor map of a copy that may not have read it yet"),
            vec![
                self.label(change.site, "the map is changed here"),
                self.label(
                    copy.site,
                    "this copy reads the map until it is done; nothing orders that before the change",
                ),
            ],
            RULE,
            help.into(),
        ))
    }
}
