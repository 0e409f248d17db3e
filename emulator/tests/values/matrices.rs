//! `ldmatrix`, `stmatrix` and `cp.async`.

use crate::row::{Row, bare, check, each, one};

pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for space in ["", ".shared", ".shared::cta"] {
        for (count, times) in [(1, "x1"), (2, "x2"), (4, "x4")] {
            for trans in ["", ".trans"] {
                rows.extend(matrices(count, times, trans, space));
            }
        }
    }
    for space in ["", ".shared", ".shared::cta"] {
        for elements in [EIGHT_BITS, FOUR_BITS, SIX_BITS] {
            for (count, times) in [(1, "x1"), (2, "x2")] {
                rows.push(bytes_loaded(count, times, space, elements));
            }
        }
        for elements in [FOUR_BITS, SIX_BITS] {
            for (count, times) in [(1, "x1"), (2, "x2"), (4, "x4")] {
                rows.push(wide_loaded(count, times, space, elements));
            }
        }
        for (count, times) in [(1, "x1"), (2, "x2"), (4, "x4")] {
            rows.push(bytes_stored(count, times, space));
        }
    }
    rows.extend([2, 4].map(over_its_addresses));
    rows.extend(small_copies());
    rows
}

/// The register of the addresses is the one of the first matrix: all rows are read from where it pointed before.
fn over_its_addresses(count: u64) -> Row {
    let regs: Vec<String> = (0..count).map(|n| format!("%r{}", 20 + n)).collect();
    // Lane n fills its row with the half word n, and names it.
    let fill = format!(
        "{ROW_OF_LANE}mad.lo.u32 %r24, %r98, 0x10001, 0;\nst.shared.v4.b32 [%r20], {{%r24, %r24, %r24, %r24}}; bar.sync 0;\n"
    );
    let last = 19 + count;
    let load = format!(
        "ldmatrix.sync.aligned.m8n8.x{count}.shared.b16 {{{}}}, [%r20];\nmov.b32 %r0, %r{last};",
        regs.join(", ")
    );
    each(32, &load, |t| (8 * (count - 1) + t / 4) * 0x10001).around(&fill, "")
}

/// Where the rows of 16 bytes lie, by lane: `%r20`, or a generic address in `%d14`.
const ROW_OF_LANE: &str = "shl.b32 %r20, %r98, 5; mov.u32 %r21, smem; add.u32 %r20, %r20, %r21; cvt.u64.u32 %d14, %r20; cvta.shared.u64 %d14, %d14;\n";

/// Byte b of the row that lane n names is 16 (n % 16) + b, and 7 more for lanes from 16 on.
fn byte(lane: u64, b: u64) -> u64 {
    (16 * (lane % 16) + b + lane / 16 * 7) & 0xff
}

