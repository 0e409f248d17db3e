//! Operands of MMAs that are made ready for the loops over FP32 when they are read: what was read is still in the first-level cache then.

use super::operand::Operand;
use super::product::{Pair, Panel, fill_half, fill_panel};
use super::simd::{self, Lanes, WIDTH, Work};
use super::strip::Strip;
use crate::numerics::MmaStep;

/// Panels that are left free in front, at most. Steps that are multiplied together begin in different sets of the first-level cache so.
const SKIPPED: usize = 4;

/// A of each CTA, and all of B, as FP32 numbers. Kept from one MMA to the next, for its memory.
#[derive(Debug, Default)]
pub struct Ready {
    a: [Vec<Panel<f32>>; 2],
    b: Vec<Pair<f32>>,
    skipped: usize,
    made: bool,
}

impl Ready {
    /// Makes operands ready, the `count`-th of many; `run`: the columns of D that lie side by side in tensor memory.
    pub fn make(&mut self, step: &MmaStep, a: &[Operand], b: &Operand, run: usize, count: usize) {
        self.skipped = count % SKIPPED;
        simd::run(Make { step, a, b, run, to: self });
        self.made = true;
    }

    pub fn is_made(&self) -> bool {
        self.made
    }

    pub fn clear(&mut self) {
        self.made = false;
    }

    pub fn a(&self, cta: usize) -> &[Panel<f32>] {
        &self.a[cta][self.skipped..]
    }

    /// A pair is as large as two panels.
    pub fn b(&self) -> &[Pair<f32>] {
        &self.b[self.skipped % 2..]
    }
}

struct Make<'a> {
    step: &'a MmaStep,
    a: &'a [Operand],
    b: &'a Operand,
    run: usize,
    to: &'a mut Ready,
}

impl Work for Make<'_> {
    #[inline(always)]
    fn run<L: Lanes, const R: usize, const S: usize, const C: usize, const E: usize>(self) {
        let Make { step, a, b, run, to } = self;
        for (operand, to_a) in a.iter().zip(&mut to.a) {
            let rows = operand.bits.chunks(WIDTH);
            to_a.resize((SKIPPED + rows.len()).max(to_a.len()), Panel::default());
            for (rows, panel) in rows.zip(&mut to_a[to.skipped..]) {
                fill_panel::<L>(step, rows, panel);
            }
        }
        let strip = |first: usize| Strip { rows: &[], columns: first..first + run };
        let strips = || (0..b.bits.len()).step_by(run.max(1)).map(strip);
        let pairs: usize = strips().map(|strip| strip.pairs()).sum();
        to.b.resize((1 + pairs).max(to.b.len()), Pair::default());
        let pairs = &mut to.b[to.skipped % 2..];
        for (n, columns) in strips().flat_map(|strip| strip.split().collect::<Vec<_>>()).enumerate() {
            fill_half::<L>(step, &b.bits[columns], &mut pairs[n / 2], n % 2);
        }
    }
}
