//! Arithmetic, logic, comparisons, moves and conversions.

use super::unsaid::{fills_what_it_writes, rounds_somehow, said_how_to_round, said_which_half};
use super::{Decoded, Family, Lowering, Operands, describe, types, wrong};
use crate::program::Bad;
use crate::program::arithmetic::{alu, convert, narrow, stochastic};
use crate::program::layout::type_bytes;
use crate::program::lower::Binding;
use crate::program::op::{Alu, Logic, Op, Reg, TRUE};
use crate::syntax::ast::Operand;

pub(super) fn decode(l: &mut Lowering, base: &str, mods: &[&str], o: &Operands) -> Family {
    match base {
        "setp" => setp(l, mods, o),
        "selp" => selp(l, mods, o).map(Some),
        "mov" => mov(l, mods, o),
        "cvta" => cvta(l, mods, o),
        "cvt" if mods.first() != Some(&"pack") => cvt(l, mods, o),
        "and" | "or" | "xor" | "not" if mods == ["pred"] => predicate(l, base, o).map(Some),
        "lop3" if mods == ["b32"] => {
            o.expect(5..=5)?;
            let Operand::Integer(table @ 0..=255) = o.get(4)? else {
                return Err(wrong(
                    format!("the table of `lop3` is {}", describe(o.get(4)?)),
                    "It is a constant 0 … 255.",
                ));
            };
            let table = *table as u8;
            let mut s = [0; 3];
            for (n, s) in s.iter_mut().enumerate() {
                *s = l.source32(o.get(1 + n)?, false)?;
            }
            let d = l.destination32(o.get(0)?)?;
            Ok(Some(Decoded::new(Op::Lop3 { d, s, table }, s.map(Reg::B32).to_vec(), vec![Reg::B32(d)])))
        }
        "bfi" if matches!(mods, ["b32" | "b64"]) => {
            o.expect(5..=5)?;
            let bytes = if mods == ["b64"] { 8 } else { 4 };
            let (a, b) = (l.source(o.get(1)?, bytes, false)?, l.source(o.get(2)?, bytes, false)?);
            let (position, count) = (l.source32(o.get(3)?, false)?, l.source32(o.get(4)?, false)?);
            let d = match bytes {
                8 => Reg::B64(l.destination64(o.get(0)?)?),
                _ => Reg::B32(l.destination32(o.get(0)?)?),
            };
            let uses = vec![a, b, Reg::B32(position), Reg::B32(count)];
            Ok(Some(Decoded::new(Op::Insert { d, a, b, position, count }, uses, vec![d])))
        }
        "min" | "max"
            if mods.last() == Some(&"f32") && (o.len() >= 4 || mods.contains(&"abs") && !mods.contains(&"xorsign")) =>
        {
            extreme_of_three(l, base, mods, o)
        }
        // The mode of `prmt` stands behind its type.
        "prmt" => prmt(l, mods, o),
        _ => {
            let Some((ty, flags)) = mods.split_last() else { return Ok(None) };
            fills_what_it_writes(l, base, mods, o)?;
            match alu::alu(base, flags, ty) {
                Some(f) => {
                    let mut decoded = apply(l, f, o, matches!(*ty, "f32" | "f64" | "f32x2"))?;
                    // `xor r, r` is zero whatever the register holds: compilers clear registers so.
                    if base == "xor" && decoded.uses.first() == decoded.uses.get(1) {
                        decoded.uses.clear();
                    }
                    Ok(Some(decoded))
                }
                None => {
                    said_which_half(base, flags, ty, o)?;
                    said_how_to_round(base, flags, ty, o).map(|()| None)
                }
            }
        }
    }
}

fn prmt(l: &mut Lowering, mods: &[&str], o: &Operands) -> Family {
    let Some((ty, mode)) = mods.split_first() else { return Ok(None) };
    match alu::alu("prmt", mode, ty) {
        Some(Alu::T32(f)) => apply(l, Alu::Permute(f), o, false).map(Some),
        _ => Ok(None),
    }
}

