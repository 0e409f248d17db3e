//! `wgmma.mma_async`: operands in each layout, accumulators of each width, and what fence, groups and wait are for.
//!
//! A and B hold small integers, so that every sum is exact. Their images are laid out by rows and chunks, and an element's thread and
//! register are counted out from row and column, as the ISA's figures show them; the emulator has formulas the other way round.

use crate::common::matrix;
use crate::mma::{place, size};
use crate::row::{Row, bare, check};
use half::{bf16, f16};

/// A product: D = A Bᵀ, 64 rows, so many slices of depth 16.
#[derive(Clone)]
struct Case {
    n: usize,
    bf: bool,
    half_d: bool,
    a_in_registers: bool,
    a_mn: bool,
    b_mn: bool,
    /// Bytes of a row of the swizzle pattern; 0: none.
    swizzle: usize,
    negate: [bool; 2],
    /// What D holds before, and scale-d as it is written; `%p1` is true.
    before: f32,
    scale: &'static str,
    /// Bytes into the first row of the pattern where K begins.
    k_start: usize,
    /// A and B are what makes D equal to B's numbers: the identity tells where each element lies.
    identity: bool,
}

const CASE: Case = Case {
    n: 64,
    bf: false,
    half_d: false,
    a_in_registers: false,
    a_mn: false,
    b_mn: false,
    swizzle: 128,
    negate: [false; 2],
    before: 0.0,
    scale: "0",
    k_start: 0,
    identity: false,
};

/// The descriptor of an image of [`place`] (K-major: of elements of any size), without its address: Hopper's code of the swizzle, and no constant.
pub fn descriptor(mn_major: bool, w: usize, rows: usize) -> u64 {
    let (leading, stride) = match (mn_major, w) {
        (false, 0) => (rows * 16, 128),
        (false, _) => (16, 8 * w),
        (true, 0) => (128, 256),
        (true, _) => (16 * w, 8 * w),
    };
    let code = [(0, 0), (128, 1), (64, 2), (32, 3u64)].into_iter().find(|(width, _)| *width == w).map_or(0, |c| c.1);
    (leading as u64 >> 4) << 16 | (stride as u64 >> 4) << 32 | code << 62
}

/// The thread that holds an element of a matrix of 64 rows, the pair of columns or depths counted within eight, and which of the
/// thread's pairs it lies in.
pub fn holder(row: usize, column: usize) -> (usize, usize) {
    (row / 16 * 32 + row % 8 * 4 + column % 8 / 2, column / 8 * 2 + row % 16 / 8)
}

impl Case {
    fn bits(&self, x: i32) -> u16 {
        if self.bf { bf16::from_f32(x as f32).to_bits() } else { f16::from_f32(x as f32).to_bits() }
    }

    fn value(&self, x: f32) -> u32 {
        let x = if x == 0.0 { 0.0 } else { x };
        if self.half_d { f16::from_f32(x).to_bits().into() } else { x.to_bits() }
    }

