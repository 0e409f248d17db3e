//! From syntax tree to a program that can run: names resolved, instructions decoded, control flow analysed.
//!
//! Read `op` for what instructions become, `lower` for how a function body is walked, `decode` for each family of
//! instructions, `arithmetic` for what those compute that only touch registers, `flow` for where divergent lanes meet again and for what follows from
//! the code alone (what decides a loop, what depends on values that a run does not compute), `facts` for what is asked of an instruction at every step.

pub(crate) mod arithmetic;
pub(crate) mod atomic;
mod call;
mod decode;
pub(crate) mod facts;
pub(crate) mod flow;
pub(crate) mod kind;
mod layout;
pub(crate) mod limits;
mod lower;
pub(crate) mod matrix;
mod near;
pub(crate) mod op;
mod own_name;
mod reached;
pub mod registers;

mod targets;
pub(crate) mod tensor_core;
pub(crate) mod tma;
mod told;
mod undeclared;
mod variables;
mod vectors;
pub mod warp_mma;
pub mod wgmma;

use crate::diagnostic::{Diagnostic, Label, Place, Severity, Source};
use crate::syntax::{
    self,
    ast::{self, Span},
};
use op::Inst;
use own_name::own_names;
use std::sync::OnceLock;
pub(crate) use variables::Variable;

pub use decode::{FORMS, special_registers};

/// Bytes at the start of each CTA's shared window that the system keeps for itself: user variables begin behind them
/// (seen in disassembled kernels; 228 KB per SM, 227 KB for the user).
pub const RESERVED_SHARED: u32 = 1024;

/// A PTX module, parsed and ready to run.
#[derive(Debug)]
pub struct Program {
    pub(crate) kernels: Vec<Kernel>,
    /// Entries that have what is not modelled, beside others that have not: what is said when one of them is launched.
    pub(crate) refused: Vec<(String, Vec<Diagnostic>)>,
    /// All entries, in the order of the text.
    names: Vec<String>,
    pub(crate) variables: Vec<Variable>,
    /// What `.target` names.
    pub(crate) targets: Vec<String>,
}

impl Program {
    /// Names of the entries, in the order of the text.
    pub fn entries(&self) -> Vec<&str> {
        self.names.iter().map(String::as_str).collect()
    }

    /// What the programmer calls an entry, if no other is called so: a symbol of C++ without its scopes and arguments.
    pub fn called<'a>(&'a self, entry: &'a str) -> &'a str {
        let names = || self.names.iter().map(String::as_str);
        own_names(names()).zip(names()).find(|(_, name)| *name == entry).map_or(entry, |(own, _)| own)
    }
}

/// An `.entry`.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub name: String,
    pub place: Place,
    pub code: Vec<Inst>,
    /// PTX place and source line of each statement; [`Inst::site`] points here.
    pub sites: Vec<Place>,
    pub params: Vec<ParamSlot>,
    /// Number of 32-bit, 64-bit and predicate registers.
    pub registers: (u16, u16, u16),
    /// So many of the first ones of 32 and of 64 bits may be read before they are written.
    pub unwritten: (u16, u16),
    /// What registers are called. Several may share a place.
    pub names: Vec<(op::Reg, String)>,
    /// What `.maxnreg` says, or `.minnctapersm` and the size of the block, but no more than a `setmaxnreg.inc` asks for: registers that a thread
    /// begins with, where it executes `setmaxnreg`.
    pub max_registers: Option<u32>,
    /// The number of a `.maxnreg` that says more than a thread can have, and is ignored.
    pub too_many_registers: Option<u32>,
    /// 32-bit registers that a thread needs, as far as PTX tells.
    pub registers_per_thread: u32,
    /// Registers that hold immediates.
    pub constants32: Vec<(u16, u32)>,
    pub constants64: Vec<(u16, u64)>,
    pub shared: Vec<SharedVariable>,
    /// Bytes from the start of the window to the end of static shared memory, [`RESERVED_SHARED`] included.
    pub static_end: u32,
    /// Where dynamic shared memory begins.
    pub dynamic_start: u32,
    /// Bytes of local memory a thread.
    pub local_bytes: u32,
    pub required_threads: Option<[u32; 3]>,
    pub max_threads: Option<u32>,
    pub required_cluster: Option<[u32; 3]>,
    /// `.maxclusterrank`: CTAs that a cluster has at most.
    pub max_cluster: Option<u32>,
    /// `.explicitcluster`: it cannot be launched without clusters.
    pub explicit_cluster: bool,
    /// A statement that asks for the time or the SM's number, where what the kernel does may depend on that.
    pub timed: Option<u32>,
    /// See [`facts::needs_scopes`].
    pub scopes: bool,
    /// A `tcgen05.st` stores to half of the lanes that its warp reaches: the halves of each quarter are looked at apart.
    pub half_stores: bool,
    /// See [`facts::has_shared_flags`].
    pub shared_flags: bool,
    /// It has MMAs that read shared memory.
    pub multiplies: bool,
    /// It copies to tensor memory.
    pub copies_factors: bool,
    /// It copies tiles out of shared memory to tensors.
    pub stores_tiles: bool,
    /// See [`Kernel::writers`].
    pub writers: OnceLock<flow::writers::Writers>,
    /// See [`Kernel::settled_loops`].
    pub settled: OnceLock<Vec<flow::endless::Settled>>,
    /// See [`Kernel::leads`].
    pub leads: OnceLock<Vec<Vec<usize>>>,
    /// See [`Kernel::joins`].
    pub joins: OnceLock<Vec<u32>>,
    /// See [`Kernel::loads_of_columns`].
    pub columns: OnceLock<flow::one_column::OfStores>,
    /// See [`Kernel::stored_accumulators`].
    pub accumulators: OnceLock<rustc_hash::FxHashMap<u32, flow::one_column::Accumulators>>,
}

