//! What came before a step.

/// How many steps of each set of lanes, and how many phases of each barrier, came before.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Clock(pub Vec<u32>);

impl Clock {
    pub fn get(&self, n: usize) -> u32 {
        self.0.get(n).copied().unwrap_or(0)
    }

    pub fn raise(&mut self, n: usize, to: u32) {
        if self.0.len() <= n {
            self.0.resize(n + 1, 0);
        }
        self.0[n] = self.0[n].max(to);
    }

    pub fn join(&mut self, other: &Clock) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (own, &theirs) in self.0.iter_mut().zip(&other.0) {
            *own = (*own).max(theirs);
        }
    }
}
