//! Registers: 4 bytes, `Copy`, and good for the whole kernel. Their operators are in `crate::operator`.
//!
//! A register is a name in the kernel being built, not a number: Rust code cannot look at its value. Rust values
//! (`u32`, `f32`, `bool`) are constants of the kernel, and stand wherever a register of their type may be read.

use crate::state::{self, with};
use std::fmt;

/// Which registers PTX keeps apart: by width, and floats and predicates by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    B16,
    B32,
    B64,
    F32,
    Pred,
}

impl Class {
    pub const ALL: [Class; 5] = [Class::B16, Class::B32, Class::B64, Class::F32, Class::Pred];

    /// What the names of its registers begin with.
    pub fn prefix(self) -> &'static str {
        match self {
            Class::B16 => "%rs",
            Class::B32 => "%r",
            Class::B64 => "%rd",
            Class::F32 => "%f",
            Class::Pred => "%p",
        }
    }

    /// The type that `.reg` declares.
    pub fn declared(self) -> &'static str {
        match self {
            Class::B16 => ".b16",
            Class::B32 => ".b32",
            Class::B64 => ".b64",
            Class::F32 => ".f32",
            Class::Pred => ".pred",
        }
    }
}

/// A register of one kernel: 8 bits that tell kernels apart, 24 that count. 0 is no register of any kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Id(pub u32);

/// An operand that is read: a register or a constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    Register(Id),
    Unsigned(u64),
    Float(f32),
    Truth(bool),
}

impl Value {
    pub fn of(register: impl Register) -> Value {
        Value::Register(register.id())
    }
}

pub mod sealed {
    use super::{Class, Id, Value};

    pub trait Register: Copy + 'static {
        const CLASS: Class;
        /// `u32`, `b16`, `f32`, …, as opcodes that compute with it say.
        const TYPE: &'static str;
        fn from_id(id: Id) -> Self;
        fn id(self) -> Id;
    }

    pub trait Operand<R> {
        fn value(self) -> Value;
    }
}

/// A typed register: [`U32`], [`U64`], [`F32`], [`B16`], [`B32`] or [`Pred`].
pub trait Register: sealed::Register + fmt::Display {}

/// What may stand where an instruction reads an `R`: a register of that type or a constant of it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read as a `{R}`",
    label = "neither a `{R}` nor a constant of that type",
    note = "a `U32` takes `u32` constants, a `U64` takes `u64`, an `F32` takes `f32`, a `Pred` takes `bool`"
)]
pub trait Operand<R>: sealed::Operand<R> + Copy {}

/// Who writes `if round == 0` is shown the line of the type: what stands behind it there is for them.
macro_rules! register {
    ($(#[$doc:meta])* $name:ident, $class:ident, $type:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        #[must_use = "a register that nothing reads is work for nothing"]
        pub struct $name(Id); // only the GPU knows its value: compare there, with `.eq(…)` or `.lt(…)`, and ask with `t.when(…)`

        impl sealed::Register for $name {
            const CLASS: Class = Class::$class;
            const TYPE: &'static str = $type;
            fn from_id(id: Id) -> $name {
                $name(id)
            }
            fn id(self) -> Id {
                self.0
            }
        }
        impl Register for $name {}

        impl sealed::Operand<$name> for $name {
            fn value(self) -> Value {
                Value::Register(self.0)
            }
        }
        impl Operand<$name> for $name {}

        impl fmt::Display for $name {
            /// Its name in the PTX, as [`crate::Scope::raw`] wants it.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&state::name_of(self.0, Class::$class))
            }
        }
    };
}

register! {
    /// 16 bits without a meaning: an FP16 or BF16 element on its way.
    B16, B16, "b16"
}
register! {
    /// 32 bits without a meaning: two packed elements, or a quarter of a 16-byte load.
    B32, B32, "b32"
}
register! {
    /// An unsigned 32-bit integer: indices, counts, shared-memory addresses.
    U32, B32, "u32"
}
register! {
    /// An unsigned 64-bit integer: global addresses, descriptors.
    U64, B64, "u64"
}
register! {
    /// A single-precision number: an accumulator that was read from tensor memory.
    F32, F32, "f32"
}
register! {
    /// A truth value, the result of a comparison.
    Pred, Pred, "pred"
}

impl sealed::Operand<U32> for u32 {
    fn value(self) -> Value {
        Value::Unsigned(u64::from(self))
    }
}
impl Operand<U32> for u32 {}

impl sealed::Operand<U64> for u64 {
    fn value(self) -> Value {
        Value::Unsigned(self)
    }
}
impl Operand<U64> for u64 {}

impl sealed::Operand<F32> for f32 {
    fn value(self) -> Value {
        Value::Float(self)
    }
}
impl Operand<F32> for f32 {}

impl sealed::Operand<Pred> for bool {
    fn value(self) -> Value {
        Value::Truth(self)
    }
}
impl Operand<Pred> for bool {}

/// The register of a call that was refused.
pub(crate) const POISON: Id = Id(0);

/// The register that stands in when a call is refused, or when there is no kernel to make one in.
pub(crate) fn dummy<R: Register>() -> R {
    R::from_id(POISON)
}

impl U32 {
    /// The same number in 64 bits. PTX: `cvt.u64.u32`.
    #[track_caller]
    pub fn to_u64(self) -> U64 {
        with(|s| s.unary("cvt.u64.u32", Value::of(self))).unwrap_or(dummy())
    }

    /// The same register, its bits without a meaning. No instruction.
    pub fn as_b32(self) -> B32 {
        B32(self.0)
    }
}

impl U64 {
    /// The low 32 bits. PTX: `cvt.u32.u64`.
    #[track_caller]
    pub fn to_u32(self) -> U32 {
        with(|s| s.unary("cvt.u32.u64", Value::of(self))).unwrap_or(dummy())
    }
}

impl B32 {
    /// The same register, its bits as a number. No instruction.
    pub fn as_u32(self) -> U32 {
        U32(self.0)
    }
}
