//! What `.target` and `.version` allow: the targets there are, the version each is known from, and what instructions need.
//!
//! Sources: PTX ISA, `.target` and `.version` (11.1), the target notes of each instruction, and the release notes (13). From `sm_75`
//! on, what ptxas 13.5 takes and refuses is the same; it knows no `sm_101` any more, which became `sm_110`.

use super::{Program, place};
use crate::diagnostic::{Diagnostic, Label, Severity};
use crate::syntax::ast::{Instruction, Module, Operand, Span, Statement};
use crate::time::Gpu;
use rustc_hash::FxHashMap;

type Version = (u32, u32);

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

/// What the name of a target says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Capability {
    number: u32,
    /// With the suffix `a` or `f`: for this GPU, or its family, and no later one.
    suffixed: bool,
    /// With the suffix `a`.
    own: bool,
}

/// `None`: the name is none of a GPU.
fn capability(target: &str) -> Option<Capability> {
    let name = target.strip_prefix("sm_")?;
    let digits = name.trim_end_matches(['a', 'f']);
    Some(Capability { number: digits.parse().ok()?, suffixed: digits != name, own: name.ends_with('a') })
}

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

/// The GPUs that have an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gpus {
    /// This one and later ones.
    From(u32),
    /// The same, on targets with the suffix `a` or `f`.
    Suffixed(u32),
    /// Those with tensor memory, on targets with the suffix `a` or `f`.
    TensorMemory,
    /// The same, with the suffix `a`.
    OwnTensorMemory,
    /// The family of `sm_100` and `sm_103` alone, with the suffix `a` or `f`.
    FirstTensorMemory,
    /// Those whose tensor core multiplies integers.
    TensorIntegers,
    /// Hopper alone, on `sm_90a`.
    Hopper,
}

impl Gpus {
    fn have(self, Capability { number, suffixed, own }: Capability) -> bool {
        match self {
            Gpus::From(first) => number >= first,
            Gpus::Suffixed(first) => number >= first && suffixed,
            Gpus::TensorMemory => (100..120).contains(&number) && suffixed,
            Gpus::FirstTensorMemory => [100, 103].contains(&number) && suffixed,
            Gpus::OwnTensorMemory => (100..120).contains(&number) && own,
            Gpus::TensorIntegers => [100, 101, 110].contains(&number) && own,
            Gpus::Hopper => number == 90 && suffixed,
        }
    }

    fn text(self) -> String {
        match self {
            Gpus::From(first) => format!("`sm_{first}` or later"),
            Gpus::Suffixed(90) => "a target with a suffix from `sm_90a` on, such as `sm_90a` or `sm_100a`".into(),
            Gpus::Suffixed(first) => format!("a target with a suffix from `sm_{first}` on, such as `sm_{first}a`"),
            Gpus::TensorMemory => "a target with tensor memory, such as `sm_100a`, `sm_100f` or `sm_103a`".into(),
            Gpus::OwnTensorMemory => {
                "a target with tensor memory and the suffix `a`, such as `sm_100a` or `sm_103a`".into()
            }
            Gpus::FirstTensorMemory => "`sm_100a`, `sm_100f`, `sm_103a` or `sm_103f`".into(),
            Gpus::TensorIntegers => "`sm_100a`, `sm_101a` or `sm_110a`".into(),
            Gpus::Hopper => "`sm_90a` and no other target".into(),
        }
    }

    /// A target that is enough.
    fn example(self) -> String {
        match self {
            Gpus::From(first @ 0..90) => format!("sm_{first}"),
            Gpus::From(90) | Gpus::Hopper => "sm_90a".into(),
            Gpus::Suffixed(first) => format!("sm_{first}a"),
            Gpus::From(_)
            | Gpus::TensorMemory
            | Gpus::OwnTensorMemory
            | Gpus::FirstTensorMemory
            | Gpus::TensorIntegers => "sm_100a".into(),
        }
    }
}

/// The first parts of an opcode (several with `|` between), a text in it behind them, if it depends on one, and what it needs.
type Need = (&'static str, &'static str, Gpus, Version);

