//! Registers whose value is still on its way from memory, and when it arrives.

use super::registers::Registers;
use crate::program::facts::bit;
use crate::program::op::{Inst, Reg};

/// Those of a warp.
#[derive(Debug, Default)]
pub struct OnTheWay {
    list: Vec<(Reg, u64)>,
    /// The bits of these registers.
    touched: u64,
    /// When the first of them arrives.
    first: u64,
}

impl OnTheWay {
    pub fn push(&mut self, registers: &Registers, reg: Reg, at: u64) {
        self.first = if self.list.is_empty() { at } else { self.first.min(at) };
        self.touched |= bit(registers.number(reg));
        self.list.push((reg, at));
    }

    /// Whether this instruction may have to wait for one, or one has arrived.
    #[inline]
    pub fn concerns(&self, inst: &Inst, now: u64) -> bool {
        !self.list.is_empty() && (inst.facts.touched & self.touched != 0 || self.first <= now)
    }

    /// When all that this instruction reads is there. What it writes is waited for no longer: the value on its way was another
    /// one, which shares the register here and would have one of its own.
    pub fn ready(&mut self, inst: &Inst, now: u64) -> u64 {
        let needed = self.list.iter().filter(|(reg, _)| inst.uses.contains(reg));
        let ready = needed.map(|&(_, at)| at).max().unwrap_or(now).max(now);
        self.list.retain(|(reg, _)| !inst.defs.contains(reg));
        ready
    }

    /// Forgets what has arrived.
    pub fn arrived(&mut self, registers: &Registers, now: u64) {
        self.list.retain(|&(_, at)| at > now);
        self.touched = self.list.iter().fold(0, |set, &(reg, _)| set | bit(registers.number(reg)));
        self.first = self.list.iter().map(|&(_, at)| at).min().unwrap_or(0);
    }
}
