// Mistakes of one TODO that show at a later one, too: as in `edits.rs`.

const FOLLOWS: &[Edit] = &[
    ("never_advanced_6", 6, &[("                    done.advance(t);\n", "")]),
    ("free_never_advanced_8", 8, &[("                    free.advance(t);\n", "")]),
    (
        "loads_into_the_next_7",
        7,
        &[
            (
                "let s = at.stage();\n                        t.wait(mma2tma.at(s), at.phase());\n                        t.expect_tx(",
                "t.wait(mma2tma.at(at.stage()), at.phase());\n                        at.advance(t);\n                        let s = at.stage();\n                        t.expect_tx(",
            ),
            (
                "tma2mma.at(s));\n                        at.advance(t);\n                        // ANCHOR_END: todo_7_3",
                "tma2mma.at(s));\n                        // ANCHOR_END: todo_7_3",
            ),
        ],
    ),
    ("made_for_4_7", 7, &[("t.barrier_init(ld2mma, WARPGROUP);", "t.barrier_init(ld2mma, 4);")]),
    ("box_of_a_turned_4", 4, &[("(round * BLK_K, m_start)", "(m_start, round * BLK_K)")]),
    ("half_the_bytes_4", 4, &[("a.bytes() + b.bytes()", "(a.bytes() + b.bytes()) / 2")]),
    ("one_operand_7", 7, &[("a.stage_bytes() + b.stage_bytes()", "a.stage_bytes()")]),
    ("b_without_rank_9", 9, &[("tile_column * MMA_N + rank * BLK_N", "tile_column * MMA_N")]),
    // Where the code is done and its `todo` left, and where only the `todo` is.
    ("todo_left_1", 1, &[("    k.fence_proxy_async();\n", "    k.todo(\"1.2\");\n    k.fence_proxy_async();\n")]),
    ("todo_alone_1", 1, &[("    k.fence_proxy_async();\n    k.sync();\n", "    k.todo(\"1.2\");\n")]),
    // The second write-back's thread does not wait until its store has been read.
    (
        "one_waits_for_the_read_10",
        10,
        &[("k.warp(4 * consumer, |w| w.elect_one(|t| t.bulk_wait_read(0)));", "if consumer == 0 { k.warp(0, |w| w.elect_one(|t| t.bulk_wait_read(0))); }")],
    ),
    ("d_without_rank_10", 10, &[("m_start + rank * BLK_M));", "m_start));")]),
];
