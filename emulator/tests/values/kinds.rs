//! `tcgen05.mma` of the kinds beside `kind::f16`, and scale factors that `tcgen05.cp` brings to tensor memory.
//!
//! A and B hold integers from -4 to 4, which all formats have; scale factors are small powers of two and one and a half, so that every
//! sum is exact. Elements are encoded, and their images laid out, here, by the tables and figures of the ISA. What no element is (bits
//! that TF32 cuts off, padding of FP6 and FP4) is set.

use crate::common::{load, matrix, rendered};
use crate::formats::{Format, Format::*, packed};
use crate::mma::{COLLECTORS, filled_first, read_back, set_up, stationary};
use crate::row::{Row, bare, check};
use half::f16;

/// A product: D = A Bᵀ, with scale factors where the kind has them.
#[derive(Clone)]
struct Case {
    kind: &'static str,
    a: Format,
    b: Format,
    m: usize,
    n: usize,
    pair: bool,
    a_mn: bool,
    b_mn: bool,
    /// Bytes of a row of the swizzle pattern; 0: none. Of 32-byte atoms?
    swizzle: usize,
    wide: bool,
    half_d: bool,
    negate: [bool; 2],
    /// What D holds before, and whether it counts.
    before: i32,
    accumulate: bool,
    scale: Option<u32>,
    saturate: bool,
    disabled: Vec<u32>,
    a_in_tensor: bool,
    collector: &'static str,
    /// Modifiers of a block-scaled kind, scale factors a row, whether they are UE4M3, and their byte in a cell, of A and B.
    vector: &'static str,
    factors: usize,
    ue4m3: bool,
    ids: [usize; 2],
}

const CASE: Case = Case {
    kind: "f8f6f4",
    a: E4m3,
    b: E4m3,
    m: 128,
    n: 64,
    pair: false,
    a_mn: false,
    b_mn: false,
    swizzle: 128,
    wide: false,
    half_d: false,
    negate: [false; 2],
    before: 0,
    accumulate: false,
    scale: None,
    saturate: false,
    disabled: vec![],
    a_in_tensor: false,
    collector: "",
    vector: "",
    factors: 0,
    ue4m3: false,
    ids: [0; 2],
};

/// Where the byte `b` of a row lies in a K-major image.
pub fn k_major(row: usize, b: usize, w: usize, wide: bool, rows: usize) -> usize {
    let chunk = match (w, wide) {
        (0, _) => return b / 16 * rows * 16 + row * 16 + b % 16,
        // Pairs of chunks move together.
        (128, true) => ((b / 32) ^ (row % 4)) * 2 + b / 16 % 2,
        (128, _) => (b / 16) ^ (row % 8),
        (64, _) => (b / 16) ^ (row % 8 / 2),
        _ => (b / 16) ^ (row % 8 / 4),
    };
    row * w + chunk * 16 + b % 16
}

/// Where the element at depth `k` of column `mn` lies in an MN-major image, of elements of `s` bytes, `depth` of them deep.
fn mn_major(mn: usize, k: usize, w: usize, s: usize, depth: usize) -> usize {
    if w == 0 {
        let few = 16 / s;
        return mn / few * (16 * depth) + k * 16 + mn % few * s;
    }
    let atom = w / s;
    let (part, byte) = (mn / atom, mn % atom * s);
    let chunk = match (w, s) {
        (128, 4) => ((byte / 32) ^ (k % 4)) * 2 + byte / 16 % 2,
        (128, _) => (byte / 16) ^ (k % 8),
        (64, _) => (byte / 16) ^ (k % 8 / 2),
        _ => (byte / 16) ^ (k % 8 / 4),
    };
    part * depth * w + k * w + chunk * 16 + byte % 16
}

/// Bytes of an operand's image of so many rows.
fn size(rows: usize, w: usize, mn: bool, s: usize) -> usize {
    let rows = if mn && w > 0 { rows.next_multiple_of(w / s) * 32 } else { rows * w.max(32) };
    rows.next_multiple_of(1024)
}

impl Case {
    fn depth(&self) -> usize {
        match self.kind {
            "tf32" => 8,
            "mxf4" | "mxf4nvf4" => 64,
            _ => 32,
        }
    }

