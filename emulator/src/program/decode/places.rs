//! What no operand may be where it stands, whatever the registers are: results that go nowhere, vectors of nothing, constants as addresses, and
//! constants that are out of range. What ptxas 13.5 refuses of a statement is refused here, too.

use super::{describe, wrong};
use crate::program::Bad;
use crate::syntax::ast::{Instruction, Operand};

/// Refuses operands that ptxas takes in no kernel.
pub(super) fn check(inst: &Instruction, base: &str, mods: &[&str]) -> Result<(), Bad> {
    for (n, operand) in inst.operands.iter().enumerate() {
        match operand {
            Operand::Sink => discarded(inst, base, mods, n)?,
            Operand::Pair(a, b) if [a, b].iter().all(|part| ***part == Operand::Sink) => {
                return Err(wrong(
                    format!("both results of `{}` are discarded", inst.opcode),
                    "Name a register for one of the two.",
                ));
            }
            Operand::Vector(parts) => vector(inst, base, n, parts)?,
            Operand::Memory(address, ..) => constant_address(inst, base, mods, address)?,
            Operand::Integer(value) => constant(inst, base, mods, n, *value)?,
            _ => {}
        }
    }
    if base == "mov" && inst.operands.iter().all(|operand| matches!(operand, Operand::Vector(_))) {
        return Err(wrong(
            format!("`{}` from a vector to a vector", inst.opcode),
            "One side is a register that holds the whole: move it there first (PTX ISA 9.7.9.4).",
        ));
    }
    Ok(())
}

/// `_` as a whole operand.
fn discarded(inst: &Instruction, base: &str, mods: &[&str], n: usize) -> Result<(), Bad> {
    let first = mods.first().copied().unwrap_or_default();
    let may = match base {
        "atom" | "setp" => n == 0,
        "match" => n == 0 && first == "all",
        "mbarrier" => n == 0 && matches!(first, "arrive" | "arrive_drop"),
        _ => false,
    };
    if may {
        return Ok(());
    }
    let help = if n == 0 { "Name a register: its result is not discarded." } else { "`_` stands for results only." };
    Err(wrong(format!("operand {} of `{}` is `_`", n + 1, inst.opcode), help))
}

/// A vector of sinks alone, and of constants alone where registers are multiplied or stored as matrices.
fn vector(inst: &Instruction, base: &str, n: usize, parts: &[Operand]) -> Result<(), Bad> {
    if parts.iter().all(|part| *part == Operand::Sink) {
        return Err(wrong(
            format!("a vector of `{}` names no register", inst.opcode),
            "`_` may stand for some of its elements: name a register for one of them.",
        ));
    }
    let registers = match base {
        "stmatrix" => true,
        "mma" | "wgmma" => matches!(n, 1 | 2),
        _ => false,
    };
    if registers && !parts.iter().any(|part| matches!(part, Operand::Name(_))) {
        return Err(wrong(
            format!("a vector of `{}` has constants alone", inst.opcode),
            "Name a register for one of its elements: move the constant to one first, `mov.b32 %r0, 0;`.",
        ));
    }
    Ok(())
}

/// Only local memory has addresses that are known before the kernel runs.
fn constant_address(inst: &Instruction, base: &str, mods: &[&str], address: &Operand) -> Result<(), Bad> {
    if !matches!(address, Operand::Integer(_)) || mods.contains(&"local") || base == "fence" {
        return Ok(());
    }
    Err(wrong(
        format!("the address of `{}` is {}", inst.opcode, describe(address)),
        "Constants are addresses of `.local` memory only: name a variable, or a register that holds the address.",
    ))
}

/// Constants that an instruction has no use for. What there is a finding for when it is executed (a number of columns, of arrivals, of
/// threads, of bytes, a parity) is left to that: it knows the names of barriers and buffers, and has a code of its own.
fn constant(inst: &Instruction, base: &str, mods: &[&str], n: usize, value: i64) -> Result<(), Bad> {
    let has = |what: &str| mods.contains(&what);
    let first = mods.first().copied().unwrap_or_default();
    let refuse =
        |what: &str, help: &str| Err(wrong(format!("{what} of `{}` is {value}", inst.opcode), help.to_string()));
    if mask(base, mods) == Some(n) && !(0..=0xffff).contains(&value) {
        return refuse("the mask", "It has 16 bits, one for each CTA of a cluster.");
    }
    match (base, first, n) {
        ("bfe", _, 2 | 3) | ("bfi", _, 3 | 4) if !(0..=255).contains(&value) => {
            refuse("a position or length", "It is a number of bits, 0 to 255 (PTX ISA, bfe, bfi).")
        }
        ("cp", "async", 3) if !has("bulk") && !(0..=16).contains(&value) => {
            refuse("the size of the source", "It is at most the 16 bytes that are written (PTX ISA, cp.async).")
        }
        ("createpolicy", "range", 2) if matches!(inst.operands.get(3), Some(Operand::Integer(all)) if (*all as u32) < value as u32) => {
            refuse("the primary size", "It is at most the total size, which stands behind it (PTX ISA, createpolicy).")
        }
        ("movmatrix", ..) => refuse("the matrix", "It lies in a register: move it there first, `mov.b32 %r0, 0;`."),
        ("setp" | "set", _, 3) if has("bf16") => {
            refuse("the predicate", "With `.bf16` it is a register: declare one with `.reg .pred`.")
        }
        _ => Ok(()),
    }
}

/// Which operand is the mask of CTAs.
fn mask(base: &str, mods: &[&str]) -> Option<usize> {
    let tensor = mods.contains(&"tensor");
    match base {
        _ if !mods.contains(&"multicast::cluster") => None,
        "tcgen05" => Some(1),
        "cp" => Some(if tensor { 3 } else { 4 }),
        _ => None,
    }
}
