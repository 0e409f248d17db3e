//! Where the elements of a box land in shared memory: swizzles, edges, strides, dimensions.

use crate::row::{Row, bare, check};
use emulator::{Element, Swizzle, TensorMap};

pub fn map(element: Element, dims: &[u64], box_dims: &[u32], swizzle: Swizzle) -> TensorMap {
    let mut stride = u64::from(element.bytes());
    let strides = dims[..dims.len() - 1].iter().map(|&d| {
        stride *= d;
        stride
    });
    TensorMap {
        address: 0,
        element,
        dims: dims.to_vec(),
        strides: strides.collect(),
        box_dims: box_dims.to_vec(),
        element_strides: vec![],
        swizzle,
        fill_nan: false,
    }
}

/// 16-bit elements that number themselves from 1.
pub fn numbered(count: u16) -> Vec<u8> {
    (1..=count).flat_map(u16::to_le_bytes).collect()
}

/// Loads one box, waits for its bytes, and copies `words` words of shared memory to `out`.
pub fn load(rank: usize, coordinates: &str, bytes: u32, words: u64) -> Row {
    let body = format!(
        "mbarrier.init.shared::cta.b64 [bar], 1;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {bytes};\n\
         cp.async.bulk.tensor.{rank}d.shared::cta.global.tile.mbarrier::complete_tx::bytes [smem], [%d6, {{{coordinates}}}], [bar];\n\
         WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;\n@!%p1 bra WAIT;"
    );
    bare(1, &body).around("", &dump(words))
}

pub fn dump(words: u64) -> String {
    format!(
        "mov.u32 %r1, 0;\nmov.u32 %r2, smem;\nmov.b64 %d1, %d8;\nDUMP:\nld.shared.b64 %d0, [%r2];\nst.global.b64 [%d1], %d0;\n\
         add.u32 %r2, %r2, 8;\nadd.s64 %d1, %d1, 8;\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, {words};\n@%p1 bra DUMP;"
    )
}

/// Four elements of 16 bits in a word.
pub fn word(elements: [u64; 4]) -> u64 {
    elements.iter().rev().fold(0, |w, e| w << 16 | e)
}

pub fn rows() -> Vec<Row> {
    let mut rows = swizzled();
    rows.extend(narrow());
    rows.extend(edges());
    rows.extend(strides());
    rows.extend(dimensions());
    rows.extend(packed());
    rows
}

/// Elements of 4 and 6 bits: 128 of them make a row, of 64 or 96 bytes in global memory. Padded, 16 of them stand before 8 or 4 bytes that
/// hold nothing. The mbarrier counts the packed bytes.
fn packed() -> Vec<Row> {
    let mut rows = Vec::new();
    for (element, packed, swizzle) in [
        (Element::U4Align16, 8, Swizzle::None),
        (Element::U4Align16, 8, Swizzle::B128),
        (Element::U4Align16, 8, Swizzle::B128Atom32),
        (Element::U6Align16, 12, Swizzle::None),
        (Element::U6Align16, 12, Swizzle::B128),
    ] {
        // Two rows of 256 elements; the box is the second half of both, and a third row beyond the tensor.
        let pitch = 16 * packed;
        let input: Vec<u8> = (0..2 * pitch).map(|n| (n % 251) as u8 + 1).collect();
        let map = TensorMap {
            address: 0,
            element,
            dims: vec![256, 2],
            strides: vec![pitch as u64],
            box_dims: vec![128, 3],
            element_strides: vec![],
            swizzle,
            fill_nan: false,
        };
        let row = load(2, "128, 0", 3 * 8 * packed as u32, 0).map(map, false).input(input.clone());
        // The first 8 bytes of each chunk, or 12 in words of 4.
        let (mut dump, mut expected, mut at) = (String::new(), vec![], 0);
        for chunk in 0..24 {
            let (line, c) = (chunk / 8, chunk % 8);
            let place = line * 128
                + 16 * match swizzle {
                    Swizzle::B128 => c ^ line,
                    Swizzle::B128Atom32 => ((c / 2) ^ line) * 2 + c % 2,
                    _ => c,
                };
            for word in 0..packed / 4 {
                dump += &format!("ld.shared.u32 %r1, [smem+{}];\nst.global.u32 [%d8+{at}], %r1;\n", place + 4 * word);
                let from = line * pitch + 8 * packed + c * packed + 4 * word;
                let bytes = if line < 2 { [0, 1, 2, 3].map(|n| input[from + n]) } else { [0; 4] };
                expected.push(u32::from_le_bytes(bytes));
                at += 4;
            }
        }
        let words: Vec<u64> = expected.chunks(2).map(|two| u64::from(two[0]) | u64::from(two[1]) << 32).collect();
        let padding = format!("ld.shared.u32 %r1, [smem+{packed}];\nst.global.u32 [%d8], %r1;\n");
        let first = dump.lines().take(2).collect::<Vec<_>>().join("\n");
        rows.push(row.around("", &dump).gives(0, &words).with(
            &format!("{first}\n"),
            &padding,
            "undefined-value-stored",
        ));
    }
    // Without padding: as they lie.
    let map = TensorMap {
        address: 0,
        element: Element::U4Align8,
        dims: vec![64, 2],
        strides: vec![32],
        box_dims: vec![32, 2],
        element_strides: vec![],
        swizzle: Swizzle::None,
        fill_nan: false,
    };
    let expected = [word([9, 10, 11, 12]), word([13, 14, 15, 16]), word([25, 26, 27, 28]), word([29, 30, 31, 32])];
    rows.push(load(2, "32, 0", 32, 4).map(map, false).input(numbered(32)).gives(0, &expected));
    rows
}

