//! Instructions that are made of others: `set`, `slct`, `testp`, and sums of FP32 with a narrower operand.

use super::arithmetic::{combination, combined_with};
use super::{Decoded, Family, Lowering, Operands, wrong};
use crate::program::Bad;
use crate::program::arithmetic::convert::Conversion;
use crate::program::arithmetic::lanes::lanes;
use crate::program::arithmetic::{alu, packed_set};
use crate::program::layout::type_bytes;
use crate::program::op::{Alu, Logic, Op, Reg, TRUE};
use crate::syntax::ast::Operand;

pub(super) fn decode(l: &mut Lowering, base: &str, mods: &[&str], o: &Operands) -> Family {
    match (base, mods) {
        ("set", [op, rest @ .., to, from @ ("f16x2" | "bf16x2")]) => set_pairs(l, op, rest, (to, from), o),
        ("set", [op, rest @ .., to, from]) => set(l, op, rest, (to, from), o),
        ("slct", [.., ty, by]) => slct(l, (ty, by), mods.contains(&"ftz"), o),
        ("testp", [what, ty]) => testp(l, what, ty, o),
        ("add" | "sub" | "fma", [flags @ .., "f32", from @ ("f16" | "bf16")]) => mixed(l, base, flags, from, o),
        _ => Ok(None),
    }
}

/// Whether numbers of a type are written with a point.
fn is_float(ty: &str) -> bool {
    matches!(ty, "f32" | "f64")
}

fn bytes(ty: &str) -> u32 {
    type_bytes(ty).map_or(4, |bytes| if bytes > 4 { bytes } else { 4 })
}

/// A predicate for what comes between.
fn between(l: &mut Lowering) -> Result<u16, Bad> {
    match l.register("pred")? {
        Reg::Pred(p) => Ok(p),
        _ => Err(wrong("there is no predicate left", "Use fewer.")),
    }
}

/// Compares two numbers, and keeps the result in a predicate.
fn compare(l: &mut Lowering, f: Alu, a: Reg, b: Reg, logic: Option<(Logic, u16, bool)>) -> Result<Option<u16>, Bad> {
    let (Reg::B32(x) | Reg::B64(x), Reg::B32(y) | Reg::B64(y)) = (a, b) else { return Ok(None) };
    let p = between(l)?;
    let mut uses = vec![a, b];
    uses.extend(logic.map(|(_, c, _)| Reg::Pred(c)));
    l.emit(Op::Setp { f, d: Some(p), q: None, a: x, b: y, logic }, TRUE, false, uses, vec![Reg::Pred(p)]);
    Ok(Some(p))
}

/// One of two values of a type, by a predicate.
fn select(l: &mut Lowering, ty: &str, to: &Operand, (a, b, p): (Reg, Reg, u16)) -> Family {
    let uses = vec![a, b, Reg::Pred(p)];
    Ok(Some(match (a, b) {
        (Reg::B64(a), Reg::B64(b)) if bytes(ty) == 8 => {
            let d = l.destination64(to)?;
            Decoded::new(Op::Select64 { d, a, b, p, negated: false }, uses, vec![Reg::B64(d)])
        }
        (Reg::B32(a), Reg::B32(b)) => {
            let d = l.destination32(to)?;
            Decoded::new(Op::Select32 { d, a, b, p, negated: false }, uses, vec![Reg::B32(d)])
        }
        _ => return Ok(None),
    }))
}

/// `set.op{.bool}{.ftz}.to.from d, a, b{, c}`: all ones, or one, for true (PTX ISA, set).
fn set(l: &mut Lowering, op: &str, rest: &[&str], (to, from): (&str, &str), o: &Operands) -> Family {
    let yes = match to {
        "u32" | "s32" => u32::MAX,
        "u16" | "s16" => 0xffff,
        "f32" => 0x3f80_0000,
        "f16" => 0x3c00,
        "bf16" => 0x3f80,
        _ => return Ok(None),
    };
    let (logic, flags) = combination(rest);
    if !matches!(flags, [] | ["ftz"]) {
        return Ok(None);
    }
    let Some(f) = alu::compare(op, flags == ["ftz"], from) else { return Ok(None) };
    let operands = if logic.is_some() { 4 } else { 3 };
    o.expect(operands..=operands)?;
    let (a, b) = (l.source(o.get(1)?, bytes(from), is_float(from))?, l.source(o.get(2)?, bytes(from), is_float(from))?);
    let logic = combined_with(l, o, logic)?;
    let Some(p) = compare(l, f, a, b, logic)? else { return Ok(None) };
    let (yes, no) = (l.constant32(yes)?, l.constant32(0)?);
    select(l, to, o.get(0)?, (Reg::B32(yes), Reg::B32(no), p))
}

