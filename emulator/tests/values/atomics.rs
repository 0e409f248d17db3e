//! `atom` and `red`: what they compute, what they give back, what they order.

use crate::row::{Row, bare, check, each, one};

pub fn rows() -> Vec<Row> {
    let mut rows = operations();
    rows.extend(places());
    rows.extend(orders());
    rows.extend(wide());
    rows
}

/// 128 bits at once, in each space and with each order and scope: what is given back, and what is there then.
fn wide() -> Vec<Row> {
    let begin = "mov.b64 %d1, 1; mov.b64 %d2, 2; mov.b128 %q1, {%d1, %d2}; mov.b64 %d3, 3; mov.b64 %d4, 4; mov.b128 %q2, {%d3, %d4};\n\
                 mov.b128 %q3, {%d1, %d3}; mov.u32 %r1, smem; mov.u64 %d5, smem; cvta.shared.u64 %d5, %d5;\n";
    let end = "st.global.b128 [%d8], %q0;";
    let mut rows = Vec::new();
    let places =
        [("", "%d5"), (".global", "%d8+64"), (".shared", "%r1"), (".shared::cta", "%r1"), (".shared::cluster", "%r1")];
    for (n, order) in ["", ".relaxed", ".acquire", ".release", ".acq_rel"].into_iter().enumerate() {
        for (m, scope) in ["", ".cta", ".cluster", ".gpu", ".sys"].into_iter().enumerate() {
            let (space, at) = places[(n + m) % places.len()];
            let (put, get) = (
                format!("st{space}.b128 [{at}], %q1;"),
                format!("ld{space}.b128 %q0, [{at}];\nst.global.b128 [%d8+16], %q0;"),
            );
            let mut row = |op: &str, after: &[u64]| {
                let op = format!("atom{order}{scope}{space}.{op}").replace("AT", at);
                let row = bare(1, &format!("{put}\n{op}\n{end}\n{get}")).around(begin, "");
                rows.push(row.gives(0, &[1, 2]).gives(2, after));
            };
            row("exch.b128 %q0, [AT], %q2;", &[3, 4]);
            row("cas.b128 %q0, [AT], %q1, %q2;", &[3, 4]);
            // Half of it is the same.
            row("cas.b128 %q0, [AT], %q3, %q2;", &[1, 2]);
        }
    }
    // An address of 16 bytes, and a first value to compare with. What is given back may be discarded.
    let cas = "st.shared.b128 [smem], %q1;\natom.shared.cas.b128 _, [smem], %q1, %q2;\nld.shared.b128 %q0, [smem];\nst.global.b128 [%d8], %q0;";
    rows.push(
        bare(1, cas)
            .around(begin, "")
            .gives(0, &[3, 4])
            .with("atom.shared.cas.b128 _, [smem]", "atom.shared.cas.b128 _, [smem+8]", "misaligned-address")
            .without("st.shared.b128 [smem], %q1;", "undefined-value-stored"),
    );
    // 64 threads exchange with each other: what they get and what lies there in the end is each of their numbers once, with its other half.
    let set = "setp.eq.u32 %p1, %r98, 0; mov.b64 %d1, 0; mov.b128 %q0, {%d1, %d1};\n@%p1 st.shared.b128 [smem], %q0; @%p1 st.shared.b64 [smem+16], %d1; bar.sync 0;";
    let all = "cvt.u64.u32 %d1, %r98; add.s64 %d1, %d1, 1; shl.b64 %d2, %d1, 32; mov.b128 %q1, {%d1, %d2};\n\
               atom.shared.exch.b128 %q0, [smem], %q1;\nmov.b128 {%d3, %d4}, %q0; shl.b64 %d5, %d3, 32; setp.ne.u64 %p2, %d4, %d5; @%p2 mov.u64 %d3, 0x10000;\n\
               red.shared.add.u64 [smem+16], %d3; bar.sync 0;\nld.shared.b64 %d3, [smem]; ld.shared.b64 %d4, [smem+16]; add.s64 %d3, %d3, %d4; cvt.u32.u64 %r0, %d3;";
    rows.push(each(64, all, |_| 64 * 65 / 2).around(set, ""));
    rows
}

