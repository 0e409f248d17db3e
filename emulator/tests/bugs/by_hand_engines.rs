//! Three more kernels written by hand (`../cuda`): a pair of CTAs that is persistent and stores slabs by TMA, FP8 whose products are added in registers with
//! the scales of blocks, and two products in a row through tensor memory. As they are, and with mistakes in their source.

use super::by_hand::{as_f16, as_f32, edited, halves, map, pointer, undefined};
use super::case::told;
use super::common;
use common::{codes, holding, matrix, schedules};
use emulator::{Element, Launch, Param, Swizzle, TensorMap};

const DUO: &str = include_str!("../cuda/duo.ptx");
const PROMOTE: &str = include_str!("../cuda/promote.ptx");
const MLP: &str = include_str!("../cuda/mlp.ptx");

/// What D must be: by rows.
type Product = Vec<f32>;

fn sized(mut launch: Launch, bytes: &[u32], sizes: &[usize]) -> Launch {
    launch.buffers.iter_mut().zip(bytes).for_each(|(buffer, &bytes)| buffer.element_bytes = Some(bytes));
    launch.params.extend(sizes.iter().map(|&size| Param::U32(size as u32)));
    launch.cluster = if launch.cluster == [0; 3] { [1, 1, 1] } else { launch.cluster };
    launch
}

fn sum(a: &[i32], b: &[i32]) -> i32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Four tiles of 256 x 128, one behind the other, by one pair.
fn duo() -> (Launch, Product) {
    let (m, n, k) = (512, 256, 320);
    let (a, b) = (matrix(m, k, 1, 4), matrix(n, k, 2, 4));
    let f16 = Element::F16;
    let launch = Launch {
        entry: "duo".into(),
        grid: [2, 1, 1],
        cluster: [2, 1, 1],
        block: [192, 1, 1],
        dynamic_shared: 3 * (16384 + 8192) + 32768 + 256,
        buffers: vec![holding("A", halves(&a)), holding("B", halves(&b)), undefined("D", m * n * 2)],
        params: vec![
            map(0, f16, [m as u64, k as u64], 128),
            map(1, f16, [n as u64, k as u64], 64),
            map(2, f16, [m as u64, n as u64], 32),
        ],
        ..Default::default()
    };
    let product = (0..m * n).map(|at| sum(&a[at / n * k..][..k], &b[at % n * k..][..k]) as f32);
    (sized(launch, &[2, 2, 2], &[m, n, k]), product.collect())
}

/// Small numbers as E4M3.
fn e4m3(values: &[i32]) -> Vec<u8> {
    let byte = |x: i32| [0, 0x38, 0x40, 0x44, 0x48][x.unsigned_abs() as usize] | if x < 0 { 0x80 } else { 0 };
    values.iter().map(|&x| byte(x)).collect()
}

/// Each row of A, and each 128 columns of D, have a scale for each 128 depths.
fn promote() -> (Launch, Product) {
    let (m, n, k, each) = (256, 256, 640, 128);
    let (a, b, blocks) = (matrix(m, k, 1, 4), matrix(n, k, 2, 4), k / each);
    let scale = |at: usize| [0.25f32, 0.5, 1.0, 2.0, 4.0][at * 7 % 5];
    let scales =
        |count: usize, first: usize| -> Vec<u8> { (0..count).flat_map(|at| scale(at + first).to_le_bytes()).collect() };
    let bytes = |buffer, rows: usize| {
        let map = TensorMap {
            address: 0,
            element: Element::U8,
            dims: vec![k as u64, rows as u64],
            strides: vec![k as u64],
            box_dims: vec![128, 128],
            element_strides: vec![],
            swizzle: Swizzle::B128,
            fill_nan: false,
        };
        Param::TensorMap { buffer, map }
    };
    let launch = Launch {
        entry: "promote".into(),
        grid: [2, 2, 1],
        block: [192, 1, 1],
        dynamic_shared: 2 * 32768 + 1024 + 256,
        buffers: vec![
            holding("A", e4m3(&a)),
            holding("B", e4m3(&b)),
            undefined("D", m * n * 4),
            holding("SA", scales(blocks * m, 0)),
            holding("SB", scales(n / each * blocks, 3)),
        ],
        params: vec![bytes(0, m), bytes(1, n), pointer(3), pointer(4), pointer(2)],
        ..Default::default()
    };
    let of = |row: usize, column: usize, block: usize| {
        let part = |matrix: &[i32], row: usize| matrix[row * k + block * each..][..each].to_vec();
        let factor = scale(block * m + row) * scale(column / each * blocks + block + 3);
        sum(&part(&a, row), &part(&b, column)) as f32 * factor
    };
    let product = (0..m * n).map(|at| (0..blocks).map(|block| of(at / n, at % n, block)).sum());
    (sized(launch, &[1, 1, 4, 4, 4], &[m, n, k]), product.collect())
}

