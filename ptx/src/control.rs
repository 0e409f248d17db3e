//! Control flow of the GPU, variables, what is not written yet, and what is not wrapped.

use crate::kernel::{Place, Todo};
use crate::level::Level;
use crate::register::{Operand, Pred, Register, U32, Value, dummy};
use crate::scope::Scope;
use crate::state::{State, with, with_at};
use std::fmt::Display;

impl<L: Level> Scope<L> {
    /// A loop that the GPU runs: `count` times, with the number of the round, from 0, in a register. (A Rust `for`
    /// writes its body out once a round.) All threads of the scope must have the same count.
    ///
    /// PTX: `mov.u32`; before the body of a count in a register `setp.eq.u32` and `bra`; after it `add.u32`,
    /// `setp.lt.u32` and `bra`.
    #[track_caller]
    pub fn repeat<R>(&mut self, count: impl Operand<U32>, body: impl FnOnce(&mut Scope<L>, U32) -> R) -> R {
        let (place, count) = (Place::caller(), count.value());
        let begun = with_at(place, |s| {
            if count == Value::Unsigned(0) {
                s.error("a loop of 0 rounds", "use a count of 1 or more, or leave the loop out");
            }
            let text = s.text(count);
            s.open(&format!("repeat {text} times"));
            s.open_repeat();
            let round: U32 = s.fresh();
            let (name, again, end) = (s.name(round), s.new_label("repeat"), s.new_label("repeat_end"));
            s.instruction(format!("mov.u32 {name}, 0"));
            if let Value::Register(_) = count {
                let none: Pred = s.binary("setp.eq.u32", count, Value::Unsigned(0));
                let none = s.name(none);
                s.instruction(format!("@{none} bra {end}"));
            }
            s.label(&again);
            (round, again, end)
        });
        let round = begun.as_ref().map_or(dummy(), |(round, _, _)| *round);
        let result = body(&mut self.same(), round);
        with_at(place, |s| {
            let Some((round, again, end)) = begun else { return };
            next_round(s, (round, 1), count, &again, &end);
        });
        result
    }

    /// What those threads execute for which a condition holds; the others go on behind the closure. Inside, nothing can
    /// be called that needs whole warps: they may have parted. See [`Scope::when_uniform`].
    ///
    /// PTX: a `bra` for the others.
    #[track_caller]
    pub fn when<R>(&mut self, condition: Pred, body: impl FnOnce(&mut Scope<L::Divergent>) -> R) -> R {
        conditional(Place::caller(), condition, || body(&mut self.divergent()))
    }

    /// The same for a condition that is the same in all threads of the scope, which stay together: the caller's word
    /// for it. Inside, all can be called that the scope allows.
    ///
    /// PTX: a `bra` when it does not hold.
    #[track_caller]
    pub fn when_uniform<R>(&mut self, condition: Pred, body: impl FnOnce(&mut Scope<L>) -> R) -> R {
        conditional(Place::caller(), condition, || body(&mut self.same()))
    }

    /// A register that can be assigned again ([`Scope::assign`]), such as a phase that flips in a loop. PTX: `mov`.
    #[track_caller]
    pub fn variable<R: Register>(&mut self, initial: impl Operand<R>) -> R {
        let initial = initial.value();
        with(|s| {
            let register: R = s.variable();
            mov(s, register, initial);
            register
        })
        .unwrap_or(dummy())
    }

    /// Gives a variable another value, for the threads that come here. PTX: `mov`.
    #[track_caller]
    pub fn assign<R: Register>(&mut self, variable: R, value: impl Operand<R>) {
        let value = value.value();
        with(|s| {
            if s.is_variable(variable) {
                mov(s, variable, value);
            } else {
                s.error(
                    "this register holds the result of an instruction: it cannot be assigned",
                    "make the register with `variable`",
                );
            }
        });
    }

    /// Marks what is still to be written. No instruction: the kernel is built without it, and the place is in
    /// [`crate::Kernel::todos`].
    #[track_caller]
    pub fn todo(&mut self, id: &'static str) {
        with(|s| {
            let todo = Todo { id, place: s.place };
            if !s.todos.contains(&todo) {
                s.todos.push(todo);
            }
            s.comment(&format!("TODO {}", id.replace(char::is_control, " ")));
        });
    }

