//! Vector clocks.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A warp, or a queue of asynchronous operations. Numbered within a cluster.
pub type ActorId = u32;

/// No actor: nothing is ever known of it.
pub const NOBODY: ActorId = ActorId::MAX;

/// For each actor, up to which of its epochs everything is known to have happened. Clocks are copied far more often than they
/// change, and often one knows all that another does: they share what they hold until one of them changes.
#[derive(Clone, Debug, Default)]
pub struct Clock(Option<Arc<[u32]>>);

/// Clocks are as long as a multiple of this: they seldom grow, and are compared in vectors.
const STEP: usize = 16;

impl Clock {
    /// Whether nothing was ever known.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn epochs(&self) -> &[u32] {
        self.0.as_deref().unwrap_or_default()
    }

    /// Its own epochs, this many at least.
    fn own(&mut self, len: usize) -> &mut [u32] {
        let known = self.epochs();
        if known.len() < len {
            let more = len.next_multiple_of(STEP) - known.len();
            self.0 = Some(known.iter().copied().chain(std::iter::repeat_n(0, more)).collect());
        }
        Arc::make_mut(self.0.get_or_insert_default())
    }

    /// The epoch known of an actor; 0: nothing.
    #[inline]
    pub fn get(&self, actor: ActorId) -> u32 {
        self.epochs().get(actor as usize).copied().unwrap_or(0)
    }

    /// Raises what is known of an actor.
    pub fn raise(&mut self, actor: ActorId, epoch: u32) {
        if self.get(actor) < epoch && actor != NOBODY {
            self.own(actor as usize + 1)[actor as usize] = epoch;
        }
    }

    /// Forgets what is known of an actor beyond an epoch.
    pub fn lower(&mut self, actor: ActorId, epoch: u32) {
        if self.get(actor) > epoch {
            self.own(0)[actor as usize] = epoch;
        }
    }

    /// Forgets all that another clock does not know.
    pub fn keep_common(&mut self, other: &Clock) {
        match (&self.0, &other.0) {
            (Some(mine), Some(theirs)) if !Arc::ptr_eq(mine, theirs) => {
                self.0 = Some(mine.iter().zip(&theirs[..]).map(|(&mine, &theirs)| mine.min(theirs)).collect());
            }
            (_, None) => self.0 = None,
            _ => {}
        }
    }

    /// Adds all that another clock knows.
    #[inline]
    pub fn join(&mut self, other: &Clock) {
        match (&self.0, &other.0) {
            (_, None) => {}
            (None, _) => self.0.clone_from(&other.0),
            (Some(mine), Some(theirs)) if Arc::ptr_eq(mine, theirs) => {}
            _ => self.join_different(other),
        }
    }

    /// The same of two that do not share what they hold.
    fn join_different(&mut self, other: &Clock) {
        let (Some(mine), Some(theirs)) = (&mut self.0, &other.0) else { return };
        let own = if mine.len() >= theirs.len() { Arc::get_mut(mine) } else { None };
        if let Some(own) = own {
            if !raise_all(own, theirs) {
                // It knew nothing that the other does not: from now on, that is seen at once.
                self.0.clone_from(&other.0);
            }
            return;
        }
        let (less, more) = compare(mine, theirs);
        if !more {
            self.0.clone_from(&other.0);
        } else if less {
            let (long, short) = if mine.len() < theirs.len() { (theirs, &*mine) } else { (&*mine, theirs) };
            let mut joined: Arc<[u32]> = long[..].into();
            if let Some(joined) = Arc::get_mut(&mut joined) {
                raise_all(joined, short);
            }
            self.0 = Some(joined);
        }
    }
}

/// Raises each epoch to that of the other clock, which is not longer. Whether it knew more of some actor.
fn raise_all(mine: &mut [u32], theirs: &[u32]) -> bool {
    // Without a way out, this becomes vector code.
    let mut more = 0;
    let (shared, rest) = mine.split_at_mut(theirs.len());
    for (mine, &theirs) in shared.iter_mut().zip(theirs) {
        *mine = (*mine).max(theirs);
        more |= *mine ^ theirs;
    }
    more != 0 || rest.iter().any(|&epoch| epoch != 0)
}

/// Whether one clock knows less of some actor than another, and whether it knows more of some actor.
fn compare(mine: &[u32], theirs: &[u32]) -> (bool, bool) {
    let (mut less, mut more) = (0, 0);
    for (&mine, &theirs) in mine.iter().zip(theirs) {
        let most = mine.max(theirs);
        less |= most ^ mine;
        more |= most ^ theirs;
    }
    let shared = mine.len().min(theirs.len());
    let knows = |rest: &[u32]| rest.iter().any(|&epoch| epoch != 0);
    (less != 0 || knows(&theirs[shared..]), more != 0 || knows(&mine[shared..]))
}

