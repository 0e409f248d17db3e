//! Integer arithmetic, logic and shifts.

use crate::row::{Row, check, one, op, same};

const M1: u64 = u64::MAX;

pub fn rows() -> Vec<Row> {
    let mut rows = sums();
    rows.extend(products());
    rows.extend(quotients());
    rows.extend(extremes());
    rows.extend(bits());
    rows.push(bytes_without_a_value());
    rows
}

/// A result is defined if all bytes are that it is made of; `%r40` never gets a value.
fn bytes_without_a_value() -> Row {
    let last = "prmt.b32 %r0, %r2, %r1, 0x7610;";
    let body = format!("mov.u32 %r1, 0x44332211;\nprmt.b32 %r2, %r1, %r40, 0x5410;\n{last}");
    let one = one(&body, 0x4433_2211);
    [
        "prmt.b32 %r0, %r2, %r1, 0x7620;",
        "prmt.b32 %r0, %r2, %r1, 0xa610;",
        "prmt.b32 %r0, %r2, %r1, %r40;",
        "add.u32 %r2, %r2, 0; prmt.b32 %r0, %r2, %r1, 0x7610;",
        "add.u32 %r0, %r2, 0;",
    ]
    .into_iter()
    .fold(one, |row, instead| row.with(last, instead, "undefined-value-stored"))
}

fn sums() -> Vec<Row> {
    vec![
        // 0x7fff + 2 wraps in 16 bits, whatever the sign.
        same("add.s16", 'h', &[0x7fff, 2], 0x8001),
        same("add.u16", 'h', &[0xffff, 2], 1),
        same("add.s32", 'r', &[0x7fff_ffff, 1], 0x8000_0000),
        same("add.u32", 'r', &[0xffff_ffff, 3], 2),
        same("add.s64", 'd', &[0xffff_ffff, 1], 0x1_0000_0000),
        same("add.u64", 'd', &[M1, 5], 4),
        same("sub.s16", 'h', &[0x8000, 1], 0x7fff),
        same("sub.u16", 'h', &[1, 2], 0xffff),
        same("sub.s32", 'r', &[3, 5], 0xffff_fffe),
        same("sub.u32", 'r', &[0, 1], 0xffff_ffff),
        same("sub.s64", 'd', &[0x1_0000_0000, 1], 0xffff_ffff),
        same("sub.u64", 'd', &[0, 1], M1),
        // Clamped to −2^31 … 2^31 − 1.
        same("add.sat.s32", 'r', &[0x7fff_ffff, 1], 0x7fff_ffff),
        same("sub.sat.s32", 'r', &[0x8000_0000, 1], 0x8000_0000),
        // No carry from one half to the other.
        same("add.u16x2", 'r', &[0x0001_ffff, 0x0001_0001], 0x0002_0000),
        same("add.s16x2", 'r', &[0x7fff_ffff, 0x0001_0002], 0x8000_0001),
        same("neg.s16", 'h', &[1], 0xffff),
        same("neg.s32", 'r', &[5], 0xffff_fffb),
        same("neg.s64", 'd', &[1], M1),
        same("abs.s16", 'h', &[0xfffd], 3),
        same("abs.s32", 'r', &[0xffff_fff9], 7),
        same("abs.s64", 'd', &[M1 - 9], 10),
    ]
}

