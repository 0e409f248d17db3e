//! What no public source settles, and what the emulator assumes instead. `emulate --assumptions` prints this list.

/// Something that the emulator takes to be so without being sure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assumption {
    /// A stable name.
    pub name: &'static str,
    /// What is assumed.
    pub assumed: &'static str,
    /// Why it is not certain.
    pub unsure: &'static str,
    /// What would settle it.
    pub settled_by: &'static str,
}

const fn assume(
    name: &'static str,
    assumed: &'static str,
    unsure: &'static str,
    settled_by: &'static str,
) -> Assumption {
    Assumption { name, assumed, unsure, settled_by }
}

/// Every assumption, in alphabetical order.
pub const ASSUMPTIONS: &[Assumption] = &[
    assume(
        "a-in-the-lanes-of-d",
        "Where parts of the columns of D lie in lanes of their own (M = 128 of a pair; with .ws, M = 64 and M = 32), each part is computed with the rows of A that lie in the same lanes of tensor memory.",
        "The ISA shows where A lies for all rows, not for each part. CUTLASS writes A once for each part of a pair (TmemAllocMode::Duplicated); FlashMLA's sparse attention for 64 heads gives the two parts the two halves of the depths, and comes out right so.",
        "An MMA with .ws, M = 64 and other rows of A in lanes 64 to 127 than in 0 to 63, on the device.",
    ),
    assume(
        "allocation-permit",
        "A CTA that has allocated tensor memory keeps the right to allocate until it relinquishes it or ends; so long other CTAs of its SM wait in tcgen05.alloc, even if columns are free.",
        "The ISA says that the right is given up, not whom that concerns. Kernels on a B300 became 1.4 to 1.8 times as fast when they gave it up at once.",
        "Two CTAs of an SM that allocate 128 columns each and stay for long, with and without relinquish_alloc_permit; clock the second allocation.",
    ),
    assume(
        "base-offset-without-swizzle",
        "The base offset of a matrix descriptor of tcgen05 without swizzle does not count.",
        "The ISA says so of wgmma's descriptor; of tcgen05's it says only that the offset tells where the swizzle's pattern begins. Triton 3.9 writes one into descriptors of scale factors, which have no swizzle, by the formula for patterns of 1024 bytes.",
        "Copies of numbered scale factors by tcgen05.cp without swizzle, with each base offset.",
    ),
    assume(
        "borrow-as-carry",
        "The condition code is a carry: sub.cc and subc write 1 where they do not borrow, and subc takes 1 less where it is 0. So a subc behind an add.cc takes a carry for no borrow, and an addc behind a sub.cc adds 1 where that has not borrowed.",
        "An H200 does so (1 December 2026: of 0xffffffff + 2, then 9 - 3, it makes 6, of 1 + 2 then 5; of 1 - 2, then 9 + 3, it makes 12, of 5 - 3 then 13): ptxas writes one carry for both. The formulas of the ISA, d = a - (b + CC.CF) with the borrow-out in CC.CF, say the opposite where the two are mixed, and the same where they are not.",
        "`add.cc.u32` with and without a carry, then `subc.u32`, and `sub.cc.u32` with and without a borrow, then `addc.u32`, of values that the assembler does not know, on the device.",
    ),
    assume(
        "collector-holds-a",
        "An MMA with .collector::a::use or ::lastuse multiplies the A that it names, as it lies in memory then; .collector::a::fill and ::discard change nothing that is computed. So do those of B, .collector::b0 to ::b3, of an MMA with .ws. The buffers are the CTA's: whichever of its threads issues an MMA fills or empties them. Who uses an operand that the buffer does not hold gets a finding; of one that was written anew since it was filled in, nothing is said.",
        "The ISA asks for a fill that is still valid, and leaves it to the tensor core whether it takes A from the buffer. It does not say what is computed otherwise, nor how long a fill is valid when other threads' MMAs come between.",
        "An MMA with ::use that names another A than the ::fill before it, on the device.",
    ),
    assume(
        "commit-after-earlier-commit",
        "A tcgen05.commit with nothing new behind it arrives when all that earlier commits cover is complete, and promptly if that is done.",
        "The ISA says what a commit tracks; it does not say how a second one behaves that has nothing of its own to track.",
        "Two commits in a row to two mbarriers behind a long MMA; clock both arrivals.",
    ),
    assume(
        "commits-arrive-in-order",
        "The commits of one thread arrive in a CTA in the order in which they were issued: who has waited for one of them there knows that those before it have arrived at their mbarriers, too. A commit with .multicast::cluster arrives at all its CTAs before anything that follows from its arrival at one of them.",
        "The ISA says what completes before a commit arrives, not in which order arrivals are made. Usual kernels never wait for the last commits to their ring, and end after a later one. In clusters of 2 × 2 CTAs that share A by rows and B by columns (CUTLASS, Triton), only the arrivals of a commit at other CTAs tell a CTA that the stage of a third one has had all its arrivals.",
        "Many commits in a row to two mbarriers of another CTA; wait for the last, and look at once whether the first has arrived. The same with one commit to mbarriers of two other CTAs, one of which tells the other.",
    ),
    assume(
        "copy-behind-mma",
        "A tcgen05.cp writes scale factors, or A, in tensor memory only when the MMAs that its thread issued before have read them; copies of one thread write in the order of their issue.",
        "The ISA lists tcgen05.cp before tcgen05.mma as a pipeline, not the other way round. CUTLASS and DeepGEMM copy the scale factors of each stage over those of the stage before, without waiting for its MMAs.",
        "A long block-scaled MMA and, right behind it, a copy of other scale factors to the same columns, many times.",
    ),
    assume(
        "dependent-launch-alone",
        "A launch runs alone. What grids before it wrote is there from the beginning, for loads of threads and of TMA alike, and no other grid begins under it: griddepcontrol.wait goes on at once, griddepcontrol.launch_dependents does nothing, and neither takes time. Of a wait that lacks, or stands behind the first use of what it waits for, something is said where the launch names the buffers that the grid before writes (prerequisite_writes).",
        "Which grids depend on each other the runtime decides, not the text. The ISA says that a wait makes the memory operations of prerequisite grids visible to the grid, and not in which proxies: libraries load by TMA right behind it, without a proxy fence. Of a wait in a grid without prerequisites it says nothing; kernels that are launched either way have one. It gives no times.",
        "A grid that stores late, and a dependent one that loads the same bytes behind its wait, by TMA and by threads, many times; the same kernel launched without the attribute; clocks around the wait in both.",
    ),
    assume(
        "descriptor-without-constant",
        "A matrix descriptor of tcgen05 with 0b000 in bits 46–48 is read as one with 0b001; it gets a note.",
        "The ISA gives the constant 0b001, and does not say what another value does. Triton wrote 0b000 up to release 3.5 (2025), and Mosaic GPU does so in JAX 0.10.2; kernels of both run on B200s.",
        "An MMA with each of the eight values, on the device.",
    ),
    assume(
        "f16-accumulator-upper-half",
        "With an FP16 accumulator, the upper half of each 32-bit cell of tensor memory becomes zero.",
        "The ISA does not say what the unused half holds.",
        "Fill tensor memory with a pattern, run one MMA with an FP16 accumulator, read the cells as 32 bits.",
    ),
    assume(
        "fp32-accumulation",
        "Numerics::Fast adds D and the 16 products of an MMA in FP32, in an order that is up to the CPU; Numerics::Exact follows the model of MMA-Sim, cut off 25 bits below the largest exponent, added without error, cut off again, but for products that are zero: they have exponent -126.",
        "The ISA says neither in which order nor to how many bits. Fast differs from hardware in the last bits. Exact was compared with a B200 bit for bit by its authors, for dense MMAs of one CTA with both operands in shared memory. That a zero cuts nothing off, whatever it is multiplied by, was seen on an H200 (silicon/wgmma_numerics), not on Blackwell.",
        "MMAs with random and adversarial exponents on a B200, against Exact; with zeros times large numbers beside a subnormal D.",
    ),
    assume(
        "generic-read-then-asynchronous-write",
        "A plain load followed by an asynchronous overwrite of the same bytes needs a proxy fence. Without one there is a note, not a finding.",
        "The memory model asks for it; no machine code was seen that fails when only a barrier lies between, while bugs of this kind were reported.",
        "A kernel that reads a tile and reloads it by TMA after a barrier, without a fence, for many hours on the device.",
    ),
    assume(
        "ignored-bytes-undefined",
        "Bytes at the ends of a source that a bulk copy with .ignore_oob ignores count towards the mbarrier, and hold no value in shared memory.",
        "The copy says of how many bytes it is, and CUB announces all of them; what comes in place of the ignored ones is not said. CUB's scan reads none of them.",
        "Copies that ignore 0 to 15 bytes at either end, within an allocation and at its end, to shared memory of a known pattern, on the device.",
    ),
    assume(
        "k-major-with-larger-atoms",
        "A K-major operand with swizzle code 1 (128 bytes, in atoms of 32) has rows of 128 bytes of which pairs of 16-byte chunks change places by bits 7 and 8 of the address.",
        "One table of the ISA allows this swizzle for K-major operands of any size, another has no such atom; libraries use it for MN-major TF32 only.",
        "One MMA with K-major operands of that swizzle on the device.",
    ),
    assume(
        "kinds-numerics",
        "Numerics::Exact computes kind::tf32, f8f6f4 and mxf8f6f4 as it does kind::f16, with 8 or 32 products and a scale factor's exponent added to each product that is not zero. Of mxf4 and mxf4nvf4, 16 products each are added without error, multiplied with both scale factors, given the exponent of these two, and cut off 35 bits below the largest. The low 13 bits of TF32 do not count; what that makes of a NaN is the assumption mma-nan-in-cut-bits. With an infinite D, a block-scaled result is infinite.",
        "That is MMA-Sim's model, compared with a B200 for dense MMAs of one CTA, but for E2M3 and E3M2, which it does not have and which are taken to be as the other formats of their kinds. What becomes of zeros, of infinite accumulators of 4-bit kinds and of a NaN whose upper bits are those of an infinity is not said there. The ISA is silent on all of it, but for integers, whose sums are exact.",
        "MMAs of each kind with random and adversarial exponents on a B200, against Exact.",
    ),
    assume(
        "lanes-in-step",
        "What one lane of a warp did comes before what other lanes of the warp do later in the run: an arrival by one lane covers the accesses of the others, and a missing bar.warp.sync between them is found only in shared memory, where lanes that have parted race, and is a note where they move together. Waits on both sides of a branch, of lanes that have not met since, for one phase of an mbarrier count as one.",
        "In PTX it is threads that synchronise, and a warp's lanes may run apart; compilers keep converged lanes in step, and production kernels rely on it. XLA's Mosaic GPU lets one lane wait, issue MMAs and commit, and the others wait beside it.",
        "Nothing: the ISA asks for bar.warp.sync.",
    ),
    assume(
        "launch-control-response",
        "The 16 bytes of a clusterlaunchcontrol response are opaque: only query_cancel can read them.",
        "Their layout is not public. A kernel that takes them apart itself reads something else here.",
        "A dump of responses on the device, if anybody needs them.",
    ),
    assume(
        "maps-of-loads-by-groups",
        "A thread that executes cp.async.bulk.commit_group and then cp.async.bulk.wait_group.read 0 knows that the loads its warp has issued before have read their tensor maps.",
        "The ISA lets a group hold only copies that complete by groups, not loads that complete on an mbarrier. CUTLASS and CuTe DSL execute the two before they change the maps of loads, and wait for nothing else. Twelve loads on an H200 brought what the map led to when they were issued, with the two and also without (emulator/tests/silicon, known_bad).",
        "The same on a B200, with loads whose map is no longer cached when they read it.",
    ),
    assume(
        "mma-a-of-a-pair-with-64-rows",
        "With M = 128, a CTA pair and A in tensor memory, the rows of A are read from lanes 0 to 63.",
        "Libraries keep a second copy in lanes 64 to 127, which hardware may need for the right half of the columns; the emulator does not look at it.",
        "One such MMA on the device, with other values in the second copy.",
    ),
    assume(
        "mma-nan-in-cut-bits",
        "An element of kind::tf32 that is NaN only by its low 13 bits counts as an infinity.",
        "The ISA says that these bits are ignored, and not what that makes of a NaN. An H200 makes an infinity of it, in wgmma and mma.sync (silicon/wgmma_tf32/special, warp_mma/m16n8k8_tf32_f32); a B200 was not measured.",
        "One MMA with such an element on the device.",
    ),
    assume(
        "mma-other-forms-numerics",
        "Numerics::Exact holds with M = 64, A in tensor memory and negated operands as it does with M = 128 and both operands in shared memory.",
        "No published comparison covers these forms one by one. On an H200, wgmma with A in registers and with negated operands gave the bits of Exact (silicon/wgmma/a_in_registers, negate).",
        "The same product in each form, compared bit for bit on the device.",
    ),
    assume(
        "mma-pair-numerics",
        "An MMA of a CTA pair gives the same bits as two MMAs of one CTA each.",
        "Published measurements of the arithmetic cover cta_group::1 only.",
        "The same product once with cta_group::1 and once with cta_group::2, compared bit for bit on the device.",
    ),
    assume(
        "n-multiple-of-8",
        "With M = 128, N of an MMA may be any multiple of 8 (16 for a CTA pair), as the ISA's table says.",
        "Libraries refuse what is no multiple of 16, or of 32 for a CTA pair with A in tensor memory.",
        "MMAs with M = 128 and N = 8 and 24, and with N = 16 for a CTA pair, on the device.",
    ),
    assume(
        "packed-halves-distance",
        "In tcgen05.ld and st of shape 16x32bx2 with .pack::16b or .unpack::16b, the distance of the halves counts columns of 32 bits, as it does without packing.",
        "The ISA gives the operand's unit without saying whether packing changes it.",
        "Number all columns, load with a distance of 16 and .pack::16b, and see which columns come.",
    ),
    assume(
        "padded-box-bytes",
        "A load of padded elements of 4 or 6 bits counts the bytes that it takes from global memory on its mbarrier; the padding holds nothing defined afterwards.",
        "The ISA says that padding is not initialised, and not whether it counts. CUTLASS announces the packed bytes.",
        "One such load on the device, with an mbarrier that expects the one number or the other.",
    ),
    assume(
        "random-bits-of-narrow",
        "Of the random bits of `cvt.rs` to four numbers of 8, 6 or 4 bits, the number that goes to the lowest bits takes bits 0 to 7, the next one bits 8 to 15, and so on.",
        "The ISA shows it in figures. Authors of QuACK found it so on a B200 for FP8; on a B300 they found the bytes exchanged and those of every second number turned round, for FP8 and FP4. Either way each number is rounded up as often as it should be.",
        "`cvt.rs.satfinite.e2m1x4.f32` and the like of numbers in the middle of two, with each random bit set alone, on the device.",
    ),
    assume(
        "registers-by-liveness",
        "A thread takes as many registers as 32-bit values are alive at once in the PTX text, in steps of 8, at least 16 and at most what `.maxnreg` says. It decides how many CTAs share an SM, and so only times.",
        "The assembler decides: it keeps more values for speed, or spills some.",
        "The register counts that ptxas -v prints, for many kernels.",
    ),
    assume(
        "reserved-shared-memory",
        "The system keeps the first 1024 bytes of each CTA's shared window; the kernel's variables begin behind them.",
        "Measured on an H200 (silicon/address/static_base, dynamic_base_alone); for compute capability 10.0 only seen in disassembled kernels, and not promised anywhere.",
        "Print the address of the first shared variable, and %reserved_smem_offset_end, on a B200.",
    ),
    assume(
        "scale-factor-address",
        "The two highest bits of the address of scale factors do not count: the instruction descriptor says which byte of a cell the first one is.",
        "CUTLASS has that byte's number there as well as in the descriptor, and passes both. The ISA says nothing of these bits.",
        "A block-scaled MMA with other bits in the address than in the descriptor.",
    ),
    assume(
        "scale-factor-layout",
        "The scale factors of row r (or column r) lie in lane r mod 32 of each quarter of the lanes, in column r / 32 from the first on; of several, the first in the lowest byte.",
        "The ISA shows it in pictures and says that all quarters need a copy; the layout is the one that CUTLASS prepares.",
        "A block-scaled MMA on the device with scale factors that all differ.",
    ),
    assume(
        "scale-factors-by-halves",
        "Of a block-scaled MMA of two CTAs with M = 128, lanes 0 to 63 need the scale factors of the left half of B's columns and lanes 64 to 127 those of the right half, each counted from the first column of tensor memory on.",
        "The ISA says that scale factors are copied to all quarters of the lanes, and has no figure of this shape. An example of CuTe DSL (2cta_mma_blockscale_m128) copies those of 256 columns so, by tcgen05.cp.64x128b.warpx2::01_23, and compares D with the product.",
        "That example, on the device; and the same with the factors of all columns in all quarters.",
    ),
    assume(
        "scale-factors-of-a-pair",
        "Of a CTA pair, each CTA has the scale factors of its own rows of A, and of all columns of B.",
        "The ISA does not say how they are divided. CUTLASS copies all those of B to both CTAs.",
        "A block-scaled MMA of a pair on the device, with different scale factors of B in the two.",
    ),
    assume(
        "scale-input-d",
        "scale-input-d divides D without rounding before it is added: Exact lowers D's exponent and leaves its significand, Fast multiplies by a power of two.",
        "The ISA gives the factor; nobody has published what becomes of a D whose scaled value would be subnormal.",
        "MMAs of zero operands with a subnormal D, and with one that scaling makes subnormal, on the device.",
    ),
    assume(
        "scaled-conversions-clamp-last",
        "`cvt` to `.s2f6x2` divides by the scale factor, rounds, and makes −2 of what lies below −2; `cvt` to `.bf16x2` with `.satfinite` and a scale factor clamps the product.",
        "The ISA calls −2 the negative maximum of S2F6, and makes of what is larger than MAX_NORM that number with the sign, which by the letter is −1.984375. Of scale factors it says that inputs are converted and then multiplied, not which of the two is clamped.",
        "cvt.rn.satfinite.s2f6x2.f32 of −2 and −3, and cvt.rn.satfinite.scaled::n2::ue8m0.bf16x2.e4m3x2 of 448 with the factor 2^127, on the device.",
    ),
    assume(
        "sparsity-version-of-dense",
        "Bit 12 of the instruction descriptor of a dense MMA of kind::mxf4 or kind::mxf4nvf4 does not count; where it is set, there is a note.",
        "The ISA gives zero, and does not say what another value does. CuTe DSL 4.8 keeps a version of sparse MMAs there, writes 1 by default, and calls it irrelevant for SM100.",
        "A dense MMA of kind::mxf4nvf4 with the bit and without it, on the device.",
    ),
    assume(
        "sub-byte-containers",
        "FP6 and FP4 of kind::f8f6f4 and mxf8f6f4 lie in bits 0 to 5, and 2 to 5, of a container of 8 bits in tensor memory, and whatever the other bits hold does not count. In shared memory sixteen of them, the first in the lowest bits, stand before their padding, which does not count either.",
        "The ISA shows it in pictures, and does not say what becomes of the other bits.",
        "One MMA of each format with other bits set in containers and padding.",
    ),
    assume(
        "swizzle-with-larger-atoms",
        "The 128-byte swizzle with 32-byte atoms of a tensor map is an exclusive or of address bits 5 and 6 with bits 7 and 8; its variant also swaps the halves of 16 bytes in odd rows.",
        "Which rows swap their halves comes from a single source.",
        "One load for each swizzle mode of a box whose bytes number themselves.",
    ),
    assume(
        "tensor-allocation-first-fit",
        "tcgen05.alloc gives the lowest free columns at a multiple of their number; the first allocation of a CTA alone on its SM begins at column 0.",
        "Disassembly shows a search in a bitmap of 16 slots with 32 columns each. Where it begins to search, and the alignment, are not documented.",
        "Allocate and free in many orders on the device and record the columns.",
    ),
    assume(
        "tensor-copy-multicast",
        "tcgen05.cp.64x128b.warpx2::02_13 brings rows 0 to 31 to the lanes of warps 0 and 2, and rows 32 to 63 to those of 1 and 3; with ::01_23 to those of 0 and 1, and of 2 and 3. The four rows of 4x256b go to lanes 0, 32, 64 and 96. A tcgen05.cp begins at lane 0.",
        "The ISA says which warps form a pair and that each of a pair gets half of the data, which can be read in two ways; the one here is that of CUTLASS's layouts.",
        "One copy of each form on the device, and a dump of all lanes.",
    ),
    assume(
        "tensor-lane-field",
        "The lane that a tcgen05.ld or st names must lie in the quarter that its warp can reach; the first quarter, whose lane is that of the allocation, is a note in place of another one, and another one is a finding. Lanes from 128 to 255 count as those from 0 on, with a note.",
        "Hardware was seen to ignore the upper bits of the lane and to take the warp's own quarter, so that such a kernel works by chance (published GEMMs for pairs of CTAs count the lanes of the odd CTA from 128 on); builds for debugging fault.",
        "A load with another warp's lane, and one with a lane from 256 on, on the device, in builds with and without debugging.",
    ),
    assume(
        "tensor-map-object",
        "The 128 bytes that cuTensorMapEncodeTiled gives have the layout that was worked out from what the driver of CUDA 13 writes.",
        "NVIDIA does not document the layout. It matters only where a kernel gets a recorded object, or changes one itself. A driver for CUDA 13.0 on an H200 wrote the same for 220 maps, and for those of silicon/tensor_map; other drivers, and the swizzles of Blackwell, were not compared. The host code that CuTe DSL 4.8 compiles for sm_100a writes 2 for the mode of tiled maps, where those drivers write 0, and its kernels run on B200s: both are read as tiled.",
        "Compare with cuTensorMapEncodeTiled of each driver: needs a driver and no special GPU.",
    ),
    assume(
        "tma-as-on-hopper",
        "The TMA engine moves boxes as that of an H200 was seen to: rows narrower than the swizzle pattern lie a whole row of the pattern apart, element strides round up and leave out the innermost dimension, elements outside of the tensor count on the mbarrier, the NaN fill is 0x7ff7 in each 16 bits, and no store begins at a negative coordinate.",
        "Neither the ISA nor the driver's documentation says all of it. An H200 settled it for Hopper (silicon/swizzle, store, element_strides, out_of_bounds); a B200 was not measured.",
        "The same copies on a B200, with dumps of shared memory.",
    ),
    assume(
        "try-wait-early-false",
        "mbarrier.try_wait may return false before its time limit has passed; adversarial schedules do it.",
        "The ISA calls the wait potentially blocking and the limit system-dependent. Whether hardware ever returns early is not known.",
        "Count false results within short times over many waits on the device.",
    ),
    assume(
        "try-wait-time-limit",
        "A mbarrier.try_wait whose answer decides something else than whether it is asked again ends with false, a million cycles after it \
         began, if nothing else in its cluster can go on, a thousand times at most. One that is asked until it passes waits until it does; if it never does, that is a \
         hang. A suspendTimeHint changes nothing.",
        "The ISA leaves the time limit to the system, and lets a hint replace it.",
        "Clocks around one mbarrier.try_wait for a phase that is never completed, with hints and without.",
    ),
    assume(
        "ue4m3-top-bit",
        "Bit 7 of a scale factor in UE4M3 does not count: 0xb8 is 1, as 0x38 is, and 0xff is NaN.",
        "The format has 7 bits, held in a byte whose bit 7 is padded with zero. The ISA does not say what a tensor core makes of a 1 there.",
        "One MMA of kind::mxf4nvf4 with scale factors of both signs of E4M3 on the device.",
    ),
    assume(
        "ue8m0-of-negative-numbers",
        "cvt to ue8m0x2 drops the sign of its source and rounds the magnitude: -1.5 with .rp is the factor 2; what lies below 2^-127, zero too, is that factor.",
        "The ISA gives scale factors no sign, and does not say what becomes of a negative number. Only Blackwell has the conversion.",
        "The conversion of signed numbers with .rz and .rp on a B200.",
    ),
    assume(
        "unpacked-by-ldmatrix",
        "ldmatrix with .b8x16 puts each element into the low bits of its byte, and zeroes above them: of .b4x16_p64 bits 0 to 3, of .b6x16_p32 bits 0 to 5.",
        "The ISA says that a byte has 4 or 2 bits of padding then, and refers to tcgen05.cp for the rest, which puts 4 bits into bits 2 to 5. CuTe DSL takes the low four bits for the number in its attention with INT4 for sm_100a, and zeroes above them; CUTLASS and Triton shift what comes of FP4 to the left by two bits before an mma of kind::f8f6f4 for sm_120, and nothing of FP6.",
        "One ldmatrix of each kind from numbered elements on the device.",
    ),
    assume(
        "unpacked-upper-half",
        "tcgen05.st with .unpack::16b makes the upper half of each 32-bit cell zero.",
        "The ISA says where the two halves of a register go; it does not say what the rest of the cells holds.",
        "Fill tensor memory with a pattern, store with .unpack::16b, read the cells as 32 bits.",
    ),
    assume(
        "unused-tensor-lanes",
        "With M = 64 and one CTA, an MMA does not touch the 64 lanes that it has no rows for.",
        "The ISA shows which lanes hold rows; it does not say that the others keep what they held.",
        "Fill tensor memory with a pattern, run one MMA with M = 64, dump all lanes.",
    ),
    assume(
        "wgmma-groups-in-flight",
        "A warpgroup may have any number of wgmma groups under way, and wgmma.wait_group may leave any number.",
        "The ISA gives no limit, and ptxas takes any constant. Disassembly shows a counter of three bits, so that more groups than seven are probably waited for by the assembler's own choice.",
        "Commit ten groups of long MMAs without a wait, and clock the tenth commit.",
    ),
    assume(
        "wgmma-wait-covers-the-warpgroup",
        "A wgmma begins when all four warps of its warpgroup have come to it, and a warp that has waited for its group knows that the shared memory has been read for all four.",
        "The ISA says what a wait tells the threads that execute it, not what it tells of the other warps' parts. Public kernels let one thread of a warpgroup say for all that a stage is free: CUTLASS one thread for each CTA of the cluster, spread over the warps, ThunderKittens and fast.cu threads of one warp.",
        "Delay one warp of a warpgroup before a wgmma for long; see when the wait of the others ends.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    /// What the sources name as "assumption `x`", below a folder.
    fn named(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                named(&path, found);
                continue;
            }
            let text = fs::read_to_string(&path).expect("a text");
            let names = text.split("assumption `").skip(1).filter_map(|rest| Some(rest.split_once('`')?.0));
            let is_name = |name: &&str| name.len() > 1 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
            found.extend(names.filter(is_name).map(str::to_string));
        }
    }

    #[test]
    fn assumptions_that_the_sources_name_are_listed() {
        let mut found = Vec::new();
        named(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
        assert!(found.contains(&"dependent-launch-alone".to_string()), "{found:?}");
        found.retain(|name| ASSUMPTIONS.iter().all(|assumption| assumption.name != name));
        assert_eq!(found, Vec::<String>::new(), "no such assumption");
    }

    #[test]
    fn names_are_in_order_and_every_entry_says_all_four_things() {
        for pair in ASSUMPTIONS.windows(2) {
            assert!(pair[0].name < pair[1].name, "{} stands before {}", pair[0].name, pair[1].name);
        }
        for a in ASSUMPTIONS {
            for text in [a.assumed, a.unsure, a.settled_by] {
                assert!(text.ends_with('.') && text.len() > 20, "{}: {text:?}", a.name);
            }
        }
    }
}
