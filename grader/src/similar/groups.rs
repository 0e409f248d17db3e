//! Who belongs together when pairs do.

/// Members of a class, joined pair by pair.
#[derive(Debug)]
pub(super) struct Groups(Vec<usize>);

impl Groups {
    /// So many, each alone.
    pub(super) fn new(count: usize) -> Groups {
        Groups((0..count).collect())
    }

    /// The first of who belongs together with this one.
    pub(super) fn of(&self, mut who: usize) -> usize {
        while self.0[who] != who {
            who = self.0[who];
        }
        who
    }

    /// How many members there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// How many groups, who is alone included.
    pub(super) fn count(&self) -> usize {
        (0..self.len()).filter(|who| self.0[*who] == *who).count()
    }

    /// Joins the groups of both.
    pub(super) fn join(&mut self, [a, b]: [usize; 2]) {
        let (a, b) = (self.of(a), self.of(b));
        self.0[a.max(b)] = a.min(b);
    }

    /// The groups of two or more, each in order.
    pub(super) fn all(&self) -> Vec<Vec<usize>> {
        let mut all: Vec<Vec<usize>> = vec![Vec::new(); self.0.len()];
        (0..self.0.len()).for_each(|who| all[self.of(who)].push(who));
        all.retain(|group| group.len() > 1);
        all
    }
}
