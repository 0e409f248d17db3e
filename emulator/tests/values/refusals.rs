//! What is refused: with the code that fits, at its line, and with the form that is nearest.

use crate::row::kernel;
use expect_test::expect;

#[test]
fn a_wrong_space_or_order_is_refused() {
    for (body, code) in [
        ("ld.global.b32 %r0, [frame];", "ptx-semantics"),
        ("ld.shared.b32 %r0, [table];", "ptx-semantics"),
        ("ld.acquire.b32 %r0, [%d8];", "ptx-semantics"),
        ("ld.release.gpu.b32 %r0, [%d8];", "not-modelled"),
        ("atom.global.add.b32 %r0, [%d8], 1;", "not-modelled"),
        ("mov.u32 %r0, table;", "ptx-semantics"),
        ("max.abs.f32 %f0, %f1, %f2;", "ptx-semantics"),
        ("add.f32 %f0, %f1, %f2, %f3;", "ptx-semantics"),
    ] {
        let errors = emulator::load(&kernel(body)).expect_err(body);
        assert_eq!(errors[0].code, code, "{body}: {errors:#?}");
    }
}

/// A text of nothing but errors is answered in time, and says that it was not read to its end.
#[test]
fn a_hundred_errors_are_told() {
    let errors = emulator::load(&kernel(&"frobnicate.b32 %r0;\n".repeat(50_000))).expect_err("no such instruction");
    assert_eq!(errors.len(), 101);
    assert!(errors[99].title.contains("frobnicate"), "{:#?}", errors[99]);
    assert_eq!(errors[100].title, "there are 100 errors up to here: what follows was not looked at");
    assert_eq!(errors[100].labels[0].place.line, errors[99].labels[0].place.line);
    let errors = emulator::load(&kernel(&"twice:\n".repeat(200))).expect_err("a label of many places");
    assert_eq!(
        (errors.len(), &*errors[100].title),
        (101, "there are 100 errors up to here: what follows was not looked at")
    );
}

/// Numbers for which there is a finding when a register holds them: of constants it is told when the text is loaded, whether they are executed
/// or not, as ptxas 13.5 does. What that takes is left to the run.
#[test]
fn numbers_that_an_instruction_does_not_take_are_refused() {
    let over = |statement: &str| kernel(&format!("bra.uni OVER;\n{statement}\nOVER:"));
    for (statement, code, says) in [
        ("bar.sync 16;", "named-barrier", "there is no barrier 16"),
        ("barrier.cta.red.popc.u32 %r0, 16, %p0;", "named-barrier", "there is no barrier 16"),
        ("barrier.sync 1, 48;", "named-barrier", "barrier 1 cannot wait for that many threads, 48 threads"),
        ("bar.sync %r1, 48;", "named-barrier", "a CTA barrier cannot wait for that many threads, 48 threads"),
        (
            "bar.red.and.pred %p1, 2, 33, %p0;",
            "named-barrier",
            "barrier 2 cannot wait for that many threads, 33 threads",
        ),
        ("bar.arrive 3, 0;", "named-barrier", "barrier 3 cannot wait for that many threads, 0 threads"),
        ("mbarrier.init.shared.b64 [bar], 0;", "mbarrier-count", "`bar` is initialised for 0 arrivals"),
        (
            "mbarrier.init.shared.b64 [%r1], 1048576;",
            "mbarrier-count",
            "an mbarrier is initialised for 1048576 arrivals",
        ),
        ("mbarrier.arrive.shared.b64 _, [bar], 0;", "mbarrier-count", "0 arrivals at `bar`"),
        ("mbarrier.try_wait.parity.shared.b64 %p0, [bar], 2;", "mbarrier-parity", "the parity waited for is 2"),
        ("cp.async.bulk.global.shared::cta.bulk_group [%d8], [smem], 20;", "bulk-size", "a bulk copy of 20 bytes"),
        ("cp.async.bulk.prefetch.L2.global [%d8], 1048576;", "bulk-size", "a bulk copy of 1048576 bytes"),
        (
            "cp.async.ca.shared.global [smem], [%d8], 8, 12;",
            "bulk-size",
            "a thread would take 12 bytes of the 8 that its cp.async copies",
        ),
        (
            "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [smem], 48;",
            "tensor-columns",
            "tcgen05.alloc asks for 48 columns of tensor memory",
        ),
        (
            "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 1024;",
            "tensor-columns",
            "tcgen05.dealloc frees 1024 columns of tensor memory",
        ),
    ] {
        let errors = emulator::load(&over(statement)).expect_err(statement);
        assert_eq!((errors[0].code, &*errors[0].title), (code, says), "{statement}: {errors:#?}");
        assert!(statement.starts_with(&*errors[0].labels[0].place.text), "{statement}: {errors:#?}");
    }
    for statement in [
        "bar.sync 15, 64;",
        "bar.sync 0, 0;",
        "bar.sync 0, 1056;",
        "barrier.red.popc.u32 %r0, 1, 32, %p0;",
        "mbarrier.init.shared.b64 [bar], 1048575;",
        "mbarrier.arrive.expect_tx.shared.b64 _, [bar], 0;",
        "mbarrier.try_wait.parity.shared.b64 %p0, [bar], 1, 2000;",
        "cp.async.bulk.prefetch.L2.global [%d8], 0;",
        "cp.async.ca.shared.global [smem], [%d8], 8, 0;",
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [smem], 512;",
    ] {
        assert!(emulator::load(&over(statement)).is_ok(), "{statement}");
    }
}

