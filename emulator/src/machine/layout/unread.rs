//! Chunks that threads copied from rows of a buffer for MMAs, and that nobody reads: a part of the depth is left out, or whole rows are.

use super::boxes::Laid;
use super::copied::CHUNK;
use super::loaded::granules;
use super::slices::{CODE, NO_OPERAND, NOBODY};
use crate::diagnostic::{Diagnostic, Meaning, Severity};
use crate::machine::cluster::Cluster;
use crate::machine::tensor_memory::SharedDescriptor;
use crate::order::{BLOCK, GRANULE, Run};
use std::collections::BTreeMap;

/// Granules of a line of 128 bytes.
const LINE: u32 = 8;

/// What became of the granules of a KiB, in the whole run.
#[derive(Clone, Copy, Debug, Default)]
struct Fate {
    /// Threads copied a chunk there.
    stored: u64,
    /// Somebody has read it.
    read: u64,
    /// An MMA has, as rows of this tile with a swizzle: the descriptor, and the last such MMA.
    multiplied: u64,
    by: Option<(SharedDescriptor, u32)>,
}

/// The shared memory of a CTA, by KiB, as far as threads copy to it.
#[derive(Debug, Default)]
pub struct Copies(Vec<Fate>);

/// Of the chunks that one statement stored: those that nobody has read.
struct Left {
    at: u32,
    bytes: u64,
    beside: Option<Beside>,
}

/// Others of their rows were read.
#[derive(Clone, Copy)]
struct Beside {
    /// Between these bytes of their rows the chunks lie that were not.
    low: u32,
    high: u32,
    width: u32,
    /// Who read the others.
    mma: u32,
}

impl Copies {
    /// Threads copy a chunk to this address.
    pub fn stored(&mut self, at: u32) {
        let n = at as usize / BLOCK as usize;
        if self.0.len() <= n {
            self.0.resize(n + 1, Fate::default());
        }
        self.0[n].stored |= 1 << (at % BLOCK as u32 / GRANULE as u32);
    }

    /// Somebody reads these bytes.
    #[inline]
    pub fn read(&mut self, start: u32, end: u32) {
        if self.0.is_empty() {
            return;
        }
        let (first, last) = (start as usize / BLOCK as usize, end.div_ceil(BLOCK as u32) as usize);
        for (n, fate) in (0u32..).zip(&mut self.0).take(last).skip(first) {
            fate.read |= granules(n, start, end);
        }
    }

    /// The tensor core reads these granules.
    pub fn read_granules(&mut self, run: Run) {
        self.each(run, |fate, granules| fate.read |= granules);
    }

    /// An MMA multiplies these granules as an operand of this layout.
    pub fn multiplied(&mut self, runs: impl Iterator<Item = Run>, laid: &Laid) {
        if laid.d.swizzle == 0 || laid.mn_major || self.0.is_empty() {
            return;
        }
        for run in runs {
            self.each(run, |fate, granules| {
                fate.multiplied |= granules;
                fate.by = Some((laid.d, laid.site));
            });
        }
    }

    fn each(&mut self, Run { block, blocks, granules }: Run, change: impl Fn(&mut Fate, u64)) {
        let last = self.0.len().min((block + blocks) as usize);
        let fates = self.0.get_mut(block as usize..last).unwrap_or_default();
        fates.iter_mut().for_each(|fate| change(fate, granules));
    }

    /// The granules that threads copied and nobody has read: their addresses. Beside those of the same row that MMAs multiplied, with the descriptor and
    /// the MMA that read the others; or where all of a KiB was copied, and nobody has read any of a line of it.
    fn left_out(&self) -> impl Iterator<Item = (u32, Option<(SharedDescriptor, u32)>)> {
        (0u32..).zip(&self.0).flat_map(|(n, fate)| {
            let never = fate.stored & !fate.read;
            // So many granules side by side, of which this is one.
            let row = |granule: u32, few: u32| (u64::MAX >> (64 - few)) << (granule - granule % few);
            let beside = move |granule: u32| {
                fate.by.filter(|(d, _)| fate.multiplied & row(granule, d.swizzle / GRANULE as u32) != 0)
            };
            let whole = move |granule: u32| fate.stored == u64::MAX && fate.read & row(granule, LINE) == 0;
            (0..64).filter(move |granule| never >> granule & 1 == 1).filter_map(move |granule| {
                let by = beside(granule);
                (by.is_some() || whole(granule)).then_some((n * BLOCK as u32 + granule * GRANULE as u32, by))
            })
        })
    }
}

