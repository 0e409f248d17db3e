//! Whether a kernel is one of step 1, on what its run shows.

use super::{BLK_M, BLK_N, MMA_K, THREADS, product, write_back};
use crate::observe::Observation;
use crate::steps::structure::at;
use emulator::Actor;

/// What the kernel is, or all that it is not.
pub(super) fn check(seen: &Observation) -> Result<String, Vec<String>> {
    let mut wrong = Vec::new();
    let problem = seen.inputs.problem;
    let built = &seen.built;
    if built.grid != [1, 1, 1] || built.cluster != [1, 1, 1] {
        wrong.push(format!(
            "step 1 launches one CTA, without a cluster; this kernel launches a grid of {:?} with clusters of {:?}",
            built.grid, built.cluster
        ));
    }
    if built.block != [THREADS, 1, 1] {
        wrong.push(format!(
            "step 1 has one warpgroup, a block of [128, 1, 1]; this kernel's block is {:?}",
            built.block
        ));
    }
    if let Some(event) = seen.report.trace.iter().find(|event| event.actor == Actor::Tma) {
        let place = at(event);
        wrong.push(format!("step 1 copies with its threads; this kernel uses the TMA engine ({place})"));
    }
    let shape = [BLK_M, BLK_N, MMA_K];
    let mmas = seen.mmas();
    if let Some((event, mma)) = mmas.iter().find(|(_, mma)| mma.shape != shape || mma.cta_group != 1) {
        wrong.push(format!(
            "step 1 multiplies with MMAs of 128x128x16 of one CTA; this kernel issues one of {:?} with cta_group {} ({})",
            mma.shape,
            mma.cta_group,
            at(event)
        ));
    }
    let done = seen.products_of_mmas();
    if done != problem.products() {
        wrong.push(format!(
            "the product takes {} multiplications on the tensor core; this kernel's {} MMAs do {done}",
            problem.products(),
            mmas.len()
        ));
    }
    // Else the MMAs are there to be counted, and D comes from somewhere else.
    let is_product = |held: &Vec<_>| product::near_product(seen, held) || product::near_turned_product(seen, held);
    if let Some((event, mma)) = mmas.first() {
        if !product::accumulator(seen).as_ref().is_some_and(is_product) {
            wrong.push(format!(
                "the MMAs compute D, in one accumulator; this kernel's accumulator does not hold A·Bᵀ at the end ({})",
                at(event)
            ));
        } else if let Some(unread) = write_back::unread(seen, mma.column) {
            wrong.push(format!("D comes from tensor memory; {unread}"));
        }
    }
    let stored = seen.bytes_stored_to_d();
    let size = problem.bytes_of_d();
    if stored != size {
        wrong.push(format!("the threads store D once, {size} bytes; this kernel stores {stored} bytes to D"));
    }
    if wrong.is_empty() {
        Ok(format!("1 CTA of {THREADS} threads, {} MMAs of 128x128x16, no TMA", mmas.len()))
    } else {
        Err(wrong)
    }
}
