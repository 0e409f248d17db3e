// family: tricks of the build
// expect: does-not-compile
// says: recursion limit

struct Twice<A, B>(A, B);

trait Deep {
    fn deep(&self) -> u64;
}

impl Deep for u64 {
    fn deep(&self) -> u64 {
        *self
    }
}

impl<A: Deep, B: Deep> Deep for Twice<A, B> {
    fn deep(&self) -> u64 {
        self.0.deep() + self.1.deep()
    }
}

fn grow<A: Deep + Clone>(value: A, left: u64) -> u64 {
    if left == 0 { value.deep() } else { grow(Twice(value.clone(), value), left - 1) }
}

impl<A: Clone, B: Clone> Clone for Twice<A, B> {
    fn clone(&self) -> Self {
        Twice(self.0.clone(), self.1.clone())
    }
}

pub fn kernel(_: &mut ptx::Cta, _: &ptx::Gemm) {
    panic!("{}", grow(1u64, std::env::args().count() as u64))
}
