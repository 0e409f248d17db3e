//! GEMMs, attention and reductions out of libraries whose kernels run on B200s: CUTLASS 4, ThunderKittens, Tilus, TileLang and DeepGEMM, compiled by nvcc, CuTe DSL and QuACK, TIRx, JAX and
//! IREE; three of them for Hopper. They must load, run on every schedule without a finding, but for those that are right, and give the right
//! result. Text, launch and where each comes from lie in `libraries/`.

// Not all of it is needed here.
#[allow(dead_code)]
#[path = "gluon/formats.rs"]
mod formats;
#[path = "libraries/others.rs"]
mod others;
#[path = "common/results_only.rs"]
mod results_only;

use emulator::{Content, Distribution, Launch, Options, Report};
use formats::Format;
use half::{bf16, f16};

/// What elements are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Element {
    F16,
    Bf16,
    F32,
}
use Element::{Bf16, F16, F32};

impl Element {
    fn bytes(self) -> usize {
        if self == F32 { 4 } else { 2 }
    }

    fn read(self, bytes: &[u8]) -> f32 {
        match self {
            F16 => f16::from_le_bytes([bytes[0], bytes[1]]).to_f32(),
            Bf16 => bf16::from_le_bytes([bytes[0], bytes[1]]).to_f32(),
            F32 => f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
        }
    }

    fn round(self, value: f32) -> f32 {
        match self {
            F16 => f16::from_f32(value).to_f32(),
            Bf16 => bf16::from_f32(value).to_f32(),
            F32 => value,
        }
    }
}

/// How a matrix lies in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    Rows,
    Columns,
}
use Order::{Columns, Rows};

/// `D = A Bᵀ + beta C`: A is M × K by rows, B is N × K.
struct Kernel {
    name: &'static str,
    size: [usize; 3],
    inputs: Element,
    outputs: Element,
    b: Order,
    d: Order,
    beta: f32,
}

const CUTE_DSL: Kernel =
    Kernel { name: "", size: [512, 256, 256], inputs: F16, outputs: F16, b: Rows, d: Rows, beta: 0.0 };

const THUNDERKITTENS: Kernel = Kernel { size: [512, 512, 512], inputs: Bf16, outputs: Bf16, b: Columns, ..CUTE_DSL };

const TILUS: Kernel = Kernel { size: [512, 512, 512], ..CUTE_DSL };

