//! `mma.sync` of FP64: which lane holds which element, the products of small integers, and the order of roundings.
//!
//! Places are those of the ISA's text, element by element. The order is what an H100 computes (recorded with 2688 random sums of all shapes:
//! each is a chain of fused multiplications and additions, the depths one after the other, each rounded as the instruction says).

use crate::common::matrix;
use crate::row::{Row, bare, check};

struct Case {
    rows: usize,
    depth: usize,
    rounding: &'static str,
}

impl Case {
    /// Row and column of A's element i in a lane (PTX ISA, matrix fragments with `.f64`).
    fn a_place(&self, lane: usize, i: usize) -> (usize, usize) {
        let (group, thread) = (lane >> 2, lane % 4);
        match (self.rows, self.depth) {
            (8, _) => (group, thread),
            (_, 4) => (if i == 0 { group } else { group + 8 }, thread),
            (_, 8) => (if i == 0 || i == 2 { group } else { group + 8 }, if i < 2 { thread } else { thread + 4 }),
            _ => (if i.is_multiple_of(2) { group } else { group + 8 }, i / 2 * 4 + thread),
        }
    }

    fn b_place(&self, lane: usize, i: usize) -> (usize, usize) {
        (lane % 4 + 4 * i, lane >> 2)
    }

    fn c_place(&self, lane: usize, i: usize) -> (usize, usize) {
        ((lane >> 2) + if i < 2 { 0 } else { 8 }, lane % 4 * 2 + (i & 1))
    }

    fn row(&self, a: &[f64], b: &[f64], c: &[f64], d: &[f64]) -> Row {
        let (rows, depth) = (self.rows, self.depth);
        let counts = [rows * depth / 32, depth / 4, rows / 4];
        let (mut input, mut expected) = (Vec::new(), Vec::new());
        for lane in 0..32 {
            let of_a = (0..counts[0]).map(|i| self.a_place(lane, i)).map(|(row, k)| a[depth * row + k]);
            let of_b = (0..counts[1]).map(|i| self.b_place(lane, i)).map(|(k, column)| b[8 * k + column]);
            let of_c = (0..counts[2]).map(|i| self.c_place(lane, i)).map(|(row, column)| c[8 * row + column]);
            let mut bytes: Vec<u8> = of_a.chain(of_b).chain(of_c).flat_map(f64::to_le_bytes).collect();
            bytes.resize(128, 0);
            input.extend(bytes);
            let of_d = (0..counts[2]).map(|i| self.c_place(lane, i)).map(|(row, column)| d[8 * row + column].to_bits());
            expected.extend(of_d);
        }
        let mut body = "mul.wide.u32 %d10, %r98, 128; add.s64 %d10, %d10, %d7;\n.reg .f64 %w<32>;\n".to_string();
        let total: usize = counts.iter().sum();
        for n in 0..total {
            body += &format!("ld.global.f64 %w{n}, [%d10+{}];\n", 8 * n);
        }
        let list =
            |from: usize, count: usize| (from..from + count).map(|n| format!("%w{n}")).collect::<Vec<_>>().join(", ");
        let results = list(20, counts[2]);
        body += &format!(
            "mma.sync.aligned.m{rows}n8k{depth}.row.col.f64.f64.f64.f64{} {{{results}}}, {{{}}}, {{{}}}, {{{}}};\n",
            self.rounding,
            list(0, counts[0]),
            list(counts[0], counts[1]),
            list(counts[0] + counts[1], counts[2])
        );
        let mut store = format!("mul.wide.u32 %d11, %r98, {}; add.s64 %d11, %d11, %d8;\n", 8 * counts[2]);
        for n in 0..counts[2] {
            store += &format!("st.global.f64 [%d11+{}], %w{};\n", 8 * n, 20 + n);
        }
        bare(32, &body)
            .around("", &store)
            .input(input)
            .gives(0, &expected)
            // A register of A that has no value: some of D has none.
            .without("ld.global.f64 %w0, [%d10+0];\n", "undefined-value-stored")
            .with("mma.sync", "setp.lt.u32 %p1, %r98, 16;\n@%p1 mma.sync", "aligned-lanes-missing")
    }
}

pub fn rows() -> Vec<Row> {
    let mut all = Vec::new();
    for (rows, depth) in [(8, 4), (16, 4), (16, 8), (16, 16)] {
        for rounding in ["", ".rn", ".rz", ".rm", ".rp"] {
            let case = Case { rows, depth, rounding };
            let floats = |rows, columns, seed| -> Vec<f64> {
                matrix(rows, columns, seed, 9).into_iter().map(f64::from).collect()
            };
            let (a, b, c) = (floats(rows, depth, 1), floats(depth, 8, 2), floats(rows, 8, 3));
            // All of it is exact, but for which zero a zero is: downwards −0, unless two +0 are added.
            let add = |sum: f64, next: f64| match sum + next {
                0.0 if rounding == ".rm" => {
                    if sum.is_sign_positive() && next.is_sign_positive() {
                        0.0
                    } else {
                        -0.0
                    }
                }
                other => other,
            };
            let sum = |at: usize| (0..depth).map(|k| a[at / 8 * depth + k] * b[8 * k + at % 8]).fold(c[at], add);
            all.push(case.row(&a, &b, &c, &(0..8 * rows).map(sum).collect::<Vec<_>>()));
        }
        // 2^53 + 1 is rounded to 2^53, as often as 1 is added; then comes what takes it away again.
        let case = Case { rows, depth, rounding: "" };
        let mut a = vec![1.0; rows * depth];
        a.iter_mut().skip(depth - 1).step_by(depth).for_each(|last| *last = -9_007_199_254_740_992.0);
        let zeroes = vec![0.0; 8 * rows];
        all.push(case.row(&a, &vec![1.0; 8 * depth], &vec![9_007_199_254_740_992.0; 8 * rows], &zeroes));
        // In the other directions, too; but upwards, each 1 that is added to 2^53 makes it 2^53 + 2, and with the next one 2^53 + 4. Below
        // zero it is the same downwards.
        let up = 2.0 * (depth - 1) as f64;
        let negative = |of: &[f64]| -> Vec<f64> { of.iter().map(|x| -x).collect() };
        let (b, c) = (vec![1.0; 8 * depth], vec![9_007_199_254_740_992.0; 8 * rows]);
        for (rounding, above, below) in [(".rz", 0.0, 0.0), (".rm", 0.0, -up), (".rp", up, 0.0)] {
            let case = Case { rows, depth, rounding };
            // What is left is zero: +0, but −0 downwards.
            let zero = if rounding == ".rm" { -0.0 } else { 0.0 };
            let of = |left: f64| vec![if left == 0.0 { zero } else { left }; 8 * rows];
            all.push(case.row(&a, &b, &c, &of(above)));
            all.push(case.row(&negative(&a), &b, &negative(&c), &of(below)));
        }
    }
    all
}

#[test]
fn values() {
    check(&rows());
}
