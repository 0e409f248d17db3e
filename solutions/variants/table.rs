/// Name, step, and what is replaced by what.
type Variant = (&'static str, u8, &'static [(&'static str, &'static str)]);

/// The variants with a mistake, or with another number of bytes.
const CHANGED: &[Variant] = &[
    ("bytes_of_one_tile", 4, &[("t.expect_tx(tma2mma, a.bytes() + b.bytes());", "t.expect_tx(tma2mma, a.bytes());")]),
    (
        "bytes_of_three_tiles",
        4,
        &[("t.expect_tx(tma2mma, a.bytes() + b.bytes());", "t.expect_tx(tma2mma, 2 * a.bytes() + b.bytes());")],
    ),
    (
        "producer_begins_with_phase_0",
        7,
        &[("let at = PipelineState::producer(t, PIPE_DEPTH);", "let at = PipelineState::consumer(t, PIPE_DEPTH);")],
    ),
    (
        "accumulator_begins_with_phase_0",
        7,
        &[("let free = PipelineState::producer(t, 1);", "let free = PipelineState::consumer(t, 1);")],
    ),
    ("stage_never_freed", 7, &[("t.commit(mma2tma.at(s));", "")]),
];

/// The steps that are recorded at several depths, and the deepest of them.
const DEEP: [u8; 2] = [5, 7];
const DEEPEST: u32 = 8;
/// So that the deepest ring fits into shared memory, tiles of B are half as wide.
const NARROW: (&str, &str) = ("const BLK_N: u32 = 128;", "const BLK_N: u32 = 64;");
const DEPTH: &str = "const PIPE_DEPTH: u32 = 2;";

