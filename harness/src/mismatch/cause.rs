//! What explains a wrong D, in words.

use super::Extent;
use ptx::Dtype;
use std::fmt;

/// What explains the wrong elements.
#[derive(Clone, Debug, PartialEq)]
pub enum Cause {
    /// They were never written.
    NeverWritten,
    /// They were written, with values that were never computed.
    Undefined,
    /// They are NaN.
    NotANumber,
    /// They are zero.
    Zero,
    /// They are all this number.
    Constant(f32),
    /// It is its own transpose; of a D of several tiles, each of them by itself.
    Transposed {
        /// The latter.
        by_tiles: bool,
    },
    /// Some columns of A and B (first, last) count not once but so often in the sum.
    Slices(Vec<Slice>),
    /// In these K tiles the MMAs read what their stage of the pipeline held before: the tiles of as many rounds earlier as there are
    /// stages.
    Stale {
        /// First and last of their columns of A and B.
        columns: (usize, usize),
        /// Stages.
        stages: usize,
        /// First row and column of the tile of D that what was read belongs to, if it is another one.
        of: Option<(usize, usize)>,
    },
    /// The last K tiles of A and B, columns from this one to that, do not count in the sum.
    EndOfK(usize, usize),
    /// An operand's 16-byte chunks are permuted as by a missing (or extra) 128-byte swizzle.
    Swizzle {
        /// A's are.
        a: bool,
        /// B's are.
        b: bool,
    },
    /// D's own 16-byte chunks are.
    SwizzledD,
    /// Its rows are those of D, in other places: this row holds what belongs in that one.
    RowsMoved {
        /// Row of D.
        row: usize,
        /// The row whose content it holds.
        holds: usize,
    },
    /// Its columns are those of D, in other places.
    ColumnsMoved {
        /// Column of D.
        column: usize,
        /// The column whose content it holds.
        holds: usize,
        /// What all the moves have in common.
        pattern: Moves,
    },
    /// Its numbers are right in another type than D's.
    OtherType(Dtype),
    /// It holds what belongs in the tile at this row and column.
    OtherTile {
        /// First row.
        row: usize,
        /// First column.
        column: usize,
    },
    /// It is the right result with something added that is not part of the product.
    Added,
    /// It is the right result, but not accurate enough.
    Imprecise,
    /// Nothing that we know.
    Unexplained,
}

/// What moves of columns have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moves {
    /// All by the same distance.
    Shift,
    /// Each column changes places with its neighbour.
    Pairs,
    /// Groups of eight stay together.
    Groups,
    /// Nothing.
    Any,
}

/// Columns of A and B that do not count once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// First column.
    pub first: usize,
    /// Last column.
    pub last: usize,
    /// How often they count.
    pub times: u32,
}

/// Elements of a 16-byte chunk of D.
const CHUNK: usize = 8;

impl Cause {
    /// One thing to try.
    pub(super) fn help(&self, extent: &Extent) -> Option<&'static str> {
        Some(match self {
            Cause::NeverWritten => match extent {
                Extent::Rows { .. } | Extent::Warps { .. } => {
                    "Check the row of each thread's stores: thread i of a warpgroup has row i of the tile, not lane i of its \
                     warp."
                }
                Extent::Columns { .. } | Extent::Block { .. } => {
                    "Check the column of each store: over all loads of tensor memory together, it must reach every column of \
                     the tile."
                }
                _ => "Check which rows and columns of D the stores cover.",
            },
            Cause::Undefined | Cause::NotANumber => {
                "Look for what was read before it was written: an operand in shared memory, or the accumulator (the first \
                 MMA must not accumulate)."
            }
            Cause::Zero => "Check that the MMA's result, not a fresh register, is what is converted and stored.",
            Cause::Constant(_) => {
                "Store what was loaded from tensor memory: these numbers depend on nothing that was computed."
            }
            Cause::Transposed { .. } => "Check the strides of the stores to D, and which operand is A and which is B.",
            Cause::Slices(slices) if slices.iter().all(|slice| slice.times == 0) => {
                "Check the accumulate flag (off for the first MMA only), and that the MMAs' descriptors step through all of \
                 K."
            }
            Cause::Slices(_) => {
                "Check that each MMA's descriptors step on by its own K slice, and that none is issued twice."
            }
            Cause::Stale { .. } => {
                "Wait for the barrier of the stage before its MMAs, for the phase of this very round: phases go on from round to round \
                 and from tile to tile."
            }
            Cause::EndOfK(..) => {
                "Check where K ends: `gemm.tiles_k(BLK_K)` rounds cover it, the last one perhaps in part, with an MMA for each 16 \
                 columns of a tile."
            }
            Cause::Swizzle { .. } => {
                "Store the 16-byte chunk c of row r at chunk c ^ (r % 8), as `tile.at(row, column)` does, and build the \
                 descriptor for the same swizzle."
            }
            Cause::SwizzledD => "Address D's tile with the swizzle on both sides, or on neither.",
            Cause::RowsMoved { .. } => {
                "Check the row of each thread's stores: thread i of a warpgroup has row i of the tile, not lane i of its warp."
            }
            Cause::ColumnsMoved { pattern: Moves::Pairs, .. } => {
                "Pack the lower column into the lower half of a register: `k.pack(dtype, low, high)`."
            }
            Cause::ColumnsMoved { .. } => {
                "Check the column of each store: the eight columns from c on belong at `gemm.d.at(row, c)`."
            }
            Cause::OtherType(_) => "Round to the type of the problem: `k.pack_chunks(gemm.dtype, …)`.",
            Cause::OtherTile { .. } => "Check how the CTA's index becomes the row and the column of its tile.",
            Cause::Added => {
                "Check the accumulate flag of the first MMA: it must be off, so that it starts from nothing."
            }
            Cause::Imprecise => "Keep the sum in FP32 until the end, and round once.",
            Cause::Unexplained => return None,
        })
    }
}

