//! Mistakes that the builder does not let one make, as the pages of Part I show them: a solution's PTX with something else in it is judged, and
//! what is quoted must be in what the verdict says.

use super::{missing, page, rows, said};
use emulator::{Element, TensorMap};
use harness::verdict::{Part, Verdict};
use harness::{
    BuildFailure, Built, InProcess, JudgeOptions, KernelSource, Matrix, Param, Problem, Step, diagnostics::Sources,
    judge, step,
};
use ptx::Swizzle;

/// What is put in place of what.
type Changes = &'static [(&'static str, &'static str)];

/// Page, how the first cell of a row begins, step, and what is put in place of what in its PTX, wherever it stands.
const TEXTS: &[(&str, &str, u8, Changes)] = &[
    ("tensor-core.md", "swizzle code 0", 1, &[(DESCRIPTOR, "0x0000404000000000")]),
    ("tensor-core.md", "swizzle code 4", 1, &[(DESCRIPTOR, "0x8000404000000000")]),
    ("tensor-core.md", "a stride-dimension offset of 512", 1, &[(DESCRIPTOR, "0x4000402000000000")]),
    ("tensor-core.md", "another constant in bits 46 to 48", 1, &[(DESCRIPTOR, "0x4000804000000000")]),
    ("tensor-core.md", "swizzle code 3", 1, &[(DESCRIPTOR, "0x6000404000000000")]),
    ("tensor-core.md", "N = 264", 1, &[(INSTRUCTION, "0x08420010")]),
    ("tensor-core.md", "N = 64", 1, &[(INSTRUCTION, "0x08100010")]),
    ("tensor-core.md", "BF16 in the instruction descriptor", 1, &[(INSTRUCTION, "0x08200490")]),
    (
        "tensor-core.md",
        "the slices of K 16 bytes apart",
        1,
        &[
            ("dynamic_shared+32;", "dynamic_shared+16;"),
            ("dynamic_shared+64;", "dynamic_shared+32;"),
            ("dynamic_shared+96;", "dynamic_shared+48;"),
            ("dynamic_shared+16416;", "dynamic_shared+16400;"),
            ("dynamic_shared+16448;", "dynamic_shared+16416;"),
            ("dynamic_shared+16480;", "dynamic_shared+16432;"),
        ],
    ),
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
    (
        "tma.md",
        "a tile at an odd multiple of 128 bytes",
        4,
        &[
            ("bytes [dynamic_shared], ", "bytes [dynamic_shared+128], "),
            ("bytes [dynamic_shared+16384], ", "bytes [dynamic_shared+16512], "),
        ],
    ),
];

/// The same of what a row says behind "With TMA".
const WITH_TMA: &[(&str, &str, u8, Changes)] = &[
    ("tensor-core.md", "swizzle code 4", 4, &[(DESCRIPTOR, "0x8000404000000000")]),
    ("tensor-core.md", "BF16 in the instruction descriptor", 4, &[(INSTRUCTION, "0x08200090")]),
];

/// The same, with other tensor maps of A and B: the swizzle that they have.
const MAPS: &[(&str, &str, u8, Swizzle)] = &[
    ("tma.md", "a map without a swizzle", 4, Swizzle::None),
    ("tma.md", "a map with the 64-byte swizzle", 4, Swizzle::B64),
];

const DESCRIPTOR: &str = "0x4000404000000000";
const INSTRUCTION: &str = "0x08200010";
const MADE: &str = "mbarrier.init.shared::cta.b64 [dynamic_shared+32768], 1;";

/// A solution with another text, or other maps of A and B.
struct Changed(u8, Changes, Option<Swizzle>);

impl KernelSource for Changed {
    fn build(&self, problem: &Problem, sms: u32) -> Result<Built, BuildFailure> {
        let (_, kernel) = solutions::ALL.iter().find(|(number, _)| *number == self.0).expect("a solution");
        let mut built = InProcess(*kernel).build(problem, sms)?;
        for (from, to) in self.1 {
            assert!(built.ptx.contains(from), "the PTX of step {} has no `{from}`", self.0);
            built.ptx = built.ptx.replace(from, to);
        }
        for param in &mut built.params {
            if let Param::TensorMap { matrix: Matrix::A | Matrix::B, swizzle, .. } = param {
                *swizzle = self.2.unwrap_or(*swizzle);
            }
        }
        Ok(built)
    }
}

/// The part of a row that is of a kernel of step 1, or that which is of step 4.
fn part(passage: &str, with_tma: bool) -> &str {
    passage.split(". With TMA").nth(with_tma.into()).unwrap_or_default()
}

/// What of a passage the verdict on a changed solution does not say.
fn unsaid(passage: &str, changed: &Changed) -> Vec<String> {
    colored::control::set_override(false);
    let whole = step(changed.0).expect("the step exists");
    let step = Step { sizes: &[], cases: &[], timed: whole.observed.problem, inputs_per_size: 1, ..*whole };
    let options = JudgeOptions { seeds: 1, sources: Sources::none(), ..JudgeOptions::default() };
    let verdict = judge(&step, changed, &options);
    let text = said(&verdict);
    let correct = verdict.part(Part::Correct).passed();
    let mut all = missing(passage, &text, correct);
    if passage.contains("D is wrong") && correct {
        all.push("D is right".to_string());
    }
    if passage.contains("no rule is broken") && (text.contains("finding[") || text.contains("error[")) {
        all.push("a rule is broken".to_string());
    }
    all.into_iter().map(|what| format!("{what}; said is: {text}")).collect()
}