    /// Scale factor j of row r of A (`which` 0) or of column r of B (1): bits, and quarters.
    fn factor(&self, which: usize, r: usize, j: usize) -> (u8, i32) {
        let n = (r + 2 * j + which + r / 32) % 3;
        if self.ue4m3 { [(0x30, 2), (0x38, 4), (0x3c, 6)][n] } else { [(126, 2), (127, 4), (128, 8)][n] }
    }

    fn row(&self) -> Row {
        let (ctas, depth) = (if self.pair { 2 } else { 1 }, self.depth());
        let (m_each, n_each) = (self.m / ctas, self.n / ctas);
        let numbers = |rows: usize, seed, format: Format| -> Vec<i32> {
            let all = matrix(rows, depth, seed, 4);
            all.into_iter().map(|x| if format == U8 { x.abs() } else { x }).collect()
        };
        let (a, b) = (numbers(self.m, 1, self.a), numbers(self.n, 2, self.b));
        let s = if self.a == Tf32 { 4 } else { 1 };
        let (a_size, b_size) = (size(m_each, self.swizzle, self.a_mn, s), size(n_each, self.swizzle, self.b_mn, s));
        let factor_size = if self.factors > 0 { 512 + self.n.div_ceil(128) * 512 } else { 0 };
        let each = a_size + b_size + factor_size;
        let mut input = vec![0u8; ctas * each];
        for cta in 0..ctas {
            let image = &mut input[cta * each..][..each];
            for (of, rows, mn, at, format) in
                [(&a, m_each, self.a_mn, 0, self.a), (&b, n_each, self.b_mn, a_size, self.b)]
            {
                for row in 0..rows {
                    let elements = &of[(cta * rows + row) * depth..][..depth];
                    let in_tensor = self.a_in_tensor && at == 0;
                    let bytes = packed(format, self.kind, elements, in_tensor);
                    assert_eq!(bytes.len(), 32);
                    for (n, byte) in bytes.into_iter().enumerate() {
                        let place = match (in_tensor, mn) {
                            (true, _) => row * 32 + n,
                            (_, false) => k_major(row, n, self.swizzle, self.wide, rows),
                            _ => mn_major(row, n / s, self.swizzle, s, depth) + n % s,
                        };
                        image[at + place] = byte;
                    }
                }
            }
            for j in 0..self.factors {
                for r in 0..m_each {
                    image[a_size + b_size + r % 32 * 16 + r / 32 * 4 + self.ids[0] + j] =
                        self.factor(0, cta * m_each + r, j).0;
                }
                for r in 0..self.n {
                    let at = a_size + b_size + 512 + r / 128 * 512 + r % 32 * 16 + r % 128 / 32 * 4 + self.ids[1] + j;
                    image[at] = self.factor(1, r, j).0;
                }
            }
        }
        let columns = if self.pair && self.m == 128 { self.n / 2 } else { self.n };
        let mut cells = vec![self.cell(i64::from(self.before) * 16); ctas * 128 * columns];
        for row in 0..self.m {
            for column in 0..self.n {
                // In sixteenths: a quarter for the scale factor of A, and one for that of B.
                let product = |k: usize| {
                    let block = k * self.factors.max(1) / depth;
                    let scales = if self.factors == 0 {
                        16
                    } else {
                        self.factor(0, row, block).1 * self.factor(1, column, block).1
                    };
                    a[row * depth + k] * b[column * depth + k] * scales
                };
                let sum: i32 = (0..depth).map(product).sum();
                let sign = if self.negate[0] != self.negate[1] { -1 } else { 1 };
                let d = if self.accumulate { (i64::from(self.before) * 16) >> self.scale.unwrap_or(0) } else { 0 };
                let (cta, r) = (row / m_each, row % m_each);
                let (lane, c) = match (self.m, self.pair) {
                    (64, _) => (r / 16 * 32 + r % 16, column),
                    (128, true) if column >= self.n / 2 => (64 + r, column - self.n / 2),
                    _ => (r, column),
                };
                let off = self.disabled.get(cta * 4 + lane / 32).is_some_and(|w| w >> (lane % 32) & 1 == 1);
                if !off {
                    cells[(cta * 128 + lane) * columns + c] = self.cell(i64::from(sign * sum) + d);
                }
            }
        }
        let words: Vec<u64> = cells.chunks(2).map(|c| u64::from(c[0]) | u64::from(c[1]) << 32).collect();
        let body = self.body(a_size, a_size + b_size);
        let row = bare(128, &body).ctas(ctas as u32, ctas as u32).input(input).gives(0, &words);
        let before = set_up(
            ctas as u32,
            each,
            columns,
            self.cell(i64::from(self.before) * 16),
            self.a_in_tensor.then_some(m_each),
        );
        row.around(&before, &read_back(ctas as u32, columns))
    }