    fn row(&self) -> Row {
        let n = self.n;
        let (mut a, mut b) = (matrix(64, 16, 1, 4), matrix(n, 16, 2, 4));
        if self.identity {
            // Row r picks column r mod 16 of B's rows, each of which holds numbers of its own.
            (0..64 * 16).for_each(|at| a[at] = i32::from(at / 16 % 16 == at % 16));
            (0..n * 16).for_each(|at| b[at] = (at / 16 * 7 + at % 16) as i32 % 251);
        }
        let a_size = size(64, self.swizzle);
        let mut input = vec![0u8; a_size + size(n, self.swizzle)];
        let mut put = |at: usize, x: i32| input[at..at + 2].copy_from_slice(&self.bits(x).to_le_bytes());
        for k in 0..16 {
            for mn in 0..64 {
                let (thread, pair) = holder(mn, k);
                let at = if self.a_in_registers {
                    thread * 16 + pair * 4 + k % 2 * 2
                } else {
                    place(mn, k, self.a_mn, self.swizzle, 64, self.k_start)
                };
                put(at, a[mn * 16 + k]);
            }
            for mn in 0..n {
                put(a_size + place(mn, k, self.b_mn, self.swizzle, n, self.k_start), b[mn * 16 + k]);
            }
        }
        let registers = self.registers();
        let mut words = vec![0u32; 128 * registers];
        for row in 0..64 {
            for column in 0..n {
                let sum: i32 = (0..16).map(|k| a[row * 16 + k] * b[column * 16 + k]).sum();
                let sign = if self.negate[0] != self.negate[1] { -1.0 } else { 1.0 };
                let adds = matches!(self.scale, "1" | "%p1" | "!%p2");
                let value = self.value(sign * sum as f32 + if adds { self.before } else { 0.0 });
                let (thread, pair) = holder(row, column);
                if self.half_d {
                    words[thread * registers + pair] |= value << (column % 2 * 16);
                } else {
                    words[thread * registers + 2 * pair + column % 2] = value;
                }
            }
        }
        let words: Vec<u64> = words.chunks(2).map(|c| u64::from(c[0]) | u64::from(c[1]) << 32).collect();
        let row = bare(128, &self.body(a_size)).hopper().input(input.clone()).gives(0, &words);
        let before = self.value(self.before) * if self.half_d { 0x1_0001 } else { 1 };
        row.around(&fill(input.len(), registers, before), &drain(registers))
    }

    /// Registers of D.
    fn registers(&self) -> usize {
        if self.half_d { self.n / 4 } else { self.n / 2 }
    }

    fn body(&self, a_size: usize) -> String {
        let vector = |first: &str, count: usize| {
            format!("{{{}}}", (0..count).map(|r| format!("{first}{r}")).collect::<Vec<_>>().join(", "))
        };
        let (dtype, ty) = (if self.half_d { "f16" } else { "f32" }, if self.bf { "bf16" } else { "f16" });
        let sign = |negate: bool| if negate { "-1" } else { "1" };
        let (a, turned) = match self.a_in_registers {
            true => (vector("%r4", 4), format!("{}", u8::from(self.b_mn))),
            false => ("%d3".into(), format!("{}, {}", u8::from(self.a_mn), u8::from(self.b_mn))),
        };
        format!(
            "mov.u32 %r21, smem;\nbfe.u32 %r22, %r21, 4, 14;\ncvt.u64.u32 %d3, %r22;\nadd.s64 %d4, %d3, {};\n\
             or.b64 %d3, %d3, {:#x};\nor.b64 %d4, %d4, {:#x};\nadd.s64 %d3, %d3, {};\n\
             wgmma.fence.sync.aligned;\n\
             wgmma.mma_async.sync.aligned.m64n{}k16.{dtype}.{ty}.{ty} {}, {a}, %d4, {}, {}, {}, {turned};\n\
             wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n",
            (a_size + self.k_start) / 16,
            descriptor(self.a_mn, self.swizzle, 64),
            descriptor(self.b_mn, self.swizzle, self.n),
            self.k_start / 16,
            self.n,
            vector("%x", self.registers()),
            self.scale,
            sign(self.negate[0]),
            sign(self.negate[1]),
        )
    }
}

