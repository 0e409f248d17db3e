//! What is wrong with the head of the function that is graded, `pub fn kernel`, in the terms of who wrote the file.
//!
//! The compiler finds that out where the workbook's own `lib.rs` uses the function, and says so at a line that no student has written.

use crate::handin::Kernel;
use harness::answers::plain;
use harness::workbook::tokens::{self, Token};
use harness::workbook::{Workspace, name};
use harness::{Cause, Place, Unbuilt};

/// How the function begins.
const HEAD: &str = "pub fn kernel(k: &mut Cta, gemm: &Gemm)";

/// A function of the file.
struct Function<'a> {
    name: &'a str,
    line: usize,
    public: bool,
    /// Not within braces.
    outermost: bool,
    /// One of its parameters is a CTA.
    takes_cta: bool,
}

/// What the compiler's errors come to, if nothing but the function's head is wrong; `file:line: ` and the way out.
pub(crate) fn wrong(kernel: &Kernel, errors: &str) -> Option<Unbuilt> {
    let count =
        errors.lines().filter(|line| line.starts_with("error")).filter(|line| !line.contains("aborting due to"));
    if count.count() != 1 {
        return None;
    }
    let missing =
        errors.contains("unresolved import `kernel::kernel`") || errors.contains("function `kernel` is private");
    let otherwise = errors.contains("emit::main(kernel)");
    if !(missing || otherwise) {
        return None;
    }
    let code = tokens::code(&kernel.text);
    let functions = functions(&kernel.text, &code);
    let called = functions.iter().find(|function| function.name == "kernel");
    let (line, what, way_out) = match called {
        Some(called) if otherwise => {
            let what = "`kernel` takes or gives something else than what it is called with".to_string();
            (called.line, what, format!("Write its head as `{HEAD}`, and let it give nothing."))
        }
        _ if otherwise => return None,
        Some(called) if !called.outermost => {
            let what = "`fn kernel` stands within braces, where nobody else can call it".to_string();
            (called.line, what, format!("Put `{HEAD}` outside of them."))
        }
        Some(called) if !called.public => {
            let what = "`fn kernel` is not public, so that the grader cannot call it".to_string();
            (called.line, what, format!("Write `{HEAD}`."))
        }
        // As far as can be seen here it is right: then the compiler knows better.
        Some(_) => return None,
        None if code.is_empty() => {
            let what = if kernel.text.trim().is_empty() { "the file is empty" } else { "the file holds only comments" };
            let reset = format!("`cargo workbook reset {}`", name(kernel.step));
            (1, what.to_string(), format!("Hand in the file with `{HEAD}`; {reset} writes the one to begin with."))
        }
        None => {
            let taken = |function: &&Function| function.outermost && function.takes_cta;
            match functions.iter().find(taken) {
                Some(other) => {
                    let what = format!("there is no `pub fn kernel`; here stands `fn {}`", plain(other.name));
                    (other.line, what, format!("Call the function that is graded `kernel`: `{HEAD}`."))
                }
                None => (
                    1,
                    "there is no `pub fn kernel` in this file".to_string(),
                    format!("The function that is graded begins with `{HEAD}`."),
                ),
            }
        }
    };
    let (file, title) = (Workspace::kernel(kernel.step), format!("it does not compile: {what}"));
    Some(Unbuilt {
        cause: Cause::NotCompiled,
        text: format!("{file}:{line}: {title}\n  try: {way_out}"),
        title,
        place: Some(Place { file, line: u32::try_from(line).unwrap_or(u32::MAX), column: 1 }),
        help: Some(way_out),
    })
}

