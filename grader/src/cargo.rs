//! Cargo, which compiles what all hand-ins use.
//!
//! **Does:** run cargo so that what it makes depends on what its caller knows: the sources, the compiler, the files of cargo's settings
//! ([`settings`]). Everything else that could decide is set here or not passed on: variables, wrappers of the compiler, flags, the
//! target. **Never does:** take crates that were made from something else, whatever had cargo compile it.

use crate::children;
use crate::crates::Made;
use harness::workbook::pack::hex;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The longest that cargo may take: the first build compiles everything that hand-ins depend on.
const LIMIT: Duration = Duration::from_secs(900);

/// The crates that a hand-in's program names.
const CRATES: [&str; 2] = ["ptx", "emit"];

/// How variables begin that cargo and rustc go by. None is passed on but those of [`FETCHES`].
const DECIDES: [&str; 4] = ["CARGO", "RUSTC", "RUSTFLAGS", "RUSTDOC"];
/// How those of them begin that say how crates are fetched, and on how many cores they are compiled: what is made of them is the same.
const FETCHES: [&str; 6] =
    ["CARGO_HOME", "CARGO_HTTP_", "CARGO_NET_", "CARGO_REGISTRY_", "CARGO_REGISTRIES_", "CARGO_BUILD_JOBS"];

/// A build of the crate that depends on what hand-ins depend on.
pub(crate) struct Build<'a> {
    /// The checkout.
    pub root: &'a Path,
    /// The crate.
    pub manifest: &'a Path,
    /// Where cargo writes.
    pub target: &'a Path,
    /// The compiler itself, not what chooses one.
    pub rustc: &'a Path,
    /// What it compiles for: its own machine, whose programs run here.
    pub host: &'a str,
}

/// Cargo itself.
pub(crate) fn program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Cargo's own folder.
pub(crate) fn home() -> Option<PathBuf> {
    let own = std::env::var_os("CARGO_HOME").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    own.or_else(|| Some(std::env::home_dir()?.join(".cargo")))
}

/// A hash of each file of cargo's settings: in the folder, those above, and its own, with what they include. They name profiles, linkers,
/// and where crates come from.
pub(crate) fn settings(root: &Path, own: Option<PathBuf>) -> Result<String, String> {
    let folders = root.ancestors().map(|folder| folder.join(".cargo")).chain(own);
    let mut waiting: Vec<PathBuf> =
        folders.flat_map(|folder| ["config.toml", "config"].map(|name| folder.join(name))).collect();
    // Of two that include each other, each is read once.
    let (mut all, mut seen) = (BTreeMap::new(), BTreeSet::new());
    while let Some(file) = waiting.pop() {
        if !seen.insert(file.clone()) {
            continue;
        }
        match fs::read(&file) {
            Ok(text) => {
                waiting.extend(included(&file, &text));
                all.insert(file, hex(&Sha256::digest(text)));
            }
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => return Err(format!("cannot read {}, as cargo does: {error}", file.display())),
        }
    }
    Ok(all.iter().map(|(file, hash)| format!("{hash} {}\n", file.display())).collect())
}

