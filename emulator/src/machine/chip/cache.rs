//! What the L2 cache holds, in lines of 128 bytes. It decides what an access costs, never what it gives.

use crate::machine::memory::Runs;
use std::ops::Range;

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

/// Lines that a cluster touched in a window and that are not of the cache's generation: they enter it where the window ends.
#[derive(Debug, Default)]
pub struct Touched {
    /// A bit for each line of each buffer.
    lines: Vec<Vec<u64>>,
    /// The words of it that are not zero, in the order in which they came: buffer and index.
    words: Vec<(u32, u32)>,
}

impl Cache {
    /// Empty, for buffers of these sizes.
    pub fn new(sizes: impl Iterator<Item = u64>, bytes: u64) -> Cache {
        let now: Vec<Vec<u64>> = sizes.map(|size| vec![0; size.div_ceil(LINE * 64) as usize]).collect();
        Cache { before: now.clone(), now, count: 0, most: (bytes / LINE / 2).max(1) }
    }

    /// All lines are there, if there is room for them.
    pub fn warm(&mut self) {
        let words: usize = self.now.iter().map(Vec::len).sum();
        if words as u64 * 64 <= 2 * self.most {
            self.before.iter_mut().for_each(|lines| lines.fill(u64::MAX));
        }
    }

    /// Brings lines of a word in; those that were not there.
    fn touch(&mut self, buffer: usize, n: usize, lines: u64) -> u64 {
        // The generation may end with any of them.
        let mut missed = 0;
        let mut rest = lines;
        while rest != 0 {
            let most = self.most.saturating_sub(self.count).max(1);
            let part = if most >= 64 { rest } else { rest & rest.wrapping_neg() };
            rest &= !part;
            let (now, before) = (&mut self.now[buffer][n], self.before[buffer][n]);
            let new = part & !*now;
            missed |= new & !before;
            *now |= new;
            self.count += u64::from(new.count_ones());
            if self.count >= self.most {
                std::mem::swap(&mut self.now, &mut self.before);
                self.now.iter_mut().for_each(|lines| lines.fill(0));
                self.count = 0;
            }
        }
        missed
    }
}

/// Of runs of whole lines, if all words of the set that they lie in hold the same of them: the words, and those lines of each. So it is with
/// the rows of a box where several rows of the matrix make up a word.
fn same_lines(runs: Runs) -> Option<(Range<usize>, u64)> {
    let [first, each, pitch] = [runs.first, runs.bytes.into(), runs.pitch].map(|bytes| bytes / LINE);
    if pitch == 0 || !64u64.is_multiple_of(pitch) {
        return None;
    }
    let (at, rows) = (first % 64, 64 / pitch);
    if at + each > pitch || !u64::from(runs.count).is_multiple_of(rows) {
        return None;
    }
    let row = u64::MAX >> (64 - each) << at;
    let lines = (0..rows).fold(0, |lines, n| lines | row << (n * pitch));
    let word = first as usize / 64;
    Some((word..word + (u64::from(runs.count) / rows) as usize, lines))
}

impl Touched {
    /// A cluster touches these bytes: how many of them have to come, and did not come for it in this window already.
    pub fn missed(&mut self, cache: &Cache, runs: Runs) -> u64 {
        let Runs { buffer, bytes, .. } = runs;
        let (Some(now), Some(before)) = (cache.now.get(buffer), cache.before.get(buffer)) else { return 0 };
        if self.lines.len() <= buffer {
            self.lines.resize_with(buffer + 1, Vec::new);
        }
        let mine = &mut self.lines[buffer];
        if mine.is_empty() {
            *mine = vec![0; now.len()];
        }
        let mut missed = 0;
        let mut start = runs.first;
        if bytes > 0 && (runs.first | runs.pitch | u64::from(bytes)).is_multiple_of(LINE) {
            // Whole lines: those of a word at once.
            let each = u64::from(bytes) / LINE;
            let mut touch = |n: usize, lines: u64, (now, before, mine): (u64, u64, &mut u64)| {
                let new = lines & !(now | *mine);
                if new == 0 {
                    return;
                }
                if *mine == 0 {
                    self.words.push((buffer as u32, n as u32));
                }
                *mine |= new;
                let mut came = new & !before;
                while came != 0 {
                    missed += LINE;
                    came &= came - 1;
                }
            };
            if let Some((words, lines)) = same_lines(runs) {
                let all = now[words.clone()].iter().zip(&before[words.clone()]).zip(&mut mine[words.clone()]);
                for (n, ((&now, &before), mine)) in words.zip(all) {
                    touch(n, lines, (now, before, mine));
                }
                return missed;
            }
            let mut touch = |(n, lines): (usize, u64)| touch(n, lines, (now[n], before[n], &mut mine[n]));
            let mut word = (0, 0);
            for start in runs.starts() {
                for line in start / LINE..start / LINE + each {
                    let n = line as usize / 64;
                    if n != word.0 {
                        touch(word);
                        word = (n, 0);
                    }
                    word.1 |= 1 << (line % 64);
                }
            }
            touch(word);
            return missed;
        }
        for _ in 0..runs.count {
            let end = start + u64::from(bytes);
            for line in start / LINE..end.max(start + 1).div_ceil(LINE) {
                let (n, bit) = (line as usize / 64, 1 << (line % 64));
                if (now[n] | mine[n]) & bit != 0 {
                    continue;
                }
                if mine[n] == 0 {
                    self.words.push((buffer as u32, n as u32));
                }
                mine[n] |= bit;
                if before[n] & bit == 0 {
                    missed += (line * LINE + LINE).min(end) - (line * LINE).max(start);
                }
            }
            start += runs.pitch;
        }
        missed
    }

