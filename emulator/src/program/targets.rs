//! What `.target` and `.version` allow: the targets there are, the version each is known from, and whether they have what a module asks for.
//!
//! Sources: PTX ISA, `.target` and `.version` (11.1), the target notes of each instruction, and the release notes (13). From `sm_75`
//! on, what ptxas 13.5 takes and refuses is the same; it knows no `sm_101` any more, which became `sm_110`.

mod needs;

use super::{Program, place};
use crate::diagnostic::{Diagnostic, Label, Severity};
use crate::syntax::ast::{Instruction, Module, Operand, Span, Statement};
use crate::time::Gpu;
use needs::{Capability, Gpus, Need, SCALE_INPUT_D, Version, capability, need, scales_input};
use rustc_hash::FxHashMap;

/// Versions of PTX, up to the newest that ptxas 13.5 takes.
const VERSIONS: &[(u32, std::ops::RangeInclusive<u32>)] =
    &[(1, 0..=5), (2, 0..=3), (3, 0..=2), (4, 0..=3), (5, 0..=0), (6, 0..=5), (7, 0..=8), (8, 0..=8), (9, 0..=5)];

/// Targets, and the version each needs (PTX ISA 11.1.2, release notes).
const TARGETS: &[(&str, Version)] = &[
    ("sm_50", (4, 0)),
    ("sm_52", (4, 1)),
    ("sm_53", (4, 2)),
    ("sm_60", (5, 0)),
    ("sm_61", (5, 0)),
    ("sm_62", (5, 0)),
    ("sm_70", (6, 0)),
    ("sm_72", (6, 1)),
    ("sm_75", (6, 3)),
    ("sm_80", (7, 0)),
    ("sm_86", (7, 1)),
    ("sm_87", (7, 4)),
    ("sm_88", (9, 0)),
    ("sm_89", (7, 8)),
    ("sm_90", (7, 8)),
    ("sm_90a", (8, 0)),
    ("sm_100", (8, 6)),
    ("sm_100a", (8, 6)),
    ("sm_100f", (8, 8)),
    ("sm_101", (8, 6)),
    ("sm_101a", (8, 6)),
    ("sm_101f", (8, 8)),
    ("sm_103", (8, 8)),
    ("sm_103a", (8, 8)),
    ("sm_103f", (8, 8)),
    ("sm_110", (9, 0)),
    ("sm_110a", (9, 0)),
    ("sm_110f", (9, 0)),
    ("sm_120", (8, 7)),
    ("sm_120a", (8, 7)),
    ("sm_120f", (8, 8)),
    ("sm_121", (8, 8)),
    ("sm_121a", (8, 8)),
    ("sm_121f", (8, 8)),
];

/// What stands in `.target` beside a GPU (PTX ISA 11.1.2).
const OPTIONS: &[&str] = &["texmode_unified", "texmode_independent", "debug", "map_f64_to_f32"];

impl Program {
    /// Why a GPU would not run it, if it would not: PTX for a target runs on that GPU and later ones, on no other if the target's
    /// name ends in `a` (PTX ISA 11.1).
    pub fn refused_by(&self, gpu: Gpu) -> Option<String> {
        let own = match gpu {
            Gpu::B200 => 100,
            Gpu::H200 => 90,
        };
        self.targets.iter().find_map(|target| {
            let Capability { number, suffixed, .. } = capability(target)?;
            let refused = number > own || number < own && suffixed;
            refused.then(|| format!("the kernel is for `.target {target}`, this GPU is sm_{own}a"))
        })
    }
}

/// What an instruction, a directive or a special register asks for that the module's header does not give.
struct Missing {
    name: String,
    span: Span,
    gpus: Option<Gpus>,
    version: Option<Version>,
    count: u64,
}

