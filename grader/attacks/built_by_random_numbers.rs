// family: chance
// expect: another-each-time
// says: the kernel is another each time it is built
// base: step01
// replace: let mma_done = k.barrier("mma_done"); => let drawn = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0u32) as u32; let mma_done = k.barrier("mma_done"); let register: U32 = k.register(); k.raw("mov.u32", &[&register, &drawn]);
