//! The PTX that is written: all of the crate's instructions as golden text, places, addresses.

use expect_test::{expect, expect_file};
use ptx::prelude::*;
use ptx::{SharedAddress, instruction_descriptor, matrix_descriptor, matrix_descriptor_base};
use std::collections::HashMap;

mod ptxas;

fn gemm() -> Gemm {
    Gemm::new(128, 128, 64, Dtype::F16, 148)
}

fn text(body: impl FnOnce(&mut Cta, &Gemm)) -> String {
    ptx::build("kernel", &gemm(), body).unwrap_or_else(|errors| panic!("{errors:#?}")).text
}

/// A kernel that calls every method that writes PTX. It computes nothing.
fn everything(k: &mut Cta, gemm: &Gemm) {
    k.threads(256);
    k.grid(2, 3);
    let a = k.tile("A", Dtype::Bf16, 128, 64, Swizzle::B128);
    let b = k.tile("B", Dtype::Bf16, 64, 64, Swizzle::B128);
    let staging = k.tile("staging", Dtype::F16, 8, 128, Swizzle::None);
    let barrier = k.barrier("barrier");
    let scalar = k.scalar("scalar");
    let stages = k.tile_ring("stages", 3, Dtype::F16, 64, 64, Swizzle::B128);
    let generic = k.barrier_ring("generic", 2);
    let loaded = TmaBarrier::ring(k, "loaded", 3);
    let multiplied = CommitBarrier::new(k, "multiplied");
    let stored = ThreadBarrier::new(k, "stored");

    let tmem = k.warp(7, |w| {
        w.elect_one(|t| {
            t.barrier_init(barrier, 1);
            t.barrier_init(generic, 2);
            t.barrier_init(loaded, 1);
            t.barrier_init(multiplied, 1);
            t.barrier_init(stored, 128);
            t.fence_mbarrier_init();
        });
        let tmem = w.tmem_alloc("accumulator", 256);
        w.tmem_relinquish();
        tmem
    });
    k.sync();
    let accumulator = tmem.address(k);

    let thread = k.thread_index();
    let (warp, lane, x, y) = (k.warp_index(), k.lane_index(), k.cta_x(), k.cta_y());
    let mixed = (thread + 1 - warp) * lane / 3 % 100;
    let bits = ((1 + ((mixed & 0xFF) | (x ^ y))) << 2) >> thread;
    let wide = (7 + bits.to_u64() * 5 / 3 % 1000 - 1) & 0xFFFF_FFFF_FFFF | 1 ^ wide_zero(k);
    let wide = wide << 3 >> lane;
    k.store_shared_u32(scalar, wide.to_u32());
    let compared = (thread.eq(1) | thread.ne(2)) & thread.lt(3) ^ thread.le(4) & !thread.gt(5) | thread.ge(warp);
    let chosen = compared.select(thread, 9);

    let phase: U32 = k.variable(0);
    k.repeat(4, |k, round| {
        k.assign(phase, phase ^ round);
        k.repeat(chosen, |k, _| k.arrive(barrier));
    });
    k.when(compared, |s| {
        let chunk = s.load_global_16(gemm.a.at(thread, 8));
        s.store_shared_16(a.at(thread, 8), chunk);
        s.store_shared_16(a.at(5, chosen), chunk);
        s.store_shared_16(staging.at_linear(chosen, lane), chunk);
        let same = s.load_shared_16(staging.at(7, 120));
        s.store_global_16(gemm.d.at(127, lane), same);
    });
    k.when_uniform(wide.lt(3), |k| k.sync());
    k.fence_proxy_async();
    k.sync();

    k.warpgroup(1, |wg| {
        let _ = (wg.thread_index(), wg.warp_index());
        wg.warp(3, |w| {
            let _ = w.thread_index();
            w.elect_one(|t| {
                t.mma(accumulator, a.k_slice(0), b.k_slice(16), false);
                t.mma(accumulator.columns(64, 64), a.k_slice(48), b.k_slice(0), compared);
                t.commit(barrier);
                t.expect_tx(barrier, a.bytes());
                let (fill, free) = (PipelineState::producer(t, 3), PipelineState::consumer(t, 1));
                let (tile, full) = (stages.at(fill.stage()), loaded.at(fill.stage()));
                t.wait(generic.at(1), free.phase());
                t.expect_tx(full, tile.bytes());
                t.tma_load(tile, &gemm.a, (x * 64, y), full);
                t.tma_load(stages.at(2), &gemm.b, (64, 0), loaded.at(2));
                t.tma_load(staging, &gemm.d, (x, 8), barrier);
                fill.advance(t);
                free.advance(t);
                t.commit(multiplied);
                t.commit_multicast(multiplied, 1);
                t.tma_store(staging, &gemm.d, (x, 0));
                t.tma_store(tile, &gemm.d, (0, y));
                t.bulk_commit();
                t.bulk_wait(1);
                t.bulk_wait_read(0);
            });
        });
        wg.arrive(stored);
        wg.sync_warpgroup(15);
        wg.warp(1, |w| w.sync_warp());
    });
    let (rank, cluster) = (k.cluster_rank(), k.cluster_x());
    k.cluster_sync();
    // Bands of one, of one that is lower than 8, of 8, and with a lower one at the end.
    for (rows, columns) in [(1, 1), (5, 3), (16, 4), (21, 2)] {
        TileScheduler::new(rows, columns, 4).each(k, cluster, |k, row, column| {
            k.when_uniform((row + column).eq(rank), |k| k.sync());
        });
    }
    TileScheduler::new(2, 2, 2).each(k, 1, |k, row, _| k.store_shared_u32(scalar, row));
    k.wait(barrier, 0);
    k.wait(barrier, phase);
    k.tcgen05_fence_after();
    let first = accumulator.lane(warp * 32);
    let sums = k.tmem_load::<8>(first.columns(8, 8));
    let one = k.tmem_load::<1>(first);
    let wide_load = k.tmem_load::<128>(accumulator.lane(32).columns(128, 128));
    k.tmem_wait_load();
    for chunk in k.pack_chunks(Dtype::F16, &sums).into_iter().chain(k.pack_chunks(Dtype::Bf16, &wide_load)) {
        k.store_global_16(gemm.d.at(thread, 0), chunk);
    }
    let number = -(one[0] * 2.0 + 1.0 - sums[0]) / 3.0;
    let small = number.lt(0.5).select(number, 0.5);
    let rounded = k.round(Dtype::Bf16, small);
    k.store_global_b16(gemm.d.at(0, 0), rounded);
    let element = k.load_global_b16(gemm.b.at(3, lane));
    k.store_shared_b16(b.at(3, lane), element);
    let element = k.load_shared_b16(b.at_linear(lane, 5));
    k.store_global_b16(gemm.d.at(1, 1), element);
    let packed = k.pack(Dtype::F16, small, number);
    k.store_shared_u32(scalar, packed.as_u32());
    let number = k.load_shared_u32(scalar);
    let clock: U32 = k.register();
    k.raw("mov.u32", &[&clock, &"%clock"]);
    k.raw("prefetch.global.L2", &[&gemm.a.at(thread, 0)]);
    k.raw("@!%p1 st.shared.b32", &[&scalar, &number.as_b32()]);
    k.raw("mbarrier.inval.shared::cta.b64", &[&barrier]);

    k.tcgen05_fence_before();
    k.sync();
    k.warp(7, |w| w.tmem_dealloc(tmem));
}