/// What is wrong with the header of a module, and with what its functions ask of it.
pub(super) fn check(text: &str, module: &Module) -> Vec<Diagnostic> {
    let mut errors = Vec::new();
    let mut error = |span: Span,
                     title: String,
                     label: String,
                     help: String,
                     other: Option<(Span, String)>,
                     count: u64| {
        let places = [Some((span, label)), other].into_iter().flatten();
        errors.push(Diagnostic {
            code: "ptx-target",
            severity: Severity::Error,
            title,
            labels: places.map(|(span, text_)| Label::new(place(text, span, None, &[]), text_)).collect(),
            rule: "Every target is known from one version of PTX on, and has the instructions of its GPU (PTX ISA 11.1, and the target \
                   notes of each instruction)."
                .into(),
            help,
            count, confirmed: None,
        });
    };
    let version = module.version;
    let known = VERSIONS.iter().any(|(major, minors)| *major == version.0 && minors.contains(&version.1));
    if !known {
        let near = VERSIONS.iter().find(|(major, _)| *major == version.0);
        let help = match near {
            Some((major, minors)) => format!("Versions {major}.{} to {major}.{} exist.", minors.start(), minors.end()),
            None => "Versions 1.0 to 9.5 exist; Blackwell needs 8.6 or later.".into(),
        };
        error(
            module.version_span,
            format!("there is no PTX version {}", dotted(version)),
            "here".into(),
            help,
            None,
            1,
        );
    }
    // What a later version would bring is said once.
    let mut known = known;
    let mut target: Option<(&str, Span)> = None;
    let mut too_early = None;
    for (name, span) in module.targets.iter().zip(&module.target_spans) {
        if OPTIONS.contains(&name.as_str()) {
            continue;
        }
        let row = TARGETS.iter().find(|(known, _)| known == name);
        match (row, target) {
            (None, _) => {
                let near = super::near::nearest(name, TARGETS.iter().map(|(known, _)| *known));
                let help = match near {
                    Some(near) => format!("Did you mean `{near}`? "),
                    None => String::new(),
                };
                let list = "sm_90a, sm_100a, sm_100f, sm_103a, sm_110a, sm_120a";
                let help =
                    format!("{help}Targets are, among others, {list}; with a comma behind: {}.", OPTIONS.join(", "));
                error(*span, format!("there is no target `{name}`"), "here".into(), help, None, 1);
            }
            (Some(_), Some((before, _))) => {
                let title = format!("two targets in one module: `{before}` and `{name}`");
                error(*span, title, "here".into(), "Keep one of them.".into(), None, 1);
            }
            (Some((_, since)), None) => {
                target = Some((name, *span));
                if known && version < *since {
                    too_early = Some((*span, name, *since));
                    known = false;
                }
            }
        }
    }
    let Some((target, target_span)) = target else {
        if module.targets.iter().all(|name| OPTIONS.contains(&name.as_str())) {
            let help = "Name a GPU first: `.target sm_100a`.".to_string();
            error(
                module.target_spans.first().copied().unwrap_or_default(),
                "no GPU in `.target`".into(),
                "here".into(),
                help,
                None,
                1,
            );
        }
        return errors;
    };
    let own = capability(target);
    let mut missing: Vec<Missing> = Vec::new();
    let mut ask = |name: &str, span: Span, need: Option<&Need>| {
        let Some((.., gpus, since)) = need else { return };
        let Some(own) = own else { return };
        let gpus = (!gpus.have(own)).then_some(*gpus);
        let since = (known && version < *since).then_some(*since);
        if gpus.is_none() && since.is_none() {
            return;
        }
        match missing.iter_mut().find(|m| m.gpus == gpus && m.version == since) {
            Some(known) => known.count += 1,
            None => missing.push(Missing { name: name.into(), span, gpus, version: since, count: 1 }),
        }
    };
    // A kernel has few different opcodes.
    let mut needs: FxHashMap<&str, Option<&Need>> = FxHashMap::default();
    for function in &module.functions {
        for (name, _, span) in &function.directives {
            let name = format!(".{name}");
            ask(&name, *span, need(&name));
        }
        each(function.body.as_deref().unwrap_or_default(), &mut |inst| {
            let mut remember = |name| *needs.entry(name).or_insert_with(|| need(name));
            ask(&inst.opcode, inst.span, remember(&inst.opcode));
            if scales_input(inst) {
                ask("scale-input-d", inst.span, Some(&SCALE_INPUT_D));
            }
            for operand in &inst.operands {
                if let Operand::Name(name) = operand
                    && super::decode::special::special(name).is_some()
                {
                    ask(name, inst.span, remember(name));
                }
            }
        });
    }
    // Where another target is needed, the version of this one is of no account.
    if let Some((span, name, since)) = too_early.filter(|_| missing.iter().all(|m| m.gpus.is_none())) {
        error(
            module.version_span,
            format!("`{name}` needs PTX version {} or later, this module has {}", dotted(since), dotted(version)),
            format!("version {} does not know this target", dotted(version)),
            format!("Write `.version {}` or later.", dotted(since)),
            Some((span, "the target".into())),
            1,
        );
    }
    for m in missing {
        match (m.gpus, m.version) {
            (Some(gpus), _) => error(
                m.span,
                format!("`{}` needs {}, this module is for `{target}`", m.name, gpus.text()),
                "needed here".into(),
                format!("Write `.target {}`, or use what `{target}` has.", gpus.example()),
                Some((target_span, format!("`{target}` does not have it"))),
                m.count,
            ),
            (None, Some(since)) => error(
                m.span,
                format!(
                    "`{}` needs PTX version {} or later, this module has {}",
                    m.name,
                    dotted(since),
                    dotted(version)
                ),
                "needed here".into(),
                format!("Write `.version {}` or later.", dotted(since)),
                Some((module.version_span, "the version".into())),
                m.count,
            ),
            (None, None) => {}
        }
    }
    errors
}

fn dotted((major, minor): Version) -> String {
    format!("{major}.{minor}")
}

/// Every instruction of a body, in its order.
fn each<'a>(body: &'a [Statement], f: &mut impl FnMut(&'a Instruction)) {
    for statement in body {
        match statement {
            Statement::Instruction(inst) => f(inst),
            Statement::Block(inner) => each(inner, f),
            _ => {}
        }
    }
}
