//! The fields of a tensor map that `tensormap.replace` writes, and where they lie in the 128-byte object: as an H200 wrote each of
//! them into zeroes and into ones (silicon/tensor_map/replace), but for the packed types and the atomicity of swizzles, which it does
//! not have.

use smallvec::{SmallVec, smallvec};

/// Which field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FieldKind {
    GlobalAddress,
    Rank,
    BoxDim,
    GlobalDim,
    GlobalStride,
    ElementStride,
    Element,
    Interleave,
    Swizzle,
    SwizzleAtomicity,
    Fill,
}

/// A field; of those that there are for each dimension, which one: innermost first, and of the strides that of dimension 1 first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Which field.
    pub kind: FieldKind,
    /// Of which dimension.
    pub dimension: usize,
}

/// Bits of the object: the first, how many, and what they become.
pub type Bits = (usize, usize, u64);

impl FieldKind {
    /// By its name in `tensormap.replace`.
    pub fn of(name: &str) -> Option<FieldKind> {
        Some(match name {
            "global_address" => FieldKind::GlobalAddress,
            "rank" => FieldKind::Rank,
            "box_dim" => FieldKind::BoxDim,
            "global_dim" => FieldKind::GlobalDim,
            "global_stride" => FieldKind::GlobalStride,
            "element_stride" => FieldKind::ElementStride,
            "elemtype" => FieldKind::Element,
            "interleave_layout" => FieldKind::Interleave,
            "swizzle_mode" => FieldKind::Swizzle,
            "swizzle_atomicity" => FieldKind::SwizzleAtomicity,
            "fill_mode" => FieldKind::Fill,
            _ => return None,
        })
    }

    /// Its value has 64 bits.
    pub fn is_wide(self) -> bool {
        matches!(self, FieldKind::GlobalAddress | FieldKind::GlobalStride)
    }

    /// There is one for each dimension.
    pub fn is_of_dimensions(self) -> bool {
        use FieldKind::{BoxDim, ElementStride, GlobalDim, GlobalStride};
        matches!(self, BoxDim | GlobalDim | GlobalStride | ElementStride)
    }

    /// The greatest value of those that are constants of the instruction.
    pub fn most_code(self) -> Option<u32> {
        Some(match self {
            FieldKind::Element => 15,
            FieldKind::Interleave => 2,
            FieldKind::Swizzle | FieldKind::SwizzleAtomicity => 3,
            FieldKind::Fill => 1,
            _ => return None,
        })
    }
}

