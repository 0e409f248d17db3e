//! Walks the functions of a module: lays out variables, gives registers numbers, resolves names in their scopes, and
//! hands each instruction to `decode`.

use super::facts::{Facts, has_shared_flags, mark_fragments, needs_scopes, stores_to_halves};
use super::layout::{layout, next_multiple};
use super::op::{FALSE, Inst, Logic, Op, Reg, TRUE};
use super::own_name::call_by_own_names;
use super::reached;
use super::registers::{self, MOST_REGISTERS, Plan};
use super::tma::TmaKind;
use super::told::{at, enough};
use super::variables::{module_variables, too_many, without_value};
use super::{Bad, Kernel, ParamSlot, Program, RESERVED_SHARED, decode, flow, place, targets};
use crate::diagnostic::{Diagnostic, Label};
use crate::program::flow::dependence::Dependence;
use crate::program::flow::waits::mark_waits;
use crate::syntax::ast::{Function, Instruction, Module, Operand, Statement};
use rustc_hash::FxHashMap;
use std::collections::HashMap;

/// What a name stands for.
#[derive(Clone, Debug)]
pub(super) enum Binding {
    /// A register, and the type that it is declared with.
    Register(Reg, &'static decode::Type),
    /// A vector of so many registers, whose names have an element behind a dot.
    Vector(usize),
    /// Index into the table of labels.
    Label(usize),
    /// The labels of a branch table.
    Table(Vec<usize>),
    /// Offset in the CTA's shared window.
    Shared(u32),
    /// Offset in the parameter block.
    Param(u32),
    /// Offset in the thread's frame.
    Local(u32),
    /// A `.param` variable of a call: offset in the thread's frame, and bytes.
    Argument(u32, u32),
    /// Address of a variable of the module.
    Global(u64),
    /// Something that exists but is not modelled, with its description.
    Other(String),
}

/// What is wrong with a directive beside the others, as ptxas 13.5 has it.
fn contradiction(name: &str, values: &[u64], has: impl Fn(&str) -> bool) -> Option<Bad> {
    let none = matches!(name, "reqntid" | "maxnreg") && values.contains(&0);
    match name {
        _ if none => Some(wrong(format!("`.{name}` of 0"), "Allowed: 1 or more.")),
        "maxntid" if has("reqntid") => Some(wrong(
            "`.maxntid` and `.reqntid` of one kernel",
            "Leave `.maxntid` out: `.reqntid` says how many threads there are.",
        )),
        "maxclusterrank" if has("reqnctapercluster") => Some(wrong(
            "`.maxclusterrank` and `.reqnctapercluster` of one kernel",
            "Leave `.maxclusterrank` out: `.reqnctapercluster` says how large clusters are (PTX ISA 11.8.3).",
        )),
        "maxnctapersm" => Some(wrong(
            "`.maxnctapersm`, which PTX has no longer since 2.1",
            "Write `.minnctapersm` beside `.maxntid` or `.reqntid`.",
        )),
        _ => None,
    }
}

/// Bytes that the parameters of an entry take at most (sm_70 and later).
const MAX_PARAMETERS: u32 = 32764;

/// A function body on its way to a [`Kernel`].
pub(super) struct Lowering {
    /// Where registers lie; `None`: each has a place of its own.
    pub plan: Option<Plan>,
    pub scopes: Vec<HashMap<String, Binding>>,
    /// Shared variables of the body, by name and place in the text.
    pub placed: HashMap<(String, u32), Binding>,
    /// pc of each label, once known.
    pub labels: Vec<Option<u32>>,
    pub kernel: Kernel,
    pub site: u32,
    /// A vector register is declared somewhere up to here.
    pub has_vectors: bool,
    /// Constant registers by class and value.
    constants: HashMap<(bool, u64), u16>,
    /// The largest alignment that an `.extern .shared` array asks for.
    pub dynamic_align: u32,
    /// The `cta_group` that the kernel's first tcgen05 instruction with one had.
    cta_group: Option<u32>,
    /// The condition code of sums of several registers, once one uses it.
    pub condition_code: Option<Reg>,
    /// The module's `.version`.
    pub version: (u32, u32),
    /// The functions whose bodies are being put in place of their calls.
    pub calls: Vec<String>,
    /// The label that `ret` goes to in such a body.
    pub return_to: Option<u32>,
    /// Names without meaning so far: what the first few may have meant is looked for, among all names.
    pub undeclared: std::cell::Cell<u32>,
    /// Causes that were told, and which error tells of each.
    pub told: HashMap<String, usize>,
    /// Opcodes that were met, each in the order of its form.
    pub spellings: FxHashMap<String, decode::Spelling>,
}

/// Decodes all entries of a module.
pub(super) fn module(text: &str, module: &Module) -> Result<Program, Vec<Diagnostic>> {
    let mut errors = targets::check(text, module);
    let (mut kernels, mut refused, mut names) = (Vec::new(), Vec::new(), Vec::new());
    let (mut variables, bad) = module_variables(module);
    let bases: HashMap<&str, u64> = variables.iter().rev().map(|v| (v.name.as_str(), v.base)).collect();
    errors.extend(bad.into_iter().map(|(span, bad)| at(text, module, span, None, bad)));
    // The first of each name, up to here: a module of anybody's may have a hundred thousand.
    let mut named: HashMap<&str, &Function> = HashMap::new();
    for function in &module.functions {
        let before = named.get(function.name.as_str()).copied();
        named.entry(&function.name).or_insert(function);
        let Some(body) = &function.body else { continue };
        if let Some(before) = before.filter(|f| f.body.is_some() || f.is_entry != function.is_entry) {
            let what = wrong(
                format!("`{}` is defined twice", function.name),
                "Give each entry and each function a name of its own (PTX ISA 4.4).",
            );
            let mut twice = at(text, module, function.span, None, what);
            twice.labels.push(Label::new(place(text, before.span, None, &module.files), "the first"));
            errors.push(twice);
            continue;
        }
        if !function.is_entry {
            // Looked at where it is called.
            continue;
        }
        // Once with a place for each register; then with those that can share one.
        let planned = entry(text, module, function, body, &bases, None).and_then(|kernel| {
            let plan = registers::plan(&kernel.code, kernel.registers);
            entry(text, module, function, body, &bases, Some(plan))
        });
        names.push(function.name.clone());
        match planned {
            Ok(kernel) => kernels.push(kernel),
            Err(mut e) => {
                if e.iter().all(|d| d.code == NOT_MODELLED) {
                    refused.push((function.name.clone(), e.clone()));
                }
                errors.append(&mut e);
            }
        }
    }
    let of_refused: usize = refused.iter().map(|(_, errors)| errors.len()).sum();
    let only_those = errors.len() == of_refused && !kernels.is_empty();
    if !errors.is_empty() && !only_those {
        return Err(errors);
    }
    call_by_own_names(&mut variables, |v| &mut v.name);
    Ok(Program { kernels, refused, names, variables, targets: module.targets.clone() })
}

/// The code of what is not modelled.
const NOT_MODELLED: &str = "not-modelled";

/// The way out where the address of a function is called.
pub(super) const BY_NAME: &str = "Call the function by its name: calls through its address are not modelled.";

pub(super) fn not_modelled(what: &str, help: &str) -> Bad {
    Bad {
        code: NOT_MODELLED,
        message: format!("{what} is not modelled"),
        rule: "The emulator refuses what it does not model; it never skips an instruction.".into(),
        help: help.into(),
        cause: None,
    }
}

pub(super) fn wrong(message: impl Into<String>, help: impl Into<String>) -> Bad {
    Bad {
        code: "ptx-semantics",
        message: message.into(),
        rule: "PTX instructions take the operands that chapter 9 of the PTX ISA gives them.".into(),
        help: help.into(),
        cause: None,
    }
}

fn entry(
    text: &str,
    module: &Module,
    function: &Function,
    body: &[Statement],
    bases: &HashMap<&str, u64>,
    plan: Option<Plan>,
) -> Result<Kernel, Vec<Diagnostic>> {
    let mut errors = Vec::new();
    let mut lowering = Lowering {
        version: module.version,
        undeclared: Default::default(),
        told: HashMap::new(),
        spellings: FxHashMap::default(),
        plan,
        scopes: vec![HashMap::new(), HashMap::new()],
        placed: HashMap::new(),
        labels: Vec::new(),
        kernel: Kernel {
            name: function.name.clone(),
            place: place(text, function.span, None, &module.files),
            code: Vec::new(),
            sites: Vec::new(),
            params: Vec::new(),
            registers: (0, 0, 2),
            unwritten: (0, 0),
            names: Vec::new(),
            max_registers: None,
            too_many_registers: None,
            registers_per_thread: u32::MAX,
            constants32: Vec::new(),
            constants64: Vec::new(),
            shared: Vec::new(),
            static_end: RESERVED_SHARED,
            dynamic_start: RESERVED_SHARED,
            local_bytes: 0,
            required_threads: None,
            max_threads: None,
            required_cluster: None,
            max_cluster: None,
            explicit_cluster: false,
            scopes: false,
            shared_flags: false,
            half_stores: false,
            multiplies: false,
            copies_factors: false,
            stores_tiles: false,
            timed: None,
            writers: Default::default(),
            settled: Default::default(),
            leads: Default::default(),
            joins: Default::default(),
            columns: Default::default(),
            accumulators: Default::default(),
        },
        site: 0,
        has_vectors: false,
        constants: HashMap::new(),
        dynamic_align: 16,
        cta_group: None,
        condition_code: None,
        calls: Vec::new(),
        return_to: None,
    };
    let mut fail = |span, bad| errors.push(at(text, module, span, None, bad));

    let mut offset = 0;
    for param in &function.params {
        match layout(param) {
            Ok((bytes, align)) => {
                offset = next_multiple(offset, align);
                if let Err(bad) = lowering.bind(&param.name, Binding::Param(offset)) {
                    fail(param.span, bad);
                }
                let ty = if param.dimensions.is_empty() { param.ty.clone() } else { "b8".into() };
                lowering.kernel.params.push(ParamSlot { name: param.name.clone(), ty, offset, bytes });
                offset = offset.saturating_add(bytes);
            }
            Err(bad) => fail(param.span, bad),
        }
    }
    if offset > MAX_PARAMETERS {
        let message = format!("the parameters of `{}` take {offset} bytes", function.name);
        fail(function.span, wrong(message, format!("Parameters take up to {MAX_PARAMETERS} bytes (PTX ISA 11.2.1).")));
    }
    // Names of the module may be given another meaning in the function.
    let inner = lowering.scopes.split_off(1);
    let reached = reached::shared_variables(module, body);
    for variable in &module.variables {
        let known = bases.get(variable.name.as_str());
        let bound = match known.filter(|_| matches!(variable.space.as_str(), "global" | "const")) {
            Some(base) => lowering.bind(&variable.name, Binding::Global(*base)),
            None if variable.space == "shared" && !reached.contains(variable.name.as_str()) => {
                without_value(variable).and_then(|()| layout(variable)).map(|_| ())
            }
            None => lowering.variable(variable),
        };
        if let Err(bad) = bound {
            fail(variable.span, bad);
        }
    }
    lowering.scopes.extend(inner);
    let mut ctas_an_sm = None;
    for (name, values, span) in &function.directives {
        let dims = || [0, 1, 2].map(|n| values.get(n).copied().unwrap_or(1).min(u64::from(u32::MAX)) as u32);
        if let Some(bad) = contradiction(name, values, |other| function.directives.iter().any(|(n, ..)| n == other)) {
            fail(*span, bad);
            continue;
        }
        match name.as_str() {
            "reqntid" => lowering.kernel.required_threads = Some(dims()),
            "maxntid" => {
                lowering.kernel.max_threads = Some(dims().iter().fold(1, |n: u32, &d| n.saturating_mul(d)));
            }
            "explicitcluster" => lowering.kernel.explicit_cluster = true,
            "reqnctapercluster" => lowering.kernel.required_cluster = Some(dims()),
            // More than a thread can have says nothing (ptxas 13.5: "Too many maxnreg specified …, will be ignored").
            "maxnreg" if dims()[0] > MOST_REGISTERS => lowering.kernel.too_many_registers = Some(dims()[0]),
            "maxnreg" => {
                lowering.kernel.registers_per_thread = dims()[0].max(1);
                lowering.kernel.max_registers = Some(dims()[0].max(1));
            }
            // It says what a host's grid counts; a launch here says its CTAs (PTX ISA, .blocksareclusters).
            "blocksareclusters"
                if ["reqntid", "reqnctapercluster"]
                    .iter()
                    .all(|d| function.directives.iter().any(|(n, ..)| n == d)) => {}
            "blocksareclusters" => {
                let message = "`.blocksareclusters` without `.reqntid` and `.reqnctapercluster`";
                fail(*span, wrong(message, "Add both of them."));
            }
            "minnctapersm" => ctas_an_sm = Some(dims()[0].max(1)),
            "maxclusterrank" => lowering.kernel.max_cluster = Some(dims()[0]).filter(|&most| most > 0),
            "noreturn" | "pragma" => {}
            other => fail(*span, not_modelled(&format!("the directive `.{other}`"), "Remove it.")),
        }
    }
    let required = lowering.kernel.required_threads.map(|dims| dims.iter().fold(1, |n: u32, &d| n.saturating_mul(d)));
    if let (None, Some(ctas), Some(threads)) =
        (lowering.kernel.max_registers, ctas_an_sm, required.or(lowering.kernel.max_threads))
    {
        lowering.kernel.max_registers = Some(registers_for(threads, ctas));
    }
    lowering.declare(body, &mut |span, bad| fail(span, bad));
    let mut failures = Vec::new();
    lowering.statements(text, module, body, &mut failures);
    errors.append(&mut failures);
    if !errors.is_empty() {
        return Err(errors);
    }
    let Lowering { labels, mut kernel, plan, .. } = lowering;
    call_by_own_names(&mut kernel.shared, |v| &mut v.name);
    // Running off the end of the body ends the thread, as `ret` does (PTX ISA 9.7.12.6): ptxas puts an exit there.
    let site = kernel.sites.len() as u32;
    kernel.sites.push(kernel.place.clone());
    kernel.code.push(Inst {
        op: Op::Exit,
        guard: TRUE,
        guard_negated: false,
        uses: Box::default(),
        defs: Box::default(),
        site,
        facts: Facts::default(),
    });
    for inst in &mut kernel.code {
        let resolve = |label: u32| labels.get(label as usize).copied().flatten().unwrap_or(u32::MAX);
        if let Op::BranchTable { targets, .. } = &mut inst.op {
            for target in targets.iter_mut() {
                *target = resolve(*target);
            }
        }
        if let Op::Branch { target, .. } = &mut inst.op {
            *target = labels.get(*target as usize).copied().flatten().unwrap_or(u32::MAX);
        }
    }
    kernel.max_registers = kernel.max_registers.map(|most| most.min(most_taken(&kernel.code)));
    flow::set_reconvergence(&mut kernel.code);
    if let Some(plan) = plan {
        (kernel.registers.0, kernel.registers.1) = plan.places;
        kernel.unwritten = plan.own;
        kernel.registers_per_thread = kernel.registers_per_thread.min(plan.per_thread);
    }
    let registers = kernel.registers;
    for inst in &mut kernel.code {
        let text = kernel.sites.get(inst.site as usize).map_or("", |place| &place.text);
        inst.decide(registers, text);
    }
    mark_fragments(&mut kernel.code, &kernel.constants32);
    mark_waits(&mut kernel.code, &kernel.constants32);
    kernel.scopes = needs_scopes(&kernel.code);
    kernel.shared_flags = has_shared_flags(&kernel.code);
    kernel.half_stores = stores_to_halves(&kernel.code);
    kernel.multiplies = kernel.code.iter().any(|inst| matches!(inst.op, Op::Mma(_) | Op::Wgmma(_)));
    kernel.copies_factors = kernel.code.iter().any(|inst| matches!(inst.op, Op::TensorCopy(_)));
    let stores = |kind| matches!(kind, TmaKind::Store | TmaKind::Reduce(_));
    kernel.stores_tiles = kernel.code.iter().any(|inst| matches!(&inst.op, Op::Tma(op) if stores(op.kind)));
    kernel.timed = Dependence::on_the_clock(&kernel);
    Ok(kernel)
}

impl Lowering {
    /// All tcgen05 instructions of a kernel have the same `cta_group`.
    pub fn cta_group(&mut self, group: u32, opcode: &str) -> Result<(), Bad> {
        match *self.cta_group.get_or_insert(group) {
            known if known == group => Ok(()),
            known => Err(wrong(
                format!(
                    "`{opcode}` has cta_group::{group}, earlier instructions of this kernel have cta_group::{known}"
                ),
                "Use one cta_group in the whole kernel; hardware raises an illegal instruction (PTX ISA, tcgen05).",
            )),
        }
    }

