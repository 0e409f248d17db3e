//! `wgmma.mma_async` of FP8, TF32 and integers of 8 bits: where each element lies, types of each side, accumulators of each width.
//!
//! A and B hold integers from -4 to 4, which all formats have, so that every sum is exact. Elements are encoded, and their images laid out,
//! by the tables and figures of the ISA. The bits that TF32 cuts off are set.

use crate::common::matrix;
use crate::formats::{Format, Format::*, accumulator, packed};
use crate::kinds::k_major;
use crate::mma::size;
use crate::row::{Row, bare, check};
use crate::wgmma::{descriptor, drain, fill, holder, without_one};

/// A product: D = A Bᵀ, 64 rows, 32 bytes deep.
#[derive(Clone)]
struct Case {
    n: usize,
    /// The type of D as PTX writes it.
    d: &'static str,
    a: Format,
    b: Format,
    a_in_registers: bool,
    /// Bytes of a row of the swizzle pattern; 0: none.
    swizzle: usize,
    negate: [bool; 2],
    /// What D holds before, and scale-d as it is written; `%p1` is true.
    before: i32,
    scale: &'static str,
    saturate: bool,
    /// Bytes into the first row of the pattern where K begins.
    k_start: usize,
    /// A is the identity: it tells where each element lies.
    identity: bool,
}

const CASE: Case = Case {
    n: 32,
    d: "f32",
    a: E4m3,
    b: E4m3,
    a_in_registers: false,
    swizzle: 128,
    negate: [false; 2],
    before: 0,
    scale: "0",
    saturate: false,
    k_start: 0,
    identity: false,
};

impl Case {
    fn depth(&self) -> usize {
        if self.a == Tf32 { 8 } else { 32 }
    }

    fn is_integer(&self) -> bool {
        self.d == "s32"
    }

    /// What an element of D that is this number is.
    fn value(&self, x: i64) -> u32 {
        accumulator(self.d, self.saturate, x)
    }

    /// Registers of D.
    fn registers(&self) -> usize {
        if self.d == "f16" { self.n / 4 } else { self.n / 2 }
    }

    fn row(&self) -> Row {
        let (n, depth) = (self.n, self.depth());
        let (mut a, mut b) = (matrix(64, depth, 1, 4), matrix(n, depth, 2, 4));
        if self.identity {
            // Row r picks number r mod depth of B's rows; neighbours differ.
            (0..64 * depth).for_each(|at| a[at] = i32::from(at / depth % depth == at % depth));
            (0..n * depth).for_each(|at| b[at] = (at / depth * 5 + at % depth * 2) as i32 % 9 - 4);
        }
        for (format, list) in [(self.a, &mut a), (self.b, &mut b)] {
            list.iter_mut().filter(|_| format == U8).for_each(|x| *x = x.abs());
        }
        let a_size = size(64, self.swizzle);
        let mut input = vec![0u8; a_size + size(n, self.swizzle)];
        for row in 0..64 {
            for (at, byte) in packed(self.a, "", &a[row * depth..][..depth], false).into_iter().enumerate() {
                // Two bytes are to the fragment what a 16-bit element is.
                let (thread, pair) = holder(row, at / 2);
                let place = match self.a_in_registers {
                    true => thread * 16 + pair * 4 + at % 4,
                    false => k_major(row, self.k_start + at, self.swizzle, false, 64),
                };
                input[place] = byte;
            }
        }
        for row in 0..n {
            for (at, byte) in packed(self.b, "", &b[row * depth..][..depth], false).into_iter().enumerate() {
                input[a_size + k_major(row, self.k_start + at, self.swizzle, false, n)] = byte;
            }
        }
        let registers = self.registers();
        let mut words = vec![0u32; 128 * registers];
        for row in 0..64 {
            for column in 0..n {
                let sum: i32 = (0..depth).map(|k| a[row * depth + k] * b[column * depth + k]).sum();
                let sign = if self.negate[0] != self.negate[1] { -1 } else { 1 };
                let before = if matches!(self.scale, "1" | "%p1" | "!%p2") { self.before } else { 0 };
                let value = self.value(i64::from(sign * sum) + i64::from(before));
                let (thread, pair) = holder(row, column);
                if self.d == "f16" {
                    words[thread * registers + pair] |= value << (column % 2 * 16);
                } else {
                    words[thread * registers + 2 * pair + column % 2] = value;
                }
            }
        }
        let words: Vec<u64> = words.chunks(2).map(|c| u64::from(c[0]) | u64::from(c[1]) << 32).collect();
        let row = bare(128, &self.body(a_size)).hopper().input(input.clone()).gives(0, &words);
        let before = self.value(self.before.into()) * if self.d == "f16" { 0x1_0001 } else { 1 };
        row.around(&fill(input.len(), registers, before), &drain(registers))
    }

