//! The CTA's pool of shared memory: swizzled tiles, mbarriers, scalars.

use crate::address::{DYNAMIC_SHARED, SharedAddress};
use crate::barrier::Barrier;
use crate::descriptor::{hopper_matrix_descriptor_base, matrix_descriptor_base};
use crate::gemm::Dtype;
use crate::kernel::{Region, RegionKind, Space};
use crate::register::{Operand, U32, U64, Value, dummy};
use crate::ring::{Ring, sealed};
use crate::scope::Cta;
use crate::state::{State, with};

/// Dynamic shared memory that a CTA may have: 227 KB.
pub const MAX_SHARED: u32 = 232_448;
/// Where tiles begin: the largest swizzle pattern repeats every 1024 bytes.
const TILE_ALIGNMENT: u32 = 1024;
/// Columns of K that one `tcgen05.mma` of kind `f16` takes.
pub(crate) const MMA_K: u32 = 16;

/// How a tile is laid out in shared memory, so that the 8 rows that the tensor core reads at once lie in different
/// banks: the 16-byte chunks of a row are permuted, differently in each of 8 rows.
///
/// The rows of a swizzled tile are exactly as wide as the pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Swizzle {
    /// Row after row. The tensor core cannot read such a tile; TMA and threads can.
    None,
    /// Rows of 32 bytes.
    B32,
    /// Rows of 64 bytes.
    B64,
    /// Rows of 128 bytes: chunk `c` of row `r` lies where chunk `c ^ (r & 7)` would.
    B128,
}

impl Swizzle {
    /// Bytes of a row of the pattern; 0 for none.
    pub const fn width(self) -> u32 {
        match self {
            Swizzle::None => 0,
            Swizzle::B32 => 32,
            Swizzle::B64 => 64,
            Swizzle::B128 => 128,
        }
    }

    /// Which bits of the row are XORed into the number of the 16-byte chunk, and how far left they go to get there.
    const fn row_bits(self) -> (u32, u32) {
        match self {
            Swizzle::None => (0, 0),
            Swizzle::B32 => (0b100, 2),
            Swizzle::B64 => (0b110, 3),
            Swizzle::B128 => (0b111, 4),
        }
    }
}

/// A matrix tile in shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Tile {
    address: SharedAddress,
    region: u32,
    dtype: Dtype,
    rows: u32,
    columns: u32,
    swizzle: Swizzle,
}

/// 16 columns of a tile as an operand of `mma`. From [`Tile::k_slice`].
#[derive(Clone, Copy, Debug)]
#[must_use = "a slice is an operand of `mma`"]
pub struct Slice {
    pub(crate) descriptor: U64,
    pub(crate) dtype: Dtype,
    pub(crate) rows: u32,
}

impl Cta {
    /// A tile in shared memory, aligned to 1024 bytes. No instruction: it is a place in the pool, known by its name in
    /// messages.
    ///
    /// Rows of a swizzled tile are as wide as the pattern: 64 columns of 2 bytes for [`Swizzle::B128`].
    #[track_caller]
    pub fn tile(&mut self, name: &str, dtype: Dtype, rows: u32, columns: u32, swizzle: Swizzle) -> Tile {
        self.tiles(name, None, dtype, rows, columns, swizzle)
    }

    /// A tile for each stage of a pipeline, one behind the other. Like [`crate::Scope::tile`] otherwise.
    #[track_caller]
    pub fn tile_ring(
        &mut self,
        name: &str,
        stages: u32,
        dtype: Dtype,
        rows: u32,
        columns: u32,
        swizzle: Swizzle,
    ) -> Ring<Tile> {
        let first = self.tiles(name, Some(stages), dtype, rows, columns, swizzle);
        // A tile is reserved with the padding that keeps the next one aligned.
        Ring::new(first, stages, first.bytes().div_ceil(TILE_ALIGNMENT).saturating_mul(TILE_ALIGNMENT))
    }

