//! From a kernel's recipe to a launch: the judge brings the data, the recipe only says where it goes.

use crate::inputs::{Inputs, to_bytes};
use crate::problem::Problem;
use crate::source::{Built, Matrix, Param};
use emulator::{Buffer, Content, Element, Launch, Swizzle, TensorMap};
use ptx::Dtype;

/// The judge's buffers, in the order of [`Launch::buffers`].
pub const BUFFERS: [Matrix; 3] = [Matrix::A, Matrix::B, Matrix::D];

/// Index of a matrix in [`Launch::buffers`].
pub fn buffer(matrix: Matrix) -> usize {
    match matrix {
        Matrix::A => 0,
        Matrix::B => 1,
        Matrix::D => 2,
    }
}

/// Bytes of an element.
const ELEMENT: u32 = 2;

/// The launch of a kernel on these inputs. D counts as never written, so that elements that the kernel leaves out are
/// known, whatever they hold.
pub fn launch(built: &Built, inputs: &Inputs) -> Launch {
    let bytes = |matrix: &[u16]| Content::Bytes(to_bytes(matrix));
    launch_on(built, &inputs.problem, bytes(&inputs.a), bytes(&inputs.b))
}

/// The same, with this content of A and B.
pub(crate) fn launch_on(built: &Built, problem: &Problem, a: Content, b: Content) -> Launch {
    let matrix = |matrix: Matrix, columns: u32, content: Content| Buffer {
        name: matrix.to_string(),
        content,
        row_bytes: Some(columns * ELEMENT),
        element_bytes: Some(ELEMENT),
    };
    let d_bytes = u64::from(problem.m) * u64::from(problem.n) * u64::from(ELEMENT);
    Launch {
        entry: built.name.clone(),
        grid: built.grid,
        cluster: built.cluster,
        block: built.block,
        dynamic_shared: built.dynamic_shared,
        buffers: vec![
            matrix(Matrix::A, problem.k, a),
            matrix(Matrix::B, problem.k, b),
            matrix(Matrix::D, problem.n, Content::Undefined { bytes: d_bytes }),
        ],
        params: built
            .params
            .iter()
            .map(|param| match param {
                Param::Pointer(matrix) => emulator::Param::Pointer { buffer: buffer(*matrix), offset: 0 },
                Param::TensorMap { matrix, box_rows, box_columns, swizzle } => emulator::Param::TensorMap {
                    buffer: buffer(*matrix),
                    map: tensor_map(problem, *matrix, [*box_columns, *box_rows], *swizzle),
                },
            })
            .collect(),
        regions: built.regions.clone(),
        ..Default::default()
    }
}

/// The launch of a kernel whose times alone are asked for: buffers of the right sizes with nothing in them.
pub fn times_only(built: &Built, problem: Problem) -> Launch {
    let undefined = |matrix: Matrix| {
        let (rows, columns) = shape(&problem, matrix);
        Content::Undefined { bytes: u64::from(rows) * u64::from(columns) * u64::from(ELEMENT) }
    };
    launch_on(built, &problem, undefined(Matrix::A), undefined(Matrix::B))
}

/// Rows and columns of a matrix.
fn shape(problem: &Problem, matrix: Matrix) -> (u32, u32) {
    match matrix {
        Matrix::A => (problem.m, problem.k),
        Matrix::B => (problem.n, problem.k),
        Matrix::D => (problem.m, problem.n),
    }
}

/// The tensor map of a matrix, for boxes of this size (columns, rows).
fn tensor_map(problem: &Problem, matrix: Matrix, box_dims: [u32; 2], swizzle: Swizzle) -> TensorMap {
    let (rows, columns) = shape(problem, matrix);
    TensorMap {
        address: 0,
        element: match problem.dtype {
            Dtype::F16 => Element::F16,
            Dtype::Bf16 => Element::Bf16,
        },
        dims: vec![u64::from(columns), u64::from(rows)],
        strides: vec![u64::from(columns) * u64::from(ELEMENT)],
        box_dims: box_dims.to_vec(),
        element_strides: Vec::new(),
        swizzle,
        fill_nan: false,
    }
}
