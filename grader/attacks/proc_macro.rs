// family: tricks of the build
// expect: panicked
// says: held

extern crate proc_macro;

pub fn kernel(_: &mut ptx::Cta, _: &ptx::Gemm) {
    // The compiler's own library is there; the compiler is not.
    assert!(!proc_macro::is_available(), "escaped");
    panic!("held")
}
