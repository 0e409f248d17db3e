//! Variables that are named as addresses: in the space that the instruction says, as ptxas 13.5 asks of each statement. Elsewhere the name's offset would
//! be taken for a place in that space. Loads, stores and atomics ask for it where they are decoded.

use super::{describe, wrong};
use crate::program::Bad;
use crate::program::lower::{Binding, Lowering};
use crate::program::op::Space;
use crate::syntax::ast::{Instruction, Operand};

/// Refuses addresses by a variable's name that lies elsewhere, and parameters that are taken for what they hold.
pub(super) fn check(l: &Lowering, inst: &Instruction, base: &str, mods: &[&str]) -> Result<(), Bad> {
    let memory = || inst.operands.iter().filter(|operand| matches!(operand, Operand::Memory(..)));
    let said: Vec<Space> = mods.iter().filter_map(|word| space(word)).collect();
    match base {
        "cp" | "mbarrier" | "clusterlaunchcontrol" | "ldmatrix" | "stmatrix" | "applypriority" => {
            for (n, operand) in memory().enumerate() {
                if let Operand::Memory(map, _, more) = operand
                    && !more.is_empty()
                {
                    tensor_map(l, map, &inst.opcode)?;
                    continue;
                }
                // Of a copy: where to, from where, and the mbarrier that is told.
                let wanted = match base {
                    "cp" if mods.contains(&"mbarrier") => said.first(),
                    "cp" => said.get(n).or((n == 2).then_some(&Space::Shared)),
                    "mbarrier" => Some(&Space::Shared),
                    _ => said.first(),
                };
                if let Some(&wanted) = wanted {
                    l.check_space(operand, wanted, &inst.opcode)?;
                }
            }
            Ok(())
        }
        "mapa" => match inst.operands.get(1) {
            Some(Operand::Name(name)) if matches!(l.lookup(name), Some(Binding::Global(_) | Binding::Local(_))) => {
                Err(wrong(
                    format!("`{name}` is no shared variable, and `{}` takes an address in shared memory", inst.opcode),
                    "Name a `.shared` variable: only these lie in each CTA of a cluster.",
                ))
            }
            _ => Ok(()),
        },
        "tcgen05" if matches!(mods.first(), Some(&("alloc" | "commit"))) => match (memory().next(), said.first()) {
            (Some(operand), Some(&wanted)) => l.check_space(operand, wanted, &inst.opcode),
            _ => Ok(()),
        },
        "prefetch" => match (memory().next(), said.first()) {
            (Some(operand), Some(&wanted)) => l.check_space(operand, wanted, &inst.opcode),
            (Some(Operand::Memory(map, ..)), None) if mods.contains(&"tensormap") => match &**map {
                Operand::Name(name) if matches!(l.lookup(name), Some(Binding::Param(_))) => {
                    Err(parameter(map, &inst.opcode))
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// The space that a word of an opcode names.
fn space(word: &str) -> Option<Space> {
    Some(match word {
        "global" | "const" => Space::Global,
        "shared" | "shared::cta" => Space::Shared,
        "shared::cluster" => Space::SharedCluster,
        "local" => Space::Local,
        "param" | "param::entry" => Space::Param,
        _ => return None,
    })
}

/// The address of a tensor map is a generic one: that of a variable of the module is its own.
fn tensor_map(l: &Lowering, map: &Operand, opcode: &str) -> Result<(), Bad> {
    let Operand::Name(name) = map else { return Ok(()) };
    match l.lookup(name) {
        Some(Binding::Param(_)) => Err(parameter(map, opcode)),
        Some(Binding::Shared(_) | Binding::Local(_) | Binding::Argument(..)) => Err(wrong(
            format!("{} is no tensor map in global memory or among the parameters", describe(map)),
            format!("`{opcode}` takes the generic address of a parameter or of a global variable."),
        )),
        _ => Ok(()),
    }
}

/// A parameter's name is its place among the parameters; what takes a tensor map wants a generic address.
fn parameter(map: &Operand, opcode: &str) -> Bad {
    let name = describe(map);
    let plain = name.trim_matches('`');
    wrong(
        format!("{name} is a parameter, and `{opcode}` takes a generic address"),
        format!("Make it: `mov.b64 %rd, {plain}; cvta.param.u64 %rd, %rd;`, and use `[%rd]`."),
    )
}
