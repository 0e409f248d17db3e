//! One instruction, from its text to an [`Op`]. Each family has its file; this one holds what they share.

mod arithmetic;
mod bulk;
mod control;
mod memory;
mod synchronisation;
mod tensor;

use super::Bad;
use super::lower::{Binding, Lowering, not_modelled, undeclared, wrong};
use super::op::{Address, Op, Reg, Space, Special};
use crate::syntax::ast::{Instruction, Operand};

/// The forms that are modelled, as `emulate --list-instructions` prints them: `{a|b}` is a choice, `?` makes a modifier
/// optional.
pub const FORMS: &[&str] = &[
    // tensor memory and tensor core
    "tcgen05.alloc.cta_group::{1|2}.sync.aligned.shared::cta?.b32",
    "tcgen05.dealloc.cta_group::{1|2}.sync.aligned.b32",
    "tcgen05.relinquish_alloc_permit.cta_group::{1|2}.sync.aligned",
    "tcgen05.ld.sync.aligned.{32x32b|16x64b|16x128b|16x256b|16x32bx2}.xN.b32",
    "tcgen05.ld.sync.aligned.{32x32b|16x64b|16x128b|16x256b}.xN.pack::16b.b32",
    "tcgen05.st.sync.aligned.{32x32b|16x64b|16x128b|16x256b|16x32bx2}.xN.b32",
    "tcgen05.wait::{ld|st}.sync.aligned",
    "tcgen05.mma.cta_group::{1|2}.kind::f16{.collector::a::{discard|lastuse|fill|use}}?",
    "tcgen05.commit.cta_group::{1|2}.mbarrier::arrive::one{.shared::cluster}?{.multicast::cluster}?.b64",
    "tcgen05.fence::{before|after}_thread_sync",
    // barriers and fences
    "mbarrier.init.shared{::cta}?.b64",
    "mbarrier.inval.shared{::cta}?.b64",
    "mbarrier.arrive{.expect_tx}?{.release|.relaxed}?{.cta|.cluster}?{.shared{::cta|::cluster}?}?.b64",
    "mbarrier.expect_tx{.relaxed}?{.cta|.cluster}?{.shared{::cta|::cluster}?}?.b64",
    "mbarrier.{try_wait|test_wait}.parity{.acquire|.relaxed}?{.cta|.cluster}?{.shared{::cta}?}?.b64",
    "bar{.cta}?.{sync|arrive}",
    "barrier{.cta}?.{sync|arrive}{.aligned}?",
    "barrier.cluster.arrive{.release|.relaxed}?{.aligned}?",
    "barrier.cluster.wait{.acquire}?{.aligned}?",
    "mapa{.shared::cluster}?.{u32|u64}",
    "getctarank{.shared::cluster}?.{u32|u64}",
    "setmaxnreg.{inc|dec}.sync.aligned.u32",
    "griddepcontrol.{wait|launch_dependents}",
    "bar.warp.sync",
    "fence.proxy.async{.shared::cta|.global|.shared::cluster}?",
    "fence.mbarrier_init.release.cluster",
    "fence.{acq_rel|sc}.{cta|cluster|gpu|sys}",
    "membar.{cta|gl|sys}",
    // copies by the TMA engine
    "cp.async.bulk.tensor.Nd.{shared::cta|shared::cluster}.global{.tile}?.mbarrier::complete_tx::bytes{.multicast::cluster}?{.cta_group::{1|2}}?{.L2::cache_hint}?",
    "cp.async.bulk.tensor.Nd.global.shared::cta{.tile}?.bulk_group{.L2::cache_hint}?",
    "cp.reduce.async.bulk.tensor.Nd.global.shared::cta.{add|min|max|inc|dec|and|or|xor}{.tile}?.bulk_group{.L2::cache_hint}?",
    "cp.async.bulk.prefetch.tensor.Nd.L2.global{.tile}?{.L2::cache_hint}?",
    "cp.async.bulk.{shared::cta|shared::cluster}.global.mbarrier::complete_tx::bytes{.multicast::cluster}?{.L2::cache_hint}?",
    "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes",
    "cp.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}?",
    "cp.async.bulk.commit_group",
    "cp.async.bulk.wait_group{.read}?",
    "prefetch{.param}?.tensormap",
    "prefetch{.global|.local}?.{L1|L2}",
    // memory
    "ld{.weak|.volatile|{.relaxed|.acquire}{.cta|.cluster|.gpu|.sys}}?{.global|.const|.shared{::cta|::cluster}?|.local|.param}?{.nc}?{.v2|.v4|.v8}?.type",
    "st{.weak|.volatile|{.relaxed|.release}{.cta|.cluster|.gpu|.sys}}?{.global|.shared{::cta|::cluster}?|.local}?{.v2|.v4|.v8}?.type",
    "{atom|red}{.relaxed|.acquire|.release|.acq_rel}?{.cta|.cluster|.gpu|.sys}?{.global|.shared{::cta|::cluster}?}?.{add|min|max|and|or|xor|inc|dec}.type",
    "atom{.relaxed|.acquire|.release|.acq_rel}?{.cta|.cluster|.gpu|.sys}?{.global|.shared{::cta|::cluster}?}?.{exch|cas}.type",
    "createpolicy.fractional.L2::hint.b64",
    "cp.async.{ca|cg}.shared{::cta}?.global{.L2::hint}?",
    "cp.async.{commit_group|wait_group|wait_all}",
    "{ldmatrix|stmatrix}.sync.aligned.m8n8.{x1|x2|x4}{.trans}?.shared{::cta}?.b16",
    "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes{.multicast::cluster::all}?.b128",
    "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128",
    "clusterlaunchcontrol.query_cancel.get_first_ctaid{::{x|y|z}|.v4}?.b32.b128",
    "cvta{.to}?.{global|const|local|shared|shared::cta|shared::cluster|param}.u64",
    // lanes
    "elect.sync",
    "activemask.b32",
    "shfl.sync.{up|down|bfly|idx}.b32",
    "vote.sync.{all|any|uni}.pred",
    "vote.sync.ballot.b32",
    // control
    "bra{.uni}?",
    "brx.idx",
    "call{.uni}?",
    "ret{.uni}?",
    "exit",
    "trap",
    "nanosleep.u32",
    // arithmetic
    "{add|sub}.{s16|u16|s32|u32|s64|u64}",
    "{add|sub|mul}{.rn}?{.ftz}?.f32",
    "{add|sub|mul}{.rn}?.f64",
    "fma.rn{.ftz}?.f32",
    "fma.rn.f64",
    "mul.{lo|hi|wide}.type",
    "mad.{lo|hi|wide}.type",
    "{div|rem}.{u16|s16|s32|u32|s64|u64}",
    "div.{rn|full|approx}{.ftz}?.f32",
    "{add|sub|mul}{.rn}?{.ftz}?.f32x2",
    "fma.rn{.ftz}?.f32x2",
    "mul.rz{.ftz}?.{f32|f32x2}",
    "{add|sub|mul}{.rn}?.{f16|f16x2|bf16|bf16x2}",
    "fma.rn{.relu}?.{f16|f16x2|bf16|bf16x2}",
    "{ex2|lg2|rcp|sqrt|rsqrt}.approx{.ftz}?.f32",
    "{rcp|sqrt}.rn{.ftz}?.f32",
    "tanh.approx.f32",
    "{neg|abs}.type",
    "{min|max}{.NaN}?.type",
    "{and|or|xor|not}.{pred|b16|b32|b64}",
    "{shl|shr}.type",
    "bfe.{u32|s32}",
    "prmt.b32",
    "lop3.b32",
    "{popc|clz|brev}.{b32|b64}",
    "shf.{l|r}.{wrap|clamp}.b32",
    "setp.op{.and|.or|.xor}?.type",
    "selp.type",
    "mov.type",
    "cvt{.rn|.rni|.rzi|.rmi|.rpi}?.to.from",
    "cvt.rn{.relu}?.{f16x2|bf16x2}.f32",
];

