//! Tensor memory: allocation, and which cell each register of each thread is.

use crate::common::{codes, load};
use crate::row::{Row, bare, check, each};

/// Allocates 512 columns for `%r90`, and `%r91`, which has the lanes of the thread's warp; the body and the end behind it.
pub fn with_tensor_memory(row: Row) -> Row {
    row.around(
        "setp.lt.u32 %p8, %r98, 32;\n@%p8 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 512;\nbar.sync 0;\n\
         ld.shared.b32 %r90, [slot];\nshr.u32 %r91, %r98, 5;\nshl.b32 %r91, %r91, 21;\nadd.u32 %r91, %r91, %r90;",
        "tcgen05.wait::ld.sync.aligned;\ntcgen05.fence::before_thread_sync;\nbar.sync 0;\n\
         @%p8 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r90, 512;",
    )
}

/// Which lane (of the warp's 32) and column register r of thread t is: PTX ISA, tcgen05.ld, matrix fragments.
type Cell = fn(u64, u64) -> (u64, u64);

/// Shape; registers for `.x1`; columns for `.x1`; the cells.
const SHAPES: &[(&str, u64, u64, Cell)] = &[
    ("32x32b", 1, 1, |t, r| (t, r)),
    // Threads 0 to 3 share row 0 and threads 4 to 7 row 1: two columns of the even threads' rows, two of row + 8.
    ("16x64b", 1, 2, |t, r| (t / 4 + 8 * (t % 2), 2 * r + t / 2 % 2)),
    // Rows t / 4 and t / 4 + 8, a column each.
    ("16x128b", 2, 4, |t, r| (t / 4 + 8 * (r % 2), 4 * (r / 2) + t % 4)),
    // The accumulator of a 16 × 8 matrix: two neighbouring columns, then 8 rows on.
    ("16x256b", 4, 8, |t, r| (t / 4 + 8 * (r / 2 % 2), 8 * (r / 4) + 2 * (t % 4) + r % 2)),
    // Lanes 0 to 15 and, 16 columns on, the same lanes for threads 16 to 31.
    ("16x32bx2", 1, 1, |t, r| (t % 16, r + 16 * (t / 16))),
];

fn names(first: u64, count: u64) -> String {
    (first..first + count).map(|n| format!("%x{n}")).collect::<Vec<_>>().join(", ")
}

/// Fills columns 0 to 31: lane l, column c holds 100 l + c (1000 more in each next warp's lanes). For tests of loads.
fn filled() -> String {
    let mut text = "mul.lo.u32 %r80, %r98, 100;\n".to_string();
    for c in 0..32 {
        text += &format!("add.u32 %x{c}, %r80, {c};\n");
    }
    text + &format!(
        "tcgen05.st.sync.aligned.32x32b.x32.b32 [%r91], {{{}}};\ntcgen05.wait::st.sync.aligned;\n",
        names(0, 32)
    )
}

pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for &(shape, regs_each, columns_each, cell) in SHAPES {
        for times in [1, 2, 4, 8, 16, 32] {
            let (regs, columns) = (times * regs_each, times * columns_each);
            if columns <= 16 || (columns <= 32 && shape != "16x32bx2") {
                rows.extend(loaded_and_stored(shape, times, regs, cell));
            }
        }
        rows.extend(packed(shape, regs_each, cell));
    }
    rows.extend(large());
    rows.extend(allocation());
    rows
}

fn distance(shape: &str) -> &'static str {
    if shape == "16x32bx2" { ", 16" } else { "" }
}