/// Elements of a row of 16 bytes: how the type is written, how many bytes hold them, and the element of a lane's row.
type Elements = (&'static str, u32, fn(u64, u64) -> u64);
const EIGHT_BITS: Elements = (".b8", 16, byte);
const FOUR_BITS: Elements = (".b8x16.b4x16_p64", 8, four);
const SIX_BITS: Elements = (".b8x16.b6x16_p32", 12, six);

/// Two elements in a byte, the low one first.
fn four(lane: u64, n: u64) -> u64 {
    byte(lane, n / 2) >> (4 * (n % 2)) & 0xf
}

/// Four elements in three bytes, the low ones first.
fn six(lane: u64, n: u64) -> u64 {
    let three = (0..3).map(|b| byte(lane, n / 4 * 3 + b) << (8 * b)).sum::<u64>();
    three >> (6 * (n % 4)) & 0x3f
}

#[test]
fn padded_elements() {
    // Row 1 begins with 0x10, 0x11, 0x12: 0x121110 = 000100 100001 000100 010000.
    assert_eq!((0..4).map(|n| six(1, n)).collect::<Vec<_>>(), [0b01_0000, 0b00_0100, 0b10_0001, 0b00_0100]);
    assert_eq!((0..4).map(|n| four(1, n)).collect::<Vec<_>>(), [0, 1, 1, 1]);
}

/// Each lane fills its row, but for the padding, which nothing writes.
fn fill_rows(bytes: u32) -> String {
    format!(
        "{ROW_OF_LANE}and.b32 %r22, %r98, 15; shl.b32 %r22, %r22, 4; shr.u32 %r23, %r98, 4; mad.lo.u32 %r22, %r23, 7, %r22;\n\
         mov.u32 %r24, 0;\nFILL:\nadd.u32 %r25, %r22, %r24; add.u32 %r26, %r20, %r24; st.shared.u8 [%r26], %r25;\n\
         add.u32 %r24, %r24, 1; setp.lt.u32 %p1, %r24, {bytes}; @%p1 bra FILL;\nbar.sync 0;\n"
    )
}

/// `ldmatrix.m16n16.trans`: a lane holds four neighbouring columns of two rows, of which columns are the rows in memory (PTX ISA,
/// ldmatrix, figure of 16 × 16 fragments).
fn bytes_loaded(count: u64, times: &str, space: &str, (ty, bytes, element): Elements) -> Row {
    let at = if space.is_empty() { "%d14" } else { "%r20" };
    let regs: Vec<String> = (1..=2 * count).map(|n| format!("%r{n}")).collect();
    let load = format!(
        "ldmatrix.sync.aligned.m16n16.{times}.trans{space}{ty} {{{}}}, [{at}];\nmov.b64 %d0, {{%r{}, %r{}}};",
        regs.join(", "),
        2 * count - 1,
        2 * count
    );
    let held = move |t: u64| {
        let at = |row: u64, n: u64| element(16 * (count - 1) + 4 * (t % 4) + n, row) << (8 * n);
        let word = |row: u64| (0..4).map(|n| at(row, n)).sum::<u64>();
        word(t / 4) | word(t / 4 + 8) << 32
    };
    bare(32, &load)
        .around(&fill_rows(bytes), "st.global.b64 [%d9], %d0;")
        .gives(0, &(0..32).map(held).collect::<Vec<_>>())
}

/// `ldmatrix.m8n16`: a lane holds four neighbouring elements of one row (PTX ISA, ldmatrix, figure of 8 × 16 fragments).
fn wide_loaded(count: u64, times: &str, space: &str, (ty, bytes, element): Elements) -> Row {
    let at = if space.is_empty() { "%d14" } else { "%r20" };
    let regs: Vec<String> = (1..=count).map(|n| format!("%r{n}")).collect();
    let load = format!(
        "ldmatrix.sync.aligned.m8n16.{times}{space}{ty} {{{}}}, [{at}];\nmov.b32 %r0, %r{count};",
        regs.join(", ")
    );
    let held = move |t: u64| (0..4).map(|n| element(8 * (count - 1) + t / 4, 4 * (t % 4) + n) << (8 * n)).sum::<u64>();
    let row = each(32, &load, held).around(&fill_rows(bytes), "");
    // The last byte that holds elements must be there.
    row.with(&format!("%r24, {bytes};"), &format!("%r24, {};", bytes - 1), "undefined-value-stored")
}

/// `stmatrix.m16n8.trans.b8`: of each matrix a lane holds two neighbouring columns of two rows, and columns are the rows in memory (PTX
/// ISA, stmatrix, figure of 16 × 8 fragments).
fn bytes_stored(count: u64, times: &str, space: &str) -> Row {
    let at = if space.is_empty() { "%d14" } else { "%r20" };
    let regs: Vec<String> = (1..=count).map(|n| format!("%r{n}")).collect();
    // Element (row, column) of matrix m is 8 row + column + 2 m: the lane's first, and 1, 64 and 65 more.
    let mut set = String::from(
        "shr.u32 %r30, %r98, 2; shl.b32 %r30, %r30, 3; and.b32 %r31, %r98, 3; shl.b32 %r31, %r31, 1; add.u32 %r30, %r30, %r31;\n",
    );
    for m in 0..count {
        set += &format!("add.u32 %r31, %r30, {}; mad.lo.u32 %r{}, %r31, 0x1010101, 0x41400100;\n", 2 * m, m + 1);
    }
    let store =
        format!("stmatrix.sync.aligned.m16n8.{times}.trans{space}.b8 [{at}], {{{}}};\nbar.sync 0;", regs.join(", "));
    // A lane reads eight bytes of the rows of the last matrix: half a column.
    let first = 8 * (count - 1);
    let read = format!(
        "setp.ge.u32 %p1, %r98, 16; @%p1 ret;\nshr.u32 %r22, %r98, 1; shl.b32 %r22, %r22, 5; and.b32 %r23, %r98, 1; shl.b32 %r23, %r23, 3;\n\
         add.u32 %r22, %r22, %r23; mov.u32 %r21, smem; add.u32 %r22, %r22, %r21; ld.shared.b64 %d0, [%r22+{}];\n\
         shl.b32 %r23, %r98, 3; cvt.u64.u32 %d1, %r23; add.s64 %d1, %d1, %d8; st.global.b64 [%d1], %d0;",
        32 * first
    );
    let held = |n: u64| {
        let element = |row: u64| (8 * row + n / 2 + 2 * (count - 1)) & 0xff;
        (0..8).map(|i| element(8 * (n % 2) + i) << (8 * i)).sum::<u64>()
    };
    bare(32, &store).around(&format!("{ROW_OF_LANE}{set}"), &read).gives(0, &(0..16).map(held).collect::<Vec<_>>())
}

/// Element (row, column) of matrix m is 256 m + 16 row + column.
fn element(m: u64, row: u64, column: u64) -> u64 {
    256 * m + 16 * row + column
}

/// Thread t holds row t / 4 and columns 2 (t % 4) and the next, low half first (PTX ISA, ldmatrix); transposed, the same of the
/// matrix with rows and columns exchanged.
fn fragment(m: u64, t: u64, trans: bool) -> u64 {
    let at = |column: u64| if trans { element(m, column, t / 4) } else { element(m, t / 4, column) };
    at(2 * (t % 4)) | at(2 * (t % 4) + 1) << 16
}

fn matrices(count: u64, times: &str, trans: &str, space: &str) -> Vec<Row> {
    let regs: Vec<String> = (1..=count).map(|n| format!("%r{n}")).collect();
    let regs = regs.join(", ");
    // Lane n stores row n % 8 of matrix n / 8, whose rows lie 32 bytes apart, and names its address.
    let address = "shl.b32 %r20, %r98, 5; mov.u32 %r21, smem; add.u32 %r20, %r20, %r21; cvt.u64.u32 %d14, %r20; cvta.shared.u64 %d14, %d14;\n";
    let at = if space.is_empty() { "%d14" } else { "%r20" };
    let fill = "shr.u32 %r22, %r98, 3; shl.b32 %r22, %r22, 8; and.b32 %r23, %r98, 7; shl.b32 %r23, %r23, 4; or.b32 %r22, %r22, %r23;\n\
                mad.lo.u32 %r24, %r22, 0x10001, 0x10000; add.u32 %r25, %r24, 0x20002; add.u32 %r26, %r24, 0x40004; add.u32 %r27, %r24, 0x60006;\n\
                st.shared.v4.b32 [%r20], {%r24, %r25, %r26, %r27}; bar.sync 0;\n";
    // The last matrix's fragment.
    let load =
        format!("ldmatrix.sync.aligned.m8n8.{times}{trans}{space}.b16 {{{regs}}}, [{at}];\nmov.b32 %r0, %r{count};");
    let loaded = each(32, &load, |t| fragment(count - 1, t, !trans.is_empty())).around(&format!("{address}{fill}"), "");
    // The other way: each thread stores its fragment, then row t % 8 of the last matrix is read by its lane, second word.
    let mut set = String::new();
    for m in 0..count {
        let (n, t) = (m + 1, !trans.is_empty());
        // 16 (t / 4) + 2 (t % 4), or with row and column exchanged; the neighbour is 1 or 16 more.
        let (row, column, next) = if t { (1, 32, 16) } else { (16, 2, 1) };
        set += &format!(
            "shr.u32 %r30, %r98, 2; mul.lo.u32 %r30, %r30, {row}; and.b32 %r31, %r98, 3; mad.lo.u32 %r30, %r31, {column}, %r30;\n\
             add.u32 %r30, %r30, {}; add.u32 %r31, %r30, {next}; shl.b32 %r31, %r31, 16; or.b32 %r{n}, %r30, %r31;\n",
            256 * m
        );
    }
    let store = format!("stmatrix.sync.aligned.m8n8.{times}{trans}{space}.b16 [{at}], {{{regs}}};\nbar.sync 0;");
    let (m, first) = (count - 1, 8 * (count - 1));
    let stored = bare(32, &store)
        .around(&format!("{address}{set}"), "setp.ge.u32 %p1, %r98, 8; @%p1 ret;\nadd.u32 %r20, %r20, OFFSET; ld.shared.b32 %r0, [%r20+4]; cvt.u64.u32 %d0, %r0; st.global.b64 [%d9], %d0;".replace("OFFSET", &(32 * first).to_string()).as_str())
        .gives(0, &(0..8).map(|row| element(m, row, 2) | element(m, row, 3) << 16).collect::<Vec<_>>());
    vec![loaded, stored]
}

/// `in` holds its offsets as bytes.
fn small_copies() -> Vec<Row> {
    let input: Vec<u8> = (0..=255).collect();
    let done = "cp.async.wait_all;\n";
    let word = |body: &str, offset: u32, want: u64| {
        one(&format!("st.shared.b64 [smem+{offset}], -1;\n{body}\n{done}ld.shared.b64 %d0, [smem+{offset}];"), want)
            .input(input.clone())
    };
    let mut rows = vec![
        word("cp.async.ca.shared.global [smem], [%d7+4], 4;", 0, 0xffff_ffff_0706_0504),
        word("cp.async.ca.shared::cta.global [smem], [%d7+8], 8;", 0, 0x0f0e_0d0c_0b0a_0908),
        word("cp.async.cg.shared.global [smem], [%d7+16], 16;", 8, 0x1f1e_1d1c_1b1a_1918),
        // What is not read is zero.
        word("cp.async.cg.shared.global [smem], [%d7], 16, 10;", 8, 0x0908),
        word("cp.async.cg.shared::cta.global.L2::64B [smem], [%d7], 16, 0;", 8, 0),
        word("setp.eq.u32 %p1, 0, 0; cp.async.cg.shared.global.L2::128B [smem], [%d7], 16, %p1;", 0, 0),
        word(
            "setp.eq.u32 %p1, 0, 1; cp.async.cg.shared.global.L2::256B [smem], [%d7], 16, %p1;",
            0,
            0x0706_0504_0302_0100,
        ),
        word(
            "createpolicy.fractional.L2::evict_first.b64 %d1, 1.0; cp.async.ca.shared.global.L2::cache_hint [smem], [%d7], 8, %d1;",
            0,
            0x0706_0504_0302_0100,
        ),
        word(
            "createpolicy.fractional.L2::evict_first.b64 %d1; cp.async.cg.shared.global.L2::cache_hint.L2::128B [smem], [%d7], 16, 12, %d1;",
            8,
            0x0b0a_0908,
        ),
    ];
    // Groups: all but the newest one are waited for.
    rows.push(
        one("cp.async.ca.shared.global [smem], [%d7], 8;\ncp.async.commit_group;\ncp.async.ca.shared.global [smem+8], [%d7+8], 8;\ncp.async.commit_group;\ncp.async.wait_group 1;\nld.shared.b64 %d0, [smem];", 0x0706_0504_0302_0100)
            .input(input.clone())
            .with("wait_group 1", "wait_group 2", "race-shared")
            .without("cp.async.wait_group 1;\n", "race-shared"),
    );
    // What an arrival closes belongs to the group behind it.
    rows.push(
        one("mbarrier.init.shared.b64 [bar], 2;\ncp.async.ca.shared.global [smem], [%d7], 8;\ncp.async.mbarrier.arrive.noinc.b64 [bar];\ncp.async.commit_group;\ncp.async.ca.shared.global [smem+8], [%d7+8], 8;\ncp.async.commit_group;\ncp.async.wait_group 1;\nld.shared.b64 %d0, [smem];", 0x0706_0504_0302_0100)
            .input(input.clone())
            .with("wait_group 1", "wait_group 2", "race-shared"),
    );
    // Arrivals behind copies: counted ones, and ones that the phase takes beside the others.
    for space in ["", ".shared", ".shared::cta"] {
        let wait =
            "WAIT:\nmbarrier.try_wait.parity.shared.b64 %p9, [bar], 0;\n@!%p9 bra WAIT;\nld.shared.b64 %d0, [smem];";
        let body = |arrive: &str| {
            let (base, name) =
                if space.is_empty() { ("mov.u64 %d1, bar; cvta.shared.u64 %d1, %d1;\n", "%d1") } else { ("", "bar") };
            let arrive = arrive.replace("SPACE", space).replace("BAR", name);
            format!(
                "mbarrier.init.shared.b64 [bar], 1;\n{base}cp.async.ca.shared.global [smem], [%d7], 8;\n{arrive}\n{wait}"
            )
        };
        let counted = "cp.async.mbarrier.arrive.noincSPACE.b64 [BAR];";
        let beside = "cp.async.mbarrier.arriveSPACE.b64 [BAR];\nmbarrier.arrive.shared.b64 _, [bar];";
        for arrive in [counted, beside] {
            let row = one(&body(arrive), 0x0706_0504_0302_0100).input(input.clone());
            rows.push(match arrive == counted {
                true => row.with(".noinc", "", "hang"),
                false => row.without("mbarrier.arrive.shared.b64 _, [bar];", "hang"),
            });
        }
    }
    rows.push(
        one(
            "cp.async.ca.shared.global [smem], [%d7], 8;\ncp.async.wait_all;\nld.shared.b64 %d0, [smem];",
            0x0706_0504_0302_0100,
        )
        .input(input)
        .without("cp.async.wait_all;\n", "race-shared"),
    );
    rows
}

#[test]
fn values() {
    check(&rows());
}