/// Results that go nowhere, vectors of nothing, constants as addresses and out of range: what ptxas 13.5 refuses (`vocabulary/operands.rs`
/// asks it of every form).
#[test]
fn operands_that_have_no_place_are_refused() {
    for (statement, says) in [
        ("ld.global.b32 _, [%d8];", "operand 1 of `ld.global.b32` is `_`"),
        ("ld.global.v8.b32 {_, _, _, _, _, _, _, _}, [%d8];", "names no register"),
        ("setp.eq.u32 _|_, %r1, %r2;", "both results"),
        ("st.shared.b32 [16], %r1;", "is the constant 16"),
        ("mov.b32 {%h0, %h1}, {%h2, %h3};", "from a vector to a vector"),
        ("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {0};", "constants alone"),
        ("ld.global.v2.b32 {%r1, %d1}, [%d8];", "registers of 4 bytes (`%r1`) and of 8 bytes (`%d1`)"),
        ("movmatrix.sync.aligned.m8n8.trans.b16 %r0, 5;", "is 5"),
        ("cvt.rn.f16x2.e4m3x2 %r0, 0;", "found the constant 0"),
        ("createpolicy.fractional.L2::evict_first.b64 %d1, 1;", "`1.0`"),
        ("createpolicy.range.L2::evict_first.b64 %d1, [%d8], 4096, 1024;", "the primary size"),
        ("bfe.u32 %r0, %r1, 256, 1;", "is 256"),
        ("tcgen05.wait::ld.sync.aligned %r0;", "takes 0 operands, found 1"),
        ("griddepcontrol.launch_dependents 3;", "takes 0 operands, found 1"),
        ("trap 4;", "takes 0 operands, found 1"),
    ] {
        let errors = emulator::load(&kernel(statement)).expect_err(statement);
        assert_eq!(errors[0].code, "ptx-semantics", "{statement}: {errors:#?}");
        let text = format!("{} {}", errors[0].title, errors[0].help);
        assert!(text.contains(says), "{statement}: {text}");
    }
}