#[test]
fn what_is_quoted_of_other_texts_is_what_the_verdict_says() {
    let mut wrong = Vec::new();
    let texts = TEXTS.iter().map(|(page, key, step, changes)| (page, key, false, Changed(*step, changes, None)));
    let with_tma = WITH_TMA.iter().map(|(page, key, step, changes)| (page, key, true, Changed(*step, changes, None)));
    let maps = MAPS.iter().map(|(page, key, step, swizzle)| (page, key, false, Changed(*step, &[], Some(*swizzle))));
    for (name, key, with_tma, changed) in texts.chain(with_tma).chain(maps) {
        let row = rows(&page(name)).into_iter().find(|(first, _)| first.starts_with(key));
        let passage = row.unwrap_or_else(|| panic!("book/src/{name} has no row \"{key}\"")).1;
        let unsaid = unsaid(part(&passage, with_tma), &changed);
        wrong.extend(unsaid.into_iter().map(|what| format!("book/src/{name}, \"{key}\": {what}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A map that no matrix of a step has: the emulator refuses it as the driver does.
#[test]
fn what_is_quoted_of_a_pitch_is_what_is_said() {
    let row = rows(&page("tma.md")).into_iter().find(|(first, _)| first.starts_with("a pitch of 520 bytes"));
    let map = TensorMap {
        address: 1 << 20,
        element: Element::F16,
        dims: vec![256, 128],
        strides: vec![520],
        box_dims: vec![64, 128],
        element_strides: Vec::new(),
        swizzle: emulator::Swizzle::B128,
        fill_nan: false,
    };
    let said = map.encode().expect_err("no multiple of 16");
    assert_eq!(missing(&row.expect("the row").1, &said, false), Vec::<String>::new(), "{said}");
}

/// No row of these pages is left out.
#[test]
fn every_mistake_of_part_one_is_judged() {
    let kernels = super::SAID.iter().map(|(page, key, _)| (*page, *key));
    let texts =
        TEXTS.iter().map(|(page, key, ..)| (*page, *key)).chain(MAPS.iter().map(|(page, key, ..)| (*page, *key)));
    let known: Vec<(&str, &str)> = kernels.chain(texts).chain([("tma.md", "a pitch of 520 bytes")]).collect();
    let mut wrong = Vec::new();
    for name in ["tma.md", "tensor-core.md", "tensor-memory.md", "mbarriers.md", "shared-memory.md", "cta-pairs.md"] {
        for (first, second) in rows(&page(name)) {
            let is_known = |with_tma: bool, key: &str| match with_tma {
                true => WITH_TMA.iter().any(|(page, known, ..)| *page == name && key.starts_with(known)),
                false => known.iter().any(|(page, known)| *page == name && key.starts_with(known)),
            };
            for with_tma in [false, true].into_iter().filter(|tma| !part(&second, *tma).is_empty()) {
                wrong.extend(
                    (!is_known(with_tma, &first))
                        .then(|| format!("book/src/{name}: no kernel shows \"{first}\", {second}")),
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The verdict on the kernel of an answer, at the size that is looked at closely.
fn verdict_on(name: &str, number: u8) -> Verdict {
    let kernel = variants::ANSWERS.iter().find(|(known, ..)| *known == name).expect("an answer").2;
    let whole = step(number).expect("the step exists");
    let step = Step { sizes: &[], cases: &[], timed: whole.observed.problem, inputs_per_size: 1, ..*whole };
    judge(&step, &InProcess(kernel), &JudgeOptions { seeds: 2, sources: Sources::none(), ..JudgeOptions::default() })
}

/// Step 10, exercise 2: D is right, no rule is broken, and *structure* says what is quoted.
#[test]
fn one_thread_issues_for_both_consumers() {
    colored::control::set_override(false);
    let verdict = verdict_on("one_issues_10", 10);
    let answer = super::answer(&page("step10.md"), "2.");
    assert!(!super::claims(&answer).0.is_empty(), "book/src/step10.md quotes nothing there");
    assert_eq!(missing(&answer, &said(&verdict), true), Vec::<String>::new(), "{}", said(&verdict));
    for part in [Part::Correct, Part::RaceFree] {
        assert!(verdict.part(part).passed(), "{}", said(&verdict));
    }
    assert!(!verdict.part(Part::Structure).passed(), "{}", said(&verdict));
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
        ("meets_behind_2", 2),
        ("ring_of_products_5", 5),
    ];
    for (name, number) in answers {
        let verdict = verdict_on(name, number);
        for (part, outcome) in &verdict.parts {
            // The times of these kernels are those of `numbers.rs`, at the sizes that the pages name.
            let failed = *part != Part::Fast && matches!(outcome, harness::verdict::Outcome::Failed { .. });
            assert!(!failed, "`{name}`, {part}: {}", harness::report::render(&verdict));
        }
    }
}