/// What the answers of the exercises do to a solution. They are run by the book's tests, which hold the numbers of the answers against them.
const ANSWERS: &[Variant] = &[
    (
        "pieces_1",
        1,
        &[(
            "    let sums = k.tmem_load::<{ BLK_N as usize }>(accumulator.lane(row / 32 * 32));
    k.tmem_wait_load();
    for (chunk, column) in k.pack_chunks(gemm.dtype, &sums).into_iter().zip((0..).step_by(CHUNK as usize)) {
        k.store_global_16(gemm.d.at(row, column), chunk);
    }",
            "    for part in 0..4 {
        let sums = k.tmem_load::<32>(accumulator.columns(part * 32, 32).lane(row / 32 * 32));
        k.tmem_wait_load();
        let columns = (part * 32..).step_by(CHUNK as usize);
        for (chunk, column) in k.pack_chunks(gemm.dtype, &sums).into_iter().zip(columns) {
            k.store_global_16(gemm.d.at(row, column), chunk);
        }
    }",
        )],
    ),
    (
        "one_waits_2",
        2,
        &[("k.wait(mma_done, round & 1);", "k.warp(0, |w| w.elect_one(|t| t.wait(mma_done, round & 1))); k.sync();")],
    ),
    (
        "ahead_2",
        2,
        &[
            ("let k_start = round * BLK_K;", "let k_start = round * BLK_K; let mut chunks = Vec::new();"),
            (
                "k.store_shared_16(a.at(row, column), from_a);
            k.store_shared_16(b.at(row, column), from_b);
        }",
                "chunks.push((row, from_a, from_b));
        }
        k.wait(mma_done, (round + 1) & 1);
        for (row, from_a, from_b) in chunks {
            k.store_shared_16(a.at(row, column), from_a);
            k.store_shared_16(b.at(row, column), from_b);
        }",
            ),
            ("        k.wait(mma_done, round & 1);\n", ""),
            (
                "    k.tcgen05_fence_after();\n",
                "    k.wait(mma_done, (gemm.tiles_k(BLK_K) - 1) & 1);\n    k.tcgen05_fence_after();\n",
            ),
        ],
    ),
    ("meets_behind_2", 2, &[("k.wait(mma_done, round & 1);", "k.wait(mma_done, round & 1); k.sync();")]),
    ("permit_3", 3, &[GIVEN_BACK]),
    ("permit_4", 4, &[GIVEN_BACK]),
    ("permit_5", 5, &[GIVEN_BACK]),
    (
        "columns_first_3",
        3,
        &[
            ("k.grid(gemm.tiles_m(BLK_M), gemm.tiles_n(BLK_N));", "k.grid(gemm.tiles_n(BLK_N), gemm.tiles_m(BLK_M));"),
            ("(k.cta_x(), k.cta_y())", "(k.cta_y(), k.cta_x())"),
        ],
    ),
    (
        "loads_first_4",
        4,
        &[
            ("t.expect_tx(tma2mma, a.bytes() + b.bytes());", ""),
            (
                "t.tma_load(b, &gemm.b, (round * BLK_K, n_start), tma2mma);",
                "t.tma_load(b, &gemm.b, (round * BLK_K, n_start), tma2mma); t.expect_tx(tma2mma, a.bytes() + b.bytes());",
            ),
        ],
    ),
    (
        "each_part_4",
        4,
        &[
            (
                "            k.store_shared_16(d.at(part).at(row, column), chunk);
        }
",
                "            k.store_shared_16(d.at(part).at(row, column), chunk);
        }
        k.fence_proxy_async();
        k.sync();
        k.warp(0, |w| {
            w.elect_one(|t| {
                t.tma_store(d.at(part), &gemm.d, (n_start + part * EPI_N, m_start));
                t.bulk_commit();
            })
        });
",
            ),
            (
                "    // ANCHOR: todo_4_7
    k.fence_proxy_async();
    k.sync();
    k.warp(0, |w| {
        w.elect_one(|t| {
            for part in 0..BLK_N / EPI_N {
                t.tma_store(d.at(part), &gemm.d, (n_start + part * EPI_N, m_start));
            }
            t.bulk_commit();
",
                "    k.warp(0, |w| {
        w.elect_one(|t| {
",
            ),
        ],
    ),
    ("written_4", 4, &[("t.bulk_wait_read(0);", "t.bulk_wait(0);")]),
    (
        "ring_of_products_5",
        5,
        &[
            ("CommitBarrier::new(k, \"mma_done\")", "CommitBarrier::ring(k, \"mma_done\", PIPE_DEPTH)"),
            ("t.commit(mma_done);", "t.commit(mma_done.at(at.stage()));"),
            ("t.wait(mma_done, round & 1);", "t.wait(mma_done.at(at.stage()), at.phase());"),
        ],
    ),
    ("one_issues_10", 10, ONE_ISSUES),
    (
        "warps_arrive_7",
        7,
        &[
            ("t.barrier_init(ld2mma, WARPGROUP);", "t.barrier_init(ld2mma, 4);"),
            ("wg.arrive(ld2mma);", "for warp in 0..4 { wg.warp(warp, |w| w.elect_one(|t| t.arrive(ld2mma))); }"),
        ],
    ),
    ("late_7", 7, &[EARLY, LATE]),
    ("late_8", 8, &[EARLY, LATE]),
    (
        "two_accumulators_7",
        7,
        &[
            RING_OF_PRODUCTS,
            RING_OF_FREE,
            PRODUCER_OF_TWO,
            CONSUMER_OF_TWO,
            ("w.tmem_alloc(\"accumulator\", BLK_N)", "w.tmem_alloc(\"accumulator\", 2 * BLK_N)"),
            WAITS_FOR_ITS_SLOT,
            (
                "for slice in 0..BLK_K / MMA_K {
                            let (a, b) = (a.at(s).k_slice(slice * MMA_K), b.at(s).k_slice(slice * MMA_K));
                            t.mma(accumulator, a, b, (round + slice).gt(0));
                        }",
                "for slot in 0..2 {
                            t.when(now.eq(slot), |t| {
                                for slice in 0..BLK_K / MMA_K {
                                    let (a, b) = (a.at(s).k_slice(slice * MMA_K), b.at(s).k_slice(slice * MMA_K));
                                    t.mma(accumulator.columns(slot * BLK_N, BLK_N), a, b, (round + slice).gt(0));
                                }
                            });
                        }",
            ),
            ("t.commit(mma2ld);", "t.commit(mma2ld.at(now));"),
            READS_ITS_SLOT,
            EACH_SLOT,
            ("// ANCHOR_END: todo_7_7\n            }", "}});}"),
            ("accumulator.columns(chunk * EPI_N, EPI_N)", "accumulator.columns(slot * BLK_N + chunk * EPI_N, EPI_N)"),
            ("wg.arrive(ld2mma);", "wg.arrive(ld2mma.at(now));"),
        ],
    ),
    (
        "two_accumulators_9",
        9,
        &[
            RING_OF_PRODUCTS,
            RING_OF_FREE,
            PRODUCER_OF_TWO,
            CONSUMER_OF_TWO,
            ("let accumulator = tmem.address(k).columns(0, MMA_N);", "let accumulator = tmem.address(k);"),
            WAITS_FOR_ITS_SLOT,
            (
                "for slice in 0..BLK_K / MMA_K {
                                let (a, b) = (a.at(s).k_slice(slice * MMA_K), b.at(s).k_slice(slice * MMA_K));
                                t.mma(accumulator, a, b, (round + slice).gt(0));
                            }",
                "for slot in 0..2 {
                                t.when(now.eq(slot), |t| {
                                    for slice in 0..BLK_K / MMA_K {
                                        let (a, b) = (a.at(s).k_slice(slice * MMA_K), b.at(s).k_slice(slice * MMA_K));
                                        t.mma(accumulator.columns(slot * MMA_N, MMA_N), a, b, (round + slice).gt(0));
                                    }
                                });
                            }",
            ),
            ("t.commit_multicast(mma2ld, BOTH);", "t.commit_multicast(mma2ld.at(now), BOTH);"),
            READS_ITS_SLOT,
            EACH_SLOT,
            ("// ANCHOR_END: todo_9_6\n            }", "}});}"),
            ("accumulator.columns(chunk * EPI_N, EPI_N)", "accumulator.columns(slot * MMA_N + chunk * EPI_N, EPI_N)"),
            ("wg.arrive(ld2mma.of_cta(LEADER));", "wg.arrive(ld2mma.at(now).of_cta(LEADER));"),
        ],
    ),
];

