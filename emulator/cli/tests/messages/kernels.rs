//! Kernels that are refused: targets, versions, slips of the finger.

use crate::common::emulate_texts;
use crate::{kernel, launch};
use expect_test::{Expect, expect};

/// Target and version: there are only some, and instructions need theirs.
#[test]
fn targets_and_versions_are_checked() {
    let says = |from: &str, to: &str, expected: Expect| {
        let text = kernel(
            "tcgen05.fence::before_thread_sync;\nmbarrier.try_wait.parity.relaxed.cta.shared.b64 %p1, [bar], 0;",
        );
        assert!(text.contains(from), "{from}");
        let said = emulate_texts(&text.replace(from, to), &launch(32), &[]);
        expected.assert_eq(&said.err);
        assert_eq!((said.status, said.out.as_str()), (2, ""));
    };
    says(
        "sm_100a",
        "sm_999",
        expect![[r#"
            error[ptx-target]: there is no target `sm_999`
             --> k.ptx:2:9
              |
            2 | .target sm_999
              |         ^^^^^^ here
              |
              = rule: Every target is known from one version of PTX on, and has the instructions of its GPU (PTX ISA 11.1, and the target notes of each instruction).
              = try: Targets are, among others, sm_90a, sm_100a, sm_100f, sm_103a, sm_110a, sm_120a; with a comma behind: texmode_unified, texmode_independent, debug, map_f64_to_f32.
        "#]],
    );
    says(
        "sm_100a",
        "sm_10a",
        expect![[r#"
            error[ptx-target]: there is no target `sm_10a`
             --> k.ptx:2:9
              |
            2 | .target sm_10a
              |         ^^^^^^ here
              |
              = rule: Every target is known from one version of PTX on, and has the instructions of its GPU (PTX ISA 11.1, and the target notes of each instruction).
              = try: Did you mean `sm_100a`? Targets are, among others, sm_90a, sm_100a, sm_100f, sm_103a, sm_110a, sm_120a; with a comma behind: texmode_unified, texmode_independent, debug, map_f64_to_f32.
        "#]],
    );
    says(
        "sm_100a",
        "debug",
        expect![[r#"
        error[ptx-target]: no GPU in `.target`
         --> k.ptx:2:9
          |
        2 | .target debug
          |         ^^^^^ here
          |
          = rule: Every target is known from one version of PTX on, and has the instructions of its GPU (PTX ISA 11.1, and the target notes of each instruction).
          = try: Name a GPU first: `.target sm_100a`.
    "#]],
    );
    says(
        "sm_100a",
        "sm_90a",
        expect![[r#"
        error[ptx-target]: `tcgen05.fence::before_thread_sync` needs a target with tensor memory, such as `sm_100a`, `sm_100f` or `sm_103a`, this module is for `sm_90a`
          --> k.ptx:17:1
           |
         2 | .target sm_90a
           |         ------ `sm_90a` does not have it
        ...
        17 | tcgen05.fence::before_thread_sync;
           | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ needed here
           |
           = rule: Every target is known from one version of PTX on, and has the instructions of its GPU (PTX ISA 11.1, and the target notes of each instruction).
           = try: Write `.target sm_100a`, or use what `sm_90a` has.
    "#]],
    );
    says(
        "8.8",
        "8.5",
        expect![[r#"
            error[ptx-target]: `sm_100a` needs PTX version 8.6 or later, this module has 8.5
             --> k.ptx:1:10
              |
            1 | .version 8.5
              |          ^^^ version 8.5 does not know this target
            2 | .target sm_100a
              |         ------- the target
              |
              = rule: Every target is known from one version of PTX on, and has the instructions of its GPU (PTX ISA 11.1, and the target notes of each instruction).
              = try: Write `.version 8.6` or later.
        "#]],
    );
    says(
        "8.8",
        "8.9",
        expect![[r#"
        error[ptx-target]: there is no PTX version 8.9
         --> k.ptx:1:10
          |
        1 | .version 8.9
          |          ^^^ here
          |
          = rule: Every target is known from one version of PTX on, and has the instructions of its GPU (PTX ISA 11.1, and the target notes of each instruction).
          = try: Versions 8.0 to 8.8 exist.
    "#]],
    );
    says(
        "8.8\n.target sm_100a",
        "8.0\n.target sm_90",
        expect![[r#"
        error[ptx-target]: `tcgen05.fence::before_thread_sync` needs a target with tensor memory, such as `sm_100a`, `sm_100f` or `sm_103a`, this module is for `sm_90`
          --> k.ptx:17:1
           |
         2 | .target sm_90
           |         ----- `sm_90` does not have it
        ...
        17 | tcgen05.fence::before_thread_sync;
           | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ needed here
           |
           = rule: Every target is known from one version of PTX on, and has the instructions of its GPU (PTX ISA 11.1, and the target notes of each instruction).
           = try: Write `.target sm_100a`, or use what `sm_90` has.

        error[ptx-target]: `mbarrier.try_wait.parity.relaxed.cta.shared.b64` needs PTX version 8.6 or later, this module has 8.0
          --> k.ptx:18:1
           |
         1 | .version 8.0
           |          --- the version
        ...
        18 | mbarrier.try_wait.parity.relaxed.cta.shared.b64 %p1, [bar], 0;
           | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ needed here
           |
           = rule: Every target is known from one version of PTX on, and has the instructions of its GPU (PTX ISA 11.1, and the target notes of each instruction).
           = try: Write `.version 8.6` or later.
    "#]],
    );
}

/// Slips of the finger in opcodes and names.
#[test]
fn slips_are_answered_with_what_was_meant() {
    for (body, expected) in [
        (
            "mbarrier.try_wiat.parity.shared.b64 %p1, [bar], 0;",
            expect![[r#"
                error[ptx-syntax]: there is no instruction `mbarrier.try_wiat` in PTX: `mbarrier.try_wiat.parity.shared.b64`
                   = try: Did you mean `mbarrier.try_wait.parity.shared.b64`?
            "#]],
        ),
        (
            "ld.global.v3.f32 {%r1, %r2, %r3}, [%rd2];",
            expect![[r#"
                error[ptx-syntax]: there is no modifier `.v3` in PTX: `ld.global.v3.f32`
                   = try: Did you mean `ld.global.v2.f32`?
            "#]],
        ),
        (
            "fma.rn.f23 %f0, %f1, %f2, %f3;",
            expect![[r#"
            error[ptx-syntax]: there is no type `.f23` in PTX: `fma.rn.f23`
               = try: Did you mean `fma.rn.f32`?
        "#]],
        ),
        (
            "frobnicate %r1;",
            expect![[r#"
            error[ptx-syntax]: there is no instruction `frobnicate` in PTX
               = try: `emulate --list-instructions` lists the instructions that are modelled.
        "#]],
        ),
        (
            "tcgen05.comit.cta_group::1.mbarrier::arrive::one.b64 [bar];",
            expect![[r#"
            error[ptx-syntax]: there is no instruction `tcgen05.comit` in PTX: `tcgen05.comit.cta_group::1.mbarrier::arrive::one.b64`
               = try: Did you mean `tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64`?
        "#]],
        ),
        (
            "tcgen05.frob.cta_group::1.b64 [bar];",
            expect![[r#"
            error[ptx-syntax]: there is no instruction `tcgen05.frob` in PTX: `tcgen05.frob.cta_group::1.b64`
               = try: There are `tcgen05.alloc`, `tcgen05.dealloc`, `tcgen05.relinquish_alloc_permit`, `tcgen05.ld`, `tcgen05.st`, `tcgen05.wait::ld`, `tcgen05.wait::st`, `tcgen05.mma`, `tcgen05.cp`, `tcgen05.shift`, `tcgen05.commit`, `tcgen05.fence::before_thread_sync` and `tcgen05.fence::after_thread_sync`.
        "#]],
        ),
        (
            "tcgen05.mma.cta_group::1.kind::xyz [%r1], %rd1, %rd2, %r3, %p0;",
            expect![[r#"
            error[ptx-syntax]: there is no `kind::xyz` in PTX: `tcgen05.mma.cta_group::1.kind::xyz`
               = try: The kinds are `kind::f16`, `kind::tf32`, `kind::f8f6f4`, `kind::i8`, `kind::mxf8f6f4`, `kind::mxf4` and `kind::mxf4nvf4`.
        "#]],
        ),
        (
            "shfl.sync.xor.b32 %r1, %r2, 1, 31, -1;",
            expect![[r#"
            error[ptx-syntax]: PTX has no such form of `shfl`: `shfl.sync.xor.b32`
               = try: The nearest form that is modelled: `shfl.sync.up.b32`. `emulate --list-instructions` lists all.
        "#]],
        ),
        (
            "cvt.rn.f16.float %h1, %r1;",
            expect![[r#"
            error[ptx-syntax]: there is no type `.float` in PTX: `cvt.rn.f16.float`
               = try: Did you mean `cvt.rn.f16.f32`?
        "#]],
        ),
        (
            "tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%rd0, {%r0, %r1}];",
            expect![[r#"
            error[not-modelled]: `tex.2d.v4.f32.f32` is not modelled
               = try: No form of this opcode is modelled; `emulate --list-instructions` lists all that are.
        "#]],
        ),
        (
            "mul.u32 %r1, %r2, %r3;",
            expect![[r#"
            error[ptx-semantics]: `mul.u32` does not say which half of the product it takes
               = try: `mul.lo.u32` takes the lower half, as `*` in C does, `mul.hi.u32` the upper one, `mul.wide.u32` all of it, in a register of twice the width.
        "#]],
        ),
        (
            "cvt.f16.f32 %h1, %r1;",
            expect![[r#"
            error[ptx-semantics]: `cvt.f16.f32` does not say how it rounds
               = try: Write `cvt.rn.f16.f32` (to nearest).
        "#]],
        ),
        (
            "bra LOOP;",
            expect![[r#"
            error[ptx-semantics]: there is no label `LOOP`
               = try: Put `LOOP:` in front of the statement that the branch goes to.
        "#]],
        ),
        (
            "mov.u32 %x1, 1;",
            expect![[r#"
            error[ptx-semantics]: `%x1` is not declared
               = try: Declare it with the type of what it holds, at the top of the kernel: `.reg .b32 %x1;`; `.reg .b32 %r<8>;` declares `%r0` to `%r7`.
        "#]],
        ),
        (
            "ld.global.u32 %r2, [out];",
            expect![[r#"
            error[ptx-semantics]: `out` is a parameter: its name is where its value lies, and not what it points to
               = try: Read it first, `ld.param.u64 %rd, [out];`, and use `[%rd]` in `ld.global.u32`.
        "#]],
        ),
        (
            "st.global.u32 [%rd0], 1.0;",
            expect![[r#"
                error[ptx-semantics]: expected an integer, found a floating-point constant: 1.0
                   = try: Write an integer; or, for the bits of that number in FP32, `0x3f800000`.
            "#]],
        ),
        (
            "mov.u32 %r1, %tid;",
            expect![[r#"
                error[ptx-semantics]: `%tid` is not declared
                   = try: Name the axis, too: `%tid.x`.
            "#]],
        ),
        (
            "mov.u32 %r1, %laneId;",
            expect![[r#"
                error[ptx-semantics]: `%laneId` is not declared
                   = try: PTX calls it `%laneid`: read it with `mov.u32 %r, %laneid;`.
            "#]],
        ),
        (
            "mov.u32 %r1, %gridid;",
            expect![[r#"
            error[not-modelled]: the special register `%gridid` is not modelled
               = try: `emulate --list-instructions` lists the special registers that are.
        "#]],
        ),
        (
            "mov.u32 %r1, %r32;",
            expect![[r#"
            error[ptx-semantics]: `%r32` is not declared
               = try: The highest of `%r<…>` that is declared is `%r31`: declare more, or correct the number.
        "#]],
        ),
        (
            "mov.u32 %r1, tiel;",
            expect![[r#"
            error[ptx-semantics]: `tiel` is not declared
               = try: Did you mean `tile`? A name must be declared in this scope or in one around it.
        "#]],
        ),
    ] {
        let said = emulate_texts(&kernel(body), &launch(32), &[]);
        let kept = said.err.lines().filter(|line| line.starts_with("error") || line.contains("= try"));
        expected.assert_eq(&kept.map(|line| format!("{line}\n")).collect::<String>());
    }
}
