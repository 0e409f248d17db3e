//! The kernel being built: one per thread, private to the crate.
//!
//! Registers and scopes are handles; every call on them comes here, with the place of the call. Nothing here panics: a
//! call outside of a build does nothing, a call that is refused is noted and answered with a poisoned value: using it
//! is not refused again.

mod building;
mod refused;
mod written;

pub(crate) use building::{Building, check_owner, name_of, with, with_at};

use crate::gemm::Gemm;
use crate::kernel::{BuildError, Kernel, Place, Region, TensorMap, Todo};
use crate::register::{Class, Id, Register, Value};
use refused::Repeated;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU32, Ordering};

/// Builds begun so far, on all threads: registers may be sent to another one.
static BUILDS: AtomicU32 = AtomicU32::new(0);

/// Registers that handles can tell apart.
const MAX_REGISTERS: usize = 1 << 24;

/// A tensor memory allocation.
pub(crate) struct Allocation {
    pub name: String,
    pub columns: u32,
    pub place: Place,
    /// The GPU loop around it.
    pub repeat: Option<u32>,
    pub freed: bool,
}

/// Everything known about the kernel so far.
pub(crate) struct State {
    pub name: String,
    pub problem: String,
    /// The call being served.
    pub place: Place,
    /// The call to `build`.
    began: Place,
    /// The first call in the kernel.
    first: Option<Place>,
    pub files: Vec<&'static str>,
    pub body: String,
    /// Scopes open: the indentation.
    depth: usize,
    /// Whose the open scopes are that not all threads of the CTA execute.
    narrowed: Vec<String>,
    /// GPU loops begun so far.
    repeats: u32,
    /// GPU loops open, by number.
    open_repeats: Vec<u32>,
    /// The `.loc` in force.
    located: Option<Place>,
    calls: usize,
    instructions: usize,
    /// The kernel's function was left before its end.
    left: bool,
    /// Tells the handles of this kernel from those of others; never 0.
    pub tag: u32,
    registers: Vec<(Class, u32)>,
    variables: HashSet<Id>,
    counts: [u32; Class::ALL.len()],
    labels: HashMap<String, u32>,
    pub threads: Option<u32>,
    /// Someone needed the number of threads before it was said, and got an error.
    pub threads_missed: bool,
    pub grid: Option<[u32; 2]>,
    /// The call that said so.
    pub grid_at: Option<Place>,
    /// Matrices that the kernel reaches by address, in the order A, B, D.
    pub pointers: Vec<&'static str>,
    /// Tensor maps, in the order of their first use.
    pub tensor_maps: Vec<TensorMap>,
    /// CTAs work in pairs: `.cta_group::2`.
    pub pair: bool,
    /// CTAs of a cluster.
    pub cluster: u32,
    /// The kernel is for `sm_90a`.
    pub hopper: bool,
    /// Bytes of dynamic shared memory in use.
    pub shared: u32,
    pub regions: Vec<Region>,
    pub names: HashMap<String, Place>,
    pub allocations: Vec<Allocation>,
    pub relinquished: bool,
    pub todos: Vec<Todo>,
    errors: Vec<Repeated>,
    /// The problem is none that the kernel solves: what else is refused follows from that.
    unsolved: bool,
}

impl State {
    fn new(name: &str, gemm: &Gemm, place: Place) -> State {
        let mut state = State {
            name: name.to_string(),
            problem: gemm.to_string(),
            place,
            began: place,
            first: None,
            files: Vec::new(),
            body: String::new(),
            depth: 1,
            narrowed: vec![],
            repeats: 0,
            open_repeats: Vec::new(),
            located: None,
            calls: 0,
            instructions: 0,
            left: false,
            // 255 tags, and 0 is no kernel's: a handle of another kernel is noticed.
            tag: BUILDS.fetch_add(1, Ordering::Relaxed) % 255 + 1,
            registers: Vec::new(),
            variables: HashSet::new(),
            counts: [0; Class::ALL.len()],
            labels: HashMap::new(),
            threads: None,
            threads_missed: false,
            grid: None,
            grid_at: None,
            pointers: Vec::new(),
            tensor_maps: Vec::new(),
            pair: false,
            cluster: 1,
            hopper: false,
            shared: 0,
            regions: Vec::new(),
            names: HashMap::new(),
            allocations: Vec::new(),
            relinquished: false,
            todos: Vec::new(),
            errors: Vec::new(),
            unsolved: false,
        };
        state.check_name();
        state
    }