/// Copies the images to shared memory, and 16 bytes for each thread to registers; puts `before` into so many registers of D.
pub fn fill(bytes: usize, registers: usize, before: u32) -> String {
    let d: String = (0..registers).map(|r| format!("mov.b32 %x{r}, {before:#x};\n")).collect();
    format!(
        "mov.u32 %r1, smem;\nshl.b32 %r2, %r98, 4;\ncvt.u64.u32 %d2, %r2;\nadd.s64 %d2, %d2, %d7;\n\
         ld.global.v4.b32 {{%r40, %r41, %r42, %r43}}, [%d2];\n\
         FILL:\nadd.u32 %r3, %r1, %r2;\ncvt.u64.u32 %d2, %r2;\nadd.s64 %d2, %d2, %d7;\n\
         setp.ge.u32 %p1, %r2, {bytes};\n@%p1 bra FILLED;\nld.global.v4.b32 {{%r4, %r5, %r6, %r7}}, [%d2];\n\
         st.shared.v4.b32 [%r3], {{%r4, %r5, %r6, %r7}};\nadd.u32 %r2, %r2, 2048;\nbra FILL;\nFILLED:\n\
         fence.proxy.async.shared::cta;\nbar.sync 0;\n{d}setp.eq.u32 %p1, %r95, %r95;\nsetp.ne.u32 %p2, %r95, %r95;\n"
    )
}

/// Each thread stores its registers.
pub fn drain(registers: usize) -> String {
    let stores: String = (0..registers).map(|r| format!("st.global.b32 [%d1+{}], %x{r};\n", 4 * r)).collect();
    format!("mul.wide.u32 %d1, %r98, {};\nadd.s64 %d1, %d1, %d8;\n{stores}", 4 * registers)
}

/// A row, and what is found where one of the synchronising instructions around it is missing.
pub fn without_one(row: Row) -> Row {
    row.without("wgmma.fence.sync.aligned;\n", "missing-wgmma-fence")
        .without("wgmma.commit_group.sync.aligned;\n", "wgmma-not-awaited")
        .without("wgmma.wait_group.sync.aligned 0;\n", "wgmma-not-awaited")
        .with("wait_group.sync.aligned 0;", "wait_group.sync.aligned 1;", "wgmma-not-awaited")
        .without("fence.proxy.async.shared::cta;\n", "missing-proxy-fence")
        .without("bar.sync 0;\n", "operand-not-ready")
}

pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    // Where each element lies: the identity, for each width of D.
    for n in [8, 64, 128, 256] {
        for half_d in [false, true] {
            rows.push(Case { n, half_d, identity: true, swizzle: 32, ..CASE }.row());
            rows.push(Case { n, half_d, identity: true, swizzle: 32, a_in_registers: true, ..CASE }.row());
        }
    }
    for swizzle in [0, 32, 64, 128] {
        for (a_mn, b_mn) in [(false, false), (false, true), (true, false), (true, true)] {
            rows.push(Case { swizzle, a_mn, b_mn, ..CASE }.row());
        }
        for b_mn in [false, true] {
            rows.push(Case { swizzle, b_mn, a_in_registers: true, n: 128, ..CASE }.row());
        }
    }
    // The next slice of K lies 32 bytes on in the same rows: the pattern stays where it is.
    for k_start in [32, 64, 96] {
        rows.push(Case { k_start, ..CASE }.row());
    }
    rows.push(Case { k_start: 32, swizzle: 64, ..CASE }.row());
    // Every width.
    for n in (8..=256).step_by(8) {
        rows.push(Case { n, swizzle: 32, bf: n % 16 == 0, ..CASE }.row());
    }
    // Types, signs and scale-d.
    rows.push(Case { bf: true, a_in_registers: true, ..CASE }.row());
    rows.push(Case { half_d: true, before: 3.0, scale: "1", n: 24, swizzle: 32, ..CASE }.row());
    for negate in [[true, false], [false, true], [true, true]] {
        rows.push(Case { negate, ..CASE }.row());
        rows.push(Case { negate, a_in_registers: true, bf: true, before: 7.0, scale: "%p1", ..CASE }.row());
    }
    for scale in ["0", "1", "%p1", "%p2", "!%p1", "!%p2"] {
        rows.push(Case { before: 24.0, scale, ..CASE }.row());
    }
    // What each of the three is for.
    rows.push(without_one(CASE.row()));
    rows
}

#[test]
fn values() {
    check(&rows());
}
