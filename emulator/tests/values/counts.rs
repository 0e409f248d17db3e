//! What changes an mbarrier's counts beside arrivals and copies: `complete_tx`, `arrive_drop`, arrivals without completion, and what
//! `pending_count` reads from their states.

use crate::row::{Row, check, one};

/// How the mbarrier is named: the state space, and its address.
const PLACES: &[(&str, &str)] =
    &[("", "[%d14]"), (".shared", "[bar]"), (".shared::cta", "[bar]"), (".shared::cluster", "[%r80]")];
const ORDERS: &[&str] = &["", ".release.cta", ".release.cluster", ".relaxed.cta", ".relaxed.cluster"];

/// Whether the phase of this parity is complete, as a bit of `%r0`.
fn ask(parity: u32, bit: u32) -> String {
    format!(
        "mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], {parity};\nselp.b32 %r1, {}, 0, %p1;\nor.b32 %r0, %r0, %r1;\n",
        1 << bit
    )
}

fn row(count: u32, body: &str, expected: u64) -> Row {
    let begin = format!(
        "mov.u64 %d14, bar; cvta.shared.u64 %d14, %d14; mov.u32 %r80, bar; mov.u32 %r0, 0;\nmbarrier.init.shared::cta.b64 [bar], {count};\n"
    );
    one(body, expected).around(&begin, "")
}

pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    let arrive = "mbarrier.arrive.shared::cta.b64 _, [bar];\n";
    for &(space, at) in PLACES {
        for order in ["", ".relaxed.cta", ".relaxed.cluster"] {
            // The count of bytes is negative, then zero.
            let complete = format!("mbarrier.complete_tx{order}{space}.b64 {at}, 64;\n");
            let expect = "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 64;\n";
            rows.push(row(1, &format!("{complete}{arrive}{}{expect}{}", ask(0, 0), ask(0, 1)), 0b10));
        }
        for order in ORDERS {
            // Of three arrivals one drops out: then two complete a phase.
            let drop = format!("mbarrier.arrive_drop{order}{space}.b64 _, {at};\n");
            let body = format!(
                "{drop}mbarrier.arrive.shared::cta.b64 _, [bar], 2;\n{}{arrive}{}{arrive}{}",
                ask(0, 0),
                ask(1, 1),
                ask(1, 2)
            );
            rows.push(row(3, &body, 0b101));
            // With bytes: they hold the phase up, and one arrival completes the next one.
            let drop = format!("mbarrier.arrive_drop.expect_tx{order}{space}.b64 _, {at}, 16;\n");
            let complete = "mbarrier.complete_tx.shared::cta.b64 [bar], 16;\n";
            let body = format!("{drop}{arrive}{}{complete}{}{arrive}{}", ask(0, 0), ask(0, 1), ask(1, 2));
            rows.push(row(2, &body, 0b110));
        }
    }
    // Two drop out at once, and the state is that of the phase.
    rows.push(row(
        3,
        &format!(
            "mbarrier.arrive_drop.shared::cta.b64 %d1, [bar], 2;\n{arrive}mbarrier.test_wait.shared::cta.b64 %p2, [bar], %d1;\nselp.b32 %r0, 1, 0, %p2;\n{arrive}{}",
            ask(1, 1)
        ),
        0b11,
    ));
    // All have dropped out: nothing completes the phase behind.
    rows.push(row(1, &format!("mbarrier.arrive_drop.shared::cta.b64 _, [bar];\n{}{}", ask(0, 0), ask(1, 1)), 0b01));
    for (space, at) in &PLACES[..3] {
        for order in ["", ".release.cta"] {
            // Of five: five are pending before the first, four before the second, two before the third.
            let without =
                |n: u32, count: u32| format!("mbarrier.arrive.noComplete{order}{space}.b64 %d{n}, {at}, {count};\n");
            let read = "mbarrier.pending_count.b64 %r1, %d1;\nmbarrier.pending_count.b64 %r2, %d2;\nmbarrier.pending_count.b64 %r3, %d3;\n\
                        shl.b32 %r2, %r2, 8; shl.b32 %r3, %r3, 16; or.b32 %r0, %r1, %r2; or.b32 %r0, %r0, %r3;\n";
            let last = without(3, 1);
            rows.push(row(5, &format!("{}{}{last}{read}", without(1, 1), without(2, 2)), 0x2_0405).with(
                &last,
                &without(3, 2),
                "mbarrier-overflow",
            ));
            // It drops out without completing; then four complete the phase, and the next one.
            let drop = format!("mbarrier.arrive_drop.noComplete{order}{space}.b64 %d1, {at}, 1;\n");
            let four = "mbarrier.arrive.shared::cta.b64 _, [bar], 4;\n";
            rows.push(row(5, &format!("{drop}{}{four}{}{four}{}", ask(0, 0), ask(0, 1), ask(1, 2)), 0b110));
        }
    }
    rows.push(row(1, &format!("mbarrier.complete_tx.shared::cta.b64 [bar], 16;\n{}", ask(0, 0)), 0).with(
        "[bar], 16",
        "[bar], 0x200000",
        "mbarrier-bytes",
    ));
    rows
}

#[test]
fn values() {
    check(&rows());
}
