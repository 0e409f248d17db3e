//! Operators and comparisons of registers. Each emits one instruction, executed by the threads that reach it.

use crate::register::sealed::{Operand as _, Register as _};
use crate::register::{B16, B32, F32, Operand, Pred, Register, U32, U64, Value, dummy};
use crate::state::with;
use std::ops;

#[track_caller]
fn binary<R: Register>(opcode: &str, left: Value, right: Value) -> R {
    with(|s| {
        if opcode.starts_with("div.u") || opcode.starts_with("rem.u") {
            if right == Value::Unsigned(0) {
                s.error("division by the constant 0", "divide by a constant of 1 or more, or by a register");
                return dummy();
            }
        } else if opcode.starts_with("sh")
            && let Value::Unsigned(by) = right
            && by >= bits::<R>()
        {
            let bits = bits::<R>();
            s.error(
                format!("a shift by {by} moves every bit of a {bits}-bit register out"),
                format!("shift by 0 to {}", bits - 1),
            );
            return dummy();
        }
        s.binary(opcode, left, right)
    })
    .unwrap_or(dummy())
}

/// Bits of an integer register of this type.
fn bits<R: Register>() -> u64 {
    if R::TYPE.ends_with("64") { 64 } else { 32 }
}

/// `register op register` and `register op constant`; with a constant type in front also `constant op register`.
macro_rules! operator {
    ($trait:ident, $method:ident, $register:ty, $constant:ty, $opcode:literal) => {
        impl<R: Operand<$register>> ops::$trait<R> for $register {
            type Output = $register;
            #[doc = concat!("PTX: `", $opcode, "`.")]
            #[track_caller]
            fn $method(self, right: R) -> $register {
                binary($opcode, Value::of(self), right.value())
            }
        }
        impl ops::$trait<$register> for $constant {
            type Output = $register;
            #[doc = concat!("PTX: `", $opcode, "`.")]
            #[track_caller]
            fn $method(self, right: $register) -> $register {
                binary($opcode, self.value(), Value::of(right))
            }
        }
    };
}

operator!(Add, add, U32, u32, "add.u32");
operator!(Sub, sub, U32, u32, "sub.u32");
operator!(Mul, mul, U32, u32, "mul.lo.u32");
operator!(Div, div, U32, u32, "div.u32");
operator!(Rem, rem, U32, u32, "rem.u32");
operator!(BitAnd, bitand, U32, u32, "and.b32");
operator!(BitOr, bitor, U32, u32, "or.b32");
operator!(BitXor, bitxor, U32, u32, "xor.b32");

operator!(Add, add, U64, u64, "add.u64");
operator!(Sub, sub, U64, u64, "sub.u64");
operator!(Mul, mul, U64, u64, "mul.lo.u64");
operator!(Div, div, U64, u64, "div.u64");
operator!(Rem, rem, U64, u64, "rem.u64");
operator!(BitAnd, bitand, U64, u64, "and.b64");
operator!(BitOr, bitor, U64, u64, "or.b64");
operator!(BitXor, bitxor, U64, u64, "xor.b64");

operator!(Add, add, F32, f32, "add.f32");
operator!(Sub, sub, F32, f32, "sub.f32");
operator!(Mul, mul, F32, f32, "mul.f32");
operator!(Div, div, F32, f32, "div.rn.f32");

operator!(BitAnd, bitand, Pred, bool, "and.pred");
operator!(BitOr, bitor, Pred, bool, "or.pred");
operator!(BitXor, bitxor, Pred, bool, "xor.pred");

/// Shifts: PTX counts them in 32 bits whatever is shifted, and shifts a register only.
macro_rules! shift {
    ($trait:ident, $method:ident, $register:ty, $opcode:literal) => {
        impl<R: Operand<U32>> ops::$trait<R> for $register {
            type Output = $register;
            #[doc = concat!("PTX: `", $opcode, "`.")]
            #[track_caller]
            fn $method(self, by: R) -> $register {
                binary($opcode, Value::of(self), by.value())
            }
        }
    };
}

shift!(Shl, shl, U32, "shl.b32");
shift!(Shr, shr, U32, "shr.u32");
shift!(Shl, shl, U64, "shl.b64");
shift!(Shr, shr, U64, "shr.u64");

impl ops::Not for Pred {
    type Output = Pred;
    /// PTX: `not.pred`.
    #[track_caller]
    fn not(self) -> Pred {
        with(|s| s.unary("not.pred", Value::of(self))).unwrap_or(dummy())
    }
}

impl ops::Neg for F32 {
    type Output = F32;
    /// PTX: `neg.f32`.
    #[track_caller]
    fn neg(self) -> F32 {
        with(|s| s.unary("neg.f32", Value::of(self))).unwrap_or(dummy())
    }
}

macro_rules! comparisons {
    ($register:ty, $($method:ident $words:literal),+) => {
        impl $register {
            $(
                #[doc = concat!("Whether it is ", $words, " the other. PTX: `setp.", stringify!($method), "`.")]
                #[track_caller]
                pub fn $method(self, other: impl Operand<$register>) -> Pred {
                    let opcode = concat!("setp.", stringify!($method), ".");
                    with(|s| s.binary(&format!("{opcode}{}", <$register>::TYPE), Value::of(self), other.value()))
                        .unwrap_or(dummy())
                }
            )+
        }
    };
}

comparisons!(U32, eq "equal to", ne "different from", lt "less than", le "at most", gt "greater than", ge "at least");
comparisons!(U64, eq "equal to", ne "different from", lt "less than", le "at most", gt "greater than", ge "at least");
comparisons!(F32, eq "equal to", ne "different from", lt "less than", le "at most", gt "greater than", ge "at least");

impl Pred {
    /// The first where it is true, else the second. PTX: `selp`.
    #[track_caller]
    pub fn select<R: Selectable>(self, yes: impl Operand<R>, no: impl Operand<R>) -> R {
        let (yes, no) = (yes.value(), no.value());
        with(|s| {
            let result: R = s.fresh();
            let (to, yes, no, choice) = (s.name(result), s.text(yes), s.text(no), s.name(self));
            s.instruction(format!("selp.{} {to}, {yes}, {no}, {choice}", R::TYPE));
            result
        })
        .unwrap_or(dummy())
    }
}

/// Registers that [`Pred::select`] can choose between: all but predicates.
pub trait Selectable: Register {}
impl Selectable for U32 {}
impl Selectable for U64 {}
impl Selectable for F32 {}
impl Selectable for B16 {}
impl Selectable for B32 {}