const KERNELS: &[Kernel] = &[
    Kernel { name: "cutlass_two_sm", size: [264, 136, 328], outputs: F32, beta: 0.5, ..CUTE_DSL },
    Kernel { name: "cutlass_one_sm", size: [200, 136, 200], ..CUTE_DSL },
    Kernel { name: "cutlass_mn_bf16", size: [512, 512, 128], inputs: Bf16, outputs: Bf16, b: Columns, ..CUTE_DSL },
    Kernel { name: "cutlass_streamk", size: [512, 256, 1024], ..CUTE_DSL },
    Kernel { name: "cutlass_static_p", size: [256, 512, 192], ..CUTE_DSL },
    Kernel { name: "cutlass_nosmem", outputs: F32, d: Columns, ..CUTE_DSL },
    Kernel { name: "cute_dsl_plain", ..CUTE_DSL },
    Kernel { name: "cute_dsl_software_pipeline", ..CUTE_DSL },
    Kernel { name: "cute_dsl_persistent", ..CUTE_DSL },
    Kernel { name: "cute_dsl_dynamic", ..CUTE_DSL },
    Kernel { name: "cute_ext_dense", size: [256, 256, 448], inputs: Bf16, outputs: Bf16, ..CUTE_DSL },
    Kernel { name: "thunderkittens_level_07", ..THUNDERKITTENS },
    Kernel { name: "thunderkittens_level_08", ..THUNDERKITTENS },
    Kernel { name: "thunderkittens_level_09", ..THUNDERKITTENS },
    Kernel { name: "thunderkittens_pairs", size: [1024, 1024, 1024], b: Rows, ..THUNDERKITTENS },
    Kernel { name: "thunderkittens_overlap", b: Rows, ..THUNDERKITTENS },
    Kernel { name: "deep_gemm_bf16", size: [512, 512, 256], inputs: Bf16, outputs: Bf16, ..CUTE_DSL },
    Kernel { name: "tilus_blackwell_v0", ..TILUS },
    Kernel { name: "tilus_blackwell_v1", ..TILUS },
    Kernel { name: "tilus_blackwell_v2", ..TILUS },
    Kernel { name: "tilus_blackwell_v3", ..TILUS },
    Kernel { name: "tilus_blackwell_v4", ..TILUS },
    Kernel { name: "tilus_blackwell_v5", ..TILUS },
    Kernel { name: "tilus_blackwell_v6", ..TILUS },
    Kernel { name: "tilus_hopper_v3", ..TILUS },
    Kernel { name: "tilus_hopper_v4", ..TILUS },
    Kernel { name: "tilus_hopper_v5", ..TILUS },
    Kernel { name: "flashinfer_split_k", size: [24, 192, 3072], inputs: Bf16, outputs: Bf16, ..CUTE_DSL },
    Kernel { name: "flashinfer_tiny", size: [20, 64, 2112], inputs: Bf16, outputs: Bf16, ..CUTE_DSL },
    Kernel { name: "flashinfer_swap_ab", size: [24, 104, 2304], inputs: Bf16, outputs: Bf16, ..CUTE_DSL },
    Kernel { name: "quack_pair", size: [512, 768, 192], inputs: Bf16, outputs: Bf16, ..CUTE_DSL },
    Kernel { name: "tirx_pair", size: [512, 1024, 256], ..CUTE_DSL },
    Kernel { name: "mosaic_gpu", size: [256, 256, 256], b: Columns, ..CUTE_DSL },
    Kernel { name: "tilelang_pair", size: [512, 512, 256], inputs: Bf16, outputs: Bf16, b: Columns, ..CUTE_DSL },
];

/// Notes that these kernels are known for: what the ISA asks for and no GPU misses.
const KNOWN: &[&str] = &[
    "box-mismatch",
    "instruction-descriptor",
    "load-outlives-cta",
    "matrix-descriptor",
    "missing-acquire",
    "missing-proxy-fence",
    "missing-tensor-fence",
    "missing-wait-ld",
    "missing-wgmma-fence",
    "missing-proxy-fence-before-overwrite",
    "issued-by-many-lanes",
    "bulk-store-outlives-thread",
    "mbarrier-init-unordered",
    "register-count",
    "wait-result-unread",
    "cta-not-started",
    "tensor-freed-in-use",
    "tensor-lane-quarter",
    "remote-use-outlives-cta",
];

/// Findings that are right, of kernels that run all the same: README.md says why.
const RIGHT: &[(&str, &str)] = &[
    // Of each block of factors, told together.
    ("cute_dsl_pair_m128", "operand-not-ready"),
    ("cute_dsl_pair_m128", "phase-overtaken"),
    ("cub_scan", "mbarrier-init-unordered"),
    ("deep_gemm_bf16", "race-shared"),
    ("deep_gemm_bf16_grouped", "race-shared"),
    ("deep_gemm_fp8", "race-shared"),
];

/// How scale factors lie in memory.
#[derive(Clone, Copy)]
enum Place {
    /// Blocks of 128 rows and 4 factors, one behind the other along K (PTX ISA 9.7.16.10.7; cuBLAS, block scaling).
    Blocks,
    /// Four factors of a row in a word, the words of all rows, and those of the next four.
    Words,
}

/// `D = A Bᵀ + start` of narrow elements. With scale factors behind A and B: a format, and elements that share one.
struct Scaled {
    name: &'static str,
    size: [usize; 3],
    elements: [Format; 2],
    factors: Option<(Format, usize, Place)>,
    /// Factors of all elements of A and of B behind those.
    whole: bool,
    b: Order,
    outputs: Element,
    /// What D holds before.
    start: f32,
}

