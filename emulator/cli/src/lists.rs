//! The lists that the command prints: instructions, assumptions, rules.

use crate::arguments::Arguments;
use std::fmt::Write;

/// The lists that were asked for.
pub fn text(arguments: &Arguments) -> String {
    let mut out = String::new();
    if arguments.list_instructions {
        out += "# Instructions. {a|b}: write one of them. {.a}? or {.a|.b}?: one of them, or none. xN: x1, x2, x4 … x128.\n";
        for form in emulator::FORMS {
            let _ = writeln!(out, "{form}");
        }
        out += "\n# Special registers\n";
        for name in emulator::special_registers() {
            let _ = writeln!(out, "{name}");
        }
    }
    if arguments.assumptions {
        for a in emulator::ASSUMPTIONS {
            if !out.is_empty() {
                out.push('\n');
            }
            let _ = writeln!(out, "{}", a.name);
            for (what, text) in [("assumed", a.assumed), ("unsure", a.unsure), ("settled by", a.settled_by)] {
                let _ = writeln!(out, "    {:<12}{text}", format!("{what}:"));
            }
        }
    }
    if arguments.assumptions {
        out += "\n# Settled on an H200, by cases of emulator/tests/silicon; Blackwell is taken to be alike\n";
        for s in emulator::SETTLED {
            let _ = writeln!(
                out,
                "\n{}\n    {:<12}{}\n    {:<12}{}",
                s.name,
                "holds:",
                s.holds,
                "shown by:",
                s.cases.join(", ")
            );
        }
    }
    if arguments.rules {
        for rule in emulator::RULES {
            if !out.is_empty() {
                out.push('\n');
            }
            let _ = writeln!(out, "{}", rule.name);
            let parts = [("first", rule.first), ("then", rule.then), ("ordered", rule.orders), ("source", rule.source)];
            for (what, text) in parts {
                let _ = writeln!(out, "    {:<12}{text}", format!("{what}:"));
            }
        }
    }
    out
}
