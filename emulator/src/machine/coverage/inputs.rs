//! Which parts of its tensors a launch brings to shared memory: by boxes, one dimension at a time, or by threads, 16 bytes at a time.

use crate::diagnostic::{Diagnostic, Label, Severity};
use crate::machine::explain::names::counted;
use crate::machine::memory::{Global, GlobalBuffer};
use crate::order::GRANULE;
use crate::tensor_map::TensorMap;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

/// Indices of a dimension that boxes have, as ranges in their order that do not touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Indices(SmallVec<[(i64, i64); 1]>);

impl Indices {
    fn add(&mut self, first: i64, end: i64) {
        if self.0.len() > SCATTERED {
            return;
        }
        let from = self.0.partition_point(|known| known.1 < first);
        if self.0.get(from).is_some_and(|known| known.0 <= first && end <= known.1) {
            return;
        }
        let to = from + self.0[from..].partition_point(|known| known.0 <= end);
        let merged = self.0[from..to].iter().fold((first, end), |all, known| (all.0.min(known.0), all.1.max(known.1)));
        self.0.drain(from..to);
        self.0.insert(from, merged);
    }

    /// Those of a tensor that are missing: the first range, and how many in all.
    fn missing(&self, size: i64) -> Option<((i64, i64), i64)> {
        if self.0.len() > SCATTERED {
            return None;
        }
        let mut gaps = SmallVec::<[(i64, i64); 2]>::new();
        let mut next = 0;
        for &(first, end) in &self.0 {
            if first.min(size) > next {
                gaps.push((next, first.min(size)));
            }
            next = next.max(end);
        }
        if next < size {
            gaps.push((next, size));
        }
        Some((*gaps.first()?, gaps.iter().map(|gap| gap.1 - gap.0).sum()))
    }
}

/// A tensor that copies load from, by the whole launch.
#[derive(Clone, Debug)]
struct Tensor {
    /// What tells it from others.
    address: u64,
    dims: SmallVec<[u64; 5]>,
    axes: SmallVec<[Indices; 5]>,
    /// The first copy of those in the text.
    site: u32,
    /// A box that has nothing of the tensor: the copy, where it begins, and the dimension; and how many there are.
    outside: Option<(u32, SmallVec<[i32; 5]>, usize)>,
    outsides: u64,
    /// It is loaded from in ways that are not looked at.
    picked: bool,
}

impl Tensor {
    fn new(map: &TensorMap, site: u32) -> Tensor {
        let axes = map.dims.iter().map(|_| Indices::default()).collect();
        let dims = SmallVec::from_slice(&map.dims);
        Tensor { address: map.address, dims, axes, site, outside: None, outsides: 0, picked: false }
    }

    fn is(&self, map: &TensorMap) -> bool {
        self.address == map.address && self.dims[..] == map.dims[..]
    }
}

/// Words of a block of chunks.
const WORDS: usize = 64;

/// A buffer that threads copy from.
#[derive(Debug, Default)]
struct Copied {
    /// The chunks of it that they stored to shared or tensor memory, a bit each, by blocks.
    chunks: FxHashMap<u64, Box<[u64; WORDS]>>,
    /// The first of these stores in the text.
    site: u32,
    /// Some of them are to tensor memory.
    to_tensor: bool,
}

/// The tensors of a launch that copies load from, and the buffers that threads copy from, by number.
#[derive(Debug, Default)]
pub struct Inputs {
    tensors: Vec<Tensor>,
    copied: BTreeMap<usize, Copied>,
    /// Buffers that are read in another way, too.
    otherwise: BTreeSet<usize>,
}

/// More tensors than this are not looked at: their maps are made as the kernel goes.
const MOST: usize = 64;
/// Nor is a tensor of which boxes lie in more places that do not touch: they are picked here and there.
const SCATTERED: usize = 1024;

impl Inputs {
    /// A copy loads a box.
    pub fn load(&mut self, map: &TensorMap, coordinates: &[i32], site: u32) {
        let rank = map.dims.len();
        let plain = coordinates.len() == rank && map.element.padded().is_none();
        if !plain || (0..rank).any(|n| map.element_stride(n) != 1) {
            // Rows picked one by one, parts of elements: of such a tensor nothing is known.
            if let Some(tensor) = self.tensors.iter_mut().find(|tensor| tensor.is(map)) {
                tensor.picked = true;
            } else if self.tensors.len() < MOST {
                self.tensors.push(Tensor { picked: true, ..Tensor::new(map, site) });
            }
            return;
        }
        let at = self.tensors.iter().position(|tensor| tensor.is(map));
        let at = match at {
            Some(at) => at,
            None if self.tensors.len() == MOST => return,
            None => {
                self.tensors.push(Tensor::new(map, site));
                self.tensors.len() - 1
            }
        };
        let tensor = &mut self.tensors[at];
        tensor.site = tensor.site.min(site);
        let ends = |n: usize| (i64::from(coordinates[n]), i64::from(coordinates[n]) + i64::from(map.box_dims[n]));
        let beyond = (0..rank).find(|&n| ends(n).0 >= map.dims[n] as i64 || ends(n).1 <= 0);
        if let Some(dimension) = beyond {
            tensor.outside.get_or_insert_with(|| (site, SmallVec::from_slice(coordinates), dimension));
            tensor.outsides += 1;
            return;
        }
        for (n, axis) in tensor.axes.iter_mut().enumerate() {
            let (first, end) = ends(n);
            axis.add(first, end);
        }
    }

