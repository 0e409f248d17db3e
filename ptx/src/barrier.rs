//! Barriers: that of the CTA, mbarriers in shared memory, and the fences that go with them.

use crate::address::SharedAddress;
use crate::kernel::RegionKind;
use crate::level::{Level, OneThread, OneWarp, OneWarpgroup, WholeCta};
use crate::register::{Operand, Pred, U32, Value};
use crate::ring::{Ring, sealed};
use crate::scope::{Cta, Scope};
use crate::state::{State, with};
use std::fmt;

/// The largest count of an mbarrier, and the most bytes it can expect in a phase.
const MAX_COUNT: u64 = (1 << 20) - 1;

/// An mbarrier in shared memory: it counts arrivals, and its phase is complete when all that were announced by
/// [`Scope::barrier_init`] have come, and all bytes that were announced. Then the next phase begins, with the full
/// count again.
#[derive(Clone, Copy, Debug)]
pub struct Barrier {
    pub(crate) address: SharedAddress,
    /// It is the one of another CTA, and the address one of the cluster's.
    pub(crate) remote: bool,
}

impl Barrier {
    pub(crate) const BYTES: u32 = 8;

    #[track_caller]
    pub(crate) fn reserve(name: &str, stages: Option<u32>) -> Barrier {
        let what = format!("barrier \"{name}\"");
        let bytes = Barrier::BYTES;
        let address = with(|s| s.reserve(name, &what, stages, u64::from(bytes), bytes, RegionKind::Barrier));
        Barrier { address: address.flatten().unwrap_or(SharedAddress::dummy()), remote: false }
    }

    /// The barrier at the same place in the shared memory of another CTA of the cluster, by its rank. It can take
    /// arrivals, bytes and commits; waiting is for its own CTA.
    ///
    /// Executed by every thread of the scope. PTX: `mov.u32` of the address, `mapa.shared::cluster.u32`.
    #[track_caller]
    pub fn of_cta(self, rank: impl Operand<U32>) -> Barrier {
        let rank = rank.value();
        let address = with(|s| {
            if s.cluster == 1 {
                s.error("this kernel has no clusters", "make a pair of the CTAs: `k.cta_pair()`, or `k.cluster(2)`");
            } else if let Value::Unsigned(rank) = rank
                && rank >= u64::from(s.cluster)
            {
                if s.pair {
                    s.error(format!("a pair has no CTA of rank {rank}"), "use rank 0, the leader's, or 1");
                } else {
                    let last = s.cluster - 1;
                    s.error(format!("the cluster has no CTA of rank {rank}"), format!("use a rank from 0 to {last}"));
                }
            }
            let (local, mapped): (U32, U32) = (s.fresh(), s.fresh());
            let address = self.address.text(s);
            let (from, to, rank) = (s.name(local), s.name(mapped), s.text(rank));
            s.instruction(format!("mov.u32 {from}, {}", address.trim_matches(['[', ']'])));
            s.instruction(format!("mapa.shared::cluster.u32 {to}, {from}, {rank}"));
            SharedAddress { register: Some(mapped), offset: 0, ..self.address }
        });
        Barrier { address: address.unwrap_or(SharedAddress::dummy()), remote: true }
    }

    /// Refuses what only the CTA that holds the barrier can do.
    pub(crate) fn refuse_remote(self, s: &mut State, what: &str) {
        if self.remote {
            let help = "use the barrier of this CTA, without `of_cta`: its own CTA makes a barrier and waits for it";
            s.error(format!("{what} a barrier of another CTA"), help);
        }
    }

    /// `.shared::cta`, or of the cluster's shared memory.
    fn space(self) -> &'static str {
        if self.remote { ".shared::cluster" } else { ".shared::cta" }
    }
}

impl sealed::Staged for Barrier {
    fn address(self) -> SharedAddress {
        self.address
    }

    fn moved_to(self, address: SharedAddress) -> Barrier {
        Barrier { address, ..self }
    }
}

/// An mbarrier of any kind: [`Barrier`], or one that says in its type who arrives at it.
#[diagnostic::on_unimplemented(
    message = "this is for one mbarrier, and here is a `{Self}`",
    label = "not an mbarrier",
    note = "if it is a ring of barriers, pick one of them: `ring.at(stage)`"
)]
pub trait Mbarrier: sealed::Staged {
    /// The barrier itself.
    fn barrier(self) -> Barrier;
}

