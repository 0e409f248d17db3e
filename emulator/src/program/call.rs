//! Calls of device functions: the body is put in place of the call.
//!
//! Where a call names `.param` variables, these lie in the caller's frame, and the function's own names stand for the same places. Registers and constants are
//! copied to a place of the function's own, and results out of it.

use super::Bad;
use super::decode::describe;
use super::layout::layout;
use super::lower::{BY_NAME, Binding, Lowering, not_modelled, wrong};
use super::op::{Abort, Op, TRUE};
use crate::diagnostic::Diagnostic;
use crate::machine::counted;
use crate::syntax::ast::{Function, Instruction, Module, Operand, Variable};
use std::collections::HashMap;

/// Instructions of a kernel with all that is put in place of calls.
const MOST_CODE: usize = 1 << 20;

/// Calls within calls.
const MOST_DEPTH: usize = 64;

fn through_a_register() -> Bad {
    not_modelled("a call through a register", BY_NAME)
}

/// A function, what its own names stand for, and what is copied for the call.
struct Call<'a> {
    function: &'a Function,
    bound: Vec<(String, Binding)>,
    parameters: Vec<Copied<'a>>,
    results: Vec<Copied<'a>>,
}

/// A parameter or result of which the call names no `.param` variable.
struct Copied<'a> {
    own: &'a Variable,
    binding: Binding,
    given: &'a Operand,
}

/// How a place of a function is called while it is copied to or from: no name that a text may have.
const OWN: &str = "the function's own";

/// The system's functions, which CUDA's runtime brings along and a module only declares: what takes the place of a call.
// (CUDA C++ Programming Guide, Formatted Output and Assertion; PTX Interoperability, System Calls.)
fn of_the_system(name: &str, bound: &[(String, Binding)]) -> Option<Op> {
    if let (
        "vprintf",
        [(_, Binding::Argument(result, 4)), (_, Binding::Argument(format, 8)), (_, Binding::Argument(arguments, 8))],
    ) = (name, bound)
    {
        return Some(Op::Print { format: *format, arguments: *arguments, result: *result });
    }
    let [
        (_, Binding::Argument(expression, 8)),
        (_, Binding::Argument(file, 8)),
        (_, Binding::Argument(line, 4)),
        (_, Binding::Argument(function, 8)),
        _,
    ] = bound
    else {
        return None;
    };
    let (expression, file, line, function) = (*expression, *file, *line, *function);
    (name == "__assertfail").then_some(Op::Trap(Abort::Assertion { expression, file, line, function }))
}

impl Lowering {
    /// `call{.uni} (results), function, (parameters);`
    pub(super) fn call(
        &mut self,
        text: &str,
        module: &Module,
        inst: &Instruction,
        errors: &mut Vec<Diagnostic>,
    ) -> Result<(), Bad> {
        if inst.guard.is_some() {
            return Err(not_modelled("a call under a guard", "Branch around the call."));
        }
        let Call { function, bound, parameters, results } = self.called(module, inst)?;
        for copied in &parameters {
            self.hand_over(copied, inst, true)?;
        }
        let Some(body) = &function.body else {
            if let Some(op) = of_the_system(&function.name, &bound) {
                self.emit(op, TRUE, false, vec![], vec![]);
                return results.iter().try_for_each(|copied| self.hand_over(copied, inst, false));
            }
            return Err(not_modelled(&format!("the function `{}` without a body", function.name), "Define it here."));
        };
        if self.calls.contains(&function.name) {
            return Err(not_modelled(&format!("the recursive call of `{}`", function.name), "Write a loop."));
        }
        if self.kernel.code.len().max(self.labels.len()) > MOST_CODE || self.calls.len() >= MOST_DEPTH {
            let what = format!("calls deeper than {MOST_DEPTH}, or of more than {MOST_CODE} instructions");
            return Err(not_modelled(&what, "Call fewer functions from functions."));
        }
        let site = self.site;
        // The function sees the module's names and its own.
        let outer = self.scopes.split_off(1);
        self.scopes.push(bound.into_iter().collect::<HashMap<_, _>>());
        let end = self.labels.len();
        self.labels.push(None);
        let back = self.return_to.replace(end as u32);
        self.calls.push(function.name.clone());
        self.scopes.push(HashMap::new());
        self.condition_code = None;
        self.statements(text, module, body, errors);
        self.condition_code = None;
        self.calls.pop();
        self.return_to = back;
        self.scopes.truncate(1);
        self.scopes.extend(outer);
        self.labels[end] = Some(self.kernel.code.len() as u32);
        self.site = site;
        results.iter().try_for_each(|copied| self.hand_over(copied, inst, false))
    }

