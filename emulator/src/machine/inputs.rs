//! Which parts of their tensors the copies of a launch bring to shared memory, one dimension at a time.

use super::memory::Global;
use super::names::counted;
use crate::diagnostic::{Diagnostic, Label, Severity};
use crate::tensor_map::TensorMap;
use smallvec::SmallVec;

/// Indices of a dimension that boxes have, as ranges in their order that do not touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Indices(SmallVec<[(i64, i64); 1]>);

impl Indices {
    fn add(&mut self, first: i64, end: i64) {
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
}

impl Tensor {
    fn is(&self, map: &TensorMap) -> bool {
        self.address == map.address && self.dims[..] == map.dims[..]
    }
}

/// The tensors of a launch that copies load from.
#[derive(Debug, Default)]
pub struct Inputs(Vec<Tensor>);

/// More tensors than this are not looked at: their maps are made as the kernel goes.
const MOST: usize = 64;

impl Inputs {
    /// A copy loads a box.
    pub fn load(&mut self, map: &TensorMap, coordinates: &[i32], site: u32) {
        let rank = map.dims.len();
        let plain = coordinates.len() == rank && map.element.padded().is_none();
        if !plain || (0..rank).any(|n| map.element_stride(n) != 1) {
            return;
        }
        let at = self.0.iter().position(|tensor| tensor.is(map));
        let at = match at {
            Some(at) => at,
            None if self.0.len() == MOST => return,
            None => {
                let axes = (0..rank).map(|_| Indices::default()).collect();
                let dims = SmallVec::from_slice(&map.dims);
                self.0.push(Tensor { address: map.address, dims, axes, site, outside: None, outsides: 0 });
                self.0.len() - 1
            }
        };
        let tensor = &mut self.0[at];
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
        for new in other.0 {
            let same = |known: &&mut Tensor| known.address == new.address && known.dims == new.dims;
            let room = self.0.len() < MOST;
            match self.0.iter_mut().find(same) {
                Some(known) => {
                    for (axis, more) in known.axes.iter_mut().zip(&new.axes) {
                        more.0.iter().for_each(|&(first, end)| axis.add(first, end));
                    }
                    known.site = known.site.min(new.site);
                    known.outside = known.outside.take().or(new.outside);
                    known.outsides += new.outsides;
                }
                None if room => self.0.push(new),
                None => {}
            }
        }
    }

    /// The launch is complete, and nothing else is wrong: what of the tensors it has not loaded. Where as much of several is missing, that is one note.
    pub fn judge(&self, global: &Global, label: impl Fn(u32, String) -> Label) -> Vec<Diagnostic> {
        let mut all: Vec<(Missing, Diagnostic)> = vec![];
        for tensor in &self.0 {
            let (Some(missing), Some(name)) = (tensor.missing(), tensor.name(global)) else { continue };
            match all.iter_mut().find(|(known, _)| *known == missing) {
                Some((_, said)) => {
                    said.labels.push(label(tensor.site, format!("of the tensor at {name}, the same are missing")));
                }
                None => all.push((missing, tensor.said(&name, missing, &label))),
            }
        }
        all.into_iter().map(|(_, said)| said).collect()
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
        if let Some((site, at, dimension)) = &self.outside {
            let boxes = if self.outsides == 1 { "a box lies".into() } else { format!("{} boxes lie", self.outsides) };
            let index = self.index(*dimension);
            let begins = format!("the first begins at {index} {} of dimension {dimension}", at[*dimension]);
            labels.push(label(*site, format!("{boxes} wholly outside of the tensor: {begins}")));
        }
        Diagnostic {
            code: "input-not-loaded",
            severity: Severity::Note,
            title: format!("{count} of the {all} of the tensor at {name} are never loaded: {which} {first} to {}", end - 1),
            labels,
            rule: "A copy brings the elements of its box, which begins at its coordinates (PTX ISA, cp.async.bulk.tensor; 5.5.3.1, bounding box). \
                   What no box has takes no part in what the launch computes."
                .into(),
            help: "Compare the coordinates of the copies, counted in elements, the bounds of their loops and the grid with the sizes of the \
                   tensor map. If the launch is for a part of the tensor, let the map say so."
                .into(),
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