/// An mbarrier that counts bytes: [`TmaBarrier`] or [`Barrier`].
#[diagnostic::on_unimplemented(
    message = "bytes of TMA loads are counted by a `TmaBarrier`, and this is a `{Self}`",
    label = "not a barrier that announces loaded tiles",
    note = "if it is a ring of barriers, pick one of them: `ring.at(stage)`"
)]
pub trait TakesBytes: Mbarrier {}

/// An mbarrier at which commits arrive: [`CommitBarrier`] or [`Barrier`].
#[diagnostic::on_unimplemented(
    message = "commits arrive at a `CommitBarrier`, and this is a `{Self}`",
    label = "not a barrier that announces the end of MMAs",
    note = "if it is a ring of barriers, pick one of them: `ring.at(stage)`"
)]
pub trait TakesCommits: Mbarrier {}

/// An mbarrier at which threads arrive: [`ThreadBarrier`] or [`Barrier`].
#[diagnostic::on_unimplemented(
    message = "threads arrive at a `ThreadBarrier`, and this is a `{Self}`",
    label = "not a barrier that announces what threads have done",
    note = "if it is a ring of barriers, pick one of them: `ring.at(stage)`"
)]
pub trait TakesThreads: Mbarrier {}

impl Mbarrier for Barrier {
    fn barrier(self) -> Barrier {
        self
    }
}
impl TakesBytes for Barrier {}
impl TakesCommits for Barrier {}
impl TakesThreads for Barrier {}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident;)+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub struct $kind(Barrier);

            impl $kind {
                /// One barrier of this kind in shared memory. Name it for what it announces. No instruction.
                #[track_caller]
                pub fn new(_k: &mut Cta, name: &str) -> $kind {
                    $kind(Barrier::reserve(name, None))
                }

                /// One for each stage of a pipeline. No instruction.
                #[track_caller]
                pub fn ring(_k: &mut Cta, name: &str, stages: u32) -> Ring<$kind> {
                    Ring::new($kind(Barrier::reserve(name, Some(stages))), stages, Barrier::BYTES)
                }

                /// That of another CTA of the cluster: see [`Barrier::of_cta`].
                #[track_caller]
                pub fn of_cta(self, rank: impl Operand<U32>) -> $kind {
                    $kind(self.0.of_cta(rank))
                }
            }

            impl Mbarrier for $kind {
                fn barrier(self) -> Barrier {
                    self.0
                }
            }

            impl sealed::Staged for $kind {
                fn address(self) -> SharedAddress {
                    self.0.address
                }

                fn moved_to(self, address: SharedAddress) -> $kind {
                    $kind(self.0.moved_to(address))
                }
            }

            impl fmt::Display for $kind {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    self.0.fmt(f)
                }
            }
        )+
    };
}

kinds! {
    /// Announces loaded tiles: its phase is complete when one thread has arrived and announced bytes
    /// ([`Scope::expect_tx`]), and the TMA engine has brought as many ([`Scope::tma_load`]). Arrivals at init: 1.
    TmaBarrier;
    /// Announces that MMAs are complete: commits arrive ([`Scope::commit`]). Arrivals at init: the commits of a phase.
    CommitBarrier;
    /// Announces what threads have done: each arrives ([`Scope::arrive`]). Arrivals at init: the threads that do.
    ThreadBarrier;
}

impl TakesBytes for TmaBarrier {}
impl TakesCommits for CommitBarrier {}
impl TakesThreads for ThreadBarrier {}

/// One mbarrier or a ring of them, for [`Scope::barrier_init`].
pub trait Mbarriers: mbarriers::Mbarriers {}
impl<T: mbarriers::Mbarriers> Mbarriers for T {}

mod mbarriers {
    pub trait Mbarriers {
        fn each(&self) -> Vec<super::Barrier>;
    }
}

impl<B: Mbarrier> mbarriers::Mbarriers for B {
    fn each(&self) -> Vec<Barrier> {
        vec![self.barrier()]
    }
}

