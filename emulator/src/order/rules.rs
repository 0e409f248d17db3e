//! What orders accesses, and what does not although it looks as if it did. `emulate --rules` and `docs/rules.md` print this table;
//! `tests/rules.rs` holds it against kernels.

/// What two sides must do so that accesses are ordered; or what two sides do that orders nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// A stable name.
    pub name: &'static str,
    /// What one side does.
    pub first: &'static str,
    /// What the other side does.
    pub then: &'static str,
    /// What is then ordered, and for whom. It begins with "Nothing" where there is no order.
    pub orders: &'static str,
    /// Where it is written.
    pub source: &'static str,
}

impl Rule {
    /// Whether it says that there is no order.
    pub fn denies(&self) -> bool {
        self.orders.starts_with("Nothing")
    }
}

const fn rule(
    name: &'static str,
    first: &'static str,
    then: &'static str,
    orders: &'static str,
    source: &'static str,
) -> Rule {
    Rule { name, first, then, orders, source }
}

/// Every rule: plain and strong accesses, barriers, mbarriers, proxies, copies, the tensor core.
pub const RULES: &[Rule] = &[
    rule(
        "one-warp",
        "A thread accesses memory through the generic proxy.",
        "The same thread, or one of its warp that moves together with it, does so later.",
        "The second comes after the first. The ISA says so of one thread; that lanes move in step is the assumption lanes-in-step. Of what another lane has stored \
         to shared memory, see warp-sync.",
        "PTX ISA 8.9.5; assumption lanes-in-step",
    ),
    rule(
        "warp-sync",
        "A lane of a warp accesses shared memory, then executes bar.warp.sync, or another barrier.",
        "Another lane of the warp executes the same barrier, then accesses the same bytes.",
        "The first access comes before the second. Without a barrier, lanes that have parted at a branch race; a load by a lane that moves together with the one that \
         stored is a note.",
        "PTX ISA 8.7.2, 9.7.13.2; assumption lanes-in-step",
    ),
    rule(
        "strong-accesses",
        "A thread accesses a location with .relaxed, .acquire, .release, .volatile or an atomic operation.",
        "A thread that the first one's scope includes does so too, at a scope that includes the first.",
        "The two do not race, whichever comes first. Other accesses of the two threads are not ordered by it.",
        "PTX ISA 8.5, 8.6, 8.7.1",
    ),
    rule(
        "release-acquire",
        "st.release, red.release or atom.release behind accesses.",
        "ld.acquire or atom.acquire of the value, at a scope that includes both.",
        "What the first thread did, and what it had learnt, comes before what the second does next: all memories, generic proxy. Proxy \
         fences and tcgen05.fence::before_thread_sync executed before the release are told with it.",
        "PTX ISA 8.8, 8.9.5",
    ),
    rule(
        "fence-and-relaxed",
        "fence.release, fence.acq_rel or fence.sc, then a relaxed store, atomic operation, mbarrier arrival or barrier.cluster.arrive.relaxed.",
        "A relaxed load or wait that sees it, then fence.acquire, fence.acq_rel or fence.sc; or an acquire.",
        "The same as release and acquire. For other CTAs, fences beside mbarrier operations are at the scope of the cluster, or a wider \
         one; for other clusters, both fences are at the scope of the GPU or the system.",
        "PTX ISA 8.8, 9.7.13.4",
    ),
    rule(
        "read-modify-write",
        "A release, then atomic operations of any threads on the same location.",
        "An acquire that sees the value of the last of them.",
        "The same as if it had seen the released value. A store in between, also a strong one, ends that.",
        "PTX ISA 8.8",
    ),
    rule(
        "scope-too-narrow",
        "A strong access at .cta or .cluster scope.",
        "One by a thread of another CTA (.cta), or of another cluster (.cluster).",
        "Nothing: the two race. Between clusters, a release and an acquire at .cluster scope tell nothing, either.",
        "PTX ISA 8.5, 8.6",
    ),
    rule(
        "non-coherent-load",
        "A kernel writes global memory.",
        "ld.global.nc of the same bytes in the same kernel, behind any synchronisation.",
        "Nothing: its cache sees no write of the kernel.",
        "PTX ISA 9.7.9.9",
    ),
    rule(
        "cta-barrier",
        "bar.sync, bar.arrive or bar.red, behind accesses.",
        "bar.sync or bar.red of the same phase of the same barrier.",
        "What all who arrived did, and had learnt, comes before what those who waited do next: all memories, generic proxy; of tensor \
         memory see tensor-fences.",
        "PTX ISA 9.7.13.1, 8.9.4, 8.9.5",
    ),
    rule(
        "barrier-arrive",
        "Others do something and arrive at a CTA barrier.",
        "A warp executes bar.arrive there and goes on.",
        "Nothing for the warp that only arrives: it has not waited.",
        "PTX ISA 9.7.13.1",
    ),
    rule(
        "behind-an-arrival",
        "A warp arrives (bar.arrive, barrier.cluster.arrive, mbarrier.arrive) and then accesses memory.",
        "Others wait for the phase.",
        "Nothing of what came behind the arrival, also if it came before the wait in time.",
        "PTX ISA 9.7.13.1, barrier.cluster",
    ),
    rule(
        "cluster-barrier",
        "barrier.cluster.arrive or .arrive.release, behind accesses.",
        "barrier.cluster.wait of the same phase.",
        "What all threads of the cluster did before comes before what those who waited do next: all memories, generic proxy, all CTAs of \
         the cluster.",
        "PTX ISA, barrier.cluster",
    ),
    rule(
        "cluster-arrive-relaxed",
        "barrier.cluster.arrive.relaxed, behind accesses, without a fence between.",
        "barrier.cluster.wait, also .acquire.",
        "Nothing of memory, not even of the shared memory of the own CTA. Only time: CTAs have started, or have come so far, and \
         initialisations that a fence.mbarrier_init covers.",
        "PTX ISA, barrier.cluster; measured on an H100",
    ),
    rule(
        "cluster-arrive-behind-narrow-fence",
        "Accesses, a fence at .cta scope, barrier.cluster.arrive.relaxed.",
        "barrier.cluster.wait, then accesses by a thread of another CTA.",
        "Nothing: the fence reaches the own CTA.",
        "PTX ISA 8.5, 8.6",
    ),
    rule(
        "end-of-a-cta",
        "A thread uses shared memory, an mbarrier or tensor memory of another CTA of its cluster, and arrives at a barrier of any kind, \
         also relaxed.",
        "A thread of that CTA waits for the barrier, before it ends.",
        "The use comes before the end of the memory. Without it, the CTA may be gone.",
        "PTX ISA 5.1.7, barrier.cluster",
    ),
    rule(
        "mbarrier-phase",
        "mbarrier.arrive, .release as it is by default, behind accesses.",
        "mbarrier.try_wait or test_wait of the phase gives true, .acquire as it is by default.",
        "What all arrivals of the phase, and of those before, knew comes before what the waiting threads do next: all memories, generic \
         proxy. For stores of other CTAs, both are at .cluster scope (mbarrier-scope). Of a parity the wait learns the first phase \
         that it can mean, whatever has happened since.",
        "PTX ISA 9.7.13.15.13, 9.7.13.15.16, 8.9.5",
    ),
    rule(
        "mbarrier-scope",
        "A thread stores, and arrives at an mbarrier of another CTA of its cluster.",
        "A thread of that CTA waits for the phase, and loads; the arrival or the wait is at .cta scope, as both are by default.",
        "Nothing of what the other CTA's threads have stored, unless a fence at .cluster scope stands beside what is too narrow. That \
         the other CTA has read a buffer, which may then be overwritten, is told at either scope; so is what engines complete.",
        "PTX ISA 8.5, 8.8, 8.9.4, 9.7.13.15.13, 9.7.13.15.16",
    ),
    rule(
        "mbarrier-relaxed",
        "mbarrier.arrive.relaxed.",
        "A wait.",
        "Nothing of memory, as long as no fence stands beside the arrival (fence-and-relaxed): ptxas moves stores behind it.",
        "PTX ISA 9.7.13.15.13; ptxas 13",
    ),
    rule(
        "mbarrier-relaxed-wait",
        "An arrival, or what an engine, st.async or red.async completes.",
        "A wait with .relaxed, without a fence behind it (fence-and-relaxed).",
        "Nothing to the letter, and a note: ptxas makes the same instruction of it as of an acquire at .cta scope, and kernels of Tilus have no \
         other waits. A load or store of global memory races all the same: an acquire at .cluster scope empties its cache.",
        "PTX ISA 9.7.13.15.16; ptxas 13",
    ),
    rule(
        "mbarrier-fresh-parity",
        "A thread arrives at a new mbarrier.",
        "A wait for parity 1.",
        "Nothing: it passes on a new mbarrier at once, for no phase. It is what a producer of an empty ring wants.",
        "PTX ISA 9.7.13.15.4, 9.7.13.15.16",
    ),
    rule(
        "mbarrier-announcement",
        "mbarrier.expect_tx announces bytes, by a step of its own.",
        "An arrival of the same phase: of the same thread, or of one that has synchronised with it.",
        "The phase completes only when these bytes have come, too. Without such an arrival it may be complete before they are announced; they then count \
         for the next phase.",
        "PTX ISA 9.7.13.15.2, 9.7.13.15.5, 9.7.13.15.6",
    ),
    rule(
        "mbarrier-init",
        "mbarrier.init, then anything that tells others what was done (a barrier, a release).",
        "Any operation on the mbarrier, by threads or as operand of copies and commits.",
        "The initialisation comes before it. A copy, a commit and the like access their mbarrier through the generic proxy: no proxy fence is asked \
         for, and with a barrier of the CTA, or one of the cluster that releases, no fence.mbarrier_init.",
        "PTX ISA 9.7.13.15.3, 9.7.13.15.9; version 9.4, cp.async.bulk, tcgen05.commit",
    ),
    rule(
        "mbarrier-init-fence",
        "mbarrier.init, fence.mbarrier_init.release.cluster, barrier.cluster.arrive.relaxed.",
        "barrier.cluster.wait, then operations on the mbarrier from any CTA of the cluster.",
        "The initialisation comes before them: a relaxed operation tells what the fence covers.",
        "PTX ISA, membar, fence",
    ),
    rule(
        "mbarrier-init-fence-covers-inits",
        "Stores, fence.mbarrier_init.release.cluster, barrier.cluster.arrive.relaxed.",
        "barrier.cluster.wait, then loads.",
        "Nothing: the fence covers initialisations of mbarriers only.",
        "PTX ISA, membar, fence",
    ),
    rule(
        "proxy-fence",
        "Stores through the generic proxy, and fence.proxy.async by who stored or by who has synchronised with them.",
        "The asynchronous proxy reads the bytes (TMA, tcgen05.mma, wgmma), behind synchronisation with the stores and with the fence.",
        "The stores come before the read. The fence alone is no synchronisation, and synchronisation alone is no fence.",
        "PTX ISA 8.6, 9.7.13.4, 9.7.16.6.5",
    ),
    rule(
        "proxy-fence-acquire-alone",
        "Stores through the generic proxy.",
        "fence.proxy.async::generic.acquire behind synchronisation, then the asynchronous proxy reads the bytes.",
        "Nothing: the acquiring half is none without fence.proxy.async::generic.release in front of the synchronisation, which counts as \
         fence.proxy.async.shared::cta.",
        "PTX ISA, membar, fence; ptxas 13",
    ),
    rule(
        "proxy-fence-of-one-lane",
        "All lanes of a warp store; one lane executes fence.proxy.async, before the warp synchronises.",
        "The asynchronous proxy reads the bytes, behind any synchronisation.",
        "Nothing of the other lanes: a fence covers the thread's own accesses, and those that it had synchronised with before (with \
         bar.warp.sync first, those of the whole warp).",
        "PTX ISA 8.9.5, 9.7.13.4",
    ),
    rule(
        "proxy-fence-of-other-memory",
        "Stores to shared memory and fence.proxy.async.global; or to global memory and fence.proxy.async.shared::cta.",
        "The asynchronous proxy reads the bytes.",
        "Nothing: the suffix names the memory that is covered. Without one, all is.",
        "PTX ISA 9.7.13.4",
    ),
    rule(
        "proxy-fence-before-overwrite",
        "Accesses through the generic proxy, fence.proxy.async, synchronisation.",
        "The asynchronous proxy overwrites the bytes.",
        "The accesses come before the overwrite. A missing fence is a note, a missing synchronisation a finding.",
        "PTX ISA 8.6, 8.9.5; assumption generic-read-then-asynchronous-write",
    ),
    rule(
        "proxy-fence-and-relaxed",
        "A load of shared memory, fence.proxy.async, then barrier.cluster.arrive.relaxed or a relaxed arrival at an mbarrier.",
        "Behind the wait, the asynchronous proxy overwrites the bytes.",
        "The load comes before the overwrite. Of stores in front of the fence, nothing is told.",
        "PTX ISA, clusterlaunchcontrol.try_cancel, example",
    ),
    rule(
        "asynchronous-write",
        "An asynchronous write that counts on an mbarrier (a bulk load, a response of clusterlaunchcontrol).",
        "A thread waits for the phase that its bytes complete, or has synchronised with one that did.",
        "The write, and the reading of its source, come before what that thread does next, through either proxy: no proxy fence is needed.",
        "PTX ISA, cp.async.bulk; 9.7.13.15.5, 9.7.13.17",
    ),
    rule(
        "complete-tx",
        "A thread stores and then issues a bulk load.",
        "Another one waits for the phase that the load's bytes complete.",
        "Nothing of the stores: the bytes speak for the copy only. An arrival behind the stores would tell of them.",
        "PTX ISA 8.9.5, cp.async.bulk",
    ),
    rule(
        "bulk-group-read",
        "A bulk store, and cp.async.bulk.commit_group by the same thread.",
        "The same thread executes cp.async.bulk.wait_group.read for the group.",
        "The reading of shared memory, and of the tensor map, comes before what the thread does next, and before what it tells others. A copy \
         that is in no group is not waited for.",
        "PTX ISA, cp.async.bulk.wait_group",
    ),
    rule(
        "bulk-group",
        "A bulk store or reduction, and cp.async.bulk.commit_group by the same thread.",
        "The same thread executes cp.async.bulk.wait_group for the group.",
        "The writes come before what the thread does next, and before what it tells others, through either proxy.",
        "PTX ISA, cp.async.bulk.wait_group",
    ),
    rule(
        "bulk-group-read-is-no-write",
        "A bulk store.",
        "cp.async.bulk.wait_group.read, then an access of what the store writes.",
        "Nothing of the writes: with .read, the wait is for the reading of the source.",
        "PTX ISA, cp.async.bulk.wait_group",
    ),
    rule(
        "bulk-group-of-another-thread",
        "A thread issues a bulk store and commits its group.",
        "Another thread executes cp.async.bulk.wait_group.",
        "Nothing: each thread has groups of its own.",
        "PTX ISA, cp.async.bulk.wait_group",
    ),
    rule(
        "tensor-map",
        "A thread writes into a tensor map in global memory; a release fence for tensor maps follows (tensormap.cp_fenceproxy, which \
         writes it as well, or fence.proxy.tensormap::generic.release).",
        "Behind synchronisation, a thread executes fence.proxy.tensormap::generic.acquire of the map's address, and its CTA then issues a \
         copy with the map.",
        "The writes come before the copy reads the map. Both fences also order what a fence of their scope does. Maps in parameters, and those \
         that the host has written before the launch, need none.",
        "PTX ISA 9.7.13.4, tensormap.cp_fenceproxy",
    ),
    rule(
        "tensor-map-read",
        "A load with a tensor map in global memory.",
        "A wait for the mbarrier phase that the load's bytes complete, or for a bulk group that a thread of its warp has committed since, or \
         for what comes behind such a wait in time (a commit); then a change of the map.",
        "The reading of the map comes before the change. Reading it is a part of the copy, which runs by itself. An H200 was never seen to read it late.",
        "PTX ISA, asynchronous copy operations, cp.async.bulk.wait_group; assumption maps-of-loads-by-groups",
    ),
    rule(
        "tensor-map-of-another-cta",
        "A CTA acquires a tensor map that the kernel has changed, and tells another one.",
        "The other CTA issues a copy with the map.",
        "Nothing for the copy: the acquire fence is for the CTA that executes it.",
        "PTX ISA 9.7.13.4",
    ),
    rule(
        "tensor-map-fence-too-narrow",
        "A thread writes into a tensor map; its release fence, or the acquire fence of the copy's CTA, is at .cta scope, or one of the \
         two at .cluster scope.",
        "A copy of another CTA, or in the second case of another cluster, uses the map.",
        "Nothing for the copy: a fence counts between threads that its scope includes.",
        "PTX ISA 8.5, 9.7.13.4",
    ),
    rule(
        "tensor-map-is-another-proxy",
        "A thread writes into a tensor map and executes fence.proxy.async or a fence of the generic proxy.",
        "Behind synchronisation, a copy uses the map.",
        "Nothing for the copy's reading of the map, which goes through the tensormap proxy.",
        "PTX ISA 8.6, 9.7.13.4",
    ),
    rule(
        "cp-async-group",
        "cp.async, then cp.async.wait_group or wait_all by the same thread; for others, synchronisation behind that.",
        "An access of the bytes.",
        "The copy comes before it, as an access through the generic proxy: the asynchronous proxy needs a fence as well.",
        "PTX ISA 9.7.9.25.3, cp.async.wait_group",
    ),
    rule(
        "copies-of-one-thread",
        "A thread issues cp.async, a bulk store or st.async.",
        "The same thread issues another one to the same bytes, in the same group or phase or in another one, and has not waited for the first.",
        "Nothing: asynchronous copies run by themselves, and either may write last.",
        "PTX ISA, cp.async; cp.async.bulk; 8.9.1.1",
    ),
    rule(
        "cp-async-arrive",
        "cp.async, then cp.async.mbarrier.arrive by the same thread.",
        "A wait for the phase that the arrival counts for.",
        "The copies come before what the waiting thread does next, as accesses through the generic proxy. That an MMA reads what cp.async wrote without a fence.proxy.async is a note: kernels of CUTLASS do.",
        "PTX ISA, cp.async.mbarrier.arrive",
    ),
    rule(
        "cp-async-arrive-tells-of-copies-only",
        "A thread stores, and executes cp.async.mbarrier.arrive.",
        "A wait for the phase that the arrival counts for.",
        "Nothing of the stores: it tells of the copies alone.",
        "PTX ISA, cp.async.mbarrier.arrive",
    ),
    rule(
        "through-a-reader",
        "A write, and a read of the same bytes by somebody who had waited for it, also an engine.",
        "Who has waited for the reader (for the commit of an MMA, say) overwrites the bytes, or frees the columns.",
        "The write comes before that, too. Of shared memory and of tensor memory.",
        "PTX ISA 8.9.5",
    ),
    rule(
        "commit",
        "tcgen05.mma or tcgen05.cp, then tcgen05.commit by the same thread.",
        "A wait for the mbarrier phase that the commit's arrival completes.",
        "The MMAs and copies of the thread before the commit (their reads of shared memory, their accesses of tensor memory) come before what the \
         waiting threads do next, through either proxy. It includes tcgen05.fence::before_thread_sync.",
        "PTX ISA 9.7.16.6.2.1.1, 9.7.16.6.4.4",
    ),
    rule(
        "commit-tells-of-mmas-only",
        "A thread stores, issues tcgen05.mma and executes tcgen05.commit.",
        "Another one waits for the mbarrier phase that the commit's arrival completes.",
        "Nothing of the stores: the arrival is the tensor core's, and speaks for its work only.",
        "PTX ISA 9.7.16.6.2.1.1, 8.9.5",
    ),
    rule(
        "mma-after-mma",
        "tcgen05.mma.",
        "tcgen05.mma of the same kind, with the same accumulator and shape, by the same thread, or by one that has learnt of the first one's issue \
         (tcgen05.fence::before_thread_sync, synchronisation, ::after_thread_sync).",
        "The second adds to what the first left: they run as a pipeline. MMAs of two kinds, and of accumulators that overlap, do not.",
        "PTX ISA 9.7.16.6.1, 9.7.16.6.2, 9.7.16.6.4.3",
    ),
    rule(
        "mma-after-copy",
        "tcgen05.cp.",
        "tcgen05.mma that works with what the copy brings, by the same thread, or by one that has learnt of the copy's issue \
         (tcgen05.fence::before_thread_sync, synchronisation, ::after_thread_sync).",
        "The copy comes before the MMA: they run as a pipeline, and nobody waits for a commit in between.",
        "PTX ISA 9.7.16.6.2, 9.7.16.6.4.3",
    ),
    rule(
        "copy-after-mma",
        "tcgen05.mma reads scale factors, or A, in tensor memory.",
        "tcgen05.cp by the same thread to the same columns.",
        "The MMA has read them before. The ISA does not list this pair; kernels of libraries copy the scale factors of each stage over those of \
         the one before without a wait.",
        "PTX ISA 9.7.16.6.2; assumption copy-behind-mma",
    ),
    rule(
        "copy-over-an-accumulator",
        "tcgen05.mma.",
        "tcgen05.cp, later in the same thread, to columns of the accumulator.",
        "Nothing: only the other way round the two run as a pipeline. It takes a commit and a wait.",
        "PTX ISA 9.7.16.6.1, 9.7.16.6.2",
    ),
    rule(
        "load-after-copy",
        "tcgen05.cp.",
        "tcgen05.ld (or st) of the columns, later in the same thread.",
        "Nothing: program order does not order the two. It takes a commit and a wait.",
        "PTX ISA 9.7.16.6.1, 9.7.16.6.2",
    ),
    rule(
        "load-after-mma",
        "tcgen05.mma.",
        "tcgen05.ld (or st) of the accumulator, later in the same thread.",
        "Nothing: program order does not order the two. It takes a commit and a wait.",
        "PTX ISA 9.7.16.6.1, 9.7.16.6.4.4",
    ),
    rule(
        "wait-ld",
        "tcgen05.ld, then tcgen05.wait::ld by the same warp; for others, synchronisation behind that.",
        "Something overwrites or frees the columns.",
        "The load comes before it. Use of the loaded registers waits for their values and orders nothing.",
        "PTX ISA 9.7.16.8.5, 9.7.16.6.4.5",
    ),
    rule(
        "wait-st",
        "tcgen05.st, then tcgen05.wait::st by the same warp; for others, synchronisation behind that.",
        "tcgen05.ld or tcgen05.mma of the columns.",
        "The store comes before it.",
        "PTX ISA 9.7.16.8.5, 9.7.16.6.1",
    ),
    rule(
        "tensor-fences",
        "tcgen05.ld or st, its wait, tcgen05.fence::before_thread_sync, synchronisation.",
        "tcgen05.fence::after_thread_sync, then an access of the columns that another warp issues.",
        "The first comes before the second. Without synchronisation that is a finding, without one of the fences a note: they only \
         restrain the compiler. No proxy fence is needed in tensor memory.",
        "PTX ISA 9.7.16.6.3, 9.7.16.11.1",
    ),
    rule(
        "wgmma-group",
        "wgmma.mma_async, wgmma.commit_group.",
        "wgmma.wait_group for the group, by a warp of the warpgroup; for others, synchronisation behind that.",
        "The reads of shared memory by all four warps, and the registers of the warp's own part, come before what the warp does next.",
        "PTX ISA, wgmma.wait_group; assumption wgmma-wait-covers-the-warpgroup",
    ),
    rule(
        "wgmma-fence",
        "A warp accesses registers; and wgmma.fence.",
        "wgmma.mma_async with these registers as D or A.",
        "The access of the registers comes before the MMA's. The first wgmma needs a fence in any case; of memory it orders nothing. Behind a \
         later access of registers a missing fence is a note: compilers move registers there, and ptxas adds the fence.",
        "PTX ISA, wgmma.fence; ptxas 13",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_every_row_is_complete() {
        let names: BTreeSet<&str> = RULES.iter().map(|rule| rule.name).collect();
        assert_eq!(names.len(), RULES.len());
        for rule in RULES {
            let kebab = rule.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
            assert!(kebab, "{}", rule.name);
            for text in [rule.first, rule.then, rule.orders] {
                assert!(text.ends_with('.') && !text.contains('|') && !text.contains("  "), "{}: {text:?}", rule.name);
            }
            assert!(rule.source.starts_with("PTX ISA") || rule.source.starts_with("measured"), "{}", rule.name);
        }
    }

    /// A source names assumptions that there are.
    #[test]
    fn assumptions_exist() {
        let known = |name: &str| crate::ASSUMPTIONS.iter().any(|assumption| assumption.name == name);
        let named: Vec<&str> = RULES.iter().filter_map(|rule| Some(rule.source.split_once("assumption ")?.1)).collect();
        assert!(named.len() > 2 && named.iter().all(|name| known(name)), "{named:?}");
    }
}
