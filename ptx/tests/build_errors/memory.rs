//! Threads, shared memory, tensor memory, MMAs.

use super::check;
use expect_test::expect;
use ptx::prelude::*;

#[test]
fn threads() {
    check(
        |k, _| k.sync(),
        expect![[r#"
            +1: the kernel does not say how many threads a CTA has
                Begin the kernel with `k.threads(128);`.
        "#]],
    );
    check(
        |k, _| k.threads(100),
        expect![[r#"
            +1: a CTA cannot have 100 threads
                Use whole warps: a multiple of 32, from 32 to 1024.
        "#]],
    );
    check(
        |k, _| k.threads(1056),
        expect![[r#"
            +1: a CTA cannot have 1056 threads
                Use whole warps: a multiple of 32, from 32 to 1024.
        "#]],
    );
    check(
        |k, _| {
            k.threads(128);
            k.threads(64);
        },
        expect![[r#"
            +3: the number of threads is set twice
                Call `threads` once, at the start of the kernel.
        "#]],
    );
    check(
        |k, _| {
            k.warp(0, |_| ());
            k.warp(1, |_| ());
        },
        expect![[r#"
            +2: the number of threads is not known yet
                Begin the kernel with `k.threads(128);`.
        "#]],
    );
    check(
        |k, _| {
            k.threads(128);
            k.warp(4, |_| ());
            k.warpgroup(1, |wg| wg.warp(4, |_| ()));
            k.grid(0, 1);
        },
        expect![[r#"
            +3: there is no warp 4: the number of warps here is 4
                Use warp 0 to 3, or give the CTA more threads.
            +4: there is no warpgroup 1: the number of warpgroups here is 1
                Use warpgroup 0, or give the CTA more threads.
            +4: there is no warp 4: the number of warps here is 4
                Use warp 0 to 3, or give the CTA more threads.
            +5: a grid cannot have 0 x 1 CTAs
                Use 1 or more in both directions, and at most 65535 in y.
        "#]],
    );
}

#[test]
fn shared_memory() {
    check(
        |k, gemm| {
            k.threads(128);
            for stage in 0..15 {
                k.tile(&format!("A{stage}"), gemm.dtype, 128, 64, Swizzle::B128);
            }
        },
        expect![[r#"
            +4: tile "A14" of 128 x 64 f16 needs 16384 bytes of shared memory, and 3072 of the CTA's 232448 are left
                Use smaller tiles or fewer stages; declare tiles first, since each begins on a multiple of 1024.
        "#]],
    );
    check(
        |k, gemm| {
            k.threads(128);
            k.tile("A", gemm.dtype, 128, 32, Swizzle::B128);
            k.tile("B", gemm.dtype, 100, 64, Swizzle::B128);
            k.tile("C", gemm.dtype, 0, 64, Swizzle::B128);
            k.tile("D", gemm.dtype, 8, 9, Swizzle::None);
            k.tile("E", gemm.dtype, u32::MAX, 64, Swizzle::B128);
            k.tile("F", gemm.dtype, 8, u32::MAX, Swizzle::None);
            k.barrier("A");
            k.barrier("two\nlines");
        },
        expect![[r#"
            +3: rows of tile "A" have 64 bytes, and the swizzle's have 128
                Use 64 columns of f16, or a swizzle as wide as the rows.
            +4: tile "B" has 100 rows, and the swizzle pattern has 8
                Use a multiple of 8 rows.
            +5: tile "C" of 0 x 64 is empty
                Use 1 row and 1 column or more.
            +6: rows of tile "D" have 18 bytes, not a multiple of 16
                Use a multiple of 8 columns, so that every row begins where a 16-byte access may.
            +7: tile "E" has 4294967295 rows, and the swizzle pattern has 8
                Use a multiple of 8 rows.
            +8: rows of tile "F" have 8589934590 bytes, not a multiple of 16
                Use a multiple of 8 columns, so that every row begins where a 16-byte access may.
            +10: "two\nlines" cannot be a name
                Use a name that can be printed on one line.
        "#]],
    );
    check(
        |k, gemm| {
            k.threads(128);
            let a = k.tile("A", gemm.dtype, 128, 64, Swizzle::B128);
            let plain = k.tile("plain", gemm.dtype, 128, 64, Swizzle::None);
            let row = k.thread_index();
            let _ = a.at(128, 0);
            let _ = a.at(row, 64);
            let _ = a.k_slice(56);
            let _ = a.k_slice(64);
            let _ = plain.k_slice(0);
            let _ = gemm.a.at(row, 64);
            let _ = k.load_shared_16(a.at(0, 4));
        },
        expect![[r#"
            +6: row 128 of tile "A" does not exist: it has 128 rows
                Use a row from 0 to 127.
            +7: column 64 of tile "A" does not exist: it has 64 columns
                Use a column from 0 to 63.
            +8: tile "A" has no 16 columns that an MMA can take from column 56 on: it has 64 columns
                Use a multiple of 16, up to 48.
            +9: tile "A" has no 16 columns that an MMA can take from column 64 on: it has 64 columns
                Use a multiple of 16, up to 48.
            +10: tile "plain" has no swizzle, and the tensor core reads swizzled tiles
                Make the tile with `Swizzle::B128`.
            +11: column 64 of matrix A does not exist: it has 64 columns
                Use a column from 0 to 63.
            +12: a 16-byte access at byte 8 of shared memory is not aligned
                Use an address that is a multiple of 16: a multiple of 8 columns.
        "#]],
    );
}

#[test]
fn tensor_memory() {
    check(
        |k, _| {
            k.threads(128);
            k.warp(0, |w| {
                let small = w.tmem_alloc("small", 16);
                let odd = w.tmem_alloc("odd", 96);
                let most = w.tmem_alloc("most", 256);
                w.tmem_relinquish();
                let more = w.tmem_alloc("more", 512);
                let late = w.tmem_alloc("late", 32);
                for tmem in [small, odd, most, more, late] {
                    w.tmem_dealloc(tmem);
                }
            });
        },
        expect![[r#"
            +4: 16 columns of tensor memory cannot be allocated
                Use a power of two from 32 to 512.
            +5: 96 columns of tensor memory cannot be allocated
                Use a power of two from 32 to 512.
            +8: 512 more columns of tensor memory than the 256 held: an SM has 512
                Allocate fewer columns, or free some first.
            +9: tensor memory is allocated after `tmem_relinquish`
                Give the permit back after the last allocation.
        "#]],
    );
    check(
        |k, _| {
            k.threads(128);
            k.warp(0, |w| {
                let tmem = w.tmem_alloc("accumulator", 64);
                let accumulator = tmem.address(w);
                let _ = accumulator.columns(32, 64);
                let _ = accumulator.columns(0, 0);
                let _ = accumulator.lane(128);
                let _ = accumulator.lane(0).lane(32);
                let _ = w.tmem_load::<32>(accumulator.columns(48, 16));
                w.repeat(4, |w, _| w.tmem_dealloc(tmem));
            });
        },
        expect![[r#"
            +6: 64 columns from column 32 on are not in these 64 columns
                Stay within columns 0 to 63.
            +7: 0 columns from column 0 on are not in these 64 columns
                Stay within columns 0 to 63.
            +8: tensor memory has no lane 128
                Use a lane from 0 to 127.
            +9: the lane is set twice
                Call `lane` once, on the address of the allocation.
            +10: a load of 32 columns from 16 columns of tensor memory
                Load 16 columns or fewer at once.
            +11: tensor memory allocated at +4 is freed in another `repeat` than it was allocated in
                Allocate and free it in the same loop, or both outside of loops.
        "#]],
    );
}

#[test]
fn mma() {
    check(
        |k, gemm| {
            k.threads(128);
            let a = k.tile("A", gemm.dtype, 128, 64, Swizzle::B128);
            let b = k.tile("B", gemm.dtype, 24, 64, Swizzle::B128);
            let c = k.tile("C", Dtype::Bf16, 64, 64, Swizzle::B128);
            let tmem = k.warp(0, |w| w.tmem_alloc("accumulator", 64));
            let sums = tmem.address(k);
            k.warp(0, |w| {
                w.elect_one(|t| {
                    t.mma(sums, a.k_slice(0), b.k_slice(0), false);
                    t.mma(sums, b.k_slice(0), a.k_slice(0), false);
                    t.mma(sums, a.k_slice(0), a.k_slice(0), false);
                    t.mma(sums, a.k_slice(0), c.k_slice(0), false);
                });
                w.tmem_dealloc(tmem);
            });
        },
        expect![[r#"
            +10: an MMA with M = 128 cannot have N = 24, the rows of B's tile
                Use a multiple of 16 rows, up to 256.
            +11: an MMA cannot have M = 24, the rows of A's tile
                Use a tile of 64 or 128 rows.
            +12: an MMA with N = 128 needs 128 columns, and the accumulator has 64
                Give it 128 columns of tensor memory.
            +13: A is f16 and B is bf16
                Use tiles of one type.
        "#]],
    );
}

/// Who judges a kernel decides what a leak is worth, so it can be run nevertheless.
#[test]
fn tensor_memory_that_is_never_freed() {
    let gemm = Gemm::new(128, 128, 64, Dtype::F16, 148);
    let line = line!() + 3;
    let built = ptx::build("kernel", &gemm, |k, _| {
        k.threads(128);
        let tmem = k.warp(0, |w| w.tmem_alloc("accumulator", 128));
        k.sync();
        let _ = tmem.address(k);
    });
    let kernel = built.expect("nothing is refused");
    let [leak] = kernel.leaks.as_slice() else { panic!("{:#?}", kernel.leaks) };
    assert_eq!((leak.place.file, leak.place.line), (file!(), line));
    expect![[r#"
        the 128 columns of tensor memory "accumulator" are never freed
        Give it to `tmem_dealloc` when its last reader is done: columns that a CTA keeps are lost to the CTAs that come after it."#]].assert_eq(&format!("{}\n{}", leak.message, leak.help));
}
