// The mistakes of which the pages of the steps show what the verdict says of them, and the exercises with such an answer: as in `edits.rs`.

const SHOWN: &[Edit] = &[
    // Step 1.
    (
        "without_swizzle_1",
        1,
        &[("k.store_shared_16(a.at(row, column), from_a);", "k.store_shared_16(a.at_linear(row, column), from_a);")],
    ),
    ("columns_in_chunks_1", 1, &[("thread % CHUNKS_OF_ROW * CHUNK", "thread % CHUNKS_OF_ROW")]),
    ("no_proxy_fence_1", 1, &[("    k.fence_proxy_async();\n", "")]),
    ("no_meeting_1", 1, &[("k.fence_proxy_async();\n    k.sync();", "k.fence_proxy_async();")]),
    ("first_adds_1", 1, &[("step > 0);", "true);")]),
    ("none_adds_1", 1, &[("step > 0);", "false);")]),
    ("slice_0_of_b_1", 1, &[("b.k_slice(step * MMA_K), step", "b.k_slice(0), step")]),
    ("slices_in_bytes_1", 1, &[("a.k_slice(step * MMA_K)", "a.k_slice(step * MMA_K * 2)")]),
    ("no_commit_1", 1, &[("t.commit(mma_done);", "")]),
    ("parity_1_1", 1, &[("k.wait(mma_done, 0);", "k.wait(mma_done, 1);")]),
    ("one_waits_1", 1, &[("k.wait(mma_done, 0);", "k.warp(0, |w| w.elect_one(|t| t.wait(mma_done, 0)));")]),
    ("own_lane_1", 1, &[("accumulator.lane(row / 32 * 32)", "accumulator.lane(row)")]),
    (
        "row_of_the_warp_1",
        1,
        &[(
            "k.store_global_16(gemm.d.at(row, column), chunk);",
            "k.store_global_16(gemm.d.at(row % 32, column), chunk);",
        )],
    ),
    ("freed_early_1", 1, &[("k.tcgen05_fence_before();\n    k.sync();", "")]),
    ("never_freed_1", 1, &[("k.warp(0, |w| w.tmem_dealloc(tmem));", "")]),
    ("count_of_2_1", 1, &[("t.barrier_init(mma_done, 1);", "t.barrier_init(mma_done, 2);")]),
    ("lane_0_1", 1, &[("accumulator.lane(row / 32 * 32)", "accumulator.lane(0)")]),
    ("no_wait_ld_1", 1, &[("k.tmem_wait_load();", "")]),
    // Step 2.
    ("parity_0_2", 2, &[("round & 1", "0")]),
    ("each_round_anew_2", 2, &[("(round + slice).gt(0)", "slice > 0")]),
    (
        "one_waits_2",
        2,
        &[("k.wait(mma_done, round & 1);", "k.warp(0, |w| w.elect_one(|t| t.wait(mma_done, round & 1)));")],
    ),
    (
        "waits_behind_2",
        2,
        &[
            ("        k.wait(mma_done, round & 1);\n", ""),
            ("    k.tcgen05_fence_after();\n", "    k.wait(mma_done, 0);\n    k.tcgen05_fence_after();\n"),
        ],
    ),
    ("round_0_overwrites_2", 2, &[("(round + slice).gt(0)", "round.gt(0)")]),
    ("same_columns_2", 2, &[("let k_start = round * BLK_K;", "let k_start: U32 = k.variable(0);")]),
    // Step 3.
    ("exchanged_3", 3, &[("(k.cta_x(), k.cta_y())", "(k.cta_y(), k.cta_x())")]),
    ("rows_of_b_3", 3, &[("gemm.b.at(n_start + row", "gemm.b.at(m_start + row")]),
    (
        "rows_of_the_tile_3",
        3,
        &[
            ("a.at(row, column), from_a", "a.at(m_start + row, column), from_a"),
            ("b.at(row, column), from_b", "b.at(n_start + row, column), from_b"),
        ],
    ),
    ("d_in_one_place_3", 3, &[("gemm.d.at(m_start + row, n_start + column)", "gemm.d.at(row, column)")]),
    // Step 4.
    ("bytes_of_a_4", 4, &[("t.expect_tx(tma2mma, a.bytes() + b.bytes());", "t.expect_tx(tma2mma, a.bytes());")]),
    ("twice_the_bytes_4", 4, &[("a.bytes() + b.bytes()", "2 * (a.bytes() + b.bytes())")]),
    (
        "bytes_inside_4",
        4,
        &[(
            "a.bytes() + b.bytes()",
            "if gemm.m == 1 { gemm.k * 2 * (gemm.m + gemm.n) } else { a.bytes() + b.bytes() }",
        )],
    ),
    ("no_wait_4", 4, &[("t.wait(tma2mma, round & 1);", "")]),
    (
        "row_first_4",
        4,
        &[
            ("(round * BLK_K, m_start)", "(m_start, round * BLK_K)"),
            ("(round * BLK_K, n_start)", "(n_start, round * BLK_K)"),
        ],
    ),
    ("no_fence_4", 4, &[("    k.fence_proxy_async();\n", "")]),
    ("no_meeting_4", 4, &[("k.fence_proxy_async();\n    k.sync();", "k.fence_proxy_async();")]),
    ("no_wait_read_4", 4, &[("t.bulk_wait_read(0);", "")]),
    ("d_row_after_row_4", 4, &[("d.at(part).at(row, column)", "d.at(part).at_linear(row, column)")]),
    (
        "one_tile_of_d_4",
        4,
        &[
            ("const EPI_N: u32 = 64;", "const EPI_N: u32 = 128;"),
            ("const _: () = assert!(EPI_N * 2 == 128,", "const _: () = assert!(EPI_N > 0,"),
        ],
    ),
    // Step 5.
    (
        "one_barrier_5",
        5,
        &[
            ("TmaBarrier::ring(k, \"tma2mma\", PIPE_DEPTH)", "TmaBarrier::ring(k, \"tma2mma\", 1)"),
            ("t.expect_tx(tma2mma.at(i),", "t.expect_tx(tma2mma.at(0),"),
            ("(i * BLK_K, m_start), tma2mma.at(i)", "(i * BLK_K, m_start), tma2mma.at(0)"),
            ("(i * BLK_K, n_start), tma2mma.at(i)", "(i * BLK_K, n_start), tma2mma.at(0)"),
            ("t.wait(tma2mma.at(at.stage()), at.phase());", "t.wait(tma2mma.at(0), round & 1);"),
            ("t.expect_tx(tma2mma.at(s),", "t.expect_tx(tma2mma.at(0),"),
            ("(later * BLK_K, m_start), tma2mma.at(s)", "(later * BLK_K, m_start), tma2mma.at(0)"),
            ("(later * BLK_K, n_start), tma2mma.at(s)", "(later * BLK_K, n_start), tma2mma.at(0)"),
        ],
    ),
    (
        "parity_of_the_round_5",
        5,
        &[("t.wait(tma2mma.at(at.stage()), at.phase());", "t.wait(tma2mma.at(at.stage()), round & 1);")],
    ),
    (
        "waits_too_late_5",
        5,
        &[
            ("                t.wait(mma_done, round & 1);\n", ""),
            ("at.advance(t);", "t.wait(mma_done, round & 1); at.advance(t);"),
        ],
    ),
    ("always_two_5", 5, &[("PIPE_DEPTH.min(k_tiles)", "PIPE_DEPTH")]),
    ("rounds_beyond_k_5", 5, &[("later.lt(k_tiles)", "later.ge(0)")]),
    // Step 6.
    (
        "made_again_6",
        6,
        &[(
            "let (m_start, n_start) = (tile_row * BLK_M, tile_column * BLK_N);",
            "let (m_start, n_start) = (tile_row * BLK_M, tile_column * BLK_N); k.warp(0, |w| w.elect_one(|t| t.barrier_init(tma2mma, 1)));",
        )],
    ),
    (
        "fills_stage_i_6",
        6,
        &[
            ("|t, i| {\n                    let s = fill.stage();", "|t, i| {\n                    let s = i;"),
            ("|t| {\n                        let s = fill.stage();", "|t| {\n                        let s = at.stage();"),
        ],
    ),
    ("no_wait_read_6", 6, &[("t.bulk_wait_read(0);", "")]),
    (
        "no_fence_before_6",
        6,
        &[("        k.tcgen05_fence_before();\n        k.fence_proxy_async();", "        k.fence_proxy_async();")],
    ),
    // Step 7.
    (
        "load_begins_with_0_7",
        7,
        &[("let at = PipelineState::producer(t, PIPE_DEPTH);", "let at = PipelineState::consumer(t, PIPE_DEPTH);")],
    ),
    ("one_arrives_7", 7, &[("wg.arrive(ld2mma);", "wg.warp(0, |w| w.elect_one(|t| t.arrive(ld2mma)));")]),
    (
        "commit_behind_advance_7",
        7,
        &[(
            "t.commit(mma2tma.at(s));\n                        at.advance(t);",
            "at.advance(t);\n                        t.commit(mma2tma.at(s));",
        )],
    ),
    (
        "product_each_round_7",
        7,
        &[
            ("                    t.commit(mma2ld);\n", ""),
            ("t.commit(mma2tma.at(s));", "t.commit(mma2tma.at(s)); t.commit(mma2ld);"),
        ],
    ),
    ("no_commit_to_stages_7", 7, &[("t.commit(mma2tma.at(s));", "")]),
    (
        "ring_begins_with_1_7",
        7,
        &[("let at = PipelineState::consumer(t, PIPE_DEPTH);", "let at = PipelineState::producer(t, PIPE_DEPTH);")],
    ),
    ("made_for_1_7", 7, &[("t.barrier_init(ld2mma, WARPGROUP);", "t.barrier_init(ld2mma, 1);")]),
    ("accumulator_not_awaited_7", 7, &[("t.wait(ld2mma, free.phase());", "")]),
    (
        "told_before_the_wait_7",
        7,
        &[
            ("wg.tmem_wait_load();\n", ""),
            (
                "wg.arrive(ld2mma);\n                }",
                "wg.arrive(ld2mma);\n                }\n                wg.tmem_wait_load();",
            ),
        ],
    ),
    ("told_after_the_first_7", 7, &[("chunk == EPI_CHUNKS - 1", "chunk == 0")]),
    (
        "no_wait_read_at_the_end_7",
        7,
        &[("    k.warp(0, |w| w.elect_one(|t| t.bulk_wait_read(0)));\n    k.sync();", "    k.sync();")],
    ),
    // Step 8.
    ("depth_of_2_8", 8, &[("let depth = depth + 2;", "let depth = depth.max(2);")]),
    // Step 9.
    ("bytes_of_one_9", 9, &[("CTAS * (a.stage_bytes() + b.stage_bytes())", "a.stage_bytes() + b.stage_bytes()")]),
    (
        "each_announces_9",
        9,
        &[(
            "t.when(rank.eq(LEADER), |t| {\n                            t.expect_tx",
            "t.when(rank.ge(0), |t| {\n                            t.expect_tx",
        )],
    ),
    (
        "both_announce_there_9",
        9,
        &[(
            "t.when(rank.eq(LEADER), |t| {\n                            t.expect_tx(tma2mma.at(s), CTAS",
            "t.when(rank.ge(0), |t| {\n                            t.expect_tx(tma2mma.at(s).of_cta(LEADER), CTAS",
        )],
    ),
    (
        "own_barrier_9",
        9,
        &[("let leaders = tma2mma.at(s).of_cta(LEADER);", "let leaders = tma2mma.at(s).of_cta(rank);")],
    ),
    (
        "rows_of_a_cta_9",
        9,
        &[(
            "(tile_row * MMA_M + rank * BLK_M, tile_column * MMA_N + rank",
            "(tile_row * BLK_M + rank * BLK_M, tile_column * MMA_N + rank",
        )],
    ),
    ("stages_of_one_9", 9, &[("t.commit_multicast(mma2tma.at(s), BOTH);", "t.commit(mma2tma.at(s));")]),
    ("product_of_one_9", 9, &[("t.commit_multicast(mma2ld, BOTH);", "t.commit(mma2ld);")]),
    ("arrives_at_its_own_9", 9, &[("wg.arrive(ld2mma.of_cta(LEADER));", "wg.arrive(ld2mma);")]),
    ("count_of_one_9", 9, &[("t.barrier_init(ld2mma, CTAS * WARPGROUP);", "t.barrier_init(ld2mma, WARPGROUP);")]),
    (
        "same_rows_9",
        9,
        &[(
            "(tile_row * MMA_M + rank * BLK_M, tile_column * MMA_N + rank",
            "(tile_row * MMA_M, tile_column * MMA_N + rank",
        )],
    ),
    ("both_multiply_9", 9, &[("let leads = rank.eq(LEADER);", "let leads = rank.ge(0);")]),
    ("cta_barrier_first_9", 9, &[("    k.cluster_sync();\n    let tmem", "    k.sync();\n    let tmem")]),
    (
        "cta_barrier_last_9",
        9,
        &[(
            "    k.cluster_sync();\n    k.warp(0, |w| w.tmem_dealloc(tmem));",
            "    k.sync();\n    k.warp(0, |w| w.tmem_dealloc(tmem));",
        )],
    ),
    (
        "no_wait_read_at_the_end_9",
        9,
        &[("    k.warp(0, |w| w.elect_one(|t| t.bulk_wait_read(0)));\n    k.cluster_sync();", "    k.cluster_sync();")],
    ),
    // Step 10.
    ("one_frees_10", 10, &[("t.barrier_init(mma2tma, CONSUMERS);", "t.barrier_init(mma2tma, 1);")]),
    (
        "bytes_of_one_a_10",
        10,
        &[("CONSUMERS * a[0].stage_bytes() + b.stage_bytes()", "a[0].stage_bytes() + b.stage_bytes()")],
    ),
    (
        "same_columns_10",
        10,
        &[
            (
                "            let accumulator = accumulators.columns(consumer * MMA_N, MMA_N);\n",
                "            let accumulator = accumulators.columns(0, MMA_N);\n",
            ),
            (
                "(accumulators.columns(consumer * MMA_N, MMA_N), d.at(consumer))",
                "(accumulators.columns(0, MMA_N), d.at(consumer))",
            ),
        ],
    ),
    ("a1_too_near_10", 10, &[("[row_a, row_a + MMA_M]", "[row_a, row_a + BLK_M]")]),
    ("one_named_barrier_10", 10, &[("let named = consumer + 1;", "let named = 1;")]),
    (
        "no_last_waits_9",
        9,
        &[(
            "t.repeat(PIPE_DEPTH, |t, _| {\n                    t.wait(mma2tma.at(at.stage()), at.phase());\n                    at.advance(t);\n                });",
            "",
        )],
    ),
    (
        "counts_2_for_both_9",
        9,
        &[
            ("t.barrier_init(tma2mma, 1);", "t.barrier_init(tma2mma, 2);"),
            (
                "t.when(rank.eq(LEADER), |t| {\n                            t.expect_tx(tma2mma.at(s), CTAS * (a.stage_bytes() + b.stage_bytes()));",
                "t.when(rank.ge(0), |t| {\n                            t.expect_tx(tma2mma.at(s).of_cta(LEADER), a.stage_bytes() + b.stage_bytes());",
            ),
        ],
    ),
];
