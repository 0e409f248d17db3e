//! Tests of the parser, and what they share.

mod dialect;
mod errors;
mod instructions;
mod mutation;

use super::ast::{Function, Instruction, Module, Operand, Statement};
use super::parse;

/// A pipelined kernel; ptxas 13 assembles it.
const PIPELINE: &str = include_str!("pipeline.ptx");
/// What compilers write besides kernels; ptxas 13 assembles it.
const DIALECT: &str = include_str!("dialect.ptx");

/// Parses `text` behind a header of one line.
fn module(text: &str) -> Module {
    let text = format!(".version 8.8 .target sm_100a .address_size 64\n{text}");
    parse(&text).unwrap_or_else(|errors| panic!("{text}\n{errors:#?}"))
}

/// The statements of a kernel that has this body.
fn body(text: &str) -> Vec<Statement> {
    let mut functions = module(&format!(".entry k {{\n{text}\n}}")).functions;
    functions.pop().and_then(|function| function.body).expect("a body")
}

/// The only instruction of `text`.
fn instruction(text: &str) -> Instruction {
    match body(text).pop() {
        Some(Statement::Instruction(instruction)) => *instruction,
        other => panic!("{text}: {other:?}"),
    }
}

/// The entry or function with this name.
fn function<'a>(module: &'a Module, name: &str) -> &'a Function {
    module.functions.iter().find(|function| function.name == name).expect(name)
}

/// An operand, short: a number is an integer, `f64:1.5` a float, `[a + 4; b]` an address with more behind its comma.
fn show(operand: &Operand) -> String {
    match operand {
        Operand::Name(name) => name.clone(),
        Operand::Integer(value) => value.to_string(),
        Operand::Float32(bits) => format!("f32:{bits:08x}"),
        Operand::Float64(bits) => format!("f64:{:?}", f64::from_bits(*bits)),
        Operand::Sink => "_".into(),
        Operand::Not(name) => format!("!{name}"),
        Operand::Pair(first, second) => format!("{}|{}", show(first), show(second)),
        Operand::Vector(elements) => format!("{{{}}}", show_all(elements)),
        Operand::Offset(name, offset) => format!("{name} + {offset}"),
        Operand::Memory(base, offset, more) if more.is_empty() => format!("[{} + {offset}]", show(base)),
        Operand::Memory(base, offset, more) => format!("[{} + {offset}; {}]", show(base), show_all(more)),
        Operand::List(elements) => format!("({})", show_all(elements)),
        Operand::Generic(name, offset) => format!("generic {name} + {offset}"),
        Operand::Masked(mask, name, offset) => format!("{mask:#x} of {name} + {offset}"),
    }
}

fn show_all(operands: &[Operand]) -> String {
    operands.iter().map(show).collect::<Vec<_>>().join(", ")
}