/// The files that one of the settings includes: `include` is a path, or a list of paths and of tables with a `path`. Of a file that is no TOML
/// cargo says so itself, as soon as it has to compile.
fn included(file: &Path, text: &[u8]) -> Vec<PathBuf> {
    let text = String::from_utf8_lossy(text);
    let Ok(settings) = toml::from_str::<toml::Table>(&text) else { return Vec::new() };
    let named = match settings.get("include") {
        Some(toml::Value::Array(several)) => several.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    let path = |one: &toml::Value| Some(file.with_file_name(one.get("path").unwrap_or(one).as_str()?));
    named.iter().filter_map(path).collect()
}

/// A variable that is not passed on.
fn decides(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let begins = |beginnings: &[&str]| beginnings.iter().any(|begin| name.starts_with(begin));
    begins(&DECIDES) && !begins(&FETCHES)
}

impl Build<'_> {
    /// The compiled crates, from what is on this machine, or else fetched; in the inner result, why there are none.
    pub(crate) fn run(&self) -> Result<Result<Made, String>, String> {
        let offline = self.once(true)?;
        if offline.is_ok() { Ok(offline) } else { self.once(false) }
    }

    /// The command. `named`: the variables of the environment.
    fn command(&self, offline: bool, named: impl Iterator<Item = OsString>) -> Command {
        let mut command = Command::new(program());
        for name in named.filter(|name| decides(name)) {
            command.env_remove(name);
        }
        command
            .args(["build", "--quiet", "--message-format=json", "--target", self.host, "--manifest-path"])
            .arg(self.manifest)
            .args(offline.then_some("--offline"))
            // As `rustc` is asked: what chooses a compiler may go by the folder.
            .current_dir(self.root)
            .env("CARGO_TARGET_DIR", self.target)
            .env("CARGO_INCREMENTAL", "0")
            // Each comes before what the settings say of it. Empty: no wrapper, which would be told what to compile and could do something else.
            .env("RUSTC", self.rustc)
            .env("RUSTC_WRAPPER", "")
            .env("RUSTC_WORKSPACE_WRAPPER", "")
            // Our lines are named as in a checkout, wherever it lies.
            .env("CARGO_ENCODED_RUSTFLAGS", format!("--remap-path-prefix={}/=", self.root.display()));
        command
    }

    fn once(&self, offline: bool) -> Result<Result<Made, String>, String> {
        let named = std::env::vars_os().map(|(name, _)| name);
        let said = children::run(&mut self.command(offline, named), LIMIT)?;
        if said.stopped.is_some() {
            return Err(format!("compiling what hand-ins use took longer than {} s", LIMIT.as_secs()));
        }
        let messages: Vec<Value> = said.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let artifacts: Vec<&Value> =
            messages.iter().filter(|message| message["reason"] == "compiler-artifact").collect();
        let named: Option<Vec<_>> = CRATES.iter().map(|name| library(&artifacts, name)).collect();
        Ok(match named {
            Some(named) if said.code == Some(0) => {
                self.known(&artifacts)?;
                Ok(Made { named, files: artifacts.iter().flat_map(|message| files(message)).collect() })
            }
            _ => {
                let errors: String =
                    messages.iter().filter_map(|message| message["message"]["rendered"].as_str()).collect();
                Err(format!("what hand-ins use does not compile:\n{errors}{}", said.stderr.trim_end()))
            }
        })
    }

    /// That what was compiled is what the caller's key has: crates of the checkout, and such that its `Cargo.lock` lists. Settings of cargo can
    /// put others in their place (`[patch]`, `paths`), which nobody compares with anything.
    fn known(&self, artifacts: &[&Value]) -> Result<(), String> {
        #[derive(serde::Deserialize)]
        struct Lock {
            package: Vec<Locked>,
        }
        #[derive(serde::Deserialize)]
        struct Locked {
            name: String,
            version: String,
            source: Option<String>,
        }
        let file = self.root.join("Cargo.lock");
        let unread = |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", file.display());
        let lock = fs::read_to_string(&file).map_err(|error| unread(&error))?;
        let lock: Lock = toml::from_str(&lock).map_err(|error| unread(&error))?;
        let listed =
            lock.package.into_iter().filter_map(|one| Some(format!("{}#{}@{}", one.source?, one.name, one.version)));
        let listed: BTreeSet<String> = listed.collect();
        let ours = ["ptx/Cargo.toml", "harness/emit/Cargo.toml"].map(|place| self.root.join(place));
        for message in artifacts {
            let id = message["package_id"].as_str().unwrap_or_default();
            let manifest = Path::new(message["manifest_path"].as_str().unwrap_or_default());
            if listed.contains(id) || manifest == self.manifest || ours.iter().any(|own| own == manifest) {
                continue;
            }
            return Err(format!(
                "what hand-ins use was compiled with a crate that is neither of the checkout nor in its Cargo.lock: {id} ({})\n  \
                 try: Look for `[patch]`, `paths` and sources of crates in the settings of cargo: `.cargo/config.toml` in {}, in the folders above \
                 it, and in the home folder.",
                manifest.display(),
                self.root.display()
            ));
        }
        Ok(())
    }
}

