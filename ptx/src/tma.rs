//! TMA: tiles move between global and shared memory by a copy engine, described by tensor maps.

use crate::barrier::TakesBytes;
use crate::gemm::Matrix;
use crate::kernel::{Param, TensorMap};
use crate::level::{Level, OneThread};
use crate::register::{B16, Operand, U32, U64, Value};
use crate::scope::Scope;
use crate::state::{State, with};
use crate::tile::Tile;

/// Elements that a box may have in each direction (CUDA driver API, `cuTensorMapEncodeTiled`).
const MAX_BOX: u32 = 256;
/// Bytes that rows of a matrix, and where a box begins in one, are multiples of.
const ALIGNMENT: u64 = 16;

impl<L: Level> Scope<L> {
    /// Starts a load of a tile: the box of `from` that begins at `(column, row)` and has the shape of `to` comes to
    /// shared memory, swizzled as `to` is. What lies outside of the matrix comes as zeros. The engine tells `barrier`
    /// of the bytes of the whole box, those outside included: announce [`Tile::bytes`] with [`Scope::expect_tx`].
    /// Returns at once; who reads the tile waits on the barrier. The column must be a multiple of 16 bytes.
    ///
    /// In a CTA pair the barrier may be that of the other CTA ([`crate::Barrier::of_cta`]); the tile is this CTA's own.
    ///
    /// Executed by one thread. The tensor map is a parameter of the kernel, made for matrix, shape and swizzle. PTX:
    /// `mov.b64` and `cvta.param.u64` of its address,
    /// `cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes`, with `.cta_group::2` for a
    /// barrier from `of_cta`.
    #[track_caller]
    pub fn tma_load<C: Operand<U32>, R: Operand<U32>>(
        &mut self,
        to: Tile,
        from: &Matrix,
        (column, row): (C, R),
        barrier: impl TakesBytes,
    ) where
        L: OneThread,
    {
        let (barrier, coordinates) = (barrier.barrier(), (column.value(), row.value()));
        with(|s| {
            let Some(map) = tensor_map(s, from, &to) else { return };
            if barrier.remote && !s.pair {
                s.error(
                    "a load tells a barrier of another CTA, which only a CTA pair can",
                    "use the barrier of this CTA, `tma_load_multicast`, or `k.cta_pair()`",
                );
            }
            let pair = if barrier.remote { ".cta_group::2" } else { "" };
            let (tile, barrier) = (to.start(s), barrier.address.text(s));
            let coordinates = coordinates_text(s, from, coordinates);
            s.instruction(format!(
                "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes{pair} {tile}, \
                 [{map}, {coordinates}], {barrier}"
            ));
        });
    }

    /// The same load for several CTAs of the cluster: the box comes to the place of `to` in the shared memory of each CTA
    /// whose bit in `ctas` is set (bit 0 for rank 0), and its bytes are told to the barrier at the place of `barrier` in
    /// each of them.
    ///
    /// Executed by one thread. PTX: as [`Scope::tma_load`], with `.multicast::cluster` and `mov.b16` of the mask.
    #[track_caller]
    pub fn tma_load_multicast<C: Operand<U32>, R: Operand<U32>>(
        &mut self,
        to: Tile,
        from: &Matrix,
        (column, row): (C, R),
        barrier: impl TakesBytes,
        ctas: u32,
    ) where
        L: OneThread,
    {
        let (barrier, coordinates) = (barrier.barrier(), (column.value(), row.value()));
        with(|s| {
            let there = (1 << s.cluster) - 1;
            if ctas == 0 || ctas & !there != 0 {
                s.error(
                    format!("{ctas:#b} is not a mask of CTAs of this cluster"),
                    format!("use a mask of the CTAs that the cluster has: {there:#b} is all of them"),
                );
            }
            barrier.refuse_remote(s, "a multicast names");
            let Some(map) = tensor_map(s, from, &to) else { return };
            let mask: B16 = s.unary("mov.b16", Value::Unsigned(u64::from(ctas)));
            let (tile, barrier, mask) = (to.start(s), barrier.address.text(s), s.name(mask));
            let coordinates = coordinates_text(s, from, coordinates);
            s.instruction(format!(
                "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster \
                 {tile}, [{map}, {coordinates}], {barrier}, {mask}"
            ));
        });
    }

    /// Starts a store of a tile: it goes to the box of `to` that begins at `(column, row)`. What lies outside of the
    /// matrix is not written. The engine reads shared memory by the async proxy: what threads stored there is seen
    /// after [`Scope::fence_proxy_async`] and a barrier. Returns at once: the tile may be written again, and the kernel
    /// may end, after [`Scope::bulk_commit`] and [`Scope::bulk_wait_read`]. The column must be a multiple of 16 bytes.
    ///
    /// Executed by one thread. PTX: `mov.b64` and `cvta.param.u64` of the tensor map's address,
    /// `cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group`.
    #[track_caller]
    pub fn tma_store<C: Operand<U32>, R: Operand<U32>>(&mut self, from: Tile, to: &Matrix, (column, row): (C, R))
    where
        L: OneThread,
    {
        let coordinates = (column.value(), row.value());
        with(|s| {
            let Some(map) = tensor_map(s, to, &from) else { return };
            let tile = from.start(s);
            let coordinates = coordinates_text(s, to, coordinates);
            s.instruction(format!(
                "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [{map}, {coordinates}], {tile}"
            ));
        });
    }

