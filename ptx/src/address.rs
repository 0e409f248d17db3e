//! Addresses in global and shared memory: a register, a constant offset, or both.

use crate::register::{U32, U64, dummy};
use crate::state::{self, State};
use std::fmt;

/// The symbol that all of dynamic shared memory hangs on.
pub(crate) const DYNAMIC_SHARED: &str = "dynamic_shared";

/// Where a load or a store of global memory goes. From [`crate::Matrix::at`].
#[derive(Clone, Copy, Debug)]
#[must_use = "an address that nothing uses is work for nothing"]
pub struct GlobalAddress {
    pub(crate) register: U64,
    pub(crate) offset: u32,
}

impl GlobalAddress {
    pub(crate) fn dummy() -> GlobalAddress {
        GlobalAddress { register: dummy(), offset: 0 }
    }

    /// In brackets, as an operand.
    pub(crate) fn text(self, s: &mut State) -> String {
        bracketed(&s.name(self.register), self.offset)
    }
}

impl fmt::Display for GlobalAddress {
    /// In brackets, as an operand of [`crate::Scope::raw`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&bracketed(&self.register.to_string(), self.offset))
    }
}

/// Where something lies in the CTA's shared memory. From [`crate::Tile::at`] or [`crate::Scope::scalar`].
#[derive(Clone, Copy, Debug)]
#[must_use = "an address that nothing uses is work for nothing"]
pub struct SharedAddress {
    /// The kernel whose shared memory it is; 0 after a call that was refused.
    pub(crate) kernel: u32,
    /// The address of dynamic shared memory plus what is known only when the kernel runs; `None`: the symbol itself.
    pub(crate) register: Option<U32>,
    pub(crate) offset: u32,
}

impl SharedAddress {
    pub(crate) fn constant(kernel: u32, offset: u32) -> SharedAddress {
        SharedAddress { kernel, register: None, offset }
    }

    pub(crate) fn dummy() -> SharedAddress {
        SharedAddress::constant(0, 0)
    }

    /// What it would be the address of was refused: what is asked of it is no error of its own.
    pub(crate) fn refused(self) -> bool {
        self.kernel == 0
    }

    /// In brackets, as an operand.
    pub(crate) fn text(self, s: &mut State) -> String {
        s.owns(self.kernel);
        match self.register {
            Some(register) => bracketed(&s.name(register), self.offset),
            None => bracketed(DYNAMIC_SHARED, self.offset),
        }
    }
}

impl fmt::Display for SharedAddress {
    /// In brackets, as an operand of [`crate::Scope::raw`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        state::check_owner(self.kernel);
        f.write_str(&match self.register {
            Some(register) => bracketed(&register.to_string(), self.offset),
            None => bracketed(DYNAMIC_SHARED, self.offset),
        })
    }
}

fn bracketed(base: &str, offset: u32) -> String {
    if offset == 0 { format!("[{base}]") } else { format!("[{base}+{offset}]") }
}
