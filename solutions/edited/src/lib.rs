//! Solutions with a passage replaced: kernels that look right and are not, each a few words away from one that is.
//!
//! **Does:** make them from the solutions by the lists beside `edits.rs`, so that tests can show what the judge says of them. A passage
//! that no longer stands in its solution is a build error. **Never does:** anything else; only tests, and the command that writes the outputs
//! of the findings' pages, depend on it.

use ptx::level::Level;
use ptx::{B32, Chunk, F32, Gemm, GlobalAddress, KernelFn, Operand, Scope, U32};

include!(concat!(env!("OUT_DIR"), "/edited.rs"));

/// Where the texts of the edited solutions are: `NAME.rs`.
pub const FOLDER: &str = env!("OUT_DIR");

/// The edited solution of this name.
///
/// # Panics
/// When no list has one: that is a mistake in a test.
pub fn kernel(name: &str) -> KernelFn {
    let found = ALL.iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("solutions/edited has no edit `{name}`")).1
}

/// Part of an element of D, without the tensor core: columns `first` to `K - 1` of a row of A and one of B, by one thread.
fn by_thread<L: Level>(
    k: &mut Scope<L>,
    gemm: &Gemm,
    (row, column): (impl Operand<U32>, impl Operand<U32>),
    first: u32,
) -> F32 {
    let (row, column): (U32, U32) = (k.variable(row), k.variable(column));
    let widen = format!("cvt.f32.{}", gemm.dtype);
    let sum = k.variable::<F32>(0.0);
    k.repeat(gemm.k - first, |k, i| {
        let i = i + first;
        let [left, right] = [gemm.a.at(row, i), gemm.b.at(column, i)].map(|at| {
            let half = k.load_global_b16(at);
            let number: F32 = k.register();
            k.raw(&widen, &[&number, &half]);
            number
        });
        k.assign(sum, sum + left * right);
    });
    sum
}

/// What is in global memory there, and this, added element by element.
fn added<L: Level>(k: &mut Scope<L>, gemm: &Gemm, at: GlobalAddress, chunk: Chunk) -> Chunk {
    let (opcode, before) = (format!("add.rn.{}x2", gemm.dtype), k.load_global_16(at));
    std::array::from_fn(|pair| {
        let sum: B32 = k.register();
        k.raw(&opcode, &[&sum, &before[pair], &chunk[pair]]);
        sum
    })
}