fn products() -> Vec<Row> {
    let b16 = |op_: &str, want| same(op_, 'h', &[0xfffe, 0x0103], want);
    let mut rows = vec![
        // 0xfffe · 0x0103 is 65534 · 259 = 0x102_fdfa, or −2 · 259 = −518 = 0xffff_fdfa.
        b16("mul.lo.u16", 0xfdfa),
        b16("mul.lo.s16", 0xfdfa),
        b16("mul.hi.u16", 0x0102),
        b16("mul.hi.s16", 0xffff),
        op("mul.wide.u16", 'r', &[('h', 0xfffe), ('h', 0x103)], 0x0102_fdfa),
        op("mul.wide.s16", 'r', &[('h', 0xfffe), ('h', 0x103)], 0xffff_fdfa),
        same("mul.lo.u32", 'r', &[0x1_0001, 0x1_0001], 0x0002_0001),
        same("mul.lo.s32", 'r', &[0xffff_ffff, 7], 0xffff_fff9),
        same("mul.hi.u32", 'r', &[0xffff_ffff, 0xffff_ffff], 0xffff_fffe),
        same("mul.hi.s32", 'r', &[0xffff_fffe, 3], 0xffff_ffff),
        op("mul.wide.u32", 'd', &[('r', 0xffff_ffff), ('r', 2)], 0x1_ffff_fffe),
        op("mul.wide.s32", 'd', &[('r', 0xffff_ffff), ('r', 2)], M1 - 1),
        same("mul.lo.u64", 'd', &[1 << 63, 3], 1 << 63),
        same("mul.lo.s64", 'd', &[M1, 9], M1 - 8),
        same("mul.hi.u64", 'd', &[M1, 2], 1),
        same("mul.hi.s64", 'd', &[M1, 2], M1),
    ];
    // The same products and an addend.
    rows.extend([
        same("mad.lo.u16", 'h', &[0xfffe, 0x103, 8], 0xfe02),
        same("mad.lo.s16", 'h', &[0xfffe, 0x103, 0x206], 0),
        same("mad.hi.u16", 'h', &[0xfffe, 0x103, 0xffff], 0x0101),
        same("mad.hi.s16", 'h', &[0xfffe, 0x103, 2], 1),
        op("mad.wide.u16", 'r', &[('h', 0xfffe), ('h', 0x103), ('r', 6)], 0x0102_fe00),
        op("mad.wide.s16", 'r', &[('h', 0xfffe), ('h', 0x103), ('r', 518)], 0),
        same("mad.lo.u32", 'r', &[0x1_0001, 0x1_0001, 5], 0x0002_0006),
        same("mad.lo.s32", 'r', &[0xffff_ffff, 7, 8], 1),
        same("mad.hi.u32", 'r', &[0x8000_0000, 4, 5], 7),
        same("mad.hi.s32", 'r', &[0xffff_fffe, 3, 5], 4),
        // 2^30 · 8 has 2 in its high half: 0x7fff_ffff + 2 is clamped.
        same("mad.hi.sat.s32", 'r', &[0x4000_0000, 8, 0x7fff_ffff], 0x7fff_ffff),
        op("mad.wide.u32", 'd', &[('r', 0xffff_ffff), ('r', 2), ('d', 2)], 0x2_0000_0000),
        op("mad.wide.s32", 'd', &[('r', 0xffff_ffff), ('r', 2), ('d', 3)], 1),
        same("mad.lo.u64", 'd', &[1 << 63, 3, 4], (1 << 63) + 4),
        same("mad.lo.s64", 'd', &[M1, 9, 9], 0),
        same("mad.hi.u64", 'd', &[M1, 2, 6], 7),
        same("mad.hi.s64", 'd', &[M1, 2, 6], 5),
    ]);
    rows
}

fn quotients() -> Vec<Row> {
    vec![
        // −7 / 2 = −3, and −1 is left; 0xfff9 is 65529.
        same("div.s16", 'h', &[0xfff9, 2], 0xfffd),
        same("rem.s16", 'h', &[0xfff9, 2], 0xffff),
        same("div.u16", 'h', &[0xfff9, 2], 0x7ffc),
        same("rem.u16", 'h', &[0xfff9, 2], 1),
        same("div.s32", 'r', &[0xffff_fff9, 2], 0xffff_fffd),
        same("rem.s32", 'r', &[0xffff_fff9, 2], 0xffff_ffff),
        same("div.u32", 'r', &[0xffff_fff9, 16], 0x0fff_ffff),
        same("rem.u32", 'r', &[0xffff_fff9, 16], 9),
        same("div.s64", 'd', &[M1 - 6, 2], M1 - 2),
        same("rem.s64", 'd', &[M1 - 6, 2], M1),
        same("div.u64", 'd', &[M1, 0x1_0000_0000], 0xffff_ffff),
        same("rem.u64", 'd', &[M1, 0x1_0000_0000], 0xffff_ffff),
    ]
}