const PLAIN: Scaled = Scaled {
    name: "",
    size: [512, 512, 512],
    elements: [Format::E4m3; 2],
    factors: None,
    whole: false,
    b: Rows,
    outputs: Bf16,
    start: 0.0,
};

const SCALED: &[Scaled] = &[
    Scaled { name: "thunderkittens_fp8", ..PLAIN },
    Scaled { name: "thunderkittens_mxfp8", factors: Some((Format::Ue8m0, 32, Place::Blocks)), ..PLAIN },
    Scaled {
        name: "thunderkittens_nvfp4",
        elements: [Format::E2m1; 2],
        factors: Some((Format::E4m3, 16, Place::Blocks)),
        whole: true,
        ..PLAIN
    },
    Scaled {
        name: "cute_dsl_nvfp4",
        size: [512, 256, 512],
        elements: [Format::E2m1; 2],
        factors: Some((Format::E4m3, 16, Place::Blocks)),
        ..PLAIN
    },
    Scaled {
        name: "cute_dsl_pair_m128",
        size: [128, 256, 256],
        elements: [Format::E2m1; 2],
        factors: Some((Format::E4m3, 16, Place::Blocks)),
        outputs: F16,
        ..PLAIN
    },
    Scaled { name: "cute_dsl_slice_k", size: [32, 8, 128], outputs: F32, ..PLAIN },
    Scaled {
        name: "deep_gemm_fp8",
        size: [512, 384, 1024],
        factors: Some((Format::Ue8m0, 128, Place::Words)),
        ..PLAIN
    },
    Scaled {
        name: "deep_gemm_fp8_fp4",
        size: [200, 256, 512],
        elements: [Format::E4m3, Format::E2m1],
        factors: Some((Format::Ue8m0, 32, Place::Words)),
        outputs: F32,
        // Four bytes of 0x42.
        start: 48.564_705,
        ..PLAIN
    },
    Scaled { name: "tilelang_mxfp8", ..TILELANG },
    Scaled { name: "tilelang_mxfp8_pair", b: Columns, ..TILELANG },
    Scaled { name: "tilelang_fp4_fp8", elements: [Format::E2m1, Format::E4m3], ..TILELANG },
];

const TILELANG: Scaled = Scaled { size: [256, 512, 512], factors: Some((Format::Ue8m0, 128, Place::Words)), ..PLAIN };

impl Scaled {
    /// Elements of D that differ from the exact sum, rounded once.
    fn wrong(&self, report: &Report) -> usize {
        let [m, n, k] = self.size;
        let matrix = |which: usize| -> Vec<f64> {
            let (bytes, rows, format) = (&report.buffers[which].bytes, self.size[which], self.elements[which]);
            let value = |at: usize| {
                let place = if which == 1 && self.b == Columns { at % k * n + at / k } else { at };
                let element = format.value(format.code(bytes, place));
                let Some((format, each, place)) = self.factors else { return element };
                let (row, n) = (at / k, at % k / each);
                let place = match place {
                    Place::Blocks => {
                        let block = row / 128 * (k / each / 4) + n / 4;
                        block * 512 + row % 32 * 16 + row % 128 / 32 * 4 + n % 4
                    }
                    Place::Words => (n / 4 * rows + row) * 4 + n % 4,
                };
                element * format.value(format.code(&report.buffers[2 + which].bytes, place))
            };
            (0..rows * k).map(value).collect()
        };
        let (a, b) = (matrix(0), matrix(1));
        let whole = |which: usize| {
            if self.whole { Format::F32.value(Format::F32.code(&report.buffers[4 + which].bytes, 0)) } else { 1.0 }
        };
        let factor = whole(0) * whole(1);
        let d = report.buffers.last().expect("D");
        let is_wrong = |&at: &usize| {
            let sum: f64 = a[at / n * k..][..k].iter().zip(&b[at % n * k..]).map(|(x, y)| x * y).sum();
            // FP32 holds the sum: every order of additions gives it.
            assert_eq!(sum, f64::from(sum as f32));
            let right = self.outputs.round((sum * factor) as f32 + self.start);
            self.outputs.read(&d.bytes[at * self.outputs.bytes()..]) != right
        };
        (0..m * n).filter(is_wrong).count()
    }
}