    /// Makes a group of the stores that this thread has started since the last one.
    ///
    /// Executed by the thread that started them. PTX: `cp.async.bulk.commit_group`.
    #[track_caller]
    pub fn bulk_commit(&mut self)
    where
        L: OneThread,
    {
        with(|s| s.instruction("cp.async.bulk.commit_group"));
    }

    /// Waits until all but the latest `pending` groups of this thread are complete: what they wrote is in global
    /// memory.
    ///
    /// Executed by the thread that started the stores. PTX: `cp.async.bulk.wait_group`.
    #[track_caller]
    pub fn bulk_wait(&mut self, pending: u32)
    where
        L: OneThread,
    {
        with(|s| s.instruction(format!("cp.async.bulk.wait_group {pending}")));
    }

    /// Waits until all but the latest `pending` groups of this thread have read shared memory: their tiles may be
    /// written again, after others were told so at a barrier.
    ///
    /// Executed by the thread that started the stores. PTX: `cp.async.bulk.wait_group.read`.
    #[track_caller]
    pub fn bulk_wait_read(&mut self, pending: u32)
    where
        L: OneThread,
    {
        with(|s| s.instruction(format!("cp.async.bulk.wait_group.read {pending}")));
    }
}

/// The vector of coordinates: registers or constants, the column first.
fn coordinates_text(s: &mut State, matrix: &Matrix, (column, row): (Value, Value)) -> String {
    let (element, name) = (u64::from(matrix.dtype.bytes()), matrix.name);
    if let Value::Unsigned(column) = column
        && !(column * element).is_multiple_of(ALIGNMENT)
    {
        s.error(
            format!(
                "a box of TMA cannot begin at column {column} of matrix {name}: byte {}, not a multiple of {ALIGNMENT}",
                column * element
            ),
            format!("use a multiple of {} columns", ALIGNMENT / element),
        );
    }
    for (what, value) in [("column", column), ("row", row)] {
        if let Value::Unsigned(index) = value
            && index > i32::MAX as u64
        {
            s.error(
                format!("TMA has no {what} {index}: it counts in signed 32-bit integers"),
                format!("use a {what} of matrix {name}"),
            );
        }
    }
    format!("{{{}, {}}}", s.text(column), s.text(row))
}

/// The address of the tensor map for boxes of a tile's shape, in a register; `None` after an error.
fn tensor_map(s: &mut State, matrix: &Matrix, tile: &Tile) -> Option<String> {
    if tile.refused() {
        return None;
    }
    let (title, pitch) = (tile.title(s), u64::from(matrix.columns) * u64::from(matrix.dtype.bytes()));
    if tile.dtype() != matrix.dtype {
        s.error(
            format!("{title} holds {}, and matrix {} {}", tile.dtype(), matrix.name, matrix.dtype),
            "make the tile of the matrix's type",
        );
        return None;
    }
    if !pitch.is_multiple_of(ALIGNMENT) {
        s.error(
            format!("rows of matrix {} have {pitch} bytes: a tensor map needs a multiple of {ALIGNMENT}", matrix.name),
            format!("use a multiple of {} columns", ALIGNMENT / u64::from(matrix.dtype.bytes())),
        );
        return None;
    }
    for (what, extent) in [("rows", matrix.rows), ("columns", matrix.columns)] {
        if extent > 1 << 31 {
            s.error(
                format!("matrix {} has {extent} {what}: TMA counts in signed 32-bit integers", matrix.name),
                format!("use at most {} {what}", 1u32 << 31),
            );
            return None;
        }
    }
    let (rows, columns) = tile.shape();
    if rows > MAX_BOX || columns > MAX_BOX {
        s.error(
            format!("{title} has {rows} x {columns} elements: a box of TMA has at most {MAX_BOX} in each direction"),
            "move it in several boxes, or use a smaller tile",
        );
        return None;
    }
    let wanted = TensorMap {
        matrix: matrix.name,
        box_rows: rows,
        box_columns: columns,
        swizzle: tile.swizzle(),
        name: String::new(),
    };
    let same = |map: &TensorMap| TensorMap { name: String::new(), ..map.clone() } == wanted;
    let of_matrix = |map: &&TensorMap| map.matrix == matrix.name;
    let name = match s.tensor_maps.iter().find(|map| same(map)) {
        Some(map) => map.name.clone(),
        None => {
            let name = match s.tensor_maps.iter().filter(of_matrix).count() {
                0 => format!("{}_map", matrix.name),
                others => format!("{}_map_{}", matrix.name, others + 1),
            };
            s.tensor_maps.push(TensorMap { name: name.clone(), ..wanted });
            name
        }
    };
    let param: U64 = s.fresh();
    let of_param = s.name(param);
    s.instruction(format!("mov.b64 {of_param}, {name}"));
    let generic: U64 = s.unary("cvta.param.u64", Value::of(param));
    Some(s.name(generic))
}

/// The parameters of a kernel: pointers to the matrices that it reaches by address, then the tensor maps.
pub(crate) fn params(s: &State) -> Vec<Param> {
    let pointers = s.pointers.iter().map(|name| Param::Pointer(name));
    pointers.chain(s.tensor_maps.iter().cloned().map(Param::TensorMap)).collect()
}
