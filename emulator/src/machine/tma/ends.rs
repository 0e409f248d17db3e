//! Where the bytes of a bulk copy lie: the rows of global memory that a box or a plain copy means, the place in shared memory, and the
//! mbarriers that are told. What hardware would not take is refused here.

use super::Fill;
use super::bounding_box::Rows;
use super::box_origin::Origin;
use super::four_rows;
use super::tensor_maps::{MAP_BYTES, MapPlace, USED_BYTES};
use crate::diagnostic::Severity;
use crate::machine::chip::outbox::Item;
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::explain::elsewhere::{Elsewhere, SPACE_RULE};
use crate::machine::explain::names::counted;
use crate::machine::layout::offsets::Lattice;
use crate::machine::memory::Runs;
use crate::machine::state::{At, Slot};
use crate::machine::warp::step::PARAM_WINDOW;
use crate::program::RESERVED_SHARED;
use crate::program::limits;
use crate::program::op::{Address, Op, Reg, TmaKind, TmaOp};
use crate::report::Memory;
use crate::tensor_map::{Element, Swizzle, TensorMap};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// Tensor maps that are kept decoded.
const MOST_MAPS: usize = 16;

/// One side of a copy: rows of bytes, in global memory but for a copy between CTAs.
pub struct GlobalSide {
    pub rows: SmallVec<[Rows; 1]>,
    /// Bytes that move.
    pub bytes: u32,
    /// The source of a copy between CTAs, which has no global side.
    pub from: Option<Slot>,
    /// What the shared address is a multiple of.
    pub align: u32,
    pub swizzle: Swizzle,
    pub element: Element,
    pub fill: Fill,
    /// Where a box begins, and how large it is; both empty for plain bytes.
    pub coordinates: SmallVec<[i32; 5]>,
    pub extents: SmallVec<[u32; 5]>,
    pub origin: Option<Origin>,
    /// Where a tensor map in global memory lies, which the copy reads as well.
    pub map: Option<MapPlace>,
    pub lattice: Option<Lattice>,
}

