// What is edited: a name, the step, and passages with what replaces them. Each passage stands once in the solution.

/// A name, a step, passages.
type Edit = (&'static str, u8, &'static [(&'static str, &'static str)]);

/// TODO 9.3 as in the skeleton.
const OPEN_9_3: [(&str, &str); 2] = [
    ("t.wait(ld2mma, free.phase());", "t.todo(\"9.3\"); if false { t.wait(ld2mma, free.phase());"),
    ("t.commit_multicast(mma2ld, BOTH);", "t.commit_multicast(mma2ld, BOTH); }"),
];

const EDITS: &[Edit] = &[
    // Stages and phases begin anew with every tile of D; those of the barriers do not.
    (
        "phases_6",
        6,
        &[
            (
                "    let fill = PipelineState::producer(k, PIPE_DEPTH);\n    let at = PipelineState::consumer(k, PIPE_DEPTH);\n    let done = PipelineState::consumer(k, 1);\n",
                "",
            ),
            (
                "    tiles.each(k, cta, |k, tile_row, tile_column| {\n",
                "    tiles.each(k, cta, |k, tile_row, tile_column| {
        let fill = PipelineState::producer(k, PIPE_DEPTH);
        let at = PipelineState::consumer(k, PIPE_DEPTH);
        let done = PipelineState::consumer(k, 1);\n",
            ),
        ],
    ),
    (
        "phases_7",
        7,
        &[
            ("                let at = PipelineState::producer(t, PIPE_DEPTH);\n", ""),
            (
                "                tiles.each(t, cta, |t, tile_row, tile_column| {\n",
                "                tiles.each(t, cta, |t, tile_row, tile_column| {\n                let at = PipelineState::producer(t, PIPE_DEPTH);\n",
            ),
            (
                "                let at = PipelineState::consumer(t, PIPE_DEPTH);\n                let free = PipelineState::producer(t, 1);\n",
                "",
            ),
            (
                "                tiles.each(t, cta, |t, _, _| {\n",
                "                tiles.each(t, cta, |t, _, _| {\n                let at = PipelineState::consumer(t, PIPE_DEPTH);\n                let free = PipelineState::producer(t, 1);\n",
            ),
            ("        let full = PipelineState::consumer(wg, 1);\n", ""),
            (
                "        tiles.each(wg, cta, |wg, tile_row, tile_column| {\n",
                "        tiles.each(wg, cta, |wg, tile_row, tile_column| {\n        let full = PipelineState::consumer(wg, 1);\n",
            ),
        ],
    ),
    // The same in one role alone.
    (
        "phases_of_write_back_7",
        7,
        &[
            ("        let full = PipelineState::consumer(wg, 1);\n", ""),
            (
                "        tiles.each(wg, cta, |wg, tile_row, tile_column| {\n",
                "        tiles.each(wg, cta, |wg, tile_row, tile_column| {\n        let full = PipelineState::consumer(wg, 1);\n",
            ),
        ],
    ),
    // The last K tile is left out.
    ("last_k_2", 2, &[("gemm.tiles_k(BLK_K)", "(gemm.tiles_k(BLK_K) - 1).max(1)")]),
    ("last_k_4", 4, &[("gemm.tiles_k(BLK_K)", "(gemm.tiles_k(BLK_K) - 1).max(1)")]),
    ("last_k_6", 6, &[("gemm.tiles_k(BLK_K)", "(gemm.tiles_k(BLK_K) - 1).max(1)")]),
    ("last_k_7", 7, &[("gemm.tiles_k(BLK_K)", "(gemm.tiles_k(BLK_K) - 1).max(1)")]),
    ("last_k_10", 10, &[("gemm.tiles_k(BLK_K)", "(gemm.tiles_k(BLK_K) - 1).max(1)")]),
    // Only whole tiles are computed: right at all published sizes.
    ("whole_k_4", 4, &[("gemm.tiles_k(BLK_K)", "(gemm.k / BLK_K).max(1)")]),
    ("whole_k_6", 6, &[("gemm.tiles_k(BLK_K)", "(gemm.k / BLK_K).max(1)")]),
    ("whole_k_9", 9, &[("gemm.tiles_k(BLK_K)", "(gemm.k / BLK_K).max(1)")]),
    ("whole_rows_4", 4, &[("gemm.tiles_m(BLK_M)", "(gemm.m / BLK_M).max(1)")]),
    ("whole_columns_5", 5, &[("gemm.tiles_n(BLK_N)", "(gemm.n / BLK_N).max(1)")]),
    ("whole_rows_6", 6, &[("gemm.tiles_m(BLK_M)", "(gemm.m / BLK_M).max(1)")]),
    ("whole_rows_10", 10, &[("gemm.tiles_m(CLUSTER_M)", "(gemm.m / CLUSTER_M).max(1)")]),
    // Any size is taken, whatever the step solves.
    (
        "careless_3",
        3,
        &[("    k.require(whole_tiles, \"step 3 solves whole tiles: M and N multiples of 128, K of 64\");\n", "")],
    ),
    // Rows of D one further down.
    ("outside_2", 2, &[("gemm.d.at(row, column)", "gemm.d.at(row + 1, column)")]),
    (
        "outside_3",
        3,
        &[("gemm.d.at(m_start + row, n_start + column)", "gemm.d.at(m_start + row + 1, n_start + column)")],
    ),
    // What D held before is added.
    (
        "reads_d_2",
        2,
        &[(
            "k.store_global_16(gemm.d.at(row, column), chunk);",
            "let chunk = crate::added(k, gemm, gemm.d.at(row, column), chunk); k.store_global_16(gemm.d.at(row, column), chunk);",
        )],
    ),
    (
        "reads_d_4",
        4,
        &[(
            "k.store_shared_16(d.at(part).at(row, column), chunk);",
            "let chunk = crate::added(k, gemm, gemm.d.at(m_start + row, n_start + part * EPI_N + column), chunk); k.store_shared_16(d.at(part).at(row, column), chunk);",
        )],
    ),
    // The accumulator is handed back when its tile is stored.
    (
        "late_7",
        7,
        &[
            ("wg.arrive(ld2mma);", ""),
            ("// ANCHOR_END: todo_7_7\n", "if chunk == EPI_CHUNKS - 1 { wg.arrive(ld2mma); }\n"),
        ],
    ),
    (
        "late_10",
        10,
        &[
            ("wg.arrive(ld2mma.at(consumer).of_cta(LEADER));", ""),
            (
                "// ANCHOR_END: todo_10_6\n",
                "if chunk == EPI_CHUNKS - 1 { wg.arrive(ld2mma.at(consumer).of_cta(LEADER)); }\n",
            ),
        ],
    ),
    (
        "unswizzled_4",
        4,
        &[(
            "let d = k.tile_ring(\"D\", BLK_N / EPI_N, gemm.dtype, BLK_M, EPI_N, Swizzle::B128);",
            "let d = k.tile_ring(\"D\", BLK_N / EPI_N, gemm.dtype, BLK_M, EPI_N, Swizzle::None);",
        )],
    ),
    // The end comes too early: before TMA has read the last tile, before the other CTA is done.
    ("end_before_read_7", 7, &[("    k.warp(0, |w| w.elect_one(|t| t.bulk_wait_read(0)));\n", "")]),
    ("end_before_read_10", 10, &[("k.warp(4 * consumer, |w| w.elect_one(|t| t.bulk_wait_read(0)));", "let _ = consumer;")]),
    (
        "end_without_pair_9",
        9,
        &[("    k.cluster_sync();\n    k.warp(0, |w| w.tmem_dealloc", "    k.sync();\n    k.warp(0, |w| w.tmem_dealloc")],
    ),
    // What a reader of the first pages does.
    ("round_as_parity_2", 2, &[("k.wait(mma_done, round & 1);", "k.wait(mma_done, round);")]),
    (
        "round_as_parity_begun_2",
        2,
        &[
            ("k.wait(mma_done, round & 1);", "k.wait(mma_done, round);"),
            ("    k.tcgen05_fence_after();\n", "    k.todo(\"2.5\");\n    k.tcgen05_fence_after();\n"),
        ],
    ),
    ("no_fence_behind_the_wait_1", 1, &[("    k.tcgen05_fence_after();\n", "")]),
    ("no_fence_before_the_loads_2", 2, &[("    k.tcgen05_fence_after();\n", "")]),
    ("no_fence_behind_the_meeting_4", 4, &[("    k.tcgen05_fence_after();\n", "")]),
    ("no_fence_behind_the_meeting_5", 5, &[("    k.tcgen05_fence_after();\n", "")]),
    ("no_fence_behind_the_meeting_6", 6, &[("        k.tcgen05_fence_after();\n", "")]),
    // The mistakes of the table in book/src/step09.md.
    ("own_ld2mma_9", 9, &[("wg.arrive(ld2mma.of_cta(LEADER));", "wg.arrive(ld2mma);")]),
    ("commit_to_one_9", 9, &[("t.commit_multicast(mma2tma.at(s), BOTH);", "t.commit(mma2tma.at(s));")]),
    ("product_to_one_9", 9, &[("t.commit_multicast(mma2ld, BOTH);", "t.commit(mma2ld);")]),
    ("own_loads_9", 9, &[("tma2mma.at(s).of_cta(LEADER)", "tma2mma.at(s)")]),
    (
        "both_announce_9",
        9,
        &[("t.when(rank.eq(LEADER), |t| {", "t.when(rank.ge(LEADER), |t| {")],
    ),
    (
        "own_pipeline_9",
        9,
        &[
            ("t.when(rank.eq(LEADER), |t| {", "t.when(rank.ge(LEADER), |t| {"),
            ("CTAS * (a.stage_bytes() + b.stage_bytes())", "a.stage_bytes() + b.stage_bytes()"),
            ("tma2mma.at(s).of_cta(LEADER)", "tma2mma.at(s)"),
        ],
    ),
    ("half_tiles_9", 9, &[("(tile_row * MMA_M + rank * BLK_M, tile_column * MMA_N", "(tile_row * BLK_M + rank * BLK_M, tile_column * MMA_N")]),
    ("end_before_read_9", 9, &[("    k.warp(0, |w| w.elect_one(|t| t.bulk_wait_read(0)));\n    k.cluster_sync();\n", "    k.cluster_sync();\n")]),
    (
        "stages_not_awaited_9",
        9,
        &[(
            "                t.repeat(PIPE_DEPTH, |t, _| {\n                    t.wait(mma2tma.at(at.stage()), at.phase());\n                    at.advance(t);\n                });\n",
            "",
        )],
    ),
    // All announce, on the leader's barrier.
    (
        "leader_twice_9",
        9,
        &[
            ("t.when(rank.eq(LEADER), |t| {", "t.when(rank.ge(LEADER), |t| {"),
            ("t.expect_tx(tma2mma.at(s),", "t.expect_tx(tma2mma.at(s).of_cta(LEADER),"),
        ],
    ),
    ("stages_never_free_7", 7, &[("t.commit(mma2tma.at(s));", "")]),
    (
        "load_begins_late_7",
        7,
        &[("let at = PipelineState::producer(t, PIPE_DEPTH);", "let at = PipelineState::consumer(t, PIPE_DEPTH);")],
    ),
    ("parity_2", 2, &[("k.wait(mma_done, round & 1)", "k.wait(mma_done, 0)")]),
    // The same while TODO 9.3 is open.
    ("own_loads_open_9", 9, &[("tma2mma.at(s).of_cta(LEADER)", "tma2mma.at(s)"), OPEN_9_3[0], OPEN_9_3[1]]),
    (
        "own_pipeline_open_9",
        9,
        &[
            ("t.when(rank.eq(LEADER), |t| {", "t.when(rank.ge(LEADER), |t| {"),
            ("CTAS * (a.stage_bytes() + b.stage_bytes())", "a.stage_bytes() + b.stage_bytes()"),
            ("tma2mma.at(s).of_cta(LEADER)", "tma2mma.at(s)"),
            OPEN_9_3[0],
            OPEN_9_3[1],
        ],
    ),
    ("both_announce_open_9", 9, &[("t.when(rank.eq(LEADER), |t| {", "t.when(rank.ge(LEADER), |t| {"), OPEN_9_3[0], OPEN_9_3[1]]),
    ("load_open_7", 7, &[("                        let s = at.stage();\n                        t.wait(mma2tma.at(s), at.phase());\n                        t.expect_tx(", "                        t.todo(\"7.3\"); if true { return; }\n                        let s = at.stage();\n                        t.wait(mma2tma.at(s), at.phase());\n                        t.expect_tx(")]),
    // Only the first columns of the accumulator are read, for each part of D.
    ("first_columns_4", 4, &[("accumulator.columns(part * EPI_N, EPI_N)", "accumulator.columns(0, EPI_N)")]),
    ("first_columns_5", 5, &[("accumulator.columns(part * EPI_N, EPI_N)", "accumulator.columns(0, EPI_N)")]),
    ("first_columns_7", 7, &[("accumulator.columns(chunk * EPI_N, EPI_N)", "accumulator.columns(0, EPI_N)")]),
    ("first_columns_10", 10, &[("accumulator.columns(chunk * EPI_N, EPI_N)", "accumulator.columns(0, EPI_N)")]),
    // A and B exchanged.
    (
        "operands_exchanged_5",
        5,
        &[(
            "tile_a.k_slice(slice * MMA_K), tile_b.k_slice(slice * MMA_K)",
            "tile_b.k_slice(slice * MMA_K), tile_a.k_slice(slice * MMA_K)",
        )],
    ),
    ("operands_exchanged_7", 7, &[("t.mma(accumulator, a, b,", "t.mma(accumulator, b, a,")]),
    // The fence stands in front of the wait.
    (
        "fence_before_the_wait_7",
        7,
        &[(
            "wg.wait(mma2ld, full.phase());\n            wg.tcgen05_fence_after();",
            "wg.tcgen05_fence_after();\n            wg.wait(mma2ld, full.phase());",
        )],
    ),
];