/// `set.op{.bool}{.ftz}.to.from d, a, b{, c}` of pairs.
fn set_pairs(l: &mut Lowering, op: &str, rest: &[&str], (to, from): (&str, &str), o: &Operands) -> Family {
    let (logic, flags) = combination(rest);
    let Some(f) = packed_set::alu(op, flags, to, from) else { return Ok(None) };
    let operands = if logic.is_some() { 4 } else { 3 };
    o.expect(operands..=operands)?;
    let (d, a, b) = (l.destination32(o.get(0)?)?, l.source32(o.get(1)?, false)?, l.source32(o.get(2)?, false)?);
    let of_two = |f: Alu, d: u16, a: u16, b: u16| {
        Decoded::new(Op::Alu { f, d, s: [a, b, 0] }, vec![Reg::B32(a), Reg::B32(b)], vec![Reg::B32(d)])
    };
    let Some((logic, c, negated)) = combined_with(l, o, logic)? else { return Ok(Some(of_two(f, d, a, b))) };
    // What a half gets for true, or zero: both results are of such halves.
    let (yes, no) = (l.constant32(packed_set::both_hold(to))?, l.constant32(0)?);
    let (Reg::B32(compared), Reg::B32(other)) = (l.register("b32")?, l.register("b32")?) else { return Ok(None) };
    let Decoded { op, uses, defs } = of_two(f, compared, a, b);
    l.emit(op, TRUE, false, uses, defs);
    let select = Op::Select32 { d: other, a: yes, b: no, p: c, negated };
    l.emit(select, TRUE, false, vec![Reg::B32(yes), Reg::B32(no), Reg::Pred(c)], vec![Reg::B32(other)]);
    let name = match logic {
        Logic::And => "and",
        Logic::Or => "or",
        Logic::Xor => "xor",
    };
    Ok(alu::alu(name, &[], "b32").map(|f| of_two(f, d, compared, other)))
}

/// `slct.type.{s32|f32} d, a, b, c`: `a` if `c` is not negative; a NaN chooses `b` (PTX ISA, slct).
fn slct(l: &mut Lowering, (ty, by): (&str, &str), ftz: bool, o: &Operands) -> Family {
    o.expect(4..=4)?;
    let Some(f) = alu::compare("ge", ftz, by) else { return Ok(None) };
    let (a, b) = (l.source(o.get(1)?, bytes(ty), is_float(ty))?, l.source(o.get(2)?, bytes(ty), is_float(ty))?);
    let (c, zero) = (l.source(o.get(3)?, 4, by == "f32")?, Reg::B32(l.constant32(0)?));
    let Some(p) = compare(l, f, c, zero, None)? else { return Ok(None) };
    select(l, ty, o.get(0)?, (a, b, p))
}

/// `testp.what.type p, a`; a zero is normal (PTX ISA, testp).
fn testp(l: &mut Lowering, what: &str, ty: &str, o: &Operands) -> Family {
    o.expect(2..=2)?;
    macro_rules! test {
        ($kind:ident, $number:ty) => {
            match what {
                "finite" => lanes!($kind | a, _ | <$number>::from_bits(a).is_finite()),
                "infinite" => lanes!($kind | a, _ | <$number>::from_bits(a).is_infinite()),
                "number" => lanes!($kind | a, _ | !<$number>::from_bits(a).is_nan()),
                "notanumber" => lanes!($kind | a, _ | <$number>::from_bits(a).is_nan()),
                "normal" => {
                    lanes!($kind | a, _ | <$number>::from_bits(a).is_normal() || <$number>::from_bits(a) == 0.0)
                }
                "subnormal" => lanes!($kind | a, _ | <$number>::from_bits(a).is_subnormal()),
                _ => return Ok(None),
            }
        };
    }
    let f = match ty {
        "f32" => test!(Compare32, f32),
        "f64" => test!(Compare64, f64),
        _ => return Ok(None),
    };
    let s = l.source(o.get(1)?, bytes(ty), true)?;
    let d = l.destination_predicate(o.get(0)?)?;
    let (Reg::B32(a) | Reg::B64(a)) = s else { return Ok(None) };
    let op = Op::Setp { f, d: Some(d), q: None, a, b: a, logic: None };
    Ok(Some(Decoded::new(op, vec![s], vec![Reg::Pred(d)])))
}

/// `add.f32.f16 d, a, c` and `fma.rn.f32.f16 d, a, b, c`: the narrow operands are made FP32, which is exact (PTX ISA 9.7.5).
fn mixed(l: &mut Lowering, base: &str, flags: &[&str], from: &str, o: &Operands) -> Family {
    let (Some(f), Some(how)) = (alu::alu(base, flags, "f32"), Conversion::of(&[], "f32", from)) else {
        return Ok(None);
    };
    let narrow = if base == "fma" { 2 } else { 1 };
    o.expect(narrow + 2..=narrow + 2)?;
    let mut s = [0; 3];
    for (n, s) in s.iter_mut().enumerate().take(narrow) {
        let part = Reg::B32(l.source32(o.get(1 + n)?, false)?);
        let wide = l.register("b32")?;
        l.emit(Op::Convert { how, d: wide, s: part }, TRUE, false, vec![part], vec![wide]);
        let Reg::B32(wide) = wide else { return Ok(None) };
        *s = wide;
    }
    s[narrow] = l.source32(o.get(1 + narrow)?, true)?;
    let d = l.destination32(o.get(0)?)?;
    let uses = s[..=narrow].iter().map(|&r| Reg::B32(r)).collect();
    Ok(Some(Decoded::new(Op::Alu { f, d, s }, uses, vec![Reg::B32(d)])))
}