/// The same for what a pair of CTAs writes otherwise.
fn everything_of_a_pair(k: &mut Cta, gemm: &Gemm) {
    k.threads(256);
    k.cta_pair();
    k.grid(4, 1);
    let a = k.tile("A", Dtype::F16, 128, 64, Swizzle::B128);
    let b = k.tile_ring("B", 2, Dtype::F16, 64, 64, Swizzle::B128);
    let loaded = TmaBarrier::ring(k, "loaded", 2);
    let multiplied = CommitBarrier::new(k, "multiplied");
    let stored = ThreadBarrier::new(k, "stored");
    let generic = k.barrier("generic");
    k.warp(0, |w| {
        w.elect_one(|t| {
            t.barrier_init(loaded, 1);
            t.barrier_init(multiplied, 1);
            t.barrier_init(stored, 512);
            t.barrier_init(generic, 3);
            t.fence_mbarrier_init();
        });
    });
    k.cluster_sync();
    let tmem = k.warp(1, |w| {
        let tmem = w.tmem_alloc("accumulator", 128);
        w.tmem_relinquish();
        tmem
    });
    k.sync();
    let accumulator = tmem.address(k);
    let (rank, cluster) = (k.cluster_rank(), k.cluster_x());
    k.warp(2, |w| {
        w.elect_one(|t| {
            let at = PipelineState::consumer(t, 2);
            let (mine, leaders) = (loaded.at(at.stage()), loaded.at(at.stage()).of_cta(0));
            t.expect_tx(mine, 16384);
            t.expect_tx(leaders, 16384);
            t.tma_load(a, &gemm.a, (0, rank), mine);
            t.tma_load(b.at(1), &gemm.b, (cluster * 64, 64), leaders);
            t.tma_load(b.at(at.stage()), &gemm.b, (0, 0), generic.of_cta(rank));
            t.wait(mine, at.phase());
            t.mma(accumulator, a.k_slice(16), b.at(0).k_slice(0), true);
            t.commit(multiplied);
            t.commit(multiplied.of_cta(1));
            t.commit_multicast(multiplied, 0b11);
            t.commit_multicast(generic, 0b10);
        });
    });
    k.arrive(stored);
    k.arrive(stored.of_cta(0));
    k.raw("mbarrier.arrive.shared::cluster.b64", &[&"_", &stored.of_cta(1)]);
    k.wait(stored, 0);
    k.cluster_sync();
    k.warp(1, |w| w.tmem_dealloc(tmem));
}