/// Two warps load the last register of a shape, once from their lower lanes and, where it has 16, once from the upper ones; and
/// store that register where a plain load finds it.
fn loaded_and_stored(shape: &str, times: u64, regs: u64, cell: Cell) -> Vec<Row> {
    let (far, last) = (distance(shape), regs - 1);
    let mut rows = Vec::new();
    for half in if shape == "32x32b" { vec![0] } else { vec![0, 16] } {
        let load = format!("tcgen05.ld.sync.aligned.{shape}.x{times}.b32 {{{}}}, [%r92]{far};", names(0, regs));
        let body = format!("{load}\ntcgen05.wait::ld.sync.aligned;\nmov.b32 %r0, %x{last};");
        let place = format!("add.u32 %r92, %r91, {};\n", half << 16);
        let expected = |n: u64| {
            let (lane, column) = cell(n % 32, last);
            100 * (n / 32 * 32 + half + lane) + column
        };
        rows.push(with_tensor_memory(each(64, &body, expected).around(&format!("{}{place}", filled()), "")));
        // Each register holds 1000 r + t; the 32 columns of lane 5 of the second warp's half are read back.
        let mut set = String::new();
        for r in 0..regs {
            set += &format!("add.u32 %x{r}, %r93, {};\n", 1000 * r);
        }
        let store = format!(
            "{set}tcgen05.st.sync.aligned.{shape}.x{times}.b32 [%r92]{far}, {{{}}};\ntcgen05.wait::st.sync.aligned;",
            names(0, regs)
        );
        let read = format!(
            "tcgen05.ld.sync.aligned.32x32b.x32.b32 {{{}}}, [%r91];\ntcgen05.wait::ld.sync.aligned;\nsetp.ne.u32 %p1, %r98, {};\n@%p1 bra READ;\n{}READ:\nbar.warp.sync -1;",
            names(64, 32),
            32 + half + 5,
            (0..32).map(|c| format!("st.global.b32 [%d8+{}], %x{};\n", 8 * c, 64 + c)).collect::<String>()
        );
        let held: Vec<u64> = (0..32)
            .map(|column| {
                let at = |&(t, r): &(u64, u64)| cell(t, r) == (5, column);
                let found = (0..32).flat_map(|t| (0..regs).map(move |r| (t, r))).find(at);
                found.map_or(100 * (32 + half + 5) + column, |(t, r)| 1000 * r + t)
            })
            .collect();
        rows.push(with_tensor_memory(
            bare(64, &store).around(&format!("{}{place}and.b32 %r93, %r98, 31;\n", filled()), &read).gives(0, &held),
        ));
    }
    rows
}

/// Packed, a register holds the low halves of columns 2 c and 2 c + 1; unpacked, its halves go there (PTX ISA, tcgen05.ld and
/// tcgen05.st).
fn packed(shape: &str, regs: u64, cell: Cell) -> Vec<Row> {
    let last = regs - 1;
    let far = distance(shape);
    let load = format!(
        "tcgen05.ld.sync.aligned.{shape}.x1.pack::16b.b32 {{{}}}, [%r91]{far};\ntcgen05.wait::ld.sync.aligned;\nmov.b32 %r0, %x{last};",
        names(0, regs)
    );
    let value = |lane: u64, column: u64| (100 * lane + column) & 0xffff;
    let loaded = |n: u64| {
        let (lane, column) = cell(n, last);
        value(lane, 2 * column) | value(lane, 2 * column + 1) << 16
    };
    let unpack = format!(
        "tcgen05.st.sync.aligned.{shape}.x1.unpack::16b.b32 [%r91]{far}, {{{}}};\ntcgen05.wait::st.sync.aligned;",
        names(0, regs)
    );
    let set: String = (0..regs).map(|r| format!("mad.lo.u32 %x{r}, %r98, 0x10000, {};\n", 1000 * r)).collect();
    let read = format!(
        "tcgen05.ld.sync.aligned.{shape}.x1.pack::16b.b32 {{{}}}, [%r91]{far};\ntcgen05.wait::ld.sync.aligned;\nmov.b32 %r0, %x{last};",
        names(64, regs)
    );
    let read = read.replace(&format!("mov.b32 %r0, %x{last}"), &format!("mov.b32 %r0, %x{}", 64 + last));
    let back = |n: u64| (n << 16) | (1000 * last);
    // Column 2 of the cell of thread 1 holds the low half, the next one the high half.
    let mut rows = Vec::new();
    if shape != "16x32bx2" {
        rows.push(with_tensor_memory(each(32, &load, loaded).around(&filled(), "")));
        rows.push(with_tensor_memory(each(32, &format!("{set}{unpack}\n{read}"), back).around(&filled(), "")));
        let (lane, column) = cell(1, last);
        let plain = format!(
            "tcgen05.ld.sync.aligned.32x32b.x32.b32 {{{}}}, [%r91];\ntcgen05.wait::ld.sync.aligned;\nsetp.ne.u32 %p1, %r98, {lane};\n@%p1 bra READ;\nst.global.b32 [%d8], %x{};\nst.global.b32 [%d8+8], %x{};\nREAD:\nbar.warp.sync -1;",
            names(64, 32),
            64 + 2 * column,
            64 + 2 * column + 1
        );
        rows.push(with_tensor_memory(
            bare(32, &format!("{set}{unpack}")).around(&filled(), &plain).gives(0, &[1000 * last, 1]),
        ));
    } else {
        // The halves lie 16 columns apart, as they do without packing.
        rows.push(with_tensor_memory(
            each(32, &load, |n| value(n % 16, 16 * (n / 16)) | value(n % 16, 16 * (n / 16) + 1) << 16)
                .around(&filled(), ""),
        ));
        rows.push(with_tensor_memory(each(32, &format!("{set}{unpack}\n{read}"), back).around(&filled(), "")));
    }
    rows
}