/// A decoded instruction.
pub(super) struct Decoded {
    pub op: Op,
    pub uses: Vec<Reg>,
    pub defs: Vec<Reg>,
}

impl Decoded {
    fn new(op: Op, uses: Vec<Reg>, defs: Vec<Reg>) -> Decoded {
        Decoded { op, uses, defs }
    }
}

/// What every family's decoder gives: `None` when the opcode is not of this family.
type Family = Result<Option<Decoded>, Bad>;

pub(super) fn decode(l: &mut Lowering, inst: &Instruction) -> Result<Decoded, Bad> {
    let parts: Vec<&str> = inst.opcode.split('.').collect();
    let (base, mods) = (parts[0], &parts[1..]);
    let o = Operands { opcode: &inst.opcode, list: &inst.operands };
    let families =
        [arithmetic::decode, memory::decode, control::decode, synchronisation::decode, bulk::decode, tensor::decode];
    for family in families {
        if let Some(decoded) = family(l, base, mods, &o)? {
            return Ok(decoded);
        }
    }
    let mut bad = not_modelled(&format!("`{}`", inst.opcode), "");
    bad.help = match nearest(&inst.opcode) {
        Some(form) => format!("The nearest form that is modelled: `{form}`."),
        None => "No form of this opcode is modelled.".into(),
    };
    Err(bad)
}