impl<B: Mbarrier> mbarriers::Mbarriers for Ring<B> {
    fn each(&self) -> Vec<Barrier> {
        Ring::each(self).map(B::barrier).collect()
    }
}

impl fmt::Display for Barrier {
    /// Its address in brackets, as an operand of [`Scope::raw`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

impl<L: Level> Scope<L> {
    /// The barrier of the CTA: no thread goes on before all have come. What a thread wrote before it to shared or
    /// global memory, all threads of the CTA can read after it, with plain loads; engines need a fence too.
    ///
    /// Executed by every thread of the CTA. PTX: `bar.sync 0`.
    #[track_caller]
    pub fn sync(&self)
    where
        L: WholeCta,
    {
        with(|s| {
            if s.all_come("CTA", "k.sync()") {
                s.instruction("bar.sync 0");
            }
        });
    }

    /// A barrier of the warpgroup: none of its 128 threads goes on before all have come. What a thread wrote before it,
    /// the others can read after it, as with [`Scope::sync`]. A CTA has 16 such barriers, known by number: 0 is that of
    /// [`Scope::sync`], and each warpgroup needs another one, since warpgroups do not wait for each other.
    ///
    /// Executed by every thread of the warpgroup. PTX: `bar.sync`, with the number and 128.
    #[track_caller]
    pub fn sync_warpgroup(&mut self, number: u32)
    where
        L: OneWarpgroup,
    {
        with(|s| {
            if !(1..16).contains(&number) {
                s.error(
                    format!("a warpgroup cannot meet at barrier {number}"),
                    "use a number from 1 to 15, another one for each warpgroup",
                );
            }
            s.instruction(format!("bar.sync {number}, 128"));
        });
    }

    /// A barrier of the warp: none of its 32 lanes goes on before all have come. What a lane wrote before it to shared or global
    /// memory, the others can read after it. Lanes that only execute the same instructions have not met.
    ///
    /// Executed by every lane of the warp. PTX: `bar.warp.sync` of all lanes (PTX ISA 9.7.13.2).
    #[track_caller]
    pub fn sync_warp(&mut self)
    where
        L: OneWarp,
    {
        with(|s| s.instruction("bar.warp.sync 0xffffffff"));
    }

    /// Makes a barrier of 8 bytes of shared memory: each phase takes `count` arrivals, for every stage of a ring the
    /// same. Before another thread uses it, or has an engine use it, a barrier of the CTA ([`Scope::sync`]), or of the
    /// cluster where another CTA does ([`Scope::cluster_sync`]).
    ///
    /// Executed by one thread. PTX: `mbarrier.init.shared::cta.b64`, one for each stage.
    #[track_caller]
    pub fn barrier_init(&mut self, barriers: impl Mbarriers, count: u32)
    where
        L: OneThread,
    {
        let barriers = barriers.each();
        with(|s| {
            if count == 0 || u64::from(count) > MAX_COUNT {
                s.error(
                    format!("an mbarrier cannot count {count} arrivals"),
                    format!("use the number of arrivals of a phase, from 1 to {MAX_COUNT}"),
                );
            }
            for barrier in barriers {
                barrier.refuse_remote(s, "this makes");
                let address = barrier.address.text(s);
                s.instruction(format!("mbarrier.init.shared::cta.b64 {address}, {count}"));
            }
        });
    }

    /// Hands the initialisations of this thread to a barrier of the cluster that follows, also to a relaxed one. A barrier of
    /// the CTA, or [`Scope::cluster_sync`], tells of them without it.
    ///
    /// Executed by the thread that initialised. PTX: `fence.mbarrier_init.release.cluster`.
    #[track_caller]
    pub fn fence_mbarrier_init(&mut self) {
        with(|s| s.instruction("fence.mbarrier_init.release.cluster"));
    }

    /// Arrives once, and releases what this thread did before to those who wait.
    ///
    /// Executed by every thread of the scope: each counts. PTX: `mbarrier.arrive.shared::cta.b64`; for a
    /// barrier of another CTA `.shared::cluster`. Without a scope, since one of the cluster costs a fence of the whole GPU;
    /// what lies in tensor memory is ordered by [`Scope::tcgen05_fence_before`].
    #[track_caller]
    pub fn arrive(&mut self, barrier: impl TakesThreads) {
        let barrier = barrier.barrier();
        with(|s| {
            let (address, space) = (barrier.address.text(s), barrier.space());
            s.instruction(format!("mbarrier.arrive{space}.b64 _, {address}"));
        });
    }