fn extremes() -> Vec<Row> {
    let mut rows = Vec::new();
    // −3 and 2: unsigned, −3 is the greater.
    for (class, minus) in [('h', 0xfffd), ('r', 0xffff_fffd), ('d', M1 - 2)] {
        let bits = match class {
            'h' => 16,
            'r' => 32,
            _ => 64,
        };
        rows.push(same(&format!("min.s{bits}"), class, &[minus, 2], minus));
        rows.push(same(&format!("max.s{bits}"), class, &[minus, 2], 2));
        rows.push(same(&format!("min.u{bits}"), class, &[minus, 2], 2));
        rows.push(same(&format!("max.u{bits}"), class, &[minus, 2], minus));
    }
    rows.extend([
        // (−3, 1) and (2, −1), high half first.
        same("min.s16x2", 'r', &[0xfffd_0001, 0x0002_ffff], 0xfffd_ffff),
        same("max.s16x2", 'r', &[0xfffd_0001, 0x0002_ffff], 0x0002_0001),
        same("min.u16x2", 'r', &[0xfffd_0001, 0x0002_ffff], 0x0002_0001),
        same("max.u16x2", 'r', &[0xfffd_0001, 0x0002_ffff], 0xfffd_ffff),
        // What is negative becomes 0.
        same("min.relu.s16x2", 'r', &[0xfffd_0005, 0x0002_0004], 4),
        same("max.relu.s16x2", 'r', &[0xfffd_0005, 0xfffe_0004], 5),
        same("min.relu.s32", 'r', &[0xffff_fffd, 2], 0),
        same("max.relu.s32", 'r', &[0xffff_fffd, 2], 2),
    ]);
    rows
}