impl Cluster<'_> {
    fn refused(&self, at: At, code: &'static str, what: String, rule: &str, help: &str) -> Stop {
        Some(Box::new(self.problem(code, at.site, what, rule, help.into())))
    }

    /// What a plain bulk copy means: bytes in a row.
    pub fn plain_bytes(&mut self, at: At, lane: usize, op: &TmaOp) -> Result<GlobalSide, Stop> {
        let rule = limits::BULK_RULE;
        let registers = &self.warps[at.w].registers;
        let bytes = op.bytes.map_or(0, |reg| registers.b32[usize::from(reg)][lane]);
        let address = (registers.lane(op.map.base, lane) as u64).wrapping_add(op.map.offset as u64);
        let side = |rows, from| GlobalSide {
            rows,
            bytes,
            from,
            align: 16,
            swizzle: Swizzle::None,
            element: op.element.unwrap_or(Element::U8),
            fill: if op.ignored.is_some() { Fill::Undefined } else { Fill::Zero },
            coordinates: SmallVec::new(),
            extents: SmallVec::new(),
            origin: None,
            map: None,
            lattice: None,
        };
        if let Some(beyond) = limits::bulk_bytes(bytes.into()) {
            return Err(self.beyond(at.site, beyond));
        }
        if op.kind == TmaKind::Forward {
            let from = self.shared_slot(at, lane, &op.map, false, bytes, 16)?;
            return Ok(side(smallvec![Rows::plain(bytes, None)], Some(from)));
        }
        if !address.is_multiple_of(16) {
            let what = format!("a bulk copy at {address:#x}");
            return Err(self.refused(at, "misaligned-address", what, rule, "Align the address to 16 bytes."));
        }
        // The first byte that is copied, and how many there are from there to the last.
        let (first, bytes_there) = match (op.mask, op.ignored) {
            (Some(reg), _) => {
                let mask = registers.b32[usize::from(reg)][lane] as u16;
                let first = mask.trailing_zeros();
                (first, bytes.saturating_sub(first + mask.leading_zeros()))
            }
            (_, Some(ends)) => {
                let [left, right] = ends.map(|reg| registers.b32[usize::from(reg)][lane]);
                if left.max(right) > 15 {
                    let what = format!("a bulk copy that ignores {left} bytes in front and {right} behind");
                    let rule = "At each end of the source 0 to 15 bytes can be ignored (PTX ISA 9.2, cp.async.bulk).";
                    return Err(self.refused(at, "bulk-size", what, rule, "Copy fewer bytes instead."));
                }
                (left, bytes.saturating_sub(left + right))
            }
            _ => (0, bytes),
        };
        if bytes_there == 0 {
            let none =
                if op.mask.is_some() { Rows { pitch: 16, ..Rows::plain(0, None) } } else { Rows::plain(bytes, None) };
            return Ok(side(smallvec![none], None));
        }
        let Some(place) = self.global.find(address.wrapping_add(first.into()), bytes_there.into()) else {
            let what = format!(
                "{} would copy {bytes_there} bytes at {address:#x}, outside of global memory: {}",
                self.thread_name(at.w, lane),
                self.global.nearest(address)
            );
            let rule = "Every access must lie within an allocation.";
            return Err(self.refused(at, "out-of-bounds", what, rule, "Check address and size."));
        };
        if op.kind == TmaKind::Load && self.options.judges() {
            self.inputs.read_otherwise(place.0);
        }
        let rows = match op.mask {
            Some(reg) => Rows::masked(bytes, self.warps[at.w].registers.b32[usize::from(reg)][lane] as u16, place),
            None => {
                let inside = Some((first, Runs::one(place.0, place.1, bytes_there)));
                smallvec![Rows { inside, ..Rows::plain(bytes, None) }]
            }
        };
        Ok(side(rows, None))
    }

    /// What a tensor copy means: a box of its map.
    pub fn tensor_box(&mut self, at: At, lane: usize, op: &TmaOp) -> Result<GlobalSide, Stop> {
        let registers = &self.warps[at.w].registers;
        let coordinates: SmallVec<[i32; 5]> =
            op.coordinates.iter().map(|&c| registers.b32[usize::from(c)][lane] as i32).collect();
        let (map, place) = self.tensor_map(at, lane, op)?;
        if op.four_rows {
            self.is_map_of_rows(at, &map)?;
        } else if map.dims.len() != coordinates.len() {
            let what = format!(
                "this copy has {}, its tensor map {}",
                counted(coordinates.len() as u64, "coordinate"),
                counted(map.dims.len() as u64, "dimension")
            );
            let rule = "A tensor copy has as many coordinates as its map has dimensions.";
            return Err(self.refused(at, "tensor-map", what, rule, "Use the map that was made for this copy."));
        }
        if let Some(refused) = self.packed_copy(at, op, &map, coordinates[0]) {
            return Err(refused);
        }
        if let TmaKind::Reduce(how) = op.kind {
            self.reduction_of(at, how, map.element)?;
        }
        self.box_begins_well(at, op, &map, &coordinates)?;
        if op.kind != TmaKind::Load && map.swizzle == Swizzle::B128Atom32Flip8 {
            return Err(self.refused(
                at,
                "tensor-map",
                "a store with the swizzle that flips 8 bytes".into(),
                "That swizzle is for loads only (PTX ISA, tensor swizzling modes).",
                "Use another swizzle.",
            ));
        }
        let mut extents = SmallVec::from_slice(&map.box_dims);
        let (rows, origin) = if op.four_rows {
            extents.resize(coordinates.len(), 1);
            (self.four_rows(at.site, &map, &coordinates)?, None)
        } else {
            (self.box_rows(at.site, &map, &coordinates)?, Origin::of(&map, &coordinates))
        };
        if op.kind == TmaKind::Load && self.options.judges() {
            self.inputs.load(&map, &coordinates, at.site);
        }
        Ok(GlobalSide {
            rows,
            bytes: map.box_bytes() * if op.four_rows { four_rows::ROWS } else { 1 },
            from: None,
            align: 128,
            swizzle: map.swizzle,
            element: map.element,
            fill: if map.fill_nan { Fill::Nan } else { Fill::Zero },
            extents,
            origin,
            map: place,
            lattice: Lattice::of(&map, &coordinates).filter(|_| !op.four_rows),
            coordinates,
        })
    }

    /// Whether a box begins where one may.
    fn box_begins_well(&self, at: At, op: &TmaOp, map: &TensorMap, coordinates: &[i32]) -> Result<(), Stop> {
        let first = i64::from(coordinates[0]) * i64::from(map.element.bits()) / 8;
        if first % 16 != 0 {
            let what =
                format!("the box begins {first} bytes into the innermost dimension (coordinate {})", coordinates[0]);
            return Err(self.refused(
                at,
                "tensor-coordinate",
                what,
                "A box begins on a multiple of 16 bytes of global memory; hardware raises an illegal instruction (PTX ISA, tensor bounding box).",
                "Let the innermost coordinate, times the bytes of an element, be a multiple of 16.",
            ));
        }
        let writes = matches!(op.kind, TmaKind::Store | TmaKind::Reduce(_));
        if writes && let Some(n) = coordinates.iter().position(|&c| c < 0) {
            let dimension = if op.four_rows { n.min(1) } else { n };
            return Err(self.refused(
                at,
                "tensor-coordinate",
                format!("a store of a box that begins at coordinate {} of dimension {dimension}", coordinates[n]),
                "A box that is stored begins at no negative coordinate, even if a load from there is right; hardware raises an illegal \
                 instruction (CUDA C++ Programming Guide, tensor memory access; measured on an H200).",
                "Begin the box at element 0 or later; it may end beyond the tensor.",
            ));
        }
        Ok(())
    }

    /// The tensor map that an operand points to: a parameter, or 128 bytes of global memory, and then where they lie.
    fn tensor_map(&mut self, at: At, lane: usize, op: &TmaOp) -> Result<(Arc<TensorMap>, Option<MapPlace>), Stop> {
        let base = self.warps[at.w].registers.lane(op.map.base, lane) as u64;
        let address = base.wrapping_add(op.map.offset as u64);
        let param = if op.map.base == Reg::Sink || address >> 32 == 0 {
            Some(address)
        } else {
            (address & !0xffff_ffff == PARAM_WINDOW).then_some(address & 0xffff_ffff)
        };
        let mut object = [0; MAP_BYTES];
        let place = if param.is_none() { self.global.find(address, MAP_BYTES as u64) } else { None };
        let found = match param {
            Some(offset) => {
                let end = offset.saturating_add(MAP_BYTES as u64) as usize;
                self.params.get(offset as usize..end).map(|bytes| object.copy_from_slice(bytes))
            }
            None => match place {
                Some((buffer, offset)) => {
                    let mut seen = Memory::undefined(MAP_BYTES);
                    self.outbox.copy(&self.global, buffer, offset, MAP_BYTES, &mut seen, 0);
                    object[..USED_BYTES].copy_from_slice(&seen.bytes[..USED_BYTES]);
                    let acquired = self.use_map(at, lane, buffer, offset);
                    let time = self.warps[at.w].fragments[at.f].ready_at;
                    let known = self.warps[at.w].views.of_others();
                    self.outbox.push(time, Item::Map { buffer, offset, site: at.site, known, acquired });
                    if let Some(lacking) = self.map_lacks(at, &seen, address) {
                        return Err(lacking);
                    }
                    Some(())
                }
                None => None,
            },
        };
        let rule = "A tensor copy takes the address of a tensor map: 128 bytes that cuTensorMapEncodeTiled wrote, in a parameter or in \
                    global memory, aligned to 64 (PTX ISA, tensor maps).";
        if found.is_none() || !address.is_multiple_of(64) {
            let what = format!("there is no tensor map at {address:#x}");
            return Err(Some(Box::new(self.problem(
                "tensor-map",
                at.site,
                what,
                rule,
                "Pass the address of the tensor map's parameter (mov, then cvta.param).".into(),
            ))));
        }
        if let Some((_, map)) = self.maps.iter().find(|(known, _)| *known == object) {
            return Ok((map.clone(), place));
        }
        let map = TensorMap::decode(&object).map_err(|why| {
            // A map that was made on the device has a place, one of the launch a parameter.
            let place = match place {
                Some((buffer, offset)) => self.global.buffers[buffer].describe(offset),
                None => format!("{address:#x}"),
            };
            let what = format!("what lies at {place} is no valid tensor map: {why}");
            Some(Box::new(self.problem(
                "tensor-map",
                at.site,
                what,
                rule,
                "Encode it with cuTensorMapEncodeTiled.".into(),
            )))
        })?;
        if let Some(what) = map.overlaps().filter(|_| self.options.judges()) {
            let help = match map.exchanged() {
                Some(other) => format!(
                    "If a row has {} elements, as the stride of dimension 1, {} bytes, says, exchange the sizes of dimensions 0 and {other}; if it has {}, let that stride \
                     be the bytes of so many.",
                    map.dims[other], map.strides[0], map.dims[0]
                ),
                None => "Give as the stride of dimension 1 the bytes of a whole row, with what lies between rows, and as that of each further one the bytes of \
                         all below it."
                    .into(),
            };
            let mut diagnostic = self.problem(
                "tensor-map-overlap",
                at.site,
                format!("elements of the tensor of this copy lie in the same bytes: {what}"),
                "A tensor map's strides lead from one index of a dimension to the next, in bytes (cuTensorMapEncodeTiled; PTX ISA 5.5.1). Shorter ones than \
                 what lies between are possible, as for windows of a signal, and seldom meant.",
                help,
            );
            diagnostic.severity = Severity::Note;
            self.findings.add(diagnostic);
        }
        if let Some(place) = place {
            self.check_made_map(at.site, &map, place);
        }
        let map = Arc::new(map);
        if self.maps.len() == MOST_MAPS {
            self.maps.clear();
        }
        self.maps.push((object, map.clone()));
        Ok((map, place))
    }

    /// A place in shared memory that an operand names, checked.
    pub fn shared_slot(
        &mut self,
        at: At,
        lane: usize,
        address: &Address,
        remote: bool,
        bytes: u32,
        align: u32,
    ) -> Result<Slot, Stop> {
        let own = self.warps[at.w].cta;
        let whole = (self.warps[at.w].registers.lane(address.base, lane) as u64).wrapping_add(address.offset as u64);
        let raw = whole as u32;
        let (rank, offset) = ((raw >> 24) as usize, raw & 0x00ff_ffff);
        let cta = if remote && address.base != Reg::Sink { rank } else { own };
        let end = self.ctas.get(cta).map_or(0, |c| c.shared.bytes.len() as u64);
        let low = rank == 0 && offset < RESERVED_SHARED;
        let foreign = !remote && address.base != Reg::Sink && rank != own && !low;
        if let Some(Elsewhere { whose, .. }) = self.not_shared(at.w, whole, remote) {
            return Err(Some(Box::new(self.problem(
                "bulk-shared-address",
                at.site,
                format!("the shared address {whole:#x} of this copy is none: it is {whose}"),
                SPACE_RULE,
                "Give it the shared address, `mov.u32 %r, tile;`, or convert a generic one with `cvta.to.shared.u64`; look whether source \
                 and destination have changed places."
                    .into(),
            ))));
        }
        let short = self
            .short_of_shared(u64::from(offset) + u64::from(bytes))
            .filter(|_| !foreign && offset.is_multiple_of(align));
        let what = if foreign {
            format!("it lies in CTA {rank} of the cluster, this form reaches the own CTA only")
        } else if cta >= self.ctas.len() {
            format!("it lies in CTA {cta} of the cluster, which has {}", counted(self.ctas.len() as u64, "CTA"))
        } else if !offset.is_multiple_of(align) {
            format!("it is no multiple of {align}")
        } else if offset < RESERVED_SHARED || u64::from(offset) + u64::from(bytes) > end {
            format!("its {bytes} bytes do not fit into the CTA's shared memory, which ends at {end:#x}")
        } else {
            return Ok(Slot { cta, offset });
        };
        let op = self.kernel.code.iter().find(|inst| inst.site == at.site).map(|inst| &inst.op);
        let (noun, rule) = match op {
            Some(Op::MatrixLoad { .. } | Op::MatrixStore { .. }) => (
                "row",
                "A row of a matrix has 16 bytes of the own CTA's shared memory, and begins at a multiple of 16 (PTX ISA, ldmatrix, stmatrix).",
            ),
            Some(Op::AsyncStore(_)) => (
                "store",
                "st.async and red.async need addresses that are aligned to all the bytes they move (PTX ISA, st.async; 6.4.1).",
            ),
            Some(Op::AsyncCopy { .. }) => (
                "copy",
                "cp.async copies 4, 8 or 16 bytes, and both addresses are multiples of as many (PTX ISA, cp.async).",
            ),
            Some(Op::TryCancel { .. }) => (
                "response",
                "A response has 16 bytes, and begins at a multiple of 16 (PTX ISA, clusterlaunchcontrol.try_cancel).",
            ),
            _ => (
                "copy",
                "Tensor copies need 128-byte aligned shared memory, plain bulk copies 16-byte aligned (PTX ISA, cp.async.bulk.tensor).",
            ),
        };
        let code = match noun {
            "row" if !foreign && !offset.is_multiple_of(align) => "misaligned-address",
            "row" => "out-of-bounds",
            _ => "bulk-shared-address",
        };
        Err(Some(Box::new(self.problem(
            code,
            at.site,
            format!("the shared address {raw:#x} of this {noun}: {what}"),
            rule,
            short.unwrap_or_else(|| match align {
                128 => "Align the buffer, and check its size: a box begins at a multiple of 128 bytes, a tile with the 128-byte swizzle that an MMA reads at one \
                        of 1024.",
                _ => "Align the buffer, and check its size.",
            }
            .into()),
        ))))
    }

    /// The mbarrier that each destination of a load counts its bytes on.
    pub fn copy_barriers(
        &mut self,
        at: At,
        lane: usize,
        barrier: &Address,
        shared: &[Slot],
        op: &TmaOp,
    ) -> Result<SmallVec<[u32; 2]>, Stop> {
        let one = At { mask: 1 << lane, ..at };
        // With .cta_group::2 the address says which CTA of the pair, also where the destination is .shared::cta: ptxas makes the same
        // instruction of both.
        let Some(&(named, _)) = self.barrier_addresses(one, barrier, op.remote || op.pair)?.first() else {
            return Ok(smallvec![]);
        };
        let mut list = smallvec![];
        for slot in shared {
            let cta = match (op.pair, op.targets.is_some()) {
                // The barrier of the destination or of its peer, whichever has the parity of the one named.
                (true, true) => slot.cta & !1 | named.cta & 1,
                (false, true) => slot.cta,
                _ => named.cta,
            };
            let allowed = if op.pair { cta & !1 == slot.cta & !1 } else { cta == slot.cta };
            if !allowed {
                return Err(Some(Box::new(self.problem(
                    "copy-barrier",
                    at.site,
                    format!("the data goes to CTA {}, the mbarrier lies in CTA {cta}", slot.cta),
                    "The mbarrier of a tensor copy lies in the CTA that gets the data; with .cta_group::2 it may lie in that CTA's pair peer (PTX ISA, cp.async.bulk.tensor).",
                    "Name the destination CTA's barrier, or use .cta_group::2 with a barrier of the pair.".into(),
                ))));
            }
            list.push(self.barrier(at.w, Slot { cta, ..named }, at.site, "named by a copy")?);
        }
        Ok(list)
    }
}
