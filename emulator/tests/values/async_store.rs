//! `st.async` and `red.async`: to the own CTA in each form, to another one, and what is found without the wait.

use crate::common::{load, rendered};
use crate::row::{Row, bare, check, one};

const WAIT: &str = "WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p9, [bar], 0;\n@!%p9 bra WAIT;\n";

/// A wait that acquires, and one at the scope of the cluster that does not: the data is there, but nothing orders the load behind it.
const ACQUIRES: &str = "mbarrier.try_wait.parity.shared::cta.b64 %p9";
const RELAXED: &str = "mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 %p9";

pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for weak in ["", ".weak"] {
        for (space, to, bar) in [
            ("", "[%d14]", "[%d15]"),
            (".shared", "[%r80]", "[%r81]"),
            (".shared::cta", "[%r80]", "[%r81]"),
            (".shared::cluster", "[%r80]", "[%r81]"),
        ] {
            for ty in ["b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64", "b128"] {
                let wide = ty.ends_with("64") || ty == "b128";
                for lanes in [1u32, 2, 4].into_iter().filter(|&n| n == 1 || ty != "b128" && (n < 4 || !wide)) {
                    rows.push(form(weak, (space, to, bar), ty, lanes));
                }
            }
        }
    }
    rows.push(to_another());
    rows.extend(reductions());
    rows
}

const fn minus(n: u32) -> u64 {
    n.wrapping_neg() as u64
}

/// What and of which type, old value, operand, new value.
const UPDATES: [(&str, &str, u64, u64, u64); 13] = [
    ("add", "s64", 1 << 40, u64::MAX, (1 << 40) - 1),
    ("add", "u32", 12, 30, 42),
    ("add", "s32", 12, minus(13), minus(1)),
    ("add", "u64", 1 << 40, u64::MAX, (1 << 40) - 1),
    ("min", "u32", minus(1), 3, 3),
    ("max", "u32", minus(1), 3, minus(1)),
    ("min", "s32", minus(1), 3, minus(1)),
    ("max", "s32", minus(1), 3, 3),
    ("inc", "u32", 7, 7, 0),
    ("dec", "u32", 0, 7, 7),
    ("and", "b32", 0b1100, 0b1010, 0b1000),
    ("or", "b32", 0b1100, 0b1010, 0b1110),
    ("xor", "b32", 0b1100, 0b1010, 0b0110),
];

fn reductions() -> Vec<Row> {
    let mut rows = Vec::new();
    for (what, ty, old, operand, new) in UPDATES {
        for (space, to, bar) in [("", "[%d14]", "[%d15]"), (".shared::cluster", "[%r80]", "[%r81]")] {
            let (class, bits, bytes) = if ty.ends_with("64") { ('d', "b64", 8) } else { ('r', "b32", 4) };
            let body = format!(
                "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {bytes};\n\
                 red.async.relaxed.cluster{space}.mbarrier::complete_tx::bytes.{what}.{ty} {to}, %{class}1, {bar};\n{WAIT}\
                 ld.shared.{bits} %{class}0, [smem];"
            );
            let begin = format!("{BEGIN}mov.{bits} %{class}1, {operand:#x};\nst.shared.{bits} [smem], {old};\n");
            rows.push(one(&body, new).around(&begin, "").without(WAIT, "race-shared").with(
                ACQUIRES,
                RELAXED,
                "missing-acquire",
            ));
        }
    }
    // The same by the TMA engine, on 16 bytes.
    rows.extend(bulk_reductions());
    // 32 threads add to one value, at once: they do not race with each other.
    let body = format!(
        "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;\n\
         red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r80], %r98, [%r81];\n{WAIT}\
         ld.shared.b32 %r0, [smem];\ncvt.u64.u32 %d0, %r0;\nst.global.b64 [%d9], %d0;"
    );
    let begin = format!(
        "setp.eq.u32 %p1, %r98, 0;\n@!%p1 bra SET;\n{BEGIN}st.shared.b32 [smem], 0;\nSET:\nbar.warp.sync 0xffffffff;\nmov.u32 %r80, smem; mov.u32 %r81, bar;\n"
    );
    rows.push(bare(32, &body).around(&begin, "").gives(0, &[496; 32]));
    rows
}

/// `cp.reduce.async.bulk` in shared memory: 16 bytes at 64 are combined with those at 0.
fn bulk_reductions() -> Vec<Row> {
    let mut rows = Vec::new();
    // There is none of `.s64`.
    for (what, ty, old, operand, new) in UPDATES.into_iter().filter(|(_, ty, ..)| *ty != "s64") {
        let (class, bits, bytes) = if ty.ends_with("64") { ('d', "b64", 8) } else { ('r', "b32", 4) };
        let fence = "fence.proxy.async.shared::cta;\n";
        let body = format!(
            "{fence}mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;\n\
             cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{what}.{ty} [%r80], [smem+64], 16, [%r81];\n{WAIT}\
             ld.shared.{bits} %{class}0, [smem+{}];",
            16 - bytes
        );
        let fill = |at: u32, value: u64| -> String {
            let element =
                |n| format!("mov.{bits} %{class}1, {value:#x};\nst.shared.{bits} [smem+{}], %{class}1;\n", at + n);
            (0..16).step_by(bytes).map(|n| element(n as u32)).collect()
        };
        let begin = format!("{BEGIN}{}{}", fill(0, old), fill(64, operand));
        rows.push(
            one(&body, new).around(&begin, "").without(WAIT, "race-shared").without(fence, "missing-proxy-fence"),
        );
    }
    rows
}

