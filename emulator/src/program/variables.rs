//! Where variables lie: registers, shared and local variables of a kernel, `.global` and `.const` variables of the module.

use super::decode::types;
use super::layout::{layout, next_multiple, type_bytes};
use super::lower::{BY_NAME, Binding, Lowering, not_modelled, wrong};
use super::op::Reg;
use super::registers::Plan;
use super::{Bad, SharedVariable};
use crate::syntax::ast::{self, Module, Operand, Span, Statement};
use std::collections::HashMap;

/// A `.global` or `.const` variable of the module: global memory that each launch begins with.
#[derive(Debug)]
pub(crate) struct Variable {
    /// What messages call it.
    pub name: String,
    /// Its address, in the window of its space and as a generic address.
    pub base: u64,
    /// What its initialiser gives; zeros without one (PTX ISA 5.4.4).
    pub content: Vec<u8>,
    pub constant: bool,
}

/// Where the module's variables begin, and what begins with each.
const FIRST: u64 = 0x7fe0_0000_0000;
const STEP: u64 = 1 << 16;
/// Bytes of all variables of a module together.
const MOST: u64 = 1 << 28;
/// Bytes of local memory a thread (the hardware has 512 KiB; nobody who wants speed needs more than this).
const MOST_LOCAL: u32 = 1 << 16;

/// Lays out the module's own global memory.
pub(super) fn module_variables(module: &Module) -> (Vec<Variable>, Vec<(Span, Bad)>) {
    let mut errors = Vec::new();
    let mut list: Vec<Variable> = Vec::new();
    let mut addresses = HashMap::new();
    let mut placed = Vec::new();
    let (mut base, mut total) = (FIRST, 0u64);
    for v in &module.variables {
        // ptxas says so of each: with the ABI, these belong to a function.
        if matches!(v.space.as_str(), "reg" | "local" | "param") {
            errors.push((
                v.span,
                wrong(
                    format!("`{}` is a `.{}` variable of the module", v.name, v.space),
                    "Declare it in the function that uses it; the module has variables in `.global`, `.const` and `.shared`.",
                ),
            ));
            continue;
        }
        let here = matches!(v.space.as_str(), "global" | "const") && !v.linkage.iter().any(|l| l == ".extern");
        if !here {
            continue;
        }
        match layout(v) {
            Ok((bytes, align)) => {
                total += u64::from(bytes);
                if total > MOST {
                    errors.push((v.span, not_modelled("more than 256 MiB of module variables", "Use buffers.")));
                    break;
                }
                base = base.next_multiple_of(u64::from(align).max(STEP));
                addresses.insert(v.name.as_str(), base);
                placed.push((v, base, bytes));
                base += u64::from(bytes) + STEP;
            }
            Err(bad) => errors.push((v.span, bad)),
        }
    }
    for (v, base, bytes) in placed {
        // With a value that is refused it is declared all the same.
        let content = content(v, bytes as usize, &addresses).unwrap_or_else(|bad| {
            errors.push((v.span, function_named(module, v).unwrap_or(bad)));
            Vec::new()
        });
        list.push(Variable { name: v.name.clone(), base, content, constant: v.space == "const" });
    }
    (list, errors)
}

/// What is said of a table of functions.
fn function_named(module: &Module, v: &ast::Variable) -> Option<Bad> {
    let function = v.initial.iter().find_map(|value| match value {
        Operand::Name(name) => module.functions.iter().find(|f| f.name == *name),
        _ => None,
    })?;
    Some(not_modelled(&format!("an initialiser with the address of the function `{}`", function.name), BY_NAME))
}

fn content(v: &ast::Variable, bytes: usize, addresses: &HashMap<&str, u64>) -> Result<Vec<u8>, Bad> {
    let each = type_bytes(&v.ty).unwrap_or(1) as usize;
    let mut content = vec![0; bytes];
    let float = v.ty.starts_with('f');
    let address = |name: &str, add: i64| match addresses.get(name) {
        Some(base) => Ok(base.wrapping_add(add as u64)),
        None => Err(not_modelled(&format!("an initialiser with the address of `{name}`"), "Name a module variable.")),
    };
    for (n, operand) in v.initial.iter().enumerate() {
        let value: u128 = match operand {
            Operand::Integer(i) if float && each == 4 => (*i as f32).to_bits().into(),
            Operand::Integer(i) if float && each == 8 => (*i as f64).to_bits().into(),
            Operand::Integer(i) => *i as i128 as u128,
            Operand::Float32(bits) if each == 8 => f64::from(f32::from_bits(*bits)).to_bits().into(),
            Operand::Float32(bits) => (*bits).into(),
            Operand::Float64(bits) if each == 4 => (f64::from_bits(*bits) as f32).to_bits().into(),
            Operand::Float64(bits) => (*bits).into(),
            Operand::Name(name) => address(name, 0)?.into(),
            Operand::Offset(name, add) | Operand::Generic(name, add) => address(name, *add)?.into(),
            Operand::Masked(mask, name, add) => {
                let whole = address(name, *add)?;
                (if *mask == 0 { 0 } else { (whole & mask) >> mask.trailing_zeros() }).into()
            }
            other => {
                let what = super::decode::describe(other);
                return Err(wrong(format!("`{}` begins with {what}", v.name), "Initialise it with constants."));
            }
        };
        let place = n * each..(n + 1) * each;
        let Some(place) = content.get_mut(place) else {
            return Err(wrong(
                format!("`{}` has room for {} elements, its initialiser has more", v.name, bytes / each),
                "Give it no more elements than it has.",
            ));
        };
        place.copy_from_slice(&value.to_le_bytes()[..each]);
    }
    Ok(content)
}