/// What an actor knows.
#[derive(Clone, Debug, Default)]
pub struct Views {
    /// What happened before, to the eyes of the generic proxy.
    pub hb: Clock,
    /// The same through synchronisation only whose two scopes include each other's thread (PTX ISA 8.5, 8.8, 8.9.4). Empty where scopes are not
    /// looked at; a warp knows of itself from the beginning where they are.
    pub scoped: Clock,
    /// The generic accesses of shared memory among them that a `fence.proxy.async` has made visible to the asynchronous proxy.
    pub fenced: Clock,
    /// The same of global memory: a fence may cover only it, or only shared memory.
    pub fenced_global: Clock,
    /// The accesses among them that a release fence for tensor maps has covered: `tensormap.cp_fenceproxy`, or
    /// `fence.proxy.tensormap::generic.release`.
    pub maps: Clock,
    /// Those that such a fence at `.cta` scope has covered: it tells threads of its CTA alone.
    pub maps_near: Clock,
    /// Accesses of tensor memory that a `tcgen05.fence::before_thread_sync` (or a commit, which implies one) has put before
    /// the synchronisation through which they became known.
    pub before: Clock,
    /// Accesses of tensor memory that this warp's own `tcgen05.fence::after_thread_sync` has put before what follows, and
    /// its own. Nobody else learns this.
    pub after: Clock,
    /// Initialisations of mbarriers that a `fence.mbarrier_init` has covered.
    pub inits: Clock,
    /// What came before in time although that orders no accesses, beside what `hb` says: an asynchronous operation completes
    /// after all that came before its issue.
    pub order: Clock,
    /// What would be known beside all this if waits with `.relaxed` acquired: it came before as far as the machine goes, since ptxas
    /// makes the same instruction of a relaxed wait as of an acquiring one at the scope of the CTA.
    late: Option<Box<Views>>,
    far: Far,
}

/// What is known of clusters, by index: of others what was learnt through atomic operations, and of its own which fences count for others.
/// Rare, and shared.
pub type Far = Option<Arc<BTreeMap<u32, OfCluster>>>;

/// What is known of a cluster; see [`Views`].
#[derive(Clone, Debug, Default)]
pub struct OfCluster {
    hb: Clock,
    fenced: Clock,
    /// The accesses that a release fence for tensor maps has covered, at the scope of the GPU or a wider one.
    maps: Clock,
}

impl Views {
    /// Whether nothing is known of what happened.
    pub fn is_empty(&self) -> bool {
        self.hb.is_empty() && self.far.is_none()
    }

    /// What an actor did up to an epoch happened before, whatever the scope.
    pub fn raise(&mut self, actor: ActorId, epoch: u32) {
        self.hb.raise(actor, epoch);
        if !self.scoped.is_empty() {
            self.scoped.raise(actor, epoch);
        }
    }

    /// A relaxed wait has seen what another actor tells.
    pub fn hear_late(&mut self, told: &Views) {
        let late = self.late.get_or_insert_default();
        late.join(told);
        // One level holds all.
        if let Some(more) = late.late.take() {
            late.join(&more);
        }
    }

    /// What would be known if relaxed waits acquired, beside what is.
    pub(super) fn late(&self) -> Option<&Views> {
        self.late.as_deref()
    }

    /// The epoch known of an actor, through relaxed waits too.
    pub fn heard(&self, actor: ActorId) -> u32 {
        self.late.as_ref().map_or(0, |late| late.hb.get(actor)).max(self.hb.get(actor))
    }

    /// A `fence.proxy.async` of shared or of global memory covers that as well.
    pub fn fence_late(&mut self, shared: bool, global: bool) {
        if let Some(late) = &mut self.late {
            if shared {
                late.fenced.join(&late.hb);
            }
            if global {
                late.fenced_global.join(&late.hb);
            }
        }
    }

    /// All that came before in time.
    pub fn before_now(&self) -> Clock {
        let mut all = self.order.clone();
        all.join(&self.hb);
        if let Some(late) = &self.late {
            all.join(&late.before_now());
        }
        all
    }

    /// Up to which epoch of an actor everything came before in time.
    pub fn came_before(&self, actor: ActorId) -> u32 {
        let late = self.late.as_ref().map_or(0, |late| late.came_before(actor));
        late.max(self.order.get(actor)).max(self.hb.get(actor))
    }

