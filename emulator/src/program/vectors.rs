//! Registers that are vectors: `.reg .v4 .b32 quad;`. Each element is a register of its own, `quad.x` or `quad.r`, and `quad` alone stands for
//! `{quad.x, quad.y, quad.z, quad.w}` (PTX ISA 5.4.2 and 6.4.2).

use super::Bad;
use super::decode::types;
use super::layout::type_bytes;
use super::lower::{Binding, Lowering, wrong};
use crate::syntax::ast::{Instruction, Operand, Variable};

/// Elements, by place and by colour.
const ELEMENTS: [[&str; 2]; 4] = [["x", "r"], ["y", "g"], ["z", "b"], ["w", "a"]];

impl Lowering {
    /// Declares the elements of a vector register.
    pub(super) fn vector_register(&mut self, v: &Variable) -> Result<(), Bad> {
        let width = match v.vector.as_deref() {
            Some("v2") => 2,
            Some("v4") => 4,
            other => {
                let found = format!("`{}` is a register of type `.{}`", v.name, other.unwrap_or_default());
                return Err(wrong(
                    found,
                    "Registers are vectors of 2 or of 4 elements: `.v2` or `.v4` (PTX ISA 5.4.2).",
                ));
            }
        };
        let ty = types::of_registers(&v.ty).filter(|_| v.ty != "pred");
        let bytes = type_bytes(&v.ty).filter(|bytes| bytes * width <= 16);
        let (Some(ty), Some(_)) = (ty, bytes) else {
            let found = format!("`{}` is a vector of {width} elements of type `.{}`", v.name, v.ty);
            return Err(wrong(found, "A vector has up to 128 bits, and no predicates (PTX ISA 5.4.2)."));
        };
        for n in 0..v.count.unwrap_or(1) {
            let name = if v.count.is_some() { format!("{}{n}", v.name) } else { v.name.clone() };
            for names in &ELEMENTS[..width as usize] {
                let reg = self.register(&v.ty)?;
                for element in names {
                    self.bind(&format!("{name}.{element}"), Binding::Register(reg, ty))?;
                }
                self.kernel.names.push((reg, format!("{name}.{}", names[0])));
            }
            self.bind(&name, Binding::Vector(width as usize))?;
        }
        self.has_vectors = true;
        Ok(())
    }

    /// The instruction with the elements of vector registers in place of their names; `None` if it names none.
    pub(super) fn spread(&self, inst: &Instruction) -> Result<Option<Instruction>, Bad> {
        if !self.has_vectors {
            return Ok(None);
        }
        let mut spread = inst.clone();
        for operand in &mut spread.operands {
            match operand {
                Operand::Memory(base, _, more) => {
                    if let Operand::Name(name) = base.as_ref()
                        && name
                            .split_once('.')
                            .is_some_and(|(vector, _)| matches!(self.lookup(vector), Some(Binding::Vector(_))))
                    {
                        let found = format!("the address is `{name}`, an element of a vector");
                        return Err(wrong(
                            found,
                            "Move it to a register of its own first: ptxas takes no element there.",
                        ));
                    }
                    more.iter_mut().for_each(|operand| self.spread_operand(operand));
                }
                operand => self.spread_operand(operand),
            }
        }
        Ok((spread.operands != inst.operands).then_some(spread))
    }

    fn spread_operand(&self, operand: &mut Operand) {
        if let Operand::Name(name) = operand
            && let Some(Binding::Vector(width)) = self.lookup(name)
        {
            let element = |names: &[&str; 2]| Operand::Name(format!("{name}.{}", names[0]));
            *operand = Operand::Vector(ELEMENTS[..*width].iter().map(element).collect());
        }
    }
}