    /// Announces bytes that engines will bring, and arrives once. The phase is complete when the bytes have come too.
    ///
    /// Executed by one thread. PTX: `mbarrier.arrive.expect_tx.shared::cta.b64`; for a barrier of another CTA
    /// `.shared::cluster`.
    #[track_caller]
    pub fn expect_tx(&mut self, barrier: impl TakesBytes, bytes: impl Operand<U32>)
    where
        L: OneThread,
    {
        let (barrier, bytes) = (barrier.barrier(), bytes.value());
        with(|s| {
            if let Value::Unsigned(count) = bytes
                && (count == 0 || count > MAX_COUNT)
            {
                s.error(
                    format!("a phase of an mbarrier cannot expect {count} bytes"),
                    format!("use the bytes that the copies of the phase bring, from 1 to {MAX_COUNT}"),
                );
            }
            let (address, bytes, space) = (barrier.address.text(s), s.text(bytes), barrier.space());
            s.instruction(format!("mbarrier.arrive.expect_tx{space}.b64 _, {address}, {bytes}"));
        });
    }

    /// Waits until the phase with this parity is complete: the first phase of a barrier has parity 0, the second 1,
    /// and so on in turn. A wait for parity 1 on a fresh barrier passes at once. What was released by the arrivals can
    /// be read after it; results of the tensor core need [`Scope::tcgen05_fence_after`] too.
    ///
    /// Executed by every thread that needs to know. PTX: `mbarrier.try_wait.parity.shared::cta.b64` and a `bra` back to
    /// it while it says no.
    #[track_caller]
    pub fn wait(&mut self, barrier: impl Mbarrier, parity: impl Operand<U32>) {
        let (barrier, parity) = (barrier.barrier(), parity.value());
        with(|s| {
            barrier.refuse_remote(s, "this waits for");
            if let Value::Unsigned(number) = parity
                && number > 1
            {
                s.error(
                    format!("{number} is not a parity"),
                    "use 0 for the first, third, fifth phase, 1 for the others",
                );
            }
            let (again, done) = (s.new_label("wait"), s.fresh::<Pred>());
            let (address, parity, done) = (barrier.address.text(s), s.text(parity), s.name(done));
            s.label(&again);
            s.instruction(format!("mbarrier.try_wait.parity.shared::cta.b64 {done}, {address}, {parity}"));
            s.instruction(format!("@!{done} bra {again}"));
        });
    }

    /// Lets the engines (the tensor core, TMA) see what this thread stored to shared memory with plain stores. They
    /// read through another path than threads do, the async proxy.
    ///
    /// Executed, as a rule, by every thread that stored, before the barrier at which the one that starts the engine
    /// waits. It also covers what a thread has learnt of at a barrier: behind that barrier the fence of the thread that
    /// starts the engine is enough. PTX: `fence.proxy.async.shared::cta`.
    #[track_caller]
    pub fn fence_proxy_async(&mut self) {
        with(|s| s.instruction("fence.proxy.async.shared::cta"));
    }

    /// Orders the tensor-memory work of this thread before the barrier or arrival that follows.
    ///
    /// Executed by every thread that loaded from tensor memory or issued to it, before it tells others. PTX:
    /// `tcgen05.fence::before_thread_sync`.
    #[track_caller]
    pub fn tcgen05_fence_before(&mut self) {
        with(|s| s.instruction("tcgen05.fence::before_thread_sync"));
    }

    /// Orders the tensor-memory work of this thread after the wait or barrier that it follows.
    ///
    /// Executed by every thread that will load from tensor memory or issue to it, after it was told. PTX:
    /// `tcgen05.fence::after_thread_sync`.
    #[track_caller]
    pub fn tcgen05_fence_after(&mut self) {
        with(|s| s.instruction("tcgen05.fence::after_thread_sync"));
    }
}
