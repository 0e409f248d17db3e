//! Hopper's tensor core: `wgmma.*`. What ptxas 13.5 takes for `sm_90a` is taken.

use super::{Decoded, Family, Lowering, Operands, describe, wrong};
use crate::program::Bad;
use crate::program::kind::{Kind, Types};
use crate::program::op::{Op, Reg};
use crate::program::wgmma::{WgmmaA, WgmmaOp};
use crate::syntax::ast::Operand;

pub(super) fn decode(l: &mut Lowering, base: &str, mods: &[&str], o: &Operands) -> Family {
    if base != "wgmma" {
        return Ok(None);
    }
    // Real code writes the two in this order; ptxas takes both.
    let (what, rest) = match mods {
        [what, "sync", "aligned", rest @ ..] | [what, "aligned", "sync", rest @ ..] => (*what, rest),
        _ => return Ok(None),
    };
    match (what, rest) {
        ("fence", []) => {
            o.expect(0..=0)?;
            Ok(Some(Decoded::new(Op::WgmmaFence, vec![], vec![])))
        }
        ("commit_group", []) => {
            o.expect(0..=0)?;
            Ok(Some(Decoded::new(Op::WgmmaCommit, vec![], vec![])))
        }
        ("wait_group", []) => {
            o.expect(1..=1)?;
            match o.get(0)? {
                Operand::Integer(pending @ 0..=0x7fff_ffff) => {
                    Ok(Some(Decoded::new(Op::WgmmaWait { pending: *pending as u32 }, vec![], vec![])))
                }
                other => Err(wrong(
                    format!("`wgmma.wait_group` is given {}", describe(other)),
                    "It takes a constant from 0: so many of the latest groups may still be under way.",
                )),
            }
        }
        ("mma_async", [shape, types @ ..]) => match form(shape, types) {
            Some((n, types)) => mma(l, o, n, types).map(Some),
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

/// N and the types that shape and types name. `.satfinite` may stand anywhere among the types of integers, as ptxas has it.
fn form(shape: &str, types: &[&str]) -> Option<(u32, Types)> {
    let rest: Vec<&str> = types.iter().copied().filter(|part| *part != "satfinite").collect();
    let [d, a, b] = rest[..] else { return None };
    let (named, times) = (Types::named(d, a, b)?, types.len() - rest.len());
    if times > usize::from(named.kind == Kind::I8) {
        return None;
    }
    let types = Types { saturate: times == 1, ..named };
    let (n, depth) = shape.strip_prefix("m64n")?.split_once('k')?;
    let n: u32 = Some(n).filter(|n| !n.starts_with('0'))?.parse().ok()?;
    let even = n.is_multiple_of(8) && (8..=256).contains(&n);
    // Integers have N = 8 and 24, else multiples of 16 (PTX ISA, wgmma.mma_async, shapes).
    let fits = even && (types.kind != Kind::I8 || n <= 24 || n.is_multiple_of(16));
    (fits && depth == types.kind.depth().to_string()).then_some((n, types))
}

/// `{d}, adesc or {a}, bdesc, scale-d{, imm-scale-a, imm-scale-b}{, imm-trans-a}{, imm-trans-b}`: integers are not negated, and only
/// elements of 16 bits can lie the other way round.
fn mma(l: &mut Lowering, o: &Operands, n: u32, types: Types) -> Result<Decoded, Bad> {
    let in_registers = matches!(o.get(1)?, Operand::Vector(_));
    let count = match (types.kind, in_registers) {
        (Kind::F16, true) => 7,
        (Kind::F16, false) => 8,
        (Kind::I8, _) => 4,
        _ => 6,
    };
    o.expect(count..=count)?;
    let Operand::Vector(list) = o.get(0)? else {
        return Err(wrong(
            format!("D of `{}` is {}", o.opcode, describe(o.get(0)?)),
            "Name the registers of the accumulator in a vector `{…}`.",
        ));
    };
    let count = if types.wide_d() { n / 2 } else { n / 4 } as usize;
    if list.len() != count {
        return Err(wrong(
            format!("D of `{}` has {} registers, its vector names {}", o.opcode, count, list.len()),
            "A thread holds N/2 FP32 numbers or integers of D, or N/2 FP16 numbers in N/4 registers.",
        ));
    }
    let mut d = Vec::with_capacity(count);
    for part in list {
        if matches!(part, Operand::Sink) {
            return Err(wrong("D of a wgmma is read as well: `_` has no value", "Name a register."));
        }
        let register = l.destination32(part)?;
        if d.contains(&register) {
            return Err(wrong(
                format!("D of `{}` names {} twice", o.opcode, describe(part)),
                "Give each element of the accumulator a register of its own.",
            ));
        }
        d.push(register);
    }
    let a = match o.get(1)? {
        Operand::Vector(list) => {
            let [a0, a1, a2, a3] = list.as_slice() else {
                return Err(wrong(
                    format!("A of `{}` has 4 registers, its vector names {}", o.opcode, list.len()),
                    "A thread holds 16 bytes of A, four a register.",
                ));
            };
            let mut registers = [0; 4];
            for (to, part) in registers.iter_mut().zip([a0, a1, a2, a3]) {
                *to = l.source32(part, false)?;
            }
            WgmmaA::Registers(registers)
        }
        descriptor => WgmmaA::Shared(l.source64(descriptor)?),
    };
    let b = l.source64(o.get(2)?)?;
    let (scale, accumulate_negated) = match o.get(3)? {
        Operand::Not(name) => (Operand::Name(name.clone()), true),
        Operand::Integer(other) if !matches!(other, 0 | 1) => {
            return Err(wrong(format!("scale-d is the constant {other}"), "It is a predicate, 0 or 1."));
        }
        other => (other.clone(), false),
    };
    let accumulate = l.predicate(&scale)?;
    let negate = |at: usize, which: &str| match o.get(at)? {
        Operand::Integer(1) => Ok(false),
        Operand::Integer(-1) => Ok(true),
        other => {
            Err(wrong(format!("imm-scale-{which} is {}", describe(other)), "It is 1, or −1 to negate the operand."))
        }
    };
    let turned = |at: usize, which: &str| match o.get(at)? {
        Operand::Integer(0) => Ok(false),
        Operand::Integer(1) => Ok(true),
        other => Err(wrong(
            format!("imm-trans-{which} is {}", describe(other)),
            "It is 0 for K-major, 1 for an operand that lies the other way round.",
        )),
    };
    let signed = types.kind != Kind::I8;
    let (negate_a, negate_b) = (signed && negate(4, "a")?, signed && negate(5, "b")?);
    let turns = types.kind == Kind::F16;
    let a_mn_major = turns && !in_registers && turned(6, "a")?;
    let b_mn_major = turns && turned(o.len() - 1, "b")?;
    let op = WgmmaOp {
        n,
        types,
        d: d.into(),
        a,
        b,
        accumulate,
        accumulate_negated,
        negate_a,
        negate_b,
        a_mn_major,
        b_mn_major,
    };
    let defs = op.d.iter().map(|&r| Reg::B32(r)).collect();
    let mut uses = op.deciding();
    uses.extend(op.fragments().map(Reg::B32));
    Ok(Decoded::new(Op::Wgmma(Box::new(op)), uses, defs))
}
