//! Vector clocks.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A warp, or a queue of asynchronous operations. Numbered within a cluster.
pub type ActorId = u32;

/// For each actor, up to which of its epochs everything is known to have happened.
#[derive(Clone, Debug, Default)]
pub struct Clock(Vec<u32>);

impl Clock {
    /// The epoch known of an actor; 0: nothing.
    pub fn get(&self, actor: ActorId) -> u32 {
        self.0.get(actor as usize).copied().unwrap_or(0)
    }

    /// Raises what is known of an actor.
    pub fn raise(&mut self, actor: ActorId, epoch: u32) {
        let n = actor as usize;
        if self.0.len() <= n {
            self.0.resize(n + 1, 0);
        }
        self.0[n] = self.0[n].max(epoch);
    }

    /// Forgets what is known of an actor beyond an epoch.
    pub fn lower(&mut self, actor: ActorId, epoch: u32) {
        if let Some(known) = self.0.get_mut(actor as usize) {
            *known = (*known).min(epoch);
        }
    }

    /// Adds all that another clock knows.
    pub fn join(&mut self, other: &Clock) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = (*mine).max(*theirs);
        }
    }
}

/// What an actor knows.
#[derive(Clone, Debug, Default)]
pub struct Views {
    /// What happened before, to the eyes of the generic proxy.
    pub hb: Clock,
    /// The generic accesses of shared memory among them that a `fence.proxy.async` has made visible to the asynchronous proxy.
    pub fenced: Clock,
    /// The same of global memory: a fence may cover only it, or only shared memory.
    pub fenced_global: Clock,
    /// Accesses of tensor memory that a `tcgen05.fence::before_thread_sync` (or a commit, which implies one) has put before
    /// the synchronisation through which they became known.
    pub before: Clock,
    /// Accesses of tensor memory that this warp's own `tcgen05.fence::after_thread_sync` has put before what follows, and
    /// its own. Nobody else learns this.
    pub after: Clock,
    /// Initialisations of mbarriers that a `fence.mbarrier_init` has covered.
    pub inits: Clock,
    /// What came before in time, also where that orders no accesses: an asynchronous operation completes after all that came
    /// before its issue.
    pub order: Clock,
    far: Far,
}

/// What is known of other clusters, learnt through atomic operations: `hb` and `fenced` by the cluster's index. Rare, and shared.
pub type Far = Option<Arc<BTreeMap<u32, (Clock, Clock)>>>;

impl Views {
    /// All that came before in time.
    pub fn before_now(&self) -> Clock {
        let mut order = self.order.clone();
        order.join(&self.hb);
        order
    }

    /// Adds all that another actor knows.
    pub fn join(&mut self, other: &Views) {
        self.hb.join(&other.hb);
        self.fenced.join(&other.fenced);
        self.fenced_global.join(&other.fenced_global);
        self.before.join(&other.before);
        self.inits.join(&other.inits);
        self.order.join(&other.order);
        if let Some(far) = &other.far {
            match &mut self.far {
                None => self.far = Some(far.clone()),
                Some(mine) if Arc::ptr_eq(mine, far) => {}
                Some(mine) => {
                    let mine = Arc::make_mut(mine);
                    for (&cluster, (hb, fenced)) in far.iter() {
                        let known = mine.entry(cluster).or_default();
                        known.0.join(hb);
                        known.1.join(fenced);
                    }
                }
            }
        }
    }

    /// Adds what an actor of another cluster knows.
    pub fn learn(&mut self, cluster: u32, other: &Views) {
        self.join(&Views { far: other.far.clone(), ..Views::default() });
        let far = Arc::make_mut(self.far.get_or_insert_default());
        let known = far.entry(cluster).or_default();
        known.0.join(&other.hb);
        known.1.join(&other.fenced_global);
    }

    /// What is known of other clusters.
    pub fn of_others(&self) -> Far {
        self.far.clone()
    }

    /// Views that know of other clusters only.
    pub fn far_only(far: Far) -> Views {
        Views { far, ..Views::default() }
    }

    /// The epochs known of an actor of another cluster: `hb` and `fenced`.
    pub fn far(&self, cluster: u32, actor: ActorId) -> (u32, u32) {
        let known = self.far.as_ref().and_then(|far| far.get(&cluster));
        known.map_or((0, 0), |(hb, fenced)| (hb.get(actor), fenced.get(actor)))
    }

    /// What other clusters did is visible to the asynchronous proxy from now on.
    pub fn fence_far(&mut self) {
        if let Some(far) = &mut self.far {
            for (hb, fenced) in Arc::make_mut(far).values_mut() {
                fenced.join(hb);
            }
        }
    }
}
