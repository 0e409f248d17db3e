//! Sums of several registers: `add.cc`, `addc`, `sub.cc`, `subc`, `mad.cc` and `madc`.

use crate::row::{Row, check, one};

pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    // The low words wrap: 0xffffffff + 2 = 1 with a carry, which the high words take. Without a carry they do not.
    for ty in ["u32", "s32"] {
        for (low, high) in [("0xffffffff", 0x1234), ("0xfffffffd", 0x1233)] {
            rows.push(one(&format!("mov.b32 %r1, {low}; add.cc.{ty} %r1, %r1, 2; addc.{ty} %r0, 0x1200, 0x33;"), high));
        }
        // Of three words the middle one passes the carry on: 0xffffffff + 0 + 1.
        rows.push(one(
            &format!("mov.b32 %r1, -1; add.cc.{ty} %r2, %r1, 1; addc.cc.{ty} %r2, %r1, 0; addc.{ty} %r0, %r2, 7;"),
            8,
        ));
        // 1 − 2 borrows, as does 5 − 5 with a borrow.
        rows.push(one(&format!("mov.b32 %r1, 1; sub.cc.{ty} %r1, %r1, 2; subc.{ty} %r0, 9, 3;"), 5));
        rows.push(one(&format!("mov.b32 %r1, 2; sub.cc.{ty} %r1, %r1, 2; subc.{ty} %r0, 9, 3;"), 6));
        rows.push(one(
            &format!("mov.b32 %r1, 1; sub.cc.{ty} %r2, %r1, 2; subc.cc.{ty} %r2, 5, 5; subc.{ty} %r0, %r2, 0;"),
            0xffff_fffe,
        ));
        // One condition code, a carry: `subc` takes the carry of a sum for no borrow, and to `addc` a difference without a borrow has a carry, as on an
        // H200 (assumption `borrow-as-carry`).
        for (low, minus) in [("0xffffffff", 6), ("0xfffffffd", 5)] {
            rows.push(one(&format!("mov.b32 %r1, {low}; add.cc.{ty} %r1, %r1, 2; subc.{ty} %r0, 9, 3;"), minus));
        }
        for (low, plus) in [(1, 12), (2, 13)] {
            rows.push(one(&format!("mov.b32 %r1, {low}; sub.cc.{ty} %r1, %r1, 2; addc.{ty} %r0, 9, 3;"), plus));
        }
        // 3 · 0x60000000 = 0x1_20000000: the low half and 0xf0000000 carry.
        rows.push(one(
            &format!("mov.b32 %r1, 0x60000000; mad.lo.cc.{ty} %r2, %r1, 3, 0xf0000000; madc.hi.{ty} %r0, %r1, 3, 40;"),
            42,
        ));
        rows.push(one(
            &format!(
                "mov.b32 %r1, -1; mad.lo.cc.{ty} %r2, 1, 1, 0; madc.lo.cc.{ty} %r2, %r1, 1, 1; addc.{ty} %r0, 0, 0;"
            ),
            1,
        ));
        // The high half of 2 · 0x80000000 is 1, or, with a sign, −1: with −1 either carries.
        rows.push(one(
            &format!("mov.b32 %r1, 0x80000000; mad.hi.cc.{ty} %r2, %r1, 2, 0xffffffff; addc.{ty} %r0, 0, 0;"),
            1,
        ));
        rows.push(one(
            &format!(
                "mov.b32 %r1, 1; add.cc.{ty} %r2, %r1, -1; madc.hi.cc.{ty} %r2, %r1, %r1, -1; addc.{ty} %r0, 0, 3;"
            ),
            4,
        ));
    }
    for ty in ["u64", "s64"] {
        rows.push(one(&format!("mov.b64 %d1, -1; add.cc.{ty} %d1, %d1, 2; addc.{ty} %d0, 3, 4;"), 8));
        rows.push(one(
            &format!("mov.b64 %d1, -1; add.cc.{ty} %d2, %d1, 1; addc.cc.{ty} %d2, %d1, 0; addc.{ty} %d0, %d2, 7;"),
            8,
        ));
        rows.push(one(&format!("mov.b64 %d1, 1; sub.cc.{ty} %d1, %d1, 2; subc.{ty} %d0, 9, 3;"), 5));
        rows.push(one(
            &format!("mov.b64 %d1, 1; sub.cc.{ty} %d2, %d1, 2; subc.cc.{ty} %d2, 5, 5; subc.{ty} %d0, %d2, 0;"),
            0xffff_ffff_ffff_fffe,
        ));
        rows.push(one(
            &format!(
                "mov.b64 %d1, 0x6000000000000000; mad.lo.cc.{ty} %d2, %d1, 3, 0xf000000000000000; madc.hi.{ty} %d0, %d1, 3, 40;"
            ),
            42,
        ));
        rows.push(one(
            &format!(
                "mov.b64 %d1, -1; mad.lo.cc.{ty} %d2, 1, 1, 0; madc.lo.cc.{ty} %d2, %d1, 1, 1; addc.{ty} %d0, 0, 0;"
            ),
            1,
        ));
        rows.push(one(
            &format!(
                "mov.b64 %d1, 4; mad.hi.cc.{ty} %d2, %d1, 2, -1; madc.hi.cc.{ty} %d2, %d1, 1, 0; addc.{ty} %d0, 5, 0;"
            ),
            5,
        ));
    }
    // A sum of lanes that do not take part leaves the carry as it was; 32 and 64 bits have one carry.
    rows.push(one(
        "setp.eq.u32 %p1, 1, 2; mov.b32 %r1, -1; add.cc.u32 %r2, %r1, 1; @%p1 add.cc.u32 %r2, 1, 1; addc.u64 %d0, 2, 2;",
        5,
    ));
    rows
}

#[test]
fn values() {
    check(&rows());
}
