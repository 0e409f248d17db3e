//! Wrong tensor maps in the launch.

use super::kernels::Kernel;
use super::{Change, Kind, Mutant, What, mutant};
use emulator::{Element, Launch, Param, Swizzle, TensorMap};
use std::fmt::{Display, Formatter, Result as Formatted};

/// What differs in a tensor map. Dimension 0 is the innermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapChange {
    /// Its swizzle.
    Swizzle(Swizzle),
    /// So many elements of a box in this dimension.
    Box(usize, u32),
    /// So many elements of the tensor in this dimension.
    Extent(usize, u64),
    /// Bytes from row to row.
    Stride(u64),
    /// The extents, each in the other's place.
    Swapped,
    /// The type of its elements.
    Element(Element),
}

impl Display for MapChange {
    fn fmt(&self, f: &mut Formatter<'_>) -> Formatted {
        match self {
            MapChange::Swizzle(swizzle) => write!(f, "swizzle {swizzle:?}"),
            MapChange::Box(dimension, extent) => write!(f, "box of {extent} elements in dimension {dimension}"),
            MapChange::Extent(dimension, extent) => write!(f, "{extent} elements in dimension {dimension}"),
            MapChange::Stride(bytes) => write!(f, "{bytes} bytes from row to row"),
            MapChange::Swapped => f.write_str("the two extents swapped"),
            MapChange::Element(element) => write!(f, "elements of type {element:?}"),
        }
    }
}

impl MapChange {
    /// Makes the change.
    pub fn apply(self, map: &mut TensorMap) {
        match self {
            MapChange::Swizzle(swizzle) => map.swizzle = swizzle,
            MapChange::Box(dimension, extent) => set(&mut map.box_dims, dimension, extent),
            MapChange::Extent(dimension, extent) => set(&mut map.dims, dimension, extent),
            MapChange::Stride(bytes) => set(&mut map.strides, 0, bytes),
            MapChange::Swapped => map.dims.swap(0, 1),
            MapChange::Element(element) => map.element = element,
        }
    }
}

fn set<T>(all: &mut [T], at: usize, to: T) {
    if let Some(one) = all.get_mut(at) {
        *one = to;
    }
}

/// The launch with another tensor map.
pub fn with(launch: &Launch, param: usize, change: MapChange) -> Launch {
    let mut launch = launch.clone();
    if let Some(Param::TensorMap { map, .. }) = launch.params.get_mut(param) {
        change.apply(map);
    }
    launch
}

/// All of a kernel's launch.
pub fn mutants(kernel: &Kernel) -> Vec<Mutant> {
    let mut all = Vec::new();
    for (param, value) in kernel.launch.params.iter().enumerate() {
        let Param::TensorMap { map, .. } = value else { continue };
        all.extend(
            changes(map)
                .into_iter()
                .map(|(mistake, change)| mutant(mistake, Kind::Descriptors, What::Map, Change::Map(param, change))),
        );
    }
    all
}

/// Every change of a map.
fn changes(map: &TensorMap) -> Vec<(&'static str, MapChange)> {
    let mut all = Vec::new();
    for swizzle in [Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128] {
        all.extend((swizzle != map.swizzle).then_some(("map swizzle", MapChange::Swizzle(swizzle))));
    }
    for (dimension, extent) in map.box_dims.iter().enumerate() {
        let half = ("map box", MapChange::Box(dimension, extent / 2));
        all.extend((*extent > 1).then_some(half));
    }
    for (dimension, extent) in map.dims.iter().enumerate() {
        let less = ("map extent", MapChange::Extent(dimension, extent - 8));
        all.extend((*extent > 8).then_some(less));
    }
    all.extend(map.strides.first().map(|bytes| ("map stride", MapChange::Stride(bytes + 16))));
    all.extend((map.dims.first() != map.dims.get(1)).then_some(("map extents", MapChange::Swapped)));
    let other = if map.element == Element::F16 { Element::Bf16 } else { Element::F16 };
    all.push(("map element", MapChange::Element(other)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_changed_one_thing_at_a_time() {
        let kernel = Kernel::new(4).unwrap();
        let all = mutants(&kernel);
        assert!(all.len() > 20, "{}", all.len());
        for mutant in all {
            let Change::Map(param, change) = mutant.change else { panic!() };
            let changed = with(&kernel.launch, param, change);
            let differ: Vec<usize> =
                (0..changed.params.len()).filter(|&n| changed.params[n] != kernel.launch.params[n]).collect();
            assert_eq!(differ, [param], "{change}");
        }
    }

    #[test]
    fn each_change() {
        let Some(Param::TensorMap { map, .. }) = Kernel::new(4).unwrap().launch.params.into_iter().next() else {
            panic!()
        };
        let changed = |change: MapChange| {
            let mut map = map.clone();
            change.apply(&mut map);
            map
        };
        assert_eq!(changed(MapChange::Swapped).dims, [map.dims[1], map.dims[0]]);
        assert_eq!(changed(MapChange::Box(1, 3)).box_dims, [map.box_dims[0], 3]);
        assert_eq!(changed(MapChange::Stride(7)).strides, [7]);
        assert_eq!(changed(MapChange::Swizzle(Swizzle::None)).swizzle, Swizzle::None);
        // A dimension that it has not is left alone.
        assert_eq!(changed(MapChange::Extent(2, 1)), map);
    }
}
