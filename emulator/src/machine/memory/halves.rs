//! A fence and a relaxed access, and a CTA barrier between the two.

use crate::order::Views;

/// The halves of a synchronisation by a fence and a relaxed access: what has come of the one and waits for the other. A CTA barrier hands them
/// on: the fence has done its work when the thread comes to the barrier, whichever thread makes the access behind it; and a fence
/// behind the barrier does it for what any thread saw before.
#[derive(Debug, Default)]
pub struct Halves {
    /// What a relaxed operation tells others: what was known at the last fence.
    pub at_fence: Views,
    /// What was known at the last fence at the scope of the cluster, or a wider one: other CTAs are told no more (PTX ISA 8.5, 8.6).
    pub at_cluster_fence: Views,
    /// What was known at the last fence at GPU scope.
    pub at_gpu_fence: Views,
    /// What relaxed accesses and waits have seen: known after the next fence.
    pub unacquired: Views,
    /// The same of other clusters: known after the next fence at GPU scope.
    pub unacquired_far: Views,
}

impl Halves {
    fn is_empty(&self) -> bool {
        [&self.at_fence, &self.at_cluster_fence, &self.at_gpu_fence, &self.unacquired, &self.unacquired_far]
            .iter()
            .all(|views| views.is_empty())
    }

    /// Tells them to who waits at a barrier.
    #[inline]
    pub fn tell(&self, others: &mut Option<Box<Halves>>) {
        if !self.is_empty() {
            others.get_or_insert_default().join(self);
        }
    }

    pub fn join(&mut self, other: &Halves) {
        self.at_fence.join(&other.at_fence);
        self.at_cluster_fence.join(&other.at_cluster_fence);
        self.at_gpu_fence.join(&other.at_gpu_fence);
        self.unacquired.join(&other.unacquired);
        self.unacquired_far.join(&other.unacquired_far);
    }
}
