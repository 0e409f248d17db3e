//! Coordinates, tensor maps, descriptors, groups of CTAs.

use super::case::{Base, Case, Expect, Result, case};
use super::rows_21_30::{HANDED_BACK, HANDED_OVER};
use Base::{Pair, Quad, Ring, Small};
use Expect::{Finds, Notes, Refused, Wrong};
use emulator::{Launch, Param, TensorMap};

fn map_a(launch: &mut Launch) -> &mut TensorMap {
    match &mut launch.params[0] {
        Param::TensorMap { map, .. } => map,
        other => panic!("{other:?}"),
    }
}

pub fn cases() -> Vec<Case> {
    let triton_7385 = ("triton#7385, #8657, #8982, #11736, tilelang#2681", "ILL");
    let encode = ("tilelang#1931, #2578, #2630", "ENC");
    let wrong = ("common knowledge", "WRONG, or IMA, or HANG");
    let descriptor = ("KnowingNothing#10, triton#8378", "WRONG");
    let idesc = ("triton#8910", "ILL");
    let silent = ("CuTe DSL's documentation", "WRONG");
    let tilelang_2287 = ("tilelang#2287", "ILL");
    let tvm = ("tvm#20074", "HANG");
    vec![
        case(
            "11a",
            "a load begins at 8 bytes",
            triton_7385,
            Ring,
            &[("@column", "{}\n    add.u32 %r18, %r18, 4;")],
            Finds(&[("tensor-coordinate", "@load_a")]),
        ),
        case(
            "11b",
            "a store begins at 8 bytes",
            triton_7385,
            Ring,
            &[("    mov.u32 %r46, 0;", "    mov.u32 %r46, 4;")],
            Finds(&[("tensor-coordinate", "@store")]),
        ),
        case("12a", "rows 392 bytes apart", encode, Ring, &[], Refused("launch", "multiples of 16"))
            .launched(|launch| map_a(launch).strides = vec![392]),
        case("12b", "a box wider than its swizzle", encode, Ring, &[], Refused("launch", "up to 128 bytes"))
            .launched(|launch| map_a(launch).box_dims = vec![128, 128]),
        case("12c", "a box of 264 rows", encode, Ring, &[], Refused("launch", "1 to 256"))
            .launched(|launch| map_a(launch).box_dims = vec![64, 264]),
        case(
            "12d",
            "a tensor map that nobody encoded",
            ("tilelang#1931, #2578, #2630", "ILL"),
            Ring,
            &[],
            Finds(&[("tensor-map", "@load_a")]),
        )
        .launched(|launch| launch.params[0] = Param::Bytes(vec![0; 128])),
        case(
            "13a",
            "row and column of a load exchanged",
            wrong,
            Ring,
            &[("[%rd0, {%r18, %r13}]", "[%rd0, {%r13, %r18}]")],
            Finds(&[("depth-mismatch", "@mma")]),
        ),
        case(
            "13b",
            "row and column of a store exchanged",
            wrong,
            Ring,
            &[("{%r46, %r45}", "{%r45, %r46}")],
            Finds(&[("box-mismatch", "@store")]),
        ),
        case(
            "13c",
            "destination and mbarrier of a load exchanged",
            wrong,
            Ring,
            &[("[%r16], [%rd0, {%r18, %r13}], [%r15];", "[%r15], [%rd0, {%r18, %r13}], [%r16];")],
            Finds(&[
                ("mbarrier-not-initialised", "@load_a"),
                ("mbarrier-overwritten", "@load_a"),
                ("mbarrier-address", "@load_a"),
                // The tile does not fit behind the first barrier.
                ("bulk-shared-address", "@load_a"),
            ]),
        ),
        // No rule of the ISA forbids these three; but the tile that the MMA reads is not laid out as it reads it.
        case(
            "14a",
            "LBO and SBO exchanged: rows of a tile overlap",
            descriptor,
            Ring,
            &[("@descriptor", "    or.b64 %rd2, %rd2, 0x4000400100400000;")],
            Finds(&[("*", "@mma")]),
        ),
        case(
            "14b",
            "a descriptor with the address as it is, not shifted by 4",
            descriptor,
            Ring,
            &[("@address", "    and.b32 %r17, %r16, 0x3fff;")],
            Finds(&[("*", "@mma")]),
        ),
        case(
            "14c",
            "the swizzle of 32-byte atoms in the descriptor, that of 16-byte atoms in the tensor map",
            descriptor,
            Ring,
            &[("@descriptor", "    or.b64 %rd2, %rd2, 0x2000404000000000;")],
            Finds(&[("*", "@mma")]),
        ),
        case(
            "14d",
            "no 0b001 in bits 46 to 48",
            descriptor,
            Ring,
            &[("@descriptor", "    or.b64 %rd2, %rd2, 0x4000004000000000;")],
            // Triton wrote such ones up to 3.5, and B200s ran them.
            Notes("matrix-descriptor", "@mma", Result::Right),
        ),
        case(
            "14e",
            "a tensor map without swizzle, descriptors with that of 128 bytes",
            descriptor,
            Ring,
            &[],
            // What is loaded without a swizzle may have been arranged before: a note.
            Finds(&[("swizzle-mismatch", "@mma")]),
        )
        .launched(|launch| map_a(launch).swizzle = emulator::Swizzle::None),
        case(
            "14f",
            "tensor map and descriptor with two different swizzles",
            descriptor,
            Ring,
            &[],
            Finds(&[("swizzle-mismatch", "@mma")]),
        )
        .launched(|launch| {
            // Boxes of as many bytes.
            (map_a(launch).swizzle, map_a(launch).box_dims) = (emulator::Swizzle::B64, vec![32, 256]);
        }),
        // In bounds, and laid out as the MMA reads it: the wrong half of A.
        case(
            "15",
            "the distance to the next operand computed from a slice of the tile",
            ("tilelang#2965", "WRONG"),
            Ring,
            &[("@descriptor_b", "    add.s64 %rd3, %rd2, 512;")],
            Wrong,
        ),
        case(
            "16a",
            "N = 264",
            idesc,
            Ring,
            &[("0x08100010", "0x08420010")],
            Finds(&[("instruction-descriptor", "@mma")]),
        ),
        case(
            "16b",
            "M = 96",
            idesc,
            Ring,
            &[("0x08100010", "0x06100010")],
            Finds(&[("instruction-descriptor", "@mma")]),
        ),
        case(
            "16c",
            "BF16 instead of FP16",
            silent,
            Ring,
            &[("0x08100010", "0x08100490")],
            Finds(&[("type-mismatch", "@mma")]),
        ),
        case(
            "16d",
            "A read along M",
            silent,
            Ring,
            &[("0x08100010", "0x08108010")],
            Finds(&[("instruction-descriptor", "@mma")]),
        ),
        case(
            "17a",
            "MMAs of cta_group::1, a commit of cta_group::2",
            tilelang_2287,
            Ring,
            &[(
                "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r22+32];",
                "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [%r22+32];",
            )],
            Finds(&[("pair-leader", "@commit_acc"), ("ptx-semantics", "@commit_acc")]),
        ),
        case(
            "17b",
            "MMAs of cta_group::2, a commit of cta_group::1",
            tilelang_2287,
            Pair,
            &[(
                "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r23], %h0;",
                "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r23], %h0;",
            )],
            Finds(&[("*", "tcgen05.commit.cta_group::1")]),
        ),
        case(
            "18a",
            "the mask of the first pair in every pair",
            ("common knowledge", "HANG"),
            Quad,
            &[("    cvt.u16.u32 %h0, %r52;", "    mov.b16 %h0, 3;")],
            Finds(&[
                ("hang", "%p4, [%r14], %r11"),
                ("phase-overtaken", "multicast::cluster.b64 [%r14], %h0"),
                ("mbarrier-overflow", "multicast::cluster.b64 [%r14], %h0"),
            ]),
        ),
        case(
            "18b",
            "a mask without the peer",
            ("common knowledge", "HANG"),
            Pair,
            &[("    mov.b16 %h0, 3;", "    mov.b16 %h0, 1;")],
            Finds(&[("hang", "%p4, [%r14], %r11")]),
        ),
        case(
            "18c",
            "a mask with CTAs that the cluster has not",
            ("common knowledge", "HANG"),
            Pair,
            &[("    mov.b16 %h0, 3;", "    mov.b16 %h0, 15;")],
            Finds(&[("multicast-mask", "multicast::cluster.b64 [%r14], %h0")]),
        ),
        case(
            "19a",
            "loads of the odd CTA count on its own barrier",
            tvm,
            Pair,
            &[("    and.b32 %r15, %r13, 0xfeffffff;", "    mov.b32 %r15, %r13;")],
            // Said of a copy: it tells the other CTA's.
            Finds(&[("hang", "{%r19, %r7}], [%r15]")]),
        ),
        case(
            "19b",
            "an arrival of the form for the own CTA at an address of another",
            ("tvm#20074", "an error of synccheck"),
            Small(2, 32, HANDED_BACK),
            &[("@arrive_remote", "    mbarrier.arrive.shared::cta.b64 _, [%r5];")],
            Finds(&[("mbarrier-address", "@arrive_remote"), ("out-of-bounds", "@arrive_remote")]),
        ),
        case(
            "19c",
            "the same in CTA 0: an address without a rank is the own CTA's, unless mapa gave it",
            ("tvm#20074", "HANG"),
            Small(2, 32, HANDED_OVER),
            &[("@arrive_remote", "    mbarrier.arrive.shared::cta.b64 _, [%r5];")],
            Finds(&[("mbarrier-address", "mbarrier.arrive.shared::cta.b64 _, [%r5]")]),
        ),
        case(
            "20",
            "the leader waits for its own half only; the peer's half counts on the peer's barrier",
            ("cutlass#3643", "RACE, growing with size; ULF"),
            Pair,
            &[
                (
                    "    @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r13], 65536;",
                    "    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r13], 32768;",
                ),
                ("    and.b32 %r15, %r13, 0xfeffffff;", "    mov.b32 %r15, %r13;"),
            ],
            Finds(&[("operand-not-ready", "tcgen05.mma.cta_group::2")]),
        ),
    ]
}
