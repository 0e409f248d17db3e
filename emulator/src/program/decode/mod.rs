//! One instruction, from its text to an [`Op`]. Each family has its file; this one holds what they share.

mod arithmetic;
mod async_store;
mod bulk;
mod carry;
mod control;
mod derived;
mod exists;
mod forms;
mod hints;
mod isa;
mod lacking;
mod memory;
mod nearest;
mod places;
mod policy;
mod spaces;
pub(super) mod special;
mod spelling;
mod synchronisation;
mod tensor;
mod tensor_forms;
mod tensor_map;
mod type_table;
pub(super) mod types;
mod unknown;
mod unsaid;
mod warp_matrix;
mod wgmma;

use super::Bad;
use super::lower::{Binding, Lowering, not_modelled, wrong};
use super::op::{Address, Op, Reg, Space};
use crate::syntax::ast::{Instruction, Operand};

pub use forms::FORMS;
use special::special;
pub use special::special_registers;
pub use types::Type;

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

/// The modifiers of an opcode in the order of the form that it is of; `None`: it is of none.
pub(super) type Spelling = Option<Box<str>>;

pub(super) fn decode(l: &mut Lowering, inst: &Instruction) -> Result<Decoded, Bad> {
    let spelling = match l.spellings.get(&inst.opcode) {
        Some(known) => known.clone(),
        None => {
            let parts: Vec<&str> = inst.opcode.split('.').collect();
            let found: Spelling = spelling::of_a_form(&parts).map(|parts| parts.join(".").into());
            l.spellings.insert(inst.opcode.clone(), found.clone());
            found
        }
    };
    // What is of no form may have an error that says more than that.
    let opcode = spelling.as_deref().unwrap_or(&inst.opcode);
    let parts: Vec<&str> = opcode.split('.').collect();
    let (base, mods) = (parts[0], &parts[1..]);
    let o = Operands { opcode: &inst.opcode, list: &inst.operands };
    let families = [
        carry::decode,
        arithmetic::decode,
        derived::decode,
        policy::decode,
        memory::decode,
        async_store::decode,
        control::decode,
        synchronisation::decode,
        bulk::decode,
        tensor::decode,
        warp_matrix::decode,
        tensor_map::decode,
        wgmma::decode,
    ];
    for family in families {
        if let Some(decoded) = family(l, base, mods, &o)? {
            if spelling.is_none() {
                break;
            }
            types::check(l, inst, base, mods)?;
            places::check(l, inst, base, mods)?;
            spaces::check(l, inst, base, mods)?;
            return Ok(decoded);
        }
    }
    let word = isa::no_ptx(&inst.opcode);
    // All its words are of PTX.
    if matches!(word, None | Some(isa::NoPtx::Form(_)))
        && let Some(bad) = lacking::lacks(l, &o)
    {
        return Err(bad);
    }
    if let Some(word) = word {
        return Err(unknown::no_ptx(&inst.opcode, word));
    }
    let mut bad = not_modelled(&format!("`{}`", inst.opcode), "");
    bad.help = nearest::advice(&inst.opcode);
    Err(bad)
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

impl Lowering {
    /// The register that a name stands for. A special register is read into a fresh one first.
    fn named(&mut self, name: &str, bytes: u32) -> Result<Reg, Bad> {
        if let Some(which) = special(name) {
            let d = self.register(if bytes == 8 { "b64" } else { "b32" })?;
            self.emit(Op::Special { d, which }, super::op::TRUE, false, vec![], vec![d]);
            return Ok(d);
        }
        match self.lookup(name) {
            // The lanes of a warp (PTX ISA 4.4, predefined constants).
            None if name == "WARP_SZ" => self.constant(32, bytes),
            Some(Binding::Register(reg, _)) => Ok(*reg),
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
            Some(Binding::Vector(_)) => Err(wrong(
                format!("`{name}` is a vector of registers"),
                format!("Name one of its elements: `{name}.x`."),
            )),
            Some(Binding::Other(what)) => Err(not_modelled(what, "Use registers, parameters or shared memory.")),
            None => Err(self.undeclared(name)),
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
            Operand::Float64(bits) => {
                let value = f64::from_bits(*bits);
                Err(wrong(
                    format!("expected an integer, found a floating-point constant: {value:?}"),
                    format!(
                        "Write an integer; or, for the bits of that number in FP32, `{:#010x}`.",
                        (value as f32).to_bits()
                    ),
                ))
            }
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

    /// A register of 128 bits, to read or to write; constants have 64 at most.
    fn register128(&self, operand: &Operand) -> Result<Reg, Bad> {
        match operand {
            Operand::Name(name) => match self.lookup(name) {
                Some(Binding::Register(reg @ Reg::B128(_), _)) => Ok(*reg),
                _ => Err(width(name, 128)),
            },
            other => Err(wrong(
                format!("expected a 128-bit register, found {}", describe(other)),
                "Move its halves to a `.b128` register first: `mov.b128 %q, {%low, %high}`.",
            )),
        }
    }

    fn destination(&mut self, operand: &Operand) -> Result<Reg, Bad> {
        match operand {
            Operand::Sink => Ok(Reg::Sink),
            Operand::Name(name) => match self.lookup(name) {
                Some(Binding::Register(reg, _)) => Ok(*reg),
                Some(_) => Err(wrong(format!("`{name}` cannot be written"), "The destination must be a register.")),
                None => Err(self.undeclared(name)),
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

    /// A destination that may be discarded: what is written then goes to a register that nothing reads.
    fn destination32_or_none(&mut self, operand: &Operand) -> Result<u16, Bad> {
        if *operand != Operand::Sink {
            return self.destination32(operand);
        }
        match self.register("b32")? {
            Reg::B32(r) => Ok(r),
            _ => Err(wrong("there is no register left", "Use fewer.")),
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
                Some(Binding::Register(reg @ (Reg::B32(_) | Reg::B64(_)), _)) => {
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
                None => Err(self.undeclared(name)),
            },
            other => Err(wrong(format!("{} is not an address", describe(other)), "Use a register or a variable.")),
        }
    }

    /// Whether a name is that of a register of fewer than 32 bits.
    fn is_narrow(&self, name: &str) -> bool {
        matches!(self.lookup(name), Some(Binding::Register(_, ty)) if (1..4).contains(&ty.bytes))
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
        if named == Space::Param && space != Space::Param {
            let variable = self.variable_name(operand);
            return Err(wrong(
                format!("{variable} is a parameter: its name is where its value lies, and not what it points to"),
                format!(
                    "Read it first, `ld.param.u64 %rd, [{}];`, and use `[%rd]` in `{opcode}`.",
                    variable.trim_matches('`')
                ),
            ));
        }
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
