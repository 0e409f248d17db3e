//! Where kernels come from: PTX text and a closed description of its launch, the only things that cross from a
//! student's code to the judge.

use crate::problem::Problem;
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

/// A line of Rust.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// File, as the compiler names it: relative to the workspace.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

impl Place {
    /// Whether it is a line of who wrote the kernel: not of the builder, and not of Rust's library.
    pub fn is_of_the_kernel(&self) -> bool {
        !(self.file.starts_with('/') || self.file.starts_with("ptx/"))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl From<ptx::Place> for Place {
    fn from(place: ptx::Place) -> Place {
        Place { file: place.file.to_string(), line: place.line, column: place.column }
    }
}

/// A kernel, built for one problem: PTX text and the recipe of its launch.
///
/// The recipe is closed: it names buffers of the judge, and holds no data and no address of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Built {
    /// Name of the entry.
    pub name: String,
    /// PTX text.
    pub ptx: String,
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// CTAs of a cluster in x, y, z.
    pub cluster: [u32; 3],
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// Parameters, in order.
    pub params: Vec<Param>,
    /// Names for parts of the on-chip memories.
    pub regions: Vec<ptx::Region>,
    /// TODOs that are still open.
    pub todos: Vec<OpenTodo>,
    /// Tensor memory that is allocated and never freed. The builder refuses it, and gives the kernel all the same.
    pub leaks: Vec<BuildErrorAt>,
}

/// A kernel parameter, by the name of the matrix that it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Param {
    /// The address of a matrix's first element.
    Pointer(Matrix),
    /// A tensor map of a matrix, by value.
    TensorMap {
        /// The matrix.
        matrix: Matrix,
        /// Rows of a box.
        box_rows: u32,
        /// Columns of a box, in elements.
        box_columns: u32,
        /// How a box lies in shared memory.
        swizzle: ptx::Swizzle,
    },
}

/// A matrix of the product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Matrix {
    /// m × k, read.
    A,
    /// n × k, read.
    B,
    /// m × n, written.
    D,
}

impl fmt::Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Matrix::A => "A",
            Matrix::B => "B",
            Matrix::D => "D",
        })
    }
}

/// A TODO that the kernel still holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenTodo {
    /// Its number, `step.n`.
    pub id: String,
    /// Where it stands.
    pub place: Place,
}

/// A call that the builder refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildErrorAt {
    /// The call.
    pub place: Place,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
}

impl From<ptx::BuildError> for BuildErrorAt {
    fn from(error: ptx::BuildError) -> BuildErrorAt {
        BuildErrorAt { place: error.place.into(), message: error.message, help: error.help }
    }
}

/// What to do about a panic at a line of the kernel.
const LOOK_AT_THE_PANIC: &str = "Look at this line with the eyes of the CPU: a kernel function runs there, once, while the kernel is \
                                     built, and its Rust values are not those of the GPU.";
/// What to do where the panic is Rust's for a number below 0.
const LOOK_AT_THE_DIFFERENCE: &str = "Let the number not fall below 0 for any size (K may be one tile): compare sums in place of differences, \
                                      `a + b` with `c` in place of `a` with `c - b`, or use `saturating_sub`. A kernel function runs on the \
                                      CPU, once, while the kernel is built, and so does this `-`.";

/// What to do about a panic with this message, at a line of the kernel.
pub fn look_at_the_panic(message: &str) -> &'static str {
    if message == "attempt to subtract with overflow" { LOOK_AT_THE_DIFFERENCE } else { LOOK_AT_THE_PANIC }
}

/// What to do about one below it.
pub const LOOK_AT_THE_CALLS: &str = "Look in the kernel function for the call that ends there: it runs on the CPU, once, while the \
                                     kernel is built.";

/// How a program came to give no kernel, where it was ended, or its answer is refused: for who tells others of it, and reads no sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Ending {
    /// Its answer is refused: why, in a line.
    Refused(String),
    /// It ended and left no answer.
    Silent,
    /// It was ended after so long.
    TooLong(Whose, String),
    /// A signal or a status of its own, in words.
    Failed(Whose, String),
}

/// Whose end it was: what runs between a kernel's text and the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whose {
    /// The compiler, on the text.
    Compiler,
    /// What it made of it, which builds the kernel.
    Kernel,
}

/// What kind of reason it is that there is no kernel: a stable word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The builder refused calls.
    Refused,
    /// The kernel function panicked.
    Panicked,
    /// It does not compile.
    NotCompiled,
    /// It is another kernel each time it is built.
    AnotherEachTime,
    /// The program that should have built it gave no answer that can be taken.
    NoAnswer,
}

/// That there is no kernel: the text, and what it says for who acts on it and reads no sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unbuilt {
    /// What kind of reason it is.
    pub cause: Cause,
    /// All that is said.
    pub text: String,
    /// The reason in one sentence, without its place.
    pub title: String,
    /// The line that is the reason, if one is.
    pub place: Option<Place>,
    /// One thing to try.
    pub help: Option<String>,
}