impl Field {
    /// What a value makes of the object's bits.
    ///
    /// # Errors
    /// A value that the object has no room for: what it is, and what is allowed.
    pub fn bits(self, value: u64) -> Result<SmallVec<[Bits; 2]>, String> {
        let Field { kind, dimension: n } = self;
        let within = |name: &str, low: u64, high: u64| {
            let fits = (low..=high).contains(&value);
            if fits { Ok(value) } else { Err(format!("`{name}` is set to {value} (allowed: {low} to {high})")) }
        };
        let word = |n: usize| 32 * n;
        Ok(match kind {
            FieldKind::GlobalAddress => smallvec![(0, 64, value)],
            // Rank less one.
            FieldKind::Rank => smallvec![(word(2) + 4, 3, within("rank", 0, 4)?)],
            FieldKind::Element => {
                // TF32 has the codes of FP32, and sets a bit that other types leave as it is; the packed types behind it come two
                // earlier.
                match value {
                    11 | 12 => smallvec![(word(2) + 7, 4, value - 4), (word(2) + 16, 1, 1)],
                    13.. => smallvec![(word(2) + 7, 4, value - 2)],
                    _ => smallvec![(word(2) + 7, 4, value)],
                }
            }
            FieldKind::Interleave => smallvec![(word(2) + 11, 2, value)],
            FieldKind::Swizzle => smallvec![(word(2) + 13, 2, value & 3), (word(2) + 22, 1, value >> 2)],
            FieldKind::Fill => smallvec![(word(2) + 15, 1, value)],
            FieldKind::SwizzleAtomicity => smallvec![(word(2) + 19, 2, value)],
            FieldKind::GlobalStride => {
                if !value.is_multiple_of(16) || value >= 1 << 40 {
                    return Err(format!(
                        "`global_stride` {n} is set to {value} bytes (allowed: multiples of 16 below 2^40)"
                    ));
                }
                let units = value / 16;
                smallvec![(word(3 + n), 32, units & 0xffff_ffff), (word(7) + 4 * n, 4, units >> 32)]
            }
            FieldKind::GlobalDim => {
                let size = within(&format!("global_dim {n}"), 1, u32::MAX.into())?;
                smallvec![(word(8 + n), 32, size - 1)]
            }
            FieldKind::ElementStride => {
                smallvec![(word(13) + 3 * n, 3, within(&format!("element_stride {n}"), 1, 8)? - 1)]
            }
            FieldKind::BoxDim => {
                let at = if n == 0 { word(13) + 24 } else { word(14) + 8 * (n - 1) };
                smallvec![(at, 8, within(&format!("box_dim {n}"), 1, 256)? - 1)]
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Element, Swizzle, TensorMap};

    /// All fields of a map, written into zeroes, give the map that the driver's encoding of it gives.
    #[test]
    fn fields_lie_where_the_encoder_puts_them() {
        let map = TensorMap {
            address: 0x7f12_3456_7890,
            element: Element::Bf16,
            dims: vec![640, 300, 7, 5, 3],
            strides: vec![1280, (1 << 36) + 32, 1 << 38, (1 << 39) + 16],
            box_dims: vec![64, 256, 1, 2, 3],
            element_strides: vec![1, 2, 8, 3, 1],
            swizzle: Swizzle::B128Atom32,
            fill_nan: true,
        };
        let mut fields = vec![
            (FieldKind::GlobalAddress, 0, map.address),
            (FieldKind::Rank, 0, 4),
            (FieldKind::Element, 0, 10),
            (FieldKind::Interleave, 0, 0),
            (FieldKind::Swizzle, 0, 3),
            (FieldKind::SwizzleAtomicity, 0, 1),
            (FieldKind::Fill, 0, 1),
        ];
        for n in 0..5 {
            fields.push((FieldKind::GlobalDim, n, map.dims[n]));
            fields.push((FieldKind::BoxDim, n, map.box_dims[n].into()));
            fields.push((FieldKind::ElementStride, n, map.element_strides[n].into()));
        }
        fields.extend((0..4).map(|n| (FieldKind::GlobalStride, n, map.strides[n])));
        let mut object = [0u8; 128];
        for (kind, dimension, value) in fields {
            let field = Field { kind, dimension };
            for (first, count, bits) in field.bits(value).expect("the values are allowed") {
                for bit in (0..count).filter(|bit| bits >> bit & 1 == 1) {
                    object[(first + bit) / 8] |= 1 << ((first + bit) % 8);
                }
            }
        }
        assert_eq!(TensorMap::decode(&object), Ok(map));
    }

    #[test]
    fn values_without_room_are_refused() {
        use FieldKind::{BoxDim, ElementStride, GlobalDim, GlobalStride, Rank};
        for (kind, value, allowed) in [
            (Rank, 5, "0 to 4"),
            (BoxDim, 0, "1 to 256"),
            (BoxDim, 257, "1 to 256"),
            (ElementStride, 9, "1 to 8"),
            (GlobalDim, 0, "1 to 4294967295"),
            (GlobalStride, 24, "multiples of 16"),
            (GlobalStride, 1 << 40, "below 2^40"),
        ] {
            let why = Field { kind, dimension: 1 }.bits(value).expect_err("there is no room");
            assert!(why.contains(allowed) && why.contains(&value.to_string()), "{why}");
        }
    }
}
