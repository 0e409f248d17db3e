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
