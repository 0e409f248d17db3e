// family: replays
// expect: passed
// base: step01
// replace: /// The kernel of step 1. => struct Late; impl Drop for Late { fn drop(&mut self) { let path = std::env::args_os().nth(3).expect("an answer"); let text = std::fs::read_to_string(&path).expect("text"); let text = text.replacen(".visible .entry", ".global .align 4 .u32 launches = 0;\\n.visible .entry", 1); std::fs::write(&path, text.replacen("ret;", ".reg .u64 %zz; .reg .u32 %zy; .reg .u32 %zw; .reg .pred %zp; mov.u64 %zz, launches; ld.global.u32 %zy, [%zz]; setp.ne.u32 %zp, %zy, 0; @%zp trap; bar.sync 0; atom.global.exch.b32 %zy, [%zz], 1; ret;", 1)).expect("written"); } } thread_local! { static LATE: Late = const { Late }; } /// The kernel.
// replace: k.threads(THREADS); => LATE.with(|_| ()); k.threads(THREADS);

// The same, and a second launch would break off: that it passes shows that each launch has variables of its own.