impl Unbuilt {
    /// A reason that says no more than its text: its first line is the title, and what stands behind `try: ` is to be tried.
    pub fn new(cause: Cause, text: impl Into<String>) -> Unbuilt {
        let text = text.into();
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let title = lines.next().unwrap_or("there is no kernel").trim_end_matches(':').to_string();
        let help = lines.find_map(|line| line.strip_prefix("try: ")).map(str::to_string);
        Unbuilt { cause, title, place: None, help, text }
    }
}

/// Why there is no kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum BuildFailure {
    /// The builder refused these calls.
    Rejected(Vec<BuildErrorAt>),
    /// The kernel function panicked.
    Panicked {
        /// The panic's message.
        message: String,
        /// Where it panicked, if known.
        place: Option<Place>,
    },
    /// The program that should have built it gave no answer.
    NoAnswer {
        /// What happened.
        message: String,
        /// How it came to that, where it is known. No answer of a program can hold it.
        #[serde(skip)]
        ending: Option<Ending>,
        /// What the message says, where who wrote it knows more than its text. No answer of a program can hold it.
        #[serde(skip)]
        says: Option<Box<Unbuilt>>,
    },
    /// It is another kernel each time it is built. No answer of a program can hold it.
    #[serde(skip)]
    Varies {
        /// In what.
        message: String,
        /// The line that wrote what differs, if it is known.
        place: Option<Place>,
        /// What to do.
        help: String,
    },
    /// This machine failed: that says nothing of the kernel. No answer of a program can hold it.
    #[serde(skip)]
    Here {
        /// What failed, and the way out.
        message: String,
    },
}

impl BuildFailure {
    /// No answer, and no more is known than this.
    pub fn no_answer(message: impl Into<String>) -> BuildFailure {
        BuildFailure::NoAnswer { message: message.into(), ending: None, says: None }
    }

    /// The failure, and what it says.
    pub fn unbuilt(&self) -> Unbuilt {
        let first = |text: &str| text.lines().next().unwrap_or_default().trim_end_matches(':').to_string();
        let of = |cause: Cause, title: String, place: Option<&Place>, help: &str| Unbuilt {
            cause,
            text: self.to_string(),
            title,
            place: place.cloned(),
            help: Some(help.to_string()).filter(|help| !help.is_empty()),
        };
        match self {
            BuildFailure::Rejected(errors) => match errors.as_slice() {
                [error, ..] => {
                    let help = errors.iter().map(|error| error.help.as_str()).find(|help| !help.is_empty());
                    of(Cause::Refused, first(&error.message), Some(&error.place), help.unwrap_or_default())
                }
                [] => Unbuilt::new(Cause::Refused, "the builder refused the kernel"),
            },
            BuildFailure::Panicked { message, place } => {
                let place = place.as_ref().filter(|place| place.is_of_the_kernel());
                let help = if place.is_some() { look_at_the_panic(message) } else { LOOK_AT_THE_CALLS };
                of(Cause::Panicked, first(&format!("the kernel function panicked: {message}")), place, help)
            }
            BuildFailure::NoAnswer { message, says: Some(says), .. } => {
                Unbuilt { text: message.clone(), ..Unbuilt::clone(says) }
            }
            BuildFailure::NoAnswer { message, .. } | BuildFailure::Here { message } => {
                Unbuilt::new(Cause::NoAnswer, message)
            }
            BuildFailure::Varies { message, place, help } => {
                of(Cause::AnotherEachTime, first(message), place.as_ref(), help)
            }
        }
    }

    /// How the program came to give no kernel, where it is known.
    pub fn ending(&self) -> Option<&Ending> {
        if let BuildFailure::NoAnswer { ending, .. } = self { ending.as_ref() } else { None }
    }
}

impl fmt::Display for BuildFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildFailure::Rejected(errors) => {
                for (index, error) in errors.iter().enumerate() {
                    let gap = if index == 0 { "" } else { "\n" };
                    write!(f, "{gap}{}: {}", error.place, error.message)?;
                    if !error.help.is_empty() {
                        write!(f, "\n  try: {}", error.help)?;
                    }
                }
                Ok(())
            }
            BuildFailure::Panicked { message, place: Some(place) } if place.is_of_the_kernel() => {
                write!(f, "{place}: the kernel function panicked: {message}\n  try: {}", look_at_the_panic(message))
            }
            BuildFailure::Panicked { message, place } => {
                write!(f, "the kernel function panicked: {message}")?;
                if let Some(place) = place {
                    // Of Rust's own library: without the hash of the compiler's sources.
                    let shown = place.to_string();
                    let library = shown.strip_prefix("/rustc/").and_then(|rest| rest.split_once('/'));
                    write!(f, "\n  in code that it calls, {}", library.map_or(shown.as_str(), |(_, library)| library))?;
                }
                write!(f, "\n  try: {LOOK_AT_THE_CALLS}")
            }
            BuildFailure::NoAnswer { message, .. } | BuildFailure::Here { message } => f.write_str(message),
            BuildFailure::Varies { message, place, help } => {
                if let Some(place) = place {
                    write!(f, "{place}: ")?;
                }
                write!(f, "{message}\n  try: {help}")
            }
        }
    }
}

