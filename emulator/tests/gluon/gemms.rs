//! GEMMs of other formats than 16 bits, with scale factors, with tensor maps that the kernel makes, and of programs that share work. The inputs are such that every sum is
//! exact in FP32, which is checked; so D must be that sum, rounded once to its type.

use super::case::formats::Format;
use super::case::{Case, Operand, case};
use super::on_every_schedule;
use emulator::{Content, Report};

/// Values that elements take, each with either sign.
#[derive(Clone, Copy)]
enum Values {
    /// Codes of the format from one to another.
    Codes(u32, u32),
    /// Whole numbers up to the first, times two to the power of the second.
    Whole(u32, i32),
}
use Values::{Codes, Whole};

struct Gemm {
    name: &'static str,
    a: Values,
    b: Values,
    /// Codes of scale factors, without sign.
    scales: (u32, u32),
}

const WHOLE: Gemm = Gemm { name: "", a: Whole(2, 0), b: Whole(2, 0), scales: (0, 0) };

/// Subnormal numbers are among them, and all of e2m1. TF32 has 11 significant bits.
const GEMMS: &[Gemm] = &[
    Gemm { name: "fp8_e4m3", a: Codes(0x20, 0x40), b: Codes(0, 0x1f), ..WHOLE },
    Gemm { name: "fp8_e5m2", a: Codes(0x34, 0x44), b: Codes(0, 0x0f), ..WHOLE },
    Gemm { name: "fp8_mixed", a: Codes(0, 0x17), b: Codes(0x6c, 0x7b), ..WHOLE },
    Gemm { name: "fp8_pair", a: Codes(0x68, 0x7e), b: Codes(0, 0x17), ..WHOLE },
    Gemm { name: "tf32", a: Whole(2047, -12), b: Whole(15, 3), ..WHOLE },
    Gemm { name: "tf32_pair", a: Whole(15, 0), b: Whole(2047, 4), ..WHOLE },
    Gemm { name: "mxf8", a: Codes(0, 0x0f), b: Codes(0x48, 0x57), scales: (126, 128) },
    Gemm { name: "mxf8_mixed", a: Codes(0x38, 0x43), b: Codes(0, 0x0f), scales: (124, 126) },
    Gemm { name: "mxf8_pair", a: Codes(0x38, 0x4f), b: Codes(0, 0x0f), scales: (128, 130) },
    Gemm { name: "mxf8f4", a: Codes(0, 0x0f), b: Codes(0, 7), scales: (120, 122) },
    Gemm { name: "mxf4", a: Codes(0, 7), b: Codes(0, 7), scales: (125, 128) },
    Gemm { name: "mxf4_pair", a: Codes(0, 7), b: Codes(0, 7), scales: (130, 133) },
    Gemm { name: "nvf4", a: Codes(0, 7), b: Codes(0, 7), scales: (0x38, 0x3f) },
    Gemm { name: "mxf8_st", a: Codes(0, 0x0f), b: Codes(0x48, 0x57), scales: (126, 128) },
    Gemm { name: "nvf4_st", a: Codes(0, 7), b: Codes(0, 7), scales: (0x38, 0x3f) },
    Gemm { name: "weights4", a: Whole(127, -6), b: Codes(0, 7), scales: (120, 123) },
    Gemm { name: "int8", a: Whole(127, 0), b: Whole(127, 0), ..WHOLE },
    Gemm { name: "fp8_roles", a: Codes(0x20, 0x40), b: Codes(0, 0x1f), ..WHOLE },
    Gemm { name: "device_maps", ..WHOLE },
    Gemm { name: "grouped", ..WHOLE },
    Gemm { name: "gathered", ..WHOLE },
    Gemm { name: "two_pairs", ..WHOLE },
    Gemm { name: "split_k", ..WHOLE },
    Gemm { name: "reduced", ..WHOLE },
    Gemm { name: "last_block", ..WHOLE },
    Gemm { name: "stream_k", ..WHOLE },
    Gemm { name: "sums_fp16", ..WHOLE },
    Gemm { name: "four_ctas", ..WHOLE },
    Gemm { name: "roles_halves", ..WHOLE },
    Gemm { name: "descriptors_34", ..WHOLE },
    Gemm { name: "roles_35", ..WHOLE },
];

pub fn names() -> impl Iterator<Item = &'static str> {
    GEMMS.iter().map(|gemm| gemm.name)
}

/// Numbers that a seed gives.
pub fn random(seed: u64) -> impl FnMut(u32, u32) -> u32 {
    let mut state = seed;
    move |low, high| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        low + (state >> 40) as u32 % (high - low + 1)
    }
}

fn fill(case: &mut Case, gemm: &Gemm) {
    for (at, operand) in case.operands.clone().iter().enumerate() {
        let mut next = random(at as u64 + 1);
        let format = operand.format;
        let codes: Vec<u32> = match (operand.role.as_str(), if at == 0 { gemm.a } else { gemm.b }) {
            ("scale", _) => (0..operand.elements()).map(|_| next(gemm.scales.0, gemm.scales.1)).collect(),
            ("input", Codes(low, high)) => {
                let sign = format.bits() - 1;
                (0..operand.elements()).map(|_| next(low, high) | next(0, 1) << sign).collect()
            }
            ("input", Whole(most, exponent)) => {
                let mut value = || f64::from(next(0, 2 * most) as i32 - most as i32) * 2f64.powi(exponent);
                (0..operand.elements()).map(|_| format.nearest(value())).collect()
            }
            _ => continue,
        };
        case.set(at, codes);
    }
}