/// `max.f32 d, a, b, c`: of three numbers, or of their magnitudes (`.abs`).
fn extreme_of_three(l: &mut Lowering, base: &str, mods: &[&str], o: &Operands) -> Family {
    let absolute = mods.contains(&"abs");
    let flags: Vec<&str> = mods.iter().copied().filter(|m| !matches!(*m, "abs" | "f32")).collect();
    let (Some(f), Some(abs)) = (alu::alu(base, &flags, "f32"), alu::alu("abs", &[], "f32")) else { return Ok(None) };
    o.expect(4..=4)?;
    let mut sources = Vec::new();
    for n in 1..o.len() {
        let mut s = l.source32(o.get(n)?, true)?;
        if absolute {
            let Reg::B32(d) = l.register("b32")? else { return Ok(None) };
            l.emit(Op::Alu { f: abs, d, s: [s, 0, 0] }, TRUE, false, vec![Reg::B32(s)], vec![Reg::B32(d)]);
            s = d;
        }
        sources.push(s);
    }
    let d = l.destination32(o.get(0)?)?;
    let mut first = sources[0];
    if let [a, b, _] = sources[..] {
        let Reg::B32(t) = l.register("b32")? else { return Ok(None) };
        l.emit(Op::Alu { f, d: t, s: [a, b, 0] }, TRUE, false, vec![Reg::B32(a), Reg::B32(b)], vec![Reg::B32(t)]);
        first = t;
    }
    let last = sources[sources.len() - 1];
    let uses = vec![Reg::B32(first), Reg::B32(last)];
    Ok(Some(Decoded::new(Op::Alu { f, d, s: [first, last, 0] }, uses, vec![Reg::B32(d)])))
}

/// A lane-wise function with its destination first and its sources in order.
fn apply(l: &mut Lowering, f: Alu, o: &Operands, float: bool) -> Result<Decoded, crate::program::Bad> {
    use Alu::*;
    let (d64, sources): (bool, &[u32]) = match f {
        U32(_) => (false, &[4]),
        B32(_) => (false, &[4, 4]),
        T32(_) | Permute(_) => (false, &[4, 4, 4]),
        U64(_) => (true, &[8]),
        B64(_) => (true, &[8, 8]),
        T64(_) => (true, &[8, 8, 8]),
        Widen(_) => (true, &[4]),
        Narrow(_) => (false, &[8]),
        Wide2(_) => (true, &[4, 4]),
        Wide3(_) => (true, &[4, 4, 8]),
        Shift64(_) => (true, &[8, 4]),
        Field64(_) => (true, &[8, 4, 4]),
        Compare32(_) | Compare64(_) => (false, &[]),
    };
    o.expect(1 + sources.len()..=1 + sources.len())?;
    let mut s = [0; 3];
    let mut uses = Vec::new();
    for (n, &bytes) in sources.iter().enumerate() {
        let reg = l.source(o.get(1 + n)?, bytes, float)?;
        if let Reg::B32(r) | Reg::B64(r) = reg {
            s[n] = r;
        }
        uses.push(reg);
    }
    let (d, def) = if d64 {
        let d = l.destination64(o.get(0)?)?;
        (d, Reg::B64(d))
    } else {
        let d = l.destination32(o.get(0)?)?;
        (d, Reg::B32(d))
    };
    Ok(Decoded::new(Op::Alu { f, d, s }, uses, vec![def]))
}

/// The predicate that the result of a comparison is combined with: how, which, and whether it is negated.
pub(super) fn combined_with(
    l: &mut Lowering,
    o: &Operands,
    logic: Option<Logic>,
) -> Result<Option<(Logic, u16, bool)>, Bad> {
    let Some(logic) = logic else { return Ok(None) };
    let (operand, negated) = match o.get(3)? {
        Operand::Not(name) => (Operand::Name(name.clone()), true),
        other => (other.clone(), false),
    };
    Ok(Some((logic, l.predicate(&operand)?, negated)))
}

