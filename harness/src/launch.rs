//! From a kernel's recipe to a launch: the judge brings the data, the recipe only says where it goes.

use crate::inputs::{Inputs, to_bytes};
use crate::placement::{Placed, Placement, Refused};
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

/// The launch of a kernel on these inputs. D counts as never written, so that elements that the kernel leaves out are
/// known, whatever they hold.
///
/// # Errors
/// When no kernel could move the matrices of this problem: [`Placement::check`].
pub fn launch(built: &Built, inputs: &Inputs) -> Result<Launch, Refused> {
    let bytes = |matrix: &[u16]| Content::Bytes(to_bytes(matrix).into());
    launch_on(built, &inputs.problem, bytes(&inputs.a), bytes(&inputs.b))
}

/// The same, with this content of A and B.
pub(crate) fn launch_on(built: &Built, problem: &Problem, a: Content, b: Content) -> Result<Launch, Refused> {
    let placement = Placement::of(problem);
    placement.check(problem)?;
    let matrix = |matrix: Matrix, content: Content| {
        let placed = placement.matrix(matrix);
        Buffer {
            name: matrix.to_string(),
            content,
            // A row of the largest problem has 128 KiB.
            row_bytes: u32::try_from(placed.row_bytes).ok(),
            element_bytes: Some(Placed::ELEMENT as u32),
        }
    };
    Ok(Launch {
        entry: built.name.clone(),
        grid: built.grid,
        cluster: built.cluster,
        block: built.block,
        dynamic_shared: built.dynamic_shared,
        buffers: vec![
            matrix(Matrix::A, a),
            matrix(Matrix::B, b),
            matrix(Matrix::D, Content::Undefined { bytes: placement.d.bytes() }),
        ],
        params: built
            .params
            .iter()
            .map(|param| match param {
                Param::Pointer(matrix) => emulator::Param::Pointer { buffer: buffer(*matrix), offset: 0 },
                Param::TensorMap { matrix, box_rows, box_columns, swizzle } => emulator::Param::TensorMap {
                    buffer: buffer(*matrix),
                    map: tensor_map(placement.matrix(*matrix), [*box_columns, *box_rows], swizzled(*swizzle)),
                },
            })
            .collect(),
        regions: built.regions.iter().map(region).collect(),
        ..Default::default()
    })
}

/// The launch of a kernel whose times alone are asked for: buffers of the right sizes with nothing in them.
///
/// # Errors
/// As [`launch`].
pub fn times_only(built: &Built, problem: Problem) -> Result<Launch, Refused> {
    let placement = Placement::of(&problem);
    let undefined = |placed: &Placed| Content::Undefined { bytes: placed.bytes() };
    launch_on(built, &problem, undefined(&placement.a), undefined(&placement.b))
}

/// The tensor map of a matrix, for boxes of this size (columns, rows).
fn tensor_map(placed: &Placed, box_dims: [u32; 2], swizzle: Swizzle) -> TensorMap {
    TensorMap {
        // Counts from the start of the buffer.
        address: 0,
        element: match placed.dtype {
            Dtype::F16 => Element::F16,
            Dtype::Bf16 => Element::Bf16,
        },
        dims: vec![placed.columns, placed.rows],
        strides: vec![placed.row_bytes],
        box_dims: box_dims.to_vec(),
        element_strides: Vec::new(),
        swizzle,
        fill_nan: false,
    }
}

fn swizzled(swizzle: ptx::Swizzle) -> Swizzle {
    match swizzle {
        ptx::Swizzle::None => Swizzle::None,
        ptx::Swizzle::B32 => Swizzle::B32,
        ptx::Swizzle::B64 => Swizzle::B64,
        ptx::Swizzle::B128 => Swizzle::B128,
    }
}

/// The builder and the emulator know nothing of each other, so each has its own type for a named region.
fn region(region: &ptx::Region) -> emulator::Region {
    emulator::Region {
        name: region.name.clone(),
        space: match region.space {
            ptx::Space::DynamicShared => emulator::RegionSpace::DynamicShared,
            ptx::Space::Tensor => emulator::RegionSpace::Tensor,
        },
        offset: region.offset,
        bytes: region.bytes,
        kind: match region.kind {
            ptx::RegionKind::Tile { rows, columns, element_bytes, swizzle } => {
                emulator::RegionKind::Tile { rows, columns, element_bytes, swizzle }
            }
            ptx::RegionKind::Barrier => emulator::RegionKind::Barrier,
            ptx::RegionKind::Scalar => emulator::RegionKind::Scalar,
        },
        stage: region.stage,
    }
}
