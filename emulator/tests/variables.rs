//! Variables of the module: which there are, and what initialisers put into them. ptxas 13.5 was asked about each.

mod common;

use common::{launch, load, run, word32, word64, zeroes};

fn kernel(declarations: &str, body: &str) -> String {
    format!(
        ".version 9.0\n.target sm_100a\n.address_size 64\n{declarations}\n.visible .entry k(.param .u64 out)\n{{\n\
         .reg .b16 %h<2>;\n.reg .b32 %r<8>;\n.reg .b64 %d<4>;\nld.param.u64 %d0, [out];\n{body}\nret;\n}}\n"
    )
}

/// Constants of each kind: declaration, an access that leaves a word, and the word.
#[test]
fn constants_begin_with_their_initialisers() {
    for (declaration, access, wanted) in [
        (".const .align 4 .b32 c[4] = {1, 2, 3, 4};", "ld.const.b32 %r0, [c+4];", 2),
        (".const .align 4 .f32 c = 0f3F800000;", "ld.const.b32 %r0, [c];", 0x3f80_0000),
        (".const .align 4 .f32 c[2] = {2, 0.5};", "ld.const.b32 %r0, [c+4];", 0x3f00_0000),
        (".const .align 4 .b32 c[2][2] = {{1, 2}, {3, 4}};", "ld.const.b32 %r0, [c+12];", 4),
        (".const .align 4 .b32 c[2][2] = {{1}, {3, 4}};", "ld.const.b32 %r0, [c+4];", 0),
        // As many elements as there are values.
        (".const .align 4 .b32 c[] = {1, 2, 3};", "ld.const.b32 %r0, [c+8];", 3),
        (".const .align 4 .b32 c[][2] = {{1, 2}, {3, 4}, {5, 6}};", "ld.const.b32 %r0, [c+20];", 6),
        (".const .align 2 .s16 c[3] = {-1, 2+3, 1<<4};", "ld.const.b16 %h0, [c+4]; cvt.u32.u16 %r0, %h0;", 16),
        (".const .align 16 .v4 .b32 c = {1, 2, 3, 4};", "ld.const.v4.b32 {%r1, %r2, %r0, %r3}, [c];", 3),
        (".const .align 8 .f64 c[2] = {1.5, 0d4008000000000000};", "ld.const.v2.b32 {%r1, %r0}, [c+8];", 0x4008_0000),
        (".const .align 4 .b8 c[8] = {0x12, 0b101, -1, 6, 5};", "ld.const.b32 %r0, [c];", 0x06ff_0512),
        // The rest is zero.
        (".const .align 4 .b32 c[4] = {1};", "ld.const.b32 %r0, [c+12];", 0),
    ] {
        let text = kernel(declaration, &format!("{access}\nst.global.b32 [%d0], %r0;"));
        let report = run(&load(&text), &launch("k", 1, vec![zeroes("out", 8)]), None, 1000);
        assert!(report.is_clean(), "{declaration}: {:#?}", report.findings);
        assert_eq!(word32(&report, 0), wanted, "{declaration}");
    }
}

/// The address of a variable, as it is and 4 further on: both lead to it.
#[test]
fn constants_hold_addresses() {
    let declarations = ".global .align 8 .b32 g[2] = {7, 9};\n.const .align 8 .u64 c[2] = {g, generic(g)+4};";
    let body = "ld.const.v2.b64 {%d1, %d2}, [c];\nld.global.b32 %r0, [%d1]; ld.b32 %r1, [%d2];\nst.global.v2.b32 [%d0], {%r0, %r1};";
    let report = run(&load(&kernel(declarations, body)), &launch("k", 1, vec![zeroes("out", 8)]), None, 1000);
    assert!(report.is_clean(), "{:#?}", report.findings);
    assert_eq!(word64(&report, 0), 9 << 32 | 7);
}

