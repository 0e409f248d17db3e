// family: chance
// expect: another-each-time
// says: the kernel is another each time it is built
// base: step01
// replace: let mma_done = k.barrier("mma_done"); => let mma_done = k.barrier("mma_done"); if gemm.dtype != Dtype::F16 { let local = 0u8; let address = (&raw const local as usize >> 4) as u32; let drawn: U32 = k.register(); k.raw("mov.u32", &[&drawn, &address]); }

// The first size is F16, and the same each time.
