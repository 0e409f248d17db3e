//! What all hand-ins are compiled with: the compiler, and the workbook's crates that a kernel uses, compiled once.
//!
//! Cargo runs here, on our own manifests alone. So nothing of a hand-in is read where there is something to write to.

use crate::cargo::{self, Build, settings};
use crate::children;
use crate::crates::{self, Crates};
use crate::locks;
use crate::sandbox::hidden;
use crate::versions;
use harness::workbook::pack::hex;
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

/// The longest that a tool may take to say where it lies, or which it is.
pub(crate) const SAYS_LIMIT: Duration = Duration::from_secs(60);

/// What a hand-in is compiled with. While it lives, nobody writes to it or removes it.
#[derive(Clone, Debug)]
pub struct Toolchain {
    /// The checkout of the workbook.
    pub root: PathBuf,
    /// The folder of the toolchain.
    pub sysroot: PathBuf,
    /// Where scratch folders are made.
    pub scratch: PathBuf,
    /// The compiled crates.
    pub crates: Crates,
}

impl Toolchain {
    /// Finds the compiler, and compiles the crates for the checkout at `root` if they are not.
    ///
    /// # Errors
    /// When there is no compiler, or they do not compile.
    pub fn prepare(root: &Path) -> Result<Toolchain, String> {
        let real = |path: &Path| fs::canonicalize(path).map_err(|error| format!("no {}: {error}", path.display()));
        let root = real(root)?;
        hidden("the checkout, with its solutions", &root)?;
        let grader = root.join("target/grader");
        let target = grader.join("shared");
        fs::create_dir_all(&grader).map_err(|error| format!("cannot make {}: {error}", grader.display()))?;
        // Another grader would compile, in the same folder, what this one has begun to use.
        let lock = grader.join("lock");
        let told = format!("waiting for another grader that compiles what hand-ins use (it holds {})", lock.display());
        let _alone = locks::wait(&lock, Some(&told))?;
        let compiler = Compiler::of(&root)?;
        let key = || key(&root, &compiler);
        let make = || {
            let manifest = lay_out(&root, &grader)?;
            let (rustc, host) = (compiler.program(), compiler.host()?);
            Build { root: &root, manifest: &manifest, target: &target, rustc: &rustc, host }.run()?
        };
        let crates = crates::of(&grader.join("crates"), &key()?, make, key)?;
        let sysroot = real(&compiler.sysroot)?;
        let scratch = grader.join("hand-ins");
        fs::create_dir_all(&scratch).map_err(|error| format!("cannot make {}: {error}", scratch.display()))?;
        Ok(Toolchain { root, sysroot, scratch, crates })
    }

    /// The compiler itself, not what chooses one.
    pub fn rustc(&self) -> PathBuf {
        self.sysroot.join("bin/rustc")
    }

    /// What rustc needs of its folder: itself, its libraries, and what it compiles with. The folder may be `/usr`, or hold other programs.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn compiler(&self) -> Result<Vec<PathBuf>, String> {
        let libraries = self.sysroot.join("lib");
        let failed = |error: std::io::Error| format!("cannot read {}: {error}", libraries.display());
        let mut needed = vec![self.rustc(), libraries.join("rustlib")];
        for entry in fs::read_dir(&libraries).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // `libLLVM.so.21.1-rust-1.95.0-stable` is one, too.
            if path.is_file() && (name.ends_with(".so") || name.contains(".so.")) {
                needed.push(path);
            }
        }
        Ok(needed)
    }
}

/// The compiler of a checkout.
struct Compiler {
    /// Where it lies.
    sysroot: PathBuf,
    /// Which one it is, in all words that it has for it.
    version: String,
    /// The same of cargo, which tells it what to compile and how.
    cargo: String,
}

impl Compiler {
    fn of(root: &Path) -> Result<Compiler, String> {
        // Side by side: who chooses a compiler takes a while for each question.
        thread::scope(|scope| {
            let failed = |what: &str| Err(format!("asking {what} failed"));
            let sysroot = scope.spawn(|| asked(rustc(), root, &["--print", "sysroot"]));
            let cargo = scope.spawn(|| asked(cargo::program(), root, &["-vV"]));
            let version = asked(rustc(), root, &["-vV"])?;
            let sysroot = sysroot.join().unwrap_or_else(|_| failed("rustc where it lies"))?;
            let cargo = cargo.join().unwrap_or_else(|_| failed("cargo which it is"))?;
            Ok(Compiler { sysroot: PathBuf::from(sysroot), version, cargo })
        })
    }

    /// The compiler itself: what chooses one, or `RUSTC` in its place, may do so by what nobody knows.
    fn program(&self) -> PathBuf {
        self.sysroot.join("bin/rustc")
    }

    /// The machine that it runs on.
    fn host(&self) -> Result<&str, String> {
        let host = self.version.lines().find_map(|line| line.strip_prefix("host: "));
        host.ok_or_else(|| {
            format!("rustc -vV does not say what it runs on: no line begins with `host: ` in\n{}", self.version)
        })
    }
}

