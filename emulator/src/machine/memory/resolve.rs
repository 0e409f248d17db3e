//! Where an address leads: for each lane the memory behind it, or why there is none.

use crate::machine::cluster::{Cluster, Stop};
use crate::machine::explain::elsewhere::{SMALL, far_advice};
use crate::machine::explain::names::counted;
use crate::machine::state::At;
use crate::machine::warp::registers::lanes;
use crate::machine::warp::step::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW};
use crate::program::RESERVED_SHARED;
use crate::program::atomic::StoreOp;
use crate::program::op::{Address, L32, Reg, Space};
use crate::report::Memory;

/// What is done at an address, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Load,
    Store,
    Update,
}

impl Access {
    pub fn does(self) -> &'static str {
        match self {
            Access::Load => "loads",
            Access::Store => "stores",
            Access::Update => "updates",
        }
    }

    pub fn would(self) -> &'static str {
        self.does().trim_end_matches('s')
    }

    /// So many bytes at an address.
    pub fn at(self, bytes: u64, address: u64) -> String {
        let place = match self {
            Access::Load => "from",
            Access::Store => "to",
            Access::Update => "at",
        };
        format!("{} {place} {address:#x}", counted(bytes, "byte"))
    }
}

/// Where an address leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// Rank of the CTA, and offset in its window.
    Shared(usize, u32),
    Global {
        buffer: usize,
        offset: u64,
    },
    Param(u32),
    /// Offset in the frames of the warp's lanes.
    Local(u32),
}

impl Target {
    /// Its offset in the window, buffer, parameters or frames.
    pub fn offset(self) -> u64 {
        match self {
            Target::Shared(_, at) | Target::Param(at) | Target::Local(at) => at.into(),
            Target::Global { offset, .. } => offset,
        }
    }

    /// Another offset in the same.
    pub fn at(self, offset: u64) -> Target {
        match self {
            Target::Shared(cta, _) => Target::Shared(cta, offset as u32),
            Target::Global { buffer, .. } => Target::Global { buffer, offset },
            Target::Param(_) => Target::Param(offset as u32),
            Target::Local(_) => Target::Local(offset as u32),
        }
    }

    /// So many bytes behind it.
    pub fn after(self, bytes: usize) -> Target {
        self.at(self.offset() + bytes as u64)
    }
}