/// The same for Hopper.
fn everything_of_hopper(k: &mut Cta, gemm: &Gemm) {
    k.hopper();
    k.threads(256);
    k.cluster(4);
    k.grid(8, 1);
    let a = k.tile_ring("A", 2, Dtype::F16, 128, 64, Swizzle::B128);
    let b = k.tile("B", Dtype::F16, 64, 64, Swizzle::B128);
    let narrow = k.tile("narrow", Dtype::Bf16, 64, 16, Swizzle::B32);
    let middle = k.tile("middle", Dtype::Bf16, 8, 32, Swizzle::B64);
    let loaded = TmaBarrier::ring(k, "loaded", 2);
    let stored = ThreadBarrier::new(k, "stored");
    k.warp(0, |w| {
        w.elect_one(|t| {
            t.barrier_init(loaded, 1);
            t.barrier_init(stored, 1);
            t.fence_mbarrier_init();
        });
    });
    k.cluster_sync();
    let rank = k.cluster_rank();
    k.warpgroup(0, |wg| {
        wg.give_registers(24);
        wg.warp(0, |w| {
            w.elect_one(|t| {
                let at = PipelineState::producer(t, 2);
                t.expect_tx(loaded.at(at.stage()), 16384);
                t.tma_load_multicast(a.at(0).rows(64, 64), &gemm.a, (0, 64), loaded.at(0), 0b1111);
                let part = a.at(at.stage()).rows(rank * 32, 32);
                t.tma_load_multicast(part, &gemm.a, (64, rank * 32), loaded.at(at.stage()), 0b101);
            });
        });
    });
    k.warpgroup(1, |wg| {
        wg.take_registers(256);
        let (sums, few) = (wg.fragment(64), wg.fragment(8));
        wg.wgmma_fence();
        wg.wgmma(&sums, a.at(1).rows(64, 64).k_slice(32), b.k_slice(32), false);
        wg.wgmma(&sums, a.at(1).rows(64, 64).k_slice(48), b.k_slice(48), rank.gt(0));
        wg.wgmma(&few, narrow.k_slice(0), middle.k_slice(16), true);
        wg.wgmma_commit();
        wg.wgmma_wait(1);
        wg.wgmma_wait(0);
        let [first, second, third, fourth] = sums.block(7);
        let low = wg.pack(Dtype::F16, first, second);
        let high = wg.pack(Dtype::F16, third, fourth);
        let lane = wg.lane_index();
        wg.store_blocks(b.at(lane, 0), [low, high, low, high]);
        wg.arrive(stored.of_cta(3));
    });
    k.cluster_sync();
}

fn wide_zero(k: &mut Cta) -> U64 {
    k.variable(0u64)
}

/// Without places: they are held by another test, and would change here with every line of this file.
fn without_places(text: &str) -> String {
    text.lines().filter(|line| !line.trim_start().starts_with(".loc ")).map(|line| line.to_string() + "\n").collect()
}

#[test]
fn every_instruction() {
    let text = text(everything);
    expect_file!["golden/everything.ptx"].assert_eq(&without_places(&text));
    ptxas::assemble("everything", &text);
    let text = self::text(everything_of_a_pair);
    expect_file!["golden/everything_of_a_pair.ptx"].assert_eq(&without_places(&text));
    ptxas::assemble("everything_of_a_pair", &text);
    let text = self::text(everything_of_hopper);
    expect_file!["golden/everything_of_hopper.ptx"].assert_eq(&without_places(&text));
    ptxas::assemble("everything_of_hopper", &text);
}