/// What instructions need. The first row that fits counts.
const NEEDS: &[Need] = &[
    ("tcgen05", ".kind::i8", Gpus::TensorIntegers, (8, 6)),
    ("tcgen05", ".kind::mxf4nvf4.block_scale.scale_vec::", Gpus::OwnTensorMemory, (8, 7)),
    ("tcgen05", ".scale_vec::", Gpus::OwnTensorMemory, (8, 6)),
    ("tcgen05", ".block16", Gpus::TensorMemory, (8, 8)),
    ("tcgen05", ".block32", Gpus::TensorMemory, (8, 8)),
    ("tcgen05", "", Gpus::TensorMemory, (8, 6)),
    ("wgmma", ".s8.u8", Gpus::Hopper, (8, 4)),
    ("wgmma", ".u8.s8", Gpus::Hopper, (8, 4)),
    ("wgmma", "", Gpus::Hopper, (8, 0)),
    ("cp.async.bulk", ".cta_group", Gpus::TensorMemory, (8, 6)),
    ("cp.async.bulk", ".shared::cluster.global.tile::gather4", Gpus::TensorMemory, (8, 6)),
    ("cp.async.bulk", ".tile::gather4.shared::cluster", Gpus::TensorMemory, (8, 6)),
    ("cp.async.bulk", "::gather4", Gpus::From(100), (8, 6)),
    ("cp.async.bulk", "::scatter4", Gpus::From(100), (8, 6)),
    ("cp.async.bulk", ".shared::cta.global", Gpus::From(90), (8, 6)),
    ("cp.async.bulk|cp.reduce.async.bulk", "", Gpus::From(90), (8, 0)),
    ("cp.async", "", Gpus::From(80), (7, 0)),
    ("mbarrier.arrive|mbarrier.try_wait|mbarrier.test_wait", ".relaxed", Gpus::From(90), (8, 6)),
    ("mbarrier.try_wait", ".acquire", Gpus::From(90), (8, 0)),
    ("mbarrier.try_wait", "", Gpus::From(90), (7, 8)),
    ("mbarrier", "expect_tx", Gpus::From(90), (8, 0)),
    ("mbarrier", "complete_tx", Gpus::From(90), (8, 0)),
    ("mbarrier", ".cluster", Gpus::From(90), (8, 0)),
    ("mbarrier", "::cluster", Gpus::From(90), (8, 0)),
    ("mbarrier", ".release", Gpus::From(80), (8, 0)),
    ("mbarrier", ".acquire", Gpus::From(80), (8, 0)),
    ("mbarrier", "::cta", Gpus::From(80), (7, 8)),
    ("mbarrier", "", Gpus::From(80), (7, 0)),
    ("elect", "", Gpus::From(90), (8, 0)),
    ("isspacep", "::cluster", Gpus::From(90), (7, 8)),
    ("isspacep", "param", Gpus::From(70), (7, 7)),
    ("ldmatrix|stmatrix", ".b8", Gpus::Suffixed(100), (8, 6)),
    ("mapa|getctarank|griddepcontrol|barrier.cluster|stmatrix", "", Gpus::From(90), (7, 8)),
    ("setmaxnreg", "", Gpus::Suffixed(90), (8, 0)),
    ("fence.proxy.async|fence.mbarrier_init", "", Gpus::From(90), (8, 0)),
    ("redux", ".f32", Gpus::FirstTensorMemory, (8, 6)),
    ("fence.acquire|fence.release", "", Gpus::From(90), (8, 6)),
    ("membar.proxy.async", "", Gpus::From(90), (8, 0)),
    ("fence", ".cluster", Gpus::From(90), (7, 8)),
    ("clusterlaunchcontrol", ".multicast", Gpus::Suffixed(100), (8, 6)),
    ("clusterlaunchcontrol", "", Gpus::From(100), (8, 6)),
    ("createpolicy", "", Gpus::From(80), (7, 4)),
    ("discard|applypriority", "", Gpus::From(80), (7, 4)),
    ("ldmatrix", "", Gpus::From(75), (6, 5)),
    ("prefetch", ".tensormap", Gpus::From(90), (8, 0)),
    ("tensormap", "", Gpus::Suffixed(90), (8, 3)),
    ("fence.proxy", "tensormap", Gpus::From(90), (8, 3)),
    ("mma", ".m8n8k4.row.col.f64", Gpus::From(80), (7, 0)),
    ("mma", ".f64", Gpus::From(90), (7, 8)),
    ("mma", ".m16n8k16.row.col.f32.e", Gpus::From(89), (8, 7)),
    ("mma", ".f16.e", Gpus::From(89), (8, 7)),
    ("mma", ".f32.e", Gpus::From(89), (8, 4)),
    ("mma", ".tf32", Gpus::From(80), (7, 0)),
    ("mma", ".m16n8k32", Gpus::From(80), (7, 0)),
    ("mma", ".bf16", Gpus::From(80), (7, 0)),
    ("mma", ".m16n8k16", Gpus::From(80), (7, 0)),
    ("mma", "", Gpus::From(75), (6, 5)),
    ("movmatrix", "", Gpus::From(75), (7, 8)),
    ("st.async|red.async", "", Gpus::From(90), (8, 1)),
    ("st.bulk", "", Gpus::From(100), (8, 6)),
    ("ld|st|atom|red", "::cluster", Gpus::From(90), (7, 8)),
    ("ld|st|atom|red", ".cluster", Gpus::From(90), (7, 8)),
    ("ld|st", ".v8", Gpus::From(100), (8, 8)),
    ("ld|st|mov", ".b128", Gpus::From(70), (8, 3)),
    ("atom|red", ".v2", Gpus::From(90), (8, 1)),
    ("atom|red", ".v4", Gpus::From(90), (8, 1)),
    ("atom|red", ".v8", Gpus::From(90), (8, 1)),
    ("atom|red", "bf16", Gpus::From(90), (7, 8)),
    ("add|sub|mul|fma", ".f32x2", Gpus::From(100), (8, 6)),
    ("add|sub|fma", ".f32.f16", Gpus::From(100), (8, 6)),
    ("add|sub|fma", ".f32.bf16", Gpus::From(100), (8, 6)),
    ("add|min|max", "16x2", Gpus::From(90), (8, 0)),
    ("cvt", ".bf16x2.e", Gpus::Suffixed(100), (9, 2)),
    ("cvt", ".ue8m0x2", Gpus::Suffixed(100), (8, 6)),
    ("cvt", "x2.bf16x2", Gpus::Suffixed(100), (9, 1)),
    ("cvt", ".e2m3x2.f16x2", Gpus::Suffixed(100), (9, 1)),
    ("cvt", ".e3m2x2.f16x2", Gpus::Suffixed(100), (9, 1)),
    ("cvt", ".e2m1x2.f16x2", Gpus::Suffixed(100), (9, 1)),
    ("cvt", ".e2m", Gpus::Suffixed(100), (8, 6)),
    ("cvt", ".e3m2", Gpus::Suffixed(100), (8, 6)),
    ("cvt", ".e4m3", Gpus::From(89), (8, 1)),
    ("cvt", ".e5m2", Gpus::From(89), (8, 1)),
    ("cvt", ".rna.satfinite", Gpus::From(80), (8, 1)),
    ("cvt", ".rna", Gpus::From(80), (7, 0)),
    ("cvt", ".satfinite.tf32", Gpus::From(100), (8, 6)),
    ("cvt", ".satfinite.relu.tf32", Gpus::From(100), (8, 6)),
    ("cvt", ".tf32", Gpus::From(90), (7, 8)),
    ("min|max", ".relu.s32", Gpus::From(90), (8, 0)),
    // The directives of clusters (11.4).
    (".blocksareclusters", "", Gpus::From(90), (9, 0)),
    (".explicitcluster|.reqnctapercluster|.maxclusterrank", "", Gpus::From(90), (7, 8)),
    ("%cluster|%nclusterid", "", Gpus::From(90), (7, 8)),
];