fn bytes(case: &Case, buffer: usize) -> &[u8] {
    match &case.launch.buffers[buffer].content {
        Content::Bytes(bytes) => bytes,
        other => panic!("{}: {other:?}", case.operands[buffer].name),
    }
}

/// The rows of an operand as numbers, times the scale factors of their blocks.
fn matrix(case: &Case, name: &str) -> Vec<Vec<f64>> {
    let buffer = case.buffer(name);
    let (operand, bytes_of) = (&case.operands[buffer], bytes(case, buffer));
    let columns = *operand.shape.last().expect("a matrix");
    let element = |at| operand.format.value(operand.format.code(bytes_of, at));
    let mut rows: Vec<Vec<f64>> = (0..operand.elements() / columns)
        .map(|row| (0..columns).map(|c| element(row * columns + c)).collect())
        .collect();
    let of = |operand: &Operand| operand.name == format!("S{name}");
    let (Some(block), Some(scales)) = (case.scale_block, case.operands.iter().position(of)) else { return rows };
    let (format, factors) = (case.operands[scales].format, bytes(case, scales));
    let (blocks, by_rows) = (columns / block, case.operands[scales].shape.len() == 2);
    for (row, elements) in rows.iter_mut().enumerate() {
        for (column, element) in elements.iter_mut().enumerate() {
            let (of, r) = (column / block, row % 128);
            let at = match by_rows {
                true => row * blocks + of,
                // Of 128 rows and 4 blocks there are 512 bytes; see block_scaled.py.
                false => (row / 128 * blocks / 4 + of / 4) * 512 + r % 32 * 16 + r / 32 * 4 + of % 4,
            };
            *element *= format.value(format.code(factors, at));
        }
    }
    rows
}

/// The largest power of two that divides all of them.
fn unit(matrix: &[Vec<f64>]) -> f64 {
    let lowest = |x: &f64| {
        let mut unit = 2f64.powi(x.abs().log2().floor() as i32);
        while (x / unit).fract() != 0.0 {
            unit /= 2.0;
        }
        unit
    };
    matrix.iter().flatten().filter(|x| **x != 0.0).map(lowest).fold(f64::MAX, f64::min)
}

/// Which rows of B each row of D is multiplied with: the group's matrix of several, one below the other.
fn first_row_of_b(case: &Case, row: usize) -> usize {
    let Some(ends) = case.operands.iter().position(|operand| operand.role == "ends") else { return 0 };
    let bytes = bytes(case, ends);
    let end = |group: usize| Format::I32.code(bytes, group) as usize;
    let group = (0..case.operands[ends].elements()).find(|&group| row < end(group)).expect("a group");
    group * case.size[1]
}

/// D as it must be, before it is rounded. No sum of a few products needs more than the 24 bits of FP32, whatever their order.
fn product(name: &str, case: &Case) -> Vec<f64> {
    let [m, n, _] = case.size;
    let (a, b) = (matrix(case, "A"), matrix(case, "B"));
    let unit = unit(&a) * unit(&b);
    let mut d = Vec::with_capacity(m * n);
    for (row, x) in a.iter().enumerate() {
        for y in &b[first_row_of_b(case, row)..][..n] {
            let (mut sum, mut most) = (0.0, 0.0);
            for (x, y) in x.iter().zip(y) {
                sum += x * y;
                most += (x * y).abs();
            }
            assert!(most < unit * 2f64.powi(24), "{name}: sums up to {most} in units of {unit} are not exact in FP32");
            d.push(sum);
        }
    }
    d
}

fn judge(case: &Case, want: &[f64], report: &Report) -> Result<(), String> {
    let (buffer, n) = (case.output(), case.size[1]);
    let format = case.operands[buffer].format;
    let bytes = &report.buffers[buffer].bytes;
    let got = |at: usize| format.value(format.code(bytes, at));
    let wrong: Vec<usize> = (0..want.len()).filter(|&at| got(at) != format.value(format.nearest(want[at]))).collect();
    let Some(&at) = wrong.first() else { return Ok(()) };
    let (of, row, column) = (want.len(), at / n, at % n);
    Err(format!(
        "{} of {of} elements are wrong: row {row}, column {column} is {}, not {}",
        wrong.len(),
        got(at),
        want[at]
    ))
}

fn runs(name: &str) {
    let gemm = GEMMS.iter().find(|gemm| gemm.name == name).expect("a row of the table");
    let mut case = case(name, None);
    fill(&mut case, gemm);
    let want = product(name, &case);
    on_every_schedule(name, &case, |report| judge(&case, &want, report));
}

macro_rules! kernels {
    ($($name:ident),*) => {
        $(#[test] fn $name() { runs(stringify!($name)); })*

        /// No row of the table is left out.
        #[test]
        fn all_are_run() {
            assert!(names().eq([$(stringify!($name)),*]));
        }
    };
}

kernels!(
    fp8_e4m3,
    fp8_e5m2,
    fp8_mixed,
    fp8_pair,
    tf32,
    tf32_pair,
    mxf8,
    mxf8_mixed,
    mxf8_pair,
    mxf8f4,
    mxf4,
    mxf4_pair,
    nvf4,
    mxf8_st,
    nvf4_st,
    weights4,
    int8,
    fp8_roles,
    device_maps,
    grouped,
    gathered,
    two_pairs,
    split_k,
    reduced,
    last_block,
    stream_k,
    sums_fp16,
    four_ctas,
    roles_halves,
    descriptors_34,
    roles_35
);