fn rustc() -> OsString {
    std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

fn asked(program: OsString, root: &Path, arguments: &[&str]) -> Result<String, String> {
    let name = program.to_string_lossy().into_owned();
    let said = children::run(Command::new(program).args(arguments).current_dir(root), SAYS_LIMIT)?;
    match said.code {
        Some(0) => Ok(said.stdout.trim().to_string()),
        _ => Err(format!("`{name} {}` failed: {}", arguments.join(" "), said.stderr.trim())),
    }
}

/// A hash of all that the crates are made from.
fn key(root: &Path, compiler: &Compiler) -> Result<String, String> {
    let unread = |error: std::io::Error| format!("cannot read the sources that hand-ins are compiled with: {error}");
    let sources = versions::shared_sources(root).map_err(unread)?;
    let place = compiler.sysroot.display().to_string();
    let all = [&sources, &compiler.version, &compiler.cargo, &place, &manifest(root)?, &settings(root, cargo::home())?];
    let hash = hex(&Sha256::digest(all.map(String::as_str).join("\n")));
    Ok(hash[..16].to_string())
}

/// The manifest of a crate that does nothing and depends on what hand-ins depend on.
fn manifest(root: &Path) -> Result<String, String> {
    let path = |folder: &str| {
        let path = root.join(folder);
        // JSON strings are TOML strings.
        let text = path.to_str().ok_or_else(|| format!("{} is not UTF-8: cargo cannot name it", path.display()))?;
        serde_json::to_string(text).map_err(|error| error.to_string())
    };
    Ok(format!(
        "[workspace]\nresolver = \"3\"\n\n[package]\nname = \"shared\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
         publish = false\n\n[dependencies]\nptx = {{ path = {} }}\nemit = {{ path = {} }}\n\n\
         [profile.dev]\ndebug = false\n",
        path("ptx")?,
        path("harness/emit")?
    ))
}

/// Writes that crate. Gives its manifest.
fn lay_out(root: &Path, grader: &Path) -> Result<PathBuf, String> {
    let folder = grader.join("shared-crate");
    let source = folder.join("src");
    fs::create_dir_all(&source).map_err(|error| format!("cannot make {}: {error}", source.display()))?;
    let lock = fs::read_to_string(root.join("Cargo.lock")).map_err(|error| format!("no Cargo.lock: {error}"))?;
    // The lock anew each time: cargo removes from it what this crate does not need, and compiles nothing again because of it.
    for (name, text) in [("Cargo.toml", manifest(root)?.as_str()), ("src/lib.rs", ""), ("Cargo.lock", &lock)] {
        keep(&folder.join(name), text)?;
    }
    Ok(folder.join("Cargo.toml"))
}

/// Writes a file unless it is so already: cargo would compile again what is new.
fn keep(path: &Path, text: &str) -> Result<(), String> {
    if fs::read_to_string(path).is_ok_and(|there| there == text) {
        return Ok(());
    }
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    /// A checkout with nothing in it but what is asked for.
    fn checkout() -> TempDir {
        let root = tempfile::tempdir().unwrap();
        for folder in ["ptx/src", "harness/emit/src", ".cargo"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        for file in ["Cargo.toml", "Cargo.lock", "ptx/Cargo.toml", "harness/emit/Cargo.toml"] {
            fs::write(root.path().join(file), "first").unwrap();
        }
        root
    }

    #[test]
    fn crates_are_compiled_with_the_lock_that_their_key_has() {
        let (root, grader) = (checkout(), tempfile::tempdir().unwrap());
        let manifest = lay_out(root.path(), grader.path()).unwrap();
        let lock = manifest.with_file_name("Cargo.lock");
        // As cargo leaves it, later than what it was copied from: of a checkout that then went back to an older one.
        fs::write(&lock, "of another commit").unwrap();
        lay_out(root.path(), grader.path()).unwrap();
        assert_eq!(fs::read_to_string(&lock).unwrap(), "first");
    }

    #[test]
    fn what_cargo_is_told_is_in_the_key() {
        let root = checkout();
        let compiler = Compiler { sysroot: PathBuf::from("/rust"), version: "1".to_string(), cargo: "1".to_string() };
        let now = || key(root.path(), &compiler).unwrap();
        let mut keys = vec![now()];
        for (file, text) in [
            ("Cargo.lock", "second"),
            (".cargo/config.toml", "[profile.dev]\nopt-level = 2"),
            (".cargo/config.toml", "[profile.dev]\nopt-level = 3"),
        ] {
            fs::write(root.path().join(file), text).unwrap();
            keys.push(now());
        }
        assert_eq!(keys.iter().collect::<std::collections::BTreeSet<_>>().len(), keys.len(), "{keys:?}");
        assert_eq!(now(), keys[3]);
        let others =
            [("/other", "1", "1"), ("/rust", "2", "1"), ("/rust", "1", "2")].map(|(sysroot, version, cargo)| {
                let compiler = Compiler {
                    sysroot: PathBuf::from(sysroot),
                    version: version.to_string(),
                    cargo: cargo.to_string(),
                };
                key(root.path(), &compiler).unwrap()
            });
        assert!(others.iter().enumerate().all(|(n, one)| *one != now() && !others[..n].contains(one)), "{others:?}");
    }
}
