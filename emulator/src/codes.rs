//! Every code that a diagnostic can have.

/// Every [`crate::Diagnostic::code`] with one line on what it means, in alphabetical order.
pub const CODES: &[(&str, &str)] = &[
    ("accumulator-overwritten", "an MMA writes tensor memory that a tcgen05.ld may still be reading"),
    ("aligned-lanes-missing", "some lanes of a warp did not reach an instruction that all must execute together"),
    (
        "box-mismatch",
        "an operand has other rows or columns than the box that was loaded there, or those of a product change places on their way to memory (a note if it leaves rows out, or takes \
         eight rows apart, or if all change places)",
    ),
    ("branch-table", "an index beyond the end of a branch table"),
    ("bulk-shared-address", "a copy's shared address that is misaligned or out of bounds"),
    (
        "bulk-size",
        "a plain bulk copy of a size that is no multiple of 16, a fill of one that is no multiple of 8, or a cp.async that takes more bytes than it copies",
    ),
    ("bulk-store-outlives-thread", "a thread ends before its bulk stores have read shared memory (a note)"),
    ("can-hang", "another interleaving of the launch waits for ever"),
    ("cancel-after-refusal", "a CTA that has seen a request of launch control refused makes another one"),
    ("cluster-barrier", "barrier.cluster.arrive and wait that do not alternate"),
    ("collector-not-filled", "an MMA takes A from the collector buffer, which does not hold it"),
    ("copy-barrier", "a copy's mbarrier in a CTA that does not get the data"),
    (
        "cta-not-started",
        "another CTA of the cluster is needed before it is known to have started (a note of tcgen05.alloc)",
    ),
    ("depth-mismatch", "an MMA multiplies other depths of A than of B"),
    (
        "early-arrival",
        "a phase of an mbarrier is completed by an arrival that does not wait for the MMA, or may be by one that is meant for a later phase (a note)",
    ),
    ("hang", "nothing can go on: a wait is never satisfied"),
    ("input-not-loaded", "a part of a tensor from which a launch loads boxes, that no box has (a note)"),
    ("instruction-budget", "the run was ended after the allowed number of instructions"),
    (
        "instruction-descriptor",
        "the instruction descriptor of an MMA is not valid, says less than the tiles have and what it leaves out is read, or an operand lies along the other side than it says (a note \
         if only bit 12 is set)",
    ),
    (
        "issued-by-many-lanes",
        "an instruction that one thread issues was executed by several lanes, or an MMA by several warps (a note of a copy that is the same for all, unless more bytes come of it than are announced)",
    ),
    ("lanes-missing", "lanes of the member mask did not reach a warp-wide instruction"),
    ("launch", "the launch does not fit the kernel or the GPU"),
    (
        "load-outlives-cta",
        "the CTA ends although nobody waited for a copy into its shared memory (a note of a copy that it issued itself)",
    ),
    (
        "loaded-never-read",
        "a box that a tensor copy loads, or a part of it, of rows that threads copy and an MMA reads, or of columns of tensor memory brought for MMAs, is never read (a note, unless \
         it is the same depths of A and of B, of all their boxes)",
    ),
    (
        "matrix-descriptor",
        "a shared-memory descriptor is not valid, or holds an address that is not divided by 16 (a note if only its constant is missing)",
    ),
    ("mbarrier-address", "an mbarrier operation on something that is no mbarrier's address"),
    ("mbarrier-bytes", "more bytes pending than an mbarrier can count"),
    ("mbarrier-count", "an mbarrier initialised for no or too many arrivals"),
    (
        "mbarrier-init-unordered",
        "an mbarrier is used without being ordered after its initialisation (a note behind relaxed synchronisation)",
    ),
    (
        "mbarrier-invalidated-early",
        "an mbarrier is invalidated although a copy or a commit may still complete on it (a note of a commit whose MMAs are known to be complete), or \
         another warp may still use it",
    ),
    ("mbarrier-not-initialised", "an mbarrier is used that nothing has initialised"),
    ("mbarrier-overflow", "more arrivals in a phase than the mbarrier was initialised for"),
    ("mbarrier-overwritten", "a plain store over a live mbarrier, or a plain load of it"),
    (
        "mbarrier-parity",
        "a parity that is neither 0 nor 1, or differs between lanes, or a state of another mbarrier or of a phase before the last one",
    ),
    ("mbarrier-reinitialised", "mbarrier.init on a live mbarrier, or by several lanes"),
    ("mbarrier-split", "a phase is complete before all lanes of a warp have arrived that do so together"),
    ("misaligned-address", "an access that is not aligned to the bytes it moves"),
    ("missing-acquire", "accesses in order through nothing but a relaxed wait for an mbarrier (a note)"),
    (
        "missing-proxy-fence",
        "generic stores read by the asynchronous proxy without fence.proxy.async (a note of cp.async that an MMA reads)",
    ),
    (
        "missing-proxy-fence-before-overwrite",
        "generic accesses followed by an asynchronous overwrite without a proxy fence (a note)",
    ),
    ("missing-tensor-fence", "synchronised accesses of tensor memory without tcgen05.fence (a note)"),
    (
        "missing-wait-ld",
        "a tcgen05.ld that nothing waits for before its columns or registers are used otherwise (a note if its registers were used before)",
    ),
    (
        "missing-warp-sync",
        "a lane loads what another one of its warp has stored, without bar.warp.sync between (a note)",
    ),
    (
        "missing-wgmma-fence",
        "a first wgmma without a wgmma.fence before it, or one whose registers were accessed since the last fence (a note of its accumulator)",
    ),
    ("mma-not-awaited", "the result of an MMA is read without waiting for its completion"),
    ("mma-not-committed", "the result of an MMA is read although no tcgen05.commit follows it"),
    ("mma-outlives-cta", "the CTA ends although nobody waited for an MMA"),
    ("multicast-mask", "a mask that names no CTA, or one that the cluster has not"),
    ("named-barrier", "a CTA barrier used with a wrong number or count"),
    ("non-coherent-load", "ld.global.nc of bytes that the kernel writes"),
    ("not-modelled", "something the emulator does not model"),
    ("operand-not-ready", "an MMA may read an operand before it was stored"),
    (
        "operand-overlap",
        "elements of an MMA's operand lie in the same bytes (a note if its rows are repeated, or are windows; also by the two CTAs of a pair, if somebody loads the others), A and B do, scale factors of A and of B do, or an operand lies in its accumulator",
    ),
    ("operand-overwritten", "an operand is overwritten while an MMA may still be reading it"),
    ("out-of-bounds", "an access outside of every allocation"),
    (
        "output-not-written",
        "a buffer that the launch might write, or a part of one that it writes, is never written (a note)",
    ),
    ("output-written-twice", "bytes of a buffer that the launch does not read are written twice (a note)"),
    ("pair-freed-early", "a CTA of a pair frees tensor memory that its peer may not have got yet"),
    ("pair-leader", "an instruction of a CTA pair where there is no pair, or in its odd CTA"),
    ("phase-completed-early", "a phase of an mbarrier completes before all bytes of its copies are there"),
    ("phase-overtaken", "a phase of an mbarrier may complete before a waiter has seen the one before"),
    ("print", "a kernel prints a text whose conversions are none, or lack their arguments"),
    (
        "product-added-twice",
        "an MMA adds the product of the same slices to the same accumulator again, or two parts of a product have the same depths (notes)",
    ),
    (
        "product-never-read",
        "columns of an accumulator that nobody reads in the whole launch (a note, unless others are read or stored in their place)",
    ),
    ("product-overwritten", "an MMA overwrites a product that nobody has read"),
    ("ptx-semantics", "operands or names that do not fit the instruction"),
    ("ptx-syntax", "text that is not PTX, or names an instruction, a type or a modifier that PTX does not have"),
    ("ptx-target", "a `.target` or `.version` that does not exist, or that lacks an instruction of the module"),
    ("race-global", "two unordered accesses of global memory, one of them a write"),
    ("race-shared", "two unordered accesses of shared memory, one of them a write"),
    ("race-tensor", "two unordered accesses of tensor memory, one of them a write"),
    (
        "register-count",
        "a setmaxnreg that warps of the warpgroup leave out, or whose number does not lie on its side of what the warp has (a note if they give away other numbers)",
    ),
    (
        "remote-use-outlives-cta",
        "a CTA may end before another one of its cluster has used its shared memory, or its own copy to it has read that (a note, and of \
         arrivals behind which others have parted)",
    ),
    ("same-value-written-twice", "two warps store the same value, to whatever memory, without being ordered (a note)"),
    ("scale-factors-apart", "the quarters of tensor memory's lanes do not hold the same scale factors"),
    ("setmaxnreg-unordered", "a setmaxnreg although nothing orders it behind the warpgroup's one before (a note)"),
    (
        "setmaxnreg-without-effect",
        "a setmaxnreg of a kernel that does not say how many registers a thread begins with (a note)",
    ),
    (
        "swizzle-mismatch",
        "a tile is read with another swizzle than it was loaded or stored with (a note if its chunks may be meant to lie otherwise)",
    ),
    ("tensor-address", "an address in tensor memory outside of the allocation or of the warp's reach"),
    (
        "tensor-columns",
        "a number of columns that tcgen05.alloc does not take (a note if it is more than that of the allocation before)",
    ),
    ("tensor-coordinate", "a box that does not begin on 16 bytes, or is stored from a negative coordinate on"),
    ("tensor-free-mismatch", "tcgen05.dealloc of something that tcgen05.alloc did not give"),
    ("tensor-freed-in-use", "tensor memory freed while it may still be used"),
    ("tensor-lane-quarter", "a warp addresses lanes of tensor memory that it cannot reach"),
    ("tensor-map", "a tensor map that is none, or does not fit its copy"),
    ("tensor-map-not-acquired", "a tensor map that the kernel changed, used without the tensormap proxy's fences"),
    ("tensor-map-overlap", "a tensor map whose strides let elements lie in the same bytes (a note)"),
    ("tensor-memory-leak", "tensor memory that is never freed"),
    ("tensor-relinquished", "tcgen05.alloc after relinquish_alloc_permit"),
    ("trap", "the kernel executed trap"),
    (
        "type-mismatch",
        "an MMA takes its operands for other types than they are, or its accumulator is read as another one",
    ),
    ("undefined-operand", "an operand that decides what happens has no defined value"),
    ("undefined-value-stored", "a value that was never computed reaches global memory"),
    ("wait-result-unread", "a wait for an mbarrier whose result nothing reads (a note where nothing races behind it)"),
    ("wgmma-not-awaited", "a register of a wgmma is touched before a wgmma.wait_group that covers it"),
    ("wgmma-outlives-thread", "a thread ends before it has waited for its wgmmas"),
    ("wgmma-warpgroup", "the warps of a warpgroup do not execute the same wgmma"),
    ("wrong-phase", "a wait passed on an earlier phase than the one it was meant for"),
];