    /// So many sixteenths in a cell of D.
    fn cell(&self, x: i64) -> u32 {
        let value = x as f32 / 16.0;
        match (self.kind, self.half_d) {
            ("i8", _) if self.saturate => (x / 16).clamp(i32::MIN.into(), i32::MAX.into()) as u32,
            ("i8", _) => (x / 16) as u32,
            (_, true) => f16::from_f32(value).to_bits().into(),
            _ => value.to_bits(),
        }
    }

    fn idesc(&self) -> u32 {
        let flag = |on: bool, at: u32| u32::from(on) << at;
        let common = self.a.code(self.kind) << 7
            | self.b.code(self.kind) << 10
            | flag(self.negate[0], 13)
            | flag(self.negate[1], 14)
            | flag(self.a_mn, 15)
            | flag(self.b_mn, 16)
            | (self.n as u32 / 8) << 17;
        if self.factors > 0 {
            return common
                | (self.ids[1] as u32) << 4
                | flag(!self.ue4m3, 23)
                | (self.m as u32 / 128) << 27
                | (self.ids[0] as u32) << 29;
        }
        let d = match (self.kind, self.half_d) {
            ("i8", _) => 2,
            (_, true) => 0,
            _ => 1,
        };
        common | d << 4 | flag(self.saturate, 3) | (self.m as u32 / 16) << 24
    }

    fn descriptor(&self, mn: bool, rows: usize) -> u64 {
        let (w, depth) = (self.swizzle, self.depth());
        let (leading, stride) = match (mn, w) {
            (false, 0) => (rows * 16, 128),
            (false, _) => (16, 8 * w),
            (true, 0) => (128, 16 * depth),
            (true, _) => (depth * w, if self.wide { 4 * w } else { 8 * w }),
        };
        let code = match (w, self.wide) {
            (0, _) => 0,
            (128, true) => 1,
            (128, _) => 2,
            (64, _) => 4,
            _ => 6u64,
        };
        (leading as u64 >> 4) << 16 | (stride as u64 >> 4) << 32 | 1 << 46 | code << 61
    }

    /// One thread copies scale factors, multiplies and commits; all wait.
    fn body(&self, b_at: usize, factors_at: usize) -> String {
        let g = if self.pair { 2 } else { 1 };
        let a = self.descriptor(self.a_mn, self.m / g);
        let b = self.descriptor(self.b_mn, self.n / g);
        let a_operand = if self.a_in_tensor { "[%r90+256]" } else { "%d3" };
        let mask = if self.disabled.is_empty() {
            String::new()
        } else {
            format!("{{{}}}, ", (0..self.disabled.len()).map(|n| format!("%x{n}")).collect::<Vec<_>>().join(", "))
        };
        let words: String =
            self.disabled.iter().enumerate().map(|(n, w)| format!("mov.b32 %x{n}, {w:#x};\n")).collect();
        let scale = self.scale.map_or(String::new(), |s| format!(", {s}"));
        let commit = if self.pair {
            "mov.b16 %h1, 3;\ntcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r20], %h1;"
        } else {
            "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r20];"
        };
        let (mut copies, mut factors, mut scaled) = (String::new(), "", String::new());
        if self.factors > 0 {
            // Scale factors of A from column 384 on, of B from 400 on: 512 bytes for each 128 rows, without a swizzle.
            for n in 0..1 + self.n.div_ceil(128) {
                let column = if n == 0 { 384 } else { 396 + 4 * n };
                copies += &format!(
                    "add.s64 %d5, %d2, {};\ntcgen05.cp.cta_group::{g}.32x128b.warpx4 [%r90+{column}], %d5;\n",
                    (factors_at + 512 * n) / 16
                );
            }
            copies = format!("or.b64 %d2, %d3, {:#x};\n{copies}", 1u64 << 46 | (128u64 >> 4) << 32);
            factors = "[%r90+384], [%r90+400], ";
            scaled = format!(".block_scale{}", self.vector);
        }
        filled_first(&format!(
            "setp.eq.u32 %p1, %r98, 0;\nsetp.eq.and.u32 %p1, %r97, 0, %p1;\n@!%p1 bra WAIT;\nmov.u32 %r20, bar;\nmov.u32 %r21, smem;\n\
             bfe.u32 %r22, %r21, 4, 14;\ncvt.u64.u32 %d3, %r22;\n{copies}add.s64 %d4, %d3, {};\nor.b64 %d3, %d3, {a:#x};\nor.b64 %d4, %d4, {b:#x};\n\
             {words}tcgen05.mma.cta_group::{g}.kind::{}{scaled}{} [%r90], {a_operand}, %d4, {:#x}, {mask}{factors}{}{scale};\n{commit}\n\
             WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;\n@!%p2 bra WAIT;\ntcgen05.fence::after_thread_sync;",
            b_at / 16,
            self.kind,
            self.collector,
            self.idesc(),
            u8::from(self.accumulate),
        ))
    }
}