/// What `scale-input-d`, an operand, needs (PTX ISA, tcgen05.mma, target notes).
const SCALE_INPUT_D: Need = ("tcgen05", "", Gpus::FirstTensorMemory, (8, 6));

/// Whether an instruction is a `tcgen05.mma` that scales D: behind enable-input-d stands one operand more.
fn scales_input(inst: &Instruction) -> bool {
    if !inst.opcode.starts_with("tcgen05.mma.") || inst.opcode.contains(".block_scale") {
        return false;
    }
    let mask = usize::from(matches!(inst.operands.get(4), Some(Operand::Vector(_))));
    inst.operands.len() == 6 + mask
}

/// The row for an instruction, a directive or a special register.
fn need(name: &str) -> Option<&'static Need> {
    let begins = |first: &str| {
        let rest = name.strip_prefix(first)?;
        (rest.is_empty() || rest.starts_with(['.', ':']) || first.starts_with('%')).then_some(rest)
    };
    NEEDS.iter().find(|(firsts, part, ..)| {
        // Packed halves of floating point are older, and so are the packed forms of bfloat.
        let float = *part == "16x2" && (name.contains("f16x2"));
        firsts.split('|').filter_map(begins).any(|rest| !float && rest.contains(part))
    })
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
                    error(
                        module.version_span,
                        format!(
                            "`{name}` needs PTX version {} or later, this module has {}",
                            dotted(*since),
                            dotted(version)
                        ),
                        format!("version {} does not know this target", dotted(version)),
                        format!("Write `.version {}` or later.", dotted(*since)),
                        Some((*span, "the target".into())),
                        1,
                    );
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
    let Some(own) = capability(target) else { return errors };
    let mut missing: Vec<Missing> = Vec::new();
    let mut ask = |name: &str, span: Span, need: Option<&Need>| {
        let Some((.., gpus, since)) = need else { return };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_the_first_parts_of_an_opcode() {
        let needs = |name| need(name).map(|(.., gpus, version)| (*gpus, *version));
        for (name, expected) in [
            ("tcgen05.ld.sync.aligned.32x32b.x1.b32", Some((Gpus::TensorMemory, (8, 6)))),
            ("tcgen05.mma.cta_group::1.kind::i8", Some((Gpus::TensorIntegers, (8, 6)))),
            (
                "tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.scale_vec::4X",
                Some((Gpus::OwnTensorMemory, (8, 7))),
            ),
            (
                "tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale.scale_vec::1X",
                Some((Gpus::OwnTensorMemory, (8, 6))),
            ),
            ("tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale.block32", Some((Gpus::TensorMemory, (8, 8)))),
            ("tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale", Some((Gpus::TensorMemory, (8, 6)))),
            ("cp.async.ca.shared.global", Some((Gpus::From(80), (7, 0)))),
            ("cp.async.bulk.commit_group", Some((Gpus::From(90), (8, 0)))),
            ("mbarrier.arrive.expect_tx.shared::cta.b64", Some((Gpus::From(90), (8, 0)))),
            ("mbarrier.init.shared.b64", Some((Gpus::From(80), (7, 0)))),
            ("barrier.cluster.wait", Some((Gpus::From(90), (7, 8)))),
            ("barrier.sync", None),
            ("add.f16x2", None),
            ("add.bf16x2", None),
            ("add.s16x2", Some((Gpus::From(90), (8, 0)))),
            ("ld.global.v8.b32", Some((Gpus::From(100), (8, 8)))),
            ("%cluster_ctarank", Some((Gpus::From(90), (7, 8)))),
            ("%tid.x", None),
        ] {
            assert_eq!(needs(name), expected, "{name}");
        }
        let have = |target| capability(target).is_some_and(|own| Gpus::TensorMemory.have(own));
        assert!(have("sm_103f") && !have("sm_120a") && !have("sm_100") && !have("debug"));
    }
}