/// A kernel parameter's place in the parameter block.
#[derive(Debug)]
pub(crate) struct ParamSlot {
    pub name: String,
    /// As written, e.g. `u32`; `b8` for arrays.
    pub ty: String,
    pub offset: u32,
    pub bytes: u32,
}

/// A `.shared` variable.
#[derive(Debug)]
pub(crate) struct SharedVariable {
    /// What messages call it.
    pub name: String,
    pub offset: u32,
    pub bytes: u32,
}

/// What is wrong with one statement; the caller adds the place.
#[derive(Debug)]
pub(crate) struct Bad {
    pub code: &'static str,
    pub message: String,
    pub rule: String,
    pub help: String,
    /// What is missing once for all statements that say so: they are told as one error.
    pub cause: Option<String>,
}

/// Parses PTX text and resolves every instruction in it.
///
/// # Errors
/// All that is malformed, unknown or not modelled, each with line and column, before anything runs. What is not modelled in one of several
/// entries is an error when that one is launched: the others can be.
pub fn load(text: &str) -> Result<Program, Vec<Diagnostic>> {
    let module = syntax::parse(text).map_err(|errors| {
        errors
            .into_iter()
            .map(|e| Diagnostic {
                code: "ptx-syntax",
                severity: Severity::Error,
                title: e.message,
                labels: vec![Label::new(place(text, e.span, None, &[]), "here")],
                rule: "PTX text must follow the grammar of the PTX ISA (chapter 4).".into(),
                help: sentence(&e.help),
                count: 1,
                confirmed: None,
            })
            .collect::<Vec<_>>()
    })?;
    lower::module(text, &module)
}

/// What a statement does: the first word behind its guard; none of an empty text.
pub(crate) fn opcode(statement: &str) -> &str {
    statement.split_whitespace().find(|word| !word.starts_with('@')).unwrap_or_default().trim_end_matches(';')
}

/// A way out as a sentence: with a capital letter, unless it begins with a word of PTX, and a full stop.
fn sentence(help: &str) -> String {
    let first = help.split(' ').next().unwrap_or_default();
    let (begins, rest) = help.split_at(help.chars().next().map_or(0, char::len_utf8));
    let begins = if first.bytes().all(|b| b.is_ascii_alphabetic()) { begins.to_uppercase() } else { begins.into() };
    let ends = if help.ends_with(['.', '?', ';']) { "" } else { "." };
    format!("{begins}{rest}{ends}")
}

/// The place of a span, with the first line of its text.
pub(crate) fn place(text: &str, span: Span, source: Option<ast::SourceLine>, files: &[(u32, String)]) -> Place {
    let (start, end) = (span.start as usize, span.end as usize);
    let written = text.get(start..end.min(text.len())).unwrap_or("");
    let source = source.and_then(|s| {
        let (_, file) = files.iter().find(|(number, _)| *number == s.file)?;
        Some(Source { file: file.clone(), line: s.line, column: s.column })
    });
    let mut line: String = written.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.len() > 160 {
        let cut = (0..=157).rev().find(|&n| line.is_char_boundary(n)).unwrap_or(0);
        line.truncate(cut);
        line.push('…');
    }
    Place { line: span.line, column: span.column, text: line, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ways out are sentences, but a line of PTX stays one.
    #[test]
    fn ways_out_are_sentences() {
        for (help, says) in [
            ("a label ends with `:`", "A label ends with `:`."),
            ("Is it `nan`?", "Is it `nan`?"),
            ("`.reg .b32 name`, for one", "`.reg .b32 name`, for one."),
            ("bar.warp.sync 0xffffffff;", "bar.warp.sync 0xffffffff;"),
        ] {
            assert_eq!(sentence(help), says);
        }
        let errors = load(".version 8.8\n.target sm_100a\n.address_size 32\n").expect_err("32 bits");
        assert_eq!(errors[0].help, "Addresses have 64 bits: `.address_size 64`.");
    }
}
