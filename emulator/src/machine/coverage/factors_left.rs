//! Scale factors that copies without a tensor map bring to shared memory, in blocks of 512 bytes, and of which nobody reads some, although a `tcgen05.cp`
//! takes others of the same copy.

use crate::diagnostic::{Diagnostic, Severity};
use crate::machine::cluster::Cluster;
use crate::machine::layout::loaded::granules;
use crate::machine::layout::slices::CODE;
use crate::order::{BLOCK, GRANULE, Run};

/// Bytes of the factors of 128 rows for an MMA (PTX ISA 9.7.16.10.7).
const FACTORS: u32 = 512;
/// Copies to as many places of a CTA are followed: the stages of a ring, for A and for B.
const MOST: usize = 64;

/// What copies of a statement bring to a place, in the whole run.
#[derive(Clone, Copy, Debug)]
struct Brought {
    start: u32,
    end: u32,
    site: u32,
    /// A `tcgen05.cp` that has taken some of it.
    by: Option<u32>,
}

/// Those of a CTA, and which granules of its shared memory were read, by KiB.
#[derive(Debug, Default)]
pub struct FactorsLeft {
    brought: Vec<Brought>,
    read: Vec<u64>,
}

impl FactorsLeft {
    /// A copy brings these bytes.
    pub fn bring(&mut self, start: u32, end: u32, site: u32) {
        let same = |known: &Brought| (known.start, known.end, known.site) == (start, end, site);
        if end - start <= FACTORS || self.brought.len() >= MOST || self.brought.iter().any(same) {
            return;
        }
        self.brought.push(Brought { start, end, site, by: None });
        let blocks = end.div_ceil(BLOCK as u32) as usize;
        if self.read.len() < blocks {
            self.read.resize(blocks, 0);
        }
    }

    /// Somebody reads these bytes.
    #[inline]
    pub fn read(&mut self, start: u32, end: u32) {
        let (first, last) = (start as usize / BLOCK as usize, end.div_ceil(BLOCK as u32) as usize);
        for (n, read) in (0u32..).zip(&mut self.read).take(last).skip(first) {
            *read |= granules(n, start, end);
        }
    }

    /// The tensor core reads these granules.
    pub fn read_granules(&mut self, Run { block, blocks, granules }: Run) {
        let last = self.read.len().min((block + blocks) as usize);
        self.read.get_mut(block as usize..last).unwrap_or_default().iter_mut().for_each(|read| *read |= granules);
    }

    /// A `tcgen05.cp` takes rows from this address on.
    pub fn taken(&mut self, at: u32, by: u32) {
        let inside = |brought: &&mut Brought| (brought.start..brought.end).contains(&at);
        self.brought.iter_mut().filter(inside).for_each(|brought| brought.by = Some(by));
    }

    /// The first bytes of a place, as many as a block of factors or more, that nobody has read, and how many of it those are.
    fn left(&self, brought: &Brought) -> Option<(u32, u32)> {
        let each = GRANULE as u32;
        let unread = |at: u32| self.read[(at / BLOCK as u32) as usize] >> (at % BLOCK as u32 / each) & 1 == 0;
        let (mut found, mut at) = (None, brought.start);
        while at < brought.end {
            let end = (at..brought.end).step_by(each as usize).find(|&at| !unread(at)).unwrap_or(brought.end);
            if end - at >= FACTORS {
                let (first, bytes) = found.unwrap_or((at, 0));
                found = Some((first, bytes + end - at));
            }
            at = end + each;
        }
        found
    }
}

impl Cluster<'_> {
    /// A CTA has ended: what of the factors that were brought nobody has read. Told once for those of which the same `tcgen05.cp` takes others: an
    /// unrolled ring brings each stage by a statement of its own.
    pub fn factors_never_read(&mut self, cta: usize) {
        let factors = &self.ctas[cta].loaded.factors;
        let mut told: Vec<Diagnostic> = vec![];
        let mut takers: Vec<u32> = vec![];
        for brought in &factors.brought {
            let (Some(by), Some((first, bytes))) = (brought.by, factors.left(brought)) else { continue };
            if let Some(n) = takers.iter().position(|&taker| taker == by) {
                told[n].count += 1;
                continue;
            }
            takers.push(by);
            let (start, all) = (brought.start, brought.end - brought.start);
            let mut diagnostic = self.problem(
                CODE,
                brought.site,
                format!("{bytes} of the {all} bytes that are copied to {} are never read", self.shared_name(start)),
                "A tcgen05.cp moves the rows that its shared-memory descriptor names to tensor memory (PTX ISA, tcgen05.cp), 512 bytes of scale factors for 128 rows. \
                 What none moves takes part in no product: an MMA multiplies by what lay in its columns before.",
                "Let a tcgen05.cp take each block of factors in every round: hold the start addresses of their descriptors (bits 0 to 13, in units of 16 bytes) \
                 against where the blocks lie, or copy fewer bytes."
                    .into(),
            );
            diagnostic.severity = Severity::Note;
            diagnostic.labels[0].text = format!("copied here; the first that nobody reads is byte {}", first - start);
            diagnostic.labels.push(self.label(by, "this takes others of them"));
            told.push(diagnostic);
        }
        self.if_clean.extend(told);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_nobody_takes_is_left() {
        let mut factors = FactorsLeft::default();
        factors.read(0, 4096);
        factors.bring(512, 2560, 7);
        let place = factors.brought[0];
        assert_eq!(factors.left(&place), Some((512, 2048)), "what was read before it came does not count");
        // The first of four by threads, the last by the tensor core, in two pieces.
        factors.read(512, 1024);
        factors.read_granules(Run { block: 2, blocks: 1, granules: 0xffff_ffff });
        assert_eq!(factors.left(&place), Some((1024, 1024)));
        factors.read(1520, 1521);
        assert_eq!(factors.left(&place), Some((1536, 512)), "496 bytes are no block");
        factors.taken(2559, 9);
        factors.taken(2560, 8);
        assert_eq!(factors.brought[0].by, Some(9));
    }
}
