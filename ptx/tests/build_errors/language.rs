//! Arithmetic, control flow, `raw`, registers; and what is told how often.

use super::check;
use expect_test::expect;
use ptx::prelude::*;

#[test]
fn control_and_arithmetic() {
    check(
        |k, _| {
            k.threads(128);
            let thread = k.thread_index();
            k.repeat(0, |_, _| ());
            k.assign(thread, 3);
            let _ = thread / 0;
            let _ = thread % 0;
            let _ = thread << 32;
            let _ = k.pack_chunks(Dtype::F16, &[]);
            let sum: F32 = k.register();
            let _ = k.pack_chunks(Dtype::F16, &[sum; 12]);
        },
        expect![[r#"
            +4: a loop of 0 rounds
                Use a count of 1 or more, or leave the loop out.
            +5: this register holds the result of an instruction: it cannot be assigned
                Make the register with `variable`.
            +6: division by the constant 0
                Divide by a constant of 1 or more, or by a register.
            +7: division by the constant 0
                Divide by a constant of 1 or more, or by a register.
            +8: a shift by 32 moves every bit of a 32-bit register out
                Shift by 0 to 31.
            +11: 12 sums are not a whole number of 16-byte chunks
                Give it a multiple of 8 sums.
        "#]],
    );
}

#[test]
fn raw() {
    check(
        |k, _| {
            k.threads(128);
            let thread = k.thread_index();
            k.raw("bar.sync 0; bar.sync", &[&1]);
            k.raw("bar.sync", &[&"0; ret"]);
            k.raw("", &[]);
            k.raw("mov.u32", &[&thread, &""]);
            k.raw("ld.global.v2.b32", &[&"{%r1, %r2", &"[%rd1]}"]);
            k.raw("bar.sync", &[&"0 // and so on"]);
        },
        expect![[r#"
            +4: "bar.sync 0; bar.sync" is not the opcode of one instruction
                Write it as in the PTX ISA, e.g. "prefetch.global.L2", without operands and without `;`.
            +5: "0; ret" is not an operand
                Write one operand a place: a register, a number, a name, `[address]` or `{vector}`.
            +6: "" is not the opcode of one instruction
                Write it as in the PTX ISA, e.g. "prefetch.global.L2", without operands and without `;`.
            +7: "" is not an operand
                Write one operand a place: a register, a number, a name, `[address]` or `{vector}`.
            +8: "{%r1, %r2" is not an operand
                Write one operand a place: a register, a number, a name, `[address]` or `{vector}`.
            +9: "0 // and so on" is not an operand
                Write one operand a place: a register, a number, a name, `[address]` or `{vector}`.
        "#]],
    );
}

#[test]
fn registers_of_another_kernel() {
    let gemm = Gemm::new(128, 128, 64, Dtype::F16, 148);
    let mut kept = None;
    let first = ptx::build("first", &gemm, |k, _| {
        k.threads(128);
        kept = Some(k.thread_index());
    });
    assert!(first.is_ok());
    let kept = kept.expect("the body ran");
    // Outside of a build there is nothing to write to, and nothing breaks.
    assert_eq!((kept + 1).to_string(), "%r0");
    check(
        |k, gemm| {
            k.threads(128);
            let _ = kept + 1;
            let _ = gemm.a.at(kept, 0);
            k.raw("mov.u32", &[&kept, &0]);
        },
        expect![[r#"
            +3: this uses a register of another kernel
                Make registers in the function of the kernel that uses them; do not keep them in statics.
            +4: this uses a register of another kernel
                Make registers in the function of the kernel that uses them; do not keep them in statics.
            +5: this uses a register of another kernel
                Make registers in the function of the kernel that uses them; do not keep them in statics.
        "#]],
    );
}

#[test]
fn a_mistake_in_a_rust_loop_is_told_once() {
    check(
        |k, _| {
            k.threads(128);
            for _ in 0..1000 {
                k.repeat(0, |_, _| ());
            }
        },
        expect![[r#"
            +4: a loop of 0 rounds (and 999 times more from this line)
                Use a count of 1 or more, or leave the loop out.
        "#]],
    );
    // Each round has other numbers.
    check(
        |k, gemm| {
            k.threads(128);
            for column in (56..80).step_by(8) {
                let _ = gemm.a.at(0, column);
            }
        },
        expect![[r#"
            +4: column 64 of matrix A does not exist: it has 64 columns (and once more from this line)
                Use a column from 0 to 63.
        "#]],
    );
}

#[test]
fn what_follows_from_an_error_is_none() {
    check(
        |k, gemm| {
            k.threads(100);
            let narrow = k.tile("narrow", gemm.dtype, 20, 32, Swizzle::B128);
            let a = k.tile("A", gemm.dtype, 128, 64, Swizzle::B128);
            let row = k.thread_index() / 0;
            let chunk = k.load_global_16(gemm.a.at(row, 64));
            k.store_shared_16(narrow.at(row, 40), chunk);
            k.store_shared_16(a.at(row + 1, 8), chunk);
            let tmem = k.warp(3, |w| w.tmem_alloc("sums", 16));
            let sums = tmem.address(k);
            let one = row << 32;
            k.assign(one, 1);
            k.when(one.eq(1), |s| s.raw("prefetch.global.L2", &[&one]));
            k.warp(0, |w| w.elect_one(|t| t.mma(sums, narrow.k_slice(48), narrow.k_slice(0), false)));
            k.repeat(2, |k, _| k.warp(3, |w| w.tmem_dealloc(tmem)));
        },
        expect![[r#"
            +2: a CTA cannot have 100 threads
                Use whole warps: a multiple of 32, from 32 to 1024.
            +3: rows of tile "narrow" have 64 bytes, and the swizzle's have 128
                Use 64 columns of f16, or a swizzle as wide as the rows.
            +5: division by the constant 0
                Divide by a constant of 1 or more, or by a register.
            +6: column 64 of matrix A does not exist: it has 64 columns
                Use a column from 0 to 63.
            +9: 16 columns of tensor memory cannot be allocated
                Use a power of two from 32 to 512.
            +11: a shift by 32 moves every bit of a 32-bit register out
                Shift by 0 to 31.
        "#]],
    );
}

#[test]
fn a_kernel_without_end() {
    check(
        |k, _| {
            k.threads(128);
            for _ in 0..200_001 {
                k.sync();
            }
        },
        expect![[r#"
            +4: the kernel is longer than 200000 instructions
                A Rust `for` is unrolled: use `repeat` for a loop that the GPU runs.
        "#]],
    );
}

#[test]
fn kernel_name() {
    let gemm = Gemm::new(128, 128, 64, Dtype::F16, 148);
    for name in ["", "1st", "two words", "dynamic_shared", "é"] {
        let errors = ptx::build(name, &gemm, |k, _| k.threads(32)).expect_err(name);
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].message.contains(&format!("`{name}`")), "{errors:?}");
    }
}

#[test]
fn a_kernel_with_open_todos_may_lack_what_they_ask_for() {
    let gemm = Gemm::new(128, 128, 64, Dtype::F16, 148);
    let built = ptx::build("kernel", &gemm, |k, _| {
        k.threads(128);
        let _tmem = k.warp(0, |w| w.tmem_alloc("accumulator", 128));
        for _ in 0..4 {
            k.todo("1.7");
        }
    });
    let todos = built.expect("nothing is wrong").todos;
    assert_eq!(todos.iter().map(|todo| todo.id).collect::<Vec<_>>(), ["1.7"]);
    assert_eq!((todos[0].place.file, todos[0].place.column), (file!(), 15));
}

#[test]
fn a_panic_in_a_kernel_leaves_no_trace() {
    let gemm = Gemm::new(128, 128, 64, Dtype::F16, 148);
    let build = |panics: bool| {
        ptx::build("kernel", &gemm, |k, _| {
            k.threads(128);
            k.warp(0, |w| w.elect_one(|_| assert!(!panics, "in the middle of it")));
        })
    };
    let before = build(false).expect("nothing is wrong").text;
    assert!(std::panic::catch_unwind(|| build(true).is_ok()).is_err());
    assert_eq!(build(false).expect("nothing is wrong").text, before);
}