/// How the result of a comparison is combined with a predicate, and the modifiers behind.
pub(super) fn combination<'a>(rest: &'a [&'a str]) -> (Option<Logic>, &'a [&'a str]) {
    match rest {
        ["and", flags @ ..] => (Some(Logic::And), flags),
        ["or", flags @ ..] => (Some(Logic::Or), flags),
        ["xor", flags @ ..] => (Some(Logic::Xor), flags),
        flags => (None, flags),
    }
}

fn setp(l: &mut Lowering, mods: &[&str], o: &Operands) -> Family {
    let [op, rest @ .., ty] = mods else { return Ok(None) };
    let (logic, flags) = combination(rest);
    if !matches!(flags, [] | ["ftz"]) {
        return Ok(None);
    }
    let ty = *ty;
    let (pair, of) = match ty {
        "f16x2" => (true, "f16"),
        "bf16x2" => (true, "bf16"),
        ty => (false, ty),
    };
    let Some(f) = alu::compare(op, flags == ["ftz"], of) else { return Ok(None) };
    o.expect(if logic.is_some() { 4..=4 } else { 3..=3 })?;
    let (d, q) = match o.get(0)? {
        Operand::Pair(_, q) if matches!(ty, "f16" | "bf16") && **q != Operand::Sink => {
            return Err(wrong(
                format!("`{}` gives one predicate", o.opcode),
                "Name one, and negate it where it is used.",
            ));
        }
        Operand::Pair(d, q) => {
            let mut one =
                |d: &Operand| if *d == Operand::Sink { Ok(None) } else { l.destination_predicate(d).map(Some) };
            (one(d)?, one(q)?)
        }
        Operand::Sink => (None, None),
        single => (Some(l.destination_predicate(single)?), None),
    };
    let bytes = if matches!(f, Alu::Compare64(_)) { 8 } else { 4 };
    let (ra, rb) = (
        l.source(o.get(1)?, bytes, matches!(ty, "f32" | "f64"))?,
        l.source(o.get(2)?, bytes, matches!(ty, "f32" | "f64"))?,
    );
    let logic = combined_with(l, o, logic)?;
    let (Reg::B32(a) | Reg::B64(a), Reg::B32(b) | Reg::B64(b)) = (ra, rb) else { return Ok(None) };
    if pair {
        return setp_pair(l, f, (d, q), (a, b), logic).map(Some);
    }
    let mut uses = vec![ra, rb];
    uses.extend(logic.map(|(_, c, _)| Reg::Pred(c)));
    let defs = d.into_iter().chain(q).map(Reg::Pred).collect();
    Ok(Some(Decoded::new(Op::Setp { f, d, q, a, b, logic }, uses, defs)))
}

/// `setp` of pairs: `p` says it of the low halves, `q` of the high ones (PTX ISA 9.7.7.2).
fn setp_pair(
    l: &mut Lowering,
    f: Alu,
    (p, q): (Option<u16>, Option<u16>),
    (a, b): (u16, u16),
    logic: Option<(Logic, u16, bool)>,
) -> Result<Decoded, Bad> {
    let half = |d: Option<u16>, a: u16, b: u16| {
        let mut uses = vec![Reg::B32(a), Reg::B32(b)];
        uses.extend(logic.map(|(_, c, _)| Reg::Pred(c)));
        let op = Op::Setp { f, d, q: None, a, b, logic };
        Decoded::new(op, uses, d.into_iter().map(Reg::Pred).collect())
    };
    let low = half(p, a, b);
    if q.is_none() {
        return Ok(low);
    }
    let high = half(q, high_half(l, a)?, high_half(l, b)?);
    // Both read the predicate that the result is combined with, before one of them writes it.
    let (first, last) = if logic.is_some_and(|(_, c, _)| p == Some(c)) { (high, low) } else { (low, high) };
    l.emit(first.op, TRUE, false, first.uses, first.defs);
    Ok(last)
}

/// The high half of a register, in one of its own.
fn high_half(l: &mut Lowering, of: u16) -> Result<u16, Bad> {
    let by = l.constant32(16)?;
    let (Reg::B32(d), Some(f)) = (l.register("b32")?, alu::alu("shr", &[], "b32")) else { return Ok(of) };
    l.emit(Op::Alu { f, d, s: [of, by, 0] }, TRUE, false, vec![Reg::B32(of), Reg::B32(by)], vec![Reg::B32(d)]);
    Ok(d)
}

fn selp(l: &mut Lowering, mods: &[&str], o: &Operands) -> Result<Decoded, crate::program::Bad> {
    let ty = mods.first().copied().unwrap_or("");
    let Some(bytes) = type_bytes(ty).filter(|&b| b <= 8) else {
        return Err(wrong(format!("`selp` has no type `.{ty}`"), "Use .b16, .b32, .b64 or a typed form."));
    };
    o.expect(4..=4)?;
    let float = matches!(ty, "f32" | "f64");
    let (a, b) = (l.source(o.get(1)?, bytes, float)?, l.source(o.get(2)?, bytes, float)?);
    let p = l.predicate(o.get(3)?)?;
    let uses = vec![a, b, Reg::Pred(p)];
    Ok(match (a, b) {
        (Reg::B64(a), Reg::B64(b)) => {
            let d = l.destination64(o.get(0)?)?;
            Decoded::new(Op::Select64 { d, a, b, p, negated: false }, uses, vec![Reg::B64(d)])
        }
        (Reg::B32(a), Reg::B32(b)) => {
            let d = l.destination32(o.get(0)?)?;
            Decoded::new(Op::Select32 { d, a, b, p, negated: false }, uses, vec![Reg::B32(d)])
        }
        _ => return Err(wrong("the sources of `selp` differ in width", "Use registers of the instruction's type.")),
    })
}

fn mov(l: &mut Lowering, mods: &[&str], o: &Operands) -> Family {
    o.expect(2..=2)?;
    let [ty] = mods else { return Ok(None) };
    let (d, s) = (o.get(0)?, o.get(1)?);
    if *ty == "pred" {
        let (d, a) = (l.destination_predicate(d)?, l.predicate(s)?);
        let op = Op::Pred { logic: Logic::And, d, a, a_negated: false, b: a, negate: false };
        return Ok(Some(Decoded::new(op, vec![Reg::Pred(a)], vec![Reg::Pred(d)])));
    }
    // A vector on one side packs or unpacks parts, low part first (PTX ISA 9.7.9.4).
    if matches!(d, Operand::Vector(_)) || matches!(s, Operand::Vector(_)) || *ty == "b128" {
        let total = type_bytes(ty).unwrap_or(0) * 8;
        let parts = |l: &mut Lowering, operand: &Operand, write: bool| -> Result<(Vec<Reg>, u8), crate::program::Bad> {
            let list = match operand {
                Operand::Vector(list) => list.as_slice(),
                single => std::slice::from_ref(single),
            };
            let bits = total / list.len().max(1) as u32;
            if !matches!(bits, 8 | 16 | 32 | 64 | 128) {
                return Err(wrong(
                    format!("{} parts do not make up {total} bits", list.len()),
                    "Use 2 or 4 parts of equal width.",
                ));
            }
            let mut regs = Vec::new();
            for part in list {
                regs.push(if write || bits == 128 { l.destination(part)? } else { l.source(part, bits / 8, false)? });
            }
            Ok((regs, bits as u8))
        };
        let (s, s_bits) = parts(l, s, false)?;
        let (d, d_bits) = parts(l, d, true)?;
        return Ok(Some(Decoded::new(Op::Repack { d: d.clone(), s: s.clone(), d_bits, s_bits }, s, d)));
    }
    // The address of a shared variable.
    let shared = match s {
        Operand::Name(name) => Some((name, 0)),
        Operand::Offset(name, add) => Some((name, *add)),
        _ => None,
    };
    if let Some((name, add)) = shared {
        let address = matches!(
            l.lookup(name),
            Some(Binding::Shared(_) | Binding::Param(_) | Binding::Local(_) | Binding::Global(_))
        );
        if address && !types::is_of_addresses(ty) {
            return Err(wrong(
                format!("`{}` does not take the address of `{name}`", o.opcode),
                "Addresses are moved as `mov.u64` or `mov.b64`, those of shared memory also as `mov.u32` or `mov.b32`.",
            ));
        }
        if let Some(Binding::Shared(offset)) = l.lookup(name) {
            let offset = offset.wrapping_add(add as u32);
            let d = l.destination(d)?;
            return Ok(Some(Decoded::new(Op::SharedAddress { d, offset }, vec![], vec![d])));
        }
        // The address of a parameter is its offset in the parameter space; `cvta.param` makes it generic.
        if let Some(Binding::Param(offset)) = l.lookup(name) {
            let value = u64::from(*offset).wrapping_add(add as u64);
            let d = l.destination(d)?;
            let (f, s, used) = match d {
                Reg::B64(_) => {
                    let s = l.constant64(value)?;
                    (alu::alu("mov", &[], "b64"), s, Reg::B64(s))
                }
                _ => {
                    let s = l.constant32(value as u32)?;
                    (alu::alu("mov", &[], "b32"), s, Reg::B32(s))
                }
            };
            if let (Some(f), Reg::B32(n) | Reg::B64(n)) = (f, d) {
                return Ok(Some(Decoded::new(Op::Alu { f, d: n, s: [s, 0, 0] }, vec![used], vec![d])));
            }
        }
        if let Some(Binding::Local(_) | Binding::Global(_)) = l.lookup(name) {
            let bytes = type_bytes(ty).unwrap_or(8);
            let base = match l.lookup(name) {
                Some(Binding::Local(offset)) => u64::from(*offset),
                Some(Binding::Global(address)) => *address,
                _ => 0,
            };
            let s = l.constant(base.wrapping_add(add as u64), bytes)?;
            let d = l.destination(d)?;
            return Ok(Some(Decoded::new(
                Op::Repack { d: vec![d], s: vec![s], d_bits: 64, s_bits: 64 },
                vec![s],
                vec![d],
            )));
        }
        if let Some(which) = super::special(name) {
            if !types::takes_special(ty, name) {
                return Err(wrong(
                    format!("`{}` does not take `{name}`", o.opcode),
                    "Special registers are moved as `mov.u32` or `mov.b32`, `%clock64` and `%globaltimer` as `mov.u64` or `mov.b64`.",
                ));
            }
            let d = l.destination(d)?;
            return Ok(Some(Decoded::new(Op::Special { d, which }, vec![], vec![d])));
        }
    }
    match alu::alu("mov", &[], ty) {
        Some(f) => apply(l, f, o, matches!(*ty, "f32" | "f64")).map(Some),
        None => Ok(None),
    }
}

fn cvta(l: &mut Lowering, mods: &[&str], o: &Operands) -> Family {
    use crate::program::op::Space;
    let (to, space) = match mods {
        ["to", space, "u64"] => (true, *space),
        [space, "u64"] => (false, *space),
        _ => return Ok(None),
    };
    let space = match space {
        "global" | "const" => Space::Global,
        "local" => Space::Local,
        "shared" | "shared::cta" => Space::Shared,
        "shared::cluster" => Space::SharedCluster,
        "param" | "param::entry" => Space::Param,
        _ => return Ok(None),
    };
    o.expect(2..=2)?;
    let d = Reg::B64(l.destination64(o.get(0)?)?);
    let s = match variable_address(l, o, space, to)? {
        Some(s) => s,
        None => Reg::B64(l.source64(o.get(1)?)?),
    };
    Ok(Some(Decoded::new(Op::Cvta { d, s, space, to }, vec![s], vec![d])))
}

/// The source of `cvta` where it is a variable, with an offset or without one: the address in its own space.
fn variable_address(
    l: &mut Lowering,
    o: &Operands,
    space: crate::program::op::Space,
    to: bool,
) -> Result<Option<Reg>, Bad> {
    use crate::program::op::Space;
    let (name, add) = match o.get(1)? {
        Operand::Name(name) => (name, 0),
        Operand::Offset(name, add) => (name, *add),
        _ => return Ok(None),
    };
    let (own, address) = match l.lookup(name) {
        Some(Binding::Shared(at)) => (Space::Shared, u64::from(*at)),
        Some(Binding::Local(at)) => (Space::Local, u64::from(*at)),
        Some(Binding::Param(at)) => (Space::Param, u64::from(*at)),
        Some(Binding::Global(at)) => (Space::Global, *at),
        _ => return Ok(None),
    };
    let said = match own {
        Space::Shared => "shared",
        Space::Local => "local",
        Space::Param => "param",
        // Constants lie among the variables of global memory.
        _ if o.opcode.contains(".const") => "const",
        _ => "global",
    };
    if to || own != if space == Space::SharedCluster { Space::Shared } else { space } {
        return Err(wrong(
            format!("`{}` does not take the variable `{name}`", o.opcode),
            format!(
                "`cvta.{said}.u64` makes the generic address of `{name}`; `cvta.to` takes a register with one (PTX ISA, cvta)."
            ),
        ));
    }
    let address = address.wrapping_add(add as u64);
    Ok(Some(if own == Space::Shared { l.shared_address(address as u32, 8)? } else { Reg::B64(l.constant64(address)?) }))
}

fn cvt(l: &mut Lowering, mods: &[&str], o: &Operands) -> Family {
    let [flags @ .., to, from] = mods else { return Ok(None) };
    if flags.first() == Some(&"rs") {
        return cvt_stochastic(l, flags, to, from, o);
    }
    if let Some(how) = convert::Conversion::of(flags, to, from)
        && let Some(wide) = cvt_wide(l, how, o)?
    {
        return Ok(Some(wide));
    }
    if let Some(f) = convert::convert(flags, to, from).or_else(|| narrow::convert(flags, to, from)) {
        return apply(l, f, o, *from == "f32").map(Some);
    }
    if matches!(*to, "f16x2" | "bf16x2") {
        return cvt_pair(l, flags, to, from, o);
    }
    let Some(how) = convert::Conversion::of(flags, to, from) else {
        return rounds_somehow(flags, to, from, o).map(|()| None);
    };
    o.expect(2..=2)?;
    let s =
        l.source(o.get(1)?, if how.from.bytes() == 8 { 8 } else { 4 }, from.ends_with("32") && from.starts_with('f'))?;
    let d =
        if how.to.bytes() == 8 { Reg::B64(l.destination64(o.get(0)?)?) } else { Reg::B32(l.destination32(o.get(0)?)?) };
    Ok(Some(Decoded::new(Op::Convert { how, d, s }, vec![s], vec![d])))
}

/// With a register of 64 bits for a narrower type: of a source its low bits count, a result is extended to it (PTX ISA 9.4.1).
fn cvt_wide(l: &mut Lowering, how: convert::Conversion, o: &Operands) -> Family {
    o.expect(2..=2)?;
    let wide = |operand: &Operand, ty: convert::Type| match operand {
        Operand::Name(name) if ty.bytes() < 8 => match l.lookup(name) {
            Some(&Binding::Register(reg @ Reg::B64(_), _)) => Some(reg),
            _ => None,
        },
        _ => None,
    };
    let (wide_d, wide_s) = (wide(o.get(0)?, how.to), wide(o.get(1)?, how.from));
    if wide_d.is_none() && wide_s.is_none() {
        return Ok(None);
    }
    let s = match wide_s {
        Some(reg) => reg,
        None => l.source(o.get(1)?, if how.from.bytes() == 8 { 8 } else { 4 }, how.from == convert::Type::F32)?,
    };
    let Some(d) = wide_d else {
        let d = if how.to.bytes() == 8 {
            Reg::B64(l.destination64(o.get(0)?)?)
        } else {
            Reg::B32(l.destination32(o.get(0)?)?)
        };
        return Ok(Some(Decoded::new(Op::Convert { how, d, s }, vec![s], vec![d])));
    };
    let part = l.register("b32")?;
    l.emit(Op::Convert { how, d: part, s }, TRUE, false, vec![s], vec![part]);
    let signed = matches!(how.to, convert::Type::Signed(_));
    let Some(f) = convert::convert(&[], "u64", if signed { "s32" } else { "u32" }) else { return Ok(None) };
    let (Reg::B32(from), Reg::B64(to)) = (part, d) else { return Ok(None) };
    Ok(Some(Decoded::new(Op::Alu { f, d: to, s: [from, 0, 0] }, vec![part], vec![d])))
}

/// `cvt.….f16x2.f32 d, a, b`: two conversions, the first source to the high half.
fn cvt_pair(l: &mut Lowering, flags: &[&str], to: &str, from: &str, o: &Operands) -> Family {
    // Saturation to 0 … 1 and stochastic rounding are other forms.
    if from != "f32" || flags.contains(&"sat") || flags.contains(&"ftz") {
        return Ok(None);
    }
    let Some(how) = convert::Conversion::of(flags, to.trim_end_matches("x2"), from) else { return Ok(None) };
    o.expect(3..=3)?;
    let mut parts = Vec::new();
    for n in [2, 1] {
        let s = Reg::B32(l.source32(o.get(n)?, true)?);
        let d = l.register("b32")?;
        l.emit(Op::Convert { how, d, s }, TRUE, false, vec![s], vec![d]);
        parts.push(d);
    }
    let d = vec![Reg::B32(l.destination32(o.get(0)?)?)];
    Ok(Some(Decoded::new(Op::Repack { d: d.clone(), s: parts.clone(), d_bits: 32, s_bits: 16 }, parts, d)))
}

/// `cvt.rs.….f16x2.f32 d, a, b, r` and `cvt.rs.….e4m3x4.f32 d, {a, b, e, f}, r`: of four numbers two functions of two.
fn cvt_stochastic(l: &mut Lowering, flags: &[&str], to: &str, from: &str, o: &Operands) -> Family {
    let Some([low, high]) = stochastic::convert(flags, to).filter(|_| from == "f32") else { return Ok(None) };
    if to.ends_with("x2") {
        return apply(l, low, o, true).map(Some);
    }
    o.expect(3..=3)?;
    let list = match o.get(1)? {
        Operand::Vector(list) if list.len() == 4 => list,
        other => {
            let found = format!("expected four numbers, found {}", describe(other));
            return Err(wrong(found, "List them, that of the highest bits first: `{a, b, e, f}` (PTX ISA, cvt)."));
        }
    };
    let random = Reg::B32(l.source32(o.get(2)?, false)?);
    let mut parts = Vec::new();
    for (f, pair) in [(low, &list[2..]), (high, &list[..2])] {
        let (a, b) = (Reg::B32(l.source32(&pair[0], true)?), Reg::B32(l.source32(&pair[1], true)?));
        let part = l.register("b32")?;
        let (Reg::B32(d), Reg::B32(x), Reg::B32(y), Reg::B32(r)) = (part, a, b, random) else { return Ok(None) };
        l.emit(Op::Alu { f, d, s: [x, y, r] }, TRUE, false, vec![a, b, random], vec![part]);
        parts.push(part);
    }
    let d = vec![Reg::B32(l.destination32(o.get(0)?)?)];
    let s_bits = if to == "e2m1x4" { 8 } else { 16 };
    Ok(Some(Decoded::new(Op::Repack { d: d.clone(), s: parts.clone(), d_bits: 2 * s_bits, s_bits }, parts, d)))
}

fn predicate(l: &mut Lowering, base: &str, o: &Operands) -> Result<Decoded, crate::program::Bad> {
    let unary = base == "not";
    o.expect(if unary { 2..=2 } else { 3..=3 })?;
    let logic = match base {
        "or" => Logic::Or,
        "xor" => Logic::Xor,
        _ => Logic::And,
    };
    let (operand, a_negated) = match o.get(1)? {
        Operand::Not(name) => (Operand::Name(name.clone()), true),
        other => (other.clone(), false),
    };
    let a = l.predicate(&operand)?;
    let b = if unary { a } else { l.predicate(o.get(2)?)? };
    let d = l.destination_predicate(o.get(0)?)?;
    Ok(Decoded::new(
        Op::Pred { logic, d, a, a_negated, b, negate: unary },
        vec![Reg::Pred(a), Reg::Pred(b)],
        vec![Reg::Pred(d)],
    ))
}