impl Cluster<'_> {
    /// A CTA has ended: what its threads copied for MMAs and nobody has read. Gives the stores of
    /// chunks beside which others were.
    pub fn copies_never_read(&mut self, cta: usize) -> Vec<u32> {
        let mut all: BTreeMap<u32, Left> = BTreeMap::new();
        if !self.kernel.multiplies {
            return vec![];
        }
        for (at, by) in self.ctas[cta].loaded.copies.left_out() {
            // Something else may have been stored there since.
            let (Some(_), Some(writer)) = (self.source(cta, at), self.ctas[cta].shared_shadow.writer(at.into())) else {
                continue;
            };
            let left = all.entry(writer.site).or_insert(Left { at, bytes: 0, beside: None });
            left.bytes += CHUNK as u64;
            if let Some((d, mma)) = by {
                let low = d.swizzled(at) % d.swizzle;
                let high = low + CHUNK as u32;
                let beside = left.beside.get_or_insert(Beside { low, high, width: d.swizzle, mma });
                (beside.low, beside.high) = (beside.low.min(low), beside.high.max(high));
            }
        }
        for (&site, left) in &all {
            let diagnostic = self.or_led_astray(self.copy_never_read(site, left), site);
            let diagnostic = Diagnostic { severity: Severity::Note, ..diagnostic };
            match left.beside {
                Some(_) => self.findings.add(diagnostic),
                None => self.if_clean.push(diagnostic),
            }
        }
        self.depths.left_alone.extend(all.keys());
        all.into_iter().filter(|(_, left)| left.beside.is_some()).map(|(site, _)| site).collect()
    }

    fn copy_never_read(&self, site: u32, left: &Left) -> Diagnostic {
        let &Left { at, bytes, beside } = left;
        let title = format!("{bytes} bytes that threads copy to {} are never read", self.shared_name(at));
        let Some(Beside { low, high, width, mma }) = beside else {
            let mut diagnostic = self.problem(CODE, site, title, NOBODY, NO_OPERAND.into());
            diagnostic.labels[0].text = format!("stored here, {at:#x} and what lies behind it");
            diagnostic.labels[0].meaning = Meaning::NothingRead;
            return diagnostic;
        };
        let mut diagnostic = self.problem(
            CODE,
            site,
            title,
            "An MMA takes 32 bytes of each row of a K-major operand (PTX ISA, tcgen05.mma, wgmma.mma_async). Other bytes of these rows were \
             read; nothing that was computed depends on these.",
            "Let the MMAs go over the whole depth of the tile, 32 bytes of its rows each, or copy less.".into(),
        );
        diagnostic.labels[0].text =
            format!("stored here: all of them lie between bytes {low} and {high} of rows of {width} bytes");
        diagnostic.labels.push(self.label(mma, "this MMA reads other bytes of these rows"));
        diagnostic
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::layout::boxes::Which;

    #[test]
    fn what_lies_beside_multiplied_chunks_is_left_out() {
        let d = SharedDescriptor { start: 1024, stride: 1024, swizzle: 128, ..Default::default() };
        let laid = Laid { which: Which::A, d, rows: 8, mn_major: false, site: 7 };
        let mut copies = Copies::default();
        (0..16).for_each(|chunk| copies.stored(1024 + chunk * 16));
        let left = |copies: &Copies| copies.left_out().map(|left| left.0).collect::<Vec<_>>();
        assert!(left(&copies).is_empty(), "nothing is multiplied there, and the KiB is not full");
        let run = Run { block: 1, blocks: 1, granules: 0b0011_1111 };
        copies.read_granules(run);
        copies.multiplied(std::iter::once(run), &laid);
        assert_eq!(left(&copies), [1024 + 6 * 16, 1024 + 7 * 16], "and not of the second row");
        copies.read(1024 + 6 * 16, 1024 + 6 * 16 + 4);
        assert_eq!(left(&copies), [1024 + 7 * 16]);
    }
}
