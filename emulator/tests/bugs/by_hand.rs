//! Kernels written by hand in CUDA C++ with inline PTX (`../cuda`), and mistakes as somebody makes them in the source: what is said of them, that it is said
//! once, and nothing of the kernels as they are.

use super::case::told;
use super::common;
use common::{codes, holding, load, matrix, schedules, zeroes};
use emulator::{Buffer, Content, Diagnostic, Element, Launch, Param, Report, Swizzle, TensorMap};
use half::{bf16, f16};

const SINGLE: &str = include_str!("../cuda/single.ptx");
const ATMEM: &str = include_str!("../cuda/atmem.ptx");
pub const ROLES: &str = include_str!("../cuda/roles.ptx");
const SPLITK: &str = include_str!("../cuda/splitk.ptx");

pub fn halves(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|&x| f16::from_f32(x as f32).to_bits().to_le_bytes()).collect()
}

fn brains(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|&x| bf16::from_f32(x as f32).to_bits().to_le_bytes()).collect()
}

pub fn undefined(name: &str, bytes: usize) -> Buffer {
    Buffer { name: name.into(), content: Content::Undefined { bytes: bytes as u64 }, ..Default::default() }
}

pub fn map(buffer: usize, element: Element, [rows, columns]: [u64; 2], box_rows: u32) -> Param {
    let map = TensorMap {
        address: 0,
        element,
        dims: vec![columns, rows],
        strides: vec![columns * 2],
        box_dims: vec![64, box_rows],
        element_strides: vec![],
        swizzle: Swizzle::B128,
        fill_nan: false,
    };
    Param::TensorMap { buffer, map }
}

/// Buffers with the sizes of their elements; M, N and K end the parameters.
fn launch(entry: &str, mut buffers: Vec<Buffer>, sizes: [usize; 3], mut params: Vec<Param>) -> Launch {
    for buffer in &mut buffers {
        let wide = ["part", "flag"].contains(&buffer.name.as_str()) || entry == "atmem" && buffer.name == "D";
        buffer.element_bytes = Some(if wide { 4 } else { 2 });
    }
    params.extend(sizes.map(|size| Param::U32(size as u32)));
    Launch { entry: entry.into(), buffers, params, cluster: [1, 1, 1], ..Default::default() }
}

pub fn pointer(buffer: usize) -> Param {
    Param::Pointer { buffer, offset: 0 }
}

/// Two by two tiles, of which those at the edge are ragged; C is added.
fn single() -> Launch {
    let (m, n, k) = (200, 136, 160);
    let (a, b, c) = (matrix(m, k, 1, 4), matrix(n, k, 2, 4), matrix(m, n, 3, 32));
    let buffers =
        vec![holding("A", halves(&a)), holding("B", halves(&b)), undefined("D", m * n * 2), holding("C", halves(&c))];
    let f16 = Element::F16;
    let params =
        vec![map(0, f16, [m as u64, k as u64], 128), map(1, f16, [n as u64, k as u64], 128), pointer(3), pointer(2)];
    let launch = launch("single", buffers, [m, n, k], params);
    Launch { grid: [2, 2, 1], block: [128, 1, 1], dynamic_shared: 33024, ..launch }
}

fn atmem() -> Launch {
    let (m, n, k) = (200, 128, 320);
    let (a, b) = (matrix(m, k, 1, 4), matrix(n, k, 2, 4));
    let buffers = vec![holding("A", brains(&a)), holding("B", brains(&b)), undefined("D", m * n * 4)];
    let params = vec![map(1, Element::Bf16, [n as u64, k as u64], 64), pointer(0), pointer(2)];
    let launch = launch("atmem", buffers, [m, n, k], params);
    Launch { grid: [2, 2, 1], block: [160, 1, 1], dynamic_shared: 16384 + 2 * 128 * 144 + 256, ..launch }
}

/// Threads read C and store D with the 128-byte swizzle by a mask of 7, and without one by 0.
pub fn roles(c_mask: u32, d_mask: u32) -> Launch {
    let (m, n, k) = (384, 128, 320);
    let (a, b, c) = (matrix(m, k, 1, 4), matrix(n, k, 2, 4), matrix(m, n, 3, 32));
    let buffers =
        vec![holding("A", brains(&a)), holding("B", brains(&b)), undefined("D", m * n * 2), holding("C", brains(&c))];
    let map = |buffer, rows: usize, columns: usize, box_rows| {
        map(buffer, Element::Bf16, [rows as u64, columns as u64], box_rows)
    };
    let mut launch = launch(
        "roles",
        buffers,
        [m, n, k],
        vec![map(0, m, k, 128), map(1, n, k, 64), map(3, m, n, 128), map(2, m, n, 128)],
    );
    launch.params.extend([Param::U32(c_mask), Param::U32(d_mask)]);
    Launch { grid: [2, 1, 1], block: [192, 1, 1], dynamic_shared: 107008, ..launch }
}