/// One thread issues the MMAs of both consumers: one commit for each stage, and one for each product.
const ONE_ISSUES: &[(&str, &str)] = &[
    ("t.barrier_init(mma2tma, CONSUMERS);", "t.barrier_init(mma2tma, 1);"),
    (
        "        for consumer in 0..CONSUMERS {
            let accumulator = accumulators.columns(consumer * MMA_N, MMA_N);
            wg.warp(consumer, |w| {",
        "        {
            wg.warp(0, |w| {",
    ),
    (
        "t.wait(ld2mma.at(consumer), free.phase());",
        "for consumer in 0..CONSUMERS { t.wait(ld2mma.at(consumer), free.phase()); }",
    ),
    ("for slice in 0..BLK_K / MMA_K {", "for consumer in 0..CONSUMERS { for slice in 0..BLK_K / MMA_K {"),
    (
        "t.mma(accumulator, a, b, (round + slice).gt(0));",
        "t.mma(accumulators.columns(consumer * MMA_N, MMA_N), a, b, (round + slice).gt(0)); }",
    ),
    (
        "t.commit_multicast(mma2ld.at(consumer), BOTH);",
        "for consumer in 0..CONSUMERS { t.commit_multicast(mma2ld.at(consumer), BOTH); }",
    ),
];

/// Two accumulators: the barriers that tell of them are rings, both states have two stages, and the stage chooses the columns.
const RING_OF_PRODUCTS: (&str, &str) = ("CommitBarrier::new(k, \"mma2ld\")", "CommitBarrier::ring(k, \"mma2ld\", 2)");
const RING_OF_FREE: (&str, &str) = ("ThreadBarrier::new(k, \"ld2mma\")", "ThreadBarrier::ring(k, \"ld2mma\", 2)");
const PRODUCER_OF_TWO: (&str, &str) = ("PipelineState::producer(t, 1)", "PipelineState::producer(t, 2)");
const CONSUMER_OF_TWO: (&str, &str) = ("PipelineState::consumer(wg, 1)", "PipelineState::consumer(wg, 2)");
const WAITS_FOR_ITS_SLOT: (&str, &str) =
    ("t.wait(ld2mma, free.phase());", "let now: U32 = t.variable(free.stage()); t.wait(ld2mma.at(now), free.phase());");
const READS_ITS_SLOT: (&str, &str) = (
    "wg.wait(mma2ld, full.phase());",
    "let now: U32 = wg.variable(full.stage()); wg.wait(mma2ld.at(now), full.phase());",
);
const EACH_SLOT: (&str, &str) = (
    "for chunk in 0..EPI_CHUNKS {",
    "for slot in 0..2 { wg.when_uniform(now.eq(slot), |wg| { for chunk in 0..EPI_CHUNKS {",
);

const GIVEN_BACK: (&str, &str) = (
    "w.tmem_alloc(\"accumulator\", BLK_N)",
    "{ let tmem = w.tmem_alloc(\"accumulator\", BLK_N); w.tmem_relinquish(); tmem }",
);
/// The arrival at ld2mma moves from behind the last load to behind the last store.
const EARLY: (&str, &str) = (
    "if chunk == EPI_CHUNKS - 1 {
                    wg.tcgen05_fence_before();
                    wg.arrive(ld2mma);
                }",
    "",
);
const LATE: (&str, &str) = (
    "wg.fence_proxy_async();",
    "if chunk == EPI_CHUNKS - 1 { wg.tcgen05_fence_before(); wg.arrive(ld2mma); } wg.fence_proxy_async();",
);

/// Depths of the ring that the pages compare: step, the line that says the depth, how it begins, the depths.
const DEPTHS: &[(u8, &str, &str, &[u32])] = &[
    (5, "const PIPE_DEPTH: u32 = 2;", "const PIPE_DEPTH: u32", &[1, 3, 4, 5, 6]),
    (8, "let depth = depth + 2;", "let depth", &[2, 3, 5, 6]),
    (9, "const PIPE_DEPTH: u32 = 4;", "const PIPE_DEPTH: u32", &[2, 3, 5, 6]),
    (10, "const PIPE_DEPTH: u32 = 4;", "const PIPE_DEPTH: u32", &[2, 3]),
];
