//! Tensor memory and the tensor core (`tcgen05`).

use crate::address::SharedAddress;
use crate::barrier::TakesCommits;
use crate::descriptor::instruction_descriptor;
use crate::kernel::{Region, RegionKind, Space};
use crate::level::{Level, OneThread, OneWarp, WholeWarps};
use crate::register::sealed::Register as _;
use crate::register::{B16, F32, Operand, Pred, U32, Value, dummy};
use crate::scope::Scope;
use crate::state::{Allocation, State, with};
use crate::tile::Slice;

/// Columns of tensor memory of an SM.
pub const TMEM_COLUMNS: u32 = 512;
/// Lanes of tensor memory.
const LANES: u64 = 128;

/// Columns of tensor memory that the CTA holds, all 128 lanes of them. From [`Scope::tmem_alloc`]; must go to
/// [`Scope::tmem_dealloc`], once.
#[derive(Debug)]
#[must_use = "tensor memory must be freed with `tmem_dealloc`"]
pub struct Tmem {
    allocation: u32,
    columns: u32,
    /// Where the hardware writes the address.
    slot: SharedAddress,
}

/// Part of tensor memory, by address: where an MMA keeps its sums, or where they are loaded from. For an MMA of 128
/// rows row `i` of D is lane `i`, column `j` of D is column `j`, 4 bytes each; for one of 256 rows, that of a CTA pair,
/// the second CTA has rows 128 and up. (With half as many rows they lie elsewhere: PTX ISA 9.7.16.10.5.)
#[derive(Clone, Copy, Debug)]
#[must_use = "an address that nothing uses is work for nothing"]
pub struct Accumulator {
    base: U32,
    /// Lane in bits 16 and up, column below.
    offset: u32,
    columns: u32,
    lane_set: bool,
}

impl Tmem {
    /// The address of the allocation, which the hardware left in shared memory.
    ///
    /// Executed by every thread that needs it, after the barrier that follows [`Scope::tmem_alloc`]. PTX:
    /// `ld.shared.b32`.
    #[track_caller]
    pub fn address<L: Level>(&self, _scope: &mut Scope<L>) -> Accumulator {
        let base = with(|s| load_slot(s, self.slot)).unwrap_or(dummy());
        Accumulator { base, offset: 0, columns: self.columns, lane_set: false }
    }
}

fn load_slot(s: &mut State, slot: SharedAddress) -> U32 {
    let base = s.fresh();
    let (to, slot) = (s.name(base), slot.text(s));
    s.instruction(format!("ld.shared.b32 {to}, {slot}"));
    base
}

impl Accumulator {
    fn dummy() -> Accumulator {
        Accumulator { base: dummy(), offset: 0, columns: TMEM_COLUMNS, lane_set: false }
    }

    /// `count` of its columns, from `first` on. No instruction.
    #[track_caller]
    pub fn columns(self, first: u32, count: u32) -> Accumulator {
        let fits = count > 0 && first.checked_add(count).is_some_and(|end| end <= self.columns);
        if !fits {
            with(|s| {
                s.error(
                    format!("{count} columns from column {first} on are not in these {} columns", self.columns),
                    format!("stay within columns 0 to {}", self.columns.saturating_sub(1)),
                );
            });
            return Accumulator::dummy();
        }
        Accumulator { offset: self.offset + first, columns: count, ..self }
    }

    /// The same columns from this lane on: lanes are the upper 16 bits of an address. Warp `w` of a warpgroup can load
    /// lanes `32 * w` to `32 * w + 31` only.
    ///
    /// Executed by every thread of the scope. PTX: of a constant none; of a register `shl.b32` and `add.u32`.
    #[track_caller]
    pub fn lane(self, lane: impl Operand<U32>) -> Accumulator {
        let lane = lane.value();
        with(|s| {
            if self.lane_set {
                s.error("the lane is set twice", "call `lane` once, on the address of the allocation");
                return Accumulator::dummy();
            }
            match lane {
                Value::Unsigned(lane) if lane >= LANES => {
                    s.error(format!("tensor memory has no lane {lane}"), "use a lane from 0 to 127");
                    Accumulator::dummy()
                }
                Value::Unsigned(lane) => {
                    Accumulator { offset: self.offset + ((lane as u32) << 16), lane_set: true, ..self }
                }
                lane => {
                    let upper: U32 = s.binary("shl.b32", lane, Value::Unsigned(16));
                    let base = s.binary("add.u32", Value::of(self.base), Value::of(upper));
                    Accumulator { base, lane_set: true, ..self }
                }
            }
        })
        .unwrap_or(Accumulator::dummy())
    }