/// The modelled form that begins most like this opcode.
fn nearest(opcode: &str) -> Option<&'static str> {
    let shared = |form: &str| opcode.bytes().zip(form.bytes()).take_while(|(a, b)| a == b).count();
    let best = FORMS.iter().copied().max_by_key(|form| shared(form))?;
    (shared(best) >= 3).then_some(best)
}

/// The operands of one instruction.
pub(super) struct Operands<'a> {
    opcode: &'a str,
    list: &'a [Operand],
}

impl Operands<'_> {
    fn len(&self) -> usize {
        self.list.len()
    }

    fn expect(&self, counts: std::ops::RangeInclusive<usize>) -> Result<(), Bad> {
        if counts.contains(&self.len()) {
            return Ok(());
        }
        let (low, high) = (counts.start(), counts.end());
        let wanted = if low == high { low.to_string() } else { format!("{low} to {high}") };
        Err(wrong(
            format!("`{}` takes {wanted} operands, found {}", self.opcode, self.len()),
            "Give it the operands that the PTX ISA lists for this form.",
        ))
    }

    fn get(&self, n: usize) -> Result<&Operand, Bad> {
        self.list
            .get(n)
            .ok_or_else(|| wrong(format!("`{}` lacks its operand {}", self.opcode, n + 1), "Add the missing operand."))
    }
}

/// How messages call an operand.
pub(super) fn describe(operand: &Operand) -> String {
    match operand {
        Operand::Name(name) => format!("`{name}`"),
        Operand::Integer(value) => format!("the constant {value}"),
        Operand::Float32(_) | Operand::Float64(_) => "a floating-point constant".into(),
        Operand::Sink => "`_`".into(),
        Operand::Not(name) => format!("`!{name}`"),
        Operand::Pair(..) => "a pair `a|b`".into(),
        Operand::Vector(_) => "a vector `{…}`".into(),
        Operand::Offset(name, offset) => format!("`{name}{offset:+}`"),
        Operand::Memory(..) => "a memory operand `[…]`".into(),
        Operand::List(_) => "a list `(…)`".into(),
        Operand::Generic(name, _) => format!("`generic({name})`"),
        Operand::Masked(_, name, _) => format!("a byte of `{name}`"),
    }
}