/// `words`: those before a function's `fn`, the last one first.
fn is_public(words: &[&Token<'_>]) -> bool {
    let at = words.iter().position(|word| word.is("pub"));
    at.is_some_and(|at| at.checked_sub(1).and_then(|next| words.get(next)).is_none_or(|next| !next.is("(")))
}

fn functions<'a>(text: &str, code: &[Token<'a>]) -> Vec<Function<'a>> {
    let (mut depth, mut found) = (0, Vec::new());
    for (index, token) in code.iter().enumerate() {
        depth += token.nests();
        let (true, Some(name)) = (token.is("fn"), code.get(index + 1)) else { continue };
        let before = code[..index].iter().rev().take_while(|word| !(word.is(";") || word.is("}")));
        let head = code[index..].iter().take_while(|word| !word.is("{"));
        found.push(Function {
            name: name.text,
            line: text[..token.at].matches('\n').count() + 1,
            // `pub(crate)` is not, for others.
            public: is_public(&before.collect::<Vec<_>>()),
            outermost: depth == 0,
            takes_cta: head.into_iter().any(|word| word.is("Cta")),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use std::path::PathBuf;

    #[test]
    fn each_wrong_head_is_told_at_a_line_of_the_student() {
        const MISSING: &str = "error[E0432]: unresolved import `kernel::kernel`\n";
        const PRIVATE: &str = "error[E0603]: function `kernel` is private\n";
        const OTHER: &str =
            "error[E0308]: mismatched types\n10 |     emit::main(kernel)\n\nerror: aborting due to 1 previous error\n";
        let said: Vec<String> = [
            ("", MISSING),
            ("// later\n/* fn kernel */\n", MISSING),
            ("use ptx::*;\n\nconst A: u32 = 1;\nfn kernel(k: &mut Cta, gemm: &Gemm) {}\n", PRIVATE),
            ("pub(crate) fn kernel(k: &mut Cta, gemm: &Gemm) {}\n", PRIVATE),
            ("fn help(n: u32) {}\npub fn my_kernel(k: &mut Cta, gemm: &Gemm) {}\n", MISSING),
            ("mod mine {\n    pub fn kernel(k: &mut Cta, gemm: &Gemm) {}\n}\n", MISSING),
            ("print('hello')\nfn help(n: u32) {}\n", MISSING),
            ("\npub fn kernel(k: &mut Cta) {}\n", OTHER),
        ]
        .map(|(text, errors)| {
            let kernel = Kernel { step: 1, path: PathBuf::from("step01.rs"), text: text.to_string() };
            wrong(&kernel, errors).unwrap_or_else(|| panic!("{text}: nothing is said")).text
        })
        .to_vec();
        expect![[r#"
            steps/step01/src/kernel.rs:1: it does not compile: the file is empty
              try: Hand in the file with `pub fn kernel(k: &mut Cta, gemm: &Gemm)`; `cargo workbook reset step01` writes the one to begin with.
            steps/step01/src/kernel.rs:1: it does not compile: the file holds only comments
              try: Hand in the file with `pub fn kernel(k: &mut Cta, gemm: &Gemm)`; `cargo workbook reset step01` writes the one to begin with.
            steps/step01/src/kernel.rs:4: it does not compile: `fn kernel` is not public, so that the grader cannot call it
              try: Write `pub fn kernel(k: &mut Cta, gemm: &Gemm)`.
            steps/step01/src/kernel.rs:1: it does not compile: `fn kernel` is not public, so that the grader cannot call it
              try: Write `pub fn kernel(k: &mut Cta, gemm: &Gemm)`.
            steps/step01/src/kernel.rs:2: it does not compile: there is no `pub fn kernel`; here stands `fn my_kernel`
              try: Call the function that is graded `kernel`: `pub fn kernel(k: &mut Cta, gemm: &Gemm)`.
            steps/step01/src/kernel.rs:2: it does not compile: `fn kernel` stands within braces, where nobody else can call it
              try: Put `pub fn kernel(k: &mut Cta, gemm: &Gemm)` outside of them.
            steps/step01/src/kernel.rs:1: it does not compile: there is no `pub fn kernel` in this file
              try: The function that is graded begins with `pub fn kernel(k: &mut Cta, gemm: &Gemm)`.
            steps/step01/src/kernel.rs:2: it does not compile: `kernel` takes or gives something else than what it is called with
              try: Write its head as `pub fn kernel(k: &mut Cta, gemm: &Gemm)`, and let it give nothing."#]].assert_eq(&said.join("\n"));
        // What else is wrong is the compiler's to say.
        let kernel = Kernel { step: 1, path: PathBuf::new(), text: "fn kernel() {}".to_string() };
        for errors in ["error: expected `;`\n", "error[E0603]: function `kernel` is private\nerror[E0425]: no `x`\n"] {
            assert_eq!(wrong(&kernel, errors), None, "{errors}");
        }
    }
}
