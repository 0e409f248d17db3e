//! Which bytes of shared memory are which bytes of a lane's registers in `ldmatrix` and `stmatrix` (PTX ISA 9.7.14.5.15, 9.7.14.5.16).
//!
//! Memory is rows of 16 bytes; each lane names where one of them lies. Between lanes and rows stands the fragment of the shape.

/// Shape and type of the matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixShape {
    /// `.m8n8`, `.b16`
    Halves { transposed: bool },
    /// `.m16n8.trans`, `.b8`, of `stmatrix`: a row of memory is a column of the matrix.
    TallBytes,
    /// `.m16n16.trans`, `.b8`, of `ldmatrix`: two registers of each matrix.
    SquareBytes,
}

/// A piece of a register, and where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The lane that names its row.
    pub row: usize,
    /// Its byte within the row.
    pub byte: usize,
}

impl MatrixShape {
    /// Bytes of an element.
    pub fn element(self) -> usize {
        if matches!(self, MatrixShape::Halves { .. }) { 2 } else { 1 }
    }

    /// Registers of one matrix.
    pub fn registers(self) -> usize {
        if self == MatrixShape::SquareBytes { 2 } else { 1 }
    }

    /// Lanes that name the rows behind this register, of those of the instruction.
    pub fn rows(self, register: usize) -> std::ops::Range<usize> {
        match self {
            MatrixShape::SquareBytes => register / 2 * 16..register / 2 * 16 + 16,
            _ => 8 * register..8 * register + 8,
        }
    }

    /// Where the n-th element of a lane's register lies.
    ///
    /// Of bytes, a lane holds neighbouring columns of the rows `lane / 4` and that plus 8: two of 8 in one register, or four of 16,
    /// in a register for each row.
    pub fn piece(self, register: usize, lane: usize, n: usize) -> Piece {
        let (group, place, first) = (lane / 4, lane % 4, self.rows(register).start);
        match self {
            MatrixShape::Halves { transposed } => {
                let (row, column) = (group, 2 * place + n);
                let (row, column) = if transposed { (column, row) } else { (row, column) };
                Piece { row: first + row, byte: 2 * column }
            }
            MatrixShape::TallBytes => Piece { row: first + 2 * place + n % 2, byte: group + n / 2 * 8 },
            MatrixShape::SquareBytes => Piece { row: first + 4 * place + n, byte: group + register % 2 * 8 },
        }
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
            (MatrixShape::SquareBytes, 4),
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
