//! Operands of the tensor core's instructions: `tcgen05.mma`, `tcgen05.cp`; and shapes of tensor memory.

use super::op::Address;

/// Operands of `tcgen05.mma`.
#[derive(Debug)]
pub struct MmaOp {
    /// `cta_group::2`
    pub pair: bool,
    /// Of which kind.
    pub kind: super::kind::Kind,
    /// The accumulator.
    pub d: Address,
    /// A.
    pub a: MmaA,
    /// Descriptor of B.
    pub b: u16,
    /// Instruction descriptor.
    pub idesc: u16,
    /// disable-output-lane: none, 4 or 8 registers.
    pub disabled: Vec<u16>,
    /// enable-input-d.
    pub accumulate: u16,
    /// Written as `!p`.
    pub accumulate_negated: bool,
    /// scale-input-d.
    pub scale: u32,
    /// Scale factors of A and of B, of kinds that have them.
    pub factors: Option<MmaFactors>,
    /// `.ws`: B stays, and rows of A go by.
    pub stationary: bool,
    /// `.collector::…`
    pub collector: Collector,
}

/// What an MMA does with which collector buffer (PTX ISA, tcgen05.mma, .collector_usage).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collector {
    /// That of A is 0; those of B are `b0` to `b3`, counted from 1.
    pub buffer: usize,
    pub usage: Usage,
}

/// What becomes of what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Usage {
    /// What an MMA does that says nothing.
    #[default]
    Discard,
    Fill,
    Use,
    LastUse,
}

impl Usage {
    pub fn name(self) -> &'static str {
        match self {
            Usage::Discard => "discard",
            Usage::Fill => "fill",
            Usage::Use => "use",
            Usage::LastUse => "lastuse",
        }
    }
}

impl Collector {
    /// There are one of A and four of B.
    pub const BUFFERS: [&str; 5] = ["a", "b0", "b1", "b2", "b3"];

    /// What a modifier says, of an MMA with or without `.ws`.
    pub fn named(modifier: &str, stationary: bool) -> Option<Collector> {
        let (buffer, usage) = modifier.strip_prefix("collector::")?.split_once("::")?;
        let buffer = Collector::BUFFERS.iter().position(|name| *name == buffer)?;
        let usage = [Usage::Discard, Usage::Fill, Usage::Use, Usage::LastUse]
            .into_iter()
            .find(|known| known.name() == usage)?;
        (stationary == (buffer > 0)).then_some(Collector { buffer, usage })
    }

    /// What an MMA does that says nothing.
    pub fn unsaid(stationary: bool) -> Collector {
        Collector { buffer: usize::from(stationary), usage: Usage::Discard }
    }

    /// The operand that its buffer holds.
    pub fn operand(self) -> &'static str {
        if self.buffer == 0 { "A" } else { "B" }
    }
}

/// Where `tcgen05.mma` finds scale factors in tensor memory.
#[derive(Debug)]
pub struct MmaFactors {
    /// Of a row of A, or of a column of B: 1, 2 or 4.
    pub each: u32,
    /// Those of A, and of B.
    pub at: [Address; 2],
}

/// Operands of `tcgen05.cp`.
#[derive(Clone, Copy, Debug)]
pub struct TensorCopyOp {
    /// `cta_group::2`
    pub pair: bool,
    /// The destination.
    pub d: Address,
    /// Descriptor of the source.
    pub s: u16,
    /// What goes where.
    pub shape: TensorCopyShape,
    /// What elements are unpacked, if they are.
    pub unpack: Option<Packed>,
}

/// Shape of a `tcgen05.cp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorCopyShape {
    /// `.128x256b`
    S128x256b,
    /// `.4x256b`
    S4x256b,
    /// `.128x128b`
    S128x128b,
    /// `.64x128b.warpx2::02_13`
    S64x128bFar,
    /// `.64x128b.warpx2::01_23`
    S64x128bNear,
    /// `.32x128b.warpx4`
    S32x128b,
}

