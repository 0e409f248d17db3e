//! Tiles that are stored, described or multiplied otherwise than they should be: what a newcomer to descriptors gets wrong. Each has one cause, and
//! one finding that names it.

use super::case::{Base, Case, Expect, Result, case, run, says, told};
use Base::{OneTile, Ring, Small};
use Expect::{Finds, Notes};
use emulator::{Content, Diagnostic, Launch};

const MMA: &str = "tcgen05.mma.cta_group::1";
const NEWCOMER: (&str, &str) = ("of a newcomer", "not run on a GPU");

pub const A_STAYS: &[(&str, &str)] = &[("    add.s64 %rd3, %rd3, 2;\n", "")];
const B_BY_HALVES: &[(&str, &str)] = &[("add.s64 %rd4, %rd4, 2;", "add.s64 %rd4, %rd4, 1;")];
const BOTH_STAY: &[(&str, &str)] = &[("    add.s64 %rd3, %rd3, 2;\n    add.s64 %rd4, %rd4, 2;\n", "")];
const THREE_SLICES: &[(&str, &str)] = &[("setp.lt.u32 %p4, %r21, 4;", "setp.lt.u32 %p4, %r21, 3;")];
const A_UNSHIFTED: &[(&str, &str)] = &[("    shr.u32 %r19, %r19, 4;\n", "")];
const B_UNSHIFTED: &[(&str, &str)] = &[("    shr.u32 %r20, %r20, 4;\n", "")];
const UNSHIFTED: &[(&str, &str)] = &[A_UNSHIFTED[0], B_UNSHIFTED[0]];
const RING_UNSHIFTED: &[(&str, &str)] = &[("@address", "and.b32 %r17, %r16, 0x3fff;")];
const N_64: &[(&str, &str)] = &[("0x08200010", "0x08100010")];
const M_64: &[(&str, &str)] = &[("0x08200010", "0x04200010")];
const RING_N_32: &[(&str, &str)] = &[("0x08100010", "0x08080010")];
const NARROW: &[(&str, &str)] =
    &[RING_N_32[0], ("    add.u32 %r30, %r23, %r29;", "    and.b32 %r30, %r29, 31;\n    add.u32 %r30, %r30, %r23;")];
const ALIGNED_TO_128: &[(&str, &str)] = &[
    (
        ".shared .align 1024 .b8 tile_a[16384];",
        ".shared .align 128 .b8 pad[128];\n    .shared .align 128 .b8 tile_a[16384];",
    ),
    (".shared .align 1024 .b8 tile_b[16384];", ".shared .align 128 .b8 tile_b[16384];"),
];
const NO_SWIZZLE_PROMISED: &[(&str, &str)] = &[
    ("or.b64 %rd3, %rd3, 0x4000404000000000;", "or.b64 %rd3, %rd3, 0x0000404000000000;"),
    ("or.b64 %rd4, %rd4, 0x4000404000000000;", "or.b64 %rd4, %rd4, 0x0000404000000000;"),
];
const NOT_SWIZZLED: &[(&str, &str)] = &[("xor.b32 %r6, %r4, %r5;", "mov.b32 %r6, %r5;")];
/// A stage of the ring has 24576 bytes.
const A_OF_STAGE_0: &[(&str, &str)] = &[(
    "@descriptor_b",
    "{}\n    mul.lo.u32 %r50, %r11, 1536;\n    cvt.u64.u32 %rd9, %r50;\n    sub.s64 %rd2, %rd2, %rd9;",
)];
const WIDE_PROMISED: &[(&str, &str)] = &[
    ("or.b64 %rd3, %rd3, 0x4000404000000000;", "or.b64 %rd3, %rd3, 0x2000404000000000;"),
    ("or.b64 %rd4, %rd4, 0x4000404000000000;", "or.b64 %rd4, %rd4, 0x2000404000000000;"),
];
const STORED_WIDE: &[(&str, &str)] =
    &[("xor.b32 %r6, %r4, %r5;", "and.b32 %r40, %r4, 3;\n    shl.b32 %r40, %r40, 1;\n    xor.b32 %r6, %r40, %r5;")];