    /// Refuses to build when a condition does not hold: for what a kernel asks of the problem. What is refused after it is
    /// not told, since it may follow from that. No instruction.
    #[track_caller]
    pub fn require(&mut self, holds: bool, rule: &str) {
        if !holds {
            with(|s| {
                let problem = s.problem.clone();
                s.unsolved(
                    format!("{rule}; this problem is {problem}"),
                    "build the kernel for a problem that it can solve, or correct this condition",
                );
            });
        }
    }

    /// A register of this type for [`Scope::raw`] to write. No instruction.
    #[track_caller]
    pub fn register<R: Register>(&mut self) -> R {
        with(|s| s.variable()).unwrap_or(dummy())
    }

    /// One instruction that this crate does not wrap, as text: the opcode and its operands, in order. Registers,
    /// addresses and barriers write themselves as PTX wants them. Who may execute it, and what has to wait for it, only
    /// the PTX ISA says.
    ///
    /// ```
    /// # use ptx::prelude::*;
    /// # ptx::build("clock", &Gemm::new(128, 128, 64, Dtype::F16, 1), |k, _| { k.threads(32);
    /// let clock: U32 = k.register();
    /// k.raw("mov.u32", &[&clock, &"%clock"]);
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn raw(&mut self, opcode: &str, operands: &[&dyn Display]) {
        // So that a register that is not this kernel's is noted here.
        with(|_| ());
        let operands: Vec<String> = operands.iter().map(|operand| operand.to_string()).collect();
        with(|s| {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '_');
            // A guard is part of the instruction.
            let (guard, name) = match opcode.split_once(' ') {
                Some((guard, name)) if guard.starts_with('@') => (guard, name),
                _ => ("", opcode),
            };
            let guarded = guard.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '@' | '!' | '%' | '_'));
            if !guarded || !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(plain) {
                s.error(
                    format!("{opcode:?} is not the opcode of one instruction"),
                    "write it as in the PTX ISA, e.g. \"prefetch.global.L2\", without operands and without `;`",
                );
                return;
            }
            for operand in &operands {
                let stray = |c: char| c.is_control() || matches!(c, ';' | '"' | '/' | '@');
                if operand.is_empty() || operand.contains(stray) || !balanced(operand) {
                    s.error(
                        format!("{operand:?} is not an operand"),
                        "write one operand a place: a register, a number, a name, `[address]` or `{vector}`",
                    );
                    return;
                }
            }
            s.instruction(format!("{opcode} {}", operands.join(", ")).trim_end());
        });
    }
}

/// Brackets and braces close in the order they open.
fn balanced(text: &str) -> bool {
    let mut open = Vec::new();
    for c in text.chars() {
        match c {
            '[' => open.push(']'),
            '{' => open.push('}'),
            '(' => open.push(')'),
            ']' | '}' | ')' if open.pop() != Some(c) => return false,
            _ => {}
        }
    }
    open.is_empty()
}

/// The end of a loop: its counter grows by a step, and the body runs again while it is below the limit.
pub(crate) fn next_round(s: &mut State, (counter, step): (U32, u32), limit: Value, again: &str, end: &str) {
    let name = s.name(counter);
    s.instruction(format!("add.u32 {name}, {name}, {step}"));
    let more: Pred = s.binary("setp.lt.u32", Value::of(counter), limit);
    let more = s.name(more);
    s.instruction(format!("@{more} bra {again}"));
    s.label(end);
    s.close();
    s.close_repeat();
}

fn mov<R: Register>(s: &mut State, register: R, value: Value) {
    let (to, value) = (s.name(register), s.text(value));
    s.instruction(format!("mov.{} {to}, {value}", R::TYPE));
}

fn conditional<R>(place: Place, condition: Pred, body: impl FnOnce() -> R) -> R {
    let end = with_at(place, |s| {
        let name = s.name(condition);
        s.open(&format!("when {name}"));
        let end = s.new_label("when_end");
        s.instruction(format!("@!{name} bra {end}"));
        end
    });
    let result = body();
    with_at(place, |s| {
        if let Some(end) = &end {
            s.label(end);
        }
        s.close();
    });
    result
}
