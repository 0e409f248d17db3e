//! Branches, calls, ends.

use crate::common::{launch, load, run, word64, zeroes};
use crate::row::{Row, bare, check, each, one};

pub fn rows() -> Vec<Row> {
    vec![
        one("mov.u32 %r0, 0; setp.eq.u32 %p1, 0, 0; @%p1 bra OVER; mov.u32 %r0, 9;\nOVER:\nadd.u32 %r0, %r0, 1;", 1),
        one("mov.u32 %r0, 0; bra.uni OVER; mov.u32 %r0, 9;\nOVER:\nadd.u32 %r0, %r0, 1;", 1),
        // A loop of as many rounds as the thread has a number.
        each(
            32,
            "mov.u32 %r0, 0; mov.u32 %r1, 0;\nAGAIN:\nsetp.ge.u32 %p1, %r1, %r98; @%p1 bra OUT; add.u32 %r0, %r0, %r1; add.u32 %r1, %r1, 1; bra AGAIN;\nOUT:",
            |n| n * n.wrapping_sub(1) / 2,
        ),
        // Three ways, one after the other, and lanes that meet behind them.
        each(
            32,
            "rem.u32 %r1, %r98, 3; WAYS: .branchtargets A, B, C; brx.idx %r1, WAYS;\nA:\nmov.u32 %r0, 10; bra MEET;\nB:\nmov.u32 %r0, 20; bra MEET;\nC:\nmov.u32 %r0, 30;\nMEET:\nbar.warp.sync -1;",
            |n| 10 * (n % 3 + 1),
        ),
        one(
            "mov.u32 %r1, 1; WAYS: .branchtargets A, B; brx.idx.uni %r1, WAYS;\nA:\nmov.u32 %r0, 10; bra MEET;\nB:\nmov.u32 %r0, 20;\nMEET:",
            20,
        ),
        // Ends: what stands behind is not executed.
        bare(32, "st.global.b32 [%d9], 1; setp.lt.u32 %p1, %r98, 4; @%p1 ret; st.global.b32 [%d9], 2;")
            .gives(3, &[1, 2]),
        bare(32, "st.global.b32 [%d9], 1; setp.lt.u32 %p1, %r98, 4; @%p1 exit; st.global.b32 [%d9], 2;")
            .gives(3, &[1, 2]),
        bare(32, "st.global.b32 [%d9], 1; ret.uni; st.global.b32 [%d9], 2;").gives(31, &[1]),
        one("setp.eq.u32 %p1, 0, 1; mov.u32 %r0, 1; @%p1 trap;", 1).with(
            "setp.eq.u32 %p1, 0, 1",
            "setp.eq.u32 %p1, 1, 1",
            "trap",
        ),
        one("setp.eq.u32 %p1, 0, 1; mov.u32 %r0, 1; @%p1 brkpt;", 1).with(
            "setp.eq.u32 %p1, 0, 1",
            "setp.eq.u32 %p1, 1, 1",
            "trap",
        ),
        // It takes time, and no value comes of it.
        one(
            "mov.u32 %r1, %clock; nanosleep.u32 20; mov.u32 %r2, %clock; setp.gt.u32 %p1, %r2, %r1; selp.b32 %r0, 1, 0, %p1;",
            1,
        ),
        one(
            "mov.u32 %r1, %globaltimer_lo; nanosleep.u32 2000; mov.u64 %d1, %globaltimer; cvt.u32.u64 %r2, %d1; mov.u32 %r3, %globaltimer_hi; \
             setp.gt.u32 %p1, %r2, %r1; selp.b32 %r0, 1, 0, %p1; or.b32 %r0, %r0, %r3;",
            1,
        ),
        // The calls are in the test below, which has its own module.
        bare(1, "call.uni; call; st.param.b32;"),
    ]
}

#[test]
fn values() {
    let rows = rows();
    check(&rows[..rows.len() - 1]);
}

