//! Launch descriptions and the judge's work on a GPU: each of these skips with a sentence where there is none.
//!
//! The kernels are simple enough for any GPU. Where this program was built elsewhere, `WORKBOOK_PROGRAM` names the `workbook` that
//! works on the GPU.

use device::{Choice, Gpu, Target};
use emulator::{Buffer, Content, Distribution, Launch, NumberType, Random};
use harness::compare::Comparison;
use harness::cuda::work::{Check, Reply, Time, Work};
use harness::cuda::{self, Card, Runner};
use harness::reference::Reference;
use harness::{
    Built, Device, InProcess, InputKind, Inputs, JudgeOptions, KernelSource, Matrix, Outcome, Param, Part, Problem,
    judge, launch, report, steps,
};
use ptx::Dtype;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A thread for each element of D, and 128 for a CTA.
fn product(problem: Problem) -> Built {
    let Problem { m, n, k, dtype } = problem;
    let ty = match dtype {
        Dtype::F16 => "f16",
        Dtype::Bf16 => "bf16",
    };
    let ptx = format!(
        "
.version 8.0
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 a, .param .u64 b, .param .u64 d)
{{
    .reg .pred %p;
    .reg .b16 %h;
    .reg .b32 %i, %cta, %row, %column, %k;
    .reg .f32 %x, %y, %sum;
    .reg .b64 %a, %b, %d, %at;
    ld.param.u64 %a, [a];
    ld.param.u64 %b, [b];
    ld.param.u64 %d, [d];
    mov.u32 %i, %tid.x;
    mov.u32 %cta, %ctaid.x;
    mad.lo.u32 %i, %cta, 128, %i;
    setp.ge.u32 %p, %i, {all};
    @%p ret;
    div.u32 %row, %i, {n};
    rem.u32 %column, %i, {n};
    mul.wide.u32 %at, %row, {row_bytes};
    add.u64 %a, %a, %at;
    mul.wide.u32 %at, %column, {row_bytes};
    add.u64 %b, %b, %at;
    mul.wide.u32 %at, %i, 2;
    add.u64 %d, %d, %at;
    mov.f32 %sum, 0f00000000;
    mov.u32 %k, 0;
next:
    ld.global.b16 %h, [%a];
    cvt.f32.{ty} %x, %h;
    ld.global.b16 %h, [%b];
    cvt.f32.{ty} %y, %h;
    fma.rn.f32 %sum, %x, %y, %sum;
    add.u64 %a, %a, 2;
    add.u64 %b, %b, 2;
    add.u32 %k, %k, 1;
    setp.lt.u32 %p, %k, {k};
    @%p bra next;
    cvt.rn.{ty}.f32 %h, %sum;
    st.global.b16 [%d], %h;
    ret;
}}
",
        all = m * n,
        row_bytes = 2 * k,
    );
    Built {
        name: "kernel".into(),
        ptx,
        grid: [(m * n).div_ceil(128), 1, 1],
        cluster: [1; 3],
        block: [128, 1, 1],
        dynamic_shared: 0,
        params: vec![Param::Pointer(Matrix::A), Param::Pointer(Matrix::B), Param::Pointer(Matrix::D)],
        regions: vec![],
        todos: vec![],
        leaks: vec![],
    }
}

/// The kernel with one line changed.
fn changed(problem: Problem, from: &str, to: &str) -> Built {
    let built = product(problem);
    assert!(built.ptx.contains(from), "{from}");
    Built { ptx: built.ptx.replace(from, to), ..built }
}

const SMALL: Problem = Problem::f16(72, 40, 64);

fn check(built: Built, problem: Problem, kind: InputKind) -> Work {
    Work::Check(Check { built, problem, kind, seed: 3 })
}

/// Works on a GPU, or a sentence that says why the test is skipped.
fn card() -> Option<Card> {
    match Gpu::choose(&Choice::Runs(Target::named("sm_90").unwrap())) {
        Ok(about) => {
            let program = std::env::var_os("WORKBOOK_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_workbook").into());
            Some(Card::new(about).program(program))
        }
        Err(why) => {
            println!("skipped: {why}; {}", why.way_out());
            None
        }
    }
}