/// Elements that take 8 bits each in tensor memory, and fewer in shared memory (PTX ISA 9.7.16.9.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packed {
    /// `.b4x16_p64`
    B4,
    /// `.b6x16_p32`
    B6,
}

impl TensorCopyShape {
    /// Rows of the source, and bytes of each.
    pub fn size(self) -> (u32, u32) {
        match self {
            TensorCopyShape::S128x256b => (128, 32),
            TensorCopyShape::S4x256b => (4, 32),
            TensorCopyShape::S128x128b => (128, 16),
            TensorCopyShape::S64x128bFar | TensorCopyShape::S64x128bNear => (64, 16),
            TensorCopyShape::S32x128b => (32, 16),
        }
    }

    /// The lanes that a row goes to (PTX ISA 9.7.16.9.2).
    pub fn lanes(self, row: u32) -> impl Iterator<Item = u32> {
        let (first, step, count) = match self {
            TensorCopyShape::S128x256b | TensorCopyShape::S128x128b => (row, 0, 1),
            TensorCopyShape::S4x256b => (32 * row, 0, 1),
            TensorCopyShape::S64x128bFar => (row, 64, 2),
            TensorCopyShape::S64x128bNear => (row / 32 * 64 + row % 32, 32, 2),
            TensorCopyShape::S32x128b => (row, 32, 4),
        };
        (0..count).map(move |n| first + n * step)
    }
}

/// A of `tcgen05.mma`.
#[derive(Debug)]
pub enum MmaA {
    /// A descriptor.
    Shared(u16),
    /// In tensor memory.
    Tensor(Address),
}

/// Shape of a `tcgen05.ld`/`st`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorShape {
    /// `.32x32b`
    S32x32b,
    /// `.16x64b`
    S16x64b,
    /// `.16x128b`
    S16x128b,
    /// `.16x256b`
    S16x256b,
    /// `.16x32bx2`: the upper 16 threads so many columns on
    S16x32bx2 { offset: u32 },
}

impl TensorShape {
    /// Lane (of the 32 or 16) and column that register `r` of thread `t` maps to. PTX ISA 9.7.16.2.3.1. `packed`: the first of
    /// the two columns that a register of two 16-bit values maps to; the distance of the halves counts columns all the same.
    pub fn cell(self, t: u32, r: u32, packed: bool) -> (u32, u32) {
        let wide = if packed { 2 } else { 1 };
        let (lane, column) = match self {
            TensorShape::S32x32b => (t, r),
            TensorShape::S16x64b => ((t >> 2) + 8 * (t & 1), 2 * r + ((t >> 1) & 1)),
            TensorShape::S16x128b => ((t >> 2) + 8 * (r & 1), (t & 3) + 4 * (r >> 1)),
            TensorShape::S16x256b => ((t >> 2) + 8 * ((r >> 1) & 1), 2 * (t & 3) + (r & 1) + 8 * (r >> 2)),
            TensorShape::S16x32bx2 { offset } => {
                return (t & 15, wide * r + if t >= 16 { offset } else { 0 });
            }
        };
        (lane, wide * column)
    }

    /// The columns that its parts begin at, from a first one on.
    pub fn starts(self, column: u32) -> Vec<u32> {
        match self {
            TensorShape::S16x32bx2 { offset } => vec![column, column.saturating_add(offset)],
            _ => vec![column],
        }
    }

    /// Lanes, and columns for each `.x1`, and registers for each `.x1`.
    pub fn size(self) -> (u32, u32, u32) {
        match self {
            TensorShape::S32x32b => (32, 1, 1),
            TensorShape::S16x64b => (16, 2, 1),
            TensorShape::S16x128b => (16, 4, 2),
            TensorShape::S16x256b => (16, 8, 4),
            TensorShape::S16x32bx2 { .. } => (16, 1, 1),
        }
    }
}
