//! Whether a D that a GPU computed is right: small ones against FP64, element by element; large ones against cuBLAS, and both
//! against FP64 samples.

use super::work::{Checked, WrongElement};
use crate::compare::{Comparison, Element};
use crate::inputs::{Inputs, Random, decode};
use crate::problem::Problem;
use crate::reference::{Reference, tolerance};
use emulator::Memory;

/// Problems with more multiplications take a CPU too long.
const LARGE: u64 = 1 << 31;
/// Elements that are computed in FP64 for a large one.
const SAMPLES: u64 = 4096;

/// Whether a problem is too large for a CPU.
pub(super) fn is_large(problem: &Problem) -> bool {
    problem.products() > LARGE
}

/// D as memory: an element that still holds the poison was never written. No conversion gives its bits: a NaN that is computed has
/// others (PTX ISA, cvt: canonical NaN).
pub(crate) fn memory(d: Vec<u8>) -> Memory {
    let mut defined = vec![0u64; d.len().div_ceil(64)];
    for (n, element) in d.chunks_exact(2).enumerate() {
        if element != [0xff, 0xff] {
            defined[2 * n / 64] |= 3 << (2 * n % 64);
        }
    }
    Memory { bytes: d.into(), defined, blank: Vec::new() }
}

/// Looks at every element of D. `product` is what cuBLAS computes, for a large problem; or why there is none.
pub(super) fn verify(inputs: &Inputs, d: &[u8], product: Result<&[u8], &str>) -> Checked {
    if is_large(&inputs.problem) { large(inputs, d, product) } else { small(inputs, d) }
}

fn small(inputs: &Inputs, d: &[u8]) -> Checked {
    let reference = Reference::new(inputs);
    let comparison = Comparison::new(&reference, &memory(d.to_vec()));
    let wrong = |element: &Element| *element != Element::Right;
    let first = comparison.elements.iter().position(wrong).map(|index| WrongElement {
        row: (index / comparison.columns) as u64,
        column: (index % comparison.columns) as u64,
        found: match comparison.elements[index] {
            Element::Unwritten => "never written".to_string(),
            _ => comparison.found[index].to_string(),
        },
        expected: reference.values[index],
    });
    let count = comparison.elements.iter().filter(|element| wrong(element)).count();
    Checked {
        against: "FP64".to_string(),
        wrong: (count as u64, comparison.elements.len() as u64),
        first,
        ..Checked::default()
    }
}