/// Registers, local memory and parameters belong to a function.
#[test]
fn the_module_has_no_registers_local_memory_or_parameters() {
    for declaration in [".reg .b32 %g;", ".local .align 4 .b32 g[4];", ".param .b32 g;", ".param .align 8 .b8 g[8];"] {
        let errors = emulator::load(&kernel(declaration, "")).expect_err(declaration);
        let d = &errors[0];
        assert_eq!((d.code, d.labels[0].place.line), ("ptx-semantics", 4), "{declaration}: {d:#?}");
        assert!(d.title.contains("variable of the module"), "{declaration}: {d:#?}");
    }
}

/// Constants are written by nobody.
#[test]
fn a_store_to_a_constant_is_refused() {
    let text = kernel(".const .align 4 .b32 c = 1;", "mov.u64 %d1, c;\ncvta.const.u64 %d1, %d1;\nst.b32 [%d1], 2;");
    let report = run(&load(&text), &launch("k", 1, vec![zeroes("out", 8)]), None, 1000);
    assert_eq!(common::codes(&report), ["out-of-bounds"], "{:#?}", report.findings);
}

/// A table of functions, as virtual functions of C++ have one: that is refused, and nothing else is said of the variable or its uses.
#[test]
fn a_table_of_functions_is_refused_once() {
    let text = kernel(
        ".func f() { ret; }\n.global .align 8 .u64 t[2] = {0, f};",
        "mov.u64 %d1, t;\nld.global.b64 %d2, [%d1+8];",
    );
    let errors = emulator::load(&text).expect_err("functions have no address");
    let [error] = &errors[..] else { panic!("{errors:#?}") };
    assert_eq!(error.code, "not-modelled");
    assert!(error.title.contains("with the address of the function `f`"), "{error:#?}");
    assert!(error.help.contains("by its name"), "{error:#?}");
}

/// A parameter's bytes are read through its generic address, and as global memory, in which the window of parameters lies; nobody writes them.
#[test]
fn parameters_are_read_as_global_memory_and_never_written() {
    const ADDRESS: &str = "mov.b64 %d1, out;\ncvta.param.u64 %d1, %d1;\ncvta.to.global.u64 %d2, %d1;";
    for load in ["ld.b64 %d3, [%d1];", "ld.global.b64 %d3, [%d2];", "ld.global.nc.b64 %d3, [%d2];"] {
        // The parameter is the buffer's address: what is stored to it, and loaded from there, comes back.
        let body = format!("{ADDRESS}\n{load}\nst.global.b32 [%d3], 77;");
        let report = run(&load_kernel(&body), &launch("k", 1, vec![zeroes("out", 8)]), None, 1000);
        assert!(report.is_clean(), "{load}: {:#?}", report.findings);
        assert_eq!(word32(&report, 0), 77, "{load}");
    }
    for (access, said) in [
        ("st.b32 [%d1], 5;", "can only be read"),
        ("st.global.b32 [%d2], 5;", "can only be read"),
        ("ld.global.b64 %d3, [%d2+8];", "the parameters end at 0x8"),
    ] {
        let report =
            run(&load_kernel(&format!("{ADDRESS}\n{access}")), &launch("k", 1, vec![zeroes("out", 8)]), None, 1000);
        assert_eq!(common::codes(&report), ["out-of-bounds"], "{access}: {:#?}", report.findings);
        assert!(report.findings[0].title.contains(said), "{access}: {:#?}", report.findings);
    }
}

fn load_kernel(body: &str) -> emulator::Program {
    load(&kernel("", body))
}

