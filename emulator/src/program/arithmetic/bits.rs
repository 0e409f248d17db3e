//! Which bits of its sources the bits of a result are made of: for sources of which a part holds no value.

use crate::program::opcode;

/// How an instruction makes its result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bits {
    /// Any bit may depend on all.
    #[default]
    Mixed,
    /// Each bit depends on one bit of each source.
    Each,
    /// Each bit is one of the first source, or a constant: the other sources say which.
    Moved,
    /// Each part of so many bits depends on that part of each source.
    Parts(u8),
}

impl Bits {
    /// By the instruction as it is written.
    pub fn of(text: &str) -> Bits {
        let parts: Vec<&str> = opcode(text).split('.').collect();
        let integer = |ty: &str| ["u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64"].contains(&ty);
        match parts[..] {
            ["and" | "or" | "xor" | "not" | "lop3", "b16" | "b32" | "b64"] => Bits::Each,
            ["mov", _] | ["shl" | "shr" | "bfe", _] | ["bfi", _] => Bits::Moved,
            ["add" | "sub" | "mul" | "fma" | "min" | "max" | "neg" | "abs", .., ty] => match ty {
                "f32x2" => Bits::Parts(32),
                "f16x2" | "bf16x2" => Bits::Parts(16),
                _ => Bits::Mixed,
            },
            ["cvt", to, from] if integer(to) && integer(from) => Bits::Moved,
            _ => Bits::Mixed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Bits;

    #[test]
    fn arithmetic_mixes_bits_and_fields_do_not() {
        for (text, bits) in [
            ("and.b32 %r1, %r2, 65535;", Bits::Each),
            ("@!%p1 lop3.b32 %r1, %r2, %r3, %r4, 0xea;", Bits::Each),
            ("bfe.s32 %r1, %r2, 8, 8;", Bits::Moved),
            ("cvt.u32.u16 %r1, %h2;", Bits::Moved),
            ("cvt.sat.u8.u32 %r1, %r2;", Bits::Mixed),
            ("cvt.f32.bf16 %f1, %h2;", Bits::Mixed),
            ("fma.rn.ftz.f32x2 %rd1, %rd2, %rd3, %rd4;", Bits::Parts(32)),
            ("max.NaN.bf16x2 %r1, %r2, %r3;", Bits::Parts(16)),
            ("max.NaN.bf16 %h1, %h2, %h3;", Bits::Mixed),
            ("cvt.rn.satfinite.e4m3x2.f16x2 %h1, %r2;", Bits::Mixed),
            ("and.pred %p1, %p2, %p3;", Bits::Mixed),
            ("lop3.or.b32 %r1|%p1, %r2, %r3, %r4, 0xea, %p2;", Bits::Mixed),
            ("add.u32 %r1, %r2, %r3;", Bits::Mixed),
        ] {
            assert_eq!(Bits::of(text), bits, "{text}");
        }
    }
}
