//! Addresses of one state space in an instruction of another: whose they are, and what to write.
//!
//! A number is taken for an address of another space where it lies in what the launch has there. Shared addresses and the lower halves of
//! others can be the same numbers: of those only what cannot be meant otherwise is said.

use crate::diagnostic::Diagnostic;
use crate::machine::cluster::Cluster;
use crate::machine::memory::resolve::Access;
use crate::machine::warp::step::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW};
use crate::program::RESERVED_SHARED;
use crate::program::op::Space;

pub const SPACE_RULE: &str = "An instruction with a state space takes addresses of that space; without one it takes generic addresses, in \
                              which shared, local and parameter memory are windows (PTX ISA 6.4.1.1).";

const PARAM_RULE: &str = "The parameters of a kernel are variables that can only be read; their window lies within that of global memory, so that \
                          `ld`, `ld.global` and `ld.param` read them (PTX ISA 5.1.6).";

/// What a number is in another space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// `the address of …`.
    pub whose: String,
    pub help: String,
}

fn elsewhere(whose: impl Into<String>, help: impl Into<String>) -> Option<Elsewhere> {
    Some(Elsewhere { whose: whose.into(), help: help.into() })
}

/// Bits of a shared address that say where in a CTA's memory; the CTA's rank stands above them.
const OFFSET: u64 = 0x00ff_ffff;
/// No CTA has so much shared memory: from here on an offset is not meant as one.
const MORE_THAN_SHARED: u64 = 1 << 20;

/// No buffer lies below, and no index is larger in a launch that an emulator runs.
pub const SMALL: u64 = 1 << 28;

/// What to do about an address in global memory that is in no buffer.
pub fn far_advice(at: u64) -> &'static str {
    match at {
        0 => {
            "Add the buffer's address: it is the value of a parameter, which `ld.param.u64` reads. A parameter's own name is where that value \
             lies."
        }
        1..SMALL => {
            "So small a number is an index or an offset: add the buffer's address to it, the value of a parameter, which `ld.param.u64` reads."
        }
        _ => "Check row, column and row pitch of the address.",
    }
}