/// `cvta` takes a register, or a variable of its space with an offset or without one; `cvta.to` a register alone.
#[test]
fn cvta_takes_variables_with_offsets() {
    let declarations = ".global .align 4 .b32 g[4] = {1, 2, 3, 4};\n.const .align 4 .b32 c[4] = {5, 6, 7, 8};\n.shared .align 4 .b32 s[4];";
    let own = ".local .align 4 .b32 l[4];\nst.shared.b32 [s+8], 9;\nst.local.b32 [l+4], 10;";
    for (cvta, wanted) in [
        ("cvta.global.u64 %d1, g;", 1),
        ("cvta.global.u64 %d1, g+4;", 2),
        ("cvta.const.u64 %d1, c+8;", 7),
        ("cvta.shared.u64 %d1, s+8;", 9),
        ("cvta.shared::cta.u64 %d1, s+8;", 9),
        ("cvta.shared::cluster.u64 %d1, s+8;", 9),
        ("cvta.local.u64 %d1, l+4;", 10),
    ] {
        let body = format!("{own}\n{cvta}\nld.b32 %r0, [%d1];\nst.global.b32 [%d0], %r0;");
        let report = run(&load(&kernel(declarations, &body)), &launch("k", 1, vec![zeroes("out", 8)]), None, 1000);
        assert!(report.is_clean(), "{cvta}: {:#?}", report.findings);
        assert_eq!(word32(&report, 0), wanted, "{cvta}");
    }
    // The parameter holds the buffer's address.
    for cvta in ["cvta.param.u64 %d1, out;", "cvta.param::entry.u64 %d1, out+0;"] {
        let body = format!("{cvta}\nld.b64 %d2, [%d1];\nst.global.b32 [%d2], 11;");
        let report = run(&load_kernel(&body), &launch("k", 1, vec![zeroes("out", 8)]), None, 1000);
        assert!(report.is_clean(), "{cvta}: {:#?}", report.findings);
        assert_eq!(word32(&report, 0), 11, "{cvta}");
    }
    for cvta in
        ["cvta.shared.u64 %d1, l;", "cvta.local.u64 %d1, s+4;", "cvta.param.u64 %d1, g;", "cvta.to.shared.u64 %d1, s;"]
    {
        let errors = emulator::load(&kernel(declarations, &format!("{own}\n{cvta}"))).expect_err(cvta);
        assert_eq!(errors[0].code, "ptx-semantics", "{cvta}: {errors:#?}");
        assert!(errors[0].title.contains("does not take the variable"), "{cvta}: {errors:#?}");
    }
}

/// A CTA has room for the shared variables of the module that its kernel names, by itself or in a function that it calls, whether the statement is
/// ever executed or not; and for all of its own.
#[test]
fn a_cta_has_the_shared_variables_that_its_kernel_reaches() {
    let declarations = ".shared .align 16 .b8 big[131072];\n.func deep() { .reg .b32 %a; mov.b32 %a, big; ret; }\n\
         .func deeper() { call deep, (); ret; }\n.func other() { ret; }";
    for (body, has) in [
        ("call other, ();", false),
        ("mov.b32 %r0, big;", true),
        ("bra END; ld.shared.b32 %r0, [big+4];\nEND:", true),
        ("call deeper, ();", true),
        (".shared .b8 own[131072];", true),
    ] {
        let mut launch = launch("k", 1, vec![zeroes("out", 8)]);
        launch.dynamic_shared = 131_072;
        let report = run(&load(&kernel(declarations, body)), &launch, None, 1000);
        let wanted: &[_] = if has { &["launch"] } else { &[] };
        assert_eq!(common::codes(&report), wanted, "{body}: {:#?}", report.findings);
    }
}