/// What padded elements cannot be, and what a map of them must hold.
#[test]
fn packed_elements_have_rules_of_their_own() {
    let map = |element| TensorMap {
        address: 0,
        element,
        dims: vec![256, 2],
        strides: vec![128],
        box_dims: vec![128, 2],
        element_strides: vec![],
        swizzle: Swizzle::B128,
        fill_nan: false,
    };
    let four = || map(Element::U4Align16);
    for (map, says) in [
        (TensorMap { address: 16, ..four() }, "`address` is 0x10 (allowed with padded elements: multiples of 32)"),
        (
            TensorMap { dims: vec![192, 2], ..four() },
            "`dims[0]` is 192 (allowed with padded elements: multiples of 128)",
        ),
        (TensorMap { box_dims: vec![64, 2], ..four() }, "`box_dims[0]` is 64 (allowed with padded elements: 128)"),
        (
            TensorMap { strides: vec![144], ..four() },
            "`strides` has 144 bytes (allowed with padded elements: multiples of 32)",
        ),
        (TensorMap { swizzle: Swizzle::B64, ..four() }, "`swizzle` is one that padded elements cannot have"),
        (TensorMap { fill_nan: true, ..four() }, "`fill_nan` is true"),
        (
            TensorMap { box_dims: vec![40, 2], ..map(Element::U4Align8) },
            "`box_dims[0]` is 40 (allowed with elements of 4 bits",
        ),
    ] {
        let why = map.encode().expect_err(says);
        assert!(why.contains(says), "{why}, expected {says}");
    }
    for element in [Element::U4Align8, Element::U4Align16, Element::U6Align16] {
        let object = map(element).encode().expect("the map is allowed");
        assert_eq!(TensorMap::decode(&object).map(|map| map.element), Ok(element));
    }
}

/// For each mode: bytes of a row, and where 16-byte chunk `c` of row `r` lies, as chunk of that row (PTX ISA, swizzling modes:
/// the tables repeat after 2, 4 or 8 lines of 128 bytes, over which the rows are laid).
fn swizzled() -> Vec<Row> {
    /// A place within a line of 128 bytes: line and chunk to chunk.
    type Place = fn(u64, u64) -> u64;
    let modes: [(Swizzle, u64, Place); 7] = [
        (Swizzle::None, 128, |_, c| c),
        (Swizzle::B128, 128, |line, c| c ^ (line % 8)),
        // In rows of 64 bytes a line has two, and the chunks of a row are permuted by its line, of four.
        (Swizzle::B64, 64, |line, c| c / 4 * 4 + ((c % 4) ^ (line % 4))),
        (Swizzle::B32, 32, |line, c| c / 2 * 2 + ((c % 2) ^ (line % 2))),
        // Pairs of chunks: 0 1 | 2 3 | 4 5 | 6 7, permuted by the line, of four.
        (Swizzle::B128Atom32, 128, |line, c| ((c / 2) ^ (line % 4)) * 2 + c % 2),
        (Swizzle::B128Atom32Flip8, 128, |line, c| ((c / 2) ^ (line % 4)) * 2 + c % 2),
        // Halves of a line.
        (Swizzle::B128Atom64, 128, |line, c| ((c / 4) ^ (line % 2)) * 4 + c % 4),
    ];
    let mut rows = Vec::new();
    for (swizzle, row_bytes, place) in modes {
        let (columns, lines) = (row_bytes / 2, 8u64);
        let height = lines * 128 / row_bytes;
        let mut shared = vec![0u64; (lines * 16) as usize];
        for chunk in 0..lines * 8 {
            let (line, c) = (chunk / 8, chunk % 8);
            for half in 0..2 {
                // Elements number themselves: chunk n begins with 8 n + 1.
                let first = 8 * chunk + 4 * half + 1;
                let flipped = swizzle == Swizzle::B128Atom32Flip8 && line % 2 == 1;
                let at = line * 16 + place(line, c) * 2 + if flipped { 1 - half } else { half };
                shared[at as usize] = word([first, first + 1, first + 2, first + 3]);
            }
        }
        rows.push(
            load(2, "0, 0", (lines * 128) as u32, lines * 16)
                .map(map(Element::F16, &[columns, height], &[columns as u32, height as u32], swizzle), false)
                .input(numbered(512))
                .gives(0, &shared),
        );
        // A box that begins in the middle of the pattern: the place in shared memory decides, not the row of the box.
        if swizzle == Swizzle::B128 {
            let mut late = vec![0; 16];
            for c in 0..8 {
                for half in 0..2 {
                    let first = 8 * c + 4 * half + 1;
                    late[((c ^ 3) * 2 + half) as usize] = word([first, first + 1, first + 2, first + 3]);
                }
            }
            rows.push(
                load(2, "0, 0", 128, 80)
                    .replaced("[smem], [%d6", "[smem+384], [%d6")
                    .around("mov.u32 %r1, 0; mov.u32 %r2, smem;\nCLEAR:\nst.shared.b64 [%r2], 0; add.u32 %r2, %r2, 8; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 80; @%p1 bra CLEAR;\nfence.proxy.async.shared::cta;", "")
                    .map(map(Element::F16, &[64, 8], &[64, 1], swizzle), false)
                    .input(numbered(512))
                    .gives(48, &late),
            );
        }
    }
    rows
}

