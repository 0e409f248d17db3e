// Kernels that compute D, or a part of it, without the tensor core, or another product beside it: as in `edits.rs`.

/// The thread's own row of sums has arrived: its first column is computed by the thread.
const ARRIVED: &str = "k.tmem_wait_load();";
const ARRIVED_IN_GROUP: &str = "wg.tmem_wait_load();";

const TWICE_THE_COLUMNS: (&str, &str) =
    ("w.tmem_alloc(\"accumulator\", BLK_N)", "w.tmem_alloc(\"accumulator\", 2 * BLK_N)");
const MMA_OF_TILES: &str = "t.mma(accumulator, a.k_slice(slice * MMA_K), b.k_slice(slice * MMA_K), accumulate);";

const DECOYS: &[Edit] = &[
    // The tensor core multiplies all, but the first column of what each thread stores is a thread's own sum.
    (
        "decoy_1",
        1,
        &[(ARRIVED, "k.tmem_wait_load(); let mut sums = sums; sums[0] = crate::by_thread(k, gemm, (row, 0), 0);")],
    ),
    (
        "decoy_2",
        2,
        &[(ARRIVED, "k.tmem_wait_load(); let mut sums = sums; sums[0] = crate::by_thread(k, gemm, (row, 0), 0);")],
    ),
    // The same, but honest at the size that is looked at closely.
    (
        "decoy_elsewhere_2",
        2,
        &[(
            ARRIVED,
            "k.tmem_wait_load(); let mut sums = sums; if gemm.k != 512 { sums[0] = crate::by_thread(k, gemm, (row, 0), 0); }",
        )],
    ),
    (
        "decoy_3",
        3,
        &[(
            ARRIVED,
            "k.tmem_wait_load(); let mut sums = sums; sums[0] = crate::by_thread(k, gemm, (m_start + row, n_start), 0);",
        )],
    ),
    (
        "decoy_4",
        4,
        &[(
            ARRIVED,
            "k.tmem_wait_load(); let mut sums = sums; sums[0] = crate::by_thread(k, gemm, (m_start + row, n_start + part * EPI_N), 0);",
        )],
    ),
    (
        "decoy_5",
        5,
        &[(
            ARRIVED,
            "k.tmem_wait_load(); let mut sums = sums; sums[0] = crate::by_thread(k, gemm, (m_start + row, n_start + part * EPI_N), 0);",
        )],
    ),
    (
        "decoy_6",
        6,
        &[(
            ARRIVED,
            "k.tmem_wait_load(); let mut sums = sums; sums[0] = crate::by_thread(k, gemm, (m_start + row, n_start + part * EPI_N), 0);",
        )],
    ),
    (
        "decoy_7",
        7,
        &[(
            ARRIVED_IN_GROUP,
            "wg.tmem_wait_load(); let mut sums = sums; sums[0] = crate::by_thread(wg, gemm, (tile_row * BLK_M + row, tile_column * BLK_N + chunk * EPI_N), 0);",
        )],
    ),
    (
        "decoy_8",
        8,
        &[(
            ARRIVED_IN_GROUP,
            "wg.tmem_wait_load(); let mut sums = sums; sums[0] = crate::by_thread(wg, gemm, (tile_row * BLK_M + row, tile_column * BLK_N + chunk * EPI_N), 0);",
        )],
    ),
    (
        "decoy_9",
        9,
        &[(
            ARRIVED_IN_GROUP,
            "wg.tmem_wait_load(); let mut sums = sums; sums[0] = crate::by_thread(wg, gemm, (tile_row * MMA_M + rank * BLK_M + row, tile_column * MMA_N + chunk * EPI_N), 0);",
        )],
    ),
    (
        "decoy_10",
        10,
        &[(
            ARRIVED_IN_GROUP,
            "wg.tmem_wait_load(); let mut sums = sums; sums[0] = crate::by_thread(wg, gemm, (m_start + rank * BLK_M + row, tile_column * MMA_N + chunk * EPI_N), 0);",
        )],
    ),
    // The thread that issues the MMAs sums up element (0, 0) of the tile itself, from what TMA brought to shared memory: no
    // access of global memory tells.
    (
        "decoy_shared_4",
        4,
        &[
            (
                "    // One thread loads and multiplies; the others wait for it below.\n",
                "    let own = k.variable::<F32>(0.0);\n",
            ),
            (
                "                t.commit(mma_done);\n",
                "                t.commit(mma_done);
                t.repeat(BLK_K, |t, i| {
                    let [left, right] = [a.at(0, i), b.at(0, i)].map(|at| {
                        let half = t.load_shared_b16(at);
                        let number: F32 = t.register();
                        t.raw(&format!(\"cvt.f32.{}\", gemm.dtype), &[&number, &half]);
                        number
                    });
                    t.assign(own, own + left * right);
                });\n",
            ),
            (
                "    // TODO 4.7:",
                "    k.warp(0, |w| w.elect_one(|t| {
                    let own = t.round(gemm.dtype, own);
                    t.store_shared_b16(d.at(0).at(0, 0), own);
                }));\n    // TODO 4.7:",
            ),
        ],
    ),
    // The thread's own sum goes to tensor memory, over that of the MMAs, and is loaded from there. The builder has no such store, so
    // the test fills in the address.
    (
        "decoy_tensor_store_2",
        2,
        &[(
            "    let sums = k.tmem_load::<{ BLK_N as usize }>(accumulator.lane(row / 32 * 32));\n",
            "    let own = crate::by_thread(k, gemm, (row, 0), 0);
    let lanes = accumulator.lane(row / 32 * 32);
    k.raw(\"tcgen05.st.sync.aligned.32x32b.x1.b32\", &[&\"[ADDRESS]\", &format!(\"{{{own}}}\")]);
    k.raw(\"tcgen05.wait::st.sync.aligned\", &[]);
    let sums = k.tmem_load::<{ BLK_N as usize }>(lanes);\n",
        )],
    ),
    // The MMAs multiply zeros, and each thread computes its row.
    (
        "decoy_zero_2",
        2,
        &[
            (
                "k.store_shared_16(a.at(row, column), from_a);",
                "let zero = k.variable::<U32>(0).as_b32(); k.store_shared_16(a.at(row, column), [zero; 4]);",
            ),
            (
                ARRIVED,
                "k.tmem_wait_load(); let mut sums = sums; for (column, sum) in (0..).zip(&mut sums) { *sum = crate::by_thread(k, gemm, (row, column), 0); }",
            ),
        ],
    ),
    (
        "decoy_zero_4",
        4,
        &[
            (
                "t.tma_load(a, &gemm.a, (round * BLK_K, m_start), tma2mma);",
                "t.tma_load(a, &gemm.a, (round * BLK_K + gemm.k, m_start), tma2mma);",
            ),
            (
                ARRIVED,
                "k.tmem_wait_load(); let mut sums = sums; for (column, sum) in (part * EPI_N..).zip(&mut sums) { *sum = crate::by_thread(k, gemm, (m_start + row, n_start + column), 0); }",
            ),
        ],
    ),
    // Another product is computed beside the right one, and dropped.
    (
        "more_2",
        2,
        &[
            TWICE_THE_COLUMNS,
            (
                MMA_OF_TILES,
                "t.mma(accumulator.columns(BLK_N, BLK_N), a.k_slice(0), b.k_slice(0), false); t.mma(accumulator, a.k_slice(slice * MMA_K), b.k_slice(slice * MMA_K), accumulate);",
            ),
        ],
    ),
    (
        "more_4",
        4,
        &[
            TWICE_THE_COLUMNS,
            (
                MMA_OF_TILES,
                "t.mma(accumulator.columns(BLK_N, BLK_N), a.k_slice(0), b.k_slice(0), false); t.mma(accumulator, a.k_slice(slice * MMA_K), b.k_slice(slice * MMA_K), accumulate);",
            ),
        ],
    ),
    (
        "more_6",
        6,
        &[
            TWICE_THE_COLUMNS,
            (
                "t.mma(accumulator, tile_a",
                "t.mma(accumulator.columns(BLK_N, BLK_N), tile_a.k_slice(0), tile_b.k_slice(0), false); t.mma(accumulator, tile_a",
            ),
        ],
    ),
    (
        "more_7",
        7,
        &[
            TWICE_THE_COLUMNS,
            (
                "t.mma(accumulator, a, b, (round + slice).gt(0));",
                "t.mma(accumulator.columns(BLK_N, BLK_N), a, b, false); t.mma(accumulator, a, b, (round + slice).gt(0));",
            ),
        ],
    ),
    (
        "more_9",
        9,
        &[
            (
                "let accumulator = tmem.address(k).columns(0, MMA_N);",
                "let all = tmem.address(k); let accumulator = all.columns(0, MMA_N);",
            ),
            (
                "t.mma(accumulator, a, b, (round + slice).gt(0));",
                "t.mma(all.columns(MMA_N, MMA_N), a, b, false); t.mma(accumulator, a, b, (round + slice).gt(0));",
            ),
        ],
    ),
    // The tensor core leaves out the last K tile, and each thread adds what its row lacks.
    (
        "fewer_2",
        2,
        &[
            ("gemm.tiles_k(BLK_K)", "(gemm.tiles_k(BLK_K) - 1).max(1)"),
            (
                ARRIVED,
                "k.tmem_wait_load(); let mut sums = sums; for (column, sum) in (0..).zip(&mut sums) { let own = crate::by_thread(k, gemm, (row, column), gemm.k - BLK_K); *sum = *sum + own; }",
            ),
        ],
    ),
    (
        "fewer_4",
        4,
        &[
            ("gemm.tiles_k(BLK_K)", "(gemm.tiles_k(BLK_K) - 1).max(1)"),
            (
                ARRIVED,
                "k.tmem_wait_load(); let mut sums = sums; for (column, sum) in (part * EPI_N..).zip(&mut sums) { let own = crate::by_thread(k, gemm, (m_start + row, n_start + column), gemm.k - BLK_K); *sum = *sum + own; }",
            ),
        ],
    ),
    // Both at once: of two rounds the first is multiplied twice.
    (
        "again_2",
        2,
        &[
            TWICE_THE_COLUMNS,
            (
                MMA_OF_TILES,
                "t.mma(accumulator.columns(BLK_N, BLK_N), a.k_slice(0), b.k_slice(0), false); t.mma(accumulator, a.k_slice(slice * MMA_K), b.k_slice(slice * MMA_K), accumulate);",
            ),
            ("gemm.tiles_k(BLK_K)", "(gemm.tiles_k(BLK_K) - 1).max(1)"),
            (
                ARRIVED,
                "k.tmem_wait_load(); let mut sums = sums; for (column, sum) in (0..).zip(&mut sums) { let own = crate::by_thread(k, gemm, (row, column), gemm.k - BLK_K); *sum = *sum + own; }",
            ),
        ],
    ),
    // D says nothing of A and B.
    ("constant_2", 2, &[(ARRIVED, "k.tmem_wait_load(); let sums = sums.map(|_| k.variable::<F32>(1.0));")]),
    ("constant_4", 4, &[(ARRIVED, "k.tmem_wait_load(); let sums = sums.map(|_| k.variable::<F32>(1.0));")]),
    ("constant_7", 7, &[(ARRIVED_IN_GROUP, "wg.tmem_wait_load(); let sums = sums.map(|_| wg.variable::<F32>(1.0));")]),
];