/// Messages call variables as the program that was compiled does, unless two of the kernel's would have one name.
#[test]
fn variables_of_cpp_have_the_names_of_their_source() {
    const READ: &str = "ld.shared.b32 %r0, [_ZZN1n1kILi8EEEvPfE4tile]; st.global.b32 [%d0], %r0;";
    let both = format!("mov.b32 %r1, _ZZ5otherE4tile; {READ}");
    for (declarations, body, called) in [
        (".shared .b32 _ZZN1n1kILi8EEEvPfE4tile;", READ, "`tile`"),
        (".shared .b32 _ZZN1n1kILi8EEEvPfE4tile;\n.shared .b32 _ZZ5otherE4tile;", &both, "`_ZZN1n1kILi8EEEvPfE4tile`"),
        (".global .b32 _ZN1n5tableE;", "ld.global.b32 %r0, [_ZN1n5tableE+4]; st.global.b32 [%d0], %r0;", "`table`"),
    ] {
        let report = run(&load(&kernel(declarations, body)), &launch("k", 1, vec![zeroes("out", 8)]), None, 1000);
        let [finding] = report.findings.as_slice() else { panic!("{:#?}", report.findings) };
        let labels = finding.labels.iter().map(|label| label.text.as_str());
        let said = labels.fold(finding.title.clone() + &finding.help, |all, text| all + text);
        assert!(said.contains(called) && !said.replace(called, "").contains("_ZN1n"), "{called}: {finding:#?}");
    }
}

/// A vector of registers is loaded, stored and taken apart whole; each element has two names, and may be read or written alone.
#[test]
fn a_register_may_be_a_vector() {
    for (body, wanted) in [
        (
            ".reg .v4 .b32 q; mov.b32 q.x, 1; mov.b32 q.y, 2; mov.b32 q.z, 3; mov.b32 q.w, 4; st.global.v4.b32 [%d0], q;",
            [1, 2, 3, 4],
        ),
        (
            ".reg .v4 .s32 q; mov.s32 q.r, 5; mov.s32 q.g, q.x; mov.s32 q.b, 7; mov.s32 q.a, q.z; st.global.v4.s32 [%d0], q;",
            [5, 5, 7, 7],
        ),
        (
            ".reg .v2 .b32 p, q; mov.b64 p, 0x200000001; mov.b64 %d1, p; mov.b64 q, %d1; st.global.v4.b32 [%d0], {p.x, p.y, q.y, q.x};",
            [1, 2, 2, 1],
        ),
        (
            ".reg .v2 .b32 q<2>; mov.b64 q0, 0x200000001; mov.b64 q1, 0x400000003; st.global.v2.b32 [%d0], q0; st.global.v2.b32 [%d0+8], q1;",
            [1, 2, 3, 4],
        ),
        (
            ".reg .v4 .b32 q; ld.const.v4.b32 q, [c]; { .reg .b32 q; mov.b32 q, 9; mov.b32 %r0, q; } st.global.v4.b32 [%d0], {%r0, q.y, q.z, q.w};",
            [9, 12, 13, 14],
        ),
    ] {
        let text = kernel(".const .align 16 .b32 c[4] = {11, 12, 13, 14};", body);
        let report = run(&load(&text), &launch("k", 1, vec![zeroes("out", 16)]), None, 1000);
        assert!(report.is_clean(), "{body}: {:#?}", report.findings);
        assert_eq!([0, 1, 2, 3].map(|n| word32(&report, n)), wanted, "{body}");
    }
}

/// What ptxas refuses of them, by what it says.
#[test]
fn a_vector_of_registers_is_refused_where_ptxas_does() {
    for (body, told) in [
        (".reg .v4 .b64 q;", "`q` is a vector of 4 elements of type `.b64`"),
        (".reg .v2 .pred q;", "`q` is a vector of 2 elements of type `.pred`"),
        (".reg .v8 .b16 q;", "`q` is a register of type `.v8`"),
        (".reg .v2 .b32 q; add.u32 %r0, q, 1;", "found a vector"),
        (".reg .v2 .b32 q; mov.b64 q, 0; ld.shared.b32 %r0, [q.x];", "the address is `q.x`, an element of a vector"),
        (".reg .v2 .b32 q; mov.b64 q, 0; st.global.v2.b32 [%d0], {q, %r0};", "`q` is a vector of registers"),
    ] {
        let errors = emulator::load(&kernel("", body)).expect_err(body);
        assert!(errors[0].title.contains(told), "{body}: {:#?}", errors[0]);
    }
}