/// Columns 0 to 63 of D are multiplied with the last rows of B, and nothing is for the others.
const SECOND_MMA_SKIPPED: &[(&str, &str)] = &[
    N_64[0],
    ("or.b64 %rd4, %rd4, 0x4000404000000000;", "or.b64 %rd4, %rd4, 0x4000404000000000;\n    add.s64 %rd4, %rd4, 512;"),
];
/// The first stage lies behind the second one.
const STAGES_EXCHANGED: &[(&str, &str)] = &[
    ("@stage_producer", "xor.b32 %r50, %r11, 1;\n    mul.lo.u32 %r16, %r50, 24576;\n{}"),
    ("@stage_multiplier", "xor.b32 %r51, %r11, 1;\n    mul.lo.u32 %r16, %r51, 24576;\n{}"),
    RING_UNSHIFTED[0],
];
/// Whether the next stage is full is asked before the MMAs of this one.
pub const LOOKS_AHEAD: &[(&str, &str)] = &[
    ("@acc_parity", "{}\n    setp.ne.u32 %p10, %r2, %r2;"),
    ("\nFULL_WAIT:\n", "\n    @%p10 bra PEEKED;\nFULL_WAIT:\n"),
    ("@loop_full", "{}\nPEEKED:"),
    (
        "@descriptor_b",
        "{}\n    xor.b32 %r50, %r11, 1;\n    shl.b32 %r51, %r50, 3;\n    add.u32 %r51, %r51, %r3;\n    xor.b32 %r52, %r11, %r12;\n    \
         mbarrier.try_wait.parity.shared::cta.b64 %p10, [%r51], %r52; // @peek",
    ),
];
/// Thread 0 fills two stages and waits until both are free; thread 32 waits for them in turn, and says that they are. Barriers: full, full, free.
const TWO_STAGES: &str = "\
setp.eq.u32 %p1, %r0, 32;
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [tile], 1;
mbarrier.init.shared::cta.b64 [tile+8], 1;
mbarrier.init.shared::cta.b64 [tile+16], 2;
MADE:
bar.sync 0;
mov.u32 %r3, 0;
mov.u32 %r4, tile;
@%p1 bra USE;
@!%p0 bra DONE;
FILL:
mbarrier.arrive.shared::cta.b64 _, [tile];
mbarrier.arrive.shared::cta.b64 _, [tile+8];
FREE:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [tile+16], %r3; // @wait_free
@!%p2 bra FREE;
add.u32 %r3, %r3, 1;
setp.lt.u32 %p3, %r3, 2;
@%p3 bra FILL;
bra DONE;
USE:
and.b32 %r5, %r3, 1; // @stage
shl.b32 %r5, %r5, 3;
add.u32 %r5, %r5, %r4;
shr.u32 %r6, %r3, 1;
FULL:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r5], %r6; // @wait_full
@!%p2 bra FULL;
mbarrier.arrive.shared::cta.b64 _, [tile+16];
add.u32 %r3, %r3, 1;
setp.lt.u32 %p3, %r3, 4;
@%p3 bra USE;
DONE:";
const STAGE_GOES_ON: &[(&str, &str)] = &[("@stage", "mov.u32 %r5, %r3;")];
/// One accumulator instead of two, and the parity of the wait for it stays.
const ONE_ACC_PARITY: &[(&str, &str)] = &[
    ("// @tile_free\n    xor.b32 %r20, %r20, 1;", "// @tile_free"),
    ("// @commit_acc\n    xor.b32 %r20, %r20, 1;", "// @commit_acc"),
    ("@flip_acc", ""),
];
/// The same of who reads it.
const ONE_OUT_PARITY: &[(&str, &str)] = &[ONE_ACC_PARITY[0], ONE_ACC_PARITY[1], ("@flip_out", "")];
const ONE_FULL_PARITY: &[(&str, &str)] = &[("@flip_multiplier", "")];

const B_AT_A: &[(&str, &str)] = &[("    mov.u32 %r20, tile_b;", "    mov.u32 %r20, tile_a;")];
const TWICE_THE_SAME_ROWS: &[(&str, &str)] = &[(
    "    tcgen05.mma.cta_group::1.kind::f16 [%r2], %rd3, %rd4, 0x08200010, %p3;",
    "    tcgen05.mma.cta_group::1.kind::f16 [%r2], %rd3, %rd4, 0x08100010, %p3;\n    add.u32 %r40, %r2, 64;\n    \
     tcgen05.mma.cta_group::1.kind::f16 [%r40], %rd3, %rd4, 0x08100010, %p3;",
)];
const DRAINS_OVERLAP: &[(&str, &str)] = &[("    add.u32 %r23, %r23, 8;", "    add.u32 %r23, %r23, 4;")];
const ONE_BLOCK_TOO_FEW: &[(&str, &str)] = &[
    ("@producer_more", "sub.u32 %r50, %r4, 1;\n    setp.lt.u32 %p6, %r14, %r50;"),
    ("@multiplier_more", "sub.u32 %r51, %r4, 1;\n    setp.lt.u32 %p6, %r14, %r51;"),
];
const COLUMN_IN_BYTES: &[(&str, &str)] = &[("@column", "shl.b32 %r18, %r14, 7;")];
const ROW_IN_BYTES: &[(&str, &str)] = &[
    ("[%rd0, {%r18, %r13}]", "[%rd0, {%r18, %r90}]"),
    ("@column", "{}\nadd.u32 %r90, %r13, 384;\nshl.b32 %r90, %r90, 7;"),
];
const B_IS_A: &[(&str, &str)] = &[("@descriptor_b", "add.s64 %rd3, %rd2, 0;")];