impl Cluster<'_> {
    /// What is said of a load or a store (so many bytes at an address) whose address is one of another space.
    pub fn strayed(
        &self,
        w: usize,
        lane: usize,
        site: u32,
        space: Space,
        (what, bytes, at): (Access, u64, u64),
    ) -> Option<Diagnostic> {
        if matches!(space, Space::Global | Space::Generic) && at & !0xffff_ffff == PARAM_WINDOW {
            let (thread, would) = (self.thread_name(w, lane), what.would());
            let (kind, help) = match what {
                Access::Load => (
                    format!("the parameters end at {:#x} of them", self.params.len()),
                    "Check the parameter's size, and the offset within it.",
                ),
                _ => (
                    "parameters of a kernel can only be read".to_string(),
                    "Keep what changes in a register, or in local, shared or global memory.",
                ),
            };
            let title =
                format!("{thread} would {would} {}, a generic address of a parameter: {kind}", what.at(bytes, at));
            return Some(self.problem("out-of-bounds", site, title, PARAM_RULE, help.into()));
        }
        let Elsewhere { whose, help } = self.of_another_space(w, at, space)?;
        let called = match space {
            Space::Global => "address in global memory",
            Space::Generic => "generic address of memory that the launch has",
            _ => "shared address that it reaches",
        };
        let (thread, would) = (self.thread_name(w, lane), what.would());
        let title = format!("{thread} would {would} {}, which is no {called}: it is {whose}", what.at(bytes, at));
        Some(self.problem("out-of-bounds", site, title, SPACE_RULE, help))
    }

    /// Whose address a number is that an instruction takes for a shared one. Of one that reaches other CTAs, `remote`.
    pub fn no_shared_address(&self, w: usize, at: u64, remote: bool) -> Option<Elsewhere> {
        let low = at & 0xffff_ffff;
        let plain = "Write `.global` in the place of `.shared`; shared memory is reached by the address of a shared variable, as in \
                     `mov.u32 %r, tile;`.";
        match at & !0xffff_ffff {
            // Only the lower half counts, and it is the shared address: a library for Blackwell hands such to `tcgen05.alloc` with
            // `.shared::cta`, and its kernels run.
            SHARED_WINDOW => None,
            0 => self.other_ctas(w, low, remote).or_else(|| {
                let half = low & OFFSET >= MORE_THAN_SHARED;
                let buffers = &self.global.buffers;
                let of = |b: &&crate::machine::memory::GlobalBuffer| {
                    (low.wrapping_sub(b.base) & 0xffff_ffff) < b.memory.bytes.len() as u64
                };
                let b = buffers.iter().find(of).filter(|_| half)?;
                let whose = b.describe_element(low.wrapping_sub(b.base) & 0xffff_ffff);
                elsewhere(
                    // A shared address that is far too large can be the same number.
                    format!("perhaps the lower half of the address of {whose}, in global memory"),
                    format!(
                        "If it comes from such an address, keep those in 64-bit registers. {plain} Otherwise check its offset against the \
                         sizes of the tiles."
                    ),
                )
            }),
            LOCAL_WINDOW => elsewhere(
                "a generic address of the thread's local memory",
                "Leave the state space out, or convert the address with `cvta.to.local.u64` and write `.local`.",
            ),
            PARAM_WINDOW => elsewhere(
                "a generic address of a parameter",
                "Leave the state space out, or read the parameter by its name with `ld.param`.",
            ),
            _ => {
                let (buffer, offset) = self.global.find(at, 1)?;
                let whose = self.global.buffers[buffer].describe_element(offset);
                elsewhere(format!("the address of {whose}, in global memory"), plain)
            }
        }
    }

    /// Whose address a number is that a load or a store takes for one of this space.
    pub fn of_another_space(&self, w: usize, at: u64, space: Space) -> Option<Elsewhere> {
        match space {
            Space::Shared | Space::SharedCluster => self.no_shared_address(w, at, space == Space::SharedCluster),
            Space::Global | Space::Generic => self.no_global_address(at, space),
            Space::Local | Space::Param => None,
        }
    }

    /// The same of an operand that an instruction takes for a shared address.
    pub fn not_shared(&self, w: usize, at: u64, remote: bool) -> Option<Elsewhere> {
        if at >> 32 == 0 && at & OFFSET < MORE_THAN_SHARED {
            return None;
        }
        self.no_shared_address(w, at, remote)
    }

    /// An address in the shared memory of another CTA of the cluster, where the instruction reaches its own only.
    fn other_ctas(&self, w: usize, at: u64, remote: bool) -> Option<Elsewhere> {
        let (rank, offset) = ((at >> 24) as usize, at & OFFSET);
        let other = self.ctas.get(rank).filter(|_| !remote && rank != self.warps[w].cta)?;
        let inside = offset >= RESERVED_SHARED.into() && offset < other.shared.bytes.len() as u64;
        inside.then_some(())?;
        let name = self.shared_name_exact(offset as u32);
        elsewhere(
            format!("the address of {name} in the shared memory of CTA {rank} of the cluster"),
            "Write `.shared::cluster`, which reaches all CTAs of the cluster: `.shared` is `.shared::cta`, the own one.",
        )
    }

    /// What is said of a parameter that may be the pointer from which a small address was computed: it is null. Empty: there is none.
    pub fn null_parameter(&self) -> String {
        let is_null = |slot: &&crate::program::ParamSlot| {
            let at = slot.offset as usize;
            let value = self.params.get(at..at + slot.bytes as usize);
            matches!(slot.ty.as_str(), "u64" | "b64" | "s64")
                && value.is_some_and(|value| value.iter().all(|b| *b == 0))
        };
        match self.kernel.params.iter().find(is_null) {
            Some(slot) => format!(
                "The launch gives 0 for the parameter `{}`: if the address comes from it, it is a null pointer, and needs a buffer. ",
                slot.name
            ),
            None => String::new(),
        }
    }

    /// Whose address a number is that an instruction takes for one in global memory, or for a generic one.
    pub fn no_global_address(&self, at: u64, space: Space) -> Option<Elsewhere> {
        let low = at & 0xffff_ffff;
        let shared = |offset: u64| self.shared_name_exact((offset & OFFSET) as u32);
        match (at & !0xffff_ffff, space) {
            (SHARED_WINDOW, Space::Global) => elsewhere(
                format!("the generic address of {}, in shared memory", shared(low)),
                "Leave `.global` out: without a state space the instruction takes generic addresses. Or convert the address with \
                 `cvta.to.shared.u64`, and write `.shared`.",
            ),
            (LOCAL_WINDOW, Space::Global) => elsewhere(
                "a generic address of the thread's local memory",
                "Leave `.global` out, or convert the address with `cvta.to.local.u64` and write `.local`.",
            ),
            (PARAM_WINDOW, Space::Global) => elsewhere(
                "a generic address of a parameter",
                "Leave `.global` out, or read the parameter by its name with `ld.param`.",
            ),
            (0, _) => {
                let (rank, offset) = ((low >> 24) as usize, low & OFFSET);
                let end = self.ctas.get(rank)?.shared.bytes.len() as u64;
                (offset >= RESERVED_SHARED.into() && offset < end).then_some(())?;
                let convert = match space {
                    Space::Generic => "write `.shared`, or convert it with `cvta.shared.u64`",
                    _ => "write `.shared` in the place of `.global`",
                };
                elsewhere(
                    format!("as a shared address that of {}", shared(low)),
                    self.null_parameter()
                        + &format!(
                            "If it is meant as a shared address, {convert}. If it is an index or an offset, add the buffer's address, a pointer \
                         among the parameters."
                        ),
                )
            }
            _ => None,
        }
    }
}
