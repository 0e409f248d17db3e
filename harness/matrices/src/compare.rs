//! Whether D is right: element by element.

use crate::inputs::decode;
use crate::reference::Reference;
use emulator::Memory;

/// What became of an element of D.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// It is what it must be.
    Right,
    /// It is another number.
    Wrong,
    /// It is not a number.
    NotANumber,
    /// The kernel never wrote it (or wrote something undefined).
    Unwritten,
}

/// D as the kernel left it, held against the reference.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Rows of D.
    pub rows: usize,
    /// Columns of D.
    pub columns: usize,
    /// D as numbers.
    pub found: Vec<f32>,
    /// What became of each element.
    pub elements: Vec<Element>,
}

impl Comparison {
    /// Holds `memory` (the buffer of D after the run) against the reference.
    pub fn new(reference: &Reference, memory: &Memory) -> Comparison {
        let problem = reference.problem;
        let (rows, columns) = (problem.m as usize, problem.n as usize);
        let mut found = Vec::with_capacity(rows * columns);
        let mut elements = Vec::with_capacity(rows * columns);
        for (index, expected) in reference.values.iter().enumerate() {
            let byte = 2 * index;
            let bits = match memory.bytes.get(byte..byte + 2) {
                Some(&[low, high]) => u16::from_le_bytes([low, high]),
                _ => u16::MAX,
            };
            let value = decode(problem.dtype, bits);
            found.push(value);
            elements.push(if !(memory.is_defined(byte) && memory.is_defined(byte + 1)) {
                Element::Unwritten
            } else if value.is_nan() {
                Element::NotANumber
            } else if reference.accepts(*expected, value) {
                Element::Right
            } else {
                Element::Wrong
            });
        }
        Comparison { rows, columns, found, elements }
    }

    /// Every element is right.
    pub fn is_right(&self) -> bool {
        self.elements.iter().all(|element| *element == Element::Right)
    }

    /// How many elements are of this sort.
    pub fn count(&self, sort: Element) -> usize {
        self.elements.iter().filter(|element| **element == sort).count()
    }

    /// What became of this element.
    pub fn at(&self, row: usize, column: usize) -> Element {
        self.elements[row * self.columns + column]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::{InputKind, Inputs, encode, to_bytes};
    use crate::problem::Problem;
    use ptx::Dtype;

    #[test]
    fn says_of_each_element_what_became_of_it() {
        let one = encode(Dtype::F16, 1.0);
        let inputs =
            Inputs { problem: Problem::f16(1, 4, 1), kind: InputKind::Normal, seed: 0, a: vec![one], b: vec![one; 4] };
        let reference = Reference::new(&inputs);
        let d = [one, encode(Dtype::F16, 2.0), encode(Dtype::F16, f32::NAN), one];
        // The last element's high byte was never written.
        let memory = Memory { bytes: to_bytes(&d).into(), defined: vec![0b0111_1111], blank: vec![] };
        let comparison = Comparison::new(&reference, &memory);
        use Element::*;
        assert_eq!(comparison.elements, [Right, Wrong, NotANumber, Unwritten]);
        assert!(!comparison.is_right());
        // A buffer that is too short is no reason to panic.
        assert_eq!(Comparison::new(&reference, &Memory::default()).count(Unwritten), 4);
    }
}
