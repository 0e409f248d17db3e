//! `st.async` and `red.async`: a store to shared memory of the cluster, or a reduction there, whose bytes an mbarrier counts; and
//! `st.bulk`, which fills shared memory.

use super::{Decoded, Family, Lowering, Operands, base as base_of, describe, wrong};
use crate::program::atomic::{AsyncStoreOp, update};
use crate::program::layout::type_bytes;
use crate::program::lower::Binding;
use crate::program::op::{Op, Reg, Space, fills};
use crate::syntax::ast::Operand;

pub(super) fn decode(l: &mut Lowering, base: &str, mods: &[&str], o: &Operands) -> Family {
    if base == "red" {
        return reduction(l, mods, o);
    }
    if let ("st", ["bulk", rest @ ..]) = (base, mods) {
        return fill(l, rest, o);
    }
    let ("st", ["async", rest @ .., ty]) = (base, mods) else { return Ok(None) };
    let Some(bytes) = type_bytes(ty).filter(|&bytes| bytes >= 4) else { return Ok(None) };
    let (mut lanes, mut counted) = (1, false);
    for part in rest {
        match *part {
            "weak" | "shared" | "shared::cta" | "shared::cluster" => {}
            "mbarrier::complete_tx::bytes" => counted = true,
            "v2" => lanes = 2,
            "v4" => lanes = 4,
            _ => return Ok(None),
        }
    }
    if !counted || bytes * lanes > 16 {
        return Ok(None);
    }
    o.expect(3..=3)?;
    let (to, barrier) = (l.address(o.get(0)?)?, l.address(o.get(2)?)?);
    l.check_space(o.get(0)?, Space::SharedCluster, o.opcode)?;
    l.check_space(o.get(2)?, Space::SharedCluster, o.opcode)?;
    let list = match o.get(1)? {
        Operand::Vector(list) => list.as_slice(),
        single => std::slice::from_ref(single),
    };
    if list.len() != lanes as usize {
        return Err(wrong(
            format!("`{}` stores {lanes} elements, its value is {}", o.opcode, describe(o.get(1)?)),
            "Name one register for each element.",
        ));
    }
    let float = ty.starts_with('f');
    let mut s = Vec::new();
    for part in list {
        s.push(if bytes == 16 { l.register128(part)? } else { l.source(part, bytes, float)? });
    }
    let mut uses = base_of(&to);
    uses.extend(base_of(&barrier));
    uses.extend(&s);
    let op = AsyncStoreOp { to, barrier, bytes: bytes as u8, s: s.into(), update: None };
    Ok(Some(Decoded::new(Op::AsyncStore(Box::new(op)), uses, vec![])))
}

/// `st.bulk`.
fn fill(l: &mut Lowering, mods: &[&str], o: &Operands) -> Family {
    let space = match mods {
        [] | ["weak"] => Space::Generic,
        ["shared::cta"] | ["weak", "shared::cta"] => Space::Shared,
        _ => return Ok(None),
    };
    o.expect(3..=3)?;
    let Operand::Integer(0) = o.get(2)? else {
        return Err(wrong(
            format!("`{}` fills with {}", o.opcode, describe(o.get(2)?)),
            "It fills with zeroes only: write the constant 0 (PTX ISA, st.bulk).",
        ));
    };
    if let Operand::Integer(bytes) = o.get(1)?
        && !u64::try_from(*bytes).is_ok_and(fills)
    {
        return Err(wrong(
            format!("`{}` of {bytes} bytes", o.opcode),
            "The size is a multiple of 8, up to 16,777,216 (PTX ISA, st.bulk).",
        ));
    }
    let address = l.address(o.get(0)?)?;
    if space == Space::Shared {
        l.check_space(o.get(0)?, space, o.opcode)?;
    }
    let (Operand::Integer(_) | Operand::Name(_)) = o.get(1)? else {
        return Err(wrong(
            format!("the size is {}", describe(o.get(1)?)),
            "It is a register of 64 bits (from PTX 9.0 on also of 32), or a constant.",
        ));
    };
    let narrow =
        matches!(o.get(1)?, Operand::Name(name) if matches!(l.lookup(name), Some(Binding::Register(Reg::B32(_), _))));
    let bytes = match narrow {
        true if l.version >= (9, 0) => Reg::B32(l.source32(o.get(1)?, false)?),
        true => {
            let (major, minor) = l.version;
            return Err(wrong(
                format!("the size of `{}` is a 32-bit register", o.opcode),
                format!(
                    "Name a 64-bit register: 32 bits need PTX version 9.0 or later, this module has {major}.{minor}."
                ),
            ));
        }
        false => Reg::B64(l.source64(o.get(1)?)?),
    };
    let mut uses = base_of(&address);
    uses.push(bytes);
    Ok(Some(Decoded::new(Op::Fill { space, address, bytes }, uses, vec![])))
}

/// `red.async.relaxed.cluster`.
fn reduction(l: &mut Lowering, mods: &[&str], o: &Operands) -> Family {
    let ["async", "relaxed", "cluster", rest @ .., what, ty] = mods else { return Ok(None) };
    if !matches!(rest, ["mbarrier::complete_tx::bytes"] | ["shared::cluster", "mbarrier::complete_tx::bytes"]) {
        return Ok(None);
    }
    // Those that there are (PTX ISA, red.async).
    let known = match *what {
        "inc" | "dec" => *ty == "u32",
        "min" | "max" => matches!(*ty, "u32" | "s32"),
        "add" => matches!(*ty, "u32" | "s32" | "u64" | "s64"),
        "and" | "or" | "xor" => *ty == "b32",
        _ => false,
    };
    let Some((update, bytes)) = update(what, ty).filter(|_| known) else { return Ok(None) };
    o.expect(3..=3)?;
    let (to, barrier) = (l.address(o.get(0)?)?, l.address(o.get(2)?)?);
    l.check_space(o.get(0)?, Space::SharedCluster, o.opcode)?;
    l.check_space(o.get(2)?, Space::SharedCluster, o.opcode)?;
    let s = l.source(o.get(1)?, bytes.into(), false)?;
    let mut uses = base_of(&to);
    uses.extend(base_of(&barrier));
    uses.push(s);
    let op = AsyncStoreOp { to, barrier, bytes, s: [s].into(), update: Some(update) };
    Ok(Some(Decoded::new(Op::AsyncStore(Box::new(op)), uses, vec![])))
}
