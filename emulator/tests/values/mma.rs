//! `tcgen05.mma`: operands in each layout, accumulators of each shape, and what the instruction descriptor says.
//!
//! A and B hold small integers, so that every sum is exact. Their images are laid out here by rows and chunks, as the ISA's
//! figures show them; the emulator has formulas on addresses.

use crate::common::{load, matrix, rendered};
use crate::row::{Row, bare, check};
use half::{bf16, f16};

/// A product: D = A Bᵀ, 16 deep.
#[derive(Clone)]
struct Case {
    m: usize,
    n: usize,
    pair: bool,
    a_mn: bool,
    b_mn: bool,
    /// Bytes of a row of the swizzle pattern; 0: none.
    swizzle: usize,
    bf: bool,
    half_d: bool,
    negate: [bool; 2],
    /// What D holds before, and whether it counts, divided by a power of two.
    before: f32,
    accumulate: bool,
    scale: Option<u32>,
    disabled: Vec<u32>,
    a_in_tensor: bool,
    /// Bytes into the first row of the pattern where K begins.
    k_start: usize,
    collector: &'static str,
    /// With M = 64: D, and A in tensor memory, begin at this lane, or D at both, one MMA each.
    lanes: &'static [usize],
}

const CASE: Case = Case {
    m: 128,
    n: 64,
    pair: false,
    a_mn: false,
    b_mn: false,
    swizzle: 128,
    bf: false,
    half_d: false,
    negate: [false; 2],
    before: 0.0,
    accumulate: false,
    scale: None,
    disabled: vec![],
    a_in_tensor: false,
    k_start: 0,
    collector: "",
    lanes: &[0],
};

/// Where the element (mn, k) of an operand lies, in bytes.
pub fn place(mn: usize, k: usize, mn_major: bool, w: usize, rows: usize, k_start: usize) -> usize {
    // Rows of W bytes make lines of 128; the 16-byte chunks of a row are permuted by its line within the pattern.
    let chunk = |row: usize, chunk: usize| match w {
        128 => chunk ^ (row % 8),
        64 => chunk ^ (row % 8 / 2),
        _ => chunk ^ (row % 8 / 4),
    };
    match (mn_major, w) {
        // Core matrices of 8 rows of 16 bytes: those of one k chunk behind each other.
        (false, 0) => k / 8 * rows * 16 + mn / 8 * 128 + mn % 8 * 16 + k % 8 * 2,
        (false, _) => mn * w + chunk(mn, k_start / 16 + k / 8) * 16 + k % 8 * 2,
        // Core matrices of 8 rows along k of 8 elements along mn.
        (true, 0) => mn / 8 * 256 + k / 8 * 128 + k % 8 * 16 + mn % 8 * 2,
        (true, _) => {
            let atom = w / 2;
            mn / atom * 16 * w + k * w + chunk(k, mn % atom / 8) * 16 + mn % 8 * 2
        }
    }
}

/// The descriptor of an image of [`place`], without its address.
fn descriptor(mn_major: bool, w: usize, rows: usize) -> u64 {
    let (leading, stride) = match (mn_major, w) {
        (false, 0) => (rows * 16, 128),
        (false, _) => (16, 8 * w),
        (true, 0) => (128, 256),
        (true, _) => (16 * w, 8 * w),
    };
    let code = match w {
        0 => 0,
        128 => 2,
        64 => 4,
        _ => 6u64,
    };
    (leading as u64 >> 4) << 16 | (stride as u64 >> 4) << 32 | 1 << 46 | code << 61
}

fn bits(case: &Case, x: i32) -> u16 {
    if case.bf { bf16::from_f32(x as f32).to_bits() } else { f16::from_f32(x as f32).to_bits() }
}

/// Bytes of the image of A or B of a CTA.
pub fn size(rows: usize, w: usize) -> usize {
    (rows * w.max(32)).next_multiple_of(1024)
}

