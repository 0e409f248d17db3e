//! `tcgen05.cp`: each shape with the lanes that its rows go to, each swizzle of the source, elements of 4 and 6 bits unpacked.

use crate::mma::{read_back, set_up};
use crate::row::{Row, bare, check};

/// A copy: bytes of shared memory to tensor memory.
struct Case {
    shape: &'static str,
    /// Modifiers that unpack elements of so many bits; 0: none.
    unpack: usize,
    /// Bytes of a row of the swizzle pattern; 0: none.
    swizzle: usize,
    pair: bool,
}

/// What a cell holds before.
const BEFORE: u32 = 0x5555_5555;

impl Case {
    /// Rows, bytes of each, and the lanes that a row goes to: as the ISA names the warps of a multicast.
    fn plan(&self) -> (usize, usize, fn(usize) -> Vec<usize>) {
        match self.shape {
            "128x256b" => (128, 32, |row| vec![row]),
            "128x128b" => (128, 16, |row| vec![row]),
            // A row for each warp's quarter.
            "4x256b" => (4, 32, |row| vec![32 * row]),
            // Warps 0 and 2 get rows 0 to 31, 1 and 3 get rows 32 to 63.
            "64x128b.warpx2::02_13" => (64, 16, |row| vec![row, row + 64]),
            // Warps 0 and 1 get rows 0 to 31, 2 and 3 get rows 32 to 63.
            "64x128b.warpx2::01_23" => {
                (64, 16, |row| if row < 32 { vec![row, row + 32] } else { vec![row + 32, row + 64] })
            }
            _ => (32, 16, |row| vec![row, row + 32, row + 64, row + 96]),
        }
    }

    /// Sixteen bytes as they come to tensor memory.
    fn unpacked(&self, chunk: &[u8]) -> Vec<u8> {
        let bit = |n: usize| chunk[n / 8] >> (n % 8) & 1;
        let element = |n: usize| (0..self.unpack).fold(0, |all, at| all | bit(n * self.unpack + at) << at);
        match self.unpack {
            0 => chunk.to_vec(),
            // In bits 2 to 5 of a byte.
            4 => (0..16).map(|n| element(n) << 2).collect(),
            _ => (0..16).map(element).collect(),
        }
    }

    fn row(&self) -> Row {
        let ((rows, bytes, lanes), ctas) = (self.plan(), if self.pair { 2 } else { 1 });
        let columns = bytes / 4;
        let image_size = (128 * 32usize.max(self.swizzle)).next_multiple_of(1024);
        let mut input: Vec<u8> = (0..ctas * image_size).map(|n| (n * 7 + n / 256 * 11) as u8).collect();
        let mut cells = vec![BEFORE; ctas * 128 * columns];
        for cta in 0..ctas {
            for row in 0..rows {
                for chunk in 0..bytes / 16 {
                    let at = cta * image_size
                        + match self.swizzle {
                            0 => chunk * 2048 + row * 16,
                            128 => row * 128 + (chunk ^ (row % 8)) * 16,
                            64 => row * 64 + (chunk ^ (row % 8 / 2)) * 16,
                            _ => row * 32 + (chunk ^ (row % 8 / 4)) * 16,
                        };
                    input[at] = (row + 3 * chunk + 100 * cta) as u8;
                    let to = self.unpacked(&input[at..at + 16]);
                    for lane in lanes(row) {
                        for (n, word) in to.chunks(4).enumerate() {
                            let cell = (cta * 128 + lane) * columns + chunk * 4 + n;
                            cells[cell] = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
                        }
                    }
                }
            }
        }
        let words: Vec<u64> = cells.chunks(2).map(|c| u64::from(c[0]) | u64::from(c[1]) << 32).collect();
        let g = ctas as u32;
        let row = bare(128, &self.body()).ctas(g, g).input(input).gives(0, &words);
        row.around(&set_up(g, image_size, columns, BEFORE, None), &read_back(g, columns))
    }

    fn body(&self) -> String {
        let g = if self.pair { 2 } else { 1 };
        let unpack = match self.unpack {
            0 => "",
            4 => ".b8x16.b4x16_p64",
            _ => ".b8x16.b6x16_p32",
        };
        let (leading, stride, code) = match self.swizzle {
            0 => (2048, 128, 0),
            128 => (16, 1024, 2),
            64 => (16, 512, 4),
            _ => (16, 256, 6u64),
        };
        let bits = (leading as u64 >> 4) << 16 | (stride as u64 >> 4) << 32 | 1 << 46 | code << 61;
        let commit = if self.pair {
            "mov.b16 %h1, 3;\ntcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r20], %h1;"
        } else {
            "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r20];"
        };
        format!(
            "setp.eq.u32 %p1, %r98, 0;\nsetp.eq.and.u32 %p1, %r97, 0, %p1;\n@!%p1 bra WAIT;\nmov.u32 %r20, bar;\nmov.u32 %r21, smem;\n\
             bfe.u32 %r22, %r21, 4, 14;\ncvt.u64.u32 %d3, %r22;\nor.b64 %d3, %d3, {bits:#x};\n\
             tcgen05.cp.cta_group::{g}.{}{unpack} [%r90], %d3;\n{commit}\n\
             WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;\n@!%p2 bra WAIT;\ntcgen05.fence::after_thread_sync;",
            self.shape
        )
    }
}

pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    let shapes = ["128x256b", "4x256b", "128x128b", "64x128b.warpx2::02_13", "64x128b.warpx2::01_23", "32x128b.warpx4"];
    for shape in shapes {
        for swizzle in [0, 32, 64, 128] {
            rows.push(Case { shape, unpack: 0, swizzle, pair: false }.row());
        }
        rows.push(Case { shape, unpack: 0, swizzle: 128, pair: true }.row());
        for unpack in [4, 6] {
            rows.push(Case { shape, unpack, swizzle: 0, pair: false }.row());
        }
    }
    rows.push(Case { shape: "128x256b", unpack: 4, swizzle: 128, pair: true }.row());
    let commit = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r20];";
    let wait = "mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;\n@!%p2 bra WAIT;";
    let one = || Case { shape: "128x256b", unpack: 0, swizzle: 0, pair: false }.row();
    rows.push(one().without(commit, "hang").with(wait, "", "mma-not-awaited"));
    // All lanes of a warp copy: the same bytes 32 times.
    rows.push(one().with(
        "setp.eq.u32 %p1, %r98, 0;\nsetp.eq.and",
        "setp.lt.u32 %p1, %r98, 32;\nsetp.eq.and",
        "issued-by-many-lanes",
    ));
    // Stores that no proxy fence makes visible.
    rows.push(one().with("fence.proxy.async.shared::cta;", "", "missing-proxy-fence"));
    rows
}

#[test]
fn values() {
    check(&rows());
}