impl std::error::Error for BuildFailure {}

/// Something that builds a kernel for a problem.
pub trait KernelSource {
    /// Builds the kernel for a device of `sms` streaming multiprocessors.
    ///
    /// # Errors
    /// When the builder refuses the kernel, or the kernel function does not come to its end.
    fn build(&self, problem: &Problem, sms: u32) -> Result<Built, BuildFailure>;
}

/// A kernel function of this process.
#[derive(Clone, Copy)]
pub struct InProcess(pub ptx::KernelFn);

impl KernelSource for InProcess {
    fn build(&self, problem: &Problem, sms: u32) -> Result<Built, BuildFailure> {
        let gemm = ptx::Gemm::new(problem.m, problem.n, problem.k, problem.dtype, sms);
        let kernel = catch(|| ptx::build("kernel", &gemm, self.0))?;
        match kernel {
            Ok(kernel) => closed(kernel),
            Err(errors) => Err(BuildFailure::Rejected(errors.into_iter().map(BuildErrorAt::from).collect())),
        }
    }
}

/// The kernel as the judge takes it.
fn closed(kernel: ptx::Kernel) -> Result<Built, BuildFailure> {
    let matrix = |name: &str| {
        [Matrix::A, Matrix::B, Matrix::D].into_iter().find(|matrix| matrix.to_string() == name).ok_or_else(|| {
            BuildFailure::no_answer(format!("the kernel asks for a matrix {name}; there are A, B and D"))
        })
    };
    let param = |param: &ptx::Param| match param {
        ptx::Param::Pointer(name) => Ok(Param::Pointer(matrix(name)?)),
        ptx::Param::TensorMap(map) => Ok(Param::TensorMap {
            matrix: matrix(map.matrix)?,
            box_rows: map.box_rows,
            box_columns: map.box_columns,
            swizzle: map.swizzle,
        }),
        other => Err(BuildFailure::no_answer(format!(
            "the kernel asks for the parameter {other:?}, which the judge does not know"
        ))),
    };
    Ok(Built {
        params: kernel.params.iter().map(param).collect::<Result<_, _>>()?,
        regions: kernel.regions,
        todos: kernel.todos.iter().map(|todo| OpenTodo { id: todo.id.to_string(), place: todo.place.into() }).collect(),
        leaks: kernel.leaks.into_iter().map(BuildErrorAt::from).collect(),
        name: kernel.name,
        ptx: kernel.text,
        grid: kernel.grid,
        cluster: kernel.cluster,
        block: kernel.block,
        dynamic_shared: kernel.dynamic_shared,
    })
}

thread_local! {
    /// This thread is running a student's kernel function.
    static CATCHING: Cell<bool> = const { Cell::new(false) };
    static LAST_PANIC: RefCell<Option<(String, Option<Place>)>> = const { RefCell::new(None) };
}

/// Runs `body`; a panic in it becomes a value and prints nothing.
fn catch<T>(body: impl FnOnce() -> T) -> Result<T, BuildFailure> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        // The hook is the process's: panics of other threads, and of this one elsewhere, go to the one before.
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if CATCHING.get() {
                let payload = info.payload();
                let message = (payload.downcast_ref::<&str>().map(|text| (*text).to_string()))
                    .or_else(|| payload.downcast_ref::<String>().cloned())
                    .unwrap_or_else(|| "no message".to_string());
                let place = info.location().map(|location| Place {
                    file: location.file().to_string(),
                    line: location.line(),
                    column: location.column(),
                });
                LAST_PANIC.set(Some((message, place)));
            } else {
                before(info);
            }
        }));
    });
    CATCHING.set(true);
    let result = panic::catch_unwind(AssertUnwindSafe(body));
    CATCHING.set(false);
    result.map_err(|_| {
        let (message, place) = LAST_PANIC.take().unwrap_or_else(|| ("no message".to_string(), None));
        BuildFailure::Panicked { message, place }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    /// The words are Rust's: they may change with the compiler.
    #[test]
    #[cfg(debug_assertions)]
    fn a_number_below_0_has_its_own_advice() {
        fn kernel(k: &mut ptx::Cta, gemm: &ptx::Gemm) {
            k.threads(32);
            let _ = black_box(gemm.tiles_k(64)) - black_box(2);
        }
        let problem = Problem { m: 128, n: 128, k: 64, dtype: ptx::Dtype::F16 };
        let failure = InProcess(kernel).build(&problem, 148).expect_err("1 - 2");
        let BuildFailure::Panicked { message, .. } = failure else { panic!("{failure:?}") };
        assert!(look_at_the_panic(&message).contains("saturating_sub"), "{message}");
        assert_eq!(look_at_the_panic("no such tile"), LOOK_AT_THE_PANIC);
    }
}
