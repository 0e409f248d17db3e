//! Plain loads and stores.

use super::{Decoded, Family, Lowering, Operands, base as base_of, describe, wrong};
use crate::program::layout::type_bytes;
use crate::program::op::{Op, Reg, Space};
use crate::syntax::ast::Operand;

/// `cp.async` (not bulk), `ldmatrix` and `stmatrix`.
fn matrix_or_async(l: &mut Lowering, base: &str, mods: &[&str], o: &Operands) -> Family {
    match (base, mods) {
        ("cp", ["async", "ca" | "cg", "shared" | "shared::cta", "global", hints @ ..])
            if hints.iter().all(|h| h.starts_with("L2::")) =>
        {
            o.expect(3..=5)?;
            let (to, from) = (l.address(o.get(0)?)?, l.address(o.get(1)?)?);
            let Operand::Integer(bytes @ (4 | 8 | 16)) = o.get(2)? else {
                return Err(wrong(format!("`cp.async` of {}", describe(o.get(2)?)), "It copies 4, 8 or 16 bytes."));
            };
            let mut uses = base_of(&to);
            uses.extend(base_of(&from));
            let read = match o.list.get(3) {
                Some(size) if !hints.contains(&"L2::cache_hint") || o.len() == 5 => {
                    let r = l.source32(size, false)?;
                    uses.push(Reg::B32(r));
                    Some(r)
                }
                _ => None,
            };
            Ok(Some(Decoded::new(Op::AsyncCopy { to, from, bytes: *bytes as u8, read }, uses, vec![])))
        }
        ("cp", ["async", "commit_group"]) => Ok(Some(Decoded::new(Op::AsyncCommit, vec![], vec![]))),
        ("cp", ["async", "wait_all"]) => Ok(Some(Decoded::new(Op::AsyncWait { pending: None }, vec![], vec![]))),
        ("cp", ["async", "wait_group"]) => {
            o.expect(1..=1)?;
            let Operand::Integer(pending @ 0..=0xffff) = o.get(0)? else {
                return Err(wrong(format!("the number of groups is {}", describe(o.get(0)?)), "It is a constant."));
            };
            Ok(Some(Decoded::new(Op::AsyncWait { pending: Some(*pending as u32) }, vec![], vec![])))
        }
        ("ldmatrix" | "stmatrix", ["sync", "aligned", rest @ ..]) => {
            let (mut count, mut transposed, mut shape) = (1, false, false);
            for m in rest {
                match *m {
                    "x1" => count = 1,
                    "x2" => count = 2,
                    "x4" => count = 4,
                    "trans" => transposed = true,
                    "m8n8" => shape = true,
                    "shared" | "shared::cta" | "b16" => {}
                    _ => return Ok(None),
                }
            }
            if !shape {
                return Ok(None);
            }
            o.expect(2..=2)?;
            let load = base == "ldmatrix";
            let (value, memory) = if load { (o.get(0)?, o.get(1)?) } else { (o.get(1)?, o.get(0)?) };
            let address = l.address(memory)?;
            let list = match value {
                Operand::Vector(list) => list.as_slice(),
                single => std::slice::from_ref(single),
            };
            if list.len() != count {
                return Err(wrong(
                    format!("{count} matrices, but {} registers", list.len()),
                    "Name one 32-bit register for each matrix.",
                ));
            }
            let mut regs = Vec::new();
            for part in list {
                regs.push(if load { l.destination32(part)? } else { l.source32(part, false)? });
            }
            let all: Vec<Reg> = regs.iter().map(|&r| Reg::B32(r)).collect();
            let mut uses = base_of(&address);
            if load {
                return Ok(Some(Decoded::new(Op::MatrixLoad { address, transposed, d: regs.into() }, uses, all)));
            }
            uses.extend(all);
            Ok(Some(Decoded::new(Op::MatrixStore { address, transposed, s: regs.into() }, uses, vec![])))
        }
        _ => Ok(None),
    }
}

