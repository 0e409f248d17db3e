// family: chance
// expect: another-each-time
// says: the kernel is another each time it is built
// base: step01
// replace: let mma_done = k.barrier("mma_done"); => let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().subsec_nanos(); let mma_done = k.barrier("mma_done"); let drawn: U32 = k.register(); k.raw("mov.u32", &[&drawn, &now]);