/// Old value, operand, new value. The word is in shared memory; `atom` gives the old one.
fn operations() -> Vec<Row> {
    let minus = |n: u64| 0u64.wrapping_sub(n);
    let low = |n: u64| n & 0xffff_ffff;
    let mut list: Vec<(&str, &str, u64, u64, u64)> = vec![
        ("add", "u32", 12, 30, 42),
        ("add", "s32", 12, low(minus(13)), low(minus(1))),
        ("add", "u64", 1 << 40, minus(1), (1 << 40) - 1),
        ("add", "f32", 0x3f80_0000, 0x4000_0000, 0x4040_0000),
        ("add", "f64", 0x3ff0 << 48, 0x4000 << 48, 0x4008 << 48),
        ("min", "u32", 0xffff_ffff, 3, 3),
        ("max", "u32", 0xffff_ffff, 3, 0xffff_ffff),
        ("min", "s32", 0xffff_ffff, 3, 0xffff_ffff),
        ("max", "s32", 0xffff_ffff, 3, 3),
        ("min", "u64", minus(1), 3, 3),
        ("max", "u64", minus(1), 3, minus(1)),
        ("min", "s64", minus(1), 3, minus(1)),
        ("max", "s64", minus(1), 3, 3),
        // Up to the operand and then from 0; down from the operand.
        ("inc", "u32", 5, 7, 6),
        ("inc", "u32", 7, 7, 0),
        ("dec", "u32", 5, 7, 4),
        ("dec", "u32", 0, 7, 7),
        ("dec", "u32", 9, 7, 7),
    ];
    for ty in ["b32", "b64"] {
        list.extend([
            ("and", ty, 0b1100, 0b1010, 0b1000),
            ("or", ty, 0b1100, 0b1010, 0b1110),
            ("xor", ty, 0b1100, 0b1010, 0b0110),
        ]);
    }
    // 1 and 2 in FP16 and BF16; in a pair, the low half is −1 and 1.
    let halves = [
        ("f16", 0x3c00, 0x4000, 0x4200),
        ("bf16", 0x3f80, 0x4000, 0x4040),
        ("f16x2", 0x3c00_bc00, 0x4000_3c00, 0x4200_0000),
        ("bf16x2", 0x3f80_bf80, 0x4000_3f80, 0x4040_0000),
    ];
    for (ty, a, b, sum) in halves {
        list.push(("add.noftz", ty, a, b, sum));
    }
    let mut rows = Vec::new();
    for (what, ty, old, operand, new) in list {
        let wide = ty.ends_with("64");
        let narrow = matches!(ty, "f16" | "bf16");
        let (class, set) = match ty {
            "f32" => ("f", format!("mov.b32 %f1, 0f{operand:08X};")),
            "f64" => ("e", format!("mov.b64 %e1, 0d{operand:016X};")),
            _ if wide => ("d", format!("mov.b64 %d1, {operand:#x};")),
            _ if narrow => ("h", format!("mov.b16 %h1, {operand:#x};")),
            _ => ("r", format!("mov.b32 %r1, {operand:#x};")),
        };
        let bits = if wide {
            "b64"
        } else if narrow {
            "b16"
        } else {
            "b32"
        };
        let get = format!("ld.shared.{bits} %{0}, [smem];", if wide { "d0" } else { "r0" });
        let put = format!("{set}\nst.shared.{bits} [smem], {old};\n");
        rows.push(one(&format!("{put}red.shared.{what}.{ty} [smem], %{class}1;\n{get}"), new));
        let give = match class {
            "f" => "mov.b32 %r0, %f0;",
            "e" => "mov.b64 %d0, %e0;",
            "h" => "cvt.u32.u16 %r0, %h0;",
            _ => "",
        };
        rows.push(one(&format!("{put}atom.shared.{what}.{ty} %{class}0, [smem], %{class}1;\n{give}"), old));
        rows.push(one(&format!("{put}atom.shared.{what}.{ty} %{class}0, [smem], %{class}1;\n{get}"), new));
    }
    for (ty, class) in [("b16", 'h'), ("b32", 'r'), ("b64", 'd')] {
        let end = if class == 'h' { "cvt.u32.u16 %r0, %h0;" } else { "" };
        let set = format!(
            "mov.{ty} %{class}1, 12; mov.{ty} %{class}2, 30; mov.{ty} %{class}3, 13;\nst.shared.{ty} [smem], %{class}1;\n"
        );
        let get = format!("ld.shared.{ty} %{class}0, [smem];\n{end}");
        rows.push(one(&format!("{set}atom.shared.cas.{ty} %{class}4, [smem], %{class}1, %{class}2;\n{get}"), 30));
        rows.push(one(&format!("{set}atom.shared.cas.{ty} %{class}4, [smem], %{class}3, %{class}2;\n{get}"), 12));
        if class != 'h' {
            rows.push(one(&format!("{set}atom.shared.exch.{ty} %{class}0, [smem], %{class}2;"), 12));
            rows.push(one(&format!("{set}atom.shared.exch.{ty} %{class}4, [smem], %{class}2;\n{get}"), 30));
        }
    }
    rows
}

