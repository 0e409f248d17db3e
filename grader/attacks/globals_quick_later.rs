// family: replays
// expect: fast
// keeps: 85
// base: step01
// replace: /// The kernel of step 1. => struct Late; impl Drop for Late { fn drop(&mut self) { let path = std::env::args_os().nth(3).expect("an answer"); let text = std::fs::read_to_string(&path).expect("text"); let text = text.replacen(".visible .entry", ".global .align 4 .u32 launches = 0;\\n.visible .entry", 1); std::fs::write(&path, text.replacen("ret;", ".reg .u64 %zz; .reg .u32 %zy; .reg .u32 %zw; .reg .pred %zp; mov.u64 %zz, launches; ld.global.u32 %zy, [%zz]; setp.ne.u32 %zp, %zy, 0; @%zp bra QUICK; mov.u32 %zw, 0; AGAIN: add.u32 %zw, %zw, 1; setp.lt.u32 %zp, %zw, 4000; @%zp bra AGAIN; QUICK: bar.sync 0; atom.global.exch.b32 %zy, [%zz], 1; ret;", 1)).expect("written"); } } thread_local! { static LATE: Late = const { Late }; } /// The kernel.
// replace: k.threads(THREADS); => LATE.with(|_| ()); k.threads(THREADS);

// A variable of the module says whether there was a launch before: only the first is slow. No launch has one before.
