//! Numbers for mutations, the same in every run.

/// xorshift64*
pub struct Random(pub u64);

impl Random {
    /// A number below this one.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((u128::from(self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)) * end.max(1) as u128) >> 64) as usize
    }
}
