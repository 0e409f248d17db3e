//! Which bytes of shared memory are which bytes of a lane's registers in `ldmatrix` and `stmatrix` (PTX ISA 9.7.14.5.15, 9.7.14.5.16).
//!
//! Memory is rows of 16 bytes; each lane names where one of them lies. Between lanes and rows stands the fragment of the shape.

use super::op::Packed;

/// Shape and type of the matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixShape {
    /// `.m8n8`, `.b16`
    Halves { transposed: bool },
    /// `.m16n8.trans`, `.b8`, of `stmatrix`: a row of memory is a column of the matrix.
    TallBytes,
    /// `.m16n16.trans`, of `ldmatrix`: two registers of each matrix. `.b8`, or `.b8x16` of padded elements.
    SquareBytes { packed: Option<Packed> },
    /// `.m8n16`, `.b8x16`, of `ldmatrix`: of padded elements.
    WideBytes { packed: Packed },
}

/// A piece of a register, and where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The lane that names its row.
    pub row: usize,
    /// Its byte within the row; of padded elements, which of the 16 it is.
    pub byte: usize,
}

impl MatrixShape {
    /// Bytes of an element.
    pub fn element(self) -> usize {
        if matches!(self, MatrixShape::Halves { .. }) { 2 } else { 1 }
    }

    /// Registers of one matrix.
    pub fn registers(self) -> usize {
        if matches!(self, MatrixShape::SquareBytes { .. }) { 2 } else { 1 }
    }

    /// What its rows hold in memory, if they hold padded elements.
    pub fn packed(self) -> Option<Packed> {
        match self {
            MatrixShape::SquareBytes { packed } => packed,
            MatrixShape::WideBytes { packed } => Some(packed),
            MatrixShape::Halves { .. } | MatrixShape::TallBytes => None,
        }
    }

    /// Lanes that name the rows behind this register, of those of the instruction.
    pub fn rows(self, register: usize) -> std::ops::Range<usize> {
        match self {
            MatrixShape::SquareBytes { .. } => register / 2 * 16..register / 2 * 16 + 16,
            _ => 8 * register..8 * register + 8,
        }
    }

    /// Where the n-th element of a lane's register lies.
    ///
    /// Of bytes, a lane holds neighbouring columns of the rows `lane / 4` and that plus 8: two of 8 in one register, or four of 16,
    /// in a register for each row. Of 8 rows of 16 it holds four columns.
    pub fn piece(self, register: usize, lane: usize, n: usize) -> Piece {
        let (group, place, first) = (lane / 4, lane % 4, self.rows(register).start);
        match self {
            MatrixShape::Halves { transposed } => {
                let (row, column) = (group, 2 * place + n);
                let (row, column) = if transposed { (column, row) } else { (row, column) };
                Piece { row: first + row, byte: 2 * column }
            }
            MatrixShape::TallBytes => Piece { row: first + 2 * place + n % 2, byte: group + n / 2 * 8 },
            MatrixShape::SquareBytes { .. } => Piece { row: first + 4 * place + n, byte: group + register % 2 * 8 },
            MatrixShape::WideBytes { .. } => Piece { row: first + group, byte: 4 * place + n },
        }
    }
}

impl Packed {
    /// Bytes of a row of 16 bytes that hold elements; behind them is padding.
    pub fn bytes(self) -> usize {
        16 * self.bits() / 8
    }

    /// The bits of an element.
    pub fn bits(self) -> usize {
        match self {
            Packed::B4 => 4,
            Packed::B6 => 6,
        }
    }

    /// The bytes that an element lies in, one or two, from the row's first on.
    pub fn place(self, element: usize) -> std::ops::RangeInclusive<usize> {
        self.bits() * element / 8..=(self.bits() * (element + 1) - 1) / 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte of every row belongs to one place in one register of one lane.
    #[test]
    fn fragments_cover_memory_once() {
        for (shape, registers) in [
            (MatrixShape::Halves { transposed: false }, 4),
            (MatrixShape::Halves { transposed: true }, 4),
            (MatrixShape::TallBytes, 4),
            (MatrixShape::SquareBytes { packed: None }, 4),
            (MatrixShape::WideBytes { packed: Packed::B4 }, 4),
        ] {
            let mut seen = [[false; 16]; 32];
            for register in 0..registers {
                for lane in 0..32 {
                    for n in 0..4 / shape.element() {
                        let Piece { row, byte } = shape.piece(register, lane, n);
                        assert!(shape.rows(register).contains(&row), "{shape:?}");
                        for taken in &mut seen[row][byte..byte + shape.element()] {
                            assert!(!*taken, "{shape:?}, row {row}, byte {byte}");
                            *taken = true;
                        }
                    }
                }
            }
            assert!(seen.iter().flatten().all(|taken| *taken), "{shape:?}");
        }
    }
}