/// The files of an artifact that other crates are compiled with.
fn files(message: &Value) -> Vec<PathBuf> {
    let files = message["filenames"].as_array().into_iter().flatten().filter_map(Value::as_str);
    files.map(PathBuf::from).filter(|file| file.parent().is_some_and(|folder| folder.ends_with("deps"))).collect()
}

/// A crate that hand-ins name, and its file.
fn library(artifacts: &[&Value], name: &str) -> Option<(String, PathBuf)> {
    let is_it = |message: &&&Value| message["target"]["name"] == *name && message["target"]["kind"][0] == "lib";
    let file =
        files(artifacts.iter().find(is_it)?).into_iter().find(|file| file.extension() == Some(OsStr::new("rlib")))?;
    Some((name.to_string(), file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeSet;
    use tempfile::TempDir;

    /// A checkout whose crates need nothing else, and a crate that depends on both.
    struct Place {
        root: TempDir,
    }

    impl Place {
        fn new() -> Place {
            let place = Place { root: tempfile::tempdir().unwrap() };
            let package =
                |name: &str| format!("[package]\nname = \"{name}\"\nversion = \"1.0.0\"\nedition = \"2024\"\n");
            let whole = "#[cfg(flag)]\ncompile_error!(\"compiled with a flag of the settings\");\n";
            for (folder, name) in [("ptx", "ptx"), ("harness/emit", "emit"), ("elsewhere", "ptx")] {
                place.write(&format!("{folder}/Cargo.toml"), &package(name));
                place.write(&format!("{folder}/src/lib.rs"), whole);
            }
            place.write("made/Cargo.toml", &format!(
                "[workspace]\n{}[dependencies]\nptx = {{ path = \"../ptx\" }}\nemit = {{ path = \"../harness/emit\" }}\n",
                package("shared")
            ));
            place.write("made/src/lib.rs", "");
            place.write("Cargo.lock", "version = 4\n[[package]]\nname = \"ptx\"\nversion = \"1.0.0\"\n");
            place
        }

        fn path(&self) -> PathBuf {
            self.root.path().canonicalize().unwrap()
        }

        fn write(&self, file: &str, text: &str) {
            let path = self.root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        /// What becomes of a build with the compiler of these tests.
        fn build(&self) -> Result<Made, String> {
            let root = self.path();
            let said = |arguments: &[&str]| {
                let output = Command::new("rustc").args(arguments).output().unwrap();
                String::from_utf8(output.stdout).unwrap()
            };
            let about = said(&["-vV"]);
            let host = about.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
            let rustc = PathBuf::from(said(&["--print", "sysroot"]).trim()).join("bin/rustc");
            let (manifest, target) = (root.join("made/Cargo.toml"), root.join("target"));
            Build { root: &root, manifest: &manifest, target: &target, rustc: &rustc, host }.run()?
        }
    }

    /// Each of these settings alone ends a build that goes by it.
    #[test]
    fn no_setting_chooses_the_compiler_a_wrapper_a_flag_or_a_target() {
        let place = Place::new();
        for setting in [
            "rustc = \"/nonexistent/rustc\"",
            "rustc-wrapper = \"/nonexistent/wrapper\"",
            "rustc-workspace-wrapper = \"/nonexistent/wrapper\"",
            "rustflags = [\"--cfg\", \"flag\"]",
            "target = \"no-such-target\"",
        ] {
            place.write(".cargo/config.toml", &format!("[build]\n{setting}\n"));
            let made = place.build().unwrap_or_else(|error| panic!("{setting}: {error}"));
            let names: Vec<&str> = made.named.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, CRATES, "{setting}");
            assert!(made.named.iter().all(|(_, file)| made.files.contains(file)), "{made:?}");
            fs::remove_dir_all(place.path().join("target")).unwrap();
        }
    }

    #[test]
    fn a_crate_that_takes_the_place_of_ours_is_refused_by_name() {
        let place = Place::new();
        let elsewhere = place.path().join("elsewhere");
        place.write(".cargo/config.toml", &format!("paths = [{:?}]\n", elsewhere.to_str().unwrap()));
        let why = place.build().unwrap_err();
        let manifest = elsewhere.join("Cargo.toml");
        assert!(why.contains("neither of the checkout nor in its Cargo.lock"), "{why}");
        assert!(why.contains(&format!("({})\n  try: ", manifest.display())), "{why}");
    }

    #[test]
    fn of_a_registry_only_what_the_lock_lists_is_taken() {
        let place = Place::new();
        let source = "registry+https://github.com/rust-lang/crates.io-index";
        let listed = format!("version = 4\n[[package]]\nname = \"half\"\nversion = \"2.0.0\"\nsource = \"{source}\"\n");
        place.write("Cargo.lock", &listed);
        let (root, path) = (place.path(), Path::new("x"));
        let build = Build { root: &root, manifest: path, target: path, rustc: path, host: "h" };
        let known = |id: &str| {
            let message = json!({ "package_id": id, "manifest_path": "/registry/Cargo.toml" });
            build.known(&[&message])
        };
        assert_eq!(known(&format!("{source}#half@2.0.0")), Ok(()));
        for id in [format!("{source}#half@2.0.1"), "registry+https://else.where#half@2.0.0".to_string(), String::new()]
        {
            assert!(known(&id).unwrap_err().contains(&format!("Cargo.lock: {id} (/registry/Cargo.toml)")), "{id}");
        }
    }

    #[test]
    fn of_the_variables_of_cargo_and_rustc_only_those_that_fetch_are_passed_on() {
        let path = Path::new("x");
        let removed = [
            "CARGO_BUILD_RUSTC_WRAPPER",
            "CARGO_BUILD_TARGET",
            "CARGO_ENCODED_RUSTFLAGS_OLD",
            "CARGO_PROFILE_DEV_OPT_LEVEL",
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER",
            "RUSTC_BOOTSTRAP",
            "RUSTDOCFLAGS",
            "RUSTFLAGS",
        ];
        let stay =
            ["CARGO_BUILD_JOBS", "CARGO_HOME", "CARGO_HTTP_PROXY", "CARGO_NET_OFFLINE", "PATH", "RUSTUP_TOOLCHAIN"];
        let named = removed.into_iter().chain(stay).map(OsString::from);
        let build = Build { root: path, manifest: path, target: path, rustc: Path::new("/rust/bin/rustc"), host: "h" };
        let command = build.command(true, named);
        let (set, gone): (Vec<_>, Vec<_>) = command.get_envs().partition(|(_, to)| to.is_some());
        assert_eq!(gone.iter().map(|(name, _)| *name).collect::<Vec<_>>(), removed);
        let set: BTreeMap<_, _> =
            set.into_iter().filter_map(|(name, to)| Some((name.to_str()?, to?.to_str()?))).collect();
        for (name, value) in [("RUSTC", "/rust/bin/rustc"), ("RUSTC_WRAPPER", ""), ("RUSTC_WORKSPACE_WRAPPER", "")] {
            assert_eq!(set.get(name), Some(&value), "{name}");
        }
    }

    #[test]
    fn what_a_setting_includes_is_a_setting() {
        let place = Place::new();
        let settings = || settings(&place.path(), Some(place.path().join("home"))).unwrap();
        let mut all = vec![settings()];
        for (file, text) in [
            ("home/config.toml", "[profile.dev]\nopt-level = 1"),
            (".cargo/config.toml", "include = [\"more.toml\", { path = \"missing.toml\", optional = true }]"),
            (".cargo/more.toml", "include = \"config.toml\""),
            (".cargo/more.toml", "[profile.dev]\nopt-level = 2"),
            (".cargo/missing.toml", "[profile.dev]\nopt-level = 3"),
        ] {
            place.write(file, text);
            all.push(settings());
        }
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{all:#?}");
    }
}