pub(super) fn decode(l: &mut Lowering, base: &str, mods: &[&str], o: &Operands) -> Family {
    let load = match base {
        "ld" => true,
        "st" => false,
        _ => return matrix_or_async(l, base, mods, o),
    };
    let Some((ty, rest)) = mods.split_last() else { return Ok(None) };
    let Some(bytes) = type_bytes(ty) else { return Ok(None) };
    let (mut space, mut lanes) = (Space::Generic, 1);
    for m in rest {
        match *m {
            "global" => space = Space::Global,
            "shared" | "shared::cta" => space = Space::Shared,
            "param" if load => space = Space::Param,
            "nc" if load => {}
            "v2" => lanes = 2,
            "v4" => lanes = 4,
            "v8" => lanes = 8,
            // Cache hints and eviction priorities have no effect on results (PTX ISA 9.7.9.1, 9.7.9.2).
            // Within a CTA, ordered loads and stores see what plain ones see; order comes from barriers and fences.
            "relaxed" | "acquire" | "release" | "volatile" | "cta"
                if mods.contains(&"shared") || mods.contains(&"shared::cta") => {}
            "weak" | "ca" | "cg" | "cs" | "L1::no_allocate" | "L1::evict_last" | "L1::evict_first"
            | "L1::evict_normal" => {}
            _ => return Ok(None),
        }
    }
    let total = bytes * lanes;
    if total > 32 || (total == 32 && space != Space::Global) {
        return Err(wrong(
            format!("`{}` moves {total} bytes", o.opcode),
            "One access moves up to 16 bytes, 32 in global memory.",
        ));
    }
    o.expect(2..=2)?;
    let (memory, value) = if load { (o.get(1)?, o.get(0)?) } else { (o.get(0)?, o.get(1)?) };
    let address = l.address(memory)?;
    // A shared variable's name is an offset in the CTA's window; without `.shared` it is no generic address.
    if space == Space::Generic && l.names_shared(memory) {
        return Err(wrong(
            format!("{} is a shared variable, but `{}` takes a generic address", describe(memory), o.opcode),
            "Add `.shared`, or convert the address with `cvta.shared`.",
        ));
    }
    let list = match value {
        Operand::Vector(list) => list.as_slice(),
        single => std::slice::from_ref(single),
    };
    if list.len() != lanes as usize {
        return Err(wrong(
            format!("`{}` moves {lanes} elements, its vector names {}", o.opcode, list.len()),
            "Name one register for each element.",
        ));
    }
    let float = ty.starts_with('f');
    let mut regs = Vec::new();
    for part in list {
        let reg = if load || bytes == 16 {
            l.destination(part)?
        } else if bytes == 8 {
            l.source(part, 8, float)?
        } else if let Operand::Name(name) = part {
            // `st.b8`/`.b16`/`.b32` accept wider registers and store their low bits (PTX ISA 9.4.1).
            l.named(name, 4)?
        } else {
            l.source(part, 4, float)?
        };
        let fits = match reg {
            Reg::B32(_) => bytes <= 4,
            Reg::B64(_) => bytes <= 8,
            Reg::B128(_) => bytes == 16,
            Reg::Pred(_) => false,
            Reg::Sink => load,
        };
        if !fits {
            return Err(wrong(
                format!("{} cannot hold an element of `.{ty}`", describe(part)),
                "Use a register at least as wide as the element.",
            ));
        }
        regs.push(reg);
    }
    let mut uses = base_of(&address);
    let signed = ty.starts_with('s');
    Ok(Some(if load {
        let d: Box<[Reg]> = regs.clone().into();
        Decoded::new(Op::Load { space, address, bytes: bytes as u8, signed, d }, uses, regs)
    } else {
        uses.extend(&regs);
        Decoded::new(Op::Store { space, address, bytes: bytes as u8, s: regs.into() }, uses, vec![])
    }))
}