impl Case {
    fn row(&self) -> Row {
        let ctas = if self.pair { 2 } else { 1 };
        let (m_each, n_each) = (self.m / ctas, self.n / ctas);
        let (a, b) = (matrix(self.m, 16, 1, 4), matrix(self.n, 16, 2, 4));
        // The images of each CTA: its rows of A, then its rows of B.
        let (a_size, b_size) = (size(m_each, self.swizzle), size(n_each, self.swizzle));
        let mut input = vec![0u8; ctas * (a_size + b_size)];
        for cta in 0..ctas {
            let base = cta * (a_size + b_size);
            let mut put =
                |at: usize, x: i32| input[base + at..base + at + 2].copy_from_slice(&bits(self, x).to_le_bytes());
            for k in 0..16 {
                for mn in 0..m_each {
                    // For tensor memory: row after row.
                    let at = if self.a_in_tensor {
                        mn * 32 + k * 2
                    } else {
                        place(mn, k, self.a_mn, self.swizzle, m_each, self.k_start)
                    };
                    put(at, a[(cta * m_each + mn) * 16 + k]);
                }
                for mn in 0..n_each {
                    put(
                        a_size + place(mn, k, self.b_mn, self.swizzle, n_each, self.k_start),
                        b[(cta * n_each + mn) * 16 + k],
                    );
                }
            }
        }
        let idesc = u32::from(!self.half_d) << 4
            | u32::from(self.bf) << 7
            | u32::from(self.bf) << 10
            | u32::from(self.negate[0]) << 13
            | u32::from(self.negate[1]) << 14
            | u32::from(self.a_mn) << 15
            | u32::from(self.b_mn) << 16
            | (self.n as u32 / 8) << 17
            | (self.m as u32 / 16) << 24;
        let columns = if self.pair && self.m == 128 { self.n / 2 } else { self.n };
        // Words of 32 bits: lane after lane of each CTA.
        let mut cells = vec![self.cell(self.before); ctas * 128 * columns];
        for row in 0..self.m {
            for column in 0..self.n {
                let sum: i32 = (0..16).map(|k| a[row * 16 + k] * b[column * 16 + k]).sum();
                let sign = if self.negate[0] != self.negate[1] { -1.0 } else { 1.0 };
                let d = if self.accumulate { self.before / (1 << self.scale.unwrap_or(0)) as f32 } else { 0.0 };
                let (cta, r) = (row / m_each, row % m_each);
                // Layouts D and A: a lane a row. F: 16 lanes of each quarter, its first or its last. B: the right half of the columns in lanes 64 on.
                let (lane, c) = match (self.m, self.pair) {
                    (64, _) => (r / 16 * 32 + r % 16, column),
                    (128, true) if column < self.n / 2 => (r, column),
                    (128, true) => (64 + r, column - self.n / 2),
                    _ => (r, column),
                };
                for lane in self.lanes.iter().map(|first| lane + first) {
                    let off = self.disabled.get(cta * 4 + lane / 32).is_some_and(|w| w >> (lane % 32) & 1 == 1);
                    if !off {
                        cells[(cta * 128 + lane) * columns + c] = self.cell(sign * sum as f32 + d);
                    }
                }
            }
        }
        let words: Vec<u64> = cells.chunks(2).map(|c| u64::from(c[0]) | u64::from(c[1]) << 32).collect();
        let row = bare(128, &self.body(idesc, a_size)).ctas(ctas as u32, ctas as u32).input(input).gives(0, &words);
        let a_in_tensor = self.a_in_tensor.then_some(m_each);
        let g = self.group();
        // The other half of a quarter has the first row of A where this one has its own.
        let own = format!(
            "or.b32 %r4, %r4, %r5; and.b32 %r5, %r98, 16; setp.ne.u32 %p1, %r5, {}; @%p1 mov.u32 %r4, 0;",
            self.lanes[0]
        );
        let before = set_up(g, a_size + b_size, columns, self.cell(self.before), a_in_tensor)
            .replace("or.b32 %r4, %r4, %r5;", &own);
        row.around(&before, &read_back(g, columns))
    }

    /// A value of D in its cell; an FP16 one leaves the upper half zero.
    fn cell(&self, x: f32) -> u32 {
        // A sum of opposites is +0.
        let x = if x == 0.0 { 0.0 } else { x };
        if self.half_d { f16::from_f32(x).to_bits().into() } else { x.to_bits() }
    }

    fn group(&self) -> u32 {
        if self.pair { 2 } else { 1 }
    }

