//! The descriptors and addresses of an MMA: decoded, and checked against the memories.

use super::cluster::{Cluster, Stop};
use super::mma::{Inputs, Source};
use super::tensor::{InstructionDescriptor, Layout, SharedDescriptor};
use crate::order::{BLOCK, Footprint};
use crate::program::RESERVED_SHARED;
use crate::report::OperandRead;

impl Cluster<'_> {
    /// The descriptors and addresses of an MMA, checked.
    pub fn decode_mma(
        &mut self,
        site: u32,
        group: &[usize],
        inputs: &Inputs,
    ) -> Result<(InstructionDescriptor, Source, SharedDescriptor, u32), Stop> {
        let bad = |this: &Self, code, (found, allowed): (String, String), rule: &str| -> Stop {
            Some(Box::new(this.problem(code, site, found, rule, format!("Allowed: {allowed}."))))
        };
        let i = InstructionDescriptor::decode(inputs.idesc, group.len() as u32).map_err(|e| {
            bad(self, "instruction-descriptor", e, "The instruction descriptor follows PTX ISA 9.7.16.4.2; hardware raises an illegal instruction or computes something else.")
        })?;
        let matrix = |bits| {
            SharedDescriptor::decode(bits).map_err(|e| {
                bad(self, "matrix-descriptor", e, "The shared-memory descriptor follows PTX ISA 9.7.16.4.1.")
            })
        };
        let b = matrix(inputs.b)?;
        let a = match inputs.a {
            (false, bits) => Source::Shared(matrix(bits)?),
            (true, _) if i.a_mn_major => {
                let found = format!("the instruction descriptor {:#010x} says MN-major for A", inputs.idesc);
                let allowed = "A in tensor memory is K-major: bit 15 is 0".to_string();
                return Err(bad(
                    self,
                    "instruction-descriptor",
                    (found, allowed),
                    "A in tensor memory has one row a lane (PTX ISA 9.7.16.4.2).",
                ));
            }
            (true, address) => Source::Tensor(address as u32 & 0xffff),
        };
        let columns = Layout::of(i.m, group.len()).columns(i.n);
        let (lane, column) = (inputs.d >> 16, inputs.d & 0xffff);
        let of_a = match inputs.a {
            (true, address) => Some(("operand A", address as u32 >> 16, address as u32 & 0xffff, 8)),
            _ => None,
        };
        for (what, lane, column, columns) in std::iter::once(("accumulator", lane, column, columns)).chain(of_a) {
            let missing = group.iter().filter_map(|&g| self.ctas[g].tensor.unallocated(column, columns)).min();
            if lane == 0 && missing.is_none() {
                continue;
            }
            let why = match missing {
                Some(c) if lane == 0 => {
                    format!("it takes {columns} columns from {column} on, of which column {c} is not allocated")
                }
                _ => format!("it begins at lane {lane}; it must begin at lane 0"),
            };
            return Err(Some(Box::new(self.problem(
                "tensor-address",
                site,
                format!("the MMA's {what} is at {:#x}: {why}", lane << 16 | column),
                "What an MMA uses of tensor memory lies in columns that tcgen05.alloc gave (PTX ISA 9.7.16.7.1).",
                "Pass the address that tcgen05.alloc wrote, plus a column offset within the allocation.".into(),
            ))));
        }
        Ok((i, a, b, column))
    }

    /// The bytes that a descriptor covers, checked against the CTA's shared memory.
    pub fn read_range(
        &self,
        site: u32,
        cta: usize,
        which: &str,
        swizzle: u32,
        footprint: &Footprint,
        base: u64,
    ) -> Result<OperandRead, Stop> {
        let end = self.ctas[cta].shared.bytes.len() as u32;
        let (low, high) = footprint.bounds();
        let (low, high) = ((base * BLOCK + low) as u32, (base * BLOCK + high) as u32);
        if low < RESERVED_SHARED || high > end {
            return Err(Some(Box::new(self.problem(
                "out-of-bounds",
                site,
                format!("the descriptor of {which} covers shared memory from {low:#x} to {high:#x}, the CTA has {RESERVED_SHARED:#x} to {end:#x}"),
                "A matrix descriptor's tile lies within the CTA's shared memory (PTX ISA 9.7.16.4.1).",
                "Check start address (in units of 16 bytes), leading and stride offset.".into(),
            ))));
        }
        let (offset, end) = (self.dynamic_offset(low), self.dynamic_offset(high));
        Ok(OperandRead { offset, end, swizzle, elements: vec![] })
    }
}