const HALF_THE_SWIZZLE: &[(&str, &str)] = &[
    ("or.b64 %rd3, %rd3, 0x4000404000000000;", "or.b64 %rd3, %rd3, 0x8000404000000000;"),
    ("or.b64 %rd4, %rd4, 0x4000404000000000;", "or.b64 %rd4, %rd4, 0x8000404000000000;"),
];

fn change_map(launch: &mut Launch, n: usize, change: fn(&mut emulator::TensorMap)) {
    if let emulator::Param::TensorMap { map, .. } = &mut launch.params[n] {
        change(map);
    }
}

fn numbers() -> emulator::Random {
    let distribution = emulator::Distribution::Integers { low: -3, high: 3 };
    emulator::Random { seed: 1, count: 8192, number: emulator::NumberType::F16, distribution }
}

/// As a launch that was recorded.
pub fn without_rows(launch: &mut Launch) {
    launch.buffers.iter_mut().for_each(|buffer| buffer.row_bytes = None);
}

pub fn cases() -> Vec<Case> {
    let case = |row, what, base, edits: &'static [(&'static str, &'static str)], expect| {
        case(row, what, NEWCOMER, base, edits, expect)
    };
    vec![
        case(
            "l1",
            "A's descriptor stays at the first slice of a tile that threads store",
            OneTile,
            A_STAYS,
            Finds(&[("depth-mismatch", MMA)]),
        ),
        case(
            "l2",
            "B's descriptor goes on by 16 bytes, A's by 32",
            OneTile,
            B_BY_HALVES,
            Finds(&[("depth-mismatch", MMA)]),
        ),
        case("l3", "both descriptors stay", OneTile, BOTH_STAY, Notes("product-added-twice", MMA, Result::Wrong)),
        case(
            "l4",
            "three slices of four are multiplied",
            OneTile,
            THREE_SLICES,
            Notes("loaded-never-read", "st.shared.v4.b32 [%r8]", Result::Wrong),
        ),
        case("l5", "no start address is shifted", OneTile, UNSHIFTED, Finds(&[("matrix-descriptor", MMA)])),
        case("l6", "A's start address is not shifted", OneTile, A_UNSHIFTED, Finds(&[("matrix-descriptor", MMA)])),
        case("l7", "B's start address is not shifted", OneTile, B_UNSHIFTED, Finds(&[("matrix-descriptor", MMA)])),
        case(
            "l8",
            "the start addresses of boxes are not shifted",
            Ring,
            RING_UNSHIFTED,
            Finds(&[("out-of-bounds", "@mma")]),
        ),
        case("l9", "N is half of what the accumulator has", OneTile, N_64, Finds(&[("instruction-descriptor", MMA)])),
        case(
            "l10",
            "M is half of what the tile has",
            OneTile,
            M_64,
            Finds(&[("undefined-value-stored", "tcgen05.ld.sync")]),
        ),
        case("l11", "N is half of what the box has", Ring, RING_N_32, Finds(&[("instruction-descriptor", "@mma")])),
        case(
            "l12",
            "the same, and only its columns are read",
            Ring,
            NARROW,
            Notes("loaded-never-read", "@load_b", Result::Wrong),
        ),
        case(
            "l13",
            "tiles begin at multiples of 128 bytes",
            OneTile,
            ALIGNED_TO_128,
            Finds(&[("swizzle-mismatch", MMA)]),
        ),
        case(
            "l14",
            "descriptors without the swizzle",
            OneTile,
            NO_SWIZZLE_PROMISED,
            Finds(&[("swizzle-mismatch", MMA)]),
        ),
        case(
            "l15",
            "stores without the swizzle",
            OneTile,
            NOT_SWIZZLED,
            Finds(&[("swizzle-mismatch", "st.shared.v4.b32 [%r8]")]),
        ),
        case("l16", "A of stage 0 in every round", Ring, A_OF_STAGE_0, Finds(&[("operand-not-ready", "@mma")])),
        case(
            "l17",
            "the stage never begins at 0 again",
            Small(1, 64, TWO_STAGES),
            STAGE_GOES_ON,
            Finds(&[("hang", "@wait_full")]),
        ),
        case(
            "l18",
            "the parity of the wait for an accumulator stays",
            Ring,
            ONE_ACC_PARITY,
            Finds(&[("accumulator-overwritten", "@mma")]),
        ),
        case(
            "l19",
            "the parity of the wait for a stage stays",
            Ring,
            ONE_FULL_PARITY,
            Finds(&[("mbarrier-overflow", "@expect")]),
        ),
        case(
            "l20",
            "the parity of the wait for a product stays",
            Ring,
            ONE_OUT_PARITY,
            Finds(&[("wrong-phase", "@wait_acc_full"), ("hang", "@wait_acc_full")]),
        ),
        case(
            "l21",
            "descriptors with the swizzle of 32-byte chunks",
            OneTile,
            WIDE_PROMISED,
            Finds(&[("swizzle-mismatch", MMA)]),
        ),
        case(
            "l22",
            "stores with the swizzle of 32-byte chunks",
            OneTile,
            STORED_WIDE,
            Finds(&[("swizzle-mismatch", MMA)]),
        ),
        case(
            "l23",
            "the MMA of the other columns is left out",
            OneTile,
            SECOND_MMA_SKIPPED,
            Finds(&[("undefined-value-stored", "tcgen05.ld.sync")]),
        ),
        case(
            "l24",
            "no start address is shifted, and the first one lies outside",
            Ring,
            STAGES_EXCHANGED,
            Finds(&[("out-of-bounds", "@mma")]),
        ),
        case("l25", "B's descriptor begins at the tile of A", OneTile, B_AT_A, Finds(&[("operand-overlap", MMA)])),
        case(
            "l26",
            "two MMAs of 64 columns multiply the same rows of B",
            OneTile,
            TWICE_THE_SAME_ROWS,
            Notes("loaded-never-read", "st.shared.v4.b32 [%r9]", Result::Wrong),
        ),
        case(
            "l27",
            "the loads of the epilogue overlap",
            OneTile,
            DRAINS_OVERLAP,
            Notes("product-never-read", MMA, Result::Wrong),
        ),
        case(
            "l28",
            "both loops along K end one block too early",
            Ring,
            ONE_BLOCK_TOO_FEW,
            Notes("input-not-loaded", "@load_a", Result::Wrong),
        ),
        case(
            "l29",
            "the coordinate along K counts bytes",
            Ring,
            COLUMN_IN_BYTES,
            Notes("input-not-loaded", "@load_a", Result::Wrong),
        ),
        case("l30", "B's descriptor begins at the box of A", Ring, B_IS_A, Finds(&[("operand-overlap", "@mma")])),
        case(
            "l31",
            "stores without the swizzle, of rows whose length the launch does not say",
            OneTile,
            NOT_SWIZZLED,
            Notes("swizzle-mismatch", "st.shared.v4.b32 [%r8]", Result::Wrong),
        )
        .launched(without_rows),
        case(
            "l32",
            "tiles begin at multiples of 128 bytes, the same",
            OneTile,
            ALIGNED_TO_128,
            Finds(&[("swizzle-mismatch", MMA)]),
        )
        .launched(without_rows),
        case(
            "l33",
            "descriptors with the swizzle of 64 bytes, the same",
            OneTile,
            HALF_THE_SWIZZLE,
            Finds(&[("swizzle-mismatch", MMA)]),
        )
        .launched(without_rows),
        case(
            "l34",
            "the epilogue stores its tile without the swizzle of the copy",
            Ring,
            &[("@swizzle", "")],
            Finds(&[("swizzle-mismatch", "@st_tile")]),
        ),
        case(
            "l35",
            "the tensor map of the copy has no swizzle",
            Ring,
            &[],
            Notes("swizzle-mismatch", "@st_tile", Result::Wrong),
        )
        .launched(|launch| change_map(launch, 2, |map| map.swizzle = emulator::Swizzle::None)),
        case(
            "l36",
            "the tile of the epilogue begins 128 bytes on",
            Ring,
            &[
                ("// @tile_d\n", "// @tile_d\n    add.u32 %r25, %r25, 128;\n"),
                ("// @tile_d_store\n", "// @tile_d_store\n    add.u32 %r44, %r44, 128;\n"),
                ("add.u32 %r3, %r2, 65536;", "add.u32 %r3, %r2, 65664;"),
            ],
            Finds(&[("swizzle-mismatch", "@st_tile")]),
        )
        .launched(|launch| launch.dynamic_shared += 128),
        case(
            "l37",
            "rows of the tensor map of A begin before the ones before them end",
            Ring,
            &[],
            Notes("tensor-map-overlap", "@load_a", Result::Wrong),
        )
        .launched(|launch| change_map(launch, 0, |map| map.strides[0] /= 2)),
        case(
            "l38",
            "a column of the tile of the epilogue is stored for the first tile only",
            Ring,
            &[(
                "@st_tile",
                "setp.ne.u32 %p10, %r29, 8;\n    mov.u32 %r50, %ctaid.x;\n    setp.eq.or.u32 %p11, %r10, %r50, %p10;\n    @%p11 {}",
            )],
            Notes("swizzle-mismatch", "@store", Result::Wrong),
        ),
        case(
            "l39",
            "the address that A is copied from goes on by half of what a pass copies",
            OneTile,
            &[("    add.s64 %rd0, %rd0, 2048;", "    add.s64 %rd0, %rd0, 1024;")],
            Notes("input-not-loaded", "st.shared.v4.b32 [%r8]", Result::Wrong),
        ),
        case(
            "l40",
            "nothing is stored",
            OneTile,
            &[("    st.global.v4.b32 [%rd5], {%r33, %r34, %r35, %r36};\n", "")],
            Notes("output-not-written", "mov.u32 %r0, %tid.x;", Result::Wrong),
        ),
        case(
            "l41",
            "the epilogue permutes its rows by two bits of three",
            Ring,
            &[("    and.b32 %r26, %r0, 7;", "    and.b32 %r26, %r0, 6;")],
            Notes("swizzle-mismatch", "@st_tile", Result::Wrong),
        ),
        case(
            "l42",
            "both operands are taken for BF16, and the buffers hold FP16",
            OneTile,
            &[("0x08200010", "0x08200490")],
            Finds(&[("type-mismatch", MMA)]),
        )
        .launched(|launch| {
            without_rows(launch);
            launch.buffers[..2].iter_mut().for_each(|buffer| buffer.content = Content::Random(numbers()));
        }),
        case(
            "l43",
            "the row of each box of A lies beyond the tensor",
            Ring,
            ROW_IN_BYTES,
            Notes("input-not-loaded", "@load_a", Result::Wrong),
        ),
    ]
}

