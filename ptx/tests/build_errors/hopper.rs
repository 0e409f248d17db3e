//! Hopper, clusters without pairs, parts of tiles.

use super::check;
use expect_test::expect;
use ptx::prelude::*;

#[test]
fn blackwell_in_a_kernel_for_hopper() {
    check(
        |k, _| {
            k.hopper();
            k.threads(128);
            k.hopper();
            k.cta_pair();
            let tmem = k.warp(0, |w| w.tmem_alloc("accumulator", 32));
            k.warp(0, |w| w.tmem_dealloc(tmem));
            k.hopper();
        },
        expect![[r#"
            +4: Hopper is asked for twice
                Call `hopper` once, at the start of the kernel.
            +5: a CTA pair: Hopper has no `tcgen05`
                Use `wgmma`, or leave `k.hopper()` out.
            +6: tensor memory is allocated: Hopper has no `tcgen05`
                Use `wgmma`, or leave `k.hopper()` out.
            +8: Hopper is asked for twice
                Call `hopper` once, at the start of the kernel.
        "#]],
    );
}

#[test]
fn hopper_in_a_kernel_for_blackwell() {
    check(
        |k, _| {
            k.threads(128);
            k.grid(2, 1);
            let (a, b) = tiles(k);
            k.warpgroup(0, |wg| {
                let sums = wg.fragment(64);
                wg.wgmma_fence();
                wg.wgmma(&sums, a.k_slice(0), b.k_slice(0), false);
                wg.wgmma_commit();
                wg.wgmma_wait(0);
            });
            k.hopper();
        },
        expect![[r#"
            +7: a fence of `wgmma`: `wgmma` is Hopper's alone
                Use `mma`, or begin the kernel with `k.hopper()`.
            +8: a step of the tensor core: `wgmma` is Hopper's alone
                Use `mma`, or begin the kernel with `k.hopper()`.
            +8: a `wgmma` takes 64 rows of A, and the slice has 128
                Take 64 rows of the tile: `tile.rows(0, 64)`.
            +9: a group of `wgmma`: `wgmma` is Hopper's alone
                Use `mma`, or begin the kernel with `k.hopper()`.
            +10: a wait for `wgmma`: `wgmma` is Hopper's alone
                Use `mma`, or begin the kernel with `k.hopper()`.
            +12: Hopper is asked for after the first instruction
                Call `hopper` at the start of the kernel.
        "#]],
    );
}

#[test]
fn shapes_of_wgmma() {
    check(
        |k, _| {
            k.hopper();
            k.threads(128);
            let (a, b) = tiles(k);
            let other = k.tile("other", Dtype::Bf16, 64, 64, Swizzle::B128);
            k.warpgroup(0, |wg| {
                let _refused = (wg.fragment(0), wg.fragment(12), wg.fragment(264));
                let sums = wg.fragment(64);
                let _no_block = sums.block(8);
                let wide = wg.fragment(128);
                let whole = a.k_slice(0);
                wg.wgmma(&wide, whole, b.k_slice(0), false);
                wg.wgmma(&sums, other.k_slice(0), b.k_slice(0), false);
                wg.take_registers(20);
                wg.give_registers(257);
            });
        },
        expect![[r#"
            +7: a `wgmma` cannot have 0 columns
                Use a multiple of 8 columns, up to 256.
            +7: a `wgmma` cannot have 12 columns
                Use a multiple of 8 columns, up to 256.
            +7: a `wgmma` cannot have 264 columns
                Use a multiple of 8 columns, up to 256.
            +9: the sums have no columns 64 and up
                Use a block up to 7.
            +12: a `wgmma` takes 64 rows of A, and the slice has 128
                Take 64 rows of the tile: `tile.rows(0, 64)`.
            +12: the slice of B has 64 rows, and the sums have 128 columns
                Give the sums as many columns as B's tile has rows.
            +13: A is bf16 and B is f16
                Use tiles of one type.
            +14: a thread cannot be given 20 registers
                Use a multiple of 8 from 24 to 256 (PTX ISA, `setmaxnreg`).
            +15: a thread cannot be given 257 registers
                Use a multiple of 8 from 24 to 256 (PTX ISA, `setmaxnreg`).
        "#]],
    );
}

#[test]
fn rows_of_a_tile() {
    check(
        |k, _| {
            k.threads(128);
            let (a, _) = tiles(k);
            let plain = k.tile("plain", Dtype::F16, 12, 64, Swizzle::None);
            let _right = (a.rows(120, 8), a.rows(0, 128), plain.rows(3, 9));
            let row = k.thread_index();
            for refused in
                [a.rows(0, 0), a.rows(64, 72), a.rows(4, 8), a.rows(8, 12), a.rows(row, 136), plain.rows(4, 9)]
            {
                // What was refused is not refused again.
                let _nothing = refused.k_slice(0);
            }
        },
        expect![[r#"
            +8: tile "A" has no 0 rows from row 0 on that are a tile: it has 128 rows
                Use multiples of 8 rows, as many as there are.
            +8: tile "A" has no 72 rows from row 64 on that are a tile: it has 128 rows
                Use multiples of 8 rows, as many as there are.
            +8: tile "A" has no 8 rows from row 4 on that are a tile: it has 128 rows
                Use multiples of 8 rows, as many as there are.
            +8: tile "A" has no 12 rows from row 8 on that are a tile: it has 128 rows
                Use multiples of 8 rows, as many as there are.
            +8: tile "A" has no 136 rows from any row on that are a tile: it has 128 rows
                Use multiples of 8 rows, as many as there are.
            +8: tile "plain" has no 9 rows from row 4 on that are a tile: it has 12 rows
                Use multiples of 8 rows, as many as there are.
        "#]],
    );
}

#[test]
fn clusters() {
    check(
        |k, _| {
            k.threads(128);
            let full = TmaBarrier::new(k, "full");
            k.warp(0, |w| w.elect_one(|t| t.expect_tx(full.of_cta(0), 16)));
        },
        expect![[r#"
            +4: this kernel has no clusters
                Make a pair of the CTAs: `k.cta_pair()`, or `k.cluster(2)`.
        "#]],
    );
    check(
        |k, gemm| {
            k.threads(128);
            k.cluster(9);
            k.cluster(0);
            k.cluster(4);
            k.cluster(2);
            k.grid(6, 1);
            let (a, _) = tiles(k);
            let full = TmaBarrier::new(k, "full");
            k.warp(0, |w| {
                w.elect_one(|t| {
                    t.expect_tx(full.of_cta(4), 16384);
                    t.tma_load(a, &gemm.a, (0, 0), full.of_cta(1));
                    t.tma_load_multicast(a, &gemm.a, (0, 0), full, 0);
                    t.tma_load_multicast(a, &gemm.a, (0, 0), full, 0b10000);
                    t.tma_load_multicast(a, &gemm.a, (0, 0), full.of_cta(1), 0b11);
                });
            });
            k.cluster(4);
        },
        expect![[r#"
            +3: a cluster cannot have 9 CTAs
                Use 1 to 8: what every GPU with clusters has room for.
            +4: a cluster cannot have 0 CTAs
                Use 1 to 8: what every GPU with clusters has room for.
            +6: the cluster is set twice
                Call `cluster` once, at the start of the kernel.
            +12: the cluster has no CTA of rank 4
                Use a rank from 0 to 3.
            +13: a load tells a barrier of another CTA, which only a CTA pair can
                Use the barrier of this CTA, `tma_load_multicast`, or `k.cta_pair()`.
            +14: 0b0 is not a mask of CTAs of this cluster
                Use a mask of the CTAs that the cluster has: 0b1111 is all of them.
            +15: 0b10000 is not a mask of CTAs of this cluster
                Use a mask of the CTAs that the cluster has: 0b1111 is all of them.
            +16: a multicast names a barrier of another CTA
                Use the barrier of this CTA, without `of_cta`: its own CTA makes a barrier and waits for it.
            +19: the cluster is set twice
                Call `cluster` once, at the start of the kernel.
            +7: a grid of 6 x 1 CTAs is not made of clusters of 4
                Give `k.grid` a multiple of 4 in x.
        "#]],
    );
}

fn tiles(k: &mut Cta) -> (Tile, Tile) {
    let a = k.tile("A", Dtype::F16, 128, 64, Swizzle::B128);
    (a, k.tile("B", Dtype::F16, 64, 64, Swizzle::B128))
}
