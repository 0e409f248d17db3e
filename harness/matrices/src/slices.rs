//! What the MMAs of a kernel multiply, by slices of 16 columns: where each lies in its matrix, and which products have been computed.

use std::collections::HashMap;

/// Columns of A and B that one MMA takes.
pub const DEPTH: usize = 16;

/// Where the slices of a matrix's rows lie. Of two that hold the same, the later one counts.
#[derive(Clone, Debug, Default)]
pub struct Slices {
    of: HashMap<[u16; DEPTH], (usize, usize)>,
}

impl Slices {
    /// Of a matrix with rows of `k` elements.
    pub fn new(matrix: &[u16], k: usize) -> Slices {
        let mut of = HashMap::with_capacity(matrix.len() / DEPTH);
        for (row, line) in matrix.chunks_exact(k.max(1)).enumerate() {
            for (n, slice) in line.chunks_exact(DEPTH).enumerate() {
                slice.first_chunk().map(|slice| of.insert(*slice, (row, n * DEPTH)));
            }
        }
        Slices { of }
    }

    /// The row of a slice and the first of its columns. `None`: it is none of this matrix.
    pub fn find(&self, slice: &[u16]) -> Option<(usize, usize)> {
        self.of.get(<&[u16; DEPTH]>::try_from(slice).ok()?).copied()
    }

    /// The same of each slice of an operand, row after row.
    pub fn find_all(&self, operand: &[u16]) -> Vec<Option<(usize, usize)>> {
        operand.chunks(DEPTH).map(|slice| self.find(slice)).collect()
    }

    /// Whether an operand has a slice of this matrix.
    pub fn has_any_of(&self, operand: &[u16]) -> bool {
        operand.chunks(DEPTH).any(|slice| self.find(slice).is_some())
    }
}

/// Which MMA computed each product of a row of A, a row of B and a slice of their columns.
#[derive(Clone, Debug)]
pub struct Computed {
    /// The number of the MMA, from 1; 0 for none: those of a slice beside each other, row after row, since an MMA computes one slice.
    by: Vec<u32>,
    m: usize,
    n: usize,
}

impl Computed {
    /// None yet, of `m` rows of A, `n` rows of B and `k` columns.
    pub fn new(m: usize, n: usize, k: usize) -> Computed {
        Computed { by: vec![0; k / DEPTH * m * n], m, n }
    }

    /// An MMA of this number multiplies all of some rows of A by all of some rows of B, at the columns from `depth` on. The first of these products
    /// that one has computed before: its row, its column, and that one's number.
    pub fn add(&mut self, number: u32, rows: &[usize], columns: &[usize], depth: usize) -> Option<(usize, usize, u32)> {
        let mut again = None;
        for &row in rows {
            debug_assert!(row < self.m, "row {row} of {}", self.m);
            let of_row = &mut self.by[(depth / DEPTH * self.m + row) * self.n..][..self.n];
            for &column in columns {
                let by = &mut of_row[column];
                if *by != 0 && again.is_none() {
                    again = Some((row, column, *by));
                }
                *by = number;
            }
        }
        again
    }

    /// The first product that none has computed: its row, its column, and the first of the columns of A and B.
    pub fn missing(&self) -> Option<(usize, usize, usize)> {
        let slices = self.by.chunks_exact((self.m * self.n).max(1)).enumerate();
        let missing = slices.filter_map(|(n, slice)| Some((slice.iter().position(|by| *by == 0)?, n)));
        let (place, slice) = missing.min()?;
        Some((place / self.n, place % self.n, slice * DEPTH))
    }

    /// Who has computed the slices of an element of D.
    pub fn of(&self, row: usize, column: usize) -> Vec<u32> {
        let slices = self.by.chunks_exact((self.m * self.n).max(1));
        slices.map(|slice| slice[row * self.n + column]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_found_where_they_lie() {
        let matrix: Vec<u16> = (0..96).collect();
        let slices = Slices::new(&matrix, 32);
        assert_eq!(slices.find(&matrix[48..64]), Some((1, 16)));
        assert_eq!(slices.find_all(&matrix[60..82]), [None, None]);
        assert!(slices.has_any_of(&matrix[..16]) && !slices.has_any_of(&matrix[1..17]) && !slices.has_any_of(&[0; 15]));
    }

    #[test]
    fn a_product_is_computed_once() {
        let mut computed = Computed::new(2, 3, 32);
        assert_eq!(computed.add(1, &[0, 1], &[0, 2], 16), None);
        assert_eq!(computed.missing(), Some((0, 0, 0)));
        assert_eq!(computed.of(1, 2), [0, 1]);
        assert_eq!(computed.add(2, &[0, 1], &[1, 2], 16), Some((0, 2, 1)));
        assert_eq!(computed.add(3, &[0, 1], &[0, 1, 2], 0), None);
        assert_eq!((computed.missing(), computed.of(1, 1)), (None, vec![3, 2]));
    }
}
