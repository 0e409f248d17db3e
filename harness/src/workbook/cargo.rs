//! Asks cargo for a step's test binary. Steps are built one by one, so one that does not compile stops no other.

use super::workspace::{Workspace, name};
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What became of a step's test binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binary {
    /// It is here.
    Ready(PathBuf),
    /// The compiler refused the step.
    DoesNotCompile {
        /// The first error in one line, with its place.
        first: String,
        /// All errors as rustc prints them.
        rendered: String,
    },
}

/// The cargo that runs us, or the one of the `PATH`.
pub(super) fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Builds a step's test binary.
///
/// # Errors
/// When cargo could not be started, or failed for a reason that is not in the step's code.
pub fn test_binary(workspace: &Workspace, step: u8) -> Result<Binary, String> {
    let package = name(step);
    let output = Command::new(cargo())
        .args(["test", "--no-run", "--quiet", "-p", &package, "--message-format=json"])
        .current_dir(&workspace.root)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot start cargo: {error}\n  try: Install Rust from https://rustup.rs."))?;
    let messages = String::from_utf8_lossy(&output.stdout);
    read(&messages, output.status.success()).ok_or_else(|| {
        let said = String::from_utf8_lossy(&output.stderr);
        format!("cargo gave no test binary for {package} ({}); it said:\n{}", output.status, said.trim_end())
    })
}

/// What a step's test needs of `kernel.rs`.
const SIGNATURE: &str = "`pub fn kernel(k: &mut Cta, gemm: &Gemm)`";

/// What is meant, if an error is about the function itself: rustc shows it in files that are not the student's.
fn about_kernel(error: &serde_json::Value) -> Option<String> {
    let spans = error["spans"].as_array()?;
    let file = spans.iter().find(|span| span["is_primary"] == true)?["file_name"].as_str()?.replace('\\', "/");
    match error["code"]["code"].as_str()? {
        "E0432" if file.ends_with("/src/lib.rs") => Some(format!("`kernel.rs` has no function {SIGNATURE}")),
        "E0364" | "E0365" | "E0603" if file.ends_with("/src/lib.rs") => {
            Some("the function `kernel` in `kernel.rs` is not `pub`".to_string())
        }
        "E0308" if file.ends_with("/tests/verdict.rs") => {
            Some(format!("the function `kernel` in `kernel.rs` is another one than {SIGNATURE}"))
        }
        _ => None,
    }
}

/// Finds the binary, or the errors, in what cargo prints with `--message-format=json`.
fn read(messages: &str, success: bool) -> Option<Binary> {
    let (mut binary, mut first, mut rendered, mut kernel) = (None, None, String::new(), None);
    // Lines that are no JSON come from build scripts and the like.
    for message in messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok()) {
        match message["reason"].as_str() {
            Some("compiler-artifact") if message["target"]["kind"][0] == "test" => {
                binary = message["executable"].as_str().map(PathBuf::from).or(binary);
            }
            Some("compiler-message") if message["message"]["level"] == "error" => {
                let error = &message["message"];
                rendered.push_str(error["rendered"].as_str().unwrap_or_default());
                kernel = kernel.or_else(|| about_kernel(error));
                if first.is_none() {
                    let text = error["message"].as_str().unwrap_or("an error without a text");
                    let spans = error["spans"].as_array().map(Vec::as_slice).unwrap_or_default();
                    let place = spans.iter().find(|span| span["is_primary"] == true).and_then(|span| {
                        Some(format!("{}:{}: ", span["file_name"].as_str()?, span["line_start"].as_u64()?))
                    });
                    first = Some(format!("{}{text}", place.unwrap_or_default()));
                }
            }
            _ => {}
        }
    }
    match (first, binary) {
        (Some(first), _) if !success => {
            let first = kernel.clone().unwrap_or(first);
            if let Some(kernel) = kernel {
                rendered.push_str(&format!("\n{kernel}\n  try: Give it the first line that it had: {SIGNATURE}.\n"));
            }
            Some(Binary::DoesNotCompile { first, rendered })
        }
        (_, Some(binary)) if success => Some(Binary::Ready(binary)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBRARY: &str =
        r#"{"reason":"compiler-artifact","target":{"kind":["lib"],"name":"step01"},"executable":null}"#;
    const TEST: &str =
        r#"{"reason":"compiler-artifact","target":{"kind":["test"],"name":"verdict"},"executable":"/t/verdict-1"}"#;

    #[test]
    fn finds_the_test_binary() {
        let messages = format!("{LIBRARY}\nnot JSON\n{TEST}\n{{\"reason\":\"build-finished\",\"success\":true}}\n");
        assert_eq!(read(&messages, true), Some(Binary::Ready("/t/verdict-1".into())));
        assert_eq!(read(LIBRARY, true), None, "a library is no test binary");
    }

    #[test]
    fn a_missing_kernel_function_is_named() {
        let error = |code: &str, file: &str| {
            let spans = format!(r#"[{{"file_name":"{file}","line_start":7,"is_primary":true}}]"#);
            format!(
                r#"{{"reason":"compiler-message","message":{{"level":"error","message":"m","rendered":"error: m\n","code":{{"code":"{code}"}},"spans":{spans}}}}}"#
            )
        };
        for (code, file, expected) in [
            (
                "E0432",
                "steps/step01/src/lib.rs",
                "`kernel.rs` has no function `pub fn kernel(k: &mut Cta, gemm: &Gemm)`",
            ),
            ("E0603", "steps/step01/src/lib.rs", "the function `kernel` in `kernel.rs` is not `pub`"),
            ("E0432", "steps/step01/src/kernel.rs", "steps/step01/src/kernel.rs:7: m"),
        ] {
            let Some(Binary::DoesNotCompile { first, rendered }) = read(&error(code, file), false) else {
                panic!("{code} in {file} is an error");
            };
            assert_eq!(first, expected);
            assert_eq!(rendered.contains("try: "), file.ends_with("lib.rs"), "{rendered}");
        }
    }

    #[test]
    fn tells_the_first_error_with_its_place() {
        let error = r#"{"reason":"compiler-message","message":{"level":"error","message":"mismatched types","rendered":"error: A\n",
            "spans":[{"file_name":"other.rs","line_start":1,"is_primary":false},
                     {"file_name":"steps/step01/src/kernel.rs","line_start":12,"is_primary":true}]}}"#
            .replace('\n', "");
        let last = r#"{"reason":"compiler-message","message":{"level":"error","message":"aborting","rendered":"error: B\n","spans":[]}}"#;
        let warning = r#"{"reason":"compiler-message","message":{"level":"warning","message":"unused","rendered":"warning\n","spans":[]}}"#;
        let messages = format!("{warning}\n{error}\n{last}\n");
        let expected = Binary::DoesNotCompile {
            first: "steps/step01/src/kernel.rs:12: mismatched types".to_string(),
            rendered: "error: A\nerror: B\n".to_string(),
        };
        assert_eq!(read(&messages, false), Some(expected));
        assert_eq!(read("", false), None, "without an error of rustc it is cargo that failed");
    }
}
