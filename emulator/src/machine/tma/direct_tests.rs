use super::*;
use crate::machine::arithmetic::exact::tests::Random;
use crate::machine::memory::Runs;
use crate::machine::tma::copy::scatter;

/// In every swizzle, with holes and without, in one piece or several: what goes through a dense box.
#[test]
fn straight_copies_are_those_through_a_dense_box() {
    let mut random = Random(5);
    let kinds = [Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128, Swizzle::B128Atom32, Swizzle::B128Atom64];
    for case in 0..720u32 {
        let swizzle = kinds[case as usize % 6];
        let bytes = [16, 32, 64, 128, 256, 48][case as usize / 6 % 6];
        let offset = 1024 + 128 * (case / 36 % 9);
        let mut memory = Memory::from_bytes((0..1 << 15).map(|_| random.next() as u8).collect::<Vec<u8>>());
        for _ in 0..[0, 0, 20][case as usize % 3] {
            memory.store((random.next() % (1 << 15)) as usize, 1, 3, false);
        }
        let mut global = Global::of(memory);
        global.buffers[0].whole = case % 3 == 0;
        let part = |linear: u32, count, first| Rows {
            linear,
            bytes,
            pitch: bytes,
            count,
            inside: Some((0, Runs { buffer: 0, first, bytes, count, pitch: 1040 })),
        };
        let rows = [part(0, 5, 16), part(5 * bytes, 3, 9000)];
        let mut dense = Memory::undefined(8 * bytes as usize);
        for rows in &rows {
            for (to, at) in rows.parts() {
                dense.copy_from(to as usize, &global.buffers[0].memory, at as usize, bytes as usize);
            }
        }
        let (mut straight, mut dense_way) = (Memory::undefined(1 << 13), Memory::undefined(1 << 13));
        deliver(&mut straight, &rows, &global, offset, swizzle);
        scatter(&mut dense_way, &dense, offset, 8 * bytes, swizzle);
        assert_eq!(straight, dense_way, "case {case}, {swizzle:?}, rows of {bytes}");
    }
}