/// What ptxas 13.5 refuses, word for word tried with it, no GPU would ever run: the message says what is taken.
#[test]
fn registers_and_constants_of_other_types_are_refused() {
    let registers = ".reg .u16 %uh;\n.reg .u32 %u<4>;\n.reg .u64 %ul;\n.reg .f16 %fh;\n.reg .f32 %x<4>;\n.reg .f64 %y;\n\
                     .reg .f16x2 %xx;\n.reg .b16 %bh;\n.reg .b32 %b<4>;\n.reg .b64 %bl;\n.reg .pred %q;";
    for (statement, says) in [
        ("add.u32 %u0, %x0, %u1;", "`%x0` is a `.f32` register"),
        ("add.f32 %x0, %u0, %x1;", "one of these types: .b32, .f32"),
        ("add.f32 %x0, %x1, 1;", "`1.0`"),
        ("add.u32 %u0, %u1, 0f3F800000;", "Write an integer."),
        ("add.f16 %fh, %fh, 0x3c00;", "There are no constants of this type"),
        ("add.u32 %u0, %uh, %u1;", "`%uh` is a `.u16` register"),
        ("fma.rn.bf16x2 %b0, %xx, %b1, %b2;", "one of these types: .b32"),
        ("mul.wide.s32 %y, %u0, %u1;", "`%y` is a `.f64` register"),
        ("shl.b32 %b0, %b1, %x0;", ".b32, .u32, .s32"),
        ("selp.f32 %x0, %x1, 0, %q;", "`1.0`"),
        ("setp.lt.f32 %q, %x0, %u0;", "`%u0` is a `.u32` register"),
        ("cvt.rn.f32.u32 %u0, %u1;", ".b32, .f32"),
        ("ld.global.u32 %x0, [%d8];", "`%x0` is a `.f32` register"),
        ("ld.global.v2.b32 {%u0, %x0}, [%d8];", "a vector of `.u32` (`%u0`) and `.f32` (`%x0`)"),
        ("st.global.f32 [%d8], %u0;", "`%u0` is a `.u32` register"),
        ("red.global.add.f32 [%d8], 1;", "`1.0`"),
        ("ld.shared.u32 %u0, [%x0];", "which holds no address"),
        ("mov.u64 %ul, {%u0, %u1};", "`mov.b64`"),
        ("mov.b64 %ul, {%uh, %uh};", "`%uh` is a `.u16` register"),
        ("mov.f32 %x0, tile;", "does not take the address of `tile`"),
        ("mov.banana %u0, tile;", "does not take the address of `tile`"),
        ("mov.u64 %ul, %tid.x;", "`mov.u32`"),
        ("add.u32 %u0, %tid.x, 1;", "Move it to a register first"),
        ("fma.f32 %x0, %x1, %x2, %x3;", "Write `fma.rn.f32`"),
        ("mad.f32 %x0, %x1, %x2, %x3;", "Write `mad.rn.f32`"),
        ("div.f32 %x0, %x1, %x2;", "Write `div.rn.f32` (to nearest), or `.full`"),
        ("rcp.f32 %x0, %x1;", "Write `rcp.rn.f32`"),
        ("sqrt.f32 %x0, %x1;", "Write `sqrt.rn.f32`"),
        ("sqrt.f64 %y, %y;", "Write `sqrt.rn.f64`"),
        ("cp.async.cg.shared.global [tile], [%d8], 8;", "16 bytes"),
        ("ld.global.u32 %u0, [%d8-4];", "name+-4"),
        ("bar.sync 1, %x0;", ".b32, .u32, .s32"),
        ("bar.sync %uh;", "`%uh` is a `.u16` register"),
        ("mbarrier.init.shared::cta.b64 [tile], %x0;", ".b32, .u32, .s32"),
        ("mbarrier.init.shared::cta.b64 [tile], tile;", "does not take the address of `tile`"),
        ("mbarrier.arrive.expect_tx.shared::cta.b64 _, [tile], 1.0;", "Write an integer"),
        ("mbarrier.try_wait.parity.shared::cta.b64 %q, [tile], %xx;", "`%xx` is a `.f16x2` register"),
        ("mbarrier.arrive.shared::cta.b64 %y, [tile];", "`%y` is a `.f64` register"),
        ("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [tile], %x0;", "`%x0` is a `.f32` register"),
        ("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %x0, 32;", "`%x0` is a `.f32` register"),
        ("tcgen05.mma.cta_group::1.kind::f16 [%b0], %y, %bl, %u0, %q;", "`%y` is a `.f64` register"),
        ("tcgen05.mma.cta_group::1.kind::f16 [%b0], %bl, %bl, %x0, %q;", "`%x0` is a `.f32` register"),
        (
            "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [tile], %u0;",
            "`%u0` is a `.u32` register",
        ),
        ("mapa.shared::cluster.u32 %bl, %u0, 1;", "`%bl` is a `.b64` register"),
        ("mapa.shared::cluster.u32 %u0, %u1, %x0;", "`%x0` is a `.f32` register"),
        ("cvta.shared.u64 %y, %bl;", "`%y` is a `.f64` register"),
        ("elect.sync _|%q, %x0;", "`%x0` is a `.f32` register"),
        ("ld.global.u32 %u0, [%u1];", "takes addresses of 64 bits"),
        ("ld.u32 %u0, [%u1];", "takes addresses of 64 bits"),
        ("st.shared.u32 [%uh], %u1;", "which holds no address"),
        ("add.u32 %u0, %u1, tile;", "does not take the address of `tile`"),
        (".reg .u32 %v = 3;", "Only variables in `.global` and `.const`"),
        (".shared .u32 s[2] = {1, 2};", "Only variables in `.global` and `.const`"),
        (".reg .bf16 %v;", "other types fit into those of their bits"),
    ] {
        let text = kernel(&format!("{{\n{registers}\n.shared .b32 tile;\n{statement}\n}}"));
        let errors = emulator::load(&text).expect_err(statement);
        let line = text.lines().position(|l| l == statement).map_or(0, |n| n + 1);
        let d = &errors[0];
        assert_eq!(d.labels[0].place.line as usize, line, "{statement}: {d:#?}");
        assert!(format!("{} {}", d.title, d.help).contains(says), "{statement}: {d:#?}");
    }
    // And what it takes.
    for statement in [
        "add.u32 %u0, %b0, %u1; add.f32 %x0, %b0, %x1; and.b32 %x0, %u0, %xx; mov.b32 %b0, 0f3F800000;",
        "ld.global.b32 %x0, [%d8]; ld.global.u8 %uh, [%d8]; ld.global.f32 %bl, [%d8]; st.global.b32 [%d8], %y;",
        "mov.b64 %ul, {%b0, %x0}; mov.b64 {%x0, %x1}, %bl; mov.b32 %b0, {%bh, %fh}; cvt.u64.u32 %ul, %tid.x;",
    ] {
        let errors = emulator::load(&kernel(&format!("{{\n{registers}\n{statement}\n}}"))).err();
        assert!(errors.is_none(), "{statement}: {errors:#?}");
    }
}

