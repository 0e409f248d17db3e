//! Every instruction that real Blackwell GEMM kernels use loads, or is refused by name; what each computes is in `values`.
//!
//! The lists are the union over kernels of seven compilers: `forms/list.txt` is modelled, `forms/refused.txt` is not yet.

use std::collections::BTreeSet;

/// A kernel with one statement in it, and every kind of operand at hand.
fn kernel(statement: &str) -> String {
    let mut statement = statement.to_string();
    for n in [128, 64, 32, 16, 8, 4, 1] {
        let list: Vec<String> = (0..n).map(|r| format!("%r{r}")).collect();
        statement = statement.replace(&format!("V{n},"), &format!("{{{}}},", list.join(", ")));
        if let Some(start) = statement.strip_suffix(&format!("V{n}")) {
            statement = format!("{start}{{{}}}", list.join(", "));
        }
    }
    format!(
        ".version 8.7\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .align 64 .b8 map[128])\n{{\n\
         .local .align 16 .b8 loc[64];\n.shared .align 1024 .b8 smem[4096];\n.shared .align 8 .b64 bar;\n\
         .shared .align 4 .b32 slot;\n.reg .pred %p<4>;\n.reg .b16 %h<8>;\n.reg .b32 %r<160>;\n.reg .b64 %d<16>;\n\
         .reg .f32 %f<8>;\n.reg .b128 %q<2>;\nTABLE: .branchtargets DONE;\n{statement};\nDONE:\nret;\n}}\n"
    )
}

fn lines(list: &str) -> impl Iterator<Item = &str> {
    list.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[test]
fn every_form_that_kernels_use_loads() {
    let mut missing = Vec::new();
    for statement in lines(include_str!("forms/list.txt")) {
        if let Err(errors) = emulator::load(&kernel(statement)) {
            missing.push(format!("{statement}: {}", errors[0].title));
        }
    }
    assert!(missing.is_empty(), "{} forms do not load:\n{}", missing.len(), missing.join("\n"));
}

/// Nothing is skipped in silence: what is not modelled is refused, and the message names it.
#[test]
fn what_is_not_modelled_is_refused_by_name() {
    let modelled: BTreeSet<&str> =
        lines(include_str!("forms/list.txt")).filter_map(|line| line.split_whitespace().next()).collect();
    for line in lines(include_str!("forms/refused.txt")) {
        let (opcode, reason) = line.split_once(" | ").expect("`mnemonic | reason`");
        assert!(!modelled.contains(opcode), "{opcode} is in both lists");
        assert!(!reason.is_empty(), "{opcode}");
        let errors = emulator::load(&kernel(&format!("{opcode} [%d0], [%d1], %d2"))).expect_err(opcode);
        assert_eq!(errors[0].code, "not-modelled", "{opcode}: {}", errors[0].title);
        assert!(errors[0].title.contains(opcode), "{}", errors[0].title);
    }
}
