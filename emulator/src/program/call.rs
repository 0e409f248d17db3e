//! Calls of device functions: the body is put in place of the call.
//!
//! Parameters of a call lie in the caller's frame; the function's own names stand for the same places.

use super::Bad;
use super::layout::layout;
use super::lower::{BY_NAME, Binding, Lowering, not_modelled, wrong};
use super::op::{Abort, Op, TRUE};
use crate::diagnostic::Diagnostic;
use crate::syntax::ast::{Function, Instruction, Module, Operand};
use std::collections::HashMap;

/// Instructions of a kernel with all that is put in place of calls.
const MOST_CODE: usize = 1 << 20;

/// Calls within calls.
const MOST_DEPTH: usize = 64;

fn through_a_register() -> Bad {
    not_modelled("a call through a register", BY_NAME)
}

/// The function and the operands of its results and parameters.
type Call<'a> = (&'a Function, Vec<(String, Binding)>);

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
        let (function, bound) = self.called(module, inst)?;
        let Some(body) = &function.body else {
            if let Some(op) = of_the_system(&function.name, &bound) {
                self.emit(op, TRUE, false, vec![], vec![]);
                return Ok(());
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
        Ok(())
    }

    fn called<'a>(&self, module: &'a Module, inst: &Instruction) -> Result<Call<'a>, Bad> {
        let none = Vec::new();
        let (results, name, parameters) = match inst.operands.as_slice() {
            [Operand::Name(name)] => (&none, name, &none),
            [Operand::Name(name), Operand::List(parameters)] => (&none, name, parameters),
            [Operand::List(results), Operand::Name(name)] => (results, name, &none),
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
        let mut bound = Vec::new();
        for (own, given) in [(&function.returns, results), (&function.params, parameters)] {
            if own.len() != given.len() {
                return Err(wrong(
                    format!("`{name}` takes or gives {} values here, the call names {}", own.len(), given.len()),
                    "Name one variable for each parameter and result.",
                ));
            }
            for (own, given) in own.iter().zip(given) {
                let Operand::Name(given) = given else {
                    return Err(not_modelled("a call with a constant parameter", "Put it into a `.param` variable."));
                };
                let Some(binding) = self.lookup(given) else { return Err(self.undeclared(given)) };
                match (own.space.as_str(), binding) {
                    ("param", Binding::Argument(_, bytes)) if *bytes == layout(own)?.0 => {}
                    _ => {
                        return Err(not_modelled(
                            &format!("handing `{given}` to `{}`", own.name),
                            "Hand over a `.param` variable of the parameter's size.",
                        ));
                    }
                }
                bound.push((own.name.clone(), binding.clone()));
            }
        }
        Ok((function, bound))
    }
}
