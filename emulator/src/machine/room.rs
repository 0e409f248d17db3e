//! Memory of CTAs that have ended, for CTAs that begin, in the same launch or a later one of the process. What a process gets anew from its
//! system costs a page fault every 4 KiB, and a launch has half a megabyte and more for each CTA.

use super::registers::Registers;
use super::tensor::TensorMemory;
use crate::report::Memory;
use std::sync::{Mutex, PoisonError};

/// Bytes that are kept from one launch to the next, at most: those of a CTA on each SM of a large GPU.
const MOST: usize = 96 << 20;

/// What was left by launches that have ended.
static KEPT: Mutex<Vec<Room>> = Mutex::new(Vec::new());

/// A CTA's memory and the registers of its warps.
#[derive(Debug, Default)]
pub struct Room {
    pub shared: Memory,
    pub tensor: TensorMemory,
    pub registers: Vec<Registers>,
}

impl Room {
    /// Room that is like new, for a CTA with so much shared memory.
    pub fn take(left: Option<Room>, shared_bytes: usize) -> Room {
        let left = left.or_else(|| KEPT.lock().unwrap_or_else(PoisonError::into_inner).pop());
        let Some(mut room) = left else {
            return Room { shared: Memory::undefined(shared_bytes), ..Room::default() };
        };
        room.shared.forget(shared_bytes);
        room.tensor.forget();
        room
    }

    fn bytes(&self) -> usize {
        let registers = self.registers.iter().map(Registers::bytes).sum::<usize>();
        self.shared.bytes.capacity() + TensorMemory::BYTES + registers
    }

    /// Leaves room for later launches, as far as there may be so much of it.
    pub fn keep(left: Vec<Room>) {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes: usize = kept.iter().map(Room::bytes).sum();
        for room in left {
            bytes += room.bytes();
            if bytes > MOST {
                return;
            }
            kept.push(room);
        }
    }
}