/// Rows of 32 bytes under the 128-byte swizzle, and of 16 under the 32-byte one: each takes a whole row of the pattern, and what lies
/// between is not touched. As measured on an H200, for loads and for stores.
fn narrow() -> Vec<Row> {
    const UNTOUCHED: u64 = 0xeeee_eeee_eeee_eeee;
    let clear = "mov.u32 %r1, 0; mov.u32 %r2, smem; mov.u64 %d1, 0xeeeeeeeeeeeeeeee;\nCLEAR:\nst.shared.b64 [%r2], %d1; \
                 add.u32 %r2, %r2, 8; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 128; @%p1 bra CLEAR;\nfence.proxy.async.shared::cta;";
    let four = |first: u64| word([first, first + 1, first + 2, first + 3]);
    let mut rows = Vec::new();
    // Bytes of a row, of the pattern, and how many chunks of 16 bytes a line of the pattern permutes.
    for (swizzle, row_bytes, span, chunks) in [(Swizzle::B128, 32u64, 128u64, 8u64), (Swizzle::B32, 16, 32, 2)] {
        let (columns, height) = (row_bytes / 2, 8u64);
        let mut shared = vec![UNTOUCHED; (height * span / 8) as usize];
        for row in 0..height {
            for chunk in 0..row_bytes / 16 {
                let line = row * span / 128;
                let place = row * (span / 16) + (chunk ^ (line % chunks));
                for half in 0..2 {
                    shared[(2 * place + half) as usize] = four(row * columns + 8 * chunk + 4 * half + 1);
                }
            }
        }
        let map = map(Element::F16, &[columns, height], &[columns as u32, height as u32], swizzle);
        let bytes = (row_bytes * height) as u32;
        rows.push(
            load(2, "0, 0", bytes, height * span / 8)
                .around(clear, "")
                .map(map.clone(), false)
                .input(numbered((columns * height) as u16))
                .gives(0, &shared),
        );
        // A store takes its rows from the same places: shared memory holds 16-bit numbers of themselves.
        let fill = "mov.u32 %r1, 0;\nmov.u32 %r2, smem;\nFILL:\nadd.u32 %r3, %r1, 1;\nshl.b32 %r3, %r3, 16;\nor.b32 %r3, %r3, %r1;\n\
                    st.shared.b32 [%r2], %r3;\nadd.u32 %r2, %r2, 4;\nadd.u32 %r1, %r1, 2;\nsetp.lt.u32 %p1, %r1, 512;\n@%p1 bra FILL;\n";
        let store = "fence.proxy.async.shared::cta;\ncp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d6, {0, 0}], [smem];\n\
                     cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;";
        let mut out = Vec::new();
        for row in 0..height {
            for chunk in 0..row_bytes / 16 {
                let place = row * (span / 16) + (chunk ^ ((row * span / 128) % chunks));
                out.extend([four(8 * place), four(8 * place + 4)]);
            }
        }
        rows.push(bare(1, &format!("{fill}{store}")).map(map, true).gives(0, &out));
    }
    rows
}

