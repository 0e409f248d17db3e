//! The types of registers and instructions.

/// What kind of value a type is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Anything of the same width.
    Bits,
    /// Signed or not.
    Integer,
    Float,
    /// Two or more values, which registers of bits hold, and those of the same type.
    Packed,
    /// The same; there are no registers of the type.
    PackedInBits,
    Predicate,
}

/// A type of registers or of an instruction.
#[derive(Debug, PartialEq, Eq)]
pub struct Type {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(in crate::program) bytes: u32,
}

const fn row(name: &'static str, kind: Kind, bytes: u32) -> Type {
    Type { name, kind, bytes }
}

pub(super) static TYPES: &[Type] = &[
    row("pred", Kind::Predicate, 0),
    row("b8", Kind::Bits, 1),
    row("u8", Kind::Integer, 1),
    row("s8", Kind::Integer, 1),
    row("b16", Kind::Bits, 2),
    row("u16", Kind::Integer, 2),
    row("s16", Kind::Integer, 2),
    row("f16", Kind::Float, 2),
    row("bf16", Kind::PackedInBits, 2),
    row("b32", Kind::Bits, 4),
    row("u32", Kind::Integer, 4),
    row("s32", Kind::Integer, 4),
    row("f32", Kind::Float, 4),
    row("f16x2", Kind::Packed, 4),
    row("bf16x2", Kind::PackedInBits, 4),
    row("u16x2", Kind::Packed, 4),
    row("s16x2", Kind::Packed, 4),
    row("b64", Kind::Bits, 8),
    row("u64", Kind::Integer, 8),
    row("s64", Kind::Integer, 8),
    row("f64", Kind::Float, 8),
    row("f32x2", Kind::PackedInBits, 8),
    row("b128", Kind::Bits, 16),
];

/// The type of this name.
pub(super) fn named(name: &str) -> Option<&'static Type> {
    TYPES.iter().find(|ty| ty.name == name)
}

/// The type of this name, if registers are declared of it.
pub fn of_registers(name: &str) -> Option<&'static Type> {
    named(name).filter(|ty| is_of_registers(ty))
}

pub(super) fn is_of_registers(ty: &Type) -> bool {
    !matches!(ty.name, "bf16" | "bf16x2" | "u16x2" | "s16x2" | "f32x2")
}