fn bits() -> Vec<Row> {
    let mut rows = Vec::new();
    for (class, ty) in [('h', "b16"), ('r', "b32"), ('d', "b64")] {
        rows.push(same(&format!("and.{ty}"), class, &[0b1100, 0b1010], 0b1000));
        rows.push(same(&format!("or.{ty}"), class, &[0b1100, 0b1010], 0b1110));
        rows.push(same(&format!("xor.{ty}"), class, &[0b1100, 0b1010], 0b0110));
    }
    rows.extend([
        same("not.b16", 'h', &[0x00f0], 0xff0f),
        same("not.b32", 'r', &[0x00f0], 0xffff_ff0f),
        same("not.b64", 'd', &[0], M1),
        // True and false.
        same("and.pred", 'p', &[1, 0], 0),
        same("or.pred", 'p', &[1, 0], 1),
        same("xor.pred", 'p', &[1, 1], 0),
        same("not.pred", 'p', &[0], 1),
        // Amounts beyond the width are clamped to it.
        op("shl.b16", 'h', &[('h', 0x8001), ('r', 1)], 2),
        op("shl.b32", 'r', &[('r', 1), ('r', 31)], 0x8000_0000),
        op("shl.b32", 'r', &[('r', 1), ('r', 32)], 0),
        op("shl.b64", 'd', &[('d', 1), ('r', 40)], 1 << 40),
        op("shr.b16", 'h', &[('h', 0x8000), ('r', 15)], 1),
        op("shr.u16", 'h', &[('h', 0x8000), ('r', 4)], 0x0800),
        op("shr.s16", 'h', &[('h', 0x8000), ('r', 4)], 0xf800),
        op("shr.b32", 'r', &[('r', 0x8000_0000), ('r', 31)], 1),
        op("shr.u32", 'r', &[('r', 0x8000_0000), ('r', 40)], 0),
        op("shr.s32", 'r', &[('r', 0x8000_0000), ('r', 40)], 0xffff_ffff),
        op("shr.b64", 'd', &[('d', 1 << 40), ('r', 40)], 1),
        op("shr.u64", 'd', &[('d', M1), ('r', 63)], 1),
        op("shr.s64", 'd', &[('d', 1 << 63), ('r', 63)], M1),
        // b:a is 0x3_80000001: what a pushes out comes into b, and the other way round.
        same("shf.l.wrap.b32", 'r', &[0x8000_0001, 3, 4], 0x38),
        same("shf.l.clamp.b32", 'r', &[0x8000_0001, 3, 40], 0x8000_0001),
        same("shf.r.wrap.b32", 'r', &[0x8000_0001, 3, 36], 0x3800_0000),
        same("shf.r.clamp.b32", 'r', &[0x8000_0001, 3, 40], 3),
        same("bfe.u32", 'r', &[0x1234_5678, 4, 8], 0x67),
        same("bfe.s32", 'r', &[0x80, 4, 4], 0xffff_fff8),
        // The low bits of the first over those of the second; what does not fit into the register is lost.
        op("bfi.b32", 'r', &[('r', 0xabcd), ('r', 0x1111_1111), ('r', 8), ('r', 8)], 0x1111_cd11),
        op("bfi.b32", 'r', &[('r', 0xf), ('r', 0), ('r', 30), ('r', 4)], 0xc000_0000),
        op("bfi.b64", 'd', &[('d', 0xabcd), ('d', 0), ('r', 56), ('r', 16)], 0xcd << 56),
        op("bfi.b64", 'd', &[('d', 7), ('d', 9), ('r', 0), ('r', 64)], 7),
        op("bfe.u64", 'd', &[('d', 0x1234_5678_9abc_def0), ('r', 36), ('r', 12)], 0x567),
        op("bfe.s64", 'd', &[('d', 0x1234_5678_9abc_def0), ('r', 4), ('r', 4)], M1),
        // Bytes of b:a, lowest selector first; a selector with its top bit set copies the sign of the byte.
        same("prmt.b32", 'r', &[0x3322_1100, 0x7766_5544, 0x7162], 0x7711_6622),
        same("prmt.b32", 'r', &[0x3322_1180, 0x7766_5544, 0x8888], 0xffff_ffff),
        same("prmt.b32.f4e", 'r', &[0x3322_1100, 0x7766_5544, 1], 0x4433_2211),
        same("prmt.b32.b4e", 'r', &[0x3322_1100, 0x7766_5544, 1], 0x6677_0011),
        same("prmt.b32.rc8", 'r', &[0x3322_1100, 0x7766_5544, 2], 0x2222_2222),
        same("prmt.b32.ecl", 'r', &[0x3322_1100, 0x7766_5544, 2], 0x3322_2222),
        same("prmt.b32.ecr", 'r', &[0x3322_1100, 0x7766_5544, 2], 0x2222_1100),
        same("prmt.b32.rc16", 'r', &[0x3322_1100, 0x7766_5544, 1], 0x3322_3322),
        same("popc.b32", 'r', &[0xf00f], 8),
        op("popc.b64", 'r', &[('d', M1)], 64),
        same("bfind.u32", 'r', &[0x00ff_0000], 23),
        same("bfind.u32", 'r', &[0], 0xffff_ffff),
        same("bfind.s32", 'r', &[0xffff_fff0], 3), // −16: the highest 0
        same("bfind.s32", 'r', &[0xffff_ffff], 0xffff_ffff),
        same("bfind.shiftamt.u32", 'r', &[0x00ff_0000], 8),
        same("bfind.shiftamt.s32", 'r', &[0x7fff_ffff], 1),
        op("bfind.u64", 'r', &[('d', 1 << 40)], 40),
        op("bfind.s64", 'r', &[('d', 1 << 40)], 40),
        op("bfind.shiftamt.u64", 'r', &[('d', 1 << 40)], 23),
        op("bfind.shiftamt.s64", 'r', &[('d', u64::MAX << 40)], 24),
        same("clz.b32", 'r', &[0x00ff_0000], 8),
        op("clz.b64", 'r', &[('d', 1)], 63),
        same("brev.b32", 'r', &[1], 0x8000_0000),
        same("brev.b64", 'd', &[2], 1 << 62),
    ]);
    // A table is what its function gives for 0xf0, 0xcc and 0xaa (PTX ISA, lop3): 0xea is a & b | c.
    for table in [0xea, 0x96, 0x0f, 0xe8, 0x42] {
        let body = format!("mov.b32 %r1, 0xf0; lop3.b32 %r0, %r1, 0xcc, 0xaa, {table}; and.b32 %r0, %r0, 0xff;");
        rows.push(one(&body, table));
    }
    rows
}

#[test]
fn values() {
    check(&rows());
}