/// The special register of this name.
fn special(name: &str) -> Option<Special> {
    let (base, axis) = match name.rsplit_once('.') {
        Some((base, "x")) => (base, 0),
        Some((base, "y")) => (base, 1),
        Some((base, "z")) => (base, 2),
        Some((base, "w")) => (base, 3),
        Some(_) => return None,
        None => (name, u8::MAX),
    };
    if axis != u8::MAX {
        return Some(match base {
            "%tid" => Special::Tid(axis),
            "%ntid" => Special::Ntid(axis),
            "%ctaid" => Special::Ctaid(axis),
            "%nctaid" => Special::Nctaid(axis),
            "%clusterid" => Special::ClusterId(axis),
            "%nclusterid" => Special::NclusterId(axis),
            "%cluster_ctaid" => Special::ClusterCtaid(axis),
            "%cluster_nctaid" => Special::ClusterNctaid(axis),
            _ => return None,
        });
    }
    Some(match base {
        "%laneid" => Special::Lane,
        "%warpid" => Special::Warp,
        "%nwarpid" => Special::Nwarp,
        "%cluster_ctarank" => Special::ClusterRank,
        "%cluster_nctarank" => Special::ClusterNrank,
        "%smid" => Special::Sm,
        "%nsmid" => Special::Nsm,
        "%clock" | "%clock64" => Special::Clock,
        "%dynamic_smem_size" => Special::DynamicShared,
        "%lanemask_eq" => Special::LaneMask(0),
        "%lanemask_le" => Special::LaneMask(1),
        "%lanemask_lt" => Special::LaneMask(2),
        "%lanemask_ge" => Special::LaneMask(3),
        "%lanemask_gt" => Special::LaneMask(4),
        _ => return None,
    })
}

impl Lowering {
    /// The register that a name stands for. A special register is read into a fresh one first.
    fn named(&mut self, name: &str, bytes: u32) -> Result<Reg, Bad> {
        if let Some(which) = special(name) {
            let d = self.register(if bytes == 8 { "b64" } else { "b32" })?;
            self.emit(Op::Special { d, which }, super::op::TRUE, false, vec![], vec![d]);
            return Ok(d);
        }
        match self.lookup(name) {
            Some(Binding::Register(reg)) => Ok(*reg),
            Some(Binding::Shared(offset)) => {
                let offset = *offset;
                self.shared_address(offset, bytes)
            }
            Some(Binding::Label(_) | Binding::Table(_)) => {
                Err(wrong(format!("`{name}` is a label"), "Use a register here."))
            }
            Some(Binding::Local(offset)) => {
                let offset = *offset;
                self.constant(offset.into(), bytes)
            }
            Some(Binding::Global(address)) => {
                let address = *address;
                self.constant(address, bytes)
            }
            Some(Binding::Param(_) | Binding::Argument(..)) => {
                Err(wrong(format!("`{name}` is a parameter"), "Read it with `ld.param` first."))
            }
            Some(Binding::Other(what)) => Err(not_modelled(what, "Use registers, parameters or shared memory.")),
            None if name.starts_with('%') && !name[1..].starts_with(['r', 'f', 'p', 'h', 'd', 's', 'b']) => {
                Err(not_modelled(&format!("the special register `{name}`"), "See `--list-instructions`."))
            }
            None => Err(undeclared(name)),
        }
    }

    /// A register of 4 or 8 bytes that holds a constant.
    fn constant(&mut self, value: u64, bytes: u32) -> Result<Reg, Bad> {
        if bytes == 8 {
            return self.constant64(value).map(Reg::B64);
        }
        match u32::try_from(value) {
            Ok(value) => self.constant32(value).map(Reg::B32),
            Err(_) => Err(wrong("an address in global memory takes 64 bits", "Use a 64-bit register.")),
        }
    }

