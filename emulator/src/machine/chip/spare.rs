//! Memory of CTAs that have ended, for CTAs that begin, in the same launch or a later one of the process. What a process gets anew from its
//! system costs a page fault every 4 KiB, and a launch has half a megabyte and more for each CTA.

use crate::machine::tensor_memory::TensorMemory;
use crate::machine::warp::registers::Registers;
use crate::report::Memory;
use std::sync::{Mutex, PoisonError};

/// Bytes that are kept from one launch to the next, at most: those of a CTA on each SM of a large GPU.
const MOST: usize = 96 << 20;

/// What was left by launches that have ended, and how many bytes it is.
static KEPT: Mutex<(Vec<Spare>, usize)> = Mutex::new((Vec::new(), 0));

/// A CTA's memory and the registers of its warps.
#[derive(Debug, Default)]
pub struct Spare {
    pub shared: Memory,
    pub tensor: TensorMemory,
    pub registers: Vec<Registers>,
}

impl Spare {
    /// Like new, for a CTA with so much shared memory.
    pub fn take(left: Option<Spare>, shared_bytes: usize) -> Spare {
        let kept = || {
            let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
            let spare = kept.0.pop()?;
            kept.1 -= spare.bytes();
            Some(spare)
        };
        let Some(mut spare) = left.or_else(kept) else {
            return Spare { shared: Memory::undefined(shared_bytes), ..Spare::default() };
        };
        spare.shared.forget(shared_bytes);
        spare.tensor.forget();
        spare
    }

    fn bytes(&self) -> usize {
        let registers = self.registers.iter().map(Registers::bytes).sum::<usize>();
        self.shared.bytes.capacity() + TensorMemory::BYTES + registers
    }

    /// Leaves it for later launches, as far as there may be so much.
    pub fn keep(left: Vec<Spare>) {
        let left: Vec<(usize, Spare)> = left.into_iter().map(|spare| (spare.bytes(), spare)).collect();
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        for (bytes, spare) in left {
            if kept.1 + bytes > MOST {
                // The lock is not held while memory is given back.
                drop(kept);
                return;
            }
            kept.1 += bytes;
            kept.0.push(spare);
        }
    }
}
