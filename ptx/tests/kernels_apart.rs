//! Kernels are built one at a time, come to an end, and do not share what they hold.

use ptx::prelude::*;
use ptx::{BuildError, Kernel};

#[track_caller]
fn build(body: impl FnOnce(&mut Cta, &Gemm)) -> Result<Kernel, Vec<BuildError>> {
    ptx::build("kernel", &Gemm::new(128, 128, 64, Dtype::F16, 148), body)
}

fn messages(result: Result<Kernel, Vec<BuildError>>) -> Vec<String> {
    let errors = result.map(|kernel| kernel.text).expect_err("it is refused");
    errors.into_iter().map(|error| error.message).collect()
}

/// Else the CTA's scope of one kernel could be used in the elected thread of another.
#[test]
fn a_kernel_is_not_built_inside_of_another() {
    let mut inner = None;
    let line = line!() + 3;
    let outer = build(|k, _| {
        k.threads(128);
        inner = Some(build(|other, _| {
            other.threads(128);
            other.warp(0, |w| w.elect_one(|_| k.sync()));
        }));
        k.sync();
    });
    let errors = inner.expect("the body ran").expect_err("it is refused");
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].message, "a kernel is built inside of another kernel's function");
    assert_eq!((errors[0].place.file, errors[0].place.line), (file!(), line));
    // The outer one goes on as if nothing had been.
    assert_eq!(outer.expect("nothing is wrong with it").text.matches("bar.sync").count(), 1);
}

#[test]
fn shared_and_tensor_memory_stay_in_their_kernel() {
    let mut kept = None;
    let first = build(|k, gemm| {
        k.threads(128);
        let tile = k.tile("A", gemm.dtype, 128, 64, Swizzle::B128);
        let (barrier, scalar) = (k.barrier("ready"), k.scalar("count"));
        let tmem = k.warp(0, |w| w.tmem_alloc("sums", 32));
        kept = Some((tile, barrier, scalar, tmem));
    });
    assert!(first.is_ok(), "{first:?}");
    let (tile, barrier, scalar, tmem) = kept.expect("the body ran");
    let begin = line!();
    let errors = build(|k, gemm| {
        k.threads(128);
        let own = k.warp(0, |w| w.tmem_alloc("own", 32));
        let row = k.thread_index();
        let chunk = k.load_global_16(gemm.a.at(row, 0));
        k.store_shared_16(tile.at(0, 0), chunk);
        k.store_shared_16(tile.at(row, 0), chunk);
        k.wait(barrier, 0);
        k.raw("prefetch.global.L2", &[&scalar]);
        k.warp(0, |w| {
            w.tmem_dealloc(tmem);
            w.tmem_dealloc(own);
        });
    })
    .expect_err("it is refused");
    let mut found: Vec<(u32, &str)> = errors.iter().map(|e| (e.place.line - begin, e.message.as_str())).collect();
    // Line 7 is refused twice: the address, and the store to it.
    found.dedup();
    let message = "this uses shared memory or tensor memory of another kernel";
    assert_eq!(found, [6, 7, 8, 9, 11].map(|line| (line, message)));
}

/// Two loops are two loops, also when they lie equally deep.
#[test]
fn tensor_memory_is_freed_in_the_loop_that_took_it() {
    let two_loops = build(|k, _| {
        k.threads(128);
        let tmem = k.repeat(2, |k, _| k.warp(0, |w| w.tmem_alloc("sums", 32)));
        k.repeat(2, |k, _| k.warp(0, |w| w.tmem_dealloc(tmem)));
    });
    let found = messages(two_loops);
    assert!(
        found.len() == 1 && found[0].ends_with("is freed in another `repeat` than it was allocated in"),
        "{found:?}"
    );
    let one_loop = build(|k, _| {
        k.threads(128);
        k.repeat(2, |k, _| {
            let tmem = k.warp(0, |w| w.tmem_alloc("sums", 32));
            k.repeat(2, |_, _| ());
            k.warp(0, |w| w.tmem_dealloc(tmem));
        });
    });
    assert!(one_loop.is_ok(), "{one_loop:?}");
}

/// `cargo test` builds a student's kernel in its own process: a loop without end must not hold it up.
#[test]
fn a_function_without_end_is_left() {
    let instructions = build(|k, _| {
        k.threads(128);
        loop {
            k.sync();
        }
    });
    assert_eq!(messages(instructions), ["the kernel is longer than 200000 instructions"]);
    let nothing = build(|k, _| {
        k.threads(128);
        loop {
            k.require(true, "never");
            k.grid(1, 1);
        }
    });
    let found = messages(nothing);
    assert!(found.iter().any(|message| message.contains("still writing after 400000 calls")), "{found:?}");
    assert!(build(|k, _| k.threads(32)).is_ok(), "the next build begins anew");
}

/// PTX takes a pitch of 32 bits and would cut a larger one without a word.
#[test]
fn rows_too_long_for_an_address() {
    let gemm = Gemm::new(8, 8, 1 << 31, Dtype::F16, 1);
    let errors = ptx::build("kernel", &gemm, |k, gemm| {
        k.threads(32);
        let row = k.thread_index();
        let _ = gemm.a.at(row, 0);
    });
    assert_eq!(messages(errors), ["rows of matrix A have 4294967296 bytes: `mad.wide.u32` takes a pitch of 32 bits"]);
}
