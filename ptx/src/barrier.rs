//! Barriers: that of the CTA, mbarriers in shared memory, and the fences that go with them.

use crate::address::SharedAddress;
use crate::level::{Level, OneThread, WholeCta};
use crate::register::{Operand, Pred, U32, Value};
use crate::scope::Scope;
use crate::state::with;
use std::fmt;

/// The largest count of an mbarrier, and the most bytes it can expect in a phase.
const MAX_COUNT: u64 = (1 << 20) - 1;

/// An mbarrier in shared memory: it counts arrivals, and its phase is complete when all that were announced by
/// [`Scope::barrier_init`] have come, and all bytes that were announced. Then the next phase begins, with the full
/// count again.
#[derive(Clone, Copy, Debug)]
pub struct Barrier {
    pub(crate) address: SharedAddress,
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
    pub fn sync(&mut self)
    where
        L: WholeCta,
    {
        with(|s| s.instruction("bar.sync 0"));
    }

    /// Makes a barrier of 8 bytes of shared memory: each phase takes `count` arrivals. Before another thread or an
    /// engine uses it, [`Scope::fence_mbarrier_init`] and a barrier of the CTA.
    ///
    /// Executed by one thread. PTX: `mbarrier.init.shared::cta.b64`.
    #[track_caller]
    pub fn barrier_init(&mut self, barrier: Barrier, count: u32)
    where
        L: OneThread,
    {
        with(|s| {
            if count == 0 || u64::from(count) > MAX_COUNT {
                s.error(
                    format!("an mbarrier cannot count {count} arrivals"),
                    format!("use the number of arrivals of a phase, from 1 to {MAX_COUNT}"),
                );
            }
            let address = barrier.address.text(s);
            s.instruction(format!("mbarrier.init.shared::cta.b64 {address}, {count}"));
        });
    }

    /// Makes the barriers that this thread initialised known as such to the engines and to other CTAs of the cluster.
    ///
    /// Executed by the thread that did. PTX: `fence.mbarrier_init.release.cluster`. Others wait at a barrier of the CTA.
    #[track_caller]
    pub fn fence_mbarrier_init(&mut self) {
        with(|s| s.instruction("fence.mbarrier_init.release.cluster"));
    }

    /// Arrives once, and releases what this thread did before to those who wait.
    ///
    /// Executed by every thread of the scope: each counts. PTX: `mbarrier.arrive.shared::cta.b64`.
    #[track_caller]
    pub fn arrive(&mut self, barrier: Barrier) {
        with(|s| {
            let address = barrier.address.text(s);
            s.instruction(format!("mbarrier.arrive.shared::cta.b64 _, {address}"));
        });
    }

    /// Announces bytes that engines will bring, and arrives once. The phase is complete when the bytes have come too.
    ///
    /// Executed by one thread. PTX: `mbarrier.arrive.expect_tx.shared::cta.b64`.
    #[track_caller]
    pub fn expect_tx(&mut self, barrier: Barrier, bytes: impl Operand<U32>)
    where
        L: OneThread,
    {
        let bytes = bytes.value();
        with(|s| {
            if let Value::Unsigned(count) = bytes
                && (count == 0 || count > MAX_COUNT)
            {
                s.error(
                    format!("a phase of an mbarrier cannot expect {count} bytes"),
                    format!("use the bytes that the copies of the phase bring, from 1 to {MAX_COUNT}"),
                );
            }
            let (address, bytes) = (barrier.address.text(s), s.text(bytes));
            s.instruction(format!("mbarrier.arrive.expect_tx.shared::cta.b64 _, {address}, {bytes}"));
        });
    }

    /// Waits until the phase with this parity is complete: the first phase of a barrier has parity 0, the second 1,
    /// and so on in turn. A wait for parity 1 on a fresh barrier passes at once. What was released by the arrivals can
    /// be read after it; results of the tensor core need [`Scope::tcgen05_fence_after`] too.
    ///
    /// Executed by every thread that needs to know. PTX: `mbarrier.try_wait.parity.shared::cta.b64` and a `bra` back to
    /// it while it says no.
    #[track_caller]
    pub fn wait(&mut self, barrier: Barrier, parity: impl Operand<U32>) {
        let parity = parity.value();
        with(|s| {
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
    /// Executed, as a rule, by every thread that stored, before the barrier at which the one that starts the engine waits.
    /// It also covers what a thread has learnt of at a barrier: behind that barrier the fence of the thread that starts
    /// the engine is enough. PTX: `fence.proxy.async.shared::cta`.
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