/// Forms of a kind that ptxas refuses as well.
#[test]
fn modifiers_and_operands_fit_the_kind() {
    for (statement, says) in [
        (
            "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale [%r1], %d0, %d1, %r2, [%r3], [%r4], %p0;",
            "`.scale_vec::4X` or `.block16`",
        ),
        (
            "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.block16 [%r1], %d0, %d1, %r2, [%r3], [%r4], %p0;",
            "`.scale_vec::1X` or `.block32`, or neither",
        ),
        (
            "tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::4X [%r1], %d0, %d1, %r2, [%r3], [%r4], %p0;",
            "`.scale_vec::2X` or `.block32`, or neither",
        ),
        ("tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%r1], %d0, %d1, %r2, %p0;", "takes 7 operands, found 5"),
        ("tcgen05.mma.cta_group::1.kind::mxf4.block_scale [%r1], %d0, %d1, %r2, %r3, [%r4], %p0;", "memory operand"),
        ("tcgen05.mma.cta_group::1.kind::f8f6f4 [%r1], %d0, %d1, %r2, %p0, 1;", "`kind::f8f6f4` with scale-input-d"),
        (
            "tcgen05.mma.cta_group::1.kind::i8 [%r1], %d0, %d1, %r2, {%r3, %r4, %r5, %r6}, %p0, 0;",
            "`kind::i8` with scale-input-d",
        ),
        (
            "tcgen05.mma.cta_group::1.kind::tf32 [%r1], %d0, %d1, %r2, {%r3, %r4}, %p0;",
            "has 2 registers, this form takes 4",
        ),
        ("tcgen05.cp.cta_group::1.4x256b [%r1], %r2;", "`%r2` is not a 64-bit register"),
        ("tcgen05.cp.cta_group::1.4x256b [%d1], %d2;", "is not an address in tensor memory"),
        // What the shape does not have, in the tables of tcgen05.ld, st and cp.
        (
            "tcgen05.ld.sync.aligned.32x32b.x3.b32 {%r1, %r2, %r3}, [%r4];",
            "`tcgen05.ld` of `.32x32b` cannot have `.x3` `.32x32b` has `.x1`, `.x2`",
        ),
        (
            "tcgen05.ld.sync.aligned.16x256b.x64.b32 {%r1}, [%r4];",
            "`.16x256b` has `.x1`, `.x2`, `.x4`, `.x8`, `.x16`, `.x32` (PTX",
        ),
        ("tcgen05.st.sync.aligned.16x128b.x128.b32 [%r4], {%r1};", "`.x32`, `.x64` (PTX ISA, tcgen05.st"),
        (
            "tcgen05.ld.sync.aligned.16x32bx2.x256.b32 {%r1}, [%r4], 16;",
            "`tcgen05.ld` of `.16x32bx2` cannot have `.x256`",
        ),
        ("tcgen05.ld.sync.aligned.32x32b.b32 {%r1}, [%r4];", "does not say how often it is repeated"),
        ("tcgen05.ld.sync.aligned.32x32b.x1.unpack::16b.b32 {%r1}, [%r4];", "write `.pack::16b`, or leave it out"),
        ("tcgen05.st.sync.aligned.32x32b.x1.pack::16b.b32 [%r4], {%r1};", "write `.unpack::16b`, or leave it out"),
        ("tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%r1}, [%r4];", "`{…}, [taddr], 16`"),
        ("tcgen05.st.sync.aligned.16x32bx2.x1.b32 [%r4], {%r1};", "`[taddr], 16, {…}`"),
        ("tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%r1}, [%r4], %r2;", "halves of `.16x32bx2` is `%r2`"),
        ("tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%r1}, [%r4], 512;", "is the constant 512"),
        ("tcgen05.cp.cta_group::1.64x128b [%r1], %d0;", "It asks for one of `.warpx2::02_13`, `.warpx2::01_23`."),
        ("tcgen05.cp.cta_group::1.32x128b [%r1], %d0;", "`.32x128b` with no multicast It asks for `.warpx4`."),
        (
            "tcgen05.cp.cta_group::2.128x256b.warpx4 [%r1], %d0;",
            "`.128x256b` with `.warpx4` It reaches all lanes by itself",
        ),
        ("tcgen05.mma.cta_group::1.kind::mxf8f6f4 [%r1], %d0, %d1, %r2, [%r3], [%r4], %p0;", "without `.block_scale`"),
        (
            "tcgen05.mma.cta_group::1.kind::f16.block_scale [%r1], %d0, %d1, %r2, [%r3], [%r4], %p0;",
            "Leave it out: `kind::mxf8f6f4`",
        ),
        (
            "tcgen05.mma.cta_group::3.kind::f16 [%r1], %d0, %d1, %r2, %p0;",
            "there is no `.cta_group::3` Write `.cta_group::1`",
        ),
        (
            "ld.global.v8.b16 {%h0, %h1, %h2, %h3, %h0, %h1, %h2, %h3}, [%d8];",
            "eight elements of 16 bits Load `.v4.b32` and take the elements apart",
        ),
        (
            "ld.shared.v8.s8 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [smem];",
            "eight elements of 8 bits Load `.v2.b32`",
        ),
        ("st.global.v8.b64 [%d8], {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7};", "moves 64 bytes"),
        ("atom.shared.exch.b128 %q0, [smem], 0;", "expected a 128-bit register, found the constant 0"),
        ("setp.lt.f16x2 %p0|%p1, 1, %r1;", "does not take the constant 1 here"),
        ("setp.lt.f16x2 %p0|%p1, %f0, %r1;", "`.f32` register"),
        ("setp.lt.and.bf16x2 %p0, %r0, %r1, 1;", "takes a register here, found the constant 1 Move it to"),
        ("set.lt.and.u32.bf16 %r0, %h0, %h1, 0;", "of one of these types first: .pred"),
        ("cvt.rn.scaled::n2::ue8m0.bf16x2.e4m3x2 %r0, %h0;", "takes 3 operands, found 2"),
        ("cvt.rn.scaled::n2::ue8m0.bf16x2.e4m3x2 %r0, %h0, %r1;", "`.b32` register"),
        (
            "cvt.rn.scaled::n2::ue8m0.bf16x2.e4m3x2 %r0, %h0, 0x7f7f;",
            "takes a register here, found the constant 32639 Move it to",
        ),
        // A vector of constants alone; with a register beside it, ptxas takes one.
        ("tcgen05.st.sync.aligned.32x32b.x2.b32 [%r4], {0, 0};", "a vector of constants alone"),
        ("tcgen05.st.sync.aligned.16x32bx2.x1.b32 [%r4], 4, {0};", "a vector of constants alone"),
        ("tcgen05.mma.cta_group::1.kind::f16 [%r1], %d0, %d1, %r2, {0, 0, 0, 0}, %p0;", "a vector of constants alone"),
    ] {
        let text = kernel(statement);
        let errors = emulator::load(&text).expect_err(statement);
        let line = text.lines().position(|l| l == statement).map_or(0, |n| n + 1);
        let d = &errors[0];
        assert!(d.code == "ptx-semantics" && d.labels[0].place.line as usize == line, "{statement}: {d:#?}");
        assert!(format!("{} {}", d.title, d.help).contains(says), "{statement}: {d:#?}");
    }
}