impl Cluster<'_> {
    fn misaligned(&self, (w, lane, site): (usize, usize, u32), total: u64, at: u64, what: Access) -> Stop {
        Some(Box::new(self.problem(
            "misaligned-address",
            site,
            format!(
                "{} {} {}, which is not a multiple of {total}",
                self.thread_name(w, lane),
                what.does(),
                what.at(total, at)
            ),
            "An access must be aligned to all the bytes it moves, of all elements of a vector (PTX ISA 6.4.1).",
            format!("Align the address to {total} bytes, or move fewer bytes at once."),
        )))
    }

    /// Where a store is a piece of a vector: the vector of each lane must lie as its size asks for.
    #[cold]
    pub fn check_vector(&self, at: At, op: &StoreOp, (total, before): (u8, u8)) -> Result<(), Stop> {
        let (registers, total) = (&self.warps[at.w].registers, u64::from(total));
        for lane in lanes(at.mask & registers.defined(op.address.base)) {
            let base = registers.lane(op.address.base, lane) as u64;
            let begin = base.wrapping_add(op.address.offset as u64).wrapping_sub(before.into());
            if !begin.is_multiple_of(total) {
                return Err(self.misaligned((at.w, lane, at.site), total, begin, Access::Store));
            }
        }
        Ok(())
    }

    pub fn targets(
        &mut self,
        at: At,
        space: Space,
        address: &Address,
        total: u64,
        what: Access,
    ) -> Result<Vec<(usize, Target)>, Stop> {
        let At { w, mask, site, .. } = at;
        if address.base != Reg::Sink && mask & !self.warps[w].registers.defined(address.base) != 0 {
            return Err(self.undefined_operand(w, site, address.base, "the address"));
        }
        let mut targets = std::mem::take(&mut self.spare_targets);
        if self.own_shared(at, space, address, total, &mut targets) {
            return Ok(targets);
        }
        targets.clear();
        for lane in lanes(mask) {
            let base = self.warps[w].registers.lane(address.base, lane) as u64;
            let at = base.wrapping_add(address.offset as u64);
            if total > 0 && !at.is_multiple_of(total) {
                return Err(self.misaligned((w, lane, site), total, at, what));
            }
            let target = match space {
                Space::Param => self.param_target(at, total),
                // Only the lower half counts, and it may be a place in shared memory by chance.
                Space::Shared | Space::SharedCluster
                    if at >> 32 != 0 && self.no_shared_address(w, at, true).is_some() =>
                {
                    None
                }
                Space::Shared | Space::SharedCluster => {
                    // A variable's name is an offset in the CTA's own window.
                    let own = if address.base == Reg::Sink { (self.warps[w].cta as u64) << 24 } else { 0 };
                    self.shared_target(w, at & 0xffff_ffff | own, total, space == Space::SharedCluster)
                }
                // Accesses of 32 bytes are to global memory only.
                Space::Generic if at & !0xffff_ffff == SHARED_WINDOW && total != 32 => {
                    self.shared_target(w, at & 0xffff_ffff, total, true)
                }
                Space::Local => self.local_target(w, lane, at, total),
                Space::Generic if at & !0xffff_ffff == LOCAL_WINDOW && total != 32 => {
                    self.local_target(w, lane, at & 0xffff_ffff, total)
                }
                // The window of parameters lies in that of global memory (PTX ISA 5.1.6), and nobody writes there.
                Space::Generic | Space::Global if at & !0xffff_ffff == PARAM_WINDOW && what == Access::Store => None,
                Space::Generic if at & !0xffff_ffff == PARAM_WINDOW => self.param_target(at & 0xffff_ffff, total),
                Space::Global if at & !0xffff_ffff == PARAM_WINDOW && what == Access::Load => {
                    self.param_target(at & 0xffff_ffff, total)
                }
                Space::Generic | Space::Global => {
                    let found = self.global.find(at, total);
                    // Nobody writes constants.
                    let found = found.filter(|&(n, _)| what == Access::Load || !self.global.buffers[n].constant);
                    found.map(|(buffer, offset)| Target::Global { buffer, offset })
                }
            };
            let target = target.ok_or_else(|| self.leads_nowhere(w, lane, site, space, (what, total, at)))?;
            targets.push((lane, target));
        }
        Ok(targets)
    }

    /// What is said of an address behind which there is no memory for so many bytes.
    fn leads_nowhere(
        &self,
        w: usize,
        lane: usize,
        site: u32,
        space: Space,
        (what, total, at): (Access, u64, u64),
    ) -> Stop {
        if let Some(strayed) = self.strayed(w, lane, site, space, (what, total, at)) {
            return Some(Box::new(strayed));
        }
        let shared = matches!(space, Space::Shared | Space::SharedCluster);
        let (rank, ctas) = ((at >> 24 & 0xff) as usize, self.ctas.len());
        let low = shared && (at & 0x00ff_ffff) < u64::from(RESERVED_SHARED);
        let (name, detail, help) = if space == Space::SharedCluster && rank >= ctas {
            (
                "shared memory",
                format!("it leads to CTA {rank} of a cluster of {ctas}"),
                "Give mapa a rank of the cluster, below %cluster_nctarank; and look whether the launch has the cluster that the kernel is written for.",
            )
        } else if low {
            (
                "shared memory",
                format!("the CTA's own begins at {RESERVED_SHARED:#x}"),
                "Take the address of a variable in shared memory (also of an extern one, for dynamic shared memory): what lies below is the system's.",
            )
        } else if shared {
            (
                "shared memory",
                format!("the CTA's window ends at {:#x}", self.ctas[self.warps[w].cta].shared.bytes.len()),
                "Check the offset against the sizes of the tiles, and the launch's dynamic shared bytes.",
            )
        } else if space == Space::Local {
            (
                "the thread's local memory",
                format!("it ends at {:#x}", self.kernel.local_bytes),
                "Check the index into the `.local` array.",
            )
        } else if space == Space::Param {
            (
                "the parameters",
                format!("they end at {:#x}", self.params.len()),
                "Check the parameter's name and offset.",
            )
        } else {
            ("global memory", self.global.nearest(at), far_advice(at))
        };
        let short = if shared && !low { self.short_of_shared((at & 0x00ff_ffff) + total) } else { None };
        let small = matches!(space, Space::Global | Space::Generic) && at < SMALL;
        let null = Some(self.null_parameter()).filter(|text| small && !text.is_empty());
        Some(Box::new(self.problem(
            "out-of-bounds",
            site,
            format!(
                "{} would {} {}, outside of {name}: {detail}",
                self.thread_name(w, lane),
                what.would(),
                what.at(total, at)
            ),
            "Every access must lie within memory that the launch has: the CTA's shared memory (PTX ISA 5.1.7), \
             the parameters (5.1.6.1) or a buffer in global memory (5.1.4).",
            short.unwrap_or_else(|| null.map_or_else(|| help.into(), |text| text.trim_end().to_string())),
        )))
    }

    /// Memory of targets that nobody needs any more: the next ones take it.
    pub fn let_go(&mut self, targets: Vec<(usize, Target)>) {
        self.spare_targets = targets;
    }

    /// Places in the own CTA's shared memory. Whether all lanes give such.
    fn own_shared(
        &self,
        at: At,
        space: Space,
        address: &Address,
        total: u64,
        targets: &mut Vec<(usize, Target)>,
    ) -> bool {
        targets.clear();
        let Some(offsets) = self.own_offsets(at, space, address, total) else { return false };
        let cta = self.warps[at.w].cta;
        targets.extend(lanes(at.mask).map(|lane| (lane, Target::Shared(cta, offsets[lane]))));
        true
    }

    /// The offsets in the window of the warp's own CTA at which all lanes of the mask have so many bytes, aligned; of the other lanes they
    /// mean nothing.
    pub fn own_offsets(&self, at: At, space: Space, address: &Address, total: u64) -> Option<L32> {
        let warp = &self.warps[at.w];
        let (Space::Shared, Reg::B32(base)) = (space, address.base) else { return None };
        let first = RESERVED_SHARED;
        let last = u32::try_from(self.ctas[warp.cta].shared.bytes.len() as u64).ok()?.checked_sub(total as u32)?;
        let (add, own) = (address.offset as u32, warp.cta as u32);
        // All lanes, without branches: it becomes vector code.
        let mut wrong = [0; 32];
        let mut offsets = warp.registers.b32[usize::from(base)];
        for (offset, wrong) in offsets.iter_mut().zip(&mut wrong) {
            let at = offset.wrapping_add(add);
            let rank = at >> 24;
            *offset = at & 0x00ff_ffff;
            let beyond = offset.wrapping_sub(first) > last.wrapping_sub(first);
            *wrong = u32::from(beyond) | u32::from(rank != own) | at & (total as u32).wrapping_sub(1);
        }
        let right = lanes(at.mask).fold(0, |all, lane| all | wrong[lane]) == 0;
        (right && total.is_power_of_two() && last >= first).then_some(offsets)
    }

    /// A place in the parameters.
    fn param_target(&self, at: u64, total: u64) -> Option<Target> {
        let end = at.checked_add(total).filter(|&end| end <= self.params.len() as u64);
        end.map(|_| Target::Param(at as u32))
    }

    /// A place in the frame of a lane.
    pub fn local_target(&mut self, w: usize, lane: usize, at: u64, total: u64) -> Option<Target> {
        let frame = self.kernel.local_bytes;
        at.checked_add(total).filter(|&end| end <= u64::from(frame))?;
        let local = &mut self.warps[w].local;
        if local.bytes.is_empty() {
            *local = Memory::undefined(frame as usize * 32);
        }
        Some(Target::Local(lane as u32 * frame + at as u32))
    }

    /// The CTA and offset that an address in the shared window leads to: bits 24 and up hold the CTA's rank, which plain
    /// accesses (`remote` false) must not use to leave their own CTA.
    fn shared_target(&self, w: usize, at: u64, total: u64, remote: bool) -> Option<Target> {
        let (rank, offset) = ((at >> 24) as usize, at & 0x00ff_ffff);
        let cta = if remote { rank } else { self.warps[w].cta };
        let bytes = self.ctas.get(cta)?.shared.bytes.len() as u64;
        let own = remote || rank == cta;
        let fits = own && offset >= u64::from(RESERVED_SHARED) && offset + total <= bytes;
        fits.then_some(Target::Shared(cta, offset as u32))
    }

    pub fn describe_target(&self, target: &Target) -> String {
        match *target {
            Target::Shared(_, at) => self.shared_name_exact(at),
            Target::Global { buffer, offset } => self.global.buffers[buffer].describe(offset),
            Target::Param(at) => format!("parameter byte {at}"),
            Target::Local(at) => format!("local memory at byte {}", at % self.kernel.local_bytes.max(1)),
        }
    }
}
