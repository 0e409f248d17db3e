//! Where in its tensor a box begins, counted by depths and rows.

use crate::tensor_map::{Element, TensorMap};

/// Where in its tensor a box begins whose first two dimensions are more than one element wide at most, and how large the tensor is in these.
/// Dimension 0 is the innermost. A third one may cut that into pieces as wide as a swizzle, of which a copy brings one or several: then it counts as one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Origin {
    pub element: Element,
    pub at: [i64; 2],
    pub sizes: [u64; 2],
    /// Where the tensor lies.
    pub address: u64,
    /// How many bytes behind that the plane of the other dimensions begins: one of several matrices, or a part of one.
    pub plane: i64,
    /// Dimension 0 goes on in dimension 2, of which the box takes one or several, one behind the other: elements and rows of each.
    pub folded: Option<[i64; 2]>,
}

impl Origin {
    /// That of a box, if neither its rows nor its elements are taken apart.
    pub fn of(map: &TensorMap, coordinates: &[i32]) -> Option<Origin> {
        let ([inner, outer, planes @ ..], [width, height, ..]) = (coordinates, map.dims.as_slice()) else {
            return None;
        };
        let folded = Origin::folded(map);
        let beyond = 2 + usize::from(folded.is_some());
        let flat = map.box_dims.iter().skip(beyond).all(|&size| size == 1);
        let plain = flat && map.element.padded().is_none() && (0..beyond).all(|d| map.element_stride(d) == 1);
        let (pieces, planes) = planes.split_at(beyond - 2);
        let strides = map.strides.iter().skip(beyond - 1);
        let plane = planes.iter().zip(strides).map(|(&n, &stride)| i64::from(n).wrapping_mul(stride as i64));
        let wide = *width as i64;
        let whole = folded.map_or(*width, |_| width.saturating_mul(map.dims[2]));
        plain.then_some(Origin {
            element: map.element,
            at: [i64::from(*inner) + pieces.iter().map(|&n| i64::from(n) * wide).sum::<i64>(), i64::from(*outer)],
            sizes: [whole, *height],
            address: map.address,
            plane: plane.fold(0, i64::wrapping_add),
            folded,
        })
    }

    /// Elements and rows of a piece, where the box takes whole ones of a row that the third dimension cuts up.
    fn folded(map: &TensorMap) -> Option<[i64; 2]> {
        let (&[width, _, pieces, ..], &[row, goes_on, ..], &[inner, rows, _, ..]) =
            (map.dims.as_slice(), map.strides.as_slice(), map.box_dims.as_slice())
        else {
            return None;
        };
        let within = pieces > 1 && pieces.checked_mul(goes_on).is_some_and(|bytes| bytes <= row);
        let follows = within && goes_on * 8 == width * u64::from(map.element.bits());
        (u64::from(inner) == width && follows).then_some([width as i64, rows.into()])
    }

    /// The element of the tensor at this row and element of the box as it lies in shared memory, by dimension.
    pub fn element_at(&self, row: i64, element: i64) -> [i64; 2] {
        let [piece, row] = self.folded.map_or([0, row], |[width, rows]| [row / rows * width, row % rows]);
        [self.at[0] + piece + element, self.at[1] + row]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Depths as eight pieces of 64, of which a box takes two, or one; or a box of two matrices, of which nothing is known.
    #[test]
    fn a_third_dimension_may_cut_up_the_first() {
        let map = |strides: Vec<u64>, box_dims: Vec<u32>| TensorMap {
            address: 0,
            element: Element::F16,
            dims: vec![64, 1024, 8],
            strides,
            box_dims,
            element_strides: vec![],
            swizzle: Default::default(),
            fill_nan: false,
        };
        let origin = Origin::of(&map(vec![1024, 128], vec![64, 128, 2]), &[0, 256, 4]).expect("it goes on");
        assert_eq!((origin.at, origin.sizes, origin.plane), ([256, 256], [512, 1024], 0));
        assert_eq!(origin.element_at(2, 16), [256 + 16, 256 + 2]);
        assert_eq!(origin.element_at(130, 16), [256 + 64 + 16, 256 + 2]);
        assert_eq!(Origin::of(&map(vec![128, 131_072], vec![64, 128, 2]), &[0, 256, 4]), None);
        let piece = Origin::of(&map(vec![1024, 128], vec![64, 128, 1]), &[0, 256, 4]).expect("it goes on");
        assert_eq!((piece.at, piece.sizes, piece.plane), ([256, 256], [512, 1024], 0));
        assert_eq!(piece.element_at(2, 16), [256 + 16, 256 + 2]);
        let one = Origin::of(&map(vec![128, 131_072], vec![64, 128, 1]), &[0, 256, 4]).expect("one of several");
        assert_eq!((one.at, one.sizes, one.plane), ([0, 256], [64, 1024], 4 * 131_072));
        assert_eq!(one.element_at(130, 16), [16, 256 + 130]);
    }
}