/// A device function, put in place of its two calls, with a branch to its return; recursion is refused.
#[test]
fn device_functions_are_put_in_place_of_their_calls() {
    let text = |recursive: &str| {
        format!(
            ".version 8.7\n.target sm_100a\n.address_size 64\n\
             .func (.param .b32 result) twice(.param .b32 value)\n{{\n.reg .b32 %r<3>;\n.reg .pred %p;\n\
             ld.param.b32 %r1, [value];\nsetp.gt.u32 %p, %r1, 100;\nst.param.b32 [result], %r1;\n@%p ret;\n{recursive}\
             add.u32 %r1, %r1, %r1;\nst.param.b32 [result], %r1;\nret;\n}}\n\
             .visible .entry k(.param .u64 out)\n{{\n.reg .b32 %r<4>;\n.reg .b64 %d<4>;\nmov.u32 %r1, %tid.x;\n\
             ld.param.u64 %d1, [out];\nmul.wide.u32 %d2, %r1, 8;\nadd.s64 %d1, %d1, %d2;\nmul.lo.u32 %r1, %r1, 40;\n\
             {{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call.uni (b), twice, (a); ld.param.b32 %r2, [b]; }}\n\
             {{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; call (b), twice, (a); ld.param.b32 %r2, [b]; }}\n\
             st.global.b32 [%d1], %r2;\nret;\n}}\n"
        )
    };
    let report = run(&load(&text("")), &launch("k", 32, vec![zeroes("out", 256)]), None, 100_000);
    assert!(report.is_clean(), "{:#?}", report.findings);
    for (n, expected) in [(0, 0), (1, 160), (2, 160), (3, 120), (31, 1240)] {
        assert_eq!(word64(&report, n), expected, "thread {n}");
    }
    let errors = emulator::load(&text("call (result), twice, (value);\n")).expect_err("recursion");
    assert!(errors[0].title.contains("recursive"), "{errors:#?}");
}

/// What nvcc makes of `assert`: the function is declared, and CUDA's runtime brings it along.
#[test]
fn an_assertion_says_what_does_not_hold_and_where() {
    let string = |name: &str, text: &str| {
        let bytes: Vec<String> = text.bytes().chain([0]).map(|byte| byte.to_string()).collect();
        format!(".global .align 1 .b8 {name}[{}] = {{{}}};\n", bytes.len(), bytes.join(", "))
    };
    let text = |limit: u32| {
        let strings = [("said", "row < rows"), ("where", "tile.cuh"), ("who", "void store(int)")];
        let strings: String = strings.iter().map(|(name, text)| string(name, text)).collect();
        let addresses: String = [("p0", "said"), ("p1", "where"), ("p3", "who")]
            .iter()
            .map(|(to, name)| format!("mov.b64 %d1, {name};\ncvta.global.u64 %d1, %d1;\nst.param.b64 [{to}], %d1;\n"))
            .collect();
        format!(
            ".version 8.7\n.target sm_100a\n.address_size 64\n\
             .extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);\n{strings}\
             .visible .entry k(.param .u64 out)\n{{\n.reg .pred %p;\n.reg .b32 %r;\n.reg .b64 %d<4>;\n\
             mov.u32 %r, %tid.x;\nsetp.lt.u32 %p, %r, {limit};\n@%p bra FINE;\n\
             {{ .param .b64 p0; .param .b64 p1; .param .b32 p2; .param .b64 p3; .param .b64 p4;\n{addresses}\
             st.param.b32 [p2], 42;\nst.param.b64 [p4], 1;\ncall.uni __assertfail, (p0, p1, p2, p3, p4); }}\n\
             FINE:\nret;\n}}\n"
        )
    };
    let report = run(&load(&text(32)), &launch("k", 32, vec![zeroes("out", 8)]), None, 100_000);
    assert!(report.is_clean(), "{:#?}", report.findings);
    let report = run(&load(&text(5)), &launch("k", 32, vec![zeroes("out", 8)]), None, 100_000);
    let [finding] = report.findings.as_slice() else { panic!("{:#?}", report.findings) };
    assert_eq!(finding.code, "trap");
    assert_eq!(finding.title, "thread (5, 0, 0) of CTA (0, 0, 0): the assertion `row < rows` does not hold");
    assert!(finding.help.contains("tile.cuh:42, in `void store(int)`"), "{}", finding.help);
}