pub fn rows() -> Vec<Row> {
    let mut cases = Vec::new();
    // Every format beside every other, and every layout that it can have.
    let floats = [E4m3, E5m2, E2m3, E3m2, E2m1];
    for (n, (a, b)) in floats.into_iter().flat_map(|a| floats.map(|b| (a, b))).enumerate() {
        let swizzle = [128, 64, 32, 0][n % 4];
        cases.push(Case { a, b, swizzle, half_d: n % 3 == 0, ..CASE });
    }
    let tf32 = Case { kind: "tf32", a: Tf32, b: Tf32, ..CASE };
    let i8 = Case { kind: "i8", a: S8, b: S8, ..CASE };
    for case in [&CASE, &tf32, &i8] {
        for swizzle in [0, 32, 64, 128] {
            cases.push(Case { swizzle, ..case.clone() });
        }
        cases.push(Case { wide: true, ..case.clone() });
        for (a_mn, b_mn) in [(false, true), (true, false), (true, true)] {
            if case.kind == "tf32" {
                cases.push(Case { a_mn, b_mn, wide: true, ..case.clone() });
                continue;
            }
            for swizzle in [0, 32, 64, 128] {
                cases.push(Case { a_mn, b_mn, swizzle, ..case.clone() });
            }
        }
        // Shapes.
        cases.push(Case { m: 64, n: 24, swizzle: 64, ..case.clone() });
        cases.push(Case { n: 8, swizzle: 32, ..case.clone() });
        cases.push(Case { n: 256, swizzle: 32, ..case.clone() });
        for (m, n) in [(256, 64), (128, 64), (128, 32)] {
            cases.push(Case { m, n, pair: true, swizzle: 64, ..case.clone() });
        }
        cases.push(Case { m: 256, pair: true, a_mn: true, b_mn: true, wide: case.kind == "tf32", ..case.clone() });
        // D that counts, lanes that are left as they are, A in tensor memory, hints.
        cases.push(Case { before: 24, accumulate: true, ..case.clone() });
        cases.push(Case { before: 24, ..case.clone() });
        cases.push(Case { before: 5, disabled: vec![0, 0xffff_ffff, 0x8000_0001, 0xf0], ..case.clone() });
        let disabled = vec![1, 2, 4, 8, 16, 32, 64, 0x8000_0000];
        cases.push(Case { m: 256, pair: true, swizzle: 64, before: 5, disabled, ..case.clone() });
        cases.push(Case { a_in_tensor: true, ..case.clone() });
        cases.push(Case { m: 64, a_in_tensor: true, ..case.clone() });
        cases.push(Case { m: 256, pair: true, swizzle: 64, a_in_tensor: true, ..case.clone() });
        cases.push(Case { m: 128, pair: true, swizzle: 64, a_in_tensor: true, ..case.clone() });
        cases.extend(COLLECTORS.map(|collector| Case { collector, n: 16, ..case.clone() }));
    }
    for (a, b) in [(E2m1, E4m3), (E3m2, E2m3)] {
        cases.push(Case { a, b, a_in_tensor: true, ..CASE });
    }
    for negate in [[true, false], [false, true], [true, true]] {
        cases.push(Case { negate, ..CASE });
        cases.push(Case { negate, ..tf32.clone() });
    }
    cases.push(Case { before: 24, accumulate: true, scale: Some(3), ..tf32.clone() });
    for (a, b) in [(U8, S8), (S8, U8), (U8, U8)] {
        cases.push(Case { a, b, ..i8.clone() });
    }
    for saturate in [true, false] {
        cases.push(Case { before: i32::MAX - 5, accumulate: true, saturate, n: 48, ..i8.clone() });
    }
    cases.extend(scaled());
    let mut rows: Vec<Row> = cases.iter().map(Case::row).collect();
    rows.extend([CASE, tf32, i8].map(|case| stationary(Case { n: 64, ..case }.row())));
    rows.extend(order());
    rows
}

