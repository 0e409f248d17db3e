//! Hopper's tensor core: `wgmma.*`. What ptxas 13.5 takes for `sm_90a` is taken.

use super::{Decoded, Family, Lowering, Operands, describe, wrong};
use crate::program::Bad;
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
        ("mma_async", [shape, d, a, b]) => {
            let Some(n) = columns(shape) else { return Ok(None) };
            let (d_f32, bf16) = match (*d, *a, *b) {
                ("f32", "f16", "f16") => (true, false),
                ("f32", "bf16", "bf16") => (true, true),
                ("f16", "f16", "f16") => (false, false),
                _ => return Ok(None),
            };
            mma(l, o, n, d_f32, bf16).map(Some)
        }
        _ => Ok(None),
    }
}

/// N of `m64nNk16`.
fn columns(shape: &str) -> Option<u32> {
    let n = shape.strip_prefix("m64n")?.strip_suffix("k16")?;
    let number: u32 = n.parse().ok()?;
    (number.to_string() == n && number.is_multiple_of(8) && (8..=256).contains(&number)).then_some(number)
}

/// `{d}, adesc or {a}, bdesc, scale-d, imm-scale-a, imm-scale-b{, imm-trans-a}, imm-trans-b`
fn mma(l: &mut Lowering, o: &Operands, n: u32, d_f32: bool, bf16: bool) -> Result<Decoded, Bad> {
    let in_registers = matches!(o.get(1)?, Operand::Vector(_));
    if in_registers {
        o.expect(7..=7)?
    } else {
        o.expect(8..=8)?
    }
    let Operand::Vector(list) = o.get(0)? else {
        return Err(wrong(
            format!("D of `{}` is {}", o.opcode, describe(o.get(0)?)),
            "Name the registers of the accumulator in a vector `{…}`.",
        ));
    };
    let count = if d_f32 { n / 2 } else { n / 4 } as usize;
    if list.len() != count {
        return Err(wrong(
            format!("D of `{}` has {} registers, its vector names {}", o.opcode, count, list.len()),
            "A thread holds N/2 FP32 numbers of D, or N/2 FP16 numbers in N/4 registers.",
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
                    "A thread holds 8 elements of A, two a register.",
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
    let (negate_a, negate_b) = (negate(4, "a")?, negate(5, "b")?);
    let a_mn_major = !in_registers && turned(6, "a")?;
    let b_mn_major = turned(o.len() - 1, "b")?;
    let op = WgmmaOp {
        n,
        d_f32,
        bf16,
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