impl Kernel {
    /// Elements of D that differ from the exact sum, rounded once.
    fn wrong(&self, launch: &Launch, report: &Report) -> usize {
        let [m, n, k] = self.size;
        let at = |buffer: usize, element: Element, at: usize| {
            element.read(&report.buffers[buffer].bytes[at * element.bytes()..])
        };
        let place = |order, row, column, rows, columns| {
            if order == Rows { row * columns + column } else { column * rows + row }
        };
        let read = |buffer, order, rows, columns| {
            let element = |row, column| at(buffer, self.inputs, place(order, row, column, rows, columns));
            (0..rows * columns).map(|n| element(n / columns, n % columns)).collect::<Vec<f32>>()
        };
        let (a, b) = (read(0, Rows, m, k), read(1, self.b, n, k));
        // A launch of CuTe DSL has no C.
        let d = launch.buffers.iter().position(|buffer| buffer.name == "D").expect("D");
        let is_wrong = |&element: &usize| {
            let (row, column) = (element / n, element % n);
            let mut sum: f32 = a[row * k..][..k].iter().zip(&b[column * k..][..k]).map(|(x, y)| x * y).sum();
            let place = place(self.d, row, column, m, n);
            if self.beta != 0.0 {
                sum += self.beta * at(2, self.outputs, place);
            }
            at(d, self.outputs, place) != self.outputs.round(sum)
        };
        (0..m * n).filter(is_wrong).count()
    }
}

/// Adversarial schedules of each kernel: a few, or as many as `EMULATOR_SEEDS` says (`.ci/run` asks for 4, `docs/figures.md` tells of more).
fn seeds() -> u64 {
    std::env::var("EMULATOR_SEEDS").map_or(2, |n| n.parse().expect("EMULATOR_SEEDS is a number"))
}

fn runs(name: &str) {
    runs_with(name, |_| ());
}

/// With a launch that is changed first.
fn runs_with(name: &str, change: impl FnOnce(&mut Launch)) {
    let wrong = |launch: &Launch, report: &Report| {
        if let Some((_, wrong)) = others::OTHERS.iter().find(|(other, _)| *other == name) {
            return wrong(report);
        }
        match SCALED.iter().find(|kernel| kernel.name == name) {
            Some(scaled) => scaled.wrong(report),
            None => KERNELS.iter().find(|kernel| kernel.name == name).expect("of a table").wrong(launch, report),
        }
    };
    let right: Vec<&str> = RIGHT.iter().filter(|(of, _)| *of == name).map(|(_, code)| *code).collect();
    let path = |ending: &str| format!("{}/tests/libraries/{name}.{ending}", env!("CARGO_MANIFEST_DIR"));
    let read = |ending: &str| std::fs::read_to_string(path(ending)).unwrap_or_else(|e| panic!("{}: {e}", path(ending)));
    let mut launch: Launch = serde_json::from_str(&read("json")).unwrap_or_else(|e| panic!("{}: {e}", path("json")));
    change(&mut launch);
    let program = emulator::load(&read("ptx")).unwrap_or_else(|e| panic!("{name} does not load: {e:#?}"));
    // Buffers that were held against the exact sums, which take longer than the kernel: the same bytes again are as right.
    let mut held = None;
    for seed in std::iter::once(None).chain((0..seeds()).map(Some)) {
        let options = Options { seed, max_instructions: 100_000_000, ..Default::default() };
        let report = emulator::run(&program, &launch, &options);
        let mut found: Vec<&str> = report.findings.iter().map(|finding| finding.code).collect();
        // Of two mbarriers on some schedules.
        found.dedup();
        assert_eq!(found, right, "{name}, seed {seed:?}: {:#?}", report.findings);
        assert!(report.incomplete.is_empty(), "{name}, seed {seed:?}: {:#?}", report.incomplete);
        let other = report.notes.iter().find(|note| !KNOWN.contains(&note.code));
        assert!(other.is_none(), "{name}, seed {seed:?}: {other:#?}");
        if matches!(seed, None | Some(0)) {
            results_only::compare(name, &program, &launch, &options, &report);
        }
        if held.as_ref() != Some(&report.buffers) {
            assert_eq!(wrong(&launch, &report), 0, "{name}, seed {seed:?}");
            held = Some(report.buffers);
        }
    }
}

