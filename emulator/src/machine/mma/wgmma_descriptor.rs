//! The matrix descriptor of `wgmma`: the fields of `tcgen05`'s at the same places, other codes.

use super::matrix_descriptor::{BadDescriptor, Elements, SharedDescriptor};

impl SharedDescriptor {
    /// The descriptor of a `wgmma` operand (PTX ISA, wgmma, Matrix Descriptor Format).
    pub fn decode_hopper(bits: u64, elements: Elements) -> Result<SharedDescriptor, BadDescriptor> {
        let field = |low: u32, width: u32| (bits >> low & ((1 << width) - 1)) as u32;
        // A code for each of the two bits: all four have a meaning.
        let swizzle = [0, 128, 64, 32][field(62, 2) as usize];
        if field(14, 2) != 0 || field(30, 2) != 0 || field(46, 3) != 0 || field(52, 10) != 0 {
            let hint = if field(46, 3) == 1 { "; Blackwell's have 0b001 in bits 46–48, Hopper's do not" } else { "" };
            return Err((
                format!("the matrix descriptor {bits:#018x} sets bits that have no meaning for wgmma"),
                format!("bits 14–15, 30–31, 46–48 and 52–61 are zero{hint}"),
            ));
        }
        // Without swizzle it means nothing (PTX ISA, wgmma, Matrix Descriptor Format).
        if swizzle != 0 && field(49, 3) != 0 {
            return Err((
                format!("the matrix descriptor {bits:#018x} has a base offset"),
                "base offset 0 (bits 49–51) is modelled: align the tile to its swizzle pattern (1024, 512 or 256 bytes)"
                    .into(),
            ));
        }
        Ok(SharedDescriptor { swizzle, elements, ..SharedDescriptor::places(bits) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_of_hopper_have_codes_of_their_own() {
        let of =
            |code: u64| SharedDescriptor::decode_hopper(code << 62 | 64 << 32 | 1 << 16 | 0x2000 >> 4, Elements::B16);
        for (code, swizzle) in [(0, 0), (1, 128), (2, 64), (3, 32)] {
            let d = of(code).unwrap();
            assert_eq!((d.start, d.leading, d.stride, d.swizzle), (0x2000, 16, 1024, swizzle));
        }
        let refused = SharedDescriptor::decode_hopper(0x4000_4040_0000_0200, Elements::B16).unwrap_err();
        assert!(refused.1.contains("Blackwell"), "{refused:?}");
        assert!(SharedDescriptor::decode_hopper(1 << 62 | 1 << 49, Elements::B16).is_err());
        let (aligned, not) = (
            of(0).unwrap(),
            SharedDescriptor::decode_hopper(1 << 49 | 64 << 32 | 1 << 16 | 0x2000 >> 4, Elements::B16),
        );
        assert_eq!(not.unwrap(), aligned);
    }
}
