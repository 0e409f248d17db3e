//! GEMMs for Hopper as PTX text from an independent compiler (Triton 3.9), which knows nothing of this emulator. They must load, run on
//! every schedule without a finding, and give the right matrix. Text and source lie in `triton/`.

mod common;

use common::{load, matrix, schedules};
use emulator::{Buffer, Content, Deadlock, Element, Launch, Param, Swizzle, TensorMap};
use half::f16;

const M: usize = 256;
const N: usize = 256;
const K: usize = 384;

struct Case {
    name: &'static str,
    text: &'static str,
    entry: &'static str,
    warps: usize,
    shared: u32,
    /// B is N-major.
    turned: bool,
    /// What each element of A is multiplied with.
    factor: i32,
}

macro_rules! text {
    ($name:literal) => {
        include_str!(concat!("triton/", $name, ".ptx"))
    };
}

const fn case(name: &'static str, text: &'static str, entry: &'static str, warps: usize, shared: u32) -> Case {
    Case { name, text, entry, warps, shared, turned: false, factor: 1 }
}

/// Shared memory as the compiler's metadata says it.
const CASES: [Case; 6] = [
    case("pointers4", text!("pointers4"), "pointers", 4, 73_728),
    case("pointers8", text!("pointers8"), "pointers", 8, 131_072),
    case("maps4", text!("maps4"), "maps", 4, 73_752),
    case("maps8", text!("maps8"), "maps", 8, 131_104),
    Case { turned: true, ..case("maps8_turned", text!("maps8_turned"), "maps", 8, 98_328) },
    Case { factor: 2, ..case("registers4", text!("registers4"), "registers", 4, 65_584) },
];

impl Case {
    /// A map of a matrix in boxes of 64 columns, and what the compiler takes beside it: sizes and strides.
    fn map(&self, buffer: usize, rows: usize, columns: usize, box_rows: usize) -> Vec<Param> {
        let map = TensorMap {
            address: 0,
            element: Element::F16,
            dims: vec![columns as u64, rows as u64],
            strides: vec![columns as u64 * 2],
            box_dims: vec![64, box_rows as u32],
            element_strides: vec![],
            swizzle: Swizzle::B128,
            fill_nan: false,
        };
        let sizes = [Param::U32(rows as u32), Param::U32(columns as u32), Param::U64(columns as u64), Param::U64(1)];
        [Param::TensorMap { buffer, map }].into_iter().chain(sizes).collect()
    }

    fn launch(&self, a: &[i32], b: &[i32]) -> Launch {
        let m = 16 * self.warps;
        let b: Vec<i32> = match self.turned {
            true => (0..K * N).map(|at| b[at % N * K + at / N]).collect(),
            false => b.to_vec(),
        };
        let bytes =
            |m: &[i32]| m.iter().flat_map(|&x| f16::from_f32(x as f32).to_bits().to_le_bytes()).collect::<Vec<u8>>();
        let buffer = |name: &str, content| Buffer { name: name.into(), content, ..Default::default() };
        let mut params = if self.entry == "pointers" {
            let pointers = (0..3).map(|buffer| Param::Pointer { buffer, offset: 0 });
            pointers.chain([M, N, K].map(|size| Param::U32(size as u32))).collect()
        } else {
            let b = if self.turned { self.map(1, K, N, 64) } else { self.map(1, N, K, 128) };
            [self.map(0, M, K, m), b, self.map(2, M, N, m), vec![Param::U32(K as u32)]].concat()
        };
        // Memory that the compiler may ask for, and did not.
        params.extend([Param::U64(0), Param::U64(0)]);
        Launch {
            entry: self.entry.into(),
            grid: [(M / m) as u32, (N / 128) as u32, 1],
            cluster: [1, 1, 1],
            block: [32 * self.warps as u32, 1, 1],
            dynamic_shared: self.shared,
            buffers: vec![
                buffer("A", Content::Bytes(bytes(a).into())),
                buffer("B", Content::Bytes(bytes(&b).into())),
                buffer("D", Content::Undefined { bytes: (M * N * 2) as u64 }),
            ],
            params,
            ..Default::default()
        }
    }
}

#[test]
fn right_and_clean() {
    let (a, b) = (matrix(M, K, 1, 2), matrix(N, K, 2, 2));
    let sum = |at: usize| -> i32 { (0..K).map(|k| a[at / N * K + k] * b[at % N * K + k]).sum() };
    let sums: Vec<i32> = (0..M * N).map(sum).collect();
    for case in &CASES {
        let (program, launch) = (load(case.text), case.launch(&a, &b));
        for seed in schedules(4) {
            let report = common::run(&program, &launch, seed, 10_000_000);
            assert!(report.is_clean(), "{}, seed {seed:?}: {:#?}", case.name, report.findings);
            assert_eq!(report.deadlock, Deadlock::Impossible);
            let d = common::pair::d(&report);
            let right = |at: usize| d[at] == f16::from_f32((case.factor * sums[at]) as f32).to_f32();
            let wrong = (0..M * N).filter(|&at| !right(at)).count();
            assert_eq!(wrong, 0, "{}, seed {seed:?}: elements of D are wrong", case.name);
        }
    }
}