/// Sums so far are multiplied again where a later block of keys has a greater maximum by far: with the numbers of the launch no
/// row's rises by more than the 8 (as a power of 2) up to which this kernel keeps the old one.
#[test]
fn cute_dsl_fmha_with_rising_maxima() {
    runs_with("cute_dsl_fmha", |launch| {
        assert_eq!(others::rising(launch), 0, "then this launch is enough");
        let Content::Random(random) = &mut launch.buffers[0].content else { panic!("Q is random") };
        random.distribution = Distribution::Integers { low: -8, high: 8 };
        assert!(others::rising(launch) > 20, "{} rows", others::rising(launch));
    });
}

/// One copy brings two pieces of the depths, each as wide as the swizzle. The slices of A and B that are multiplied must be the same depths all the
/// same: the second slice of A, or the first one of the second piece, is one too far.
#[test]
fn tirx_pair_with_slices_of_different_depths() {
    let path = |ending: &str| format!("{}/tests/libraries/tirx_pair.{ending}", env!("CARGO_MANIFEST_DIR"));
    let read = |ending: &str| std::fs::read_to_string(path(ending)).unwrap_or_else(|e| panic!("{}: {e}", path(ending)));
    let (text, launch) = (read("ptx"), read("json"));
    let launch: Launch = serde_json::from_str(&launch).expect("a launch");
    for (right, wrong) in [("%rd23, %rd21, 2;", "%rd23, %rd21, 4;"), ("%rd29, %rd21, 1024;", "%rd29, %rd21, 1026;")] {
        assert_eq!(text.matches(right).count(), 1, "{right}");
        let program = emulator::load(&text.replace(right, wrong)).expect(wrong);
        let report = emulator::run(&program, &launch, &Options::default());
        let found: Vec<&str> = report.findings.iter().map(|finding| finding.code).collect();
        assert_eq!(found, ["depth-mismatch"], "{wrong}: {:#?}", report.findings);
    }
}

/// One statement is left out: what is told is what it was for, and nothing else.
#[test]
fn tirx_pair_with_one_statement_left_out() {
    let path = |ending: &str| format!("{}/tests/libraries/tirx_pair.{ending}", env!("CARGO_MANIFEST_DIR"));
    let read = |ending: &str| std::fs::read_to_string(path(ending)).unwrap_or_else(|e| panic!("{}: {e}", path(ending)));
    let (text, launch) = (read("ptx"), read("json"));
    let launch: Launch = serde_json::from_str(&launch).expect("a launch");
    let staged = "cp.async.bulk.wait_group.read 1;\n\tmov.b32 \t%r128, 10;\n";
    let cases = [
        (
            "nobody frees the response of launch control",
            "\t{ .reg .pred p; setp.ne.b32 p, %r354, 0; @p mbarrier.arrive.shared::cluster.b64 _, [%r353]; }\n"
                .to_string(),
            String::new(),
            "hang",
            "Let warp 7 of CTA 0 and warp 7 of CTA 1 arrive at dynamic shared memory at byte 144 of CTA 0 behind the last use of the response",
        ),
        (
            "a staging tile is written behind one thread's wait",
            format!("{staged}\tbar.sync %r128, 128;\n"),
            staged.to_string(),
            "race-shared",
            "Put a CTA barrier (bar.sync) behind this wait and in front of what the others access",
        ),
        (
            "a staging tile has no group of its own",
            "$L__BB0_33:\n\tcp.async.bulk.commit_group;\n".to_string(),
            "$L__BB0_33:\n".to_string(),
            "race-shared",
            "Execute cp.async.bulk.commit_group in front of this wait",
        ),
        (
            "who reads the response does not meet before it is freed",
            "\tbar.sync %r85, 128;\n".to_string(),
            String::new(),
            "race-shared",
            "",
        ),
    ];
    for (what, right, wrong, code, help) in cases {
        assert_eq!(text.matches(&right).count(), 1, "{what}");
        let program = emulator::load(&text.replace(&right, &wrong)).expect(what);
        let report = emulator::run(&program, &launch, &Options::default());
        let found: Vec<&str> = report.findings.iter().map(|finding| finding.code).collect();
        assert_eq!(found, [code], "{what}: {:#?}", report.findings);
        assert!(report.findings[0].help.contains(help), "{what}: {:#?}", report.findings);
    }
}