/// The kernel of these tests is right, whatever a GPU does with it.
#[test]
fn the_kernel_is_right_on_the_emulator() {
    for problem in [SMALL, Problem { dtype: Dtype::Bf16, ..SMALL }] {
        let built = product(problem);
        let inputs = Inputs::new(problem, InputKind::Normal, 3);
        let program = emulator::load(&built.ptx).map_err(|all| all[0].title.clone()).unwrap();
        let described = launch::launch(&built, &inputs).unwrap();
        let report = emulator::run(&program, &described, &emulator::Options::default());
        assert!(report.is_clean(), "{:?}", report.findings.first());
        assert!(Comparison::new(&Reference::new(&inputs), &report.buffers[2]).is_right());
    }
}

/// The same description gives the same bytes on the emulator and on a GPU: contents of each kind, parameters of each kind.
#[test]
fn a_launch_description_runs_as_on_the_emulator() {
    let Some(card) = card() else { return };
    let gpu = Gpu::open(&Choice::Uuid(card.about().uuid.clone())).unwrap();
    // The example is for a B200; nothing in it needs one.
    let text = include_str!("../../emulator/examples/saxpy/saxpy.ptx").replace("sm_100a", "sm_90");
    let text = text.as_str();
    let numbers = |low, high| {
        Content::Random(Random {
            seed: 1,
            count: 1000,
            number: NumberType::F32,
            distribution: Distribution::Integers { low, high },
        })
    };
    for y in [numbers(0, 5), Content::Fill { bytes: 4000, value: 0 }, Content::Bytes(vec![0; 4000].into())] {
        let buffer = |name: &str, content| Buffer { name: name.into(), content, ..Default::default() };
        let described = Launch {
            entry: "saxpy".into(),
            grid: [4, 1, 1],
            cluster: [1; 3],
            block: [256, 1, 1],
            buffers: vec![buffer("x", numbers(-8, 8)), buffer("y", y)],
            params: vec![
                emulator::Param::U32(1000),
                emulator::Param::F32(2.5),
                emulator::Param::Pointer { buffer: 0, offset: 0 },
                emulator::Param::Pointer { buffer: 1, offset: 0 },
            ],
            ..Launch::default()
        };
        let program = emulator::load(text).map_err(|all| all[0].title.clone()).unwrap();
        let report = emulator::run(&program, &described, &emulator::Options::default());
        let outputs = cuda::run(&gpu, text, &described).unwrap();
        for (n, memory) in report.buffers.iter().enumerate() {
            assert_eq!(memory.bytes, outputs.buffers[n], "buffer {n}");
        }
        assert_eq!(outputs.touched, []);
        let mut with = described.clone();
        with.attributes.resident_clusters = Some(1);
        let error = cuda::run(&gpu, text, &with).unwrap_err().to_string();
        assert!(error.starts_with("`attributes.resident_clusters` cannot be chosen on a GPU"), "{error}");
    }
}

/// Right kernels are right: small ones against FP64, a large one against cuBLAS where there is one, and samples.
#[test]
fn a_right_kernel_is_right() {
    let Some(card) = card() else { return };
    let large = Problem::f16(2048, 2056, 1024);
    let mut work = Vec::new();
    for kind in InputKind::ALL {
        work.push(check(product(SMALL), SMALL, kind));
        let bf16 = Problem { dtype: Dtype::Bf16, ..SMALL };
        work.push(check(product(bf16), bf16, kind));
        work.push(check(product(large), large, kind));
    }
    let replies = card.run(&work).unwrap();
    assert_eq!(replies.len(), work.len());
    for reply in replies {
        let Reply::Checked(checked) = reply else { panic!("{reply:?}") };
        assert!(checked.is_right() && checked.d.is_none(), "{checked:?}");
        println!("{} ms, held against {}", checked.milliseconds, checked.against);
    }
}

/// A wrong element of a small and of a large problem is found; the small one brings D for an explanation.
#[test]
fn a_wrong_kernel_is_wrong() {
    let Some(card) = card() else { return };
    for (problem, with_d) in [(SMALL, true), (Problem::f16(2048, 2056, 1024), false)] {
        // All but the last element are stored.
        let all = format!("{};", problem.m * problem.n);
        let fewer = format!("{};", problem.m * problem.n - 1);
        let built = changed(problem, &all, &fewer);
        let replies = card.run(&[check(built, problem, InputKind::Integers)]).unwrap();
        let [Reply::Checked(checked)] = replies.as_slice() else { panic!("{replies:?}") };
        let first = checked.first.clone().unwrap();
        let corner = (u64::from(problem.m) - 1, u64::from(problem.n) - 1);
        assert_eq!((first.row, first.column, first.found.as_str()), (corner.0, corner.1, "never written"));
        assert_eq!((checked.wrong.0, checked.d.is_some()), (1, with_d), "{problem}");
    }
}

