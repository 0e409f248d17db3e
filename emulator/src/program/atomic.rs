//! Loads, stores and atomic operations: memory order and scope, and what atomic operations compute.

use super::op::{Address, Reg, Space};
use crate::program::arithmetic::lanes::{bits, bits_z, d, f, i, l, of_operands, z};
use crate::program::arithmetic::packed;

/// How far the threads are that a strong access synchronises with (PTX ISA 8.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Threads of the CTA.
    Cta,
    /// Threads of the cluster.
    Cluster,
    /// Threads of the grid, and more: `.gpu` and `.sys`.
    Gpu,
}

/// What makes an access strong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sync {
    /// `.cta`, `.cluster`, `.gpu`, `.sys`
    pub scope: Scope,
    /// `.acquire`, `.acq_rel`
    pub acquire: bool,
    /// `.release`, `.acq_rel`
    pub release: bool,
}

impl Sync {
    /// The scope that a modifier names.
    pub fn scope(modifier: &str) -> Option<Scope> {
        Some(match modifier {
            "cta" => Scope::Cta,
            "cluster" => Scope::Cluster,
            "gpu" | "gl" | "sys" => Scope::Gpu,
            _ => return None,
        })
    }

    /// From the modifiers of an access; `None` for one that is not strong. `Err`: they do not go together.
    pub fn of(mods: &[&str]) -> Result<Option<Sync>, &'static str> {
        let has = |m: &str| mods.contains(&m);
        let scope = mods.iter().find_map(|m| Sync::scope(m));
        let orders = ["relaxed", "acquire", "release", "acq_rel", "volatile", "weak", "mmio"];
        if mods.iter().filter(|m| orders.contains(m)).count() > 1 {
            return Err("it has two memory orders");
        }
        if has("volatile") {
            // Volatile is relaxed at system scope (PTX ISA 8.4).
            return Ok(Some(Sync { scope: Scope::Gpu, acquire: false, release: false }));
        }
        let ordered = orders[..4].iter().any(|m| has(m));
        match (ordered, scope) {
            (true, Some(scope)) => {
                let both = has("acq_rel");
                Ok(Some(Sync { scope, acquire: both || has("acquire"), release: both || has("release") }))
            }
            (true, None) => Err("a memory order needs a scope: .cta, .cluster, .gpu or .sys"),
            (false, Some(_)) => Err("a scope needs a memory order: .relaxed, .acquire or .release"),
            (false, None) => Ok(None),
        }
    }
}

/// Operands of `ld`.
#[derive(Debug)]
pub struct LoadOp {
    /// From where.
    pub space: Space,
    /// From where.
    pub address: Address,
    /// Bytes of an element.
    pub bytes: u8,
    /// The element is sign-extended to its register.
    pub signed: bool,
    /// One register an element.
    pub d: Box<[Reg]>,
    /// Order and scope of a strong load.
    pub sync: Option<Sync>,
    /// Of what nobody writes while the kernel runs (`.nc`).
    pub non_coherent: bool,
}

/// Operands of `st`.
#[derive(Debug)]
pub struct StoreOp {
    /// To where.
    pub space: Space,
    /// To where.
    pub address: Address,
    /// Bytes of an element.
    pub bytes: u8,
    /// One register an element.
    pub s: Box<[Reg]>,
    /// A piece of a vector, of which elements are not written: bytes of the vector, and those before the piece.
    pub of: Option<(u8, u8)>,
    /// Order and scope of a strong store.
    pub sync: Option<Sync>,
}

/// What else an arrival at an mbarrier does, or must not do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrivalKind {
    /// `arrive_drop`: the phases behind take so many arrivals fewer.
    pub drops: bool,
    /// `.noComplete`: it must not complete the phase.
    pub no_complete: bool,
}

/// Operands of `st.async`, and of `red.async`.
#[derive(Debug)]
pub struct AsyncStoreOp {
    /// To where, in the shared memory of any CTA of the cluster.
    pub to: Address,
    /// The mbarrier that counts the bytes.
    pub barrier: Address,
    /// Bytes of an element.
    pub bytes: u8,
    /// One register an element.
    pub s: Box<[Reg]>,
    /// What `red.async` makes of the value that is there and of that of the register.
    pub update: Option<Update>,
}

/// From the old value and the operands to the new one.
pub type Update = fn(u64, u64, u64) -> u64;