fn large(inputs: &Inputs, d: &[u8], product: Result<&[u8], &str>) -> Checked {
    let Problem { m, n, k, dtype } = inputs.problem;
    let (all, columns, k) = (u64::from(m) * u64::from(n), u64::from(n), k as usize);
    let exact = inputs.kind.is_exact();
    let bits = |matrix: &[u8], index: u64| {
        let at = 2 * index as usize;
        matrix.get(at..at + 2).map_or(u16::MAX, |bytes| u16::from_le_bytes([bytes[0], bytes[1]]))
    };
    let mut checked = Checked { wrong: (0, all), ..Checked::default() };
    let mut tell = |index: u64, expected: f64| {
        let found = bits(d, index);
        checked.wrong.0 += 1;
        checked.first.get_or_insert_with(|| WrongElement {
            row: index / columns,
            column: index % columns,
            found: if found == u16::MAX { "never written".to_string() } else { decode(dtype, found).to_string() },
            expected,
        });
    };
    // Samples in FP64. Integers of ours have exact sums, rounded once.
    let sum = |index: u64| -> f64 {
        let (row, column) = ((index / columns) as usize, (index % columns) as usize);
        let (a, b) = (&inputs.a[row * k..][..k], &inputs.b[column * k..][..k]);
        a.iter().zip(b).map(|(a, b)| f64::from(decode(dtype, *a)) * f64::from(decode(dtype, *b))).sum()
    };
    let near = |expected: f64, found: u16| {
        let value = decode(dtype, found);
        match exact {
            true => value == decode(dtype, crate::inputs::encode(dtype, expected as f32)),
            false => (f64::from(value) - expected).abs() <= tolerance(dtype, expected),
        }
    };
    let mut random = Random::new(inputs.seed ^ 0x5a4d);
    let corners = [0, columns - 1, all - columns, all - 1];
    let samples: Vec<u64> = corners.into_iter().chain((0..SAMPLES).map(|_| random.below(all))).collect();
    let mut trusted = product.ok();
    for &index in &samples {
        let expected = sum(index);
        // A cuBLAS that is wrong is no yardstick.
        if product.is_ok_and(|product| !near(expected, bits(product, index))) {
            trusted = None;
        }
        if !near(expected, bits(d, index)) {
            tell(index, expected);
        }
    }
    checked.against = match (product, trusted) {
        (_, Some(_)) => format!("cuBLAS, and {} samples in FP64", samples.len()),
        (Ok(_), None) => format!("{} samples in FP64 (cuBLAS was wrong at one)", samples.len()),
        (Err(why), _) => format!("{} samples in FP64 ({why})", samples.len()),
    };
    // Every element: against cuBLAS; without it, that it was written and is a number.
    let mut wrong = Checked { wrong: (0, all), ..Checked::default() };
    for index in 0..all {
        let found = bits(d, index);
        let expected = trusted.map(|product| f64::from(decode(dtype, bits(product, index))));
        let right = match expected {
            // Sums in another order differ by as much as the tolerance on both sides.
            Some(expected) if !exact => {
                (f64::from(decode(dtype, found)) - expected).abs() <= 2.0 * tolerance(dtype, expected)
            }
            Some(expected) => f64::from(decode(dtype, found)) == expected,
            None => !decode(dtype, found).is_nan(),
        };
        if !right {
            wrong.wrong.0 += 1;
            wrong.first.get_or_insert_with(|| WrongElement {
                row: index / columns,
                column: index % columns,
                found: if found == u16::MAX { "never written".to_string() } else { decode(dtype, found).to_string() },
                expected: expected.unwrap_or_else(|| sum(index)),
            });
        }
    }
    match wrong.wrong.0 {
        0 => checked,
        _ => Checked { against: checked.against, ..wrong },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::{InputKind, encode, to_bytes};

    /// D as it must be, of a problem that counts as large only where a test says so.
    fn right(inputs: &Inputs) -> Vec<u8> {
        let reference = Reference::new(inputs);
        to_bytes(&reference.values.iter().map(|v| encode(inputs.problem.dtype, *v as f32)).collect::<Vec<_>>())
    }

    /// A way to look at a D.
    type Way<'a> = &'a dyn Fn(&[u8]) -> Checked;

    fn set(d: &mut [u8], index: usize, bits: u16) {
        d[2 * index..2 * index + 2].copy_from_slice(&bits.to_le_bytes());
    }

    #[test]
    fn both_ways_find_one_wrong_element() {
        for kind in InputKind::ALL {
            let inputs = Inputs::new(Problem::f16(72, 40, 64), kind, 3);
            let d = right(&inputs);
            let ways: [Way; 3] = [
                &|d| small(&inputs, d),
                &|d| large(&inputs, d, Ok(&right(&inputs))),
                // 4100 samples of 2880 elements leave few out.
                &|d| large(&inputs, d, Err("there is no cuBLAS")),
            ];
            for (way, check) in ways.iter().enumerate() {
                assert_eq!(check(&d).wrong, (0, 2880), "{kind}, {}", check(&d).against);
                let mut broken = d.clone();
                set(&mut broken, 40 * 7 + 5, 0xffff);
                let found = check(&broken);
                assert!(found.wrong.0 >= 1 && !found.is_right(), "{kind}, way {way}");
                let first = found.first.unwrap();
                assert_eq!((first.row, first.column, first.found.as_str()), (7, 5, "never written"), "{kind}");
            }
            let mut broken = d.clone();
            set(&mut broken, 40 * 71, encode(inputs.problem.dtype, 3000.0));
            for check in &ways[..2] {
                let first = check(&broken).first.unwrap();
                assert_eq!((first.row, first.column, first.found.as_str()), (71, 0, "3000"), "{kind}");
            }
        }
    }

    #[test]
    fn a_cublas_that_is_wrong_is_no_yardstick() {
        let inputs = Inputs::new(Problem::f16(72, 40, 64), InputKind::Integers, 3);
        let d = right(&inputs);
        let mut product = d.clone();
        set(&mut product, 0, encode(inputs.problem.dtype, 3000.0));
        let found = large(&inputs, &d, Ok(&product));
        assert_eq!((found.wrong.0, found.against.as_str()), (0, "4100 samples in FP64 (cuBLAS was wrong at one)"));
        let found = large(&inputs, &d, Err("cuBLAS, 72x40x64: no memory (cuBLAS status 3)"));
        let against = "4100 samples in FP64 (cuBLAS, 72x40x64: no memory (cuBLAS status 3))";
        assert_eq!((found.wrong.0, found.against.as_str()), (0, against));
    }

    #[test]
    fn what_holds_the_poison_was_never_written() {
        let memory = memory(vec![0xff, 0xff, 0xff, 0x7f, 0, 0xff]);
        assert_eq!(
            (0..6).map(|byte| memory.is_defined(byte)).collect::<Vec<_>>(),
            [false, false, true, true, true, true]
        );
    }
}
