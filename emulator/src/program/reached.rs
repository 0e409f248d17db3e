//! Which names of a module a function reaches, by itself or by the functions that it names. `ptxas` gives a CTA room for those shared variables of
//! the module only (ptxas 13.5 `-v`; also where the statement is never executed), and for all of a body.

use crate::syntax::ast::{Function, Module, Operand, Statement};
use rustc_hash::{FxHashMap, FxHashSet};

/// The shared variables of a module that a body reaches.
pub fn shared_variables<'m>(module: &'m Module, body: &'m [Statement]) -> FxHashSet<&'m str> {
    let shared = module.variables.iter().filter(|v| v.space == "shared");
    let shared: FxHashSet<&str> = shared.map(|v| v.name.as_str()).collect();
    if shared.is_empty() {
        return shared;
    }
    let mut reached = FxHashSet::default();
    let mut functions: FxHashMap<&str, &Function> = module.functions.iter().map(|f| (f.name.as_str(), f)).collect();
    let mut open = vec![body];
    while let Some(statements) = open.pop() {
        for statement in statements {
            match statement {
                Statement::Block(inner) => open.push(inner),
                Statement::Instruction(instruction) => {
                    for_each_name(&instruction.operands, &mut |name| {
                        if let Some(name) = shared.get(name) {
                            reached.insert(*name);
                        } else if let Some(function) = functions.remove(name) {
                            open.extend(function.body.as_deref());
                        }
                    });
                }
                _ => {}
            }
        }
    }
    reached
}

fn for_each_name<'m>(operands: &'m [Operand], see: &mut impl FnMut(&'m str)) {
    for operand in operands {
        match operand {
            Operand::Name(name) | Operand::Not(name) | Operand::Offset(name, _) => see(name),
            Operand::Generic(name, _) | Operand::Masked(_, name, _) => see(name),
            Operand::Pair(a, b) => [a, b].into_iter().for_each(|one| for_each_name(std::slice::from_ref(one), see)),
            Operand::Vector(list) | Operand::List(list) => for_each_name(list, see),
            Operand::Memory(base, _, behind) => {
                for_each_name(std::slice::from_ref(base), see);
                for_each_name(behind, see);
            }
            Operand::Integer(_) | Operand::Float32(_) | Operand::Float64(_) | Operand::Sink => {}
        }
    }
}
