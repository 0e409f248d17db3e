//! Libraries that are opened at run time, and tables of their functions.
#![allow(unsafe_code)] // Functions of libraries are called by address; each table states their types beside their names.

use libloading::Library;
use std::path::PathBuf;

/// A table of functions: each field is one, loaded by its name when the table is made. `$result` is what all of them return.
///
/// A status is an integer here and no Rust enumeration: a newer driver may return a number that this program has no name for.
macro_rules! functions {
    ($(#[$about:meta])* $table:ident -> $result:ty { $($name:ident($($argument:ty),*);)* }) => {
        $(#[$about])*
        #[allow(non_snake_case)]
        pub(crate) struct $table {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl $table {
            /// The functions of a library, which stays open for ever. `Err`: the first one that it lacks.
            #[allow(non_snake_case)]
            pub(crate) fn of(library: &'static libloading::Library) -> Result<$table, &'static str> {
                $(
                    // SAFETY: the type is the one that the library's documentation gives for this name.
                    let $name = *unsafe {
                        library.get::<unsafe extern "C" fn($($argument),*) -> $result>(concat!(stringify!($name), "\0"))
                    }
                    .map_err(|_| stringify!($name))?;
                )*
                Ok($table { $($name),* })
            }
        }
    };
}
pub(crate) use functions;

/// Opens the first of these that opens. It stays open for the rest of the process: drivers do not like to be unloaded.
pub(crate) fn open(candidates: &[PathBuf]) -> Option<(&'static Library, PathBuf)> {
    candidates.iter().find_map(|path| {
        // SAFETY: initialisers of NVIDIA's libraries run in any program that links to them; nothing else is opened here.
        let library = unsafe { Library::new(path) }.ok()?;
        Some((&*Box::leak(Box::new(library)), path.clone()))
    })
}
