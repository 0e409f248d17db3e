//! The descriptors and addresses of an MMA: decoded, and checked against the memories.

use super::instruction_descriptor::has_sparsity_version;
use super::matrix_descriptor::BadDescriptor;
use super::{Inputs, Source};
use crate::diagnostic::{Diagnostic, Severity};
use crate::machine::arithmetic::formats::Format;
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::layout::boxes::{Laid, Which};
use crate::machine::layout::unshifted;
use crate::machine::tensor_memory::{InstructionDescriptor, SharedDescriptor, place};
use crate::order::{BLOCK, Footprint};
use crate::program::RESERVED_SHARED;
use crate::report::OperandRead;
use crate::tensor_map::Swizzle;
use smallvec::SmallVec;

/// The descriptors and addresses of an MMA.
pub struct Checked {
    pub descriptor: InstructionDescriptor,
    pub a: Source,
    pub b: SharedDescriptor,
    /// The accumulator's first lane and column.
    pub lane: u32,
    pub column: u32,
    /// The first columns of the scale factors of A and of B.
    pub factors: Option<[u32; 2]>,
}

/// The operands of an MMA of so many CTAs as each of them has them in shared memory: A, if it lies there, and B.
pub fn laid_operands(
    site: u32,
    i: &InstructionDescriptor,
    ctas: usize,
    (a, b): (&Source, SharedDescriptor),
) -> (Option<Laid>, Laid) {
    let laid = |which, d, rows, mn_major| Laid { which, d, rows: rows / ctas as u32, mn_major, site };
    let of_a = match *a {
        Source::Shared(a) => Some(laid(Which::A, a, i.m, i.a_mn_major)),
        Source::Tensor(_) => None,
    };
    (of_a, laid(Which::B, b, i.n, i.b_mn_major))
}

/// Columns that scale factors of so many rows take: a byte, two or four of a cell for each row, 32 rows a column.
pub fn factor_columns(rows: u32) -> u32 {
    rows.div_ceil(32)
}

/// Whether an operand can be read in this direction with this swizzle (PTX ISA 9.7.16.10.3).
fn check_direction(which: &str, format: Format, mn_major: bool, d: &SharedDescriptor) -> Result<(), BadDescriptor> {
    let tf32 = format == Format::Tf32;
    if !mn_major || d.wide == tf32 {
        return Ok(());
    }
    let code = match (d.swizzle, d.wide) {
        (128, true) => 1,
        (128, false) => 2,
        (64, _) => 4,
        (32, _) => 6,
        _ => 0,
    };
    let found =
        format!("the matrix descriptor of {which}, MN-major {}, has swizzle code {code} in bits 61–63", format.name());
    let allowed = if tf32 {
        "for MN-major operands of 32 bits: 1 (128 bytes, in atoms of 32)"
    } else {
        "for MN-major operands of 8 and 16 bits: 0 (none), 2 (128 bytes), 4 (64 bytes), 6 (32 bytes)"
    };
    Err((found, allowed.into()))
}