/// A constant beside a register is taken, as by ptxas.
#[test]
fn vectors_of_registers_and_constants_are_taken() {
    for statement in [
        "tcgen05.st.sync.aligned.32x32b.x2.b32 [%r4], {%r1, 0};",
        "tcgen05.mma.cta_group::1.kind::f16 [%r1], %d0, %d1, %r2, {%r3, %r3, %r3, 0}, %p0;",
    ] {
        assert!(emulator::load(&kernel(statement)).is_ok(), "{statement}");
    }
}

/// `scale-input-d` is an operand of the family of `sm_100` alone (PTX ISA, tcgen05.mma, target notes): those of `sm_110` have the same
/// MMA without it. ptxas 13.5 says the same of each.
#[test]
fn scale_input_d_depends_on_the_target() {
    let taken = |target: &str, statement: &str| {
        let text = kernel(statement).replace(".target sm_100a", &format!(".target {target}"));
        emulator::load(&text).map(|_| ()).map_err(|errors| Box::new(errors[0].clone()))
    };
    let without = "tcgen05.mma.cta_group::1.kind::tf32 [%r1], %d0, %d1, %r2, %p0;";
    let masked = "tcgen05.mma.cta_group::1.kind::f16 [%r1], %d0, %d1, %r2, {%r1, %r2, %r3, %r4}, %p0;";
    let scaled = "tcgen05.mma.cta_group::1.kind::tf32 [%r1], %d0, %d1, %r2, %p0, 3;";
    let both = "tcgen05.mma.cta_group::1.kind::f16 [%r1], %d0, %d1, %r2, {%r1, %r2, %r3, %r4}, %p0, 15;";
    let block = "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%r1], %d0, %d1, %r2, [%r3], [%r4], %p0;";
    for (target, scales) in [
        ("sm_100a", true),
        ("sm_100f", true),
        ("sm_103a", true),
        ("sm_103f", true),
        ("sm_101a", false),
        ("sm_110a", false),
        ("sm_110f", false),
    ] {
        for statement in [without, masked, block] {
            assert!(taken(target, statement).is_ok(), "{target}: {statement}");
        }
        for statement in [scaled, both] {
            let found = taken(target, statement);
            assert_eq!(found.is_ok(), scales, "{target}: {statement}: {found:#?}");
            if let Err(d) = found {
                assert!(d.code == "ptx-target" && d.title.contains("`scale-input-d`"), "{d:#?}");
            }
        }
    }
}