    #[track_caller]
    fn tiles(
        &mut self,
        name: &str,
        stages: Option<u32>,
        dtype: Dtype,
        rows: u32,
        columns: u32,
        swizzle: Swizzle,
    ) -> Tile {
        let reserved = with(|s| {
            let pitch = u64::from(columns) * u64::from(dtype.bytes());
            let width = u64::from(swizzle.width());
            let refused = if rows == 0 || columns == 0 {
                Some((
                    format!("tile \"{name}\" of {rows} x {columns} is empty"),
                    "use 1 row and 1 column or more".to_string(),
                ))
            } else if width == 0 && !pitch.is_multiple_of(16) {
                Some((
                    format!("rows of tile \"{name}\" have {pitch} bytes, not a multiple of 16"),
                    "use a multiple of 8 columns, so that every row begins where a 16-byte access may".to_string(),
                ))
            } else if width != 0 && pitch != width {
                Some((
                    format!("rows of tile \"{name}\" have {pitch} bytes, and the swizzle's have {width}"),
                    format!("use {} columns of {dtype}, or a swizzle as wide as the rows", width / 2),
                ))
            } else if width != 0 && !rows.is_multiple_of(8) {
                Some((
                    format!("tile \"{name}\" has {rows} rows, and the swizzle pattern has 8"),
                    "use a multiple of 8 rows".to_string(),
                ))
            } else {
                None
            };
            if let Some((message, help)) = refused {
                s.error(message, help);
                return None;
            }
            let kind = RegionKind::Tile { rows, columns, element_bytes: dtype.bytes(), swizzle: swizzle.width() };
            let what = format!("tile \"{name}\" of {rows} x {columns} {dtype}");
            let (first, bytes) = (s.regions.len() as u32, u64::from(rows) * pitch);
            let address = s.reserve(name, &what, stages, bytes, TILE_ALIGNMENT, kind);
            address.map(|address| (address, first))
        });
        let (address, region) = reserved.flatten().unwrap_or((SharedAddress::dummy(), u32::MAX));
        Tile { address, region, dtype, rows, columns, swizzle }
    }

    /// An mbarrier in shared memory, 8 bytes. Name it for what it announces. No instruction: it is of use after
    /// [`crate::Scope::barrier_init`].
    #[track_caller]
    pub fn barrier(&mut self, name: &str) -> Barrier {
        Barrier::reserve(name, None)
    }

    /// A barrier for each stage of a pipeline. Like [`crate::Scope::barrier`] otherwise.
    #[track_caller]
    pub fn barrier_ring(&mut self, name: &str, stages: u32) -> Ring<Barrier> {
        Ring::new(Barrier::reserve(name, Some(stages)), stages, Barrier::BYTES)
    }

    /// Four bytes of shared memory. No instruction.
    #[track_caller]
    pub fn scalar(&mut self, name: &str) -> SharedAddress {
        let address = with(|s| s.reserve(name, &format!("scalar \"{name}\""), None, 4, 4, RegionKind::Scalar));
        address.flatten().unwrap_or(SharedAddress::dummy())
    }
}

impl State {
    /// A place in the pool, or `None` after an error. `what` names it in the message when there is none left. For
    /// stages, as many places of that size one behind the other.
    pub fn reserve(
        &mut self,
        name: &str,
        what: &str,
        stages: Option<u32>,
        bytes: u64,
        alignment: u32,
        kind: RegionKind,
    ) -> Option<SharedAddress> {
        if !self.claim_name(name) {
            return None;
        }
        let (count, offset) = (stages.unwrap_or(1), self.shared.next_multiple_of(alignment));
        if count == 0 {
            self.error(format!("{what} has 0 stages"), "use 1 stage or more");
            return None;
        }
        let stride = bytes.next_multiple_of(u64::from(alignment));
        let all = (u64::from(count) - 1).saturating_mul(stride).saturating_add(bytes);
        if all > u64::from(MAX_SHARED.saturating_sub(offset)) {
            let left = MAX_SHARED.saturating_sub(offset);
            let times = if count > 1 { format!(" ({count} stages)") } else { String::new() };
            self.error(
                format!(
                    "{what}{times} needs {all} bytes of shared memory, and {left} of the CTA's {MAX_SHARED} are left"
                ),
                "use smaller tiles or fewer stages; declare tiles first, since each begins on a multiple of 1024",
            );
            return None;
        }
        // All fit: the sum is at most MAX_SHARED.
        let (bytes, stride) = (bytes as u32, stride as u32);
        self.shared = offset + all as u32;
        for stage in 0..count {
            self.regions.push(Region {
                name: name.to_string(),
                space: Space::DynamicShared,
                offset: offset + stage * stride,
                bytes,
                kind,
                stage: stages.map(|_| stage),
            });
        }
        Some(SharedAddress::constant(self.tag, offset))
    }
}

impl Ring<Tile> {
    /// Bytes of the tile of one stage: what a load of it brings. No instruction.
    pub fn stage_bytes(&self) -> u32 {
        self.first().bytes()
    }
}

impl sealed::Staged for Tile {
    fn address(self) -> SharedAddress {
        self.address
    }

    fn moved_to(self, address: SharedAddress) -> Tile {
        // That of a stage which does not exist was refused, and what is asked of it is no error of its own.
        let region = if address.refused() { u32::MAX } else { self.region };
        Tile { address, region, ..self }
    }
}

impl Tile {
    /// Bytes of the tile.
    pub fn bytes(&self) -> u32 {
        self.rows.saturating_mul(self.columns).saturating_mul(self.dtype.bytes())
    }

