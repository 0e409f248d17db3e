//! `st.async`: to the own CTA in each form, to another one, and what is found without the wait.

use crate::row::{Row, bare, check, one};

const WAIT: &str = "WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p9, [bar], 0;\n@!%p9 bra WAIT;\n";

pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for weak in ["", ".weak"] {
        for (space, to, bar) in
            [("", "[%d14]", "[%d15]"), (".shared", "[%r80]", "[%r81]"), (".shared::cluster", "[%r80]", "[%r81]")]
        {
            for ty in ["b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"] {
                let wide = ty.ends_with("64");
                for lanes in [1u32, 2, 4].into_iter().filter(|&n| n < 4 || !wide) {
                    rows.push(form(weak, (space, to, bar), ty, lanes));
                }
            }
        }
    }
    rows.push(to_another());
    rows
}

/// The elements are 1, 2, 3, 4; the last is read.
fn form(weak: &str, (space, to, bar): (&str, &str, &str), ty: &str, lanes: u32) -> Row {
    let (class, bits, bytes) = match ty {
        "f32" => ('f', "b32", 4),
        "f64" => ('e', "b64", 8),
        _ if ty.ends_with("64") => ('d', "b64", 8),
        _ => ('r', "b32", 4),
    };
    let mut set = String::new();
    for n in 1..=lanes {
        set += &match class {
            'f' => format!("mov.b32 %f{n}, 0f{n:08X};\n"),
            'e' => format!("mov.b64 %e{n}, 0d{n:016X};\n"),
            _ => format!("mov.{bits} %{class}{n}, {n};\n"),
        };
    }
    let list: Vec<String> = (1..=lanes).map(|n| format!("%{class}{n}")).collect();
    let (vector, value) = if lanes == 1 {
        (String::new(), list[0].clone())
    } else {
        (format!(".v{lanes}"), format!("{{{}}}", list.join(", ")))
    };
    let last = (lanes - 1) * bytes;
    let get = if bytes == 8 {
        format!("ld.shared.b64 %d0, [smem+{last}];")
    } else {
        format!("ld.shared.b32 %r0, [smem+{last}];")
    };
    let body = format!(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {0};\n\
         st.async{weak}{space}.mbarrier::complete_tx::bytes{vector}.{ty} {to}, {value}, {bar};\n{WAIT}{get}",
        lanes * bytes
    );
    let begin = "mov.u32 %r80, smem; mov.u32 %r81, bar; mov.u64 %d14, smem; cvta.shared.u64 %d14, %d14; mov.u64 %d15, bar; cvta.shared.u64 %d15, %d15;\n\
                 mbarrier.init.shared::cta.b64 [bar], 1;\n";
    one(&body, lanes.into()).around(&format!("{begin}{set}"), "").without(WAIT, "race-shared")
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
}

#[test]
fn values() {
    check(&rows());
}