/// What ptxas takes and the emulator does not is refused by its name, with the reason where there is one to tell; what neither takes, too.
#[test]
fn what_is_not_modelled_is_refused_by_name() {
    for (statement, says) in [
        (
            "multimem.ld_reduce.relaxed.gpu.global.add.v4.f32 {%f0, %f1, %f2, %f3}, [%d8];",
            "nothing that says which of them",
        ),
        ("multimem.st.weak.global.b32 [%d8], %r0;", "On one GPU, `ld`, `st` and `red`"),
        ("multimem.red.release.sys.global.add.u32 [%d8], %r0;", "a multicast object, cuMulticastCreate"),
        ("atom.shared.and.b128 %q0, [smem], %q1;", "not modelled"),
        ("setp.lo.bf16x2 %p0|%p1, %r0, %r1;", "not modelled"),
        ("set.lt.ftz.bf16x2.bf16x2 %r0, %r0, %r1;", "not modelled"),
    ] {
        let errors = emulator::load(&kernel(statement)).expect_err(statement);
        let (d, opcode) = (&errors[0], statement.split(' ').next().unwrap_or_default());
        assert!(d.code == "not-modelled" && d.title.contains(opcode), "{statement}: {d:#?}");
        assert!(format!("{} {}", d.title, d.help).contains(says), "{statement}: {d:#?}");
    }
}

