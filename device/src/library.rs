//! Libraries that are opened at run time, and how their functions are called.
//!
//! For CUDA, cudarc's bindings say of which type a function is, and this module opens the library and finds the function in it.
//! cudarc can do that itself, in three ways that do not suit here: it panics where a library or a function is missing; it takes
//! cuBLAS from nowhere but under its own list of names; and it gives a status as a Rust enumeration, which must never hold a number
//! without a name, while drivers newer than the bindings do return such numbers.
#![allow(unsafe_code)] // Functions of libraries are called by address.

use cudarc::cublas::sys::cublasStatus_t;
use cudarc::driver::sys::CUresult;
use libloading::Library;
use std::ffi::c_int;
use std::mem::{size_of, transmute_copy};
use std::path::{Path, PathBuf};

/// Opens the first of these that opens.
pub(crate) fn open(candidates: &[PathBuf]) -> Option<(&'static Library, PathBuf)> {
    candidates.iter().find_map(|path| Some((open_one(path)?, path.clone())))
}

/// Opens a library. It stays open for the rest of the process: drivers do not like to be unloaded.
pub(crate) fn open_one(path: &Path) -> Option<&'static Library> {
    // SAFETY: initialisers of NVIDIA's libraries run in any program that links to them; nothing else is opened here.
    let library = unsafe { Library::new(path) }.ok()?;
    Some(Box::leak(Box::new(library)))
}

/// Where a function of a library lies. Nothing is said of its type.
#[derive(Clone, Copy)]
pub(crate) struct Symbol(unsafe extern "C" fn());

impl Symbol {
    /// The function of this name, if the library, which stays open for ever, has it.
    pub(crate) fn of(library: &'static Library, name: &str) -> Option<Symbol> {
        // SAFETY: every function has an address, and it is not called as a function of this type.
        unsafe { library.get::<unsafe extern "C" fn()>(name) }.ok().map(|symbol| Symbol(*symbol))
    }

    /// The function, as one of type `F`.
    ///
    /// # Safety
    /// `F` is the type of a pointer to a function, and the one that the library's documentation gives for it.
    pub(crate) unsafe fn typed<F: Copy>(self) -> F {
        const { assert!(size_of::<F>() == size_of::<Symbol>()) };
        // SAFETY: both are pointers to functions, of the same size; the caller vouches for the type.
        unsafe { transmute_copy(&self.0) }
    }
}

/// A table of functions, found by their names when it is made.
macro_rules! symbols {
    ($(#[$about:meta])* $table:ident { $($name:ident)* }) => {
        $(#[$about])*
        #[allow(non_snake_case)]
        pub(crate) struct $table {
            $(pub(crate) $name: $crate::library::Symbol,)*
        }

        impl $table {
            /// The functions of a library. `Err`: the first one that it lacks.
            pub(crate) fn of(library: &'static libloading::Library) -> Result<$table, &'static str> {
                Ok($table { $($name: $crate::library::Symbol::of(library, stringify!($name)).ok_or(stringify!($name))?,)* })
            }
        }
    };
}
pub(crate) use symbols;

/// Calls a function of a table as cudarc binds it: `call!(sys, table, cuInit(0))`. Its status comes as an integer.
macro_rules! call {
    ($bindings:ident, $table:expr, $name:ident($($argument:expr),* $(,)?)) => {{
        let binding: unsafe fn($($crate::library::any!($argument)),*) -> _ = $bindings::$name;
        $crate::library::bound(binding, $table.$name)($($argument),*)
    }};
}
pub(crate) use call;

/// A type to be inferred, in the place of an argument.
macro_rules! any {
    ($argument:expr) => {
        _
    };
}
pub(crate) use any;

/// A status of CUDA. All are enumerations of C, so as large as an `int`.
pub(crate) trait Status {}
impl Status for CUresult {}
impl Status for cublasStatus_t {}

/// The type of one of cudarc's bindings.
pub(crate) trait Binding {
    /// The same function in the library, but for its status, which is an integer.
    type Function: Copy;
}

macro_rules! bindings {
    ($($argument:ident)*) => {
        impl<S: Status, $($argument),*> Binding for unsafe fn($($argument),*) -> S {
            type Function = unsafe extern "C" fn($($argument),*) -> c_int;
        }
    };
}
bindings!(A);
bindings!(A B);
bindings!(A B C);
bindings!(A B C D);
bindings!(A B C D E);
bindings!(A B C D E F G H I J K L); // cuTensorMapEncodeTiled
bindings!(A B C D E F G H I J K L M N O P Q R T); // cublasGemmEx

/// The function at an address, with the arguments of this binding.
///
/// # Safety
/// The binding and the symbol are of the same name, as [`call`] sees to.
pub(crate) unsafe fn bound<B: Binding>(_: B, symbol: Symbol) -> B::Function {
    // SAFETY: cudarc's bindings are made from the library's header; an enumeration of C returns as an `int` does.
    unsafe { symbol.typed() }
}