    fn text(self, s: &mut State) -> String {
        let base = s.name(self.base);
        if self.offset == 0 { format!("[{base}]") } else { format!("[{base}+{}]", self.offset) }
    }
}

/// So many columns that one [`Scope::tmem_load`] takes.
#[derive(Debug)]
pub struct Columns<const N: usize>;

/// 1, 2, 4, 8, 16, 32, 64 or 128 columns.
#[diagnostic::on_unimplemented(
    message = "`tcgen05.ld` cannot load this number of columns: {Self}",
    label = "use 1, 2, 4, 8, 16, 32, 64 or 128 columns"
)]
pub trait LoadWidth {}

macro_rules! load_widths {
    ($($n:literal)+) => { $(impl LoadWidth for Columns<$n> {})+ };
}
load_widths!(1 2 4 8 16 32 64 128);

impl<L: Level> Scope<L> {
    /// Takes columns of tensor memory for the CTA: a power of two from 32 to 512, all lanes of them. Waits while other
    /// CTAs of the SM hold too many, or one of them the right to allocate ([`Scope::tmem_relinquish`]). The address goes to shared memory, where [`Tmem::address`] finds it after a
    /// barrier of the CTA. What the columns hold is undefined. Columns that are never freed are in
    /// [`crate::Kernel::leaks`].
    ///
    /// Executed by one whole warp; in a CTA pair by one of each CTA, after a barrier of the cluster, and both get the
    /// same columns. PTX: `tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32`, in a pair `.cta_group::2`.
    #[track_caller]
    pub fn tmem_alloc(&mut self, name: &str, columns: u32) -> Tmem
    where
        L: OneWarp,
    {
        with(|s| {
            s.needs_blackwell("tensor memory is allocated");
            let held: u32 = s.allocations.iter().filter(|one| !one.freed).map(|one| one.columns).sum();
            if !(32..=TMEM_COLUMNS).contains(&columns) || !columns.is_power_of_two() {
                s.error(
                    format!("{columns} columns of tensor memory cannot be allocated"),
                    "use a power of two from 32 to 512",
                );
                // Not a second error that it was never freed.
                return None;
            }
            if held + columns > TMEM_COLUMNS {
                s.error(
                    format!("{columns} more columns of tensor memory than the {held} held: an SM has {TMEM_COLUMNS}"),
                    "allocate fewer columns, or free some first",
                );
                return None;
            }
            if s.relinquished {
                s.error(
                    "tensor memory is allocated after `tmem_relinquish`",
                    "give the permit back after the last allocation",
                );
            }
            if !s.claim_name(name) {
                return None;
            }
            let (slot_name, what) = (format!("{name}.address"), format!("the address of \"{name}\""));
            let slot = s.reserve(&slot_name, &what, None, 4, 4, RegionKind::Scalar)?;
            s.regions.push(Region {
                name: name.to_string(),
                space: Space::Tensor,
                offset: held,
                bytes: columns,
                kind: RegionKind::Scalar,
                stage: None,
            });
            let (place, repeat) = (s.place, s.repeat());
            s.allocations.push(Allocation { name: name.to_string(), columns, place, repeat, freed: false });
            let text = slot.text(s);
            let group = s.cta_group();
            s.instruction(format!("tcgen05.alloc{group}.sync.aligned.shared::cta.b32 {text}, {columns}"));
            Some(Tmem { allocation: s.allocations.len() as u32 - 1, columns, slot })
        })
        .flatten()
        // Nothing is ever freed for it, and no error says so: there is one already.
        .unwrap_or(Tmem { allocation: u32::MAX, columns: TMEM_COLUMNS, slot: SharedAddress::dummy() })
    }