/// Headers and names that no GPU takes.
#[test]
fn modules_that_ptxas_refuses_are_refused() {
    let header = |version: &str, size: &str| format!(".version {version}\n.target sm_100a\n.address_size {size}\n");
    let entry = ".visible .entry k() { ret; }\n";
    for (text, line, says) in [
        (header("9.6", "64") + entry, 1, "Versions 9.0 to 9.5 exist"),
        (header("10.0", "64") + entry, 1, "Versions 1.0 to 9.5 exist"),
        (header("8.8", "32") + entry, 3, "expected 64"),
        (header("8.8", "64") + entry + entry, 5, "`k` is defined twice"),
        (header("8.8", "64") + entry + ".func k() { ret; }", 5, "`k` is defined twice"),
    ] {
        let errors = emulator::load(&text).expect_err(&text);
        let d = &errors[0];
        assert_eq!(d.labels[0].place.line, line, "{text}: {d:#?}");
        assert!(format!("{} {}", d.title, d.help).contains(says), "{text}: {d:#?}");
    }
    let declared = header("8.8", "64") + ".visible .entry k();\n" + entry;
    assert!(emulator::load(&declared).is_ok(), "a declaration may stand before");
}

/// The message names the line, and an opcode that is modelled and says most of the same.
#[test]
fn a_refusal_names_the_nearest_form() {
    let mut said = String::new();
    for statement in [
        "atom.global.add.s16 %h0, [%d8], %h1;",
        "red.global.max.noftz.f16 [%d8], %h0;",
        "multimem.ld_reduce.relaxed.gpu.global.add.f32 %f0, [%d8];",
        "st.async.release.gpu.global.b32 [%d0], %r1;",
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.min.u64 [%r0], %d1, [%r2];",
        "ld.mmio.sys.global.b32 %r0, [%d8];",
        "tcgen05.mma.ws.cta_group::1.kind::tf32 [%r1], %d0, %d1, %r2, %p0, %d2;",
        "tcgen05.mma.sp.cta_group::1.kind::f8f6f4 [%r1], %d0, %d1, [%r3], %r2, %p0;",
        "tcgen05.mma.cta_group::1.kind::i8.ashift [%r1], [%r3], %d1, %r2, %p0;",
        "tcgen05.mma.sp.cta_group::2.kind::mxf8f6f4.block_scale [%r1], %d0, %d1, [%r5], %r2, [%r3], [%r4], %p0;",
        "tcgen05.shift.cta_group::1.down [%r1];",
        "tcgen05.st.sync.aligned.16x96b.x2.b32 [%r1], {%r2, %r3};",
        "tcgen05.cp.cta_group::1.128x256b.b8x16.b4x16_p32 [%r1], %d0;",
        "mbarrier.arrive.noComplete.relaxed.cta.shared.b64 %d0, [bar], 1;",
        "cp.async.bulk.tensor.2d.shared::cta.global.im2col.mbarrier::complete_tx::bytes [smem], [%d6, {0, 0}], [bar];",
        "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.s64 [%r0], [smem], 16, [bar];",
        "cvt.rn.e4m3x2.f32 %h0, %f0, %f1;",
        "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 {%r0, %r1, %r2, %r3}, {%r0, %r1, %r2, %r3}, {%r0, %r1}, {%r0, %r1, %r2, %r3};",
        "tensormap.replace.im2col.rank.shared::cta.b1024.b32 [smem], 1;",
        "rcp.rz.ftz.f64 %e0, %e1;",
        "shfl.up.b32 %r0, %r1, 1, 0;",
        "atom.global.and.b128 %q0, [%d8], %q1;",
        "multimem.red.relaxed.gpu.global.add.f32 [%d8], %f0;",
        "redux.sync.add.f32 %f0, %f1, -1;",
        "sqrt.approx.f64 %e0, %e1;",
    ] {
        let text = kernel(statement);
        let errors = emulator::load(&text).expect_err(statement);
        let d = &errors[0];
        let line = text.lines().position(|l| l == statement).map_or(0, |n| n + 1);
        // Words that PTX does not have, and opcodes that lack one.
        let none = ["16x96b", "b4x16_p32", "shfl.up", "max.noftz.f16", "cvt.rn.e4m3x2"];
        let is_ptx = !none.iter().any(|word| statement.contains(word));
        let code = if is_ptx { "not-modelled" } else { "ptx-syntax" };
        assert!(d.code == code && d.labels[0].place.line as usize == line, "`{statement}`: {d:#?}");
        let opcode = statement.split(' ').next().unwrap_or("");
        said += &format!("{opcode}\n    {}\n", d.help);
    }
    expect![[r#"
        atom.global.add.s16
            The nearest form that is modelled: `atom.global.add.s32`. `emulate --list-instructions` lists all.
        red.global.max.noftz.f16
            Write `red.global.max.noftz.v2.f16`; other words there are `.v4`, `.v8`.
        multimem.ld_reduce.relaxed.gpu.global.add.f32
            Its address stands for memory of several GPUs at once (a multicast object, cuMulticastCreate); a launch has the buffers of one GPU, and nothing that says which of them such an address means. On one GPU, `ld`, `st` and `red` on its own buffer do the same.
        st.async.release.gpu.global.b32
            The nearest form that is modelled: `st.release.gpu.global.b32`. `emulate --list-instructions` lists all.
        red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.min.u64
            The nearest form that is modelled: `red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.min.u32`. `emulate --list-instructions` lists all.
        ld.mmio.sys.global.b32
            The nearest form that is modelled: `ld.global.b32`. `emulate --list-instructions` lists all.
        tcgen05.mma.ws.cta_group::1.kind::tf32
            Leave the last operand out, or write the constant 0.
        tcgen05.mma.sp.cta_group::1.kind::f8f6f4
            The nearest form that is modelled: `tcgen05.mma.cta_group::1.kind::f8f6f4`. `emulate --list-instructions` lists all.
        tcgen05.mma.cta_group::1.kind::i8.ashift
            The nearest form that is modelled: `tcgen05.mma.cta_group::1.kind::i8`. `emulate --list-instructions` lists all.
        tcgen05.mma.sp.cta_group::2.kind::mxf8f6f4.block_scale
            The nearest form that is modelled: `tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale`. `emulate --list-instructions` lists all.
        tcgen05.shift.cta_group::1.down
            No form of `tcgen05.shift` is modelled; `emulate --list-instructions` lists what is.
        tcgen05.st.sync.aligned.16x96b.x2.b32
            The nearest form that is modelled: `tcgen05.st.sync.aligned.16x64b.x2.b32`. `emulate --list-instructions` lists all.
        tcgen05.cp.cta_group::1.128x256b.b8x16.b4x16_p32
            Did you mean `tcgen05.cp.cta_group::1.128x256b.b8x16.b6x16_p32`?
        mbarrier.arrive.noComplete.relaxed.cta.shared.b64
            The nearest form that is modelled: `mbarrier.arrive.relaxed.cta.shared.b64`. `emulate --list-instructions` lists all.
        cp.async.bulk.tensor.2d.shared::cta.global.im2col.mbarrier::complete_tx::bytes
            The nearest form that is modelled: `cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes`. `emulate --list-instructions` lists all.
        cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.s64
            The nearest form that is modelled: `cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.s32`. `emulate --list-instructions` lists all.
        cvt.rn.e4m3x2.f32
            Write `cvt.rn.satfinite.e4m3x2.f32`.
        mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32
            The nearest form that is modelled: `mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32`. `emulate --list-instructions` lists all.
        tensormap.replace.im2col.rank.shared::cta.b1024.b32
            The nearest form that is modelled: `tensormap.replace.tile.rank.shared::cta.b1024.b32`. `emulate --list-instructions` lists all.
        rcp.rz.ftz.f64
            The nearest form that is modelled: `rcp.rz.ftz.f32`. `emulate --list-instructions` lists all.
        shfl.up.b32
            Write `shfl.sync.up.b32`.
        atom.global.and.b128
            The nearest form that is modelled: `atom.global.and.b32`. `emulate --list-instructions` lists all.
        multimem.red.relaxed.gpu.global.add.f32
            Its address stands for memory of several GPUs at once (a multicast object, cuMulticastCreate); a launch has the buffers of one GPU, and nothing that says which of them such an address means. On one GPU, `ld`, `st` and `red` on its own buffer do the same.
        redux.sync.add.f32
            The nearest form that is modelled: `redux.sync.add.u32`. `emulate --list-instructions` lists all.
        sqrt.approx.f64
            The nearest form that is modelled: `sqrt.approx.f32`. `emulate --list-instructions` lists all.
    "#]].assert_eq(&said);
    // An opcode of which there is no form at all.
    let errors = emulator::load(&kernel("suld.b.1d.b32.trap;")).expect_err("suld");
    assert!(errors[0].help.contains("No form of this opcode"), "{errors:#?}");
}