fn mlp() -> (Launch, Product) {
    let (m, n, k, h) = (256, 64, 128, 320);
    let (x, w1, w2) = (matrix(m, k, 1, 1), matrix(h, k, 2, 1), matrix(n, h, 3, 1));
    let f16 = Element::F16;
    let launch = Launch {
        entry: "mlp".into(),
        grid: [2, 1, 1],
        block: [192, 1, 1],
        dynamic_shared: 32768 + 2 * (16384 + 8192) + 256,
        buffers: vec![
            holding("X", halves(&x)),
            holding("W1", halves(&w1)),
            undefined("D", m * n * 2),
            holding("W2", halves(&w2)),
        ],
        params: vec![
            map(0, f16, [m as u64, k as u64], 128),
            map(1, f16, [h as u64, k as u64], 64),
            map(3, f16, [n as u64, h as u64], 64),
            pointer(2),
        ],
        ..Default::default()
    };
    let hidden: Vec<i32> = (0..m * h).map(|at| sum(&x[at / h * k..][..k], &w1[at % h * k..][..k]).max(0)).collect();
    let product = (0..m * n).map(|at| sum(&hidden[at / n * h..][..h], &w2[at % n * h..][..h]) as f32);
    (sized(launch, &[2, 2, 2, 2], &[m, n, k, h]), product.collect())
}

#[test]
fn as_they_are_they_are_right_and_nothing_is_said() {
    for (text, (launch, product), value) in
        [(DUO, duo(), as_f16 as fn(&[u8]) -> f32), (PROMOTE, promote(), as_f32), (MLP, mlp(), as_f16)]
    {
        for seed in schedules(3) {
            let report = edited(text, &launch, seed, &[]);
            assert!(report.findings.is_empty(), "{} with {seed:?}: {}", launch.entry, told(&report.findings));
            // Those of production leave this fence out, too.
            let known = |code: &str| code == "missing-proxy-fence-before-overwrite";
            assert!(report.notes.iter().all(|note| known(note.code)), "{}: {}", launch.entry, told(&report.notes));
            let d = &report.buffers[2].bytes;
            let right = |(d, &sum): (&[u8], &f32)| (value(d) - sum).abs() <= sum.abs() / 512.0;
            assert!(d.chunks(d.len() / product.len()).zip(&product).all(right), "{} with {seed:?}", launch.entry);
        }
    }
}

/// A stage is free when its MMAs have read it, and each of four warps its scales: five arrivals.
#[test]
fn a_stage_that_threads_and_commits_free_counts_all_of_them() {
    let report = edited(PROMOTE, &promote().0, None, &[("mov.b32 \t%r25, 5;", "mov.b32 \t%r25, 1;", 1)]);
    let found = &report.findings[0];
    assert_eq!(found.code, "operand-overwritten", "{}", told(&report.findings));
    assert!(found.labels[0].place.text.contains("mbarrier.init"), "{}", told(&report.findings));
    assert!(
        found.help.contains("for as many arrivals as come in a round, by threads and by commits"),
        "{}",
        found.help
    );
}

/// What one of four warps has stored lets the MMA go on: that is the root of a hang, and of what is overwritten.
#[test]
fn an_operand_of_four_warps_is_there_when_all_have_stored() {
    let report = edited(MLP, &mlp().0, None, &[("mov.b32 \t%r31, 128;", "mov.b32 \t%r31, 32;", 1)]);
    let found = &report.findings[0];
    assert_eq!(found.code, "race-tensor", "{}", told(&report.findings));
    assert!(
        found.labels.iter().any(|label| label.text.contains("is initialised for 32 arrivals a phase")),
        "{}",
        told(&report.findings)
    );
    assert!(!told(&report.findings).contains("has not waited for that"), "{}", told(&report.findings));
}

/// A slab is stored to again when its copy has read it: two are under way.
#[test]
fn a_slab_is_free_when_its_copy_has_read_it() {
    let report = edited(DUO, &duo().0, None, &[("wait_group.read 1", "wait_group.read 2", 2)]);
    assert!(codes(&report).iter().all(|code| *code == "race-shared"), "{}", told(&report.findings));
    assert!(report.findings[0].help.contains("leave 1 group at most"), "{}", told(&report.findings));
}

/// Two chunks of each row change places: the swizzle is right, and the columns are not.
#[test]
fn chunks_of_a_slab_lie_in_the_order_of_the_columns() {
    let edits = [("[%r9+", "[%other+", 2), ("[%r10+", "[%r9+", 2), ("[%other+", "[%r10+", 2)];
    let report = edited(DUO, &duo().0, None, &edits);
    assert!(report.findings.is_empty(), "{}", told(&report.findings));
    let note = report.notes.iter().find(|note| note.code == "box-mismatch").expect("it is noted");
    assert!(
        note.title.starts_with("chunk 3 of the rows of a tile has columns 32 to 39 of a product"),
        "{}",
        note.title
    );
}