    /// Gives a name its meaning in the innermost scope.
    pub fn bind(&mut self, name: &str, binding: Binding) -> Result<(), Bad> {
        let before = self.scopes.last_mut().and_then(|scope| scope.insert(name.to_string(), binding));
        match before {
            None => Ok(()),
            Some(_) => Err(wrong(
                format!("`{name}` is declared twice in one scope"),
                "Give each name one meaning in a block (PTX ISA 4.4); a block `{ … }` of its own may use it again.",
            )),
        }
    }

    pub fn lookup(&self, name: &str) -> Option<&Binding> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name))
    }

    /// A register that holds a constant.
    pub fn constant32(&mut self, value: u32) -> Result<u16, Bad> {
        if let Some(&reg) = self.constants.get(&(false, u64::from(value))) {
            return Ok(reg);
        }
        let Reg::B32(reg) = self.register("b32")? else { return Err(too_many()) };
        self.kernel.constants32.push((reg, value));
        self.constants.insert((false, u64::from(value)), reg);
        Ok(reg)
    }

    /// A register that holds a constant.
    pub fn constant64(&mut self, value: u64) -> Result<u16, Bad> {
        if let Some(&reg) = self.constants.get(&(true, value)) {
            return Ok(reg);
        }
        let Reg::B64(reg) = self.register("b64")? else { return Err(too_many()) };
        self.kernel.constants64.push((reg, value));
        self.constants.insert((true, value), reg);
        Ok(reg)
    }

    /// Lowers them; those behind the last error that is told are not looked at.
    pub fn statements(&mut self, text: &str, module: &Module, body: &[Statement], errors: &mut Vec<Diagnostic>) {
        // Labels may be used before they stand: bind those of this scope first.
        for statement in body {
            if enough(errors) {
                return;
            }
            if let Statement::Label(name, span) = statement {
                let id = self.labels.len();
                self.labels.push(None);
                if let Err(bad) = self.bind(name, Binding::Label(id)) {
                    errors.push(at(text, module, *span, None, bad));
                }
            }
        }
        for statement in body {
            if enough(errors) {
                return;
            }
            match statement {
                Statement::Variable(v) => {
                    let bound = match self.placed.get(&(v.name.clone(), v.span.start)) {
                        Some(binding) => {
                            let binding = binding.clone();
                            self.bind(&v.name, binding)
                        }
                        // What could not be placed has been said.
                        None if v.space == "shared" && self.calls.is_empty() => Ok(()),
                        None if v.space == "shared" => {
                            Err(not_modelled("a shared variable of a function", "Declare it in the module."))
                        }
                        None => self.variable(v),
                    };
                    if let Err(bad) = bound {
                        errors.push(at(text, module, v.span, None, bad));
                    }
                }
                Statement::Label(name, _) => {
                    if let Some(Binding::Label(id)) = self.lookup(name) {
                        let (id, pc) = (*id, self.kernel.code.len() as u32);
                        self.labels[id] = Some(pc);
                    }
                }
                Statement::Block(inner) => {
                    self.scopes.push(HashMap::new());
                    self.statements(text, module, inner, errors);
                    self.scopes.pop();
                }
                Statement::Prototype(function) => {
                    errors.push(at(text, module, function.span, None, not_modelled("a call prototype", BY_NAME)));
                }
                Statement::Targets(name, targets, span) => {
                    let labels: Result<Vec<usize>, Bad> = targets
                        .iter()
                        .map(|target| match self.lookup(target) {
                            Some(Binding::Label(id)) => Ok(*id),
                            Some(_) => Err(wrong(format!("`{target}` is not a label"), "A branch table lists labels.")),
                            None => Err(self.undeclared(target)),
                        })
                        .collect();
                    if let Err(bad) = labels.and_then(|labels| self.bind(name, Binding::Table(labels))) {
                        errors.push(at(text, module, *span, None, bad));
                    }
                }
                Statement::Instruction(inst) => {
                    self.site = self.kernel.sites.len() as u32;
                    self.kernel.sites.push(place(text, inst.span, inst.source, &module.files));
                    let called = inst.opcode == "call" || inst.opcode == "call.uni";
                    let lowered = if called { self.call(text, module, inst, errors) } else { self.instruction(inst) };
                    if let Err(bad) = lowered {
                        let first = bad.cause.as_ref().and_then(|cause| self.told.get(cause)).copied();
                        match first.and_then(|n| errors.get_mut(n)) {
                            Some(told) => told.count += 1,
                            None => {
                                self.told.extend(bad.cause.clone().map(|cause| (cause, errors.len())));
                                errors.push(at(text, module, inst.span, inst.source, bad));
                            }
                        }
                    }
                }
            }
        }
    }

    pub(super) fn instruction(&mut self, inst: &Instruction) -> Result<(), Bad> {
        let (guard, guard_negated) = match &inst.guard {
            None => (TRUE, false),
            Some((negated, name)) => (self.predicate(&Operand::Name(name.clone()))?, *negated),
        };
        let spread = self.spread(inst)?;
        let inst = spread.as_ref().unwrap_or(inst);
        let first = self.kernel.code.len();
        let decoded = decode::decode(self, inst)?;
        // What `decode` emitted before it returned are the reads of special registers among the operands.
        for inst in &mut self.kernel.code[first..] {
            (inst.guard, inst.guard_negated) = (guard, guard_negated);
        }
        self.emit(decoded.op, guard, guard_negated, decoded.uses, decoded.defs);
        Ok(())
    }

    pub fn emit(&mut self, op: Op, guard: u16, guard_negated: bool, uses: Vec<Reg>, defs: Vec<Reg>) {
        let site = self.site;
        let (uses, defs) = (uses.into(), defs.into());
        self.kernel.code.push(Inst { op, guard, guard_negated, uses, defs, site, facts: Facts::default() });
    }

    /// A predicate operand: a register, or the constants `1` and `0`.
    pub fn predicate(&mut self, operand: &Operand) -> Result<u16, Bad> {
        match operand {
            Operand::Integer(0) => Ok(FALSE),
            Operand::Integer(_) => Ok(TRUE),
            Operand::Name(name) => match self.lookup(name) {
                Some(Binding::Register(Reg::Pred(p), _)) => Ok(*p),
                Some(_) => Err(wrong(format!("`{name}` is not a predicate"), "Declare it with `.reg .pred`.")),
                None => Err(self.undeclared(name)),
            },
            Operand::Not(name) => {
                let a = self.predicate(&Operand::Name(name.clone()))?;
                let Reg::Pred(d) = self.register("pred")? else { return Ok(a) };
                let op = Op::Pred { logic: Logic::And, d, a, a_negated: false, b: a, negate: true };
                self.emit(op, TRUE, false, vec![Reg::Pred(a)], vec![Reg::Pred(d)]);
                Ok(d)
            }
            other => Err(wrong(
                format!("expected a predicate, found {}", decode::describe(other)),
                "Use a `.pred` register.",
            )),
        }
    }
}

/// Registers of a thread where so many CTAs of so many threads are to fit an SM, and `.maxnreg` says no number: what the assembler gives each thread of a
/// kernel with `setmaxnreg` (ptxas 13.5, 22 sizes of block). A quarter of an SM has 16,384 registers for its warps, who get them 256 at a time.
fn registers_for(threads: u32, ctas: u32) -> u32 {
    let warps = threads.div_ceil(32).saturating_mul(ctas).div_ceil(4).max(1);
    (64 / warps * 8).clamp(8, MOST_REGISTERS)
}

/// The most registers for which a `setmaxnreg.inc` asks: the assembler lets no thread begin with more (ptxas 13.5, sm_100a: "Used 232
/// registers" of 256 threads where 255 would fit, if 232 is the largest, and "Used 240 registers" of `.maxnreg 255` with an .inc of 240), so that such an `.inc` changes nothing.
fn most_taken(code: &[Inst]) -> u32 {
    let taken = code.iter().filter_map(|inst| match inst.op {
        Op::SetRegisters { count, more: true } => Some(count),
        _ => None,
    });
    taken.max().unwrap_or(u32::MAX)
}
