//! The shape of a PTX module as text says it, before anything is given a meaning.
//!
//! Names are kept as written; scopes (`{ … }`) are kept as nested blocks, because inline assembly repeats register and
//! label names of outer scopes. What an instruction means is decided later, in `crate::program`.

/// A place in the PTX text: line and column, both from 1, and the byte range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: u32,
}

/// The source line that a `.loc` directive names: a line of the program that the PTX was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SourceLine {
    /// The number that a `.file` directive gave to the file.
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 when unknown.
    pub column: u32,
}

/// A whole module.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// `.version major.minor`.
    pub version: (u32, u32),
    /// Where that stands.
    pub version_span: Span,
    /// `.target` with its options, as written: `["sm_100a"]`, `["sm_100a", "debug"]`.
    pub targets: Vec<String>,
    /// Where each of them stands.
    pub target_spans: Vec<Span>,
    /// `.file number "name"`, in order of appearance.
    pub files: Vec<(u32, String)>,
    /// `.alias name, target;`
    pub aliases: Vec<(String, String)>,
    /// Variables declared outside of functions.
    pub variables: Vec<Variable>,
    /// Entries and device functions, also those that are only declared.
    pub functions: Vec<Function>,
}

/// An `.entry` or a `.func`.
#[derive(Clone, Debug)]
pub struct Function {
    /// `.entry` (true) or `.func`.
    pub is_entry: bool,
    /// `.visible`, `.extern`, `.weak`, `.common` as written.
    pub linkage: Vec<String>,
    /// Its name.
    pub name: String,
    /// Where the name stands.
    pub span: Span,
    /// Return parameters of a `.func`.
    pub returns: Vec<Variable>,
    /// Parameters.
    pub params: Vec<Variable>,
    /// Performance directives, e.g. `.reqntid 128, 1, 1`, `.explicitcluster`, without the dot; not `.pragma`.
    pub directives: Vec<(String, Vec<u64>, Span)>,
    /// `None` for a declaration.
    pub body: Option<Vec<Statement>>,
}

/// A variable or parameter: `.shared .align 1024 .b8 tile[16384];`, `.param .u64 .ptr .global .align 16 a`.
#[derive(Clone, Debug)]
pub struct Variable {
    /// `.visible`, `.extern`, `.weak`, `.common` as written.
    pub linkage: Vec<String>,
    /// `reg`, `param`, `shared`, `global`, `const`, `local`, without the dot.
    pub space: String,
    /// `.align`, if written.
    pub align: Option<u32>,
    /// `v2`, `v4`, if written.
    pub vector: Option<String>,
    /// Element type: `b8`, `u32`, `f16`, `pred`, …
    pub ty: String,
    /// `.ptr`, with its state space and alignment if written: parameters only.
    pub pointer: Option<(Option<String>, Option<u32>)>,
    /// Its name.
    pub name: String,
    /// Array dimensions; `None` for `[]`. Empty for a scalar.
    pub dimensions: Vec<Option<u64>>,
    /// `name<count>`: this declares `name0 … name(count-1)`. Registers only.
    pub count: Option<u32>,
    /// What follows `=`, flattened; empty without initialiser. Inner braces that list fewer elements than their
    /// dimension has are filled up with zeros; the outermost are not.
    pub initial: Vec<Operand>,
    /// Where the name stands.
    pub span: Span,
}

/// What may stand in a function body.
#[derive(Clone, Debug)]
pub enum Statement {
    /// A register, local, shared or parameter variable (also `.reg .pred p, q;`, one each).
    Variable(Variable),
    /// `name:`
    Label(String, Span),
    /// An instruction.
    Instruction(Box<Instruction>),
    /// `name: .callprototype …;`: a function without body that has the name of the label.
    Prototype(Box<Function>),
    /// `{ … }`
    Block(Vec<Statement>),
    /// `name: .branchtargets a, b, c;` (also `.calltargets`): the name, the targets.
    Targets(String, Vec<String>, Span),
}

/// `@!p opcode.modifier… operands;`
#[derive(Clone, Debug)]
pub struct Instruction {
    /// From the guard (or the opcode) to before the semicolon.
    pub span: Span,
    /// The `.loc` in force.
    pub source: Option<SourceLine>,
    /// `@p` is `(false, "p")`, `@!p` is `(true, "p")`.
    pub guard: Option<(bool, String)>,
    /// All of the opcode up to the first operand, as written: `tcgen05.mma.cta_group::1.kind::f16`.
    pub opcode: String,
    /// Operands, in order.
    pub operands: Vec<Operand>,
}

/// An operand, as written.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A register, variable, label or special register (`%tid.x` whole): `%r1`, `smem`, `$L__BB0_1`.
    Name(String),
    /// An integer or a constant expression of integers, evaluated, wrapped to 64 bits.
    Integer(i64),
    /// `0f3F800000`, the bits.
    Float32(u32),
    /// `0d…` or a decimal number with a point, the bits.
    Float64(u64),
    /// `_`
    Sink,
    /// `!p`
    Not(String),
    /// `a|b`
    Pair(Box<Operand>, Box<Operand>),
    /// `{a, b}`
    Vector(Vec<Operand>),
    /// `name+4`, `name-4` outside of brackets.
    Offset(String, i64),
    /// `[base+offset]` or `[base, {c0, c1}]`: the base (`Name` or `Integer`), the offset, what follows the comma.
    Memory(Box<Operand>, i64, Vec<Operand>),
    /// `(a, b)`, in the operands of `call` only.
    List(Vec<Operand>),
    /// `generic(name)+offset` in initialisers.
    Generic(String, i64),
    /// `0xFF00(name)+offset` in initialisers: the bits of the address that the mask selects.
    Masked(u64, String, i64),
}