    /// Takes over what a cluster has seen.
    pub fn join(&mut self, other: Inputs) {
        self.otherwise.extend(other.otherwise);
        for (buffer, more) in other.copied {
            let known = self.copied.entry(buffer).or_insert_with(|| Copied::by(more.site));
            known.site = known.site.min(more.site);
            known.to_tensor |= more.to_tensor;
            for (block, words) in more.chunks {
                let known = known.chunks.entry(block).or_insert_with(|| Box::new([0; WORDS]));
                known.iter_mut().zip(*words).for_each(|(word, more)| *word |= more);
            }
        }
        for new in other.tensors {
            let same = |known: &&mut Tensor| known.address == new.address && known.dims == new.dims;
            let room = self.tensors.len() < MOST;
            match self.tensors.iter_mut().find(same) {
                Some(known) => {
                    for (axis, more) in known.axes.iter_mut().zip(&new.axes) {
                        more.0.iter().for_each(|&(first, end)| axis.add(first, end));
                    }
                    known.site = known.site.min(new.site);
                    known.outside = known.outside.take().or(new.outside);
                    known.outsides += new.outsides;
                    known.picked |= new.picked;
                }
                None if room => self.tensors.push(new),
                None => {}
            }
        }
    }

    /// The launch is complete, and nothing else is wrong: what of the tensors it has not loaded. Where as much of several is missing, that is one note.
    /// `copies`: all that threads copy for MMAs is known.
    pub fn judge(&self, global: &Global, copies: bool, label: impl Fn(u32, String) -> Label) -> Vec<Diagnostic> {
        let mut all: Vec<(Missing, Diagnostic)> = vec![];
        // What one map leaves out another one of the same address may have.
        let alone = |tensor: &&Tensor| self.tensors.iter().filter(|other| other.address == tensor.address).count() == 1;
        for tensor in self.tensors.iter().filter(alone) {
            let (Some(missing), Some(name)) = (tensor.missing(), tensor.name(global)) else { continue };
            match all.iter_mut().find(|(known, _)| *known == missing) {
                Some((_, said)) => {
                    said.labels.push(label(tensor.site, format!("of the tensor at {name}, the same are missing")));
                }
                None => all.push((missing, tensor.said(&name, missing, &label))),
            }
        }
        let boxes: Vec<usize> =
            self.tensors.iter().filter_map(|tensor| Some(global.find(tensor.address, 1)?.0)).collect();
        let copied = self
            .copied
            .iter()
            .filter(|(buffer, _)| copies && !boxes.contains(buffer) && !self.otherwise.contains(buffer));
        let copied = copied.filter_map(|(&buffer, copied)| copied.said(global.buffers.get(buffer)?, &label));
        all.into_iter().map(|(_, said)| said).chain(copied).collect()
    }

    /// Threads store 16 bytes of a buffer, from this offset on, to shared or tensor memory.
    pub fn copied(&mut self, buffer: usize, offset: u64, site: u32, to_tensor: bool) {
        let copied = self.copied.entry(buffer).or_insert_with(|| Copied::by(site));
        copied.site = copied.site.min(site);
        copied.to_tensor |= to_tensor;
        copied.add(offset / GRANULE);
        if !offset.is_multiple_of(GRANULE) {
            copied.add(offset.div_ceil(GRANULE));
        }
    }

    /// A buffer is read in another way, too: what is not copied in chunks need not be missing.
    pub fn read_otherwise(&mut self, buffer: usize) {
        self.otherwise.insert(buffer);
    }
}

impl Copied {
    fn by(site: u32) -> Copied {
        Copied { chunks: FxHashMap::default(), site, to_tensor: false }
    }

    fn add(&mut self, chunk: u64) {
        let of_block = WORDS as u64 * 64;
        let words = self.chunks.entry(chunk / of_block).or_insert_with(|| Box::new([0; WORDS]));
        words[(chunk % of_block / 64) as usize] |= 1 << (chunk % 64);
    }

    fn has(&self, chunk: u64) -> bool {
        let of_block = WORDS as u64 * 64;
        let words = self.chunks.get(&(chunk / of_block));
        words.is_some_and(|words| words[(chunk % of_block / 64) as usize] >> (chunk % 64) & 1 == 1)
    }

