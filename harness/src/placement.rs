//! Where A, B and D lie in global memory, and what a launch refuses of it.

use crate::problem::Problem;
use crate::source::Matrix;
use emulator::{Diagnostic, Severity};
use ptx::Dtype;
use std::fmt;

/// A matrix in global memory, row after row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Its first byte.
    pub address: u64,
    /// Rows.
    pub rows: u64,
    /// Columns.
    pub columns: u64,
    /// Bytes from one row to the next.
    pub row_bytes: u64,
    /// Type of an element.
    pub dtype: Dtype,
}

/// A, B and D in global memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// m × k.
    pub a: Placed,
    /// n × k.
    pub b: Placed,
    /// m × n.
    pub d: Placed,
}

/// Why a launch is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What is wrong, in a sentence without a full stop.
    pub title: String,
    /// The rule that it breaks.
    pub rule: &'static str,
    /// One thing to try.
    pub help: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\nrule: {}\ntry: {}", self.title, self.rule, self.help)
    }
}

impl std::error::Error for Refused {}

impl Refused {
    /// As what a run says that could not begin.
    pub(crate) fn diagnostic(&self) -> Diagnostic {
        Diagnostic {
            code: "launch",
            severity: Severity::Error,
            title: self.title.clone(),
            labels: Vec::new(),
            rule: self.rule.to_string(),
            help: self.help.clone(),
            count: 1,
            confirmed: None,
        }
    }
}

/// Bytes that threads and TMA move at once.
const CHUNK: u64 = 16;
/// The judge's matrices begin at multiples of this, as `cudaMalloc` gives them.
const ALIGNMENT: u64 = 256;

const TYPE: &str = "A, B and D are of the one type that the kernel was built for.";
const EXTENT: &str = "A is M × K, B is N × K, D is M × N.";
const STRIDE: &str = "The rows of a matrix lie one after the other: a kernel takes no stride.";
const ALIGNED: &str = "Threads and TMA move 16 bytes at once, from addresses that are multiples of 16 (PTX ISA 6.4.1).";
const APART: &str = "A kernel reads A and B while it writes D, in any order.";

impl Placed {
    /// Bytes of an element.
    pub const ELEMENT: u64 = 2;

    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.rows.saturating_mul(self.row_bytes)
    }

    fn end(&self) -> u64 {
        self.address.saturating_add(self.bytes())
    }
}

impl Placement {
    /// One after the other without gaps in a row: as the judge places them.
    pub fn of(problem: &Problem) -> Placement {
        let mut next = ALIGNMENT;
        let mut place = |rows: u32, columns: u32| {
            let (rows, columns) = (u64::from(rows), u64::from(columns));
            let row_bytes = columns * Placed::ELEMENT;
            let placed = Placed { address: next, rows, columns, row_bytes, dtype: problem.dtype };
            next = placed.end().next_multiple_of(ALIGNMENT);
            placed
        };
        let Problem { m, n, k, .. } = *problem;
        Placement { a: place(m, k), b: place(n, k), d: place(m, n) }
    }

    /// Where a matrix lies.
    pub fn matrix(&self, matrix: Matrix) -> &Placed {
        match matrix {
            Matrix::A => &self.a,
            Matrix::B => &self.b,
            Matrix::D => &self.d,
        }
    }

    /// Whether a kernel that was built for this problem can be launched on these matrices.
    ///
    /// # Errors
    /// The first thing that it could not bear: another type or size, rows with gaps, an address or a row that is misaligned, D over
    /// A or B.
    pub fn check(&self, problem: &Problem) -> Result<(), Refused> {
        let wanted = Placement::of(problem);
        for matrix in [Matrix::A, Matrix::B, Matrix::D] {
            check(matrix, self.matrix(matrix), wanted.matrix(matrix))?;
        }
        for matrix in [Matrix::A, Matrix::B] {
            let other = self.matrix(matrix);
            if self.d.address < other.end() && other.address < self.d.end() {
                return Err(Refused {
                    title: format!(
                        "D (bytes {:#x} to {:#x}) overlaps {matrix} (bytes {:#x} to {:#x})",
                        self.d.address,
                        self.d.end() - 1,
                        other.address,
                        other.end() - 1
                    ),
                    rule: APART,
                    help: "Give D memory of its own.".to_string(),
                });
            }
        }
        Ok(())
    }
}