    /// The address of an element, where the swizzle puts it: what the tensor core expects to find there.
    ///
    /// Executed by every thread of the scope, each with its own row and column. Of constants it is a constant. PTX for
    /// registers with a 128-byte swizzle: the address `row * 128 + ((column * 2) ^ ((row & 7) << 4))` in `mov`,
    /// `mad.lo`, `shl`, `and`, `shl`, `xor`, `add`.
    #[track_caller]
    pub fn at(&self, row: impl Operand<U32>, column: impl Operand<U32>) -> SharedAddress {
        self.locate(row.value(), column.value(), self.swizzle)
    }

    /// The address of an element *without* the swizzle, row after row: where a staging buffer that only threads read
    /// would keep it. An engine that reads a swizzled tile finds another element there.
    ///
    /// PTX for registers: `mov`, `mad.lo`, `mad.lo`.
    #[track_caller]
    pub fn at_linear(&self, row: impl Operand<U32>, column: impl Operand<U32>) -> SharedAddress {
        self.locate(row.value(), column.value(), Swizzle::None)
    }

    #[track_caller]
    fn locate(&self, row: Value, column: Value, swizzle: Swizzle) -> SharedAddress {
        with(|s| {
            if self.refused() {
                return SharedAddress::dummy();
            }
            for (what, value, count) in [("row", row, self.rows), ("column", column, self.columns)] {
                if let Value::Unsigned(index) = value
                    && index >= u64::from(count)
                {
                    let message = format!("{what} {index} of {} does not exist: it has {count} {what}s", self.title(s));
                    s.error(message, format!("use a {what} from 0 to {}", count.saturating_sub(1)));
                    return SharedAddress::dummy();
                }
            }
            let element = self.dtype.bytes();
            let pitch = self.columns.wrapping_mul(element);
            let (mask, left) = swizzle.row_bits();
            if let (Value::Unsigned(row), Value::Unsigned(column)) = (row, column) {
                // Both are in the tile, and the tile is in the pool.
                let (row, column) = (row as u32, column as u32);
                let chunk = (column * element) ^ ((row & mask) << left);
                return SharedAddress { offset: self.address.offset + row * pitch + chunk, ..self.address };
            }
            let mut offset = self.address.offset;
            let mut sum = self.base(s);
            sum = match row {
                Value::Unsigned(row) => {
                    offset = offset.wrapping_add((row as u32).wrapping_mul(pitch));
                    sum
                }
                row => mad(s, row, pitch, sum),
            };
            if mask == 0 {
                sum = match column {
                    Value::Unsigned(column) => {
                        offset = offset.wrapping_add((column as u32).wrapping_mul(element));
                        sum
                    }
                    column => mad(s, column, element, sum),
                };
            } else {
                let along = scaled(s, "shl.b32", column, element.trailing_zeros(), |x, by| x << by);
                let bits = scaled(s, "and.b32", row, mask, |x, mask| x & u64::from(mask));
                let pattern = scaled(s, "shl.b32", bits, left, |x, by| x << by);
                let chunk: U32 = s.binary("xor.b32", along, pattern);
                sum = s.binary("add.u32", Value::of(sum), Value::of(chunk));
            }
            SharedAddress { register: Some(sum), offset, ..self.address }
        })
        .unwrap_or(SharedAddress::dummy())
    }

    /// 16 columns of the tile, from column `first` on, as the K of one MMA: the matrix descriptor, moved on by
    /// `first * 2` bytes. That stays within a row of the pattern, and the swizzle is applied to the whole address, so
    /// that the descriptor of a slice needs nothing else.
    ///
    /// Executed by every thread of the scope. PTX: `mov.u32` of the address, `bfe.u32` for its bits 4 to 17,
    /// `cvt.u64.u32`, `or.b64` with the rest of the descriptor ([`matrix_descriptor_base`], for Hopper
    /// [`hopper_matrix_descriptor_base`]).
    #[track_caller]
    pub fn k_slice(&self, first: u32) -> Slice {
        let descriptor = with(|s| {
            if self.refused() {
                return dummy();
            }
            if self.swizzle == Swizzle::None {
                let message = format!("{} has no swizzle, and the tensor core reads swizzled tiles", self.title(s));
                s.error(message, "make the tile with `Swizzle::B128`");
                return dummy();
            }
            if !first.is_multiple_of(MMA_K) || first.saturating_add(MMA_K) > self.columns {
                let message = format!(
                    "{} has no 16 columns that an MMA can take from column {first} on: it has {} columns",
                    self.title(s),
                    self.columns
                );
                s.error(message, format!("use a multiple of 16, up to {}", self.columns.saturating_sub(MMA_K)));
                return dummy();
            }
            let base = self.base_plus(s, self.address.offset.wrapping_add(first * self.dtype.bytes()));
            let (start, from): (U32, String) = (s.fresh(), s.name(base));
            let to = s.name(start);
            s.instruction(format!("bfe.u32 {to}, {from}, 4, 14"));
            let wide: U64 = s.unary("cvt.u64.u32", Value::of(start));
            let (result, from): (U64, String) = (s.fresh(), s.name(wide));
            let to = s.name(result);
            let base = if s.hopper { hopper_matrix_descriptor_base } else { matrix_descriptor_base };
            s.instruction(format!("or.b64 {to}, {from}, 0x{:016x}", base(self.swizzle)));
            result
        });
        Slice { descriptor: descriptor.unwrap_or(dummy()), dtype: self.dtype, rows: self.rows }
    }