/// The parameters of a launch: pointers in the order of the matrices, then a tensor map for each shape of box.
#[test]
fn parameters() {
    let kernel = ptx::build("kernel", &gemm(), everything).unwrap_or_else(|errors| panic!("{errors:#?}"));
    let params: Vec<String> = kernel.params.iter().map(|param| format!("{param:?}")).collect();
    expect![[r#"
        Pointer("A")
        Pointer("B")
        Pointer("D")
        TensorMap(TensorMap { matrix: "A", box_rows: 64, box_columns: 64, swizzle: B128, name: "A_map" })
        TensorMap(TensorMap { matrix: "B", box_rows: 64, box_columns: 64, swizzle: B128, name: "B_map" })
        TensorMap(TensorMap { matrix: "D", box_rows: 8, box_columns: 128, swizzle: None, name: "D_map" })
        TensorMap(TensorMap { matrix: "D", box_rows: 64, box_columns: 64, swizzle: B128, name: "D_map_2" })"#]]
    .assert_eq(&params.join("\n"));
}

/// A kernel with every TODO open is still a kernel.
#[test]
fn todos_assemble() {
    let text = text(|k, _| {
        k.threads(128);
        k.warp(0, |w| w.elect_one(|t| t.todo("1.3")));
        k.todo("1.4");
    });
    assert!(text.contains("// TODO 1.3") && text.contains("// TODO 1.4"), "{text}");
    ptxas::assemble("todos", &text);
}

/// Each instruction with the line of its `.loc`, counted from `begin`.
fn located(text: &str, begin: u32) -> Vec<(u32, String)> {
    let mut line = 0;
    let mut found = Vec::new();
    for text in text.lines().skip_while(|line| *line != "{").map(str::trim) {
        if let Some(loc) = text.strip_prefix(".loc 1 ") {
            line = loc.split(' ').next().and_then(|line| line.parse().ok()).expect("a line number");
        } else if line > 0 && text.ends_with(';') && text != "ret;" {
            found.push((line - begin, text.split([' ', ';']).next().unwrap_or_default().to_string()));
        }
    }
    found
}

#[test]
fn instructions_carry_the_line_of_their_call() {
    let begin = line!();
    let text = text(|k, gemm| {
        k.threads(128);
        let full = k.barrier("full");
        let thread = k.thread_index();
        k.repeat(2, |k, round| {
            let row = thread + round;
            k.warp(0, |w| {
                w.elect_one(|t| t.barrier_init(full, 1));
            });
            let address = gemm.a.at(row, 0);
            let _ = k.load_global_16(address);
        });
        k.wait(full, 0);
    });
    assert!(text.contains(&format!(".file 1 \"{}\"", file!())), "{text}");
    #[rustfmt::skip]
    let expected = [
        (4, "mov.u32"),
        (5, "mov.u32"),
        (6, "add.u32"),
        (7, "mov.u32"), (7, "shr.u32"), (7, "setp.ne.u32"), (7, "@%p1"),
        (8, "elect.sync"), (8, "@!%p2"), (8, "mbarrier.init.shared::cta.b64"),
        (10, "ld.param.u64"), (10, "mad.wide.u32"),
        (11, "ld.global.v4.b32"),
        (5, "add.u32"), (5, "setp.lt.u32"), (5, "@%p3"),
        (13, "mbarrier.try_wait.parity.shared::cta.b64"), (13, "@!%p4"),
    ];
    assert_eq!(located(&text, begin), expected.map(|(line, opcode)| (line, opcode.to_string())), "{text}");
}

#[test]
fn descriptors_of_the_isa() {
    assert_eq!(instruction_descriptor(Dtype::F16, 128, 128), 0x0820_0010);
    assert_eq!(instruction_descriptor(Dtype::Bf16, 128, 256), 0x0840_0490);
    assert_eq!(instruction_descriptor(Dtype::F16, 64, 8), 0x0402_0010);
    assert_eq!(matrix_descriptor_base(Swizzle::B128), 0x4000_4040_0000_0000);
    assert_eq!(matrix_descriptor_base(Swizzle::B64), 0x8000_4020_0000_0000);
    assert_eq!(matrix_descriptor_base(Swizzle::B32), 0xC000_4010_0000_0000);
    assert_eq!(matrix_descriptor(0x0001_C020, Swizzle::B128), 0x4000_4040_0000_1C02);
    // The rank of the CTA in its cluster, in the upper bits of an address, is no part of it.
    assert_eq!(matrix_descriptor(0x0300_0400, Swizzle::B128), 0x4000_4040_0000_0040);
}

/// What the swizzle does to a byte address (PTX ISA 9.7.16.3.3): bits 4 and up are XORed with bits 7 and up.
fn swizzled(linear: u32, swizzle: Swizzle) -> u32 {
    let mask = match swizzle {
        Swizzle::None => 0,
        Swizzle::B32 => 1,
        Swizzle::B64 => 3,
        Swizzle::B128 => 7,
    };
    linear ^ ((linear >> 7 & mask) << 4)
}

/// Runs straight-line integer PTX, with the dynamic shared memory at `base`, up to the first store, and gives the
/// store's address.
fn run(text: &str, inputs: &HashMap<String, u32>, base: u32) -> u32 {
    let mut registers = inputs.clone();
    let mut known = false;
    for line in text.lines().map(|line| line.trim().trim_end_matches(';')) {
        let words: Vec<&str> = line.split([' ', ',']).filter(|word| !word.is_empty()).collect();
        // What lies before the first input is the kernel's head.
        known |= words.get(1).is_some_and(|to| inputs.contains_key(*to));
        let value = |word: &str| match word.strip_prefix("dynamic_shared") {
            Some(rest) => base + rest.strip_prefix('+').map_or(0, |offset| offset.parse::<u32>().expect("an offset")),
            None => registers.get(word).copied().unwrap_or_else(|| word.parse().unwrap_or_else(|_| panic!("{line}"))),
        };
        let result = match words[..] {
            _ if !known => continue,
            ["mov.u32", to, _] if inputs.contains_key(to) => continue,
            ["mov.u32", _, from] => value(from),
            ["mad.lo.u32", _, a, b, c] => value(a) * value(b) + value(c),
            ["shl.b32", _, a, b] => value(a) << value(b),
            ["and.b32", _, a, b] => value(a) & value(b),
            ["xor.b32", _, a, b] => value(a) ^ value(b),
            ["add.u32", _, a, b] => value(a) + value(b),
            ["st.shared.b16", address, _] => {
                let (register, offset) = address.trim_matches(['[', ']']).split_once('+').unwrap_or((address, "0"));
                return value(register.trim_matches(['[', ']'])) + offset.parse::<u32>().expect("an offset");
            }
            _ => continue,
        };
        registers.insert(words[1].to_string(), result);
    }
    panic!("no store in\n{text}");
}

/// A constant address and the code that computes one from registers agree with the ISA's swizzle, everywhere.
#[test]
fn tiles_are_swizzled() {
    let base = 0x400;
    for (swizzle, columns) in [(Swizzle::B128, 64), (Swizzle::B64, 32), (Swizzle::B32, 16), (Swizzle::None, 24)] {
        let build = |place: &dyn Fn(&Tile, U32, U32) -> SharedAddress| {
            text(|k, gemm| {
                k.threads(128);
                let _ = k.tile("before", gemm.dtype, 8, 64, Swizzle::B128);
                let tile = k.tile("tile", gemm.dtype, 16, columns, swizzle);
                let element = k.load_global_b16(gemm.a.at(0, 0));
                let (row, column) = (k.thread_index(), k.lane_index());
                k.store_shared_b16(place(&tile, row, column), element);
            })
        };
        let both = build(&|tile, row, column| tile.at(row, column));
        let linear = build(&|tile, row, column| tile.at_linear(row, column));
        for row in 0..16 {
            for column in 0..columns {
                let expected = base + 1024 + swizzled((row * columns + column) * 2, swizzle);
                let inputs = HashMap::from([("%r1".to_string(), row), ("%r2".to_string(), column)]);
                let at = format!("{swizzle:?}, row {row}, column {column}");
                assert_eq!(run(&both, &inputs, base), expected, "{at} in registers:\n{both}");
                let unswizzled = base + 1024 + (row * columns + column) * 2;
                assert_eq!(run(&linear, &inputs, base), unswizzled, "{at}, linear:\n{linear}");
            }
        }
        for (row, column) in [(0, 0), (3, 10), (7, columns - 1), (15, 8)] {
            let expected = base + 1024 + swizzled((row * columns + column) * 2, swizzle);
            let inputs = HashMap::from([("%r1".to_string(), row), ("%r2".to_string(), column)]);
            for text in [
                build(&|tile, _, _| tile.at(row, column)),
                build(&|tile, row, _| tile.at(row, column)),
                build(&|tile, _, column| tile.at(row, column)),
            ] {
                let found = match text.split_once("st.shared.b16 [dynamic_shared+") {
                    Some((_, rest)) => {
                        base + rest[..rest.find(']').expect("a bracket")].parse::<u32>().expect("an offset")
                    }
                    None => run(&text, &inputs, base),
                };
                assert_eq!(found, expected, "{swizzle:?}, row {row}, column {column}:\n{text}");
            }
        }
    }
}

/// Building is repeatable: the text is the same each time.
#[test]
fn building_is_repeatable() {
    assert_eq!(text(everything), text(everything));
}