    fn shared_address(&mut self, offset: u32, bytes: u32) -> Result<Reg, Bad> {
        let d = self.register(if bytes == 8 { "b64" } else { "b32" })?;
        self.emit(Op::SharedAddress { d, offset }, super::op::TRUE, false, vec![], vec![d]);
        Ok(d)
    }

    /// A source operand of `bytes` 1 … 4; `float` decides how a decimal constant is encoded.
    fn source32(&mut self, operand: &Operand, float: bool) -> Result<u16, Bad> {
        match operand {
            Operand::Integer(value) if float => self.constant32((*value as f32).to_bits()),
            Operand::Integer(value) => self.constant32(*value as u32),
            Operand::Float32(bits) => self.constant32(*bits),
            Operand::Float64(bits) if float => self.constant32((f64::from_bits(*bits) as f32).to_bits()),
            Operand::Name(name) => match self.named(name, 4)? {
                Reg::B32(r) => Ok(r),
                _ => Err(width(name, 32)),
            },
            Operand::Offset(name, add) => match self.lookup(name) {
                Some(Binding::Shared(offset)) => {
                    let offset = offset.wrapping_add(*add as u32);
                    match self.shared_address(offset, 4)? {
                        Reg::B32(r) => Ok(r),
                        _ => Err(width(name, 32)),
                    }
                }
                _ => Err(wrong(
                    format!("`{name}{add:+}` is not the address of a shared variable"),
                    "Add in a separate instruction.",
                )),
            },
            other => Err(wrong(
                format!("expected a 32-bit source, found {}", describe(other)),
                "Use a register or a constant.",
            )),
        }
    }

    /// A source operand of 64 bits.
    fn source64(&mut self, operand: &Operand) -> Result<u16, Bad> {
        match operand {
            Operand::Integer(value) => self.constant64(*value as u64),
            Operand::Float64(bits) => self.constant64(*bits),
            Operand::Name(name) => match self.named(name, 8)? {
                Reg::B64(r) => Ok(r),
                _ => Err(width(name, 64)),
            },
            other => Err(wrong(
                format!("expected a 64-bit source, found {}", describe(other)),
                "Use a register or a constant.",
            )),
        }
    }

    /// A source of this many bytes, as a register.
    fn source(&mut self, operand: &Operand, bytes: u32, float: bool) -> Result<Reg, Bad> {
        if bytes == 8 { self.source64(operand).map(Reg::B64) } else { self.source32(operand, float).map(Reg::B32) }
    }

    fn destination(&mut self, operand: &Operand) -> Result<Reg, Bad> {
        match operand {
            Operand::Sink => Ok(Reg::Sink),
            Operand::Name(name) => match self.lookup(name) {
                Some(Binding::Register(reg)) => Ok(*reg),
                Some(_) => Err(wrong(format!("`{name}` cannot be written"), "The destination must be a register.")),
                None => Err(undeclared(name)),
            },
            other => {
                Err(wrong(format!("expected a destination register, found {}", describe(other)), "Use a register."))
            }
        }
    }

    fn destination32(&mut self, operand: &Operand) -> Result<u16, Bad> {
        match self.destination(operand)? {
            Reg::B32(r) => Ok(r),
            _ => Err(wrong(
                format!("{} is not a 32-bit register", describe(operand)),
                "Match the register's width to the instruction's type.",
            )),
        }
    }

    fn destination64(&mut self, operand: &Operand) -> Result<u16, Bad> {
        match self.destination(operand)? {
            Reg::B64(r) => Ok(r),
            _ => Err(wrong(
                format!("{} is not a 64-bit register", describe(operand)),
                "Match the register's width to the instruction's type.",
            )),
        }
    }

    fn destination_predicate(&mut self, operand: &Operand) -> Result<u16, Bad> {
        match self.destination(operand)? {
            Reg::Pred(r) => Ok(r),
            _ => Err(wrong(format!("{} is not a predicate", describe(operand)), "Declare it with `.reg .pred`.")),
        }
    }

