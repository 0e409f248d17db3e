//! What is refused while building: the message, the way out, and the line of the call.

use expect_test::{Expect, expect};
use ptx::prelude::*;

/// The errors, one a block, with places as lines after the call of this function.
#[track_caller]
fn check(body: impl FnOnce(&mut Cta, &Gemm), expected: Expect) {
    let begin = std::panic::Location::caller().line();
    let gemm = Gemm::new(128, 128, 64, Dtype::F16, 148);
    let errors = match ptx::build("kernel", &gemm, body) {
        Err(errors) => errors,
        Ok(kernel) => panic!("built without an error:\n{}", kernel.text),
    };
    let mut text = String::new();
    for error in errors {
        assert!(error.place.file.ends_with("build_errors.rs"), "{error}");
        let (line, message) = (error.place.line - begin, relative(&error.message, begin));
        text += &format!("+{line}: {message}\n    {}\n", error.help);
    }
    expected.assert_eq(&text);
}

/// The message with a place in this file written as lines after `begin`.
fn relative(message: &str, begin: u32) -> String {
    let Some((before, place)) = message.split_once(file!()) else { return message.to_string() };
    let number = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
    let line = number(&place[1..]);
    let column = number(&place[2 + line.len()..]);
    let after = &place[2 + line.len() + column.len()..];
    format!("{before}+{}{after}", line.parse::<u32>().expect("a line number") - begin)
}

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