/// Operands of `atom` and `red`.
pub struct AtomicOp {
    /// Where.
    pub space: Space,
    /// Where.
    pub address: Address,
    /// Bytes of the value: 2, 4 or 8; 16 are exchanged, or compared and exchanged.
    pub bytes: u8,
    /// The address is that of a vector of so many bytes: aligned to them, and all of it within memory.
    pub whole: u8,
    /// What it computes in shared memory.
    pub update: Update,
    /// What it computes in global memory.
    pub update_global: Update,
    /// The new value does not depend on the old one (`exch`).
    pub replaces: bool,
    /// Receives the old value: `atom` only.
    pub d: Option<Reg>,
    /// The operand; for `cas`, what the old value is compared with.
    pub s: Reg,
    /// `cas`: the new value.
    pub t: Option<Reg>,
    /// Order and scope.
    pub sync: Sync,
}

impl std::fmt::Debug for AtomicOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "atomic {:?} {:?}", self.space, self.address)
    }
}

/// `atom.op.type` in global memory, where it is not that of shared memory: sums of FP32 flush subnormal operands and results to zero
/// of the same sign (PTX ISA, atom).
pub fn update_global(op: &str, ty: &str) -> Option<(Update, u8)> {
    match (op, ty) {
        ("add", "f32") => Some((|a, b, _| bits_z(z(a as u32) + z(b as u32)).into(), 4)),
        _ => update(op, ty),
    }
}

/// `atom.op.type`: the function and the bytes of the value. `None`: not modelled.
pub fn update(op: &str, ty: &str) -> Option<(Update, u8)> {
    fn w(x: u64) -> u32 {
        x as u32
    }
    fn half(ty: &str, a: u64, b: u64) -> u64 {
        of_halves("add", ty, a, b)
    }
    fn of_halves(op: &str, ty: &str, a: u64, b: u64) -> u64 {
        match packed::alu(op, &[], ty) {
            Some(super::op::Alu::B32(g)) => {
                let mut r = [0; 32];
                g(&mut r, &[a as u32; 32], &[b as u32; 32]);
                r[0].into()
            }
            _ => a,
        }
    }
    let f: Update = match (op, ty) {
        ("add", "u32" | "s32") => |a, b, _| w(a).wrapping_add(w(b)).into(),
        ("add", "u64" | "s64") => |a, b, _| a.wrapping_add(b),
        ("add", "f32") => |a, b, _| bits(f(w(a)) + f(w(b))).into(),
        ("add", "f64") => |a, b, _| of_operands(d(a) + d(b), &[a, b]),
        ("add", "f16") => |a, b, _| half("f16", a, b),
        ("add", "bf16") => |a, b, _| half("bf16", a, b),
        ("add", "f16x2") => |a, b, _| half("f16x2", a, b),
        ("add", "bf16x2") => |a, b, _| half("bf16x2", a, b),
        ("min", "f16") => |a, b, _| of_halves("min", "f16", a, b),
        ("max", "f16") => |a, b, _| of_halves("max", "f16", a, b),
        ("min", "f16x2") => |a, b, _| of_halves("min", "f16x2", a, b),
        ("max", "f16x2") => |a, b, _| of_halves("max", "f16x2", a, b),
        ("min", "bf16") => |a, b, _| of_halves("min", "bf16", a, b),
        ("max", "bf16") => |a, b, _| of_halves("max", "bf16", a, b),
        ("min", "bf16x2") => |a, b, _| of_halves("min", "bf16x2", a, b),
        ("max", "bf16x2") => |a, b, _| of_halves("max", "bf16x2", a, b),
        ("min", "u32" | "u64") => |a, b, _| a.min(b),
        ("max", "u32" | "u64") => |a, b, _| a.max(b),
        ("min", "s32") => |a, b, _| i(w(a)).min(i(w(b))) as u32 as u64,
        ("max", "s32") => |a, b, _| i(w(a)).max(i(w(b))) as u32 as u64,
        ("min", "s64") => |a, b, _| l(a).min(l(b)) as u64,
        ("max", "s64") => |a, b, _| l(a).max(l(b)) as u64,
        ("and", "b32" | "b64") => |a, b, _| a & b,
        ("or", "b32" | "b64") => |a, b, _| a | b,
        ("xor", "b32" | "b64") => |a, b, _| a ^ b,
        // Those of 128 bits are not made of these ([`crate::machine::memory::atomics`]).
        ("exch", "b32" | "b64" | "b128") => |_, b, _| b,
        ("cas", "b16" | "b32" | "b64" | "b128") => |a, b, c| if a == b { c } else { a },
        // `inc` counts up to b and begins again at 0, `dec` down from b (PTX ISA, atom).
        ("inc", "u32") => |a, b, _| if a >= b { 0 } else { a + 1 },
        ("dec", "u32") => |a, b, _| if a == 0 || a > b { b } else { a - 1 },
        _ => return None,
    };
    Some((f, super::layout::type_bytes(ty)? as u8))
}
