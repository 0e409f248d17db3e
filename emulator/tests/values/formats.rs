//! How integers from -4 to 4 are written in the formats of `tcgen05.mma`, by the ISA's tables, and how 32 bytes of them lie side by side.

/// The format of an operand.
#[derive(Clone, Copy, PartialEq)]
pub enum Format {
    Tf32,
    E4m3,
    E5m2,
    E2m3,
    E3m2,
    E2m1,
    U8,
    S8,
}
use Format::*;

impl Format {
    /// Its name in `mma.sync` and `wgmma.mma_async`, which have these five.
    pub fn name(self) -> &'static str {
        match self {
            Tf32 => "tf32",
            E4m3 => "e4m3",
            E5m2 => "e5m2",
            U8 => "u8",
            _ => "s8",
        }
    }

    /// Its code in the instruction descriptor.
    pub fn code(self, kind: &str) -> u32 {
        match self {
            Tf32 => 2,
            E4m3 | U8 => 0,
            E5m2 | S8 => 1,
            E2m3 => 3,
            E3m2 => 4,
            E2m1 if kind.starts_with("mxf4") => 1,
            E2m1 => 5,
        }
    }

    /// The bits of an integer from -4 to 4.
    fn bits(self, x: i32) -> u32 {
        let (magnitudes, sign) = match self {
            // With bits behind the ten of the fraction.
            Tf32 => return (x as f32).to_bits() | 0x1fff,
            U8 | S8 => return u32::from(x as u8),
            E4m3 => ([0, 0x38, 0x40, 0x44, 0x48], 0x80),
            E5m2 => ([0, 0x3c, 0x40, 0x42, 0x44], 0x80),
            E2m3 => ([0, 0x08, 0x10, 0x14, 0x18], 0x20),
            E3m2 => ([0, 0x0c, 0x10, 0x12, 0x14], 0x20),
            E2m1 => ([0, 2, 4, 5, 6], 8),
        };
        magnitudes[x.unsigned_abs() as usize] | if x < 0 { sign } else { 0 }
    }
}

/// 32 bytes of a row: its elements as they lie side by side in shared memory, or in containers as in tensor memory.
pub fn packed(format: Format, kind: &str, row: &[i32], containers: bool) -> Vec<u8> {
    let bits: Vec<u32> = row.iter().map(|&x| format.bits(x)).collect();
    let groups = |data: usize, width: usize| -> Vec<u8> {
        let group = |sixteen: &[u32]| {
            let all = sixteen.iter().enumerate().fold(0u128, |all, (n, &x)| all | u128::from(x) << (n * width));
            let padding = u128::MAX << (8 * data);
            (all | padding).to_le_bytes()
        };
        bits.chunks(16).flat_map(group).collect()
    };
    match format {
        Tf32 => bits.iter().flat_map(|x| x.to_le_bytes()).collect(),
        E2m1 if kind.starts_with("mxf4") => bits.chunks(2).map(|two| (two[0] | two[1] << 4) as u8).collect(),
        E2m1 if containers => bits.iter().map(|x| (x << 2) as u8).collect(),
        E2m1 => groups(8, 4),
        E2m3 | E3m2 if !containers => groups(12, 6),
        _ => bits.iter().map(|&x| x as u8).collect(),
    }
}

/// The bits of a number in D, whose type is as PTX writes it: `s32`, which may saturate, `f16` or `f32`.
pub fn accumulator(d: &str, saturate: bool, x: i64) -> u32 {
    match d {
        "s32" if saturate => x.clamp(i32::MIN.into(), i32::MAX.into()) as u32,
        "s32" => x as u32,
        "f16" => half::f16::from_f32(x as f32).to_bits().into(),
        _ => (x as f32).to_bits(),
    }
}
