//! What ptxas says of statements, each in a kernel of its own.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Lines before the first kernel, and lines of a kernel.
const HEAD: usize = 3;
const LINES: usize = 3;

pub fn head(target: &str) -> String {
    format!(
        ".version 9.3\n.target {target}\n.address_size 64 .global .align 64 .b8 gv[128]; .shared .align 128 .b8 bar[128];\n"
    )
}

/// A kernel of one statement, which stands in its second line.
pub fn entry(n: usize, statement: &str) -> String {
    let end = if statement.is_empty() { "" } else { ";" };
    format!(
        ".visible .entry k{n}(.param .align 64 .b8 map[128]) {{ .local .align 16 .b8 loc[64]; .reg .pred %p<5>; .reg .b8 %b<5>; .reg .b16 %h<13>; .reg .b32 %r<130>; .reg .b64 %d<13>; \
         .reg .b128 %q<13>; .reg .f32 %f<5>; TABLE: .branchtargets DONE;\n{statement}{end}\nDONE: ret; }}\n"
    )
}

/// Whether the emulator loads a statement, and why not.
pub fn load(target: &str, statement: &str) -> Result<(), Box<emulator::Diagnostic>> {
    match emulator::load(&format!("{}{}", head(target), entry(0, statement))) {
        Ok(_) => Ok(()),
        Err(mut errors) => Err(Box::new(errors.swap_remove(0))),
    }
}

/// What it says of a text, and whether it fell over.
fn said(ptxas: &Path, (target, test): (&str, &str), text: &str) -> (String, bool) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let name = |end: &str| folder.join(format!("{test}.{target}.{end}"));
    let (source, object) = (name("ptx"), name("cubin"));
    std::fs::write(&source, text).expect("the scratch folder of tests can be written");
    let output = Command::new(ptxas).arg(format!("-arch={target}")).arg(&source).arg("-o").arg(&object).output();
    let output = output.unwrap_or_else(|error| panic!("{} cannot be run: {error}", ptxas.display()));
    (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code().is_none())
}

/// What ptxas says of the statements that it refuses; those at which it falls over count as refused.
pub fn refused(ptxas: &Path, (target, test): (&str, &str), statements: &[String]) -> BTreeMap<usize, String> {
    let mut refused = BTreeMap::new();
    // A text that it cannot read ends its work: the next round goes on behind it.
    for _ in 0..200 {
        let mut text = head(target);
        for (n, statement) in statements.iter().enumerate() {
            text += &entry(n, if refused.contains_key(&n) { "" } else { statement });
        }
        // An error at the end, so that it makes no code of the rest.
        text += &entry(statements.len(), "add.none %r0");
        let (said, fell) = said(ptxas, (target, test), &text);
        let (mut fatal, mut last) = (false, 0);
        for line in said.lines() {
            // What it says of its own macros names no line of ours.
            let Some((file, (place, what))) =
                line.split_once(", line ").and_then(|(f, r)| Some((f, r.split_once(';')?)))
            else {
                continue;
            };
            if !file.ends_with(".ptx") {
                continue;
            }
            let what = what.trim();
            if what.starts_with("error") || what.starts_with("fatal") {
                fatal |= what.starts_with("fatal");
                let line: usize = place.trim().parse().expect(&said);
                last = (line - HEAD - 1) / LINES;
                refused.entry(last).or_insert_with(|| what.into());
            }
        }
        if fell {
            // At one of the statements behind the last that it speaks of, or at that one.
            let falls = |n: &usize| self::said(ptxas, (target, test), &(head(target) + &entry(0, &statements[*n]))).1;
            let n = (last..statements.len()).find(falls).expect("one of them makes it fall");
            refused.insert(n, "it ends without a word".into());
            continue;
        }
        if !fatal {
            assert!(refused.remove(&statements.len()).is_some(), "ptxas did not come to the end: {said}");
            return refused;
        }
    }
    panic!("ptxas cannot read the statements");
}