macro_rules! kernels {
    ($($name:ident),*) => {
        $(#[test] fn $name() { runs(stringify!($name)); })*

        /// No kernel is left out.
        #[test]
        fn all_are_run() {
            let run = [$(stringify!($name)),*];
            let scaled = SCALED.iter().map(|kernel| kernel.name);
            let others = others::OTHERS.iter().map(|(name, _)| *name);
            let mut names = KERNELS.iter().map(|kernel| kernel.name).chain(scaled).chain(others);
            assert!(names.all(|name| run.contains(&name)));
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/libraries");
            let files = std::fs::read_dir(folder).expect("a folder").flatten();
            let texts = files.filter(|file| file.path().extension().is_some_and(|ending| ending == "ptx")).count();
            assert_eq!(texts, run.len());
        }
    };
}

kernels!(
    cutlass_two_sm,
    cutlass_one_sm,
    cutlass_mn_bf16,
    cutlass_streamk,
    cutlass_static_p,
    cutlass_nosmem,
    cute_dsl_plain,
    cute_dsl_software_pipeline,
    cute_dsl_persistent,
    cute_dsl_dynamic,
    thunderkittens_level_07,
    thunderkittens_level_08,
    thunderkittens_level_09,
    thunderkittens_pairs,
    thunderkittens_overlap,
    thunderkittens_fp8,
    thunderkittens_mxfp8,
    thunderkittens_nvfp4,
    tilus_blackwell_v0,
    tilus_blackwell_v1,
    tilus_blackwell_v2,
    tilus_blackwell_v3,
    tilus_blackwell_v4,
    tilus_blackwell_v5,
    tilus_blackwell_v6,
    tilus_hopper_v3,
    tilus_hopper_v4,
    tilus_hopper_v5,
    tilelang_pair,
    tilelang_mxfp8,
    tilelang_mxfp8_pair,
    tilelang_fp4_fp8,
    tilelang_attention,
    cutlass_blockwise,
    cutlass_mixed,
    cute_ext_dense,
    cute_dsl_mixed,
    cute_dsl_nvfp4,
    cute_dsl_pair_m128,
    cute_dsl_slice_k,
    cute_dsl_fmha,
    cute_dsl_grouped_shared,
    cute_dsl_grouped_global,
    flash_attention_pairs,
    flash_attention_causal,
    deep_gemm_bf16,
    deep_gemm_bf16_grouped,
    deep_gemm_fp8,
    deep_gemm_fp8_fp4,
    deep_gemm_hc_prenorm,
    flashinfer_split_k,
    flashinfer_tiny,
    flashinfer_swap_ab,
    flashinfer_fp4_pair,
    quack_pair,
    quack_gathered,
    quack_layer_norm,
    quack_topk,
    iree_attention,
    tirx_pair,
    mosaic_gpu,
    transformer_engine_hadamard,
    cub_scan
);