    /// Keeps of what came before an access of shared memory only what another one knows as well.
    pub fn keep_common(&mut self, other: &Views) {
        if self.late.is_some() {
            let all = |views: &Views, of: fn(&Views) -> &Clock| {
                let mut all = of(views).clone();
                views.late.iter().for_each(|late| all.join(of(late)));
                all
            };
            let common = |of: fn(&Views) -> &Clock| {
                let mut common = all(self, of);
                common.keep_common(&all(other, of));
                common
            };
            let late = Views { hb: common(|v| &v.hb), fenced: common(|v| &v.fenced), ..Views::default() };
            self.late = Some(Box::new(late));
        }
        self.hb.keep_common(&other.hb);
        self.fenced.keep_common(&other.fenced);
    }

    /// What others may learn.
    pub fn told(&self) -> Views {
        Views {
            hb: self.hb.clone(),
            scoped: self.scoped.clone(),
            fenced: self.fenced.clone(),
            fenced_global: self.fenced_global.clone(),
            maps: self.maps.clone(),
            maps_near: self.maps_near.clone(),
            before: self.before.clone(),
            after: Clock::default(),
            inits: self.inits.clone(),
            order: self.order.clone(),
            late: self.late.clone(),
            far: self.far.clone(),
        }
    }

    /// Adds all that another actor knows.
    pub fn join(&mut self, other: &Views) {
        self.hb.join(&other.hb);
        self.scoped.join(&other.scoped);
        self.fenced.join(&other.fenced);
        self.fenced_global.join(&other.fenced_global);
        self.maps.join(&other.maps);
        self.maps_near.join(&other.maps_near);
        self.before.join(&other.before);
        self.inits.join(&other.inits);
        self.order.join(&other.order);
        if let Some(late) = &other.late {
            self.late.get_or_insert_default().join(late);
        }
        if let Some(far) = &other.far {
            match &mut self.far {
                None => self.far = Some(far.clone()),
                Some(mine) if Arc::ptr_eq(mine, far) => {}
                Some(mine) => {
                    let mine = Arc::make_mut(mine);
                    for (&cluster, other) in far.iter() {
                        let known = mine.entry(cluster).or_default();
                        known.hb.join(&other.hb);
                        known.fenced.join(&other.fenced);
                        known.maps.join(&other.maps);
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
        known.hb.join(&other.hb);
        known.fenced.join(&other.fenced_global);
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
        known.map_or((0, 0), |known| (known.hb.get(actor), known.fenced.get(actor)))
    }

    /// The epoch of an actor of another cluster that a release fence for tensor maps is known to have covered.
    pub fn far_map(&self, cluster: u32, actor: ActorId) -> u32 {
        self.far.as_ref().and_then(|far| far.get(&cluster)).map_or(0, |known| known.maps.get(actor))
    }

    /// A release fence for tensor maps, at the scope of the GPU, by an actor of this cluster who knows this of it, and of others what
    /// these views say.
    pub fn release_maps_far(&mut self, cluster: u32, known: &Clock) {
        let far = Arc::make_mut(self.far.get_or_insert_default());
        for OfCluster { hb, maps, .. } in far.values_mut() {
            maps.join(hb);
        }
        far.entry(cluster).or_default().maps.join(known);
    }

    /// What other clusters did is visible to the asynchronous proxy from now on.
    pub fn fence_far(&mut self) {
        if let Some(far) = &mut self.far {
            for OfCluster { hb, fenced, .. } in Arc::make_mut(far).values_mut() {
                fenced.join(hb);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(epochs: &[(ActorId, u32)]) -> Clock {
        let mut clock = Clock::default();
        epochs.iter().for_each(|&(actor, epoch)| clock.raise(actor, epoch));
        clock
    }

    fn knows(clock: &Clock) -> Vec<(ActorId, u32)> {
        (0..100).map(|actor| (actor, clock.get(actor))).filter(|known| known.1 != 0).collect()
    }

    #[test]
    fn a_join_knows_what_either_knew_and_changes_nobody_else() {
        let parts: [&[(ActorId, u32)]; 6] =
            [&[], &[(3, 1)], &[(3, 2)], &[(3, 1), (40, 7)], &[(2, 5), (40, 6)], &[(0, 1), (3, 3), (40, 9)]];
        for (a, b) in parts.iter().flat_map(|a| parts.iter().map(move |b| (clock(a), clock(b)))) {
            let (before, other) = (knows(&a), knows(&b));
            let mut joined = a.clone();
            joined.join(&b);
            for actor in 0..100 {
                assert_eq!(joined.get(actor), a.get(actor).max(b.get(actor)), "{before:?} and {other:?}");
            }
            let mut common = a.clone();
            common.keep_common(&b);
            for actor in 0..100 {
                assert_eq!(common.get(actor), a.get(actor).min(b.get(actor)), "{before:?} and {other:?}");
            }
            joined.raise(3, 10);
            joined.lower(40, 5);
            assert_eq!((knows(&a), knows(&b), joined.get(3)), (before, other, 10));
        }
    }
}