impl Cluster<'_> {
    /// What is said of an instruction descriptor that is read, but not written as the ISA has it: once.
    fn note_instruction_descriptor(&mut self, site: u32, inputs: &Inputs) {
        if !has_sparsity_version(inputs.idesc, inputs.kind) || self.findings.has_note("instruction-descriptor") {
            return;
        }
        let mut note = self.problem(
            "instruction-descriptor",
            site,
            format!("the instruction descriptor {:#010x} has 1 in bit 12", inputs.idesc),
            "With operands of 4 bits, bit 12 is zero (PTX ISA 9.7.16.4.2). CuTe DSL keeps a version of sparse MMAs there and writes 1 for \
             dense ones, too, where it says that B200s do not look at it: it is read all the same.",
            "Leave out 1 << 12; in CuTe DSL, build the descriptor with `sparsity_version=0`.".into(),
        );
        note.severity = Severity::Note;
        self.findings.add(note);
    }

    /// A base offset where it is not modelled: the run ends there, and is incomplete. It is a mistake where the operand begins in the first row of a pattern of
    /// shared addresses, whoever has written the tile: in the canonical layouts the first row of an operand is the first one of its pattern, and what the base
    /// offset counts of that is 0.
    pub fn stop_at_base_offset(&mut self, site: u32, cta: usize, inputs: &Inputs) -> Result<(), Stop> {
        let a = [("A", inputs.a.1)].into_iter().filter(|_| !inputs.a.0);
        for (which, bits) in a.chain([("B", inputs.b)]) {
            let Some((offset, row)) = SharedDescriptor::base_offset(bits) else { continue };
            if row == 0 {
                let mut found = self.problem(
                    "matrix-descriptor",
                    site,
                    format!(
                        "the matrix descriptor of {which}, {bits:#018x}, has a base offset of {offset}, and begins in the first row of its swizzle pattern"
                    ),
                    "The base offset is (pattern start address >> 7) & 7 of a pattern that does not begin at a multiple of 1024, 512 or 256 bytes; of one that does \
                     it is 0 (PTX ISA 9.7.16.4.1). The first row of an operand is the first one of its pattern (PTX ISA 9.7.16.3.3), also where the operand begins \
                     further on in that row, at a later slice of it.",
                    "Allowed: base offset 0 (bits 49–51).".into(),
                );
                let start = SharedDescriptor::places(bits).start;
                let brought = self.ctas[cta].loaded.tile(start).filter(|tile| tile.swizzle != Swizzle::None);
                let copy = brought.map(|tile| self.label(tile.site, "this copy has brought the tile"));
                found.labels.extend(copy);
                return Err(Some(Box::new(found)));
            }
            let place = self.place(site);
            self.not_modelled = Some(format!(
                "`{}` (line {}): the matrix descriptor of {which}, {bits:#018x}, has a base offset of {offset} (bits 49–51) and does not begin at a multiple of \
                 its swizzle pattern, which is not modelled; where the tile is aligned to its pattern (1024, 512 or 256 bytes), the base offset is 0",
                place.text, place.line
            ));
            return Err(None);
        }
        Ok(())
    }

    /// The descriptors and addresses of an MMA, checked.
    pub fn decode_mma(&mut self, site: u32, group: &[usize], inputs: &Inputs) -> Result<Checked, Stop> {
        let bad = |this: &Self, code, (found, allowed): (String, String), rule: &str| -> Stop {
            Some(Box::new(this.problem(code, site, found, rule, format!("Allowed: {allowed}."))))
        };
        let each = inputs.factors.map_or(0, |(each, _)| each);
        let i = InstructionDescriptor::decode(inputs.idesc, (inputs.kind, inputs.stationary), each, group.len() as u32).map_err(|e| {
            bad(self, "instruction-descriptor", e, "The instruction descriptor follows PTX ISA 9.7.16.4.2; hardware raises an illegal instruction or computes something else.")
        })?;
        let matrix = |which, bits, format: Format, mn_major| -> Result<SharedDescriptor, Stop> {
            let d = SharedDescriptor::decode(bits, format.elements(i.kind)).map_err(|e| {
                bad(self, "matrix-descriptor", e, "The shared-memory descriptor follows PTX ISA 9.7.16.4.1.")
            })?;
            check_direction(which, format, mn_major, &d).map_err(|e| {
                bad(self, "matrix-descriptor", e, "Which swizzles an operand can have depends on its direction and the size of its elements (PTX ISA 9.7.16.10.3).")
            })?;
            Ok(d)
        };
        let b = matrix("B", inputs.b, i.b, i.b_mn_major)?;
        let a = match inputs.a {
            (false, bits) => Source::Shared(matrix("A", bits, i.a, i.a_mn_major)?),
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
        self.note_instruction_descriptor(site, inputs);
        self.note_descriptor(site, "B", inputs.b);
        if let (false, bits) = inputs.a {
            self.note_descriptor(site, "A", bits);
        }
        let (of_a, of_b) = laid_operands(site, &i, group.len(), (&a, b));
        let operands = [of_a, Some(of_b)];
        if self.options.judges() {
            self.suspect_width(group, &i, operands);
        }
        let (first, column) = (inputs.d >> 16, inputs.d & 0xffff);
        let columns = i.layout(group.len(), first).columns(i.n);
        // 16 lanes of each quarter may be the first or the last ones of it (PTX ISA 9.7.16.10.5).
        let half = i.m == 64 && group.len() == 1 && !i.stationary;
        let mut parts = SmallVec::<[_; 4]>::from_iter([("accumulator", inputs.d >> 16, column, columns)]);
        if let (true, address) = inputs.a {
            parts.push(("operand A", address as u32 >> 16, address as u32 & 0xffff, 8));
        }
        if let Some((_, [a, b])) = inputs.factors {
            // Libraries keep the byte of the first factor in the two highest bits, as the instruction descriptor has it.
            let lane = |address: u32| address >> 16 & 0x3fff;
            parts.push(("scale factors of A", lane(a), a & 0xffff, factor_columns(i.m / group.len() as u32)));
            // Where each half of the lanes computes half of the columns, it has the factors of those.
            parts.push(("scale factors of B", lane(b), b & 0xffff, factor_columns(columns)));
        }
        for &(what, _, from, wide) in parts.iter().skip(1) {
            if from < column + columns && column < from + wide {
                let overlap = self.problem(
                    "operand-overlap",
                    site,
                    format!(
                        "columns {from} to {} of the MMA's {what} lie in its accumulator, which takes columns {column} to {}",
                        from + wide - 1,
                        column + columns - 1
                    ),
                    "Nothing orders what an MMA reads of tensor memory before what it writes there: the columns of its accumulator are none of \
                     its operands' (PTX ISA 9.7.16.6.1).",
                    "Let them begin behind the accumulator's last column, or in front of its first.".into(),
                );
                self.findings.add_in_accumulator(Diagnostic { severity: Severity::Finding, ..overlap });
            }
        }
        for (what, lane, column, columns) in parts {
            let missing = group.iter().filter_map(|&g| self.ctas[g].tensor.unallocated(column, columns)).min();
            let begins = lane == 0 || lane == 16 && half && !what.starts_with("scale");
            if begins && missing.is_none() {
                if lane != first && what == "operand A" {
                    return Err(Some(Box::new(self.lanes_apart(site, [lane, first]))));
                }
                continue;
            }
            let freed = missing.and_then(|c| group.iter().find_map(|&g| self.ctas[g].tensor.freed(c)));
            if let Some(freed) = freed.filter(|_| begins) {
                return Err(Some(Box::new(self.used_after_free("the MMA", group.len() > 1, column, site, freed))));
            }
            let mut operands = operands.iter().flatten();
            let wide = |laid| self.wider_than_what_was_copied(group[0], (&i, group.len()), laid);
            if let Some(told) = operands.find_map(wide).filter(|_| begins && what == "accumulator") {
                return Err(Some(Box::new(told)));
            }
            let (verb, pronoun) =
                if what.ends_with('r') || what.ends_with("d A") { ("is", "it") } else { ("are", "they") };
            let takes = if pronoun == "it" { "takes" } else { "take" };
            let why = match missing {
                Some(c) if begins => {
                    format!(
                        "{pronoun} {takes} {columns} columns from {column} on, of which column {c} is not allocated"
                    )
                }
                _ => {
                    let begins = if pronoun == "it" { "begins" } else { "begin" };
                    let or = if half && !what.starts_with("scale") { " or 16" } else { "" };
                    format!("{pronoun} {begins} at lane {lane}; {pronoun} must begin at lane 0{or}")
                }
            };
            return Err(Some(Box::new(self.problem(
                "tensor-address",
                site,
                format!("the MMA's {what} {verb} at {}: {why}", place(lane << 16 | column)),
                "What an MMA uses of tensor memory lies in columns that tcgen05.alloc gave (PTX ISA 9.7.16.7.1).",
                "Pass the address that tcgen05.alloc wrote, plus a column offset within the allocation.".into(),
            ))));
        }
        let factors = inputs.factors.map(|(_, at)| at.map(|address| address & 0xffff));
        Ok(Checked { descriptor: i, a, b, lane: first, column, factors })
    }

    /// A in tensor memory, and the accumulator, begin at different lanes.
    fn lanes_apart(&self, site: u32, [a, d]: [u32; 2]) -> Diagnostic {
        self.problem(
            "tensor-address",
            site,
            format!("the MMA's operand A begins at lane {a}, its accumulator at lane {d}"),
            "With M = 64 and one CTA, A in tensor memory and D have the same 16 lanes of each quarter: both begin at lane 0, or both at lane \
             16 (PTX ISA 9.7.16.10.5).",
            "Let A begin at the accumulator's lane.".into(),
        )
    }

    /// The bytes that a descriptor covers, checked against the CTA's shared memory.
    pub fn read_range(
        &self,
        site: u32,
        cta: usize,
        laid: &Laid,
        footprint: &Footprint,
        base: u64,
    ) -> Result<OperandRead, Stop> {
        let (which, swizzle) = (laid.which, laid.d.swizzle);
        let end = self.ctas[cta].shared.bytes.len() as u32;
        let (low, high) = footprint.bounds();
        let (low, high) = ((base * BLOCK + low) as u32, (base * BLOCK + high) as u32);
        if low < RESERVED_SHARED || high > end {
            if let Some(told) = self.steps_too_far(cta, laid) {
                return Err(Some(Box::new(told)));
            }
            let help = match self.is_unshifted(cta, laid) {
                true => unshifted::HELP.into(),
                false => self
                    .misled(cta, laid)
                    .map(|misled| misled.help())
                    .or_else(|| self.may_be_turned(cta, laid))
                    .unwrap_or_else(|| {
                        "Check start address (bits 0 to 13: the address divided by 16), leading and stride offset."
                            .into()
                    }),
            };
            return Err(Some(Box::new(self.problem(
                "out-of-bounds",
                site,
                format!("the descriptor of {which} covers shared memory from {low:#x} to {high:#x}, the CTA has {RESERVED_SHARED:#x} to {end:#x}"),
                "A matrix descriptor's tile lies within the CTA's shared memory (PTX ISA 9.7.16.4.1).",
                help,
            ))));
        }
        let (offset, end) = (self.dynamic_offset(low), self.dynamic_offset(high));
        Ok(OperandRead { offset, end, swizzle, ..OperandRead::default() })
    }
}
