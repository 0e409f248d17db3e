//! Hopper (`sm_90a`): its tensor core is `wgmma`. A warpgroup multiplies tiles in shared memory, and keeps the sums in
//! its registers.

use crate::address::SharedAddress;
use crate::level::{Level, OneWarpgroup, WholeWarps};
use crate::register::sealed::Register as _;
use crate::register::{B32, F32, Operand, Pred, Value, dummy};
use crate::scope::{Cta, Scope};
use crate::state::{State, with};
use crate::tile::Slice;

/// Rows of D of one `wgmma`.
const WGMMA_M: u32 = 64;

impl Cta {
    /// Writes the kernel for Hopper, `sm_90a`, instead of Blackwell: the tensor core is [`Scope::wgmma`], and there is
    /// no tensor memory. Once, before the first instruction.
    #[track_caller]
    pub fn hopper(&mut self) {
        with(|s| {
            if s.hopper {
                s.error("Hopper is asked for twice", "call `hopper` once, at the start of the kernel");
            } else if s.has_instructions() {
                s.error("Hopper is asked for after the first instruction", "call `hopper` at the start of the kernel");
            }
            s.hopper = true;
        });
    }
}

impl State {
    /// Refuses an instruction of Blackwell in a kernel for Hopper.
    pub fn needs_blackwell(&mut self, what: &str) {
        if self.hopper {
            self.error(format!("{what}: Hopper has no `tcgen05`"), "use `wgmma`, or leave `k.hopper()` out");
        }
    }

    fn needs_hopper(&mut self, what: &str) {
        if !self.hopper {
            self.error(
                format!("{what}: `wgmma` is Hopper's alone"),
                "use `mma`, or begin the kernel with `k.hopper()`",
            );
        }
    }
}

/// The sums of a warpgroup's product, 64 rows: what one of its threads holds of them, in registers.
///
/// Thread `t` holds, of each 8 columns, four sums: of row `r = 16 * (t / 32) + t % 32 / 4` those of columns
/// `2 * (t % 4)` and the next, then the same two of row `r + 8` (PTX ISA, `wgmma` register fragments, D).
#[derive(Clone, Debug)]
#[must_use = "sums that nothing reads are work for nothing"]
pub struct Fragment {
    sums: Vec<F32>,
}

impl Fragment {
    /// Columns of D.
    pub fn columns(&self) -> u32 {
        self.sums.len() as u32 * 2
    }

    /// The four sums of this thread in columns `8 * block` to `8 * block + 7`: two of its first row, two of its second.
    /// No instruction.
    #[track_caller]
    pub fn block(&self, block: u32) -> [F32; 4] {
        let first = block as usize * 4;
        match self.sums.get(first..first.saturating_add(4)) {
            Some(four) => std::array::from_fn(|i| four[i]),
            None => {
                let last = (self.sums.len() / 4).saturating_sub(1);
                with(|s| {
                    s.error(
                        format!("the sums have no columns {} and up", 8 * block),
                        format!("use a block up to {last}"),
                    );
                });
                [dummy(); 4]
            }
        }
    }
}

impl<L: Level> Scope<L> {
    /// Registers for the sums of 64 rows and so many columns: half as many registers a thread. What they hold is
    /// undefined until a [`Scope::wgmma`] that does not accumulate. No instruction.
    ///
    /// For every thread of one warpgroup.
    #[track_caller]
    pub fn fragment(&mut self, columns: u32) -> Fragment
    where
        L: OneWarpgroup,
    {
        let sums = with(|s| {
            if columns == 0 || columns > 256 || !columns.is_multiple_of(8) {
                s.error(format!("a `wgmma` cannot have {columns} columns"), "use a multiple of 8 columns, up to 256");
                return Vec::new();
            }
            (0..columns / 2).map(|_| s.variable()).collect()
        });
        Fragment { sums: sums.unwrap_or_default() }
    }

    /// Lets the `wgmma` that follow see what the threads did with their registers: before the first one, and whenever
    /// a fragment was read or written in between.
    ///
    /// Executed by every thread of the warpgroup. PTX: `wgmma.fence.sync.aligned`.
    #[track_caller]
    pub fn wgmma_fence(&mut self)
    where
        L: OneWarpgroup,
    {
        with(|s| {
            s.needs_hopper("a fence of `wgmma`");
            s.instruction("wgmma.fence.sync.aligned");
        });
    }