    /// `[base + offset]`, and the register it uses.
    fn address(&mut self, operand: &Operand) -> Result<Address, Bad> {
        let Operand::Memory(base, offset, rest) = operand else {
            return Err(wrong(
                format!("expected a memory operand `[…]`, found {}", describe(operand)),
                "Put the address in brackets.",
            ));
        };
        if !rest.is_empty() {
            return Err(wrong("this memory operand has coordinates", "Only tensor copies take `[map, {…}]`."));
        }
        match &**base {
            Operand::Integer(value) => Ok(Address { base: Reg::Sink, offset: value.wrapping_add(*offset) }),
            Operand::Name(name) => match self.lookup(name) {
                Some(Binding::Register(reg @ (Reg::B32(_) | Reg::B64(_)))) => {
                    Ok(Address { base: *reg, offset: *offset })
                }
                Some(Binding::Shared(at) | Binding::Param(at)) => {
                    Ok(Address { base: Reg::Sink, offset: i64::from(*at).wrapping_add(*offset) })
                }
                Some(Binding::Local(at) | Binding::Argument(at, _)) => {
                    Ok(Address { base: Reg::Sink, offset: i64::from(*at).wrapping_add(*offset) })
                }
                Some(Binding::Global(at)) => {
                    Ok(Address { base: Reg::Sink, offset: (*at as i64).wrapping_add(*offset) })
                }
                Some(Binding::Other(what)) => Err(not_modelled(what, "Use global or shared memory.")),
                Some(_) => {
                    Err(wrong(format!("`{name}` is not an address"), "Use a 32- or 64-bit register, or a variable."))
                }
                None => Err(undeclared(name)),
            },
            other => Err(wrong(format!("{} is not an address", describe(other)), "Use a register or a variable.")),
        }
    }

    /// The space of the variable that a memory operand names, if it names one.
    fn named_space(&self, operand: &Operand) -> Option<Space> {
        let Operand::Memory(base, ..) = operand else { return None };
        let Operand::Name(name) = &**base else { return None };
        match self.lookup(name)? {
            Binding::Shared(_) => Some(Space::Shared),
            Binding::Local(_) => Some(Space::Local),
            Binding::Param(_) => Some(Space::Param),
            Binding::Argument(..) => Some(Space::Local),
            Binding::Global(_) => Some(Space::Global),
            _ => None,
        }
    }

    /// A variable's name is an offset in the window of its space: another space would read it as something else. The
    /// address of a module variable is the same in the generic space.
    fn check_space(&self, operand: &Operand, space: Space, opcode: &str) -> Result<(), Bad> {
        let named = self.named_space(operand);
        let fits = match (named, space) {
            (None, _) | (Some(Space::Global), Space::Generic) | (Some(Space::Shared), Space::SharedCluster) => true,
            (Some(named), space) => named == space,
        };
        if fits {
            return Ok(());
        }
        let Some(named) = named else { return Ok(()) };
        let (kind, name) = match named {
            Space::Shared => ("shared variable", "shared"),
            Space::Local => ("local variable", "local"),
            Space::Param => ("parameter", "param"),
            _ => ("global variable", "global"),
        };
        Err(wrong(
            format!("{} is a {kind}, but `{opcode}` takes an address of another space", self.variable_name(operand)),
            format!("Add `.{name}`, or convert the address with `cvta.{name}`."),
        ))
    }

    fn variable_name(&self, operand: &Operand) -> String {
        match operand {
            Operand::Memory(base, ..) => describe(base),
            other => describe(other),
        }
    }
}

fn width(name: &str, bits: u32) -> Bad {
    wrong(format!("`{name}` is not a {bits}-bit register"), "Match the register's width to the instruction's type.")
}

/// The register of an address as an instruction's source.
fn base(address: &Address) -> Vec<Reg> {
    if address.base == Reg::Sink { vec![] } else { vec![address.base] }
}