    /// Says that this CTA will not allocate again, so that allocations of other CTAs of the SM need not wait for it.
    ///
    /// Executed by one whole warp; in a CTA pair by one of each CTA. PTX:
    /// `tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned`, in a pair `.cta_group::2`.
    #[track_caller]
    pub fn tmem_relinquish(&mut self)
    where
        L: OneWarp,
    {
        with(|s| {
            s.relinquished = true;
            let group = s.cta_group();
            s.instruction(format!("tcgen05.relinquish_alloc_permit{group}.sync.aligned"));
        });
    }

    /// Gives columns of tensor memory back. All loads from them and MMAs to them must be done: every reader has waited
    /// ([`Scope::tmem_wait_load`]) and come to a barrier of the CTA after [`Scope::tcgen05_fence_before`].
    ///
    /// Executed by one whole warp; in a CTA pair by one of each CTA, after a barrier of the cluster. PTX:
    /// `ld.shared.b32` of the address, `tcgen05.dealloc.cta_group::1.sync.aligned.b32`, in a pair `.cta_group::2`.
    #[track_caller]
    pub fn tmem_dealloc(&mut self, tmem: Tmem)
    where
        L: OneWarp,
    {
        with(|s| {
            if !s.owns(tmem.slot.kernel) {
                return;
            }
            let repeat = s.repeat();
            let Some(allocation) = s.allocations.get_mut(tmem.allocation as usize) else { return };
            allocation.freed = true;
            if allocation.repeat != repeat {
                let place = allocation.place;
                s.error(
                    format!("tensor memory allocated at {place} is freed in another `repeat` than it was allocated in"),
                    "allocate and free it in the same loop, or both outside of loops",
                );
            }
            let base = load_slot(s, tmem.slot);
            let base = s.name(base);
            let group = s.cta_group();
            s.instruction(format!("tcgen05.dealloc{group}.sync.aligned.b32 {base}, {}", tmem.columns));
        });
    }

    /// Starts one step of the tensor core: the accumulator gets `a · bᵀ` over 16 columns of K, added to what it held if
    /// `accumulate`. M is the rows of `a`'s tile, N the rows of `b`'s. Returns at once; MMAs of one thread to one
    /// accumulator follow each other, all else waits for [`Scope::commit`].
    ///
    /// In a CTA pair M and N are twice as much: half of the rows of both operands lie in each CTA, at the same place in
    /// its shared memory, and each CTA's accumulator receives its half of the rows of D, all N columns of them.
    ///
    /// Executed by one thread; in a CTA pair by one of the leader. PTX: `mov.b32` of the instruction descriptor
    /// ([`instruction_descriptor`]), for a constant `accumulate` a `mov.pred`, and
    /// `tcgen05.mma.cta_group::1.kind::f16`, in a pair `.cta_group::2`.
    #[track_caller]
    pub fn mma(&mut self, accumulator: Accumulator, a: Slice, b: Slice, accumulate: impl Operand<Pred>)
    where
        L: OneThread,
    {
        let accumulate = accumulate.value();
        with(|s| {
            s.needs_blackwell("a step of the tensor core");
            // In a pair each CTA has half of the rows of both operands.
            let ctas = if s.pair { 2 } else { 1 };
            let (m, n) = (a.rows.saturating_mul(ctas), b.rows.saturating_mul(ctas));
            let step = if m == 64 { 8 } else { 16 };
            if s.poisoned(a.descriptor.id()) || s.poisoned(b.descriptor.id()) {
                // The slice was refused, perhaps for the shape of its tile.
                return;
            }
            let whose = if s.pair { "twice the rows of" } else { "the rows of" };
            if a.rows != 64 && a.rows != 128 {
                s.error(format!("an MMA cannot have M = {m}, {whose} A's tile"), "use a tile of 64 or 128 rows");
            } else if n == 0 || n > 256 || !n.is_multiple_of(step) {
                s.error(
                    format!("an MMA with M = {m} cannot have N = {n}, {whose} B's tile"),
                    format!("use a multiple of {} rows, up to {}", step / ctas, 256 / ctas),
                );
            } else if n > accumulator.columns {
                s.error(
                    format!("an MMA with N = {n} needs {n} columns, and the accumulator has {}", accumulator.columns),
                    format!("give it {n} columns of tensor memory"),
                );
            }
            if a.dtype != b.dtype {
                s.error(format!("A is {} and B is {}", a.dtype, b.dtype), "use tiles of one type");
            }
            let format: U32 = s.fresh();
            let format = s.name(format);
            s.instruction(format!("mov.b32 {format}, 0x{:08x}", instruction_descriptor(a.dtype, m, n)));
            let mode = match accumulate {
                Value::Register(id) => s.name(Pred::from_id(id)),
                constant => {
                    let mode: Pred = s.unary("mov.pred", constant);
                    s.name(mode)
                }
            };
            let (d, a, b) = (accumulator.text(s), s.name(a.descriptor), s.name(b.descriptor));
            let group = s.cta_group();
            s.instruction(format!("tcgen05.mma{group}.kind::f16 {d}, {a}, {b}, {format}, {mode}"));
        });
    }