    fn said(&self, buffer: &GlobalBuffer, label: impl Fn(u32, String) -> Label) -> Option<Diagnostic> {
        let all = buffer.memory.bytes.len() as u64 / GRANULE;
        let first = (0..all).find(|&chunk| !self.has(chunk))?;
        let count = (0..all).filter(|&chunk| self.has(chunk)).count() as u64;
        let (name, size) = (&buffer.name, all * GRANULE);
        let (memory, rule) = match self.to_tensor {
            false => (
                "shared",
                "An MMA multiplies what lies in shared memory (PTX ISA, tcgen05.mma, wgmma.mma_async). What threads do not copy there takes no part in what it \
                 computes.",
            ),
            true => (
                "tensor or shared",
                "An MMA multiplies what lies in tensor memory, for A, or in shared memory (PTX ISA, tcgen05.mma). What threads bring to neither takes no part in \
                 what it computes.",
            ),
        };
        Some(Diagnostic {
            code: "input-not-loaded",
            severity: Severity::Note,
            title: format!(
                "{} of the {size} bytes of `{name}` are never copied to {memory} memory: the first is {}",
                (all - count) * GRANULE,
                buffer.describe(first * GRANULE)
            ),
            labels: vec![label(
                self.site,
                format!("threads store {} bytes of it here, or where else they do", count * GRANULE),
            )],
            rule: rule.into(),
            help: format!(
                "Compare the addresses that threads load from, and how far they go on from pass to pass, with the size of `{name}`."
            ),
            count: 1,
            confirmed: None,
        })
    }
}

/// What no box has.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Missing {
    dimension: usize,
    size: u64,
    /// The first range, and how many in all.
    first: (i64, i64),
    count: i64,
}

impl Tensor {
    fn missing(&self) -> Option<Missing> {
        if self.picked {
            return None;
        }
        self.axes.iter().zip(&self.dims).enumerate().find_map(|(dimension, (axis, &size))| {
            let (first, count) = axis.missing(size as i64)?;
            Some(Missing { dimension, size, first, count })
        })
    }

    fn name(&self, global: &Global) -> Option<String> {
        let (buffer, offset) = global.find(self.address, 1)?;
        let buffer = &global.buffers[buffer];
        Some(if offset == 0 { format!("`{}`", buffer.name) } else { buffer.describe(offset) })
    }

    /// How messages call an index of a dimension.
    fn index(&self, dimension: usize) -> &'static str {
        match (self.dims.len(), dimension) {
            (2, 0) => "column",
            (2, _) => "row",
            _ => "index",
        }
    }

    fn said(&self, name: &str, missing: Missing, label: impl Fn(u32, String) -> Label) -> Diagnostic {
        let Missing { dimension, size, first: (first, end), count } = missing;
        let all = match self.dims.len() {
            2 => counted(size, self.index(dimension)),
            _ => format!("{size} indices of dimension {dimension}"),
        };
        let which = if end - first == count { "those from" } else { "the first from" };
        let brought = format!("loaded here; copies bring {} of the {all}", size as i64 - count);
        let mut labels = vec![label(self.site, brought)];
        let mut title =
            format!("{count} of the {all} of the tensor at {name} are never loaded: {which} {first} to {}", end - 1);
        let mut help = "Compare the coordinates of the copies, counted in elements, the bounds of their loops and the grid with the sizes of the \
                        tensor map. If the launch is for a part of the tensor, let the map say so."
            .to_string();
        if let Some((site, at, dimension)) = &self.outside {
            let boxes = if self.outsides == 1 { "a box lies".into() } else { format!("{} boxes lie", self.outsides) };
            let index = self.index(*dimension);
            let begins = format!("the first begins at {index} {} of dimension {dimension}", at[*dimension]);
            labels.push(label(*site, format!("{boxes} wholly outside of the tensor: {begins}")));
            if self.axes.iter().all(|axis| axis.0.is_empty()) {
                title = format!(
                    "all boxes that are loaded of the tensor at {name} lie wholly outside of it, and hold what fills them: {begins}, of which there are {}",
                    self.dims[*dimension]
                );
                help = format!(
                    "Check coordinate {dimension} of this copy, the {index}: it counts elements from the begin of the tensor, and there are {}.",
                    self.dims[*dimension]
                );
            }
        }
        Diagnostic {
            code: "input-not-loaded",
            severity: Severity::Note,
            title,
            labels,
            rule: "A copy brings the elements of its box, which begins at its coordinates (PTX ISA, cp.async.bulk.tensor; 5.5.3.1, bounding box). \
                   What no box has takes no part in what the launch computes."
                .into(),
            help,
            count: 1,
            confirmed: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_are_one() {
        let mut indices = Indices::default();
        for (first, end) in [(64, 128), (192, 256), (128, 160), (-64, 0), (70, 80)] {
            indices.add(first, end);
        }
        assert_eq!(indices.0[..], [(-64, 0), (64, 160), (192, 256)]);
        assert_eq!(indices.missing(256), Some(((0, 64), 96)));
        assert_eq!(indices.missing(64), Some(((0, 64), 64)));
        indices.add(0, 64);
        assert_eq!(indices.missing(300), Some(((160, 192), 76)));
        indices.add(100, 400);
        assert_eq!(indices.missing(300), None);
    }
}