#[test]
fn barriers() {
    check(
        |k, _| {
            k.threads(128);
            let full = k.barrier("full");
            k.warp(0, |w| {
                w.elect_one(|t| {
                    t.barrier_init(full, 0);
                    t.barrier_init(full, 1 << 20);
                    t.expect_tx(full, 1 << 20);
                });
            });
            k.wait(full, 2);
        },
        expect![[r#"
            +6: an mbarrier cannot count 0 arrivals
                Use the number of arrivals of a phase, from 1 to 1048575.
            +7: an mbarrier cannot count 1048576 arrivals
                Use the number of arrivals of a phase, from 1 to 1048575.
            +8: a phase of an mbarrier cannot expect 1048576 bytes
                Use the bytes that the copies of the phase bring, from 1 to 1048575.
            +11: 2 is not a parity
                Use 0 for the first, third, fifth phase, 1 for the others.
        "#]],
    );
}

#[test]
fn rings() {
    check(
        |k, gemm| {
            k.threads(128);
            let tiles = k.tile_ring("A", 3, gemm.dtype, 128, 64, Swizzle::B128);
            let full = TmaBarrier::ring(k, "full", 3);
            let _ = tiles.at(3).k_slice(0);
            let stage = k.thread_index();
            let _ = tiles.at(stage).k_slice(64);
            k.wait(full.at(7), 0);
            k.tile_ring("B", 13, gemm.dtype, 128, 64, Swizzle::B128);
            k.barrier_ring("A", 2);
            let _ = PipelineState::consumer(k, 0);
        },
        expect![[r#"
            +5: stage 3 of "A" does not exist: it has 3 stages
                Use a stage from 0 to 2.
            +7: tile "A" has no 16 columns that an MMA can take from column 64 on: it has 64 columns
                Use a multiple of 16, up to 48.
            +8: stage 7 of "full" does not exist: it has 3 stages
                Use a stage from 0 to 2.
            +9: tile "B" of 128 x 64 f16 (13 stages) needs 212992 bytes of shared memory, and 182272 of the CTA's 232448 are left
                Use smaller tiles or fewer stages; declare tiles first, since each begins on a multiple of 1024.
            +10: the name "A" is used twice, first at +3
                Give every tile, barrier, scalar and allocation a name of its own: messages go by them.
            +11: a ring of 0 stages
                Use 1 stage or more.
        "#]],
    );
}

/// Whatever is done with a ring that was refused, for any number of stages.
#[test]
fn refused_rings() {
    check(
        |k, gemm| {
            k.threads(128);
            let none = k.tile_ring("none", 0, gemm.dtype, 128, 64, Swizzle::B128);
            let many = k.tile_ring("many", u32::MAX, gemm.dtype, 128, 64, Swizzle::B128);
            let huge = k.tile_ring("huge", 2, gemm.dtype, u32::MAX - 7, 64, Swizzle::B128);
            let barriers = k.barrier_ring("barriers", u32::MAX);
            let commits = CommitBarrier::ring(k, "commits", 0);
            let stage: U32 = k.variable(0);
            for ring in [none, many, huge] {
                let _ = (ring.at(0).at(0, 0), ring.at(u32::MAX - 1).k_slice(0), ring.at(stage).at(stage, 0));
                for stage in 0..ring.stages() {
                    let _ = ring.at(stage);
                }
            }
            k.warp(0, |w| {
                w.elect_one(|t| {
                    t.barrier_init(barriers, 1);
                    t.barrier_init(commits, 1);
                    t.commit(commits.at(u32::MAX));
                    t.tma_load(many.at(5), &gemm.a, (0, 0), barriers.at(5));
                    t.tma_store(huge.at(stage), &gemm.a, (0, 0));
                });
            });
            k.wait(barriers.at(stage), 0);
        },
        expect![[r#"
            +3: tile "none" of 128 x 64 f16 has 0 stages
                Use 1 stage or more.
            +4: tile "many" of 128 x 64 f16 (4294967295 stages) needs 70368744161280 bytes of shared memory, and 232448 of the CTA's 232448 are left
                Use smaller tiles or fewer stages; declare tiles first, since each begins on a multiple of 1024.
            +5: tile "huge" of 4294967288 x 64 f16 (2 stages) needs 1099511625728 bytes of shared memory, and 232448 of the CTA's 232448 are left
                Use smaller tiles or fewer stages; declare tiles first, since each begins on a multiple of 1024.
            +6: barrier "barriers" (4294967295 stages) needs 34359738360 bytes of shared memory, and 232448 of the CTA's 232448 are left
                Use smaller tiles or fewer stages; declare tiles first, since each begins on a multiple of 1024.
            +7: barrier "commits" has 0 stages
                Use 1 stage or more.
        "#]],
    );
}

#[test]
fn tiles_dealt_out() {
    check(
        |k, _| {
            k.threads(128);
            for tiles in [
                TileScheduler::new(0, 4, 4),
                TileScheduler::new(4, 0, 4),
                TileScheduler::new(4, 4, 0),
                TileScheduler::new(u32::MAX, u32::MAX, u32::MAX),
                TileScheduler::new(1 << 16, 1 << 16, 1),
                TileScheduler::new(1, 1, u32::MAX),
            ] {
                tiles.each(k, 0, |k, _, _| k.sync());
            }
            TileScheduler::new(2, 2, 4).each(k, 4, |k, _, _| k.sync());
        },
        expect![[r#"
            +4: 0 x 4 tiles cannot be dealt out to 4 workers
                Use 1 or more of each, tiles and workers together at most 4294967295.
            +5: 4 x 0 tiles cannot be dealt out to 4 workers
                Use 1 or more of each, tiles and workers together at most 4294967295.
            +6: 4 x 4 tiles cannot be dealt out to 0 workers
                Use 1 or more of each, tiles and workers together at most 4294967295.
            +7: 4294967295 x 4294967295 tiles cannot be dealt out to 4294967295 workers
                Use 1 or more of each, tiles and workers together at most 4294967295.
            +8: 65536 x 65536 tiles cannot be dealt out to 1 workers
                Use 1 or more of each, tiles and workers together at most 4294967295.
            +9: 1 x 1 tiles cannot be dealt out to 4294967295 workers
                Use 1 or more of each, tiles and workers together at most 4294967295.
            +13: worker 4 does not exist: tiles are dealt out to 4
                Use a worker from 0 to 3.
        "#]],
    );
}

#[test]
fn tma() {
    let unaligned = Gemm::new(128, 128, 60, Dtype::F16, 148);
    check(
        |k, gemm| {
            k.threads(128);
            let a = k.tile("A", gemm.dtype, 128, 64, Swizzle::B128);
            let other = k.tile("other", Dtype::Bf16, 128, 64, Swizzle::B128);
            let tall = k.tile("tall", gemm.dtype, 264, 64, Swizzle::B128);
            let wide = k.tile("wide", gemm.dtype, 8, 264, Swizzle::None);
            let full = TmaBarrier::new(k, "full");
            k.warp(0, |w| {
                w.elect_one(|t| {
                    t.tma_load(other, &gemm.a, (0, 0), full);
                    t.tma_load(a, &unaligned.a, (0, 0), full);
                    t.tma_store(tall, &gemm.d, (0, 0));
                    t.tma_store(wide, &gemm.d, (0, 0));
                    t.tma_load(a, &gemm.a, (4, 0), full);
                    t.tma_store(a, &gemm.d, (0, 1 << 31));
                    t.expect_tx(full, 0);
                });
            });
        },
        expect![[r#"
            +10: tile "other" holds bf16, and matrix A f16
                Make the tile of the matrix's type.
            +11: rows of matrix A have 120 bytes: a tensor map needs a multiple of 16
                Use a multiple of 8 columns.
            +12: tile "tall" has 264 x 64 elements: a box of TMA has at most 256 in each direction
                Move it in several boxes, or use a smaller tile.
            +13: tile "wide" has 8 x 264 elements: a box of TMA has at most 256 in each direction
                Move it in several boxes, or use a smaller tile.
            +14: a box of TMA cannot begin at column 4 of matrix A: byte 8, not a multiple of 16
                Use a multiple of 8 columns.
            +15: TMA has no row 2147483648: it counts in signed 32-bit integers
                Use a row of matrix D.
            +16: a phase of an mbarrier cannot expect 0 bytes
                Use the bytes that the copies of the phase bring, from 1 to 1048575.
        "#]],
    );
}

#[test]
fn barrier_of_a_warpgroup() {
    check(
        |k, _| {
            k.threads(128);
            k.warpgroup(0, |wg| {
                wg.sync_warpgroup(0);
                wg.sync_warpgroup(16);
            });
        },
        expect![[r#"
            +4: a warpgroup cannot meet at barrier 0
                Use a number from 1 to 15, another one for each warpgroup.
            +5: a warpgroup cannot meet at barrier 16
                Use a number from 1 to 15, another one for each warpgroup.
        "#]],
    );
}

#[test]
fn pairs_of_ctas() {
    check(
        |k, _| {
            k.threads(128);
            let done = k.barrier("done");
            k.wait(done, 0);
            k.cta_pair();
            k.grid(3, 2);
        },
        expect![[r#"
            +5: the CTA pair is asked for after the first instruction
                Call `cta_pair` at the start of the kernel: waits, arrivals and MMAs differ in a pair.
            +6: a grid of 3 x 2 CTAs is not made of pairs
                Give `k.grid` a multiple of 2 in x.
        "#]],
    );
    check(
        |k, _| {
            k.threads(128);
            k.cta_pair();
            k.cta_pair();
        },
        expect![[r#"
            +4: the CTA pair is asked for twice
                Call `cta_pair` once, at the start of the kernel.
            +2: a grid of 1 x 1 CTAs is not made of pairs
                Give `k.grid` a multiple of 2 in x.
        "#]],
    );
    check(
        |k, _| {
            k.threads(128);
            k.cta_pair();
            k.grid(0, 1);
        },
        expect![[r#"
            +4: a grid cannot have 0 x 1 CTAs
                Use 1 or more in both directions, and at most 65535 in y.
        "#]],
    );
    check(
        |k, gemm| {
            k.threads(128);
            let (full, done) = (TmaBarrier::new(k, "full"), k.barrier("done"));
            let a = k.tile("A", gemm.dtype, 128, 64, Swizzle::B128);
            let theirs = full.of_cta(0);
            k.warp(0, |w| {
                w.elect_one(|t| {
                    t.tma_load(a, &gemm.a, (0, 0), theirs);
                    t.commit_multicast(done, 0b11);
                });
            });
        },
        expect![[r#"
            +5: this kernel has no clusters
                Make a pair of the CTAs: `k.cta_pair()`.
            +9: the mask 0b11 does not name CTAs of the cluster
                Use a mask of the CTAs that the cluster has: 0b1 is all of them.
        "#]],
    );
    check(
        |k, gemm| {
            k.threads(128);
            k.cta_pair();
            k.grid(2, 1);
            let a = k.tile("A", gemm.dtype, 128, 64, Swizzle::B128);
            let b = k.tile("B", gemm.dtype, 136, 64, Swizzle::B128);
            let done = CommitBarrier::new(k, "done");
            let refused = CommitBarrier::new(k, "done");
            let tmem = k.warp(0, |w| w.tmem_alloc("accumulator", 128));
            let sums = tmem.address(k);
            let theirs = done.of_cta(1);
            k.wait(theirs, 0);
            let _ = done.of_cta(2);
            let _ = refused.of_cta(1);
            k.warp(0, |w| {
                w.elect_one(|t| {
                    t.barrier_init(theirs, 1);
                    t.commit_multicast(done, 0);
                    t.commit_multicast(done, 0b100);
                    t.mma(sums, b.k_slice(0), a.k_slice(0), false);
                    t.mma(sums, a.k_slice(0), b.k_slice(0), false);
                    t.mma(sums, a.k_slice(0), a.k_slice(0), false);
                });
                w.tmem_dealloc(tmem);
            });
        },
        expect![[r#"
            +8: the name "done" is used twice, first at +7
                Give every tile, barrier, scalar and allocation a name of its own: messages go by them.
            +12: this waits for a barrier of another CTA
                Use the barrier of this CTA, without `of_cta`: its own CTA makes a barrier and waits for it.
            +13: a pair has no CTA of rank 2
                Use rank 0, the leader's, or 1.
            +17: this makes a barrier of another CTA
                Use the barrier of this CTA, without `of_cta`: its own CTA makes a barrier and waits for it.
            +18: the mask 0b0 does not name CTAs of the cluster
                Use a mask of the CTAs that the cluster has: 0b11 is all of them.
            +19: the mask 0b100 does not name CTAs of the cluster
                Use a mask of the CTAs that the cluster has: 0b11 is all of them.
            +20: an MMA cannot have M = 272, twice the rows of A's tile
                Use a tile of 64 or 128 rows.
            +21: an MMA with M = 256 cannot have N = 272, twice the rows of B's tile
                Use a multiple of 8 rows, up to 128.
            +22: an MMA with N = 256 needs 256 columns, and the accumulator has 128
                Give it 256 columns of tensor memory.
        "#]],
    );
}

/// Refused before the kernel's function is run: it need not think of it.
#[test]
fn empty_problems() {
    for (m, n, k, sms) in [(0, 128, 64, 148), (128, 0, 64, 148), (128, 128, 0, 148), (128, 128, 64, 0)] {
        let gemm = Gemm::new(m, n, k, Dtype::F16, sms);
        let line = line!() + 1;
        let errors = ptx::build("kernel", &gemm, |_, _| unreachable!()).expect_err("it is refused");
        let [error] = errors.as_slice() else { panic!("{errors:?}") };
        assert_eq!((error.place.file, error.place.line), (file!(), line));
        let problem = format!("there is nothing to compute in a problem of {m}x{n}x{k} f16 on {sms} SMs");
        assert_eq!(
            (error.message.as_str(), error.help.as_str()),
            (&*problem, "Use 1 or more for M, N, K and the SMs.")
        );
    }
}

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
