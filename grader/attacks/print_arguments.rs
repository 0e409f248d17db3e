// family: files of others
// expect: panicked
// says: ["/hand-in-program", "--emit", "/hand-in-scratch/request.json", "/hand-in-scratch/answer.json"]

// Where the grader's folders lie: for whoever reads the page, and another each time.
use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    panic!("{:?}", std::env::args_os().collect::<Vec<_>>());
}