    /// `.cta_group::1` or `.cta_group::2`, the same in the whole kernel (PTX ISA 9.7.16.1).
    pub fn cta_group(&self) -> &'static str {
        if self.pair { ".cta_group::2" } else { ".cta_group::1" }
    }

    /// Notes that the kernel reaches this matrix by its address.
    pub fn point_to(&mut self, matrix: &'static str) {
        if let Err(at) = self.pointers.binary_search(&matrix) {
            self.pointers.insert(at, matrix);
        }
    }

    /// Notes when shared memory belongs to another kernel; 0 is that of a call that was refused.
    pub fn owns(&mut self, kernel: u32) -> bool {
        let ours = kernel == self.tag || (kernel == 0 && !self.errors.is_empty());
        if !ours {
            self.error(
                "this uses shared memory or tensor memory of another kernel",
                "make tiles, barriers and allocations in the function of the kernel that uses them; do not keep them \
                 in statics",
            );
        }
        ours
    }

    fn check_name(&mut self) {
        let mut letters = self.name.chars();
        let begins = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        if !begins || !letters.all(|c| c.is_ascii_alphanumeric() || c == '_') || self.name == "dynamic_shared" {
            let name = std::mem::replace(&mut self.name, "kernel".to_string());
            self.error(
                format!("`{name}` cannot be the name of a kernel"),
                "use letters, digits and _, not beginning with a digit, and not the name `dynamic_shared`",
            );
        }
    }

    /// Notes the name of something in on-chip memory; false when it may not be used.
    pub fn claim_name(&mut self, name: &str) -> bool {
        if name.is_empty() || name.chars().any(char::is_control) {
            self.error(format!("{name:?} cannot be a name"), "use a name that can be printed on one line");
            return false;
        }
        if let Some(first) = self.names.get(name).copied() {
            self.error(
                format!("the name \"{name}\" is used twice, first at {first}"),
                "give every tile, barrier, scalar and allocation a name of its own: messages go by them",
            );
            return false;
        }
        self.names.insert(name.to_string(), self.place);
        true
    }

    /// Begins a loop of the GPU.
    pub fn open_repeat(&mut self) {
        self.repeats += 1;
        self.open_repeats.push(self.repeats);
    }

    pub fn close_repeat(&mut self) {
        self.open_repeats.pop();
    }

    /// The innermost loop of the GPU, if any.
    pub fn repeat(&self) -> Option<u32> {
        self.open_repeats.last().copied()
    }

    /// A new register.
    pub fn fresh<R: Register>(&mut self) -> R {
        if self.registers.len() >= MAX_REGISTERS {
            self.leave(
                format!("the kernel has more than {MAX_REGISTERS} registers"),
                "a Rust `for` is unrolled: use `repeat` for a loop that the GPU runs",
            );
        }
        let index = self.registers.len() as u32;
        let count = &mut self.counts[R::CLASS as usize];
        *count += 1;
        self.registers.push((R::CLASS, *count));
        R::from_id(Id(self.tag << 24 | index))
    }

    pub fn has_instructions(&self) -> bool {
        self.instructions > 0
    }

    /// Registers of a class, for `.reg`.
    pub fn count(&self, class: Class) -> u32 {
        self.counts[class as usize]
    }

    pub fn name<R: Register>(&mut self, register: R) -> String {
        self.name_by_id(register.id(), R::CLASS)
    }

    fn name_by_id(&mut self, id: Id, class: Class) -> String {
        let known = (id.0 >> 24 == self.tag).then(|| self.registers.get((id.0 & 0xFF_FFFF) as usize)).flatten();
        match known {
            Some((class, number)) => format!("{}{number}", class.prefix()),
            None if self.poisoned(id) => format!("{}0", class.prefix()),
            None => {
                self.error(
                    "this uses a register of another kernel",
                    "make registers in the function of the kernel that uses them; do not keep them in statics",
                );
                format!("{}0", class.prefix())
            }
        }
    }

    /// An operand that is read.
    pub fn text(&mut self, value: Value) -> String {
        match value {
            // The class is only wanted for the name of a register that is not this kernel's.
            Value::Register(id) => self.name_by_id(id, Class::B32),
            Value::Unsigned(value) => value.to_string(),
            Value::Float(value) => format!("0f{:08X}", value.to_bits()),
            Value::Truth(value) => u32::from(value).to_string(),
        }
    }

    /// A new register that may be assigned.
    pub fn variable<R: Register>(&mut self) -> R {
        let register: R = self.fresh();
        self.variables.insert(register.id());
        register
    }

    pub fn is_variable(&self, register: impl Register) -> bool {
        self.variables.contains(&register.id()) || self.poisoned(register.id())
    }

    /// A scope of some threads, which are called so, of a scope that lies in so many of that kind. It is an error if others are open: then
    /// it is opened inside of a closure, but by the scope around that.
    pub fn open_for(&mut self, who: &str, depth: usize) {
        if let Some(among) = self.narrowed.get(depth) {
            let message =
                format!("{who} is picked by a scope that is closed here: the closure around it is for {among} alone");
            self.error(message, "use the scope that this closure is given, or write it behind the closure");
        }
        self.open(who);
        self.narrowed.push(who.to_string());
    }

    pub fn close_for(&mut self) {
        self.narrowed.pop();
        self.close();
    }

    /// Whether all threads of the CTA execute what is written here. A barrier of all that stands elsewhere is an error: the scope of the CTA
    /// is used inside of a closure for some threads.
    pub fn all_come(&mut self, barrier: &str, call: &str) -> bool {
        let Some(who) = self.narrowed.last() else { return true };
        let message =
            format!("the barrier of the {barrier} is executed by {who} alone: the other threads never come to it");
        let among = match who.starts_with("warpgroup") {
            true => "; the 128 threads of the warpgroup meet at `wg.sync_warpgroup(1)`",
            false => "",
        };
        let help = format!("call `{call}` behind this closure, where all threads come by{among}");
        self.error(message, help);
        false
    }

    fn finish(mut self) -> Result<Kernel, Vec<BuildError>> {
        let whole = self.first.unwrap_or(self.began);
        if self.threads.is_none() && !self.threads_missed {
            self.error_at(
                whole,
                "the kernel does not say how many threads a CTA has",
                "begin the kernel with `k.threads(128);`",
            );
        }
        if self.cluster > 1 && !self.grid.is_some_and(|[x, _]| x.is_multiple_of(self.cluster)) {
            let [x, y] = self.grid.unwrap_or([1, 1]);
            let made = if self.pair { "pairs".to_string() } else { format!("clusters of {}", self.cluster) };
            self.error_at(
                self.grid_at.unwrap_or(whole),
                format!("a grid of {x} x {y} CTAs is not made of {made}"),
                format!("give `k.grid` a multiple of {} in x", self.cluster),
            );
        }
        if !self.errors.is_empty() {
            return Err(self.errors.into_iter().map(Repeated::told).collect());
        }
        // A kernel with open TODOs may lack the one that frees it.
        let kept = self.allocations.iter().filter(|allocation| !allocation.freed && self.todos.is_empty());
        let leaks = kept.map(Allocation::leak).collect();
        let text = crate::text::module(&self);
        let params = crate::tma::params(&self);
        let [x, y] = self.grid.unwrap_or([1, 1]);
        Ok(Kernel {
            name: self.name,
            text,
            grid: [x, y, 1],
            cluster: [self.cluster, 1, 1],
            block: [self.threads.unwrap_or_default(), 1, 1],
            dynamic_shared: self.shared,
            params,
            regions: self.regions,
            todos: self.todos,
            leaks,
        })
    }
}

impl Allocation {
    fn leak(&self) -> BuildError {
        BuildError {
            place: self.place,
            message: format!("the {} columns of tensor memory \"{}\" are never freed", self.columns, self.name),
            help:
                "Give it to `tmem_dealloc` when its last reader is done: columns that a CTA keeps are lost to the CTAs \
                   that come after it."
                    .to_string(),
        }
    }
}
