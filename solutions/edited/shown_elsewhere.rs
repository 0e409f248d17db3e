// The same of the book's other pages: those on hangs, wrong results and findings.

const SHOWN_ELSEWHERE: &[Edit] = &[
    // Reports of other pages, and what else they quote.
    ("waits_again_1", 1, &[("k.wait(mma_done, 0);", "k.wait(mma_done, 0); k.wait(mma_done, 1);")]),
    ("columns_in_bytes_1", 1, &[("thread % CHUNKS_OF_ROW * CHUNK", "thread % CHUNKS_OF_ROW * 16")]),
    (
        "swizzle_by_hand_1",
        1,
        &[(
            "k.store_shared_16(a.at(row, column), from_a);",
            "k.store_shared_16(a.at_linear(row, column ^ ((row / 8 % 8) * 8)), from_a);",
        )],
    ),
    ("column_of_the_tile_3", 3, &[("gemm.d.at(m_start + row, n_start + column)", "gemm.d.at(m_start + row, column)")]),
    ("box_at_column_4_4", 4, &[("(round * BLK_K, m_start)", "(round * BLK_K + 4, m_start)")]),
    (
        "bytes_of_both_5",
        5,
        &[(
            "t.expect_tx(tma2mma.at(i), a.stage_bytes() + b.stage_bytes());",
            "t.expect_tx(tma2mma.at(i), PIPE_DEPTH * (a.stage_bytes() + b.stage_bytes()));",
        )],
    ),
    (
        "rounds_differ_7",
        7,
        &[(
            "t.repeat(k_tiles, |t, round| {\n                        // TODO 7.3",
            "t.repeat((gemm.k / BLK_K).max(1), |t, round| {\n                        // TODO 7.3",
        )],
    ),
    ("one_warp_8", 8, &[("const MMA_WARP: u32 = 0;", "const MMA_WARP: u32 = 3;")]),
    ("ring_of_two_8", 8, &[("PipelineState::consumer(t, depth);", "PipelineState::consumer(t, 2);")]),
    ("mask_is_the_count_9", 9, &[("t.commit_multicast(mma2ld, BOTH);", "t.commit_multicast(mma2ld, CTAS);")]),
    // What the pages on hangs and wrong results say in their tables.
    (
        "warp_1_elsewhere_1",
        1,
        &[(
            "k.store_global_16(gemm.d.at(row, column), chunk);",
            "k.store_global_16(gemm.d.at(row, (row / 32 % 2 * ((row / 64) ^ 1) * 8) ^ column), chunk);",
        )],
    ),
    (
        "warp_1_in_part_1",
        1,
        &[(
            "k.store_global_16(gemm.d.at(row, column), chunk);",
            "let by = if column < 80 { 0 } else { 8 };
        k.store_global_16(gemm.d.at(row, (row / 32 % 2 * ((row / 64) ^ 1) * by) ^ column), chunk);",
        )],
    ),
    (
        "groups_of_8_1",
        1,
        &[(
            "k.store_global_16(gemm.d.at(row, column), chunk);",
            "k.store_global_16(gemm.d.at(row, column ^ 8), chunk);",
        )],
    ),
    (
        "rows_in_pairs_1",
        1,
        &[(
            "k.store_global_16(gemm.d.at(row, column), chunk);",
            "k.store_global_16(gemm.d.at(row ^ 1, column), chunk);",
        )],
    ),
    (
        "no_row_127_1",
        1,
        &[(
            "k.store_global_16(gemm.d.at(row, column), chunk);",
            "k.when(row.lt(127), |k| k.store_global_16(gemm.d.at(row, column), chunk));",
        )],
    ),
    (
        "two_sums_exchanged_1",
        1,
        &[(
            "k.pack_chunks(gemm.dtype, &sums)",
            "k.pack_chunks(gemm.dtype, &std::array::from_fn::<_, { BLK_N as usize }, _>(|column| sums[column ^ 1]))",
        )],
    ),
    (
        "nothing_of_the_sums_1",
        1,
        &[("k.pack_chunks(gemm.dtype, &sums)", "k.pack_chunks(gemm.dtype, &sums.map(|sum| sum * 0.0))")],
    ),
    ("times_nan_1", 1, &[("k.pack_chunks(gemm.dtype, &sums)", "k.pack_chunks(gemm.dtype, &sums.map(|sum| sum * f32::NAN))")]),
    (
        "four_sums_reversed_1",
        1,
        &[(
            "k.pack_chunks(gemm.dtype, &sums)",
            "k.pack_chunks(gemm.dtype, &std::array::from_fn::<_, { BLK_N as usize }, _>(|column| sums[column ^ 3]))",
        )],
    ),
    (
        "one_number_1",
        1,
        &[("k.pack_chunks(gemm.dtype, &sums)", "k.pack_chunks(gemm.dtype, &sums.map(|sum| sum * 0.0 + 1.5))")],
    ),
    ("packed_as_bf16_1", 1, &[("k.pack_chunks(gemm.dtype, &sums)", "k.pack_chunks(Dtype::Bf16, &sums)")]),
    (
        "rounded_on_the_way_1",
        1,
        &[(
            "k.pack_chunks(gemm.dtype, &sums)",
            "k.pack_chunks(gemm.dtype, &sums.map(|sum| { let large = sum * 65537.0; large - (large - sum) }))",
        )],
    ),
    (
        "operands_exchanged_1",
        1,
        &[(
            "t.mma(accumulator, a.k_slice(step * MMA_K), b.k_slice(step * MMA_K), step > 0);",
            "t.mma(accumulator, b.k_slice(step * MMA_K), a.k_slice(step * MMA_K), step > 0);",
        )],
    ),
    (
        "one_mma_more_1",
        1,
        &[("t.commit(mma_done);", "t.mma(accumulator, a.k_slice(MMA_K), b.k_slice(MMA_K), true); t.commit(mma_done);")],
    ),
    ("half_of_the_columns_1", 1, &[("(0..).step_by(CHUNK as usize)", "(0..BLK_N / 2).step_by(CHUNK as usize)")]),
    (
        "column_7_off_1",
        1,
        &[(
            "k.pack_chunks(gemm.dtype, &sums)",
            "k.pack_chunks(gemm.dtype, &{ let mut sums = sums; sums[7] = sums[7] + 100.0; sums })",
        )],
    ),
    ("no_meeting_6", 6, &[("        k.fence_proxy_async();\n        k.sync();\n", "        k.fence_proxy_async();\n")]),
    (
        "last_wait_passes_4",
        4,
        &[("t.wait(tma2mma, round & 1);", "t.wait(tma2mma, (round & 1) ^ round.eq(7).select(1u32, 0u32));")],
    ),
    (
        "commit_never_executed_1",
        1,
        &[("t.commit(mma_done);", "let never: U32 = t.variable(0); t.when(never.eq(1), |t| t.commit(mma_done));")],
    ),
    (
        "comes_late_4",
        4,
        &[(
            "    // TODO 4.5:",
            "    k.warp(1, |w| {\n        w.repeat(4096, |_, _| {});\n        w.wait(mma_done, 0);\n    });\n    // TODO 4.5:",
        )],
    ),
    (
        "two_arrive_1",
        1,
        &[
            ("t.barrier_init(mma_done, 1);", "t.barrier_init(mma_done, 2);"),
            ("t.commit(mma_done);", "t.commit(mma_done); t.commit(mma_done);"),
        ],
    ),
    ("two_commits_2", 2, &[("t.commit(mma_done);", "t.commit(mma_done); t.commit(mma_done);")]),
    (
        "last_tile_3",
        3,
        &[
            (
                "    let row = k.thread_index();\n    let sums",
                "    let row = k.thread_index();\n    let last = k.cta_x() * (k.cta_y() / 2) * 8;\n    let sums",
            ),
            ("gemm.d.at(m_start + row, n_start + column)", "gemm.d.at(m_start + row, n_start + (last ^ column))"),
        ],
    ),
    ("stage_0_of_both_5", 5, &[("(a.at(at.stage()), b.at(at.stage()))", "(a.at(0), b.at(0))")]),
    (
        "eight_rounds_5",
        5,
        &[("t.repeat(k_tiles, |t, round| {", "t.repeat(8, |t, round| {"), ("later.lt(k_tiles)", "later.lt(8)")],
    ),
    // Of the findings' pages alone.
    ("parity_is_the_round_2", 2, &[("round & 1", "round")]),
    (
        "stores_to_a_tile_first_4",
        4,
        &[(
            "    k.sync();\n    let accumulator = tmem.address(k);\n",
            "    let thread = k.thread_index();
    let chunk = k.load_global_16(gemm.a.at(thread, 0));
    k.store_shared_16(a.at(thread, 0), chunk);
    k.sync();
    let accumulator = tmem.address(k);\n",
        )],
    ),
    (
        "chunks_in_pairs_3",
        3,
        &[("gemm.d.at(m_start + row, n_start + column)", "gemm.d.at(m_start + row, n_start + column / 16 * 16)")],
    ),
    ("leader_is_rank_1_9", 9, &[("const LEADER: u32 = 0;", "const LEADER: u32 = 1;")]),
    (
        "adds_to_the_tile_before_8",
        8,
        &[
            (
                "let free = PipelineState::producer(t, 1);\n",
                "let free = PipelineState::producer(t, 1);\n                let tile: U32 = t.variable(0);\n",
            ),
            ("(round + slice).gt(0)", "(round + slice + tile).gt(0)"),
            ("t.commit(mma2ld);", "t.commit(mma2ld); t.assign(tile, 1);"),
        ],
    ),
];
