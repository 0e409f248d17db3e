//! What the figures show: recordings of the emulator, made while the book is built.
//!
//! Each is a script that hands JSON to `bookFigures.recorded`, since a page that was opened from a file may not fetch one. A recording is kept
//! below `target/book-data` under the hash of the kernel and of this program, which holds the emulator: what both say cannot have changed.

use crate::site;
use harness::figures::{self, Recorded};
use harness::recording::for_script;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Writes the data of all figures to a folder.
///
/// # Errors
/// When a kernel does not run, or a file cannot be written.
pub fn write(target: &Path) -> Result<(), String> {
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    fs::create_dir_all(target).map_err(|error| failed(target, error))?;
    let kept = kept();
    fs::create_dir_all(&kept).map_err(|error| failed(&kept, error))?;
    let program = program()?;
    let put = |name: &str, key: &[u8], make: &dyn Fn() -> Result<String, String>| {
        let file = kept.join(format!("{}.js", hash(&[&program, name.as_bytes(), key])));
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(_) => {
                let text = format!("bookFigures.recorded({name:?}, {});\n", make()?);
                // Another book may be built at the same time, and read it.
                let part = kept.join(format!("{name}.{}", std::process::id()));
                fs::write(&part, &text)
                    .and_then(|()| fs::rename(&part, &file))
                    .map_err(|error| failed(&file, error))?;
                text
            }
        };
        let path = target.join(format!("{name}.js"));
        fs::write(&path, text).map_err(|error| failed(&path, error))
    };
    for kernel in figures::kernels()? {
        let key = serde_json::to_vec(&kernel).map_err(|error| error.to_string())?;
        put(&kernel.name, &key, &|| recorded(&kernel))?;
    }
    let root = site::folder().join("..");
    let table = fs::read(root.join("data/published_ladders.csv")).unwrap_or_default();
    put("ladder", &table, &|| for_script(&figures::ladder(&root)?))
}

/// What a kernel did, as JSON.
///
/// # Errors
/// When it does not run.
pub fn recorded(kernel: &Recorded) -> Result<String, String> {
    if figures::is_order(kernel) { for_script(&figures::order(kernel)?) } else { for_script(&figures::record(kernel)?) }
}

/// Where recordings are kept: beside the folder that this program was built in.
fn kept() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    let target = program.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file());
    target.map_or_else(|| site::folder().join("../target"), Path::to_path_buf).join("book-data")
}

/// What this program is known by.
fn program() -> Result<Vec<u8>, String> {
    let path = std::env::current_exe().map_err(|error| format!("cannot tell which program this is: {error}"))?;
    let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(hash(&[&bytes]).into_bytes())
}

/// The hash of some bytes, each part with its length.
fn hash(parts: &[&[u8]]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
