//! Mistakes that the builder does not let one make, as the pages of Part I show them: a solution's PTX with something else in it is judged, and
//! what is quoted must be in what the verdict says.

use super::{missing, page, rows, said};
use harness::verdict::Part;
use harness::{
    BuildFailure, Built, InProcess, JudgeOptions, KernelSource, Problem, Step, diagnostics::Sources, judge, step,
};

/// What is put in place of what.
type Changes = &'static [(&'static str, &'static str)];

/// Page, how the first cell of a row begins, step, and what is put in place of what in its PTX, wherever it stands.
const TEXTS: &[(&str, &str, u8, Changes)] = &[
    ("tensor-core.md", "swizzle code 0", 1, &[(DESCRIPTOR, "0x0000404000000000")]),
    ("tensor-core.md", "swizzle code 4", 1, &[(DESCRIPTOR, "0x8000404000000000")]),
    ("tensor-core.md", "a stride-dimension offset of 512", 1, &[(DESCRIPTOR, "0x4000402000000000")]),
    ("tensor-core.md", "the constant in bits 46 to 48", 1, &[(DESCRIPTOR, "0x4000004000000000")]),
    ("tensor-core.md", "swizzle code 3", 1, &[(DESCRIPTOR, "0x6000404000000000")]),
    ("tensor-core.md", "N = 264", 1, &[(INSTRUCTION, "0x08420010")]),
    ("tensor-core.md", "N = 64", 1, &[(INSTRUCTION, "0x08100010")]),
    ("tensor-core.md", "BF16 in the instruction descriptor", 1, &[(INSTRUCTION, "0x08200490")]),
    ("tensor-core.md", "no `elect_one`", 1, &[("@!%p4 bra $elected_end_2;", "")]),
    (
        "tensor-memory.md",
        "64 columns allocated",
        1,
        &[
            ("[dynamic_shared+32776], 128;", "[dynamic_shared+32776], 64;"),
            ("sync.aligned.b32 %r285, 128;", "sync.aligned.b32 %r285, 64;"),
        ],
    ),
    ("tensor-memory.md", "no `tmem_dealloc`", 1, &[("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r285, 128;", "")]),
    ("mbarriers.md", "all lanes issue MMAs and commit", 1, &[("@!%p4 bra $elected_end_2;", "")]),
    (
        "mbarriers.md",
        "made twice",
        1,
        &[(
            MADE,
            "mbarrier.init.shared::cta.b64 [dynamic_shared+32768], 1; mbarrier.init.shared::cta.b64 [dynamic_shared+32768], 1;",
        )],
    ),
    (
        "tma.md",
        "a plain `arrive`",
        4,
        &[(
            "mbarrier.arrive.expect_tx.shared::cta.b64 _, [dynamic_shared+65536], 32768;",
            "mbarrier.arrive.shared::cta.b64 _, [dynamic_shared+65536];",
        )],
    ),
    ("tma.md", "a tile at a multiple of 64 bytes", 4, &[("bytes [dynamic_shared], ", "bytes [dynamic_shared+64], ")]),
    (
        "cta-pairs.md",
        "plain copies that tell",
        9,
        &[(".mbarrier::complete_tx::bytes.cta_group::2", ".mbarrier::complete_tx::bytes")],
    ),
    ("cta-pairs.md", "an instruction descriptor of 128", 9, &[("0x10400010", "0x08400010")]),
];

const DESCRIPTOR: &str = "0x4000404000000000";
const INSTRUCTION: &str = "0x08200010";
const MADE: &str = "mbarrier.init.shared::cta.b64 [dynamic_shared+32768], 1;";

/// A solution with another text.
struct Changed(u8, Changes);

impl KernelSource for Changed {
    fn build(&self, problem: &Problem, sms: u32) -> Result<Built, BuildFailure> {
        let (_, kernel) = solutions::ALL.iter().find(|(number, _)| *number == self.0).expect("a solution");
        let mut built = InProcess(*kernel).build(problem, sms)?;
        for (from, to) in self.1 {
            assert!(built.ptx.contains(from), "the PTX of step {} has no `{from}`", self.0);
            built.ptx = built.ptx.replace(from, to);
        }
        Ok(built)
    }
}

#[test]
fn what_is_quoted_of_other_texts_is_what_the_verdict_says() {
    colored::control::set_override(false);
    let mut wrong = Vec::new();
    for (name, key, number, changes) in TEXTS {
        let row = rows(&page(name)).into_iter().find(|(first, _)| first.starts_with(key));
        let passage = row.unwrap_or_else(|| panic!("book/src/{name} has no row \"{key}\"")).1;
        // What else stands there is of another kernel.
        let passage = passage.split(". With TMA").next().unwrap_or_default();
        let whole = step(*number).expect("the step exists");
        let step = Step { sizes: &[], cases: &[], timed: whole.observed.problem, inputs_per_size: 1, ..*whole };
        let options = JudgeOptions { seeds: 1, sources: Sources::none(), ..JudgeOptions::default() };
        let verdict = judge(&step, &Changed(*number, changes), &options);
        let text = said(&verdict);
        let correct = verdict.part(Part::Correct).passed();
        let mut all = missing(passage, &text, correct);
        if passage.contains("no rule is broken") && (text.contains("finding[") || text.contains("error[") || correct) {
            all.push(format!("a rule is broken, or D is right: {text}"));
        }
        wrong.extend(all.into_iter().map(|what| format!("book/src/{name}, \"{key}\": {what}; said is: {text}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Answers that say of another kernel that it passes: here at the size that is looked at closely.
#[test]
fn answers_that_pass_do() {
    let answers = [
        ("warps_arrive_7", 7),
        ("two_accumulators_7", 7),
        ("two_accumulators_9", 9),
        ("loads_first_4", 4),
        ("ahead_2", 2),
        ("each_part_4", 4),
    ];
    for (name, number) in answers {
        let kernel = variants::ANSWERS.iter().find(|(known, ..)| *known == name).expect("an answer").2;
        let whole = step(number).expect("the step exists");
        let step = Step { sizes: &[], cases: &[], timed: whole.observed.problem, inputs_per_size: 1, ..*whole };
        let options = JudgeOptions { seeds: 2, sources: Sources::none(), ..JudgeOptions::default() };
        let verdict = judge(&step, &InProcess(kernel), &options);
        for (part, outcome) in &verdict.parts {
            // The times of these kernels are those of `numbers.rs`, at the sizes that the pages name.
            let failed = *part != Part::Fast && matches!(outcome, harness::verdict::Outcome::Failed { .. });
            assert!(!failed, "`{name}`, {part}: {}", harness::report::render(&verdict));
        }
    }
}