/// Kinds with scale factors.
fn scaled() -> Vec<Case> {
    let mut cases = Vec::new();
    let eights = Case { kind: "mxf8f6f4", factors: 1, ..CASE };
    let fours = Case { kind: "mxf4", a: E2m1, b: E2m1, factors: 2, ..CASE };
    let few = Case { kind: "mxf4nvf4", vector: ".scale_vec::4X", factors: 4, ue4m3: true, ..fours.clone() };
    for (n, vector) in ["", ".scale_vec::1X", ".block32"].into_iter().enumerate() {
        cases.push(Case {
            vector,
            ids: [n, 3 - n],
            a: [E4m3, E5m2, E2m1][n],
            b: [E3m2, E4m3, E2m3][n],
            ..eights.clone()
        });
    }
    for (vector, ids) in [("", [0, 2]), (".scale_vec::2X", [2, 0]), (".block32", [2, 2])] {
        cases.push(Case { vector, ids, ..fours.clone() });
    }
    for (vector, factors, ue4m3) in [
        (".scale_vec::2X", 2, false),
        (".block32", 2, false),
        (".scale_vec::4X", 4, false),
        (".block16", 4, true),
        (".scale_vec::4X", 4, true),
    ] {
        cases.push(Case { vector, factors, ue4m3, ..few.clone() });
    }
    for case in [&eights, &fours, &few] {
        for swizzle in [0, 32, 64] {
            cases.push(Case { swizzle, ..case.clone() });
        }
        cases.push(Case { n: 8, ..case.clone() });
        cases.push(Case { n: 256, swizzle: 32, ..case.clone() });
        for (m, n) in [(256, 64), (128, 64), (256, 160)] {
            cases.push(Case { m, n, pair: true, swizzle: 32, ..case.clone() });
        }
        cases.push(Case { before: 24, accumulate: true, negate: [true, false], ..case.clone() });
        cases.push(Case { a_in_tensor: true, ..case.clone() });
        cases.push(Case { a_in_tensor: true, m: 256, pair: true, swizzle: 64, ..case.clone() });
        cases.extend(COLLECTORS.map(|collector| Case { collector, n: 16, ..case.clone() }));
    }
    for (a_mn, b_mn) in [(true, false), (false, true)] {
        cases.push(Case { a_mn, b_mn, ..eights.clone() });
    }
    cases.push(Case {
        collector: ".collector::a::discard",
        vector: ".block32",
        m: 256,
        pair: true,
        swizzle: 64,
        ..eights
    });
    cases
}