/// What a kernel writes next to D, and to A, is told.
#[test]
fn a_kernel_that_writes_elsewhere_is_told() {
    let Some(card) = card() else { return };
    let behind = changed(SMALL, "st.global.b16 [%d], %h;", "st.global.b16 [%d], %h;\n    st.global.b16 [%d+2], %h;");
    let replies = card.run(&[check(behind, SMALL, InputKind::Integers)]).unwrap();
    let [Reply::Checked(checked)] = replies.as_slice() else { panic!("{replies:?}") };
    assert!(
        checked.touched.iter().any(|touched| touched.starts_with("something wrote behind `D`: byte 5760")),
        "{checked:?}"
    );
    let over = changed(SMALL, "st.global.b16 [%d], %h;", "st.global.b16 [%d], %h;\n    st.global.b16 [%a+-2], %h;");
    let replies = card.run(&[check(over, SMALL, InputKind::Integers)]).unwrap();
    let [Reply::Checked(checked)] = replies.as_slice() else { panic!("{replies:?}") };
    assert_eq!(checked.overwritten, [Matrix::A]);
}

/// A kernel that hangs, and one that takes the context with it, are told; the next one is right in a fresh process.
#[test]
fn a_lost_process_is_told_and_the_next_kernel_runs() {
    let Some(card) = card() else { return };
    let right = || check(product(SMALL), SMALL, InputKind::Integers);
    let hangs = changed(SMALL, "@%p bra next;", "bra next;");
    let begin = Instant::now();
    let replies = card.run(&[right(), check(hangs, SMALL, InputKind::Integers), right()]).unwrap();
    let [Reply::Checked(first), second] = replies.as_slice() else { panic!("{replies:?}") };
    // A loop without an end reads further and further: some GPUs stop it at the end of the memory.
    match second {
        Reply::Hung { why } => assert!(why.ends_with("the kernel did not end within 10 s"), "{why}"),
        Reply::Failed { why } => assert!(why.contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{why}"),
        other => panic!("{other:?}"),
    }
    assert!(first.is_right() && begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
    let spins = changed(SMALL, "mov.u32 %k, 0;", "mov.u32 %k, 0;\nspin:\n    bra spin;");
    let replies = card.run(&[check(spins, SMALL, InputKind::Integers)]).unwrap();
    assert!(matches!(replies.as_slice(), [Reply::Hung { .. }]), "{replies:?}");
    let illegal = changed(SMALL, "ld.param.u64 %b, [b];", "mov.u64 %b, 16;");
    let replies = card.run(&[check(illegal, SMALL, InputKind::Integers)]).unwrap();
    let [Reply::Failed { why }] = replies.as_slice() else { panic!("{replies:?}") };
    assert!(why.contains("launch of `kernel` on 23x1x1 CTAs") && why.contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{why}");
    let broken = changed(SMALL, "add.u32 %k, %k, 1;", "add.u32 %k, %k, %nothing;");
    let replies = card.run(&[check(broken, SMALL, InputKind::Integers)]).unwrap();
    let [Reply::Failed { why }] = replies.as_slice() else { panic!("{replies:?}") };
    assert!(why.contains("%nothing"), "{why}");
    let replies = card.run(&[right()]).unwrap();
    assert!(matches!(replies.as_slice(), [Reply::Checked(checked)] if checked.is_right()), "{replies:?}");
}

/// The kernel for Hopper, with its PTX changed, where there is a Hopper.
fn hopper(card: &Card, problem: Problem, change: impl Fn(String) -> String) -> Option<Built> {
    if card.about().capability() != 90 {
        println!("skipped: {} runs no sm_90a", card.name());
        return None;
    }
    let kernel = harness::reference_kernels::hopper().expect("the full tree has it");
    let built = InProcess(kernel).build(&problem, card.about().sms).expect("it builds");
    Some(Built { ptx: change(built.ptx.clone()), ..built })
}

/// Odd sizes, several tiles for a cluster, both types.
#[test]
fn the_hopper_kernel_is_right() {
    let Some(card) = card() else { return };
    let bf16 = Problem { dtype: Dtype::Bf16, ..Problem::f16(1160, 264, 136) };
    for problem in [Problem::f16(1, 8, 8), Problem::f16(300, 520, 72), bf16, Problem::f16(4608, 4360, 200)] {
        let Some(built) = hopper(&card, problem, |ptx| ptx) else { return };
        for kind in InputKind::ALL {
            let replies = card.run(&[check(built.clone(), problem, kind)]).unwrap();
            let right = matches!(replies.as_slice(), [Reply::Checked(checked)] if checked.is_right());
            assert!(right, "{problem}, {kind}: {replies:?}");
        }
    }
}

/// The five parts, of which `correct` and `fast` come from the GPU.
#[test]
fn the_verdict_on_the_hopper_kernel() {
    let Some(card) = card() else { return };
    if hopper(&card, Problem::f16(512, 512, 512), |ptx| ptx).is_none() {
        return;
    }
    let kernel = harness::reference_kernels::hopper().expect("the full tree has it");
    let name = card.name();
    let options = JudgeOptions {
        sms: card.about().sms,
        device: Device::Cuda(Arc::new(card)),
        seeds: 1,
        ..JudgeOptions::default()
    };
    let verdict = judge(&steps::hopper::STEP, &InProcess(kernel), &options);
    let text = report::render(&verdict);
    println!("{text}");
    for (part, outcome) in &verdict.parts {
        // A machine with a GPU may lack `ptxas`.
        let passed = outcome.passed() || (*part == Part::Resources && matches!(outcome, Outcome::NotChecked { .. }));
        assert!(passed, "{part}: {text}");
    }
    assert!(text.contains(&format!("in full on {name}; held against FP64")), "{text}");
}

/// Without the arrivals that hand stages back, the warp that loads stands at the fifth round; it says so itself.
#[test]
fn a_kernel_that_hangs_tells_what_it_waits_for() {
    let Some(card) = card() else { return };
    let problem = Problem::f16(512, 512, 1024);
    let silent = |ptx: String| {
        let lines = ptx.lines().filter(|line| !line.contains("mbarrier.arrive.shared::cluster"));
        lines.map(|line| line.to_string() + "\n").collect()
    };
    let Some(built) = hopper(&card, problem, silent) else { return };
    let Work::Check(check) = check(built, problem, InputKind::Integers) else { unreachable!() };
    let replies = card.run(&[Work::Tell(check)]).unwrap();
    let [Reply::Told(told)] = replies.as_slice() else { panic!("{replies:?}") };
    println!("{told}");
    let says = |who: &str, what: &str| {
        let line = told.lines().find(|line| line.contains(who)).unwrap_or_else(|| panic!("nothing of {who}:\n{told}"));
        assert!(line.contains("solutions/src/hopper.rs:") && line.ends_with(what), "{told}");
    };
    says("CTA 0, warp 8:", "waits for phase parity 0 of `empty[0]`");
    // Those that multiply wait for the fifth round's tiles.
    says("CTA 0, warps 0, 1, 2, 3:", "waits for phase parity 1 of `full[0]`");
}

/// A kernel beside itself takes its own time; one that idles first takes more.
#[test]
fn times_tell_two_kernels_apart() {
    let Some(card) = card() else { return };
    let problem = Problem::f16(512, 512, 512);
    let time = |own| {
        let work = Work::Time(Time { own, reference: product(problem), problem, seed: 11 });
        let replies = card.run(&[work]).unwrap();
        let [Reply::Timed(times)] = replies.as_slice() else { panic!("{replies:?}") };
        println!("{times:?}");
        // Who comes first differs from round to round.
        assert_eq!((times.ratios.len() as u32 * 2, times.rounds % 2), (times.rounds, 0));
        let [low, ratio, high] = times.quartiles();
        assert!(
            low <= ratio && ratio <= high && (ratio / (times.own / times.reference) - 1.0).abs() < 0.2,
            "{times:?}"
        );
        ratio
    };
    let same = time(product(problem));
    assert!((0.8..1.25).contains(&same), "{same}");
    let begin = "    mov.f32 %sum, 0f00000000;\n";
    let idle = "    mov.u32 %k, 0;\nidle:\n    ld.volatile.global.b16 %h, [%a];\n    add.u32 %k, %k, 1;\n\
                \x20   setp.lt.u32 %p, %k, 2048;\n    @%p bra idle;\n";
    let longer = time(changed(problem, begin, &format!("{idle}{begin}")));
    assert!(longer > 1.2 * same, "{longer}");
}

/// What would pay if launches came one behind the other on the same matrices: each of these kernels leaves work to its first launch, and
/// takes as long as an honest one. One that is wrong when it is timed only, and one that writes elsewhere, are told.
#[test]
fn what_a_launch_leaves_is_of_no_use_to_the_next() {
    let Some(card) = card() else { return };
    let problem = Problem::f16(512, 512, 512);
    let time = |own: Built| {
        let replies = card.run(&[Work::Time(Time { own, reference: product(problem), problem, seed: 5 })]).unwrap();
        let [Reply::Timed(times)] = replies.as_slice() else { panic!("{replies:?}") };
        times.clone()
    };
    let (entry, begin) = (".visible .entry", "    mov.f32 %sum, 0f00000000;\n");
    let with = |variable: &str, code: &str| {
        let built = changed(problem, begin, &format!("{code}{begin}"));
        Built { ptx: built.ptx.replace(entry, &format!("{variable}\n{entry}")), ..built }
    };
    // Each thread counts; who finds as many as a launch has is not of the first.
    let counts = "    .reg .b32 %old;\n    atom.global.add.u32 %old, [launched], 1;\n\
                  \x20   setp.ge.u32 %p, %old, 262144;\n    @%p ret;\n";
    let counts = with(".global .u32 launched;", counts);
    // An element that is no poison is there already.
    let written = "    ld.global.b16 %h, [%d];\n    setp.ne.b16 %p, %h, 0xffff;\n    @%p ret;\n";
    let written = with("", &written.replace("setp.ne.b16", "setp.ne.s16"));
    // Each element is kept in a variable of the module.
    let keeps = "    .reg .b16 %kept;\n    .reg .b64 %store;\n    mov.u64 %store, kept;\n    mul.wide.u32 %at, %i, 4;\n\
                 \x20   add.u64 %store, %store, %at;\n    ld.global.b16 %kept, [%store+2];\n    setp.eq.s16 %p, %kept, 0;\n\
                 \x20   @%p bra compute;\n    ld.global.b16 %h, [%store];\n    st.global.b16 [%d], %h;\n    ret;\ncompute:\n";
    let keeps = with(".global .align 4 .b8 kept[1048576];", keeps);
    let store = "    st.global.b16 [%d], %h;\n    ret;\n}";
    let keep = "    st.global.b16 [%store], %h;\n    mov.b16 %kept, 1;\n    st.global.b16 [%store+2], %kept;\n";
    assert!(keeps.ptx.contains(store));
    let keeps = Built { ptx: keeps.ptx.replace(store, &format!("{keep}{store}")), ..keeps };
    for (what, own) in [("counts launches", counts), ("looks at D", written), ("keeps D", keeps)] {
        let times = time(own);
        println!("{what}: {times:?}");
        assert!(times.wrong.is_none() && (0.9..3.0).contains(&times.quartiles()[1]), "{what}: {times:?}");
    }
    // Half of the sum, of ones alone.
    let half =
        "    ld.global.b16 %h, [%a];\n    and.b16 %h, %h, 0x7fff;\n    setp.eq.s16 %p, %h, 0x3c00;\n    @%p ret;\n";
    let other = "    st.global.b16 [%d], %h;\n";
    let cases = [
        (with("", half), "row 0 of D is wrong"),
        (changed(problem, other, &format!("{other}    st.global.b16 [%a+-2], %h;\n")), "the kernel writes to A, which"),
        (changed(problem, other, &format!("{other}    st.global.b16 [%d+2048], %h;\n")), "something wrote behind `D`"),
    ];
    for (own, expected) in cases {
        let times = time(own);
        assert!(times.wrong.as_ref().is_some_and(|wrong| wrong.starts_with(expected)), "{expected}: {times:?}");
    }
}