    /// One thread multiplies and commits; all wait.
    fn body(&self, idesc: u32, a_size: usize) -> String {
        let g = self.group();
        let rows = |all: usize| all / g as usize;
        let a = descriptor(self.a_mn, self.swizzle, rows(self.m));
        let b = descriptor(self.b_mn, self.swizzle, rows(self.n));
        let lane = |first: usize| if first == 0 { String::new() } else { format!("+{:#x}", first << 16) };
        let at = lane(self.lanes[0]);
        let a_operand = if self.a_in_tensor { format!("[%r90+{}]", 256 + (self.lanes[0] << 16)) } else { "%d3".into() };
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
        filled_first(&format!(
            "setp.eq.u32 %p1, %r98, 0;\nsetp.eq.and.u32 %p1, %r97, 0, %p1;\n@!%p1 bra WAIT;\nmov.u32 %r20, bar;\nmov.u32 %r21, smem;\n\
             bfe.u32 %r22, %r21, 4, 14;\ncvt.u64.u32 %d3, %r22;\nadd.s64 %d4, %d3, {};\nor.b64 %d3, %d3, {a:#x};\nor.b64 %d4, %d4, {b:#x};\n\
             add.s64 %d3, %d3, {};\n{words}\
             tcgen05.mma.cta_group::{g}.kind::f16{} [%r90{at}], {a_operand}, %d4, {idesc:#x}, {mask}{}{scale};\n{commit}\n\
             WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;\n@!%p2 bra WAIT;\ntcgen05.fence::after_thread_sync;",
            (a_size + self.k_start) / 16,
            self.k_start / 16,
            self.collector,
            u8::from(self.accumulate),
        ))
    }
}

pub const COLLECTORS: [&str; 4] =
    [".collector::a::discard", ".collector::a::lastuse", ".collector::a::fill", ".collector::a::use"];

/// The same MMA with `.ws`.
pub fn stationary(row: Row) -> Row {
    row.replaced("tcgen05.mma.cta_group::1", "tcgen05.mma.ws.cta_group::1")
}

/// Who takes A from the collector buffer has filled it before: the same MMA, with `::fill`.
pub fn filled_first(body: &str) -> String {
    let mut text = String::new();
    for line in body.lines() {
        let used = [".collector::a::use", ".collector::a::lastuse"].into_iter().find(|used| line.contains(used));
        if let Some(used) = used {
            text += &format!("{}\n", line.replace(used, ".collector::a::fill"));
        }
        text += &format!("{line}\n");
    }
    text
}

/// Allocates, fills so many bytes of shared memory, and D with a value, and makes it visible; A in tensor memory, for a CTA's rows of it
/// in lanes of D, comes from the first bytes.
pub fn set_up(g: u32, bytes: usize, columns: usize, before: u32, a_in_tensor: Option<usize>) -> String {
    let mut text = format!(
        "setp.lt.u32 %p8, %r98, 32;\nsetp.eq.u32 %p7, %r98, 0;\n@%p7 mbarrier.init.shared::cta.b64 [bar], 1;\n\
         @%p7 fence.mbarrier_init.release.cluster;\nbarrier.cluster.arrive; barrier.cluster.wait;\n\
         @%p8 tcgen05.alloc.cta_group::{g}.sync.aligned.shared::cta.b32 [slot], 512;\n\
         mov.u32 %r1, smem;\nmul.wide.u32 %d1, %r97, {bytes};\nadd.s64 %d1, %d1, %d7;\n\
         shl.b32 %r2, %r98, 4;\nFILL:\nadd.u32 %r3, %r1, %r2;\ncvt.u64.u32 %d2, %r2;\nadd.s64 %d2, %d2, %d1;\n\
         setp.ge.u32 %p1, %r2, {bytes};\n@%p1 bra FILLED;\nld.global.v4.b32 {{%r4, %r5, %r6, %r7}}, [%d2];\n\
         st.shared.v4.b32 [%r3], {{%r4, %r5, %r6, %r7}};\nadd.u32 %r2, %r2, 2048;\nbra FILL;\nFILLED:\n\
         fence.proxy.async.shared::cta;\nbar.sync 0;\nld.shared.b32 %r90, [slot];\nshr.u32 %r91, %r98, 5;\nshl.b32 %r91, %r91, 21;\n\
         add.u32 %r91, %r91, %r90;\nmov.u32 %r92, {before:#x};\nmov.u32 %r2, 0;\nCLEAR:\nadd.u32 %r3, %r91, %r2;\n\
         tcgen05.st.sync.aligned.32x32b.x1.b32 [%r3], {{%r92}};\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, {columns};\n@%p1 bra CLEAR;\n",
    );
    if let Some(m_each) = a_in_tensor {
        // Row r of A in the lane of row r of D, eight columns from 256 on.
        let row = match (m_each, g) {
            (64, 1) => "shr.u32 %r4, %r98, 5; shl.b32 %r4, %r4, 4; and.b32 %r5, %r98, 15; or.b32 %r4, %r4, %r5;",
            (64, _) => "and.b32 %r4, %r98, 63;",
            _ => "mov.u32 %r4, %r98;",
        };
        text += &format!(
            "{row}\nmul.wide.u32 %d2, %r4, 32;\nadd.s64 %d2, %d2, %d1;\nld.global.v8.b32 {{%x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7}}, [%d2];\n\
             tcgen05.st.sync.aligned.32x32b.x8.b32 [%r91+256], {{%x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7}};\n"
        );
    }
    text + "tcgen05.wait::st.sync.aligned;\ntcgen05.fence::before_thread_sync;\nbarrier.cluster.arrive; barrier.cluster.wait;\ntcgen05.fence::after_thread_sync;\n"
}

