// family: tricks of the build
// expect: passed
// base: step01
// replace: use ptx::prelude::*; => use ptx::prelude::*; fn main() { panic!() }
