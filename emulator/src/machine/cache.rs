//! What the L2 cache holds, in lines of 128 bytes. It decides what an access costs, never what it gives.

/// Bytes of a line.
pub const LINE: u64 = 128;

/// Lines of global memory that were touched lately: those of this generation and of the one before. A generation ends when it
/// fills half of the cache, so that a line stays for as long as at least half a cache of others takes to come.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    /// A bit for each line of each buffer.
    now: Vec<Vec<u64>>,
    before: Vec<Vec<u64>>,
    /// Lines of this generation, and how many end it.
    count: u64,
    most: u64,
}

/// Whether a line is there: of this generation, or of the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    Now,
    Before,
    No,
}

impl Cache {
    /// Empty, for buffers of these sizes.
    pub fn new(sizes: impl Iterator<Item = u64>, bytes: u64) -> Cache {
        let now: Vec<Vec<u64>> = sizes.map(|size| vec![0; size.div_ceil(LINE * 64) as usize]).collect();
        Cache { before: now.clone(), now, count: 0, most: (bytes / LINE / 2).max(1) }
    }

    /// Whether a line of a buffer is there.
    pub fn holds(&self, buffer: usize, line: u64) -> Held {
        let bit = |lines: &[Vec<u64>]| {
            lines.get(buffer).and_then(|b| b.get(line as usize / 64)).is_some_and(|word| word >> (line % 64) & 1 == 1)
        };
        match (bit(&self.now), bit(&self.before)) {
            (true, _) => Held::Now,
            (false, true) => Held::Before,
            (false, false) => Held::No,
        }
    }

    /// Brings a line in; whether it was not there.
    pub fn touch(&mut self, buffer: usize, line: u64) -> bool {
        let missed = self.holds(buffer, line) == Held::No;
        let Some(word) = self.now.get_mut(buffer).and_then(|b| b.get_mut(line as usize / 64)) else { return missed };
        if *word >> (line % 64) & 1 == 0 {
            *word |= 1 << (line % 64);
            self.count += 1;
        }
        if self.count >= self.most {
            std::mem::swap(&mut self.now, &mut self.before);
            self.now.iter_mut().for_each(|lines| lines.fill(0));
            self.count = 0;
        }
        missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eight lines fit: what was touched before the last eight others is gone, what was touched among the last four is there.
    #[test]
    fn the_oldest_lines_leave_when_the_cache_is_full() {
        let mut cache = Cache::new([4096 * LINE].into_iter(), 8 * LINE);
        assert!(cache.touch(0, 7), "cold");
        assert!(!cache.touch(0, 7), "warm");
        for line in 100..104 {
            assert!(cache.touch(0, line));
        }
        assert_eq!((cache.holds(0, 7), cache.holds(0, 103)), (Held::Before, Held::Now));
        for line in 200..208 {
            cache.touch(0, line);
        }
        assert_eq!(cache.holds(0, 7), Held::No, "eight others came since");
        assert_ne!(cache.holds(0, 207), Held::No);
    }
}
