//! Elements of TF32: a load rounds them, a store does not.

use crate::row::{Row, bare, check};
use crate::tma_layout::{load, map};
use emulator::{Element, Swizzle};

/// FP32 as it lies in global memory, and in shared memory behind a load of TF32: ten bits of fraction, to the nearest, to even where two are as near.
/// Worked out by hand, and the same as on an H100, with TF32 and with TF32_FTZ.
const ROUNDED: [(u32, u32); 24] = [
    (0x3f80_0000, 0x3f80_0000),
    (0x3f80_0001, 0x3f80_0000),
    (0x3f80_0fff, 0x3f80_0000),
    // Half of the last place: to even.
    (0x3f80_1000, 0x3f80_0000),
    (0x3f80_1001, 0x3f80_2000),
    (0x3f80_2fff, 0x3f80_2000),
    (0x3f80_3000, 0x3f80_4000),
    (0xbf80_1000, 0xbf80_0000),
    // The largest number is too large.
    (0x7f7f_ffff, 0x7f80_0000),
    (0x7f80_0000, 0x7f80_0000),
    (0xff80_0000, 0xff80_0000),
    // NaNs, whatever their sign and bits.
    (0x7f80_0001, 0x7fff_e000),
    (0x7fc0_1234, 0x7fff_e000),
    (0xffff_ffff, 0x7fff_e000),
    // Subnormal numbers are numbers as others.
    (0x0000_0001, 0x0000_0000),
    (0x0000_1000, 0x0000_0000),
    (0x0000_2000, 0x0000_2000),
    (0x007f_ffff, 0x0080_0000),
    (0x8000_0001, 0x8000_0000),
    (0x8040_0000, 0x8040_0000),
    (0x0080_1fff, 0x0080_2000),
    (0x477f_e7ff, 0x477f_e000),
    (0x42f6_e979, 0x42f6_e000),
    (0xc2f6_f001, 0xc2f7_0000),
];

fn words(of: impl Iterator<Item = u32>) -> Vec<u64> {
    let all: Vec<u32> = of.collect();
    all.chunks(2).map(|two| u64::from(two[1]) << 32 | u64::from(two[0])).collect()
}

pub fn rows() -> Vec<Row> {
    let input: Vec<u8> = ROUNDED.iter().flat_map(|(from, _)| from.to_le_bytes()).collect();
    let mut rows = Vec::new();
    for (element, rounds) in
        [(Element::Tf32, true), (Element::Tf32Ftz, true), (Element::F32, false), (Element::F32Ftz, false)]
    {
        for fill_nan in [false, true] {
            let map = emulator::TensorMap { fill_nan, ..map(element, &[24], &[32], Swizzle::None) };
            // What is filled in outside of the tensor has bits below TF32's, and keeps them.
            let outside = std::iter::repeat_n(if fill_nan { 0x7ff7_7ff7 } else { 0 }, 8);
            let expected = ROUNDED.iter().map(|&(from, to)| if rounds { to } else { from }).chain(outside);
            rows.push(load(1, "0", 128, 16).input(input.clone()).map(map, false).gives(0, &words(expected)));
        }
        // A box that lies within the tensor, swizzled: of row 4 the two chunks of 16 bytes are exchanged.
        let swizzled = map(element, &[8, 6], &[8, 5], Swizzle::B32);
        let at = |n: usize| if rounds { ROUNDED[n % 24].1 } else { ROUNDED[n % 24].0 };
        let lines = (0..32).chain(36..40).chain(32..36).map(at);
        rows.push(load(2, "0, 0", 160, 20).input(input.repeat(2)).map(swizzled, false).gives(0, &words(lines)));
        // Stored as they are.
        let text = "st.shared.v4.b32 [smem], {0x3f800001, 0x7f800001, 1, 0x42f6e979};\nfence.proxy.async;\n\
                    cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%d6, {0}], [smem];\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;";
        let stored = map(element, &[4], &[4], Swizzle::None);
        let same = words([0x3f80_0001, 0x7f80_0001, 1, 0x42f6_e979].into_iter());
        rows.push(bare(1, text).map(stored, true).gives(0, &same));
    }
    rows
}

#[test]
fn values() {
    check(&rows());
}
