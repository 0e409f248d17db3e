//! What ptxas takes and what the emulator loads, statement by statement, over the ISA's forms and many that are none of its.

#[path = "vocabulary/expand.rs"]
mod expand;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const FORMS: &str = include_str!("vocabulary/forms.txt");

fn head() -> &'static str {
    ".version 9.3\n.target sm_100a\n.address_size 64\n"
}

fn entry(n: usize, statement: &str) -> String {
    format!(
        ".visible .entry k{n}() {{ .reg .pred %p<5>; .reg .b8 %b<5>; .reg .b16 %h<13>; .reg .b32 %r<13>; .reg .b64 %d<13>; .reg .b128 %q<13>; .reg .f32 %f<5>; TABLE: .branchtargets DONE;\n{statement};\nDONE: ret; }}\n"
    )
}

fn refused_by_ptxas(ptxas: &Path, statements: &[String]) -> BTreeMap<usize, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut refused = BTreeMap::new();
    for _ in 0..100 {
        let mut text = head().to_string();
        for (n, s) in statements.iter().enumerate() {
            text += &entry(n, if refused.contains_key(&n) { "" } else { s });
        }
        text += &entry(statements.len(), "add.foo %r0");
        let source = folder.join("vocabulary.ptx");
        std::fs::write(&source, &text).unwrap();
        let out = std::process::Command::new(ptxas)
            .arg("-arch=sm_100a")
            .arg(&source)
            .arg("-o")
            .arg(folder.join("vocabulary.cubin"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        std::fs::write(folder.join("vocabulary.said"), said.as_bytes()).unwrap();
        let mut fatal = false;
        for line in said.lines() {
            let Some((_, rest)) = line.split_once(", line ") else { continue };
            let (n, what) = rest.split_once(';').unwrap();
            if !what.contains("error") && !what.contains("fatal") {
                continue;
            }
            let n: usize = n.trim().parse().unwrap();
            fatal |= what.contains("fatal");
            refused.entry((n - 5) / 3).or_insert(what.trim().to_string());
        }
        if !fatal {
            break;
        }
    }
    refused
}

#[test]
fn explore() {
    let mut statements = expand::statements(FORMS);
    if let Ok(file) = std::env::var("STATEMENTS") {
        statements = std::fs::read_to_string(file).unwrap().lines().map(String::from).collect();
    }
    if let Ok(only) = std::env::var("ONLY") {
        let only: Vec<String> = only.split(',').map(String::from).collect();
        statements.retain(|s| only.iter().any(|o| s.starts_with(o.as_str())));
    }
    println!("{} statements", statements.len());
    let ptxas = PathBuf::from(std::env::var_os("PTXAS").unwrap());
    let begin = std::time::Instant::now();
    let refused = refused_by_ptxas(&ptxas, &statements);
    println!(
        "ptxas takes {} in {:?}",
        statements.len() - refused.keys().filter(|n| **n < statements.len()).count(),
        begin.elapsed()
    );
    let begin = std::time::Instant::now();
    let (mut a, mut b, mut c) = (String::new(), String::new(), String::new());
    let mut both = 0;
    for (n, s) in statements.iter().enumerate() {
        match (emulator::load(&format!("{}{}", head(), entry(n, s))), refused.get(&n)) {
            (Ok(_), Some(why)) => a += &format!("{s} | {why}\n"),
            (Err(e), None) => b += &format!("{s} | {}: {}\n", e[0].code, e[0].title),
            (Ok(_), None) => {
                both += 1;
                c += &format!("{s}\n")
            }
            _ => {}
        }
    }
    println!("emulator {:?}, both take {both}, a {} b {}", begin.elapsed(), a.lines().count(), b.lines().count());
    std::fs::write("/tmp/w10/a.txt", a).unwrap();
    std::fs::write("/tmp/w10/b.txt", b).unwrap();
    std::fs::write("/tmp/w10/c.txt", c).unwrap();
}
