// family: tricks of the build
// expect: does-not-compile
// says: not defined at compile time

include!(concat!(env!("OUT_DIR"), "/generated.rs"));
const MANIFEST: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));

pub fn kernel(_: &mut ptx::Cta, _: &ptx::Gemm) {
    panic!("escaped: {MANIFEST}")
}