/// The widest forms: 128 registers, the last of them far from the first.
fn large() -> Vec<Row> {
    let mut rows = Vec::new();
    for (shape, times) in [("32x32b", 64), ("32x32b", 128), ("16x64b", 128), ("16x128b", 64), ("16x256b", 32)] {
        let (_, regs_each, ..) = SHAPES.iter().copied().find(|s| s.0 == shape).unwrap_or(SHAPES[0]);
        let regs = times * regs_each;
        let set: String = (0..regs).map(|r| format!("mad.lo.u32 %x{r}, %r98, 1000, {r};\n")).collect();
        let body = format!(
            "{set}tcgen05.st.sync.aligned.{shape}.x{times}.b32 [%r91], {{{0}}};\ntcgen05.wait::st.sync.aligned;\n\
             tcgen05.ld.sync.aligned.{shape}.x{times}.b32 {{{0}}}, [%r91];\ntcgen05.wait::ld.sync.aligned;\nmov.b32 %r0, %x{1};",
            names(0, regs),
            regs - 1
        );
        rows.push(with_tensor_memory(each(32, &body, |t| 1000 * t + regs - 1)));
    }
    rows
}

fn allocation() -> Vec<Row> {
    let wait = "tcgen05.wait::ld.sync.aligned;";
    vec![
        // What is loaded is there behind the wait: without it, freeing races with the load.
        each(32, "tcgen05.alloc.cta_group::1.sync.aligned.b32 [%r88], 32;\nbar.sync 0;\nld.shared.b32 %r89, [slot];\n\
                  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r89], {%r98};\ntcgen05.wait::st.sync.aligned;\n\
                  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%r89];\ntcgen05.wait::ld.sync.aligned;\nmov.b32 %r0, %r1;\n\
                  tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\ntcgen05.dealloc.cta_group::1.sync.aligned.b32 %r89, 32;", |n| n)
            .around("mov.u32 %r88, slot;", "")
            .without("tcgen05.wait::ld.sync.aligned;\n", "missing-wait-ld")
            .without("tcgen05.wait::st.sync.aligned;\n", "race-tensor")
            .without("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r89, 32;", "tensor-memory-leak"),
        // Nobody allocates who has given that up.
        bare(32, "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;\nbar.sync 0;\nld.shared.b32 %r1, [slot];\ntcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;")
            .with("tcgen05.alloc", "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\ntcgen05.alloc", "tensor-relinquished"),
        // 512 columns are held: a second allocation waits until they are freed. The two are disjoint.
        each(64, "setp.lt.u32 %p1, %r98, 32;\n@!%p1 bra SECOND;\ntcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 256;\nbra MET;\n\
                  SECOND:\ntcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [response], 128;\nMET:\nbar.sync 0;\n\
                  ld.shared.b32 %r1, [slot];\nld.shared.b32 %r2, [response];\nadd.u32 %r3, %r1, 256;\nadd.u32 %r4, %r2, 128;\n\
                  setp.le.u32 %p2, %r3, %r2;\nsetp.le.u32 %p3, %r4, %r1;\nor.pred %p2, %p2, %p3;\nselp.b32 %r0, 1, 0, %p2;\n\
                  @!%p1 bra FREE;\ntcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 256;\nbra DONE;\n\
                  FREE:\ntcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 128;\nDONE:", |_| 1),
        // A pair allocates together: both get the same column, and each lets go of its own.
        each(32, "barrier.cluster.arrive.relaxed; barrier.cluster.wait;\ntcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 64;\ntcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;\n\
                  bar.sync 0;\nld.shared.b32 %r1, [slot];\nmov.u32 %r2, slot;\nxor.b32 %r3, %r97, 1;\nmapa.shared::cluster.u32 %r2, %r2, %r3;\n\
                  barrier.cluster.arrive; barrier.cluster.wait;\nld.shared::cluster.b32 %r4, [%r2];\nsub.u32 %r0, %r1, %r4;\n\
                  tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r1, 64;", |_| 0)
            .ctas(2, 2)
            .gives(0, &[0; 64])
            .without("barrier.cluster.arrive.relaxed; barrier.cluster.wait;\n", "cta-not-started")
            .around("", "barrier.cluster.arrive; barrier.cluster.wait;"),
        // A warp loads what another with the same lanes has stored: a fence on each side of the barrier.
        with_tensor_memory(
            bare(256, &format!("setp.lt.u32 %p2, %r98, 128;\nand.b32 %r92, %r91, 0x7fffff;\n@!%p2 bra LATER;\ntcgen05.st.sync.aligned.32x32b.x1.b32 [%r92], {{%r98}};\ntcgen05.wait::st.sync.aligned;\n\
                 tcgen05.fence::before_thread_sync;\nLATER:\nbar.sync 0;\n@%p2 bra NEVER;\ntcgen05.fence::after_thread_sync;\n\
                 tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r1}}, [%r92];\n{wait}\nst.global.b64 [%d9], %d0;\nNEVER:").replace("st.global.b64 [%d9], %d0;", "cvt.u64.u32 %d0, %r1; st.global.b64 [%d9], %d0;"))
                .gives(128, &(0..128).collect::<Vec<_>>())
                .with("tcgen05.fence::before_thread_sync;\nLATER", "LATER", "missing-tensor-fence")
                .without("tcgen05.fence::after_thread_sync;\n", "missing-tensor-fence"),
        ),
    ]
}

/// A warp's 16 lanes begin at lane 0 or 16 of its quarter, its 32 lanes at lane 0: elsewhere no shape lies.
#[test]
fn accesses_begin_at_a_half_of_a_quarter() {
    for &(shape, registers, ..) in SHAPES {
        for lane in [0, 1, 8, 15, 16, 17, 24, 31] {
            let far = distance(shape);
            let body = format!("tcgen05.ld.sync.aligned.{shape}.x1.b32 {{{}}}, [%r92]{far};", names(0, registers));
            let stores = format!("tcgen05.st.sync.aligned.{shape}.x1.b32 [%r92]{far}, {{{}}};", names(0, registers));
            for access in [body, stores] {
                let row = with_tensor_memory(bare(64, &access).around(
                    &format!("{}\nadd.u32 %r92, %r91, {};", filled(), lane << 16),
                    "tcgen05.wait::st.sync.aligned;",
                ));
                let found = codes(&row.run(&load(&row.text()), None));
                let allowed = lane == 0 || lane == 16 && shape != "32x32b";
                let expected: &[&str] = if allowed { &[] } else { &["tensor-address"] };
                assert_eq!(found, expected, "{access} at lane {lane}");
            }
        }
    }
}

#[test]
fn values() {
    check(&rows());
}
