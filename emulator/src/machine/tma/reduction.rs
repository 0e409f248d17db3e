//! Bulk reductions: elements of shared memory combined with those of global memory.

use crate::diagnostic::Severity;
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::state::At;
use crate::program::arithmetic::lanes::{bits, bits_z, d, f, of_operands, z};
use crate::program::arithmetic::packed::{brain, fp16};
use crate::program::atomic::Update;
use crate::program::op::Reduction;
use crate::report::Memory;
use crate::tensor_map::Element;

/// Types of a tensor map's elements that a reduction takes: with others an H100 ends with an illegal instruction (each reduction was tried there
/// with each type of 8 bits and more).
pub fn types(how: Reduction) -> &'static [Element] {
    use Element::{Bf16, F16, F32, F32Ftz, F64, S32, S64, Tf32, Tf32Ftz, U32, U64};
    match how {
        Reduction::Add => &[U32, S32, U64, F16, F32, F32Ftz, F64, Bf16, Tf32, Tf32Ftz],
        Reduction::Min | Reduction::Max => &[U32, S32, U64, S64, F16, Bf16],
        Reduction::And | Reduction::Or | Reduction::Xor => &[U32, S32, U64],
        Reduction::Inc | Reduction::Dec => &[U32],
    }
}

/// How a reduction is written.
fn name(how: Reduction) -> &'static str {
    match how {
        Reduction::Add => "add",
        Reduction::Min => "min",
        Reduction::Max => "max",
        Reduction::And => "and",
        Reduction::Or => "or",
        Reduction::Xor => "xor",
        Reduction::Inc => "inc",
        Reduction::Dec => "dec",
    }
}

impl Cluster<'_> {
    /// A reduction of elements that it does not take.
    pub fn reduction_of(&self, at: At, how: Reduction, element: Element) -> Result<(), Stop> {
        let types = types(how);
        if types.contains(&element) {
            return Ok(());
        }
        let list: Vec<&str> = types.iter().map(|known| known.name()).collect();
        let what = format!("a reduction by .{} of elements of type {}", name(how), element.name());
        let rule = "The type of a reduction's elements is the tensor map's (PTX ISA, cp.reduce.async.bulk.tensor); a GPU has each reduction for \
                    some types only, and ends with an illegal instruction for others (measured on an H100).";
        let help = format!("Use a tensor map with another type: .{} takes {}.", name(how), list.join(", "));
        Err(Some(Box::new(self.problem("tensor-map", at.site, what, rule, help))))
    }
}

/// What becomes of an element: what a scalar operation would make of it. Sums of F32_FTZ flush subnormals, those of FP32 keep them;
/// −0 is less than +0; a NaN that comes of none is 0x7FFF… (measured on an H200, silicon/reduce). Sums of TF32 are those of FP32, not rounded
/// (measured on an H100).
pub fn function(how: Reduction, element: Element) -> Update {
    use Element::{Bf16, F16, F32, F32Ftz, F64, S32, S64, Tf32, Tf32Ftz};
    use Reduction::{Add, And, Dec, Inc, Max, Min, Or, Xor};
    match (how, element) {
        (Add, F16) => |a, b, _| fp16::sum(a as u16, b as u16).into(),
        (Add, Bf16) => |a, b, _| brain::sum(a as u16, b as u16).into(),
        (Add, F32 | Tf32) => |a, b, _| bits(f(a as u32) + f(b as u32)).into(),
        (Add, F32Ftz | Tf32Ftz) => |a, b, _| bits_z(z(a as u32) + z(b as u32)).into(),
        (Add, F64) => |a, b, _| of_operands(d(a) + d(b), &[a, b]),
        (Add, _) => |a, b, _| a.wrapping_add(b),
        (Min, F16) => |a, b, _| fp16::extreme(a as u16, b as u16, false, false).into(),
        (Max, F16) => |a, b, _| fp16::extreme(a as u16, b as u16, true, false).into(),
        (Min, Bf16) => |a, b, _| brain::extreme(a as u16, b as u16, false, false).into(),
        (Max, Bf16) => |a, b, _| brain::extreme(a as u16, b as u16, true, false).into(),
        (Min, S32) => |a, b, _| (a as i32).min(b as i32) as u64,
        (Max, S32) => |a, b, _| (a as i32).max(b as i32) as u64,
        (Min, S64) => |a, b, _| (a as i64).min(b as i64) as u64,
        (Max, S64) => |a, b, _| (a as i64).max(b as i64) as u64,
        (Min, _) => |a, b, _| a.min(b),
        (Max, _) => |a, b, _| a.max(b),
        (And, _) => |a, b, _| a & b,
        (Or, _) => |a, b, _| a | b,
        (Xor, _) => |a, b, _| a ^ b,
        (Inc, _) => |a, b, _| if a >= b { 0 } else { a + 1 },
        (Dec, _) => |a, b, _| if a == 0 || a > b { b } else { a - 1 },
    }
}

impl Cluster<'_> {
    /// A reduction combines its elements with memory that nothing has written.
    pub fn reduces_nothing(&mut self, site: u32, what: &str) {
        let mut diagnostic = self.problem(
            "undefined-value-stored",
            site,
            format!("a reduction updates {what}, which nothing has written"),
            "A reduction reads what is there and combines its elements with it (PTX ISA, cp.reduce.async.bulk); memory holds unknown values until it is \
             written (PTX ISA 8.2.6).",
            "Set the destination to its first values before the launch, or store the first part and reduce the others.".into(),
        );
        diagnostic.severity = Severity::Finding;
        self.findings.add(diagnostic);
    }
}

/// Adds (or …) elements to memory, one after the other.
pub fn reduce(
    memory: &mut Memory,
    at: usize,
    data: &Memory,
    from: usize,
    len: usize,
    element: Element,
    how: Reduction,
) {
    let size = element.bytes() as usize;
    let update = function(how, element);
    for n in (0..len).step_by(size) {
        let (old, old_defined) = memory.load(at + n, size);
        let (new, new_defined) = data.load(from + n, size);
        let blank = memory.any_blank(at + n, size) || data.any_blank(from + n, size);
        let result = update(old as u64, new as u64, 0) & u64::MAX >> (64 - 8 * size);
        memory.store(at + n, size, result.into(), old_defined && new_defined);
        if blank {
            memory.mark_blank(at + n, size);
        }
    }
}