impl fmt::Display for Cause {
    /// Continues "all of D …".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::NeverWritten => f.write_str("was never written"),
            Cause::Undefined => f.write_str("holds values that were never computed"),
            Cause::NotANumber => f.write_str("is NaN: something that was never written went into the sum"),
            Cause::Zero => f.write_str("is zero"),
            Cause::Constant(value) => write!(f, "is constant: {value} everywhere"),
            Cause::Transposed { by_tiles: false } => {
                f.write_str("is transposed: it holds at (i, j) what belongs at (j, i)")
            }
            Cause::Transposed { by_tiles: true } => {
                f.write_str("is transposed tile by tile: each holds at its (i, j) what belongs at its (j, i)")
            }
            Cause::Slices(slices) => {
                f.write_str("fits a sum in which ")?;
                for (index, slice) in slices.iter().enumerate() {
                    let gap = if index == 0 { "" } else { ", and " };
                    write!(f, "{gap}K columns {} to {} ", slice.first, slice.last)?;
                    match slice.times {
                        0 => f.write_str("are missing")?,
                        2 => f.write_str("count twice")?,
                        times => write!(f, "count {times} times")?,
                    }
                }
                Ok(())
            }
            Cause::Stale { columns: (first, last), stages, of } => {
                write!(
                    f,
                    "fits a product whose K columns {first} to {last} were read from a stale stage: it held what was loaded {stages} round{} \
                     earlier",
                    if *stages == 1 { "" } else { "s" }
                )?;
                match of {
                    Some((row, column)) => write!(f, ", for the tile at row {row}, column {column}"),
                    None => Ok(()),
                }
            }
            Cause::EndOfK(first, last) => write!(f, "fits a sum in which K columns {first} to {last} are missing"),
            Cause::Swizzle { a, b } => {
                let which = match (a, b) {
                    (true, true) => "A and B were",
                    (true, false) => "A was",
                    _ => "B was",
                };
                write!(
                    f,
                    "fits a product for which {which} stored without the 128-byte swizzle that the descriptor promises \
                     (or the other way round)"
                )
            }
            Cause::SwizzledD => {
                f.write_str("holds the right numbers, permuted within each row by the 128-byte swizzle")
            }
            Cause::RowsMoved { row, holds } => {
                write!(f, "holds the right rows in other places: row {row} holds what belongs in row {holds}")
            }
            Cause::ColumnsMoved { column, holds, pattern } => match pattern {
                Moves::Pairs => write!(
                    f,
                    "holds neighbouring columns the other way round: column {column} holds what belongs in column {holds}"
                ),
                Moves::Shift => write!(
                    f,
                    "holds what belongs {} columns further {}: column {column} holds what belongs in column {holds}",
                    column.abs_diff(*holds),
                    if holds > column { "right" } else { "left" }
                ),
                Moves::Groups => write!(
                    f,
                    "holds its groups of {CHUNK} columns in other places: the group from column {column} on holds what \
                     belongs from column {holds} on"
                ),
                Moves::Any => write!(
                    f,
                    "holds the right columns in other places: column {column} holds what belongs in column {holds}"
                ),
            },
            Cause::OtherType(dtype) => write!(f, "holds numbers that are right in {dtype}, which is not the type of D"),
            Cause::OtherTile { row, column } => {
                write!(f, "holds what belongs in the tile at row {row}, column {column}")
            }
            Cause::Added => f.write_str("fits the right result with something else added to it"),
            Cause::Imprecise => f.write_str("is near the right result, but not within the tolerance"),
            Cause::Unexplained => f.write_str("is wrong in a way that fits no mistake that we know"),
        }
    }
}