fn check(matrix: Matrix, found: &Placed, wanted: &Placed) -> Result<(), Refused> {
    let refused = |title: String, rule: &'static str, help: String| Err(Refused { title, rule, help });
    if found.dtype != wanted.dtype {
        let title = format!("{matrix} is of type {}; the kernel was built for {}", found.dtype, wanted.dtype);
        return refused(
            title,
            TYPE,
            format!("Convert {matrix} to {}, or build the kernel for its type.", wanted.dtype),
        );
    }
    if (found.rows, found.columns) != (wanted.rows, wanted.columns) {
        let title = format!(
            "{matrix} is {} x {}; the kernel was built for {} x {}",
            found.rows, found.columns, wanted.rows, wanted.columns
        );
        return refused(title, EXTENT, "Build the kernel for the size of the matrices.".to_string());
    }
    if found.row_bytes != wanted.row_bytes {
        let title = format!(
            "rows of {matrix} are {} bytes apart; {} elements of 2 bytes take {}",
            found.row_bytes, found.columns, wanted.row_bytes
        );
        return refused(title, STRIDE, format!("Copy {matrix} to memory in which its rows have no gaps."));
    }
    if !found.address.is_multiple_of(CHUNK) {
        let title = format!(
            "{matrix} begins at address {:#x}, {} bytes after a multiple of 16",
            found.address,
            found.address % CHUNK
        );
        return refused(title, ALIGNED, format!("Place {matrix} at a multiple of 16."));
    }
    if !found.row_bytes.is_multiple_of(CHUNK) {
        let title = format!("rows of {matrix} have {} bytes, which is no multiple of 16", found.row_bytes);
        return refused(title, ALIGNED, format!("Pad {matrix} to a multiple of 8 columns."));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROBLEM: Problem = Problem::f16(256, 128, 64);

    /// What the launch says after one change to what the judge itself launches.
    #[track_caller]
    fn title(change: impl Fn(&mut Placement)) -> String {
        let mut placement = Placement::of(&PROBLEM);
        assert_eq!(placement.check(&PROBLEM), Ok(()), "before the change");
        change(&mut placement);
        let refused = placement.check(&PROBLEM).expect_err("this must be refused");
        assert!(
            refused.help.ends_with('.') && refused.rule.ends_with('.') && !refused.title.ends_with('.'),
            "{refused}"
        );
        refused.title
    }

    #[test]
    fn what_no_kernel_bears_is_refused_with_a_sentence() {
        assert_eq!(title(|p| p.b.dtype = Dtype::Bf16), "B is of type bf16; the kernel was built for f16");
        assert_eq!(title(|p| p.a.rows = 255), "A is 255 x 64; the kernel was built for 256 x 64");
        assert_eq!(title(|p| p.d.columns = 64), "D is 256 x 64; the kernel was built for 256 x 128");
        assert_eq!(title(|p| p.a.row_bytes = 144), "rows of A are 144 bytes apart; 64 elements of 2 bytes take 128");
        assert_eq!(title(|p| p.d.row_bytes = 0), "rows of D are 0 bytes apart; 128 elements of 2 bytes take 256");
        assert_eq!(title(|p| p.d.address += 8), "D begins at address 0xc108, 8 bytes after a multiple of 16");
    }

    /// A (0x100 to 0x80ff), B (0x8100 to 0xc0ff), D (0xc100 to 0x1c0ff).
    #[test]
    fn d_overlaps_neither_a_nor_b() {
        assert_eq!(title(|p| p.d.address = 0xc0f0), "D (bytes 0xc0f0 to 0x1c0ef) overlaps B (bytes 0x8100 to 0xc0ff)");
        assert_eq!(
            title(|p| p.d = Placed { address: p.a.address, ..p.d }),
            "D (bytes 0x100 to 0x100ff) overlaps A (bytes 0x100 to 0x80ff)"
        );
        assert_eq!(
            title(|p| p.a.address = 0x1c0f0),
            "D (bytes 0xc100 to 0x1c0ff) overlaps A (bytes 0x1c0f0 to 0x240ef)"
        );
        // Up against each other is no overlap; A and B are only read, and may be one matrix.
        let mut touching = Placement::of(&PROBLEM);
        touching.a.address = touching.d.end();
        touching.b.address = touching.a.address;
        assert_eq!(touching.check(&PROBLEM), Ok(()));
        // The end of the address space is no reason to panic.
        touching.d.address = u64::MAX - 15;
        assert_eq!(touching.check(&PROBLEM), Ok(()));
    }

    #[test]
    fn the_judge_places_what_every_step_has_to_solve() {
        for step in crate::STEPS {
            let cases = step.cases.iter().map(|case| &case.problem);
            for problem in step.sizes.iter().chain(cases).chain([&step.observed.problem, &step.timed]) {
                assert_eq!(Placement::of(problem).check(problem), Ok(()), "step {}, {problem}", step.number);
            }
        }
        let narrow = Problem::f16(128, 12, 64);
        let refused = Placement::of(&narrow).check(&narrow).expect_err("12 columns take 24 bytes");
        assert_eq!(refused.title, "rows of D have 24 bytes, which is no multiple of 16");
    }
}