    /// The window has ended: they enter the cache. How many were not there.
    pub fn enter(&mut self, cache: &mut Cache) -> u64 {
        let mut came = 0;
        for (buffer, n) in self.words.drain(..) {
            let (buffer, n) = (buffer as usize, n as usize);
            let lines = std::mem::take(&mut self.lines[buffer][n]);
            came += u64::from(cache.touch(buffer, n, lines).count_ones());
        }
        came
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(cache: &mut Cache, first: u64, count: u32) -> u64 {
        let mut touched = Touched::default();
        let runs = Runs { buffer: 0, first: first * LINE, bytes: LINE as u32, count, pitch: LINE };
        touched.missed(cache, runs);
        touched.enter(cache)
    }

    fn held(cache: &Cache, line: u64) -> [bool; 2] {
        [&cache.now, &cache.before].map(|lines| lines[0][line as usize / 64] >> (line % 64) & 1 == 1)
    }

    /// Eight lines fit: what was touched before the last eight others is gone, what was touched among the last four is there.
    #[test]
    fn the_oldest_lines_leave_when_the_cache_is_full() {
        let mut cache = Cache::new([4096 * LINE].into_iter(), 8 * LINE);
        assert_eq!(touch(&mut cache, 7, 1), 1, "cold");
        assert_eq!(touch(&mut cache, 7, 1), 0, "warm");
        assert_eq!(touch(&mut cache, 100, 4), 4);
        assert_eq!((held(&cache, 7), held(&cache, 103)), ([false, true], [true, false]));
        touch(&mut cache, 200, 8);
        assert_eq!(held(&cache, 7), [false, false], "eight others came since");
        assert_ne!(held(&cache, 207), [false, false]);
    }

    /// Boxes of many shapes, once and again: as many lines come as when each row comes alone.
    #[test]
    fn the_rows_of_a_box_are_touched_as_if_each_came_alone() {
        let size = 1 << 22;
        for pitch in [1, 2, 3, 8, 32, 64, 80] {
            for (first, bytes, count) in [(0, 1, 64), (5, 1, 6), (7, 2, 128), (33, 2, 64), (64 + 6, 1, 2), (31, 1, 4)] {
                let mut cache = Cache::new([size].into_iter(), 4 * size);
                touch(&mut cache, 40, 9);
                let runs =
                    Runs { buffer: 0, first: first * LINE, bytes: bytes * LINE as u32, count, pitch: pitch * LINE };
                let (mut together, mut alone) = (Touched::default(), Touched::default());
                for twice in 0..2 {
                    let each = runs.starts().map(|at| alone.missed(&cache, Runs::one(0, at, runs.bytes))).sum::<u64>();
                    assert_eq!(together.missed(&cache, runs), each, "{runs:?}, {twice}");
                }
                assert_eq!(together.lines, alone.lines, "{runs:?}");
                assert_eq!(together.enter(&mut cache.clone()), alone.enter(&mut cache), "{runs:?}");
            }
        }
    }

    /// Of bytes that lie partly in a line, those count; a line counts once a window, and again in the next if it did not enter.
    #[test]
    fn a_line_is_missed_once_in_a_window() {
        let mut cache = Cache::new([64 * LINE, 256 * LINE].into_iter(), 1 << 20);
        let mut touched = Touched::default();
        let sector = |buffer, at| Runs::one(buffer, at, 32);
        assert_eq!(touched.missed(&cache, sector(1, 96)), 32);
        assert_eq!(touched.missed(&cache, sector(1, 0)), 0, "the line is on its way");
        assert_eq!(touched.missed(&cache, sector(0, 0)), 32, "of another buffer");
        let rows = Runs { buffer: 1, first: 64, bytes: 128, count: 3, pitch: 80 * LINE };
        assert_eq!(touched.missed(&cache, rows), 64 + 2 * 128);
        let mut other = Touched::default();
        assert_eq!(other.missed(&cache, sector(1, LINE)), 32, "each cluster by itself");
        assert_eq!((touched.enter(&mut cache), other.enter(&mut cache)), (7, 0), "what several missed came once");
        assert_eq!(touched.missed(&cache, rows), 0);
        assert_eq!(touched.enter(&mut cache), 0);
    }
}
