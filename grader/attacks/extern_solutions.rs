// family: tricks of the build
// expect: does-not-compile
// says: unresolved

pub use solutions::step01::kernel;