const BEGIN: &str = "mov.u32 %r80, smem; mov.u32 %r81, bar; mov.u64 %d14, smem; cvta.shared.u64 %d14, %d14; mov.u64 %d15, bar; cvta.shared.u64 %d15, %d15;\n\
                     mbarrier.init.shared::cta.b64 [bar], 1;\n";

/// The elements are 1, 2, 3, 4; the last is read.
fn form(weak: &str, (space, to, bar): (&str, &str, &str), ty: &str, lanes: u32) -> Row {
    let (class, bits, bytes) = match ty {
        "f32" => ('f', "b32", 4),
        "f64" => ('e', "b64", 8),
        "b128" => ('q', "b128", 16),
        _ if ty.ends_with("64") => ('d', "b64", 8),
        _ => ('r', "b32", 4),
    };
    let mut set = String::new();
    for n in 1..=lanes {
        set += &match class {
            'f' => format!("mov.b32 %f{n}, 0f{n:08X};\n"),
            'e' => format!("mov.b64 %e{n}, 0d{n:016X};\n"),
            'q' => format!("mov.b64 %d1, 5; mov.b64 %d2, {n}; mov.b128 %q{n}, {{%d1, %d2}};\n"),
            _ => format!("mov.{bits} %{class}{n}, {n};\n"),
        };
    }
    let list: Vec<String> = (1..=lanes).map(|n| format!("%{class}{n}")).collect();
    let (vector, value) = if lanes == 1 {
        (String::new(), list[0].clone())
    } else {
        (format!(".v{lanes}"), format!("{{{}}}", list.join(", ")))
    };
    // Of 128 bits the upper half is read.
    let last = if bytes == 16 { 8 } else { (lanes - 1) * bytes };
    let get = if bytes >= 8 {
        format!("ld.shared.b64 %d0, [smem+{last}];")
    } else {
        format!("ld.shared.b32 %r0, [smem+{last}];")
    };
    let body = format!(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {0};\n\
         st.async{weak}{space}.mbarrier::complete_tx::bytes{vector}.{ty} {to}, {value}, {bar};\n{WAIT}{get}",
        lanes * bytes
    );
    one(&body, lanes.into()).around(&format!("{BEGIN}{set}"), "").without(WAIT, "race-shared").with(
        ACQUIRES,
        RELAXED,
        "missing-acquire",
    )
}

/// Each thread of CTA 0 stores its number to CTA 1, 8 bytes apart, where they come in any order; 256 bytes are counted.
fn to_another() -> Row {
    let begin = "setp.eq.u32 %p1, %r98, 0; setp.eq.u32 %p2, %r97, 0; and.pred %p3, %p1, %p2; not.pred %p4, %p2; and.pred %p5, %p1, %p4;\n\
                 mov.u32 %r80, smem; mad.lo.u32 %r80, %r98, 8, %r80; mapa.shared::cluster.u32 %r82, %r80, 1; mov.u32 %r81, bar; mapa.shared::cluster.u32 %r83, %r81, 1;\n\
                 @%p1 mbarrier.init.shared::cta.b64 [bar], 1;\n@%p1 fence.mbarrier_init.release.cluster;\n\
                 barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
    let body = format!(
        "@%p5 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;\ncvt.u64.u32 %d1, %r98;\n\
         @%p2 st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%r82], %d1, [%r83];\n@%p2 bra END;\n\
         {WAIT}ld.shared.b64 %d0, [%r80];\nst.global.b64 [%d9], %d0;\nEND:\nbarrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;"
    );
    bare(32, &body)
        .around(begin, "")
        .ctas(2, 2)
        .gives(32, &(0..32).collect::<Vec<u64>>())
        .with("[%r82], %d1, [%r83]", "[%r82], %d1, [%r81]", "copy-barrier")
        .with("[%r82], %d1", "[%r82+4], %d1", "bulk-shared-address")
        .with(ACQUIRES, RELAXED, "missing-acquire")
}

/// What is said of a reduction speaks of it, not of a store.
#[test]
fn a_finding_names_the_reduction() {
    let row = reductions().swap_remove(0);
    for (without, says) in
        [(row.text().replace(WAIT, ""), "a red.async"), (row.text().replace(ACQUIRES, RELAXED), "a red.async")]
    {
        let text = rendered(&row.run(&load(&without), None));
        assert!(text.contains(says) && !text.contains("st.async"), "{text}");
    }
}

#[test]
fn values() {
    check(&rows());
}