/// What must be said of each.
const SAID: &[(&str, &[&str])] = &[
    ("l1", &["depths 0 to 15 of A with depths 16 to 31 of B", "threads store A here", "Advance both descriptors"]),
    ("l2", &["depths 16 to 31 of A with depths 8 to 23 of B"]),
    ("l3", &["to the same accumulator again"]),
    (
        "l4",
        &["4096 bytes that threads copy to `tile_a`", "between bytes 96 and 128 of rows of 128 bytes", "whole depth"],
    ),
    ("l5", &["matrix descriptors of A and B hold an address as it is, 0x400", "(address >> 4) & 0x3fff"]),
    ("l6", &["matrix descriptor of A holds an address", "0x400 × 16 = 0x4000"]),
    ("l7", &["matrix descriptor of B holds an address", "the address of `tile_a` or `tile_b`"]),
    ("l8", &["covers shared memory from 0x24000", "(address >> 4) & 0x3fff"]),
    ("l9", &["this MMA has N = 64, as bits 17 to 22", "it writes columns 0 to 63", "its N is 64"]),
    ("l10", &["this MMA has M = 64, as bits 24 to 28", "lanes 0 to 15 of each 32", "its M is 64"]),
    ("l11", &["this MMA has N = 32, as bits 17 to 22", "its N is 32"]),
    ("l12", &["this MMA has N = 32", "of B it takes 32 rows", "let N of the MMA be 64 (32 now)"]),
    ("l13", &["begins at 0x480, which is no multiple of 1024", ".align 1024"]),
    (
        "l14",
        &[
            "was stored with the 128-byte swizzle, and its descriptor promises none",
            "Set bits 61 to 63 of the descriptor to 2",
        ],
    ),
    ("l15", &["was stored without the 128-byte swizzle", "chunk c xor (r mod 8)"]),
    ("l16", &["reads A of another stage than its thread has waited for", "Let the address of A go on with the stage"]),
    ("l17", &["Let the stage begin at 0 again behind the last one"]),
    ("l18", &["a second time", "Let the parity of this wait", "go on with each phase"]),
    ("l19", &["change with each phase"]),
    ("l20", &["Let the parity of this wait go on with each phase"]),
    ("l21", &["promises the 128-byte swizzle of 32-byte chunks", "Set bits 61 to 63 of the descriptor to 2"]),
    ("l22", &["stored with the 128-byte swizzle of 32-byte chunks", "Set bits 61 to 63 of the descriptor to 1"]),
    ("l23", &["Write the value before it is used"]),
    ("l24", &["(address >> 4) & 0x3fff"]),
    ("l25", &["takes `tile_a` both for A and for B", "nobody reads anything of what is loaded here"]),
    ("l26", &["8192 bytes that threads copy to `tile_b` are never read"]),
    ("l27", &["columns 68 to 127 of the product", "other parts of it are read here"]),
    ("l28", &["columns of the tensor at `A` are never loaded", "bounds of their loops"]),
    ("l29", &["boxes lie wholly outside of the tensor: the first begins at column", "counted in elements"]),
    (
        "l30",
        &[
            "both for A and for B",
            "nobody reads anything of what is loaded here",
            "Let the descriptor of B begin in the tile",
        ],
    ),
    ("l31", &["was stored without the 128-byte swizzle", "does not say how long the rows of `A` are: 128 bytes"]),
    ("l32", &["begins at 0x480, which is no multiple of 1024", ".align 1024"]),
    (
        "l33",
        &[
            "its descriptor promises the 64-byte swizzle",
            "chunk c xor (r / 2 mod 4), or set bits 61 to 63 of the descriptor to 2",
        ],
    ),
    ("l34", &["with no swizzle, the copy takes it with the 128-byte swizzle", "chunk c xor (r mod 8)"]),
    (
        "l35",
        &["with the 128-byte swizzle, the copy takes it with no swizzle", "Give the tensor map the 128-byte swizzle"],
    ),
    ("l36", &["which is no multiple of 1024", "Let the tile begin at a multiple of 1024"]),
    ("l37", &["has 384 bytes, and another one begins 192 bytes behind its beginning"]),
    ("l38", &["bytes 16 to 31 of all rows of a tile", "again", "before the last copy"]),
    (
        "l39",
        &["7168 of the 16384 bytes of `A` are never copied to shared memory", "how far they go on from pass to pass"],
    ),
    ("l40", &["nothing is written to `D`, and nothing reads it"]),
    ("l41", &["otherwise than with the 128-byte swizzle", "chunk c xor (r mod 8)"]),
    ("l42", &["takes A and B for BF16, which are FP16", "threads store A here: FP16"]),
    (
        "l43",
        &[
            "all boxes that are loaded of the tensor at `A` lie wholly outside of it",
            "of dimension 1, of which there are 384",
            "Check coordinate 1 of this copy, the row",
        ],
    ),
];

/// One finding, or one note, for one cause; A and B that are stored by a statement each may have one each.
#[test]
fn one_cause_is_told_once_and_says_what_to_do() {
    let cases = cases();
    assert_eq!(
        cases.iter().map(|case| case.row).collect::<Vec<_>>(),
        SAID.iter().map(|said| said.0).collect::<Vec<_>>()
    );
    for (case, (row, parts)) in cases.iter().zip(SAID) {
        let report = run(case.base, &case.edits, case.launch, 400_000);
        let all: Vec<Diagnostic> = report.findings.iter().chain(&report.notes).cloned().collect();
        let codes: Vec<&str> = all.iter().map(|d| d.code).collect();
        let alike = codes.iter().all(|code| *code == codes[0]);
        let most = if ["l4", "l15", "l31", "l33"].contains(row) { 2 } else { 1 };
        let also = if *row == "l3" {
            codes.iter().all(|code| ["product-added-twice", "loaded-never-read"].contains(code))
        } else {
            false
        };
        assert!(also || alike && (1..=most).contains(&codes.len()), "{row}: {codes:?}\n{}", told(&all));
        says(&all[0], parts);
    }
}