/// What is found when something is left out.
fn order() -> Vec<Row> {
    let eights = Case { kind: "mxf8f6f4", factors: 1, n: 16, ..CASE }.row();
    let copies = "tcgen05.cp.cta_group::1.32x128b.warpx4 [%r90+384], %d5;";
    vec![
        // Scale factors that nobody has brought.
        eights.clone().without(copies, "undefined-value-stored"),
        // All four quarters need them: these come from the first 2 KB of A.
        eights
            .with(copies, "tcgen05.cp.cta_group::1.128x128b [%r90+384], %d2;", "scale-factors-apart")
            .with("[%r90+384], [%r90+400], ", "[%r90+510], [%r90+400], ", "tensor-address")
            .with("[%r90+384], [%r90+400], ", "[%r90+384], [%r90+512], ", "tensor-address")
            .with("warpx4 [%r90+384]", "warpx4 [%r90+509]", "tensor-address"),
        // Fields that the kind does not take.
        wrong(&CASE, 1 << 2, "instruction-descriptor"),
        wrong(&Case { kind: "mxf8f6f4", factors: 1, n: 16, ..CASE }, 1 << 24, "instruction-descriptor"),
        wrong(&Case { kind: "i8", a: S8, b: S8, ..CASE }, 1 << 13, "instruction-descriptor"),
        // MN-major TF32 lies in atoms of 32 bytes, and nothing else does.
        wrong(&Case { kind: "tf32", a: Tf32, b: Tf32, ..CASE }, 1 << 15, "matrix-descriptor"),
        wrong(&Case { wide: true, ..CASE }, 1 << 16, "matrix-descriptor"),
    ]
}

/// With these bits set in the instruction descriptor as well.
fn wrong(case: &Case, bits: u32, code: &'static str) -> Row {
    let idesc = |bits: u32| format!(", {:#x}, ", bits);
    case.row().with(&idesc(case.idesc()), &idesc(case.idesc() | bits), code)
}

/// Scale factors that only some quarters of the lanes hold: what is said names these, and the copy that writes all.
#[test]
fn scale_factors_of_one_quarter_are_told_from_none() {
    let row = with_one_quarter(Case { kind: "mxf8f6f4", factors: 1, n: 16, ..CASE }.row());
    let text = rendered(&row.run(&load(&row.text()), None));
    let says = "scale factors of A in tensor memory column 384: lanes 0 to 31 hold them, lanes 32 to 63, 64 to 95, 96 to 127 do not";
    assert!(text.contains("undefined-value-stored") && text.contains(says), "{text}");
    assert!(text.contains("tcgen05.cp.32x128b.warpx4"), "{text}");
    let none = Case { kind: "mxf8f6f4", factors: 1, n: 16, ..CASE }
        .row()
        .replaced("tcgen05.cp.cta_group::1.32x128b.warpx4 [%r90+400], %d5;", "");
    let text = rendered(&none.run(&load(&none.text()), None));
    let says = "scale factors of B in tensor memory column 400, which nothing has written (column 400 of all quarters)";
    assert!(text.contains(says), "{text}");
}

/// Some columns of the scale factors are there, others are not: these are named, with their lanes.
#[test]
fn columns_that_lack_scale_factors_are_named() {
    let row = Case { kind: "mxf8f6f4", factors: 1, n: 16, ..CASE }.row();
    let copy = "tcgen05.cp.cta_group::1.32x128b.warpx4 [%r90+384], %d5;";
    let text = rendered(&row.run(&load(&row.text()), None));
    assert!(!text.contains("undefined-value-stored"), "{text}");
    let late = row.replaced(copy, &copy.replace("+384", "+386"));
    let text = rendered(&late.run(&load(&late.text()), None));
    let says = "scale factors of A in tensor memory column 384, where nothing has written column 384 in lanes 0 to 127, column 385 in lanes 0 to 127";
    assert!(text.contains("undefined-value-stored") && text.contains(says), "{text}");
}

/// The first warp stores scale factors of A, of ones, where the copy would have brought them to all quarters.
fn with_one_quarter(row: Row) -> Row {
    let begin = "setp.eq.u32 %p1, %r98, 0;\n";
    let store = "setp.ge.u32 %p3, %r98, 32;\n@%p3 bra STORED;\nmov.b32 %x9, 0x7f7f7f7f;\n\
                 tcgen05.st.sync.aligned.32x32b.x4.b32 [%r90+384], {%x9, %x9, %x9, %x9};\ntcgen05.wait::st.sync.aligned;\nSTORED:\n\
                 tcgen05.fence::before_thread_sync;\nbar.sync 0;\ntcgen05.fence::after_thread_sync;\n";
    row.replaced("tcgen05.cp.cta_group::1.32x128b.warpx4 [%r90+384], %d5;", "")
        .replaced(begin, &format!("{store}{begin}"))
}

#[test]
fn values() {
    check(&rows());
}