fn splitk() -> Launch {
    let (m, n, k) = (256, 128, 576);
    let (a, b) = (matrix(m, k, 1, 4), matrix(n, k, 2, 4));
    let buffers = vec![
        holding("A", halves(&a)),
        holding("B", halves(&b)),
        undefined("D", m * n * 2),
        undefined("part", m * n * 4),
        zeroes("flag", 16),
    ];
    let launch = launch("splitk", buffers, [m, n, k], [0, 1, 3, 4, 2].map(pointer).into());
    Launch { grid: [2, 2, 3], block: [160, 1, 1], dynamic_shared: 49408, ..launch }
}

/// A run of the kernel with some of its text changed, as often as it says.
#[track_caller]
pub fn edited(text: &str, launch: &Launch, seed: Option<u64>, edits: &[(&str, &str, usize)]) -> Report {
    let mut text = text.to_string();
    for (from, to, times) in edits {
        assert_eq!(text.matches(from).count(), *times, "{from}");
        text = text.replace(from, to);
    }
    common::run(&load(&text), launch, seed, 20_000_000)
}

/// Without the waits for the mbarriers at these addresses.
#[track_caller]
fn without_waits(text: &str, launch: &Launch, registers: &[&str]) -> Report {
    let waits = |line: &str, register: &&str| line.contains("try_wait") && line.contains(&format!("[{register}]"));
    let (left_out, kept): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| registers.iter().any(|register| waits(line, register)));
    assert!(left_out.len() >= registers.len());
    common::run(&load(&kept.join("\n")), launch, None, 20_000_000)
}

#[track_caller]
pub fn only<'r>(report: &'r Report, code: &str) -> &'r Diagnostic {
    assert_eq!(codes(report), [code], "{}", told(&report.findings));
    &report.findings[0]
}

pub fn as_f16(bytes: &[u8]) -> f32 {
    f16::from_le_bytes([bytes[0], bytes[1]]).to_f32()
}

pub fn as_bf16(bytes: &[u8]) -> f32 {
    bf16::from_le_bytes([bytes[0], bytes[1]]).to_f32()
}