    /// Starts one step of Hopper's tensor core: the sums get `a · bᵀ` over 16 columns of K, added to what they held if
    /// `accumulate`. `a` has 64 rows, `b` as many rows as the sums have columns. Returns at once: the sums may be read,
    /// and the tiles written, after [`Scope::wgmma_commit`] and [`Scope::wgmma_wait`].
    ///
    /// Executed by every thread of the warpgroup. PTX: for a constant `accumulate` a `mov.pred`, and
    /// `wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16` for 256 columns of FP16.
    #[track_caller]
    pub fn wgmma(&mut self, sums: &Fragment, a: Slice, b: Slice, accumulate: impl Operand<Pred>)
    where
        L: OneWarpgroup,
    {
        let accumulate = accumulate.value();
        with(|s| {
            s.needs_hopper("a step of the tensor core");
            if s.poisoned(a.descriptor.id()) || s.poisoned(b.descriptor.id()) || sums.sums.is_empty() {
                // It was refused, perhaps for the shape of its tile.
                return;
            }
            let n = sums.columns();
            if a.rows != WGMMA_M {
                s.error(
                    format!("a `wgmma` takes {WGMMA_M} rows of A, and the slice has {}", a.rows),
                    "take 64 rows of the tile: `tile.rows(0, 64)`",
                );
            }
            if b.rows != n {
                s.error(
                    format!("the slice of B has {} rows, and the sums have {n} columns", b.rows),
                    "give the sums as many columns as B's tile has rows",
                );
            }
            if a.dtype != b.dtype {
                s.error(format!("A is {} and B is {}", a.dtype, b.dtype), "use tiles of one type");
            }
            let mode = match accumulate {
                Value::Register(id) => s.name(Pred::from_id(id)),
                constant => {
                    let mode: Pred = s.unary("mov.pred", constant);
                    s.name(mode)
                }
            };
            let registers: Vec<String> = sums.sums.iter().map(|sum| s.name(*sum)).collect();
            let (dtype, a, b) = (a.dtype, s.name(a.descriptor), s.name(b.descriptor));
            s.instruction(format!(
                "wgmma.mma_async.sync.aligned.m64n{n}k16.f32.{dtype}.{dtype} {{{}}}, {a}, {b}, {mode}, 1, 1, 0, 0",
                registers.join(", ")
            ));
        });
    }

    /// Makes a group of the `wgmma` that the warpgroup has started since the last one.
    ///
    /// Executed by every thread of the warpgroup. PTX: `wgmma.commit_group.sync.aligned`.
    #[track_caller]
    pub fn wgmma_commit(&mut self)
    where
        L: OneWarpgroup,
    {
        with(|s| {
            s.needs_hopper("a group of `wgmma`");
            s.instruction("wgmma.commit_group.sync.aligned");
        });
    }

    /// Waits until all but the latest `pending` groups of the warpgroup are complete: their tiles are no longer read,
    /// and with 0 the sums may be read.
    ///
    /// Executed by every thread of the warpgroup. PTX: `wgmma.wait_group.sync.aligned`.
    #[track_caller]
    pub fn wgmma_wait(&mut self, pending: u32)
    where
        L: OneWarpgroup,
    {
        with(|s| {
            s.needs_hopper("a wait for `wgmma`");
            s.instruction(format!("wgmma.wait_group.sync.aligned {pending}"));
        });
    }

    /// Asks for more registers: each thread of the warpgroup may then use `count`, a multiple of 8 from 24 to 256.
    /// Waits until others have given enough back ([`Scope::give_registers`]).
    ///
    /// Executed by every thread of the warpgroup. PTX: `setmaxnreg.inc.sync.aligned.u32`.
    #[track_caller]
    pub fn take_registers(&mut self, count: u32)
    where
        L: OneWarpgroup,
    {
        set_registers("inc", count);
    }

    /// Gives registers back: each thread of the warpgroup uses `count` from here on, a multiple of 8 from 24 to 256.
    ///
    /// Executed by every thread of the warpgroup. PTX: `setmaxnreg.dec.sync.aligned.u32`.
    #[track_caller]
    pub fn give_registers(&mut self, count: u32)
    where
        L: OneWarpgroup,
    {
        set_registers("dec", count);
    }

    /// Stores four 8 × 8 blocks of 16-bit elements to shared memory, whose elements lie across the warp as in a
    /// [`Fragment`]: of block `i` thread `t` has row `t / 4`, columns `2 * (t % 4)` and the next, in `blocks[i]`. Thread
    /// `t` gives the address of row `t % 8` of block `t / 8`, 16 bytes.
    ///
    /// Executed by whole warps. PTX: `stmatrix.sync.aligned.m8n8.x4.shared.b16`.
    #[track_caller]
    pub fn store_blocks(&mut self, to: SharedAddress, blocks: [B32; 4])
    where
        L: WholeWarps,
    {
        with(|s| {
            let to = to.text(s);
            let blocks = blocks.map(|block| s.name(block)).join(", ");
            s.instruction(format!("stmatrix.sync.aligned.m8n8.x4.shared.b16 {to}, {{{blocks}}}"));
        });
    }
}

#[track_caller]
fn set_registers(direction: &str, count: u32) {
    with(|s| {
        if !(24..=256).contains(&count) || !count.is_multiple_of(8) {
            s.error(
                format!("a thread cannot be given {count} registers"),
                "use a multiple of 8 from 24 to 256 (PTX ISA, `setmaxnreg`)",
            );
        }
        s.instruction(format!("setmaxnreg.{direction}.sync.aligned.u32 {count}"));
    });
}