/// Each thread stores its lane.
pub fn read_back(g: u32, columns: usize) -> String {
    format!(
        "mad.lo.u32 %r2, %r97, 128, %r98;\nmul.wide.u32 %d1, %r2, {};\nadd.s64 %d1, %d1, %d8;\nmov.u32 %r2, 0;\nDRAIN:\n\
         add.u32 %r3, %r91, %r2;\ntcgen05.ld.sync.aligned.32x32b.x2.b32 {{%r4, %r5}}, [%r3];\ntcgen05.wait::ld.sync.aligned;\n\
         st.global.v2.b32 [%d1], {{%r4, %r5}};\nadd.s64 %d1, %d1, 8;\nadd.u32 %r2, %r2, 2;\nsetp.lt.u32 %p1, %r2, {columns};\n@%p1 bra DRAIN;\n\
         tcgen05.fence::before_thread_sync;\nbar.sync 0;\nbarrier.cluster.arrive; barrier.cluster.wait;\n\
         @%p8 tcgen05.dealloc.cta_group::{g}.sync.aligned.b32 %r90, 512;",
        4 * columns
    )
}

pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for swizzle in [0, 32, 64, 128] {
        for (a_mn, b_mn) in [(false, false), (false, true), (true, false), (true, true)] {
            rows.push(Case { swizzle, a_mn, b_mn, ..CASE }.row());
        }
    }
    // The next slice of K lies 32 bytes on in the same rows: the pattern stays where it is.
    for k_start in [32, 64, 96] {
        rows.push(Case { k_start, ..CASE }.row());
    }
    // Shapes.
    rows.push(Case { m: 64, n: 24, swizzle: 64, ..CASE }.row());
    rows.push(Case { m: 64, n: 64, swizzle: 128, a_mn: true, b_mn: true, ..CASE }.row());
    rows.push(Case { n: 8, swizzle: 32, ..CASE }.row());
    rows.push(Case { n: 256, swizzle: 32, ..CASE }.row());
    for (m, n) in [(256, 64), (128, 64), (128, 32)] {
        rows.push(Case { m, n, pair: true, swizzle: 64, ..CASE }.row());
    }
    // Types and signs.
    rows.push(Case { bf: true, ..CASE }.row());
    rows.push(Case { half_d: true, ..CASE }.row());
    rows.push(Case { negate: [true, false], ..CASE }.row());
    rows.push(Case { negate: [false, true], ..CASE }.row());
    rows.push(Case { negate: [true, true], ..CASE }.row());
    // D that counts, and D / 2^3.
    rows.push(Case { before: 24.0, accumulate: true, ..CASE }.row());
    rows.push(Case { before: 24.0, accumulate: true, scale: Some(3), ..CASE }.row());
    rows.push(Case { before: 24.0, accumulate: true, scale: Some(3), half_d: true, ..CASE }.row());
    rows.push(Case { before: 24.0, ..CASE }.row());
    // Lanes that are left as they are: a bit a lane.
    rows.push(Case { before: 5.0, disabled: vec![0, 0xffff_ffff, 0x8000_0001, 0xf0], ..CASE }.row());
    rows.push(
        Case {
            m: 256,
            pair: true,
            swizzle: 64,
            before: 5.0,
            disabled: vec![1, 2, 4, 8, 16, 32, 64, 0x8000_0000],
            ..CASE
        }
        .row(),
    );
    // A in tensor memory.
    rows.push(Case { a_in_tensor: true, ..CASE }.row());
    rows.push(Case { m: 64, a_in_tensor: true, ..CASE }.row());
    rows.push(Case { m: 256, pair: true, swizzle: 64, a_in_tensor: true, ..CASE }.row());
    rows.push(Case { m: 128, pair: true, swizzle: 64, a_in_tensor: true, ..CASE }.row());
    // The upper half of each quarter, alone: layout F (9.7.16.10.5), lane alignment 16.
    let upper = Case { m: 64, n: 24, swizzle: 64, lanes: &[16], ..CASE };
    for (before, accumulate) in [(0.0, false), (3.0, true)] {
        for half_d in [false, true] {
            rows.push(Case { before, accumulate, half_d, ..upper.clone() }.row());
        }
        rows.push(Case { before, accumulate, a_in_tensor: true, ..upper.clone() }.row());
    }
    rows.push(Case { before: 5.0, disabled: vec![0, 0xffff_0000, 0x8001_0001, 0xf0_0000], ..upper.clone() }.row());
    rows.push(Case { a_in_tensor: true, ..upper }.row().with("[%r90+1048832]", "[%r90+256]", "tensor-address").with(
        "[%r90+0x100000]",
        "[%r90]",
        "tensor-address",
    ));
    // Hints of the collector change no value.
    for collector in COLLECTORS {
        rows.push(Case { collector, ..CASE }.row());
    }
    // With `.ws`, the hints are of B, and 128 rows lie as without it.
    for (n, collector) in COLLECTORS.into_iter().enumerate() {
        for buffer in 0..4 {
            let row = stationary(Case { collector, n: [64, 128, 64, 128][n], ..CASE }.row());
            rows.push(row.replaced(".collector::a", &format!(".collector::b{buffer}")));
        }
    }
    rows.push(stationary(Case { n: 64, a_in_tensor: true, ..CASE }.row()));
    rows.push(Case { m: 256, pair: true, swizzle: 64, collector: ".collector::a::discard", ..CASE }.row());
    rows.extend(commits());
    rows
}

