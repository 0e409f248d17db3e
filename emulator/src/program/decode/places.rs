//! What no operand may be where it stands, whatever the registers are: results that go nowhere, vectors of nothing, constants as addresses, and
//! constants that are out of range. What ptxas 13.5 refuses of a statement is refused here, too.

use super::{describe, wrong};
use crate::program::Bad;
use crate::program::limits::{self, Beyond};
use crate::program::lower::{Binding, Lowering};
use crate::syntax::ast::{Instruction, Operand};

/// Refuses operands that ptxas takes in no kernel.
pub(super) fn check(l: &Lowering, inst: &Instruction, base: &str, mods: &[&str]) -> Result<(), Bad> {
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
            Operand::Integer(value) => constant(l, inst, base, mods, (n, *value))?,
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

/// Constants that an instruction has no use for.
fn constant(l: &Lowering, inst: &Instruction, base: &str, mods: &[&str], (n, value): (usize, i64)) -> Result<(), Bad> {
    let has = |what: &str| mods.contains(&what);
    let first = mods.first().copied().unwrap_or_default();
    let refuse =
        |what: &str, help: &str| Err(wrong(format!("{what} of `{}` is {value}", inst.opcode), help.to_string()));
    if mask(base, mods) == Some(n) && !(0..=0xffff).contains(&value) {
        return refuse("the mask", "It has 16 bits, one for each CTA of a cluster.");
    }
    if let Some(Beyond { code, title, rule, help }) = beyond(l, inst, base, mods, (n, value)) {
        return Err(Bad { code, message: title, rule: rule.into(), help, cause: None });
    }
    match (base, first, n) {
        ("bfe", _, 2 | 3) | ("bfi", _, 3 | 4) if !(0..=255).contains(&value) => {
            refuse("a position or length", "It is a number of bits, 0 to 255 (PTX ISA, bfe, bfi).")
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

/// Constants for which there is a finding when a register holds them. What ptxas takes is left to that: no threads at a CTA barrier and more than
/// a CTA has, no bytes of a copy, more arrivals than an mbarrier counts.
fn beyond(l: &Lowering, inst: &Instruction, base: &str, mods: &[&str], (n, value): (usize, i64)) -> Option<Beyond> {
    let has = |what: &str| mods.contains(&what);
    let what = match mods {
        ["cta", what, ..] | [what, ..] => *what,
        [] => "",
    };
    let mbarrier = |n: usize| {
        // What lies behind a variable's beginning may be called otherwise.
        let name = match inst.operands.get(n) {
            Some(Operand::Memory(at, 0, ..)) => match &**at {
                Operand::Name(name) => Some(name),
                _ => None,
            },
            _ => None,
        };
        let shared = name.filter(|name| matches!(l.lookup(name), Some(Binding::Shared(_))));
        shared.map_or("an mbarrier".into(), |name| format!("`{name}`"))
    };
    match (base, what, n) {
        ("bar" | "barrier", "sync" | "arrive", 0) | ("bar" | "barrier", "red", 1) => limits::barrier_number(value),
        ("bar" | "barrier", "sync" | "arrive", 1) | ("bar" | "barrier", "red", 2) => {
            let barrier = || match inst.operands.get(n - 1) {
                Some(Operand::Integer(id)) => format!("barrier {id}"),
                _ => "a CTA barrier".into(),
            };
            let refused = value % 32 != 0 || value == 0 && what == "arrive";
            limits::barrier_threads(barrier, value).filter(|_| refused)
        }
        ("tcgen05", "alloc" | "dealloc", 1) => limits::columns(what == "dealloc", value),
        ("mbarrier", "init", 1) => limits::initial_count(|| mbarrier(0), value),
        ("mbarrier", "arrive" | "arrive_drop", 2) if !has("expect_tx") => {
            limits::arrivals(|| mbarrier(1), value).filter(|_| value <= 0)
        }
        ("mbarrier", "try_wait" | "test_wait", 2) if has("parity") => limits::parity(value),
        ("cp", ..) if has("bulk") && !has("tensor") => {
            let bytes = if has("prefetch") { 1 } else { 2 };
            limits::constant_bulk_bytes(value).filter(|_| n == bytes)
        }
        ("cp", "async", 3) => match inst.operands.get(2) {
            Some(&Operand::Integer(copies)) => limits::source_bytes(|| "a thread".into(), copies as u32, value),
            _ => None,
        },
        _ => None,
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