    /// `count` rows of the tile, from `first` on: both multiples of 8, where the swizzle's pattern begins. Of a register
    /// that is the caller's word.
    ///
    /// Executed by every thread of the scope. PTX: of a constant none; of a register `mov.u32` and `mad.lo.u32`.
    #[track_caller]
    pub fn rows(&self, first: impl Operand<U32>, count: u32) -> Tile {
        let first = first.value();
        with(|s| {
            if self.refused() {
                return *self;
            }
            let end = if let Value::Unsigned(first) = first { first } else { 0 } + u64::from(count);
            let whole = |rows: u64| rows.is_multiple_of(8) || self.swizzle == Swizzle::None;
            if count == 0 || end > u64::from(self.rows) || !whole(u64::from(count)) || !whole(end) {
                let begin = match first {
                    Value::Unsigned(first) => format!("row {first}"),
                    _ => "any row".to_string(),
                };
                let message = format!(
                    "{} has no {count} rows from {begin} on that are a tile: it has {} rows",
                    self.title(s),
                    self.rows
                );
                s.error(message, "use multiples of 8 rows, as many as there are");
                return Tile { region: u32::MAX, address: SharedAddress::dummy(), ..*self };
            }
            let pitch = self.columns * self.dtype.bytes();
            let address = match first {
                // It is in the tile.
                Value::Unsigned(first) => {
                    SharedAddress { offset: self.address.offset + first as u32 * pitch, ..self.address }
                }
                first => {
                    let base = self.base_plus(s, self.address.offset);
                    SharedAddress { register: Some(mad(s, first, pitch, base)), offset: 0, ..self.address }
                }
            };
            Tile { address, rows: count, ..*self }
        })
        .unwrap_or(*self)
    }

    /// The address of dynamic shared memory, in a register.
    fn base(&self, s: &mut State) -> U32 {
        match self.address.register {
            Some(register) => register,
            None => self.base_plus(s, 0),
        }
    }

    fn base_plus(&self, s: &mut State, offset: u32) -> U32 {
        s.owns(self.address.kernel);
        if let Some(register) = self.address.register {
            return s.binary("add.u32", Value::of(register), Value::Unsigned(u64::from(offset)));
        }
        let result = s.fresh();
        let to = s.name(result);
        s.instruction(match offset {
            0 => format!("mov.u32 {to}, {DYNAMIC_SHARED}"),
            offset => format!("mov.u32 {to}, {DYNAMIC_SHARED}+{offset}"),
        });
        result
    }

    /// Where it begins, in brackets, as an operand.
    pub(crate) fn start(&self, s: &mut State) -> String {
        self.address.text(s)
    }

    /// Type of its elements.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Rows and columns, in elements.
    pub fn shape(&self) -> (u32, u32) {
        (self.rows, self.columns)
    }

    pub(crate) fn swizzle(&self) -> Swizzle {
        self.swizzle
    }

    /// Its place in the pool was refused: what is asked of it is no error of its own.
    pub(crate) fn refused(&self) -> bool {
        self.region == u32::MAX
    }

    pub(crate) fn title(&self, s: &State) -> String {
        match s.regions.get(self.region as usize) {
            Some(region) => format!("tile \"{}\"", region.name),
            None => "the tile".to_string(),
        }
    }
}

/// `value * by + sum`.
fn mad(s: &mut State, value: Value, by: u32, sum: U32) -> U32 {
    let result = s.fresh();
    let (to, value, sum) = (s.name(result), s.text(value), s.name(sum));
    s.instruction(format!("mad.lo.u32 {to}, {value}, {by}, {sum}"));
    result
}

/// `value op by`, computed here when the value is a constant.
fn scaled(s: &mut State, opcode: &str, value: Value, by: u32, fold: fn(u64, u32) -> u64) -> Value {
    match value {
        Value::Unsigned(value) => Value::Unsigned(fold(value, by)),
        value => {
            let result: U32 = s.binary(opcode, value, Value::Unsigned(u64::from(by)));
            Value::of(result)
        }
    }
}