    fn body(&self, a_size: usize) -> String {
        let vector = |first: &str, count: usize| {
            format!("{{{}}}", (0..count).map(|r| format!("{first}{r}")).collect::<Vec<_>>().join(", "))
        };
        let a = if self.a_in_registers { vector("%r4", 4) } else { "%d3".into() };
        let sign = |negate: bool| if negate { "-1" } else { "1" };
        let signs = match self.is_integer() {
            true => String::new(),
            false => format!(", {}, {}", sign(self.negate[0]), sign(self.negate[1])),
        };
        format!(
            "mov.u32 %r21, smem;\nbfe.u32 %r22, %r21, 4, 14;\ncvt.u64.u32 %d3, %r22;\nadd.s64 %d4, %d3, {};\n\
             or.b64 %d3, %d3, {:#x};\nor.b64 %d4, %d4, {:#x};\nadd.s64 %d3, %d3, {};\n\
             wgmma.fence.sync.aligned;\n\
             wgmma.mma_async.sync.aligned.m64n{}k{}{}.{}.{}.{} {}, {a}, %d4, {}{signs};\n\
             wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n",
            (a_size + self.k_start) / 16,
            descriptor(false, self.swizzle, 64),
            descriptor(false, self.swizzle, self.n),
            self.k_start / 16,
            self.n,
            self.depth(),
            if self.saturate { ".satfinite" } else { "" },
            self.d,
            self.a.name(),
            self.b.name(),
            vector("%x", self.registers()),
            self.scale,
        )
    }
}

/// All types of D, A and B.
fn types() -> Vec<Case> {
    let eights = [(E4m3, E4m3), (E4m3, E5m2), (E5m2, E4m3), (E5m2, E5m2)];
    let integers = [(S8, S8), (S8, U8), (U8, S8), (U8, U8)];
    let mut list = vec![Case { d: "f32", a: Tf32, b: Tf32, ..CASE }];
    list.extend(["f32", "f16"].into_iter().flat_map(|d| eights.map(|(a, b)| Case { d, a, b, ..CASE })));
    list.extend(
        [false, true].into_iter().flat_map(|saturate| integers.map(|(a, b)| Case { d: "s32", a, b, saturate, ..CASE })),
    );
    list
}

pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for case in types() {
        // Where each element lies, and sums of all of them with what D held.
        rows.push(Case { identity: true, swizzle: 32, ..case.clone() }.row());
        rows.push(Case { identity: true, swizzle: 64, a_in_registers: true, ..case.clone() }.row());
        rows.push(Case { before: -7, scale: "1", ..case.clone() }.row());
        rows.push(Case { before: 100, scale: "%p1", swizzle: 0, a_in_registers: true, ..case }.row());
    }
    let (eight, tf32) = (CASE, Case { a: Tf32, b: Tf32, ..CASE });
    let integers = Case { d: "s32", a: S8, b: S8, ..CASE };
    for case in [&eight, &Case { d: "f16", b: E5m2, ..CASE }, &tf32, &integers] {
        for swizzle in [0, 32, 64, 128] {
            rows.push(Case { swizzle, ..case.clone() }.row());
        }
        // The next 32 bytes of K in the same rows: the pattern stays where it is.
        for k_start in [32, 64, 96] {
            rows.push(Case { k_start, ..case.clone() }.row());
        }
        for scale in ["0", "1", "%p1", "%p2", "!%p1", "!%p2"] {
            rows.push(Case { before: 24, scale, ..case.clone() }.row());
        }
    }
    for case in [&eight, &tf32] {
        for negate in [[true, false], [false, true], [true, true]] {
            rows.push(Case { negate, before: 7, scale: "1", ..case.clone() }.row());
            rows.push(Case { negate, a_in_registers: true, ..case.clone() }.row());
        }
    }
    // Every width.
    for n in (8..=256).step_by(8) {
        rows.push(Case { n, swizzle: 32, d: if n % 16 == 0 { "f16" } else { "f32" }, ..eight.clone() }.row());
        rows.push(Case { n, swizzle: 32, ..tf32.clone() }.row());
        if n <= 24 || n % 16 == 0 {
            rows.push(Case { n, swizzle: 32, ..integers.clone() }.row());
        }
    }
    // Sums beyond both ends: around, or up to there. With U8, no product is negative.
    for saturate in [false, true] {
        for before in [i32::MAX - 5, i32::MIN + 5] {
            rows.push(Case { saturate, before, scale: "1", ..integers.clone() }.row());
            rows.push(Case { saturate, before, scale: "1", a: U8, b: U8, ..integers.clone() }.row());
        }
    }
    // The ways to go wrong are those of the 16-bit types.
    for case in [eight, Case { d: "f16", a: E5m2, ..CASE }, tf32, integers] {
        rows.push(without_one(case.row()));
    }
    rows
}

#[test]
fn values() {
    check(&rows());
}