    /// Copies what a call gives to the function's own place, or a result out of it.
    fn hand_over(&mut self, copied: &Copied, call: &Instruction, is_parameter: bool) -> Result<(), Bad> {
        let Copied { own, binding, given } = copied;
        let name = Operand::Name(OWN.into());
        let own_type = match given {
            Operand::Name(_) => format!("b{}", layout(own)?.0 * 8),
            _ => own.ty.clone(),
        };
        let (opcode, own_place) = match (own.space.as_str(), is_parameter) {
            ("reg", _) => (format!("mov.{own_type}"), name),
            (_, true) => (format!("st.param.{own_type}"), Operand::Memory(Box::new(name), 0, vec![])),
            (_, false) => (format!("ld.param.{own_type}"), Operand::Memory(Box::new(name), 0, vec![])),
        };
        let given = Operand::clone(given);
        let operands = if is_parameter { vec![own_place, given] } else { vec![given, own_place] };
        self.scopes.push(HashMap::from([(OWN.to_string(), binding.clone())]));
        let copied = self.instruction(&Instruction { guard: None, opcode, operands, ..call.clone() });
        self.scopes.pop();
        copied
    }

    fn called<'a>(&mut self, module: &'a Module, inst: &'a Instruction) -> Result<Call<'a>, Bad> {
        const NONE: &Vec<Operand> = &Vec::new();
        let none = NONE;
        let (results, name, parameters) = match inst.operands.as_slice() {
            [Operand::Name(name)] => (none, name, none),
            [Operand::Name(name), Operand::List(parameters)] => (none, name, parameters),
            [Operand::List(results), Operand::Name(name)] => (results, name, none),
            [Operand::List(results), Operand::Name(name), Operand::List(parameters)] => (results, name, parameters),
            [_, Operand::Name(_), _, Operand::Name(_)] => return Err(through_a_register()),
            _ => return Err(not_modelled("this call", "Write `call (result), function, (parameters);`.")),
        };
        // A declaration may stand before the definition.
        let named = || module.functions.iter().filter(|f| f.name == *name && !f.is_entry);
        let Some(function) = named().find(|f| f.body.is_some()).or_else(|| named().next()) else {
            return Err(match self.lookup(name) {
                Some(_) => through_a_register(),
                None => self.undeclared(name),
            });
        };
        let mut call = Call { function, bound: Vec::new(), parameters: Vec::new(), results: Vec::new() };
        for (own, given, are_results) in [(&function.returns, results, true), (&function.params, parameters, false)] {
            if own.len() != given.len() {
                return Err(wrong(
                    format!("`{name}` takes or gives {} values here, the call names {}", own.len(), given.len()),
                    "Name one variable for each parameter and result.",
                ));
            }
            for (own, given) in own.iter().zip(given) {
                let narrow = own.space == "reg" && (own.ty == "pred" || layout(own)?.0 < 4);
                if narrow {
                    // As ptxas 13.5 has it.
                    return Err(wrong(
                        format!("`{}` of `{name}` is a predicate, or a register of fewer than 32 bits", own.name),
                        "Functions take registers of 32, 64 and 128 bits; hand over others in `.param` variables.",
                    ));
                }
                let bytes = layout(own)?.0;
                let named = match given {
                    Operand::Name(given) => Some((given, self.lookup(given).ok_or_else(|| self.undeclared(given))?)),
                    _ => None,
                };
                let fits = match named {
                    Some((_, binding @ Binding::Argument(_, given))) if own.space == "param" && *given == bytes => {
                        call.bound.push((own.name.clone(), binding.clone()));
                        continue;
                    }
                    Some((_, Binding::Register(_, ty))) => ty.bytes == bytes,
                    Some(_) => false,
                    // A result that nobody wants, or a constant.
                    None => are_results == matches!(given, Operand::Sink),
                };
                if !fits || !own.dimensions.is_empty() || own.vector.is_some() {
                    return Err(not_modelled(
                        &format!("handing {} to `{}`, which has {}", describe(given), own.name, counted(bytes, "byte")),
                        match are_results {
                            true => "Name a `.param` variable or a register of the result's size, or `_`.",
                            false => "Hand over a `.param` variable, a register or a constant of the parameter's size.",
                        },
                    ));
                }
                self.scopes.push(HashMap::new());
                let declared = self.variable(own);
                let binding = self.scopes.pop().and_then(|mut scope| scope.remove(&own.name));
                declared?;
                let Some(binding) = binding else {
                    return Err(not_modelled(&format!("the parameter `{}`", own.name), "Give it a name of its own."));
                };
                call.bound.push((own.name.clone(), binding.clone()));
                let copied = Copied { own, binding, given };
                match are_results {
                    true if *given == Operand::Sink => {}
                    true => call.results.push(copied),
                    false => call.parameters.push(copied),
                }
            }
        }
        Ok(call)
    }
}