/// What a commit arrives at, and what is found without it.
fn commits() -> Vec<Row> {
    let one = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r20];";
    let both = "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r20], %h1;";
    let single = || CASE.row();
    let pair = || Case { m: 256, pair: true, swizzle: 64, ..CASE }.row();
    vec![
        single().without(one, "hang").with("mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;\n@!%p2 bra WAIT;", "", "mma-not-awaited"),
        single().replaced(one, "cvt.u64.u32 %d5, %r20;\ncvta.shared.u64 %d5, %d5;\ntcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%d5];"),
        single().replaced(one, "mov.b16 %h1, 1;\ntcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r20], %h1;"),
        single().replaced(one, "mov.b16 %h1, 1;\ncvt.u64.u32 %d5, %r20;\ncvta.shared.u64 %d5, %d5;\ntcgen05.commit.cta_group::1.mbarrier::arrive::one.multicast::cluster.b64 [%d5], %h1;"),
        pair().with("mov.b16 %h1, 3;", "mov.b16 %h1, 1;", "hang").without(both, "hang"),
        // One commit for each of the two, at the address of its barrier.
        pair().replaced(both, "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [%r20];\nmapa.shared::cluster.u32 %r23, %r20, 1;\ntcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [%r23];"),
    ]
}

/// MMAs of one thread in a row, each with its collector's operation and an A (which one): the first one, if any, that has no right to
/// take its A from the buffer. By the ISA: `::use` and `::lastuse` need a fill that is still valid; `::discard`, and no qualifier, allow
/// the buffer to be emptied, and so does `::lastuse` behind itself.
#[test]
fn a_use_of_the_collector_needs_the_fill_of_its_a() {
    for (mmas, wrong) in [
        (&[("fill", 0), ("use", 0), ("use", 0), ("lastuse", 0)][..], None),
        (&[("fill", 0), ("fill", 1), ("use", 1)], None),
        (&[("fill", 0), ("discard", 1), ("", 0)], None),
        (&[("lastuse", 0)], Some((0, "which nothing has filled"))),
        (&[("discard", 0), ("use", 0)], Some((1, "which nothing has filled"))),
        (&[("fill", 0), ("use", 1)], Some((1, "which holds another one"))),
        (&[("fill", 0), ("fill", 1), ("use", 0)], Some((2, "which holds another one"))),
        (&[("fill", 0), ("discard", 0), ("use", 0)], Some((2, "which no longer holds it"))),
        (&[("fill", 0), ("", 1), ("lastuse", 0)], Some((2, "which no longer holds it"))),
        (&[("fill", 0), ("lastuse", 0), ("use", 0)], Some((2, "which no longer holds it"))),
    ] {
        let row = Case { n: 16, ..CASE }.row();
        let (_, rest) = row.body.split_once("tcgen05.mma").expect("an MMA");
        let (mma, end) = rest.split_once('\n').expect("more behind it");
        let mut many = String::new();
        for (collector, a) in mmas {
            let qualifier = if collector.is_empty() { String::new() } else { format!(".collector::a::{collector}") };
            // The other A lies 128 rows on: in what follows the first one.
            let mma = mma.replacen("kind::f16", &format!("kind::f16{qualifier}"), 1);
            many += &format!("tcgen05.mma{}\n", if *a == 0 { mma } else { mma.replace("%d3", "%d4") });
        }
        let changed = row.clone().replaced(&format!("tcgen05.mma{mma}\n{end}"), &format!("{many}{end}")).text();
        let report = row.run(&load(&changed), None);
        let text = rendered(&report);
        let found = report.findings.iter().filter(|d| d.code == "collector-not-filled").collect::<Vec<_>>();
        assert_eq!(found.len(), usize::from(wrong.is_some()), "{mmas:?}: {text}");
        if let Some((n, why)) = wrong {
            let first = changed.lines().position(|line| line.starts_with("tcgen05.mma")).expect("an MMA");
            assert!(found[0].title.ends_with(why), "{mmas:?}: {text}");
            assert_eq!(found[0].labels[0].place.line as usize, first + 1 + n, "{mmas:?}: {text}");
        }
    }
}

