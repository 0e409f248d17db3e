//! GEMMs as PTX text from an independent compiler (Gluon, of Triton 3.9), which knows nothing of this emulator. They must load, run
//! on every schedule without a finding, and give the right matrix. Text, launch and source lie in `gluon/`.

use emulator::{Buffer, Content, Element, Launch, Options, Param, Report, Swizzle, TensorMap};
use half::{bf16, f16};
use serde_json::Value;
use std::path::Path;

/// Small integers, so that every sum is exact.
fn matrix(rows: usize, columns: usize, seed: u64) -> Vec<i32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as i32 % 5 - 2
    };
    (0..rows * columns).map(|_| next()).collect()
}

struct Case {
    text: String,
    launch: Launch,
    size: [usize; 3],
    bf: bool,
}

fn numbers<T: TryFrom<u64>>(value: &Value) -> Vec<T> {
    let list = value.as_array().expect("a list").iter();
    list.map(|v| T::try_from(v.as_u64().expect("a number")).ok().expect("in range")).collect()
}

fn dims(value: &Value) -> [u32; 3] {
    numbers(value).try_into().expect("three")
}

fn case(name: &str) -> Case {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gluon");
    let read = |end: &str| std::fs::read_to_string(folder.join(format!("{name}.{end}"))).expect(name);
    let j: Value = serde_json::from_str(&read("json")).expect(name);
    let number = |key: &str| j[key].as_u64().expect(key) as usize;
    let size = [number("M"), number("N"), number("K")];
    let bf = j["dtype"] == "bf16";
    let bytes = |m: Vec<i32>| {
        let bits = |x: i32| if bf { bf16::from_f32(x as f32).to_bits() } else { f16::from_f32(x as f32).to_bits() };
        Content::Bytes(m.into_iter().flat_map(|x| bits(x).to_le_bytes()).collect())
    };
    let [m, n, k] = size;
    let buffer = |name: &str, content, row: usize| Buffer {
        name: name.into(),
        content,
        row_bytes: Some(2 * row as u32),
        element_bytes: Some(2),
    };
    let index = |name: &Value| ["A", "B", "D"].iter().position(|b| name == b).expect("A, B or D");
    let params = j["params"].as_array().expect("params").iter().map(|p| match p["kind"].as_str() {
        Some("pointer") => Param::Pointer { buffer: index(&p["buffer"]), offset: 0 },
        Some("null_pointer") => Param::U64(0),
        Some("i32") => Param::U32(p["value"].as_i64().expect("a value") as u32),
        Some("i64") => Param::U64(p["value"].as_i64().expect("a value") as u64),
        Some("tensor_map") => {
            let t = &j["tensor_maps"][p["tensor_map"].as_u64().expect("an index") as usize];
            let map = TensorMap {
                address: 0,
                element: if bf { Element::Bf16 } else { Element::F16 },
                dims: numbers(&t["global_dims"]),
                strides: numbers(&t["global_strides_bytes"]),
                box_dims: numbers(&t["box_dims"]),
                element_strides: numbers(&t["element_strides"]),
                swizzle: match t["swizzle"].as_str() {
                    Some("128B") => Swizzle::B128,
                    Some("64B") => Swizzle::B64,
                    Some("32B") => Swizzle::B32,
                    _ => Swizzle::None,
                },
                fill_nan: false,
            };
            Param::TensorMap { buffer: index(&t["buffer"]), map }
        }
        other => panic!("{name}: parameter kind {other:?}"),
    });
    let launch = Launch {
        entry: j["entry"].as_str().expect("entry").into(),
        grid: dims(&j["grid"]),
        cluster: dims(&j["cluster"]),
        block: dims(&j["block"]),
        dynamic_shared: number("dynamic_shared_bytes") as u32,
        params: params.collect(),
        buffers: vec![
            buffer("A", bytes(matrix(m, k, 1)), k),
            buffer("B", bytes(matrix(n, k, 2)), k),
            buffer("D", Content::Undefined { bytes: (m * n * 2) as u64 }, n),
        ],
        ..Default::default()
    };
    Case { text: read("ptx"), launch, size, bf }
}

/// Elements of D that differ from the exact product, rounded once.
fn wrong(case: &Case, report: &Report) -> usize {
    let [m, n, k] = case.size;
    let (a, b) = (matrix(m, k, 1), matrix(n, k, 2));
    let Some(d) = report.buffers.get(2) else { return m * n };
    (0..m * n)
        .filter(|&at| {
            let (row, column) = (at / n, at % n);
            let sum: i32 = a[row * k..][..k].iter().zip(&b[column * k..][..k]).map(|(x, y)| x * y).sum();
            let bits = u16::from_le_bytes([d.bytes[2 * at], d.bytes[2 * at + 1]]);
            let expected =
                if case.bf { bf16::from_f32(sum as f32).to_bits() } else { f16::from_f32(sum as f32).to_bits() };
            bits != expected && !(sum == 0 && bits & 0x7fff == 0)
        })
        .count()
}

/// Adversarial schedules of each kernel: a few, or as many as `EMULATOR_SEEDS` says (`.ci/run` asks for 50).
fn seeds() -> u64 {
    std::env::var("EMULATOR_SEEDS").map_or(2, |n| n.parse().expect("EMULATOR_SEEDS is a number"))
}

fn runs(name: &str) {
    let case = case(name);
    let program = emulator::load(&case.text).unwrap_or_else(|e| panic!("{name} does not load: {e:#?}"));
    for seed in std::iter::once(None).chain((0..seeds()).map(Some)) {
        let options = Options { seed, max_instructions: 100_000_000, ..Default::default() };
        let report = emulator::run(&program, &case.launch, &options);
        assert!(report.is_clean(), "{name}, seed {seed:?}: {:#?}", report.findings);
        assert_eq!(wrong(&case, &report), 0, "{name}, seed {seed:?}");
    }
}

macro_rules! kernels {
    ($($name:ident),*) => { $(#[test] fn $name() { runs(stringify!($name)); })* };
}

kernels!(
    a_in_tmem,
    clc,
    clc_two_cta,
    cp_async,
    ld_st,
    multicast,
    ring3,
    ring3_bf16,
    tile_m64,
    tile_single,
    two_cta,
    two_cta_ring,
    ws_persistent,
    ws_two_cta
);
