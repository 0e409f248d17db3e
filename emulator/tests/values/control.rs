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

/// Registers and constants are handed over by their values: to registers of the function, and to `.param` variables, as ptxas 13.5 takes them. What the
/// function does to its own is not seen outside.
#[test]
fn registers_and_constants_are_handed_over() {
    let text = |header: &str, call: &str| {
        format!(
            ".version 9.0\n.target sm_100a\n.address_size 64\n\
             .func (.reg .b32 sum) plus (.reg .b32 a, .reg .b32 b)\n{{\nadd.u32 a, a, b;\nmov.u32 sum, a;\nret;\n}}\n\
             .func (.param .b32 r) times (.param .b16 x, .param .f32 y)\n{{\n.reg .b16 %h;\n.reg .f32 %f<3>;\n\
             ld.param.b16 %h, [x];\nld.param.f32 %f1, [y];\ncvt.rn.f32.u16 %f2, %h;\nmul.f32 %f1, %f1, %f2;\ncvt.rzi.u32.f32 a, %f1;\nst.param.b32 [r], a;\nret;\n}}\n\
             {header}\n.visible .entry k(.param .u64 out)\n{{\n.reg .b32 %r<8>;\n.reg .b16 %h<2>;\n.reg .f32 %f<2>;\n.reg .b64 %d<2>;\n.param .b32 slot;\n\
             ld.param.u64 %d0, [out];\nmov.u32 %r0, 8;\nmov.u16 %h0, 3;\n{call}\nret;\n}}\n"
        )
        .replace(".reg .b16 %h;\n", ".reg .b16 %h;\n.reg .b32 a;\n")
    };
    let calls = "call.uni (%r1), plus, (%r0, 5);\nst.global.v2.b32 [%d0], {%r0, %r1};\n\
                 call (%r1), plus, (%r1, %r1);\ncall (%f0), times, (%h0, 0f40200000);\nmov.b32 %r2, %f0;\nst.global.v2.b32 [%d0+8], {%r1, %r2};\n\
                 call (slot), times, (7, 2.0);\nld.param.b32 %r3, [slot];\ncall (slot), plus, (%r3, 1);";
    // A result goes to a variable where the function has one of the same size: `plus` has a register.
    let errors = emulator::load(&text("", calls)).expect_err("a variable for a register");
    assert!(errors[0].title.contains("handing `slot` to `sum`, which has 4 bytes"), "{errors:#?}");
    let calls = calls.replace("\ncall (slot), plus, (%r3, 1);", "\nst.global.b32 [%d0+16], %r3;");
    let report = run(&load(&text("", &calls)), &launch("k", 1, vec![zeroes("out", 64)]), None, 100_000);
    assert!(report.is_clean(), "{:#?}", report.findings);
    // 8 stays, 8 + 5; 13 + 13, 3 · 2.5; 7 · 2.0.
    let got: Vec<u64> = (0..3).map(|n| word64(&report, n)).collect();
    assert_eq!(got, [8 | 13 << 32, 26 | 7 << 32, 14]);
    for (header, call, says) in [
        (
            ".func f (.reg .pred p) { ret; }",
            "call f, (1);",
            "`p` of `f` is a predicate, or a register of fewer than 32 bits",
        ),
        (".func f (.reg .b64 p) { ret; }", "call f, (%r0);", "handing `%r0` to `p`, which has 8 bytes"),
        (".func f (.param .b8 p[16]) { ret; }", "call f, (%r0);", "handing `%r0` to `p`, which has 16 bytes"),
        ("", "call (5), plus, (%r0, %r0);", "handing the constant 5 to `sum`"),
    ] {
        let errors = emulator::load(&text(header, call)).expect_err(call);
        assert!(errors[0].title.contains(says), "{call}: {errors:#?}");
    }
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