pub fn as_f32(bytes: &[u8]) -> f32 {
    f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// What D must be, but for rounding.
pub fn product([m, n, k]: [usize; 3], c: Option<&[i32]>) -> Vec<i32> {
    let (a, b) = (matrix(m, k, 1, 4), matrix(n, k, 2, 4));
    let sum = |at: usize| -> i32 { (0..k).map(|i| a[at / n * k + i] * b[at % n * k + i]).sum() };
    (0..m * n).map(|at| sum(at) + c.map_or(0, |c| c[at])).collect()
}

/// On a schedule, the last eight rows of D may be the first that are stored: of fewer lanes than a warp has.
#[test]
fn as_they_are_they_are_right_and_nothing_is_said() {
    let (c, more) = (matrix(200, 136, 3, 32), matrix(384, 128, 3, 32));
    for seed in schedules(5) {
        let all = [
            (SINGLE, single(), product([200, 136, 160], Some(&c)), as_f16 as fn(&[u8]) -> f32),
            (ROLES, roles(7, 7), product([384, 128, 320], Some(&more)), as_bf16),
            (ATMEM, atmem(), product([200, 128, 320], None), as_f32),
            (SPLITK, splitk(), product([256, 128, 576], None), as_f16),
        ];
        for (text, launch, product, value) in all {
            let report = edited(text, &launch, seed, &[]);
            assert!(report.findings.is_empty(), "{} with {seed:?}: {}", launch.entry, told(&report.findings));
            assert!(report.notes.iter().all(|note| note.code != "swizzle-mismatch"), "{}", told(&report.notes));
            let d = &report.buffers[2].bytes;
            let right = |(d, &sum): (&[u8], &i32)| (value(d) - sum as f32).abs() <= (sum as f32).abs() / 256.0;
            assert!(d.chunks(d.len() / product.len()).zip(&product).all(right), "{} with {seed:?}", launch.entry);
        }
    }
}

/// The rows of B are those of A's tile: what is added to a product does not hide where it belongs.
#[test]
fn a_product_that_c_is_added_to_belongs_where_it_is_made() {
    let report = edited(SINGLE, &single(), None, &[("%r76}", "%r74}", 5)]);
    let found = only(&report, "box-mismatch");
    assert!(
        found.title.starts_with("the product of rows 0 to 127 of A and columns 0 to 127 of B is stored from row "),
        "{}",
        found.title
    );
}

/// One thread brings the tiles and multiplies them, and nobody waits for its commits: its arrival for the copies' bytes tells of no MMA.
#[test]
fn a_commit_that_nobody_waits_for_is_named() {
    let report = without_waits(SINGLE, &single(), &["%r35", "%r46", "%r57", "%r68", "%r82"]);
    let found = &report.findings[0];
    assert_eq!(found.code, "operand-overwritten", "{}", told(&report.findings));
    assert!(found.labels.iter().any(|label| label.place.text.contains("tcgen05.commit")), "{}", told(&report.findings));
    assert!(
        found.help.starts_with("Wait for dynamic shared memory at byte 32776, at which the MMA's commit arrives"),
        "{}",
        found.help
    );
}

/// One commit stands behind the loop, and comes when its tiles have long been overwritten: it is none to wait for in between.
#[test]
fn a_commit_behind_all_rounds_is_not_named_for_the_operands_of_one() {
    let inside = |line: &&str| line.contains("tcgen05.commit") || line.contains("try_wait") && line.contains("[%r82]");
    let last = "$L__BB0_21:\n{ .reg .pred Q; .reg .b32 at; setp.eq.b32 Q, %r1, 0; mov.b32 at, raw; add.s32 at, at, 32776;\n\
                @Q tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [at]; }";
    let kept: Vec<&str> = SINGLE.lines().filter(|line| !inside(line)).collect();
    let report = edited(&kept.join("\n"), &single(), None, &[("$L__BB0_21:", last, 1)]);
    let found = report.findings.iter().find(|found| found.code == "operand-overwritten");
    let found = found.unwrap_or_else(|| panic!("{}", told(&report.findings)));
    assert!(
        found.labels.iter().all(|label| !label.place.text.contains("tcgen05.commit")),
        "{}",
        told(&report.findings)
    );
    assert!(!found.help.contains("32776"), "{}", found.help);
}

/// Warps store A to tensor memory, and say so.
#[test]
fn an_operand_in_tensor_memory_is_not_waited_for() {
    let report = without_waits(ATMEM, &atmem(), &["%r187", "%r197", "%r209"]);
    let found = &report.findings[0];
    assert_eq!(found.code, "race-tensor", "{}", told(&report.findings));
    assert!(found.title.starts_with("the MMA may read tensor memory"), "{}", found.title);
    assert!(found.help.starts_with("Let warp 4 wait for dynamic shared memory at byte 53264"), "{}", found.help);
    // They do not wait until it is free.
    let report = without_waits(ATMEM, &atmem(), &["%r123"]);
    let found = &report.findings[0];
    assert_eq!(found.code, "race-tensor", "{}", told(&report.findings));
    assert!(found.title.ends_with("while an MMA may still be reading it"), "{}", found.title);
    assert!(found.help.starts_with("Wait for dynamic shared memory at byte 53280"), "{}", found.help);
}

/// Who reads sums too early adds to them, and stores them, too early: one thing is wrong.
#[test]
fn sums_behind_a_relaxed_flag_are_told_once() {
    for (from, to) in [("ld.acquire.gpu", "ld.relaxed.gpu"), ("st.release.gpu", "st.relaxed.gpu")] {
        let report = edited(SPLITK, &splitk(), None, &[(from, to, 1)]);
        let found = only(&report, "race-global");
        assert!(found.title.contains("reads it"), "{}", found.title);
        let also: Vec<&str> =
            found.labels.iter().map(|label| &label.text[..]).filter(|text| text.starts_with("in turn, ")).collect();
        assert!(!also.is_empty() && also.iter().all(|text| text.contains(" writes it, and ")), "{also:?}");
    }
}

/// Besides, some of them go to the place of another tile: that is told at the same lines.
#[test]
fn sums_that_go_to_another_tile_are_seen_beside_a_relaxed_flag() {
    let aside = "{ .reg .pred Q; .reg .b64 at; setp.gt.u32 Q, %r6, 0; setp.eq.and.u32 Q, %r2, 0, Q; selp.b64 at, 32768, 0, Q; add.s64 at, %rd5, at;\n\
                 st.global.v4.b32 [at], {%r273, %r274, %r275, %r276}; }";
    let edits = [
        ("ld.acquire.gpu", "ld.relaxed.gpu", 1),
        ("st.global.v4.b32 \t[%rd5], {%r273, %r274, %r275, %r276};", aside, 1),
    ];
    let report = edited(SPLITK, &splitk(), None, &edits);
    let all = told(&report.findings);
    let other = |label: &emulator::Label| label.text.contains("CTA (1, 0, 0)") && label.text.contains("CTA (0, 0, 1)");
    assert!(report.findings.iter().any(|found| found.labels.iter().any(other)), "{all}");
}

/// C lies swizzled, and threads read it straight on; what is stored is of columns of a product, also where C is added.
#[test]
fn a_tile_that_is_added_is_read_as_it_was_brought() {
    let report = edited(ROLES, &roles(0, 7), None, &[]);
    assert!(report.findings.is_empty(), "{}", told(&report.findings));
    let note = report.notes.iter().find(|note| note.code == "swizzle-mismatch").expect("it is noted");
    assert!(
        note.title.ends_with("with no swizzle, the copy has brought it with the 128-byte swizzle"),
        "{}",
        note.title
    );
    let report = edited(ROLES, &roles(7, 0), None, &[]);
    let found = only(&report, "swizzle-mismatch");
    assert!(found.title.ends_with("with no swizzle, the copy takes it with the 128-byte swizzle"), "{}", found.title);
}

/// N is 128 and not 64: twenty MMAs of a loop that is written out have it from one descriptor.
#[test]
fn a_descriptor_that_is_wrong_is_told_once() {
    let report = edited(ROLES, &roles(7, 7), None, &[("135267472", "136316048", 4)]);
    let told_of = report.findings.iter().filter(|found| found.code == "instruction-descriptor").count();
    assert_eq!((told_of, report.findings[0].code), (1, "instruction-descriptor"), "{}", told(&report.findings));
}

/// Nobody waits between the stores of D and the copy that takes it: other pieces of it are as old as they are since the stores come late.
#[test]
fn stores_that_come_late_leave_nothing_unwritten() {
    let lines: Vec<&str> = ROLES.lines().collect();
    let fence = lines.iter().position(|line| line.contains("fence.proxy.async")).expect("one fence");
    let barrier = (fence..lines.len()).find(|&n| lines[n].contains("bar.sync")).expect("a barrier behind it");
    let text: Vec<&str> = lines.iter().enumerate().filter(|(n, _)| *n != barrier).map(|(_, line)| *line).collect();
    let program = load(&text.join("\n"));
    for seed in schedules(4) {
        let report = common::run(&program, &roles(7, 7), seed, 20_000_000);
        assert!(codes(&report).iter().all(|code| *code == "race-shared"), "{seed:?}: {}", told(&report.findings));
        let pairs: Vec<[u32; 2]> =
            report.findings.iter().map(|found| [found.labels[0].place.line, found.labels[1].place.line]).collect();
        let stores = |line: u32| text[line as usize - 1].contains("st.shared");
        assert!(!pairs.iter().any(|pair| stores(pair[0])), "{seed:?}: {}", told(&report.findings));
    }
}

/// Two things are wrong of one store and one copy: nobody meets between the stores of D and the copy, and nobody waits until the copy has read them.
#[test]
fn a_copy_that_nobody_waits_for_is_told_beside_a_barrier_that_is_missing() {
    let lines: Vec<&str> = ROLES.lines().collect();
    let fence = lines.iter().position(|line| line.contains("fence.proxy.async")).expect("one fence");
    let barrier = (fence..lines.len()).find(|&n| lines[n].contains("bar.sync")).expect("a barrier behind it");
    let told_of = |waits: bool| {
        let kept = |(n, line): &(usize, &&str)| *n != barrier && (waits || !line.contains("wait_group.read"));
        let text: Vec<&str> = lines.iter().enumerate().filter(kept).map(|(_, line)| *line).collect();
        let report = common::run(&load(&text.join("\n")), &roles(7, 7), None, 20_000_000);
        let help = |part: &str| report.findings.iter().filter(|found| found.help.contains(part)).count();
        (help("and a barrier (bar.sync) before the thread behind it issues the copy"), help("wait_group.read 0"))
    };
    assert_eq!(told_of(true), (1, 0));
    assert_eq!(told_of(false), (1, 1));
}

/// A loop is written out: the statements of one line are one, and a thread that comes there again has not waited. Of two lines, each may be meant to arrive.
#[test]
fn a_thread_that_comes_to_its_line_again_has_not_waited() {
    let arrives = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;";
    let titles = [7, 9].map(|line| {
        let text = format!(
            ".version 8.7\n.target sm_100a\n.address_size 64\n.file 1 \"k.cu\"\n.visible .entry k(.param .u64 out)\n{{\n.shared .align 8 .b64 bar;\n\
             mbarrier.init.shared::cta.b64 [bar], 1;\n.loc 1 7 1\n{arrives}\n.loc 1 {line} 1\n{arrives}\nret;\n}}\n"
        );
        let mut launch = common::launch("k", 1, vec![zeroes("out", 16)]);
        launch.block = [1, 1, 1];
        let report = common::run(&load(&text), &launch, None, 1000);
        only(&report, "mbarrier-overflow").title.clone()
    });
    assert!(titles[0].contains("arrives again and has not waited in between"), "{}", titles[0]);
    assert!(!titles[1].contains("arrives again"), "{}", titles[1]);
}
