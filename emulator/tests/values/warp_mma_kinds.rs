//! `mma.sync` of TF32, FP8 and integers of 8 bits: which lane holds which element, and the products of small integers.
//!
//! Places are those of the ISA's text, element by element. All numbers are integers from -4 to 4, and every sum is exact.

use crate::common::matrix;
use crate::formats::{Format, Format::*, accumulator, packed};
use crate::row::{Row, bare, check};

/// A form: its shape, the type of D as PTX writes it, and those of A and B.
struct Case {
    depth: usize,
    d: &'static str,
    a: Format,
    b: Format,
    saturate: bool,
}

impl Case {
    /// Elements of a register.
    fn few(&self) -> usize {
        if self.a == Tf32 { 1 } else { 4 }
    }

    /// Row and column of A's element i in a lane (PTX ISA, matrix fragments for mma.m16n8k4 and k8 with TF32, k16 and k32 with bytes).
    fn a_place(&self, lane: usize, i: usize) -> (usize, usize) {
        let (group, thread) = (lane >> 2, lane % 4);
        if self.a == Tf32 {
            let row = if i == 0 || i == 2 { group } else { group + 8 };
            return (row, if i < 2 { thread } else { thread + 4 });
        }
        let row = if i < 4 || (8..12).contains(&i) { group } else { group + 8 };
        (row, thread * 4 + (i & 3) + if i < 8 { 0 } else { 16 })
    }

    fn b_place(&self, lane: usize, i: usize) -> (usize, usize) {
        let (group, thread) = (lane >> 2, lane % 4);
        if self.a == Tf32 {
            return (if i == 0 { thread } else { thread + 4 }, group);
        }
        (thread * 4 + (i & 3) + if i < 4 { 0 } else { 16 }, group)
    }

    fn opcode(&self) -> String {
        let saturate = if self.saturate { "satfinite." } else { "" };
        let (d, a, b) = (self.d, self.a.name(), self.b.name());
        format!("mma.sync.aligned.m16n8k{}.row.col.{saturate}{d}.{a}.{b}.{d}", self.depth)
    }

    /// Bits of an element of D.
    fn value(&self, x: i64) -> u32 {
        accumulator(self.d, self.saturate, x)
    }

    /// Row and column of a lane's four numbers of C and D, in registers.
    fn accumulators(&self, lane: usize, number: impl Fn(usize, usize) -> i64) -> Vec<u32> {
        let place = |i: usize| ((lane >> 2) + if i < 2 { 0 } else { 8 }, lane % 4 * 2 + (i & 1));
        let bits = (0..4).map(|i| self.value(number(place(i).0, place(i).1)));
        let bits: Vec<u32> = bits.collect();
        if self.d == "f16" { bits.chunks(2).map(|two| two[0] | two[1] << 16).collect() } else { bits }
    }

    /// The product of matrices; C holds `c` plus small numbers.
    fn row(&self, c: i64) -> Row {
        let depth = self.depth;
        let numbers = |rows, columns, seed, format| -> Vec<i32> {
            let all = matrix(rows, columns, seed, 4);
            all.into_iter().map(|x| if format == U8 { x.abs() } else { x }).collect()
        };
        let (a, b) = (numbers(16, depth, 1, self.a), numbers(depth, 8, 2, self.b));
        let before = matrix(16, 8, 3, 40);
        let c = |row: usize, column: usize| c + i64::from(before[8 * row + column]);
        let d = |row: usize, column: usize| {
            (0..depth).map(|k| i64::from(a[depth * row + k] * b[8 * k + column])).sum::<i64>() + c(row, column)
        };
        let (few, c_registers) = (self.few(), if self.d == "f16" { 2 } else { 4 });
        let (a_count, b_count) = (16 * depth / 32, 8 * depth / 32);
        let (mut input, mut expected) = (Vec::new(), Vec::new());
        for lane in 0..32 {
            let mut bytes = Vec::new();
            let of_a: Vec<i32> = (0..a_count).map(|i| self.a_place(lane, i)).map(|(r, k)| a[depth * r + k]).collect();
            let of_b: Vec<i32> = (0..b_count).map(|i| self.b_place(lane, i)).map(|(k, n)| b[8 * k + n]).collect();
            bytes.extend(packed(self.a, "", &of_a, false));
            bytes.extend(packed(self.b, "", &of_b, false));
            bytes.extend(self.accumulators(lane, c).iter().flat_map(|word| word.to_le_bytes()));
            bytes.resize(64, 0);
            input.extend(bytes);
            let mut words = self.accumulators(lane, d);
            words.resize(4, 0);
            expected.extend(words.chunks(2).map(|two| u64::from(two[0]) | u64::from(two[1]) << 32));
        }
        let (mut load, mut next) = ("mul.wide.u32 %d10, %r98, 64; add.s64 %d10, %d10, %d7;\n".to_string(), 0);
        let float = |at: usize, list: usize| self.d == "f32" && list == 2 && at < 4;
        let lists: Vec<String> = [a_count / few, b_count / few, c_registers]
            .into_iter()
            .enumerate()
            .map(|(list, count)| {
                let names: Vec<String> = (0..count)
                    .map(|at| if float(at, list) { format!("%f{at}") } else { format!("%x{}", 8 * list + at) })
                    .collect();
                for name in &names {
                    load += &format!("ld.global.b32 {name}, [%d10+{}];\n", 4 * next);
                    next += 1;
                }
                names.join(", ")
            })
            .collect();
        let results: Vec<String> = (40..40 + c_registers).map(|n| format!("%x{n}")).collect();
        let results = results.join(", ");
        let body =
            format!("{load}{} {{{results}}}, {{{}}}, {{{}}}, {{{}}};\n", self.opcode(), lists[0], lists[1], lists[2]);
        let store = format!(
            "mul.wide.u32 %d11, %r98, 16; add.s64 %d11, %d11, %d8; st.global.v{c_registers}.b32 [%d11], {{{results}}};"
        );
        bare(32, &body)
            .around("", &store)
            .input(input)
            .gives(0, &expected)
            // A register of A that has no value: some of D has none.
            .without("ld.global.b32 %x1, [%d10+4];\n", "undefined-value-stored")
            .with("mma.sync", "setp.lt.u32 %p1, %r98, 16;\n@%p1 mma.sync", "aligned-lanes-missing")
    }
}

pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for depth in [4, 8] {
        rows.push(Case { depth, d: "f32", a: Tf32, b: Tf32, saturate: false }.row(0));
    }
    for depth in [16, 32] {
        for (a, b) in [(E4m3, E4m3), (E4m3, E5m2), (E5m2, E4m3), (E5m2, E5m2)] {
            for d in ["f32", "f16"] {
                rows.push(Case { depth, d, a, b, saturate: false }.row(0));
            }
        }
        for (a, b) in [(S8, S8), (S8, U8), (U8, S8), (U8, U8)] {
            for saturate in [false, true] {
                for c in [0, i64::from(i32::MAX) - 60, i64::from(i32::MIN) + 60] {
                    rows.push(Case { depth, d: "s32", a, b, saturate }.row(c));
                }
            }
        }
    }
    rows
}

#[test]
fn values() {
    check(&rows());
}
