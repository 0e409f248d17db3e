//! What all hand-ins are compiled with: the compiler, and the workbook's crates that a kernel uses, compiled once.
//!
//! Cargo runs here, on our own manifests alone. So nothing of a hand-in is read where there is something to write to.

use crate::children;
use crate::locks;
use crate::sandbox::is_shown;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

/// The longest that cargo may take: the first build compiles everything that hand-ins depend on.
const CARGO_LIMIT: Duration = Duration::from_secs(900);
/// The longest that rustc may take to say where it lies.
const SAYS_LIMIT: Duration = Duration::from_secs(60);

/// The crates that a hand-in's program names.
const CRATES: [&str; 2] = ["ptx", "emit"];

/// What a hand-in is compiled with.
#[derive(Clone, Debug)]
pub struct Toolchain {
    /// The checkout of the workbook.
    pub root: PathBuf,
    /// The folder of the toolchain.
    pub sysroot: PathBuf,
    /// The compiled crates, by name.
    pub crates: Vec<(String, PathBuf)>,
    /// The folder of all compiled crates.
    pub folder: PathBuf,
    /// Where scratch folders are made.
    pub scratch: PathBuf,
}

impl Toolchain {
    /// Finds the compiler, and compiles the crates for the checkout at `root` if they are not.
    ///
    /// # Errors
    /// When there is no compiler, or they do not compile.
    pub fn prepare(root: &Path) -> Result<Toolchain, String> {
        let real = |path: &Path| fs::canonicalize(path).map_err(|error| format!("no {}: {error}", path.display()));
        let root = real(root)?;
        if is_shown(&root) {
            return Err(format!(
                "{} lies in a folder of the system that hand-ins see\n  try: Move the checkout, with its solutions, elsewhere.",
                root.display()
            ));
        }
        let grader = root.join("target/grader");
        let target = grader.join("shared");
        fs::create_dir_all(&grader).map_err(|error| format!("cannot make {}: {error}", grader.display()))?;
        // Another grader would compile, in the same folder, what this one has begun to use.
        let lock = grader.join("lock");
        let told = format!("waiting for another grader that compiles what hand-ins use (it holds {})", lock.display());
        let _alone = locks::wait(&lock, Some(&told))?;
        let manifest = lay_out(&root, &grader)?;
        // Side by side: each of the two takes a tenth of a second when there is nothing to do.
        let (sysroot, crates) = thread::scope(|scope| {
            let sysroot = scope.spawn(|| sysroot(&root));
            let crates = cargo(&root, &manifest, &target, true);
            (sysroot.join().unwrap_or_else(|_| Err("asking rustc where it lies failed".to_string())), crates)
        });
        let sysroot = real(&sysroot?)?;
        // Crates that are not on this machine yet.
        let crates = crates?.or_else(|_| cargo(&root, &manifest, &target, false)?)?;
        let folder = real(&target.join("debug/deps"))?;
        let scratch = grader.join("hand-ins");
        fs::create_dir_all(&scratch).map_err(|error| format!("cannot make {}: {error}", scratch.display()))?;
        Ok(Toolchain { root, sysroot, crates, folder, scratch })
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

/// Where the compiler of a checkout lies.
fn sysroot(root: &Path) -> Result<PathBuf, String> {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let said = children::run(rustc.args(["--print", "sysroot"]).current_dir(root), SAYS_LIMIT)?;
    if said.code != Some(0) {
        return Err(format!("rustc does not say where it lies: {}", said.stderr.trim()));
    }
    Ok(PathBuf::from(said.stdout.trim()))
}

/// Writes a crate that does nothing and depends on what hand-ins depend on. Gives its manifest.
fn lay_out(root: &Path, grader: &Path) -> Result<PathBuf, String> {
    let folder = grader.join("shared-crate");
    let source = folder.join("src");
    fs::create_dir_all(&source).map_err(|error| format!("cannot make {}: {error}", source.display()))?;
    let path = |folder: &str| {
        let path = root.join(folder);
        // JSON strings are TOML strings.
        let text = path.to_str().ok_or_else(|| format!("{} is not UTF-8: cargo cannot name it", path.display()))?;
        serde_json::to_string(text).map_err(|error| error.to_string())
    };
    let manifest = format!(
        "[workspace]\nresolver = \"3\"\n\n[package]\nname = \"shared\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
         publish = false\n\n[dependencies]\nptx = {{ path = {} }}\nemit = {{ path = {} }}\n\n\
         [profile.dev]\ndebug = false\n",
        path("ptx")?,
        path("harness/emit")?
    );
    let lock = fs::read_to_string(root.join("Cargo.lock")).map_err(|error| format!("no Cargo.lock: {error}"))?;
    for (name, text) in [("Cargo.toml", manifest.as_str()), ("src/lib.rs", "")] {
        keep(&folder.join(name), text)?;
    }
    // Cargo removes from it what this crate does not need: only a first one is written.
    let lock_file = folder.join("Cargo.lock");
    if !lock_file.exists() || newer(&root.join("Cargo.lock"), &lock_file) {
        fs::write(&lock_file, lock).map_err(|error| format!("cannot write {}: {error}", lock_file.display()))?;
    }
    Ok(folder.join("Cargo.toml"))
}

fn newer(this: &Path, other: &Path) -> bool {
    let moment = |path: &Path| path.metadata().and_then(|about| about.modified()).ok();
    moment(this) > moment(other)
}

/// Writes a file unless it is so already: cargo would compile again what is new.
fn keep(path: &Path, text: &str) -> Result<(), String> {
    if fs::read_to_string(path).is_ok_and(|there| there == text) {
        return Ok(());
    }
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// The compiled crates; in the inner result, why there are none.
fn cargo(
    root: &Path,
    manifest: &Path,
    target: &Path,
    offline: bool,
) -> Result<Result<Vec<(String, PathBuf)>, String>, String> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(["build", "--quiet", "--message-format=json", "--manifest-path"])
        .arg(manifest)
        .args(offline.then_some("--offline"))
        // As `rustc` is asked: what chooses a compiler may go by the folder.
        .current_dir(root)
        .env("CARGO_TARGET_DIR", target)
        .env("CARGO_INCREMENTAL", "0")
        // Our lines are named as in a checkout, wherever it lies.
        .env("CARGO_ENCODED_RUSTFLAGS", format!("--remap-path-prefix={}/=", root.display()));
    let said = children::run(&mut command, CARGO_LIMIT)?;
    if said.stopped.is_some() {
        return Err(format!("compiling what hand-ins use took longer than {} s", CARGO_LIMIT.as_secs()));
    }
    let messages: Vec<serde_json::Value> =
        said.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let library = |name: &str| {
        let message = messages.iter().find(|message| {
            message["reason"] == "compiler-artifact"
                && message["target"]["name"] == *name
                && message["target"]["kind"][0] == "lib"
        })?;
        let files = message["filenames"].as_array()?.iter().filter_map(|file| file.as_str());
        let file = files.into_iter().find(|file| file.ends_with(".rlib"))?;
        Some((name.to_string(), PathBuf::from(file)))
    };
    let found: Option<Vec<_>> = CRATES.iter().map(|name| library(name)).collect();
    Ok(match found {
        Some(crates) if said.code == Some(0) => Ok(crates),
        _ => {
            let errors: String =
                messages.iter().filter_map(|message| message["message"]["rendered"].as_str()).collect();
            Err(format!("what hand-ins use does not compile:\n{errors}{}", said.stderr.trim_end()))
        }
    })
}
