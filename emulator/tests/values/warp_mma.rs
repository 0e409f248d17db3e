//! `mma.sync` and `movmatrix`: which lane holds which element, and the products of small integers.

use crate::common::matrix;
use crate::row::{Row, bare, check, each};
use half::{bf16, f16};

pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for depth in [16, 8] {
        for types in ["f32.f16.f16.f32", "f16.f16.f16.f16", "f32.bf16.bf16.f32"] {
            rows.push(product(depth, types));
        }
    }
    rows.push(special());
    // Lane t holds row t / 4, columns 2 (t % 4) and the next, low half first; behind it, of the matrix with rows and columns exchanged.
    let element = |row: u64, column: u64| 16 * row + column;
    let fill = "shr.u32 %r2, %r98, 2; shl.b32 %r2, %r2, 4; and.b32 %r3, %r98, 3; shl.b32 %r3, %r3, 1; add.u32 %r2, %r2, %r3;\n\
                mad.lo.u32 %r1, %r2, 0x10001, 0x10000;\n";
    rows.push(
        each(32, "movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r1;", |t| {
            element(2 * (t % 4), t / 4) | element(2 * (t % 4) + 1, t / 4) << 16
        })
        .around(fill, "")
        .without("mad.lo.u32 %r1, %r2, 0x10001, 0x10000;", "undefined-value-stored"),
    );
    rows
}

/// The element of A that part i of a lane's fragment is, in the words of the ISA: of 16 columns there are eight parts, of 8 four.
fn a_place(lane: usize, i: usize) -> (usize, usize) {
    let (group, thread) = (lane >> 2, lane % 4);
    let row = if i < 2 || (4..6).contains(&i) { group } else { group + 8 };
    (row, thread * 2 + (i & 1) + if i >= 4 { 8 } else { 0 })
}

/// Row and column of B.
fn b_place(lane: usize, i: usize) -> (usize, usize) {
    (lane % 4 * 2 + (i & 1) + if i >= 2 { 8 } else { 0 }, lane >> 2)
}

fn c_place(lane: usize, i: usize) -> (usize, usize) {
    ((lane >> 2) + if i >= 2 { 8 } else { 0 }, lane % 4 * 2 + (i & 1))
}

/// Each lane finds its registers in `in`, 16 words apart: A, B, C; and leaves those of D in `out`, four words apart.
fn kernel(depth: usize, types: &str) -> (String, String) {
    let (a, b, c) = (depth / 4, depth / 8, if types.starts_with("f32") { 4 } else { 2 });
    let (mut load, mut next) = ("mul.wide.u32 %d10, %r98, 64; add.s64 %d10, %d10, %d7;\n".to_string(), 0);
    let mut list = |count: usize| {
        let names: Vec<String> = (next..next + count).map(|n| format!("%x{n}")).collect();
        for name in &names {
            load += &format!("ld.global.b32 {name}, [%d10+{}];\n", 4 * next);
            next += 1;
        }
        names.join(", ")
    };
    let (a, b, c_list) = (list(a), list(b), list(c));
    let d: Vec<String> = (40..40 + c).map(|n| format!("%x{n}")).collect();
    let body = format!(
        "{load}mma.sync.aligned.m16n8k{depth}.row.col.{types} {{{}}}, {{{a}}}, {{{b}}}, {{{c_list}}};\n",
        d.join(", ")
    );
    let store = format!(
        "mul.wide.u32 %d11, %r98, 16; add.s64 %d11, %d11, %d8; st.global.v{c}.b32 [%d11], {{{}}};",
        d.join(", ")
    );
    (body, store)
}

/// Registers of two halves, low one first.
fn pairs(halves: impl IntoIterator<Item = u16>) -> Vec<u32> {
    let halves: Vec<u16> = halves.into_iter().collect();
    halves.chunks(2).map(|pair| u32::from(pair[0]) | u32::from(pair[1]) << 16).collect()
}

/// The registers of C or D in a lane.
fn accumulators(lane: usize, d_f32: bool, value: impl Fn((usize, usize)) -> f32) -> Vec<u32> {
    let values = (0..4).map(|i| value(c_place(lane, i)));
    if d_f32 { values.map(f32::to_bits).collect() } else { pairs(values.map(|x| f16::from_f32(x).to_bits())) }
}

fn row(depth: usize, types: &str, a: &[f32], b: &[f32], c: &[f32], d: impl Fn((usize, usize)) -> f32) -> Row {
    let bits = |x: f32| if types.contains("bf16") { bf16::from_f32(x).to_bits() } else { f16::from_f32(x).to_bits() };
    let d_f32 = types.starts_with("f32");
    let (mut input, mut expected) = (Vec::new(), Vec::new());
    for lane in 0..32 {
        let mut words = pairs((0..depth / 2).map(|i| {
            let (row, k) = a_place(lane, i);
            bits(a[depth * row + k])
        }));
        words.extend(pairs((0..depth / 4).map(|i| {
            let (k, column) = b_place(lane, i);
            bits(b[8 * k + column])
        })));
        words.extend(accumulators(lane, d_f32, |(row, column)| c[8 * row + column]));
        words.resize(16, 0);
        input.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        let mut words = accumulators(lane, d_f32, &d);
        words.resize(4, 0);
        expected.extend(words.chunks(2).map(|two| u64::from(two[0]) | u64::from(two[1]) << 32));
    }
    let (body, store) = kernel(depth, types);
    bare(32, &body).around("", &store).input(input).gives(0, &expected)
}

fn product(depth: usize, types: &str) -> Row {
    let floats = |list: Vec<i32>| list.into_iter().map(|x| x as f32).collect::<Vec<_>>();
    let (a, b, c) = (floats(matrix(16, depth, 1, 4)), floats(matrix(depth, 8, 2, 4)), floats(matrix(16, 8, 3, 40)));
    let d = |(row, column): (usize, usize)| {
        (0..depth).map(|k| a[depth * row + k] * b[8 * k + column]).sum::<f32>() + c[8 * row + column]
    };
    // A register of A that has no value: some of D has none.
    row(depth, types, &a, &b, &c, d).without("ld.global.b32 %x1, [%d10+4];\n", "undefined-value-stored").with(
        "mma.sync",
        "setp.lt.u32 %p1, %r98, 16;\n@%p1 mma.sync",
        "aligned-lanes-missing",
    )
}

/// Row 0: too much for FP16; row 1: an infinity; row 2: a NaN, which is the canonical one; row 3: FP16's least number survives.
fn special() -> Row {
    let (mut a, mut c) = (vec![0.0; 16 * 16], vec![0.0; 16 * 8]);
    let b = vec![1.0; 16 * 8];
    (a[0], a[1]) = (65504.0, 65504.0);
    a[16] = f32::INFINITY;
    (a[32], a[33]) = (f32::INFINITY, f32::NEG_INFINITY);
    a[48] = 2f32.powi(-24);
    c[8 * 3] = -(2f32.powi(-24));
    row(16, "f16.f16.f16.f16", &a, &b, &c, |(row, column)| match (row, column) {
        (0 | 1, _) => f32::INFINITY,
        (2, _) => f32::from_bits(0x7fff_ffff),
        (3, 0) => 0.0,
        (3, _) => 2f32.powi(-24),
        _ => 0.0,
    })
}

#[test]
fn values() {
    check(&rows());
}