/// Registers, shared and local memory hold nothing defined when a kernel begins.
pub(super) fn without_value(v: &ast::Variable) -> Result<(), Bad> {
    if v.initial.is_empty() {
        return Ok(());
    }
    Err(wrong(
        format!("`{}` has an initial value, which variables in `.{}` cannot have", v.name, v.space),
        "Only variables in `.global` and `.const` begin with a value (PTX ISA 5.4.4): store it with an instruction.",
    ))
}

impl Lowering {
    /// A fresh register of a type.
    pub fn register(&mut self, ty: &str) -> Result<Reg, Bad> {
        let (n32, n64, np) = &mut self.kernel.registers;
        let take = |counter: &mut u16, n: u16| {
            let first = *counter;
            *counter = counter.checked_add(n).filter(|&c| c < u16::MAX).ok_or_else(too_many)?;
            Ok(first)
        };
        let placed = |n: u16, class: fn(&Plan) -> &Vec<u16>| match &self.plan {
            None => Ok(n),
            Some(plan) => class(plan).get(usize::from(n)).copied().ok_or_else(too_many),
        };
        Ok(match ty {
            "pred" => Reg::Pred(take(np, 1)?),
            _ => match type_bytes(ty) {
                Some(1 | 2 | 4) => Reg::B32(placed(take(n32, 1)?, |plan| &plan.b32)?),
                Some(8) => Reg::B64(placed(take(n64, 1)?, |plan| &plan.b64)?),
                Some(16) => Reg::B128(placed(take(n64, 2)?, |plan| &plan.b64)?),
                _ => return Err(no_registers(ty)),
            },
        })
    }

    pub(super) fn variable(&mut self, v: &ast::Variable) -> Result<(), Bad> {
        without_value(v)?;
        match v.space.as_str() {
            "reg" => {
                if v.vector.is_some() {
                    self.vector_register(v)?;
                } else {
                    let ty = types::of_registers(&v.ty).ok_or_else(|| no_registers(&v.ty))?;
                    for n in 0..v.count.unwrap_or(1) {
                        let name = if v.count.is_some() { format!("{}{n}", v.name) } else { v.name.clone() };
                        let reg = self.register(&v.ty)?;
                        self.bind(&name, Binding::Register(reg, ty))?;
                        self.kernel.names.push((reg, name));
                    }
                }
            }
            "shared" => {
                let binding = self.place_shared(v)?;
                self.bind(&v.name, binding)?;
            }
            "local" | "param" => {
                let (bytes, align) = layout(v)?;
                let offset = next_multiple(self.kernel.local_bytes, align);
                let end = offset.saturating_add(bytes);
                if end > MOST_LOCAL {
                    // Told once, and not of each use.
                    self.bind(&v.name, Binding::Local(0))?;
                    return Err(not_modelled(&format!("{end} bytes of local memory a thread"), "Use up to 64 KiB."));
                }
                self.kernel.local_bytes = end;
                let argument = v.space == "param";
                let binding = if argument { Binding::Argument(offset, bytes) } else { Binding::Local(offset) };
                self.bind(&v.name, binding)?;
            }
            space => {
                let binding = Binding::Other(format!("`.{space}` variable `{}`", v.name));
                self.bind(&v.name, binding)?;
            }
        }
        Ok(())
    }

    /// Gives a shared variable its place; `u32::MAX` for dynamic shared memory, whose start is not known yet.
    fn place_shared(&mut self, v: &ast::Variable) -> Result<Binding, Bad> {
        without_value(v)?;
        let (bytes, align) = layout(v)?;
        if v.linkage.iter().any(|l| l == ".extern") {
            // Dynamic shared memory begins behind the static; all `.extern .shared` arrays share its start.
            self.dynamic_align = self.dynamic_align.max(align);
            return Ok(Binding::Shared(u32::MAX));
        }
        let offset = next_multiple(self.kernel.static_end, align);
        self.kernel.shared.push(SharedVariable { name: v.name.clone(), offset, bytes });
        self.kernel.static_end = offset.saturating_add(bytes);
        Ok(Binding::Shared(offset))
    }

    /// Lays out static shared variables of the whole body first, so that dynamic shared memory has a fixed start.
    pub(super) fn declare(&mut self, body: &[Statement], fail: &mut dyn FnMut(Span, Bad)) {
        let mut open: Vec<&[Statement]> = vec![body];
        while let Some(statements) = open.pop() {
            for statement in statements {
                match statement {
                    Statement::Variable(v) if v.space == "shared" => match self.place_shared(v) {
                        Ok(binding) => {
                            self.placed.insert((v.name.clone(), v.span.start), binding);
                        }
                        Err(bad) => fail(v.span, bad),
                    },
                    Statement::Block(inner) => open.push(inner),
                    _ => {}
                }
            }
        }
        let start = next_multiple(self.kernel.static_end, self.dynamic_align);
        self.kernel.dynamic_start = start;
        let bound = self.scopes.iter_mut().flat_map(|scope| scope.values_mut());
        for binding in bound.chain(self.placed.values_mut()) {
            if let Binding::Shared(offset @ u32::MAX) = binding {
                *offset = start;
            }
        }
    }
}

fn no_registers(ty: &str) -> Bad {
    wrong(
        format!("registers of type `.{ty}` do not exist"),
        "Use .pred, .b8 … .b128, .u8 … .u64, .s8 … .s64, .f16, .f16x2, .f32 or .f64; other types fit into those of their bits.",
    )
}

pub(super) fn too_many() -> Bad {
    wrong(
        "this kernel declares more than 65,534 registers of one width",
        "Declare no more registers than the kernel uses.",
    )
}