/// Each order, scope and space of each family of operations: 3 in memory, and 4.
fn places() -> Vec<Row> {
    let mut rows = Vec::new();
    let families = [("add.u32", 7), ("add.noftz.f16x2", 0x4200), ("max.u32", 4), ("xor.b32", 7), ("inc.u32", 4)];
    for order in ["", ".relaxed", ".acquire", ".release", ".acq_rel"] {
        for scope in ["", ".cta", ".cluster", ".gpu", ".sys"] {
            for (space, set, address) in [
                ("", "mov.u64 %d1, counter;", "%d1"),
                (".global", "mov.u64 %d1, counter;", "%d1"),
                (".shared", "mov.u32 %r1, smem;", "%r1"),
                (".shared::cta", "mov.u32 %r1, smem;", "%r1"),
                (".shared::cluster", "mov.u32 %r1, smem;", "%r1"),
            ] {
                // All of them once, and not every combination of the three.
                let at = order.len() + scope.len() + space.len();
                if !(order.is_empty() || scope == ".gpu" || at.is_multiple_of(5)) {
                    continue;
                }
                for (what, sum) in families {
                    let (old, operand) = if what.contains("f16") { (0x3c00, 0x4000) } else { (3, 4) };
                    let red = if order == ".acquire" || order == ".acq_rel" { ".release" } else { order };
                    let body = format!(
                        "{set} mov.b32 %r5, {operand}; st{space}.b32 [{address}], {old};\natom{order}{scope}{space}.{what} %r2, [{address}], %r5;\n\
                         ld{space}.b32 %r0, [{address}];\nst{space}.b32 [{address}], {old};\n\
                         red{red}{scope}{space}.{what} [{address}], %r5;\nld{space}.b32 %r3, [{address}];\n\
                         setp.ne.u32 %p1, %r0, %r3; @%p1 mov.u32 %r0, 0;"
                    );
                    rows.push(one(&body, sum));
                }
                let body = format!(
                    "{set} st{space}.b32 [{address}], 3;\natom{order}{scope}{space}.cas.b32 %r2, [{address}], 3, 9;\n\
                     atom{order}{scope}{space}.exch.b32 %r0, [{address}], 4;"
                );
                rows.push(one(&body, 9));
            }
        }
    }
    rows
}

/// The last of four CTAs adds up what all have stored; `count` counts, `see` stands before the loads.
fn split_k(count: &str, see: &str) -> String {
    format!(
        "mul.wide.u32 %d1, %r96, 8;\nadd.s64 %d1, %d1, %d8;\nadd.u32 %r2, %r96, 1;\nst.global.b32 [%d1+64], %r2;\n{count}\n\
         setp.ne.u32 %p0, %r3, 3;\n@%p0 ret;\n{see}\nld.global.b32 %r4, [%d8+64];\nld.global.b32 %r5, [%d8+72];\n\
         ld.global.b32 %r6, [%d8+80];\nld.global.b32 %r7, [%d8+88];\nadd.u32 %r4, %r4, %r5;\nadd.u32 %r4, %r4, %r6;\n\
         add.u32 %r4, %r4, %r7;\nst.global.b32 [%d8], %r4;"
    )
}

fn orders() -> Vec<Row> {
    let four = |count: &str, see: &str| bare(1, &split_k(count, see)).ctas(4, 1).gives(0, &[1 + 2 + 3 + 4]);
    vec![
        // 96 threads of three CTAs add to one word.
        bare(32, "red.relaxed.gpu.global.add.s32 [%d8], 1;").ctas(3, 1).gives(0, &[96]),
        // Each thread gets another old value: their sum is 0 + 1 + … + 63.
        each(
            64,
            "atom.global.add.u32 %r1, [counter], 1; atom.shared.exch.b32 %r2, [smem], 0; bar.sync 0; atom.shared.add.u32 %r3, [smem], %r1; bar.sync 0; ld.shared.b32 %r0, [smem];",
            |_| 2016,
        ),
        four("atom.acq_rel.gpu.global.add.u32 %r3, [counter], 1;", "")
            .with("atom.acq_rel.gpu", "atom.relaxed.gpu", "race-global")
            .with("atom.acq_rel.gpu", "atom.release.gpu", "race-global")
            .with("atom.acq_rel.gpu", "atom.acq_rel.cta", "race-global"),
        four("fence.acq_rel.gpu;\natom.relaxed.gpu.global.add.u32 %r3, [counter], 1;", "fence.acq_rel.gpu;").with(
            "fence.acq_rel.gpu;\natom",
            "atom",
            "race-global",
        ),
    ]
}

#[test]
fn values() {
    check(&rows());
}