/// Accumulators with M = 64 in both halves of the same columns, one thread's MMAs, each with its own commit: who has waited for the first
/// one may load its lanes, with shapes of 16 lanes, while the other one is still written. All 32 lanes, or the others, it may not.
#[test]
fn halves_of_a_quarter_are_accumulators_of_their_own() {
    let row = Case { m: 64, n: 32, swizzle: 64, lanes: &[0, 16], ..CASE }.row();
    let commit = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r20];\n";
    let first = row.body.lines().find(|line| line.starts_with("tcgen05.mma")).expect("an MMA").to_string();
    let other = first.replace("[%r90]", "[%r90+0x100000]");
    let both = row.replaced(commit, &format!("{commit}{other}\nadd.u32 %r20, %r20, 8;\n{commit}")).around_set_up(
        "@%p7 mbarrier.init.shared::cta.b64 [bar], 1;",
        "@%p7 mbarrier.init.shared::cta.b64 [bar+8], 1;",
    );
    let load = "tcgen05.ld.sync.aligned.16x64b.x4.b32 {%x4, %x5, %x6, %x7}, [%r91];";
    let end = "@!%p2 bra WAIT;\ntcgen05.fence::after_thread_sync;";
    let second = "tcgen05.wait::ld.sync.aligned;\nSECOND:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [bar+8], 0;\n@!%p2 bra SECOND;\n\
                  tcgen05.fence::after_thread_sync;";
    let row = both
        .replaced(end, &format!("{end}\n{load}\n{second}"))
        .with(load, &load.replace("16x64b", "32x32b"), "mma-not-awaited")
        .with(
            load,
            "add.u32 %r93, %r91, 0x100000;\ntcgen05.ld.sync.aligned.16x64b.x1.b32 {%x4}, [%r93];",
            "mma-not-awaited",
        )
        .with("[%r90+0x100000]", "[%r90+0x80000]", "tensor-address");
    check(&[row]);
}

#[test]
fn values() {
    check(&rows());
}