/// A tensor of 4 rows of 16 elements; a box of 2 rows of 8. What lies outside is zero, or NaN, and its bytes count.
fn edges() -> Vec<Row> {
    let tensor = map(Element::F16, &[16, 4], &[8, 2], Swizzle::None);
    let nan = TensorMap { fill_nan: true, ..tensor.clone() };
    let row = |r: u64, c: u64| {
        [word([0, 1, 2, 3].map(|n| 16 * r + c + n + 1)), word([4, 5, 6, 7].map(|n| 16 * r + c + n + 1))]
    };
    let zeroes = [0, 0];
    let nans = [0x7ff7_7ff7_7ff7_7ff7; 2];
    let mut rows = Vec::new();
    for (at, first, second) in [
        ("8, 1", row(1, 8), row(2, 8)),
        ("8, 3", row(3, 8), zeroes),
        ("0, -1", zeroes, row(0, 0)),
        ("16, 0", zeroes, zeroes),
        ("-8, 0", zeroes, zeroes),
        ("0, 4", zeroes, zeroes),
    ] {
        let filled = |w: [u64; 2]| if w == zeroes { nans } else { w };
        let load = load(2, at, 32, 4).input(numbered(64));
        rows.push(load.clone().map(tensor.clone(), false).gives(0, &[first, second].concat()));
        rows.push(load.map(nan.clone(), false).gives(0, &[filled(first), filled(second)].concat()));
    }
    // Rows of 12 elements: half of the second box of a row lies outside.
    let narrow = TensorMap { dims: vec![12, 4], ..tensor };
    let half = |r: u64| [word([8, 9, 10, 11].map(|n| 16 * r + n + 1)), 0];
    rows.push(
        load(2, "8, 0", 32, 4).input(numbered(64)).map(narrow.clone(), false).gives(0, &[half(0), half(1)].concat()),
    );
    rows.push(
        load(2, "8, 0", 32, 4).input(numbered(64)).map(narrow, false).gives(0, &[half(0), half(1)].concat()).with(
            "_, [bar], 32;",
            "_, [bar], 48;",
            "hang",
        ),
    );
    // A coordinate that is no multiple of 16 bytes.
    let tensor = map(Element::F16, &[16, 4], &[8, 2], Swizzle::None);
    rows.push(load(2, "8, 0", 32, 0).input(numbered(64)).map(tensor, false).with(
        "{8, 0}",
        "{4, 0}",
        "tensor-coordinate",
    ));
    rows
}

/// Every second row of the tensor: a box of 4 has 2 of them; of 3, rounded up, 2, too.
fn strides() -> Vec<Row> {
    let row = |r: u64| [word([0, 1, 2, 3].map(|n| 8 * r + n + 1)), word([4, 5, 6, 7].map(|n| 8 * r + n + 1))];
    let mut rows = Vec::new();
    for height in [4, 3] {
        let map = TensorMap { element_strides: vec![1, 2], ..map(Element::F16, &[8, 8], &[8, height], Swizzle::None) };
        rows.push(load(2, "0, 1", 32, 4).input(numbered(64)).map(map, false).gives(0, &[row(1), row(3)].concat()));
    }
    rows
}

/// One to five dimensions of 2 each behind rows of 8 elements: the box at the last coordinates, of two in the second dimension.
fn dimensions() -> Vec<Row> {
    let mut rows = Vec::new();
    for rank in 1..=5usize {
        let mut dims = vec![8u64];
        dims.extend(vec![2; rank - 1]);
        let mut extent = vec![8u32];
        extent.extend(vec![1; rank - 1]);
        if rank > 1 {
            extent[1] = 2;
        }
        let coordinates: Vec<String> = (0..rank).map(|d| if d < 2 { "0" } else { "1" }.to_string()).collect();
        let height = if rank > 1 { 2 } else { 1 };
        // The rows before it: of all that have a 0 in a dimension from the third on.
        let first_row = (2..rank).map(|d| 1u64 << (d - 1)).sum::<u64>();
        let expected: Vec<u64> =
            (0..2 * height).map(|w| word([0, 1, 2, 3].map(|n| 8 * first_row + 4 * w + n + 1))).collect();
        rows.push(
            load(rank, &coordinates.join(", "), 16 * height as u32, 2 * height)
                .input(numbered(8 << (rank - 1)))
                .map(map(Element::F16, &dims, &extent, Swizzle::None), false)
                .gives(0, &expected),
        );
    }
    rows
}

#[test]
fn values() {
    check(&rows());
}