    /// Makes the barrier receive one arrival when all MMAs that this thread has started are complete: their sums are in
    /// tensor memory, and their tiles are no longer read. Returns at once; who needs that waits on the barrier.
    ///
    /// Executed by the thread that started them. PTX:
    /// `tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64`, in a pair `.cta_group::2`.
    #[track_caller]
    pub fn commit(&mut self, barrier: impl TakesCommits)
    where
        L: OneThread,
    {
        let barrier = barrier.barrier();
        with(|s| {
            let (address, group) = (barrier.address.text(s), s.cta_group());
            s.instruction(format!("tcgen05.commit{group}.mbarrier::arrive::one.shared::cluster.b64 {address}"));
        });
    }

    /// The same for a barrier in several CTAs of the cluster: that at the same place in the shared memory of each CTA
    /// whose bit in `ctas` is set (bit 0 for rank 0) receives one arrival.
    ///
    /// Executed by the thread that started the MMAs. PTX: `mov.b16` of the mask,
    /// `tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64`.
    #[track_caller]
    pub fn commit_multicast(&mut self, barrier: impl TakesCommits, ctas: u32)
    where
        L: OneThread,
    {
        let barrier = barrier.barrier();
        with(|s| {
            let there = if s.pair { 0b11 } else { 0b1 };
            if ctas == 0 || ctas & !there != 0 {
                let bits = format!("use a mask of the CTAs that the cluster has: {there:#b} is all of them");
                s.error(format!("the mask {ctas:#b} does not name CTAs of the cluster"), bits);
            }
            barrier.refuse_remote(s, "this commits to the same place in several CTAs, counted from");
            let mask: B16 = s.unary("mov.b16", Value::Unsigned(u64::from(ctas)));
            let (address, group, mask) = (barrier.address.text(s), s.cta_group(), s.name(mask));
            s.instruction(format!(
                "tcgen05.commit{group}.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 {address}, {mask}"
            ));
        });
    }

    /// Starts a load of `N` columns from tensor memory: lane `i` of the warp gets its lane's columns, one register for
    /// each. `from` must name the first of the warp's own 32 lanes ([`Accumulator::lane`]). The registers hold the sums
    /// after [`Scope::tmem_wait_load`].
    ///
    /// Executed by whole warps. PTX: `tcgen05.ld.sync.aligned.32x32b.xN.b32`.
    #[track_caller]
    pub fn tmem_load<const N: usize>(&mut self, from: Accumulator) -> [F32; N]
    where
        L: WholeWarps,
        Columns<N>: LoadWidth,
    {
        with(|s| {
            if N as u64 > u64::from(from.columns) {
                s.error(
                    format!("a load of {N} columns from {} columns of tensor memory", from.columns),
                    format!("load {} columns or fewer at once", from.columns),
                );
            }
            let registers: [F32; N] = std::array::from_fn(|_| s.fresh());
            let (to, from) = (registers.map(|one| s.name(one)).join(", "), from.text(s));
            s.instruction(format!("tcgen05.ld.sync.aligned.32x32b.x{N}.b32 {{{to}}}, {from}"));
            registers
        })
        .unwrap_or([dummy(); N])
    }

    /// Waits until the loads from tensor memory that these threads started are complete: their registers may be read,
    /// and the columns may be handed on.
    ///
    /// Executed by whole warps. PTX: `tcgen05.wait::ld.sync.aligned`.
    #[track_caller]
    pub fn tmem_wait_load(&mut self)
    where
        L: WholeWarps,
    {
        with(|s| s.instruction("tcgen05.wait::ld.sync.aligned"));
    }
}
