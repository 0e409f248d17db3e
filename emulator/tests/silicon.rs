//! The emulator against silicon: small kernels whose output buffers show one fact each, byte by byte, and what a GPU made of them.
//!
//! `silicon/README.md` says what a case is made of and what each proves. Every case must do here what its own text says, with or
//! without a recording; where there is one, each byte of its outputs must be the same here.

#[path = "silicon/case.rs"]
mod case;
mod common;
#[path = "silicon/recording.rs"]
mod recording;

use case::{Case, Expected};
use expect_test::expect_file;
use recording::{Outcome, Recording};
use std::fmt::Write;

/// Cases that the emulator refuses to load, as it must: what it does not model it names. The instruction, and the cases.
const NOT_MODELLED: &[(&str, &[&str])] = &[];

/// Ranges of bytes, each from its first up to its second.
type Bytes = &'static [(usize, usize)];

/// Bytes of a case's output in which the GPU contradicts the emulator, and nothing is wrong with the recording: the case, the bytes
/// (from the first up to the second), and why. All other bytes of the case are the same.
const DISAGREES: &[(&str, Bytes, &str)] = &[
    (
        "integer/bit_fields",
        &[(0xc00, 0xd00), (0xe00, 0xf00)],
        "ptxas (CUDA 13.0) makes -1 of `bfe.s32` where position and length are constants and the position is beyond 31; with registers the \
         same operands give what the PTX ISA says, the sign bit in all places, and so does the emulator",
    ),
    (
        "integer/products",
        &[(0x500, 0x600)],
        "ptxas (CUDA 13.0) drops `.sat` of `mad.hi.sat.s32`: the sum wraps around; the PTX ISA, and the emulator, clamp it",
    ),
];

/// Adversarial schedules that a case must pass beside the default one.
const SEEDS: u64 = 3;

/// The instruction for which a case is listed as not modelled.
fn not_modelled(case: &Case) -> Option<&'static str> {
    let listed = |of: &&str| case.name == **of || (of.ends_with(['/', '_']) && case.name.starts_with(*of));
    NOT_MODELLED.iter().find(|(_, cases)| cases.iter().any(listed)).map(|(instruction, _)| *instruction)
}

/// Clean where the case says so, with the same bytes on every schedule; with the findings that it names where it is wrong.
#[test]
fn every_case_is_what_it_says() {
    let mut wrong = Vec::new();
    for case in case::all() {
        let refused = not_modelled(&case);
        let program = match (emulator::load(&case.ptx), refused) {
            (Ok(_), Some(instruction)) => {
                wrong.push(format!("{}: it loads; take it from the list of `{instruction}`", case.name));
                continue;
            }
            (Ok(program), None) => program,
            (Err(errors), Some(instruction))
                if errors.iter().all(|e| e.code == "not-modelled")
                    && errors.iter().any(|e| e.title.starts_with(&format!("`{instruction}"))) =>
            {
                continue;
            }
            (Err(errors), _) => {
                wrong.push(format!("{}: does not load: {}", case.name, errors[0].title));
                continue;
            }
        };
        let mut first = None;
        for seed in common::schedules(if case.on_every_schedule { SEEDS } else { 0 }) {
            let report = case.run(&program, seed);
            if let Some(why) = case.contradicts(&report) {
                wrong.push(format!("{}, seed {seed:?}: {why}\n    it proves: {}", case.name, case.proves));
                break;
            }
            if case.expected != Expected::Clean {
                continue;
            }
            let bytes: Vec<_> = case.compared().map(|n| report.buffers[n].bytes.clone()).collect();
            if *first.get_or_insert_with(|| bytes.clone()) != bytes {
                wrong.push(format!("{}, seed {seed:?}: its outputs depend on the schedule", case.name));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
}

/// Byte for byte what the GPU wrote. What is recorded as a fault or a hang must not be clean here.
#[test]
fn silicon_did_the_same() {
    let (mut wrong, mut missing, mut same, mut on_purpose) = (Vec::new(), Vec::new(), 0, 0);
    for case in case::all() {
        let recordings = Recording::all_of(&case).unwrap_or_else(|why| panic!("{}: {why}", case.name));
        if recordings.is_empty() {
            missing.push(case.name.clone());
        }
        let Ok(program) = emulator::load(&case.ptx) else { continue };
        for recording in recordings {
            let known = DISAGREES.iter().find(|(name, ..)| *name == case.name);
            if let Some((_, _, why)) = known
                && compare(&case, &program, &recording, &[]).is_none()
            {
                wrong.push(format!("{}: it agrees; it is listed with: {why}", case.name));
            }
            match compare(&case, &program, &recording, known.map_or(&[], |(_, bytes, _)| bytes)) {
                // Nothing of these is compared: see `compare`.
                None if case.expected != Expected::Clean => on_purpose += 1,
                None => same += 1,
                Some(why) => {
                    wrong.push(format!(
                        "{}: {why}\n    on {}\n    it proves: {}",
                        case.name,
                        recording.machine(),
                        case.proves
                    ));
                }
            }
        }
    }
    eprintln!(
        "{same} recordings agree; {on_purpose} are of kernels that are wrong on purpose, and not compared; {} cases have none",
        missing.len()
    );
    assert!(wrong.is_empty(), "{} recordings differ:\n{}", wrong.len(), wrong.join("\n"));
    // Before the first recording there is nothing to hold a case against.
    if same > 0 && !missing.is_empty() {
        let list = format!("{} cases without a recording:\n{}", missing.len(), missing.join("\n"));
        assert!(std::env::var_os("CI").is_none(), "{list}\ntry: Record them as emulator/tests/silicon/README.md says.");
        eprintln!("{list}");
    }
}

/// What is said to be settled names cases with a recording, and none in which the emulator departs from it. Of a case whose bytes
/// are compared, the bytes show it. A kernel that is wrong on purpose shows one thing alone, that the GPU refuses it: so its
/// recordings must have ended with an error. What such a kernel left in its buffers settles nothing.
#[test]
fn what_is_settled_was_recorded() {
    let cases = case::all();
    for settled in emulator::SETTLED {
        for name in settled.cases {
            let case = cases.iter().find(|case| case.name == *name);
            let case = case.unwrap_or_else(|| panic!("{}: there is no case {name}", settled.name));
            let recordings = Recording::all_of(case).unwrap_or_else(|why| panic!("{name}: {why}"));
            assert!(!recordings.is_empty(), "{}: nobody has recorded {name}", settled.name);
            match case.expected {
                Expected::Clean => {
                    assert!(case.compared().next().is_some(), "{}: no byte of {name} is compared", settled.name);
                }
                Expected::Found(ref codes) => {
                    for recording in &recordings {
                        let hangs = codes.iter().any(|code| code == "hang") && recording.outcome == Outcome::Hang;
                        let refused = hangs || matches!(recording.outcome, Outcome::Error(_));
                        let (of, ended) = (recording.machine(), &recording.outcome);
                        assert!(
                            refused,
                            "{}: {name} must end with an error, or hang where it says so; it ended with {ended:?} on {of}",
                            settled.name
                        );
                    }
                }
            }
            assert!(DISAGREES.iter().all(|(of, ..)| of != name), "{}: {name} disagrees", settled.name);
            assert!(not_modelled(case).is_none(), "{}: {name} is not modelled", settled.name);
        }
    }
}

/// What differs outside of these bytes, if anything does.
fn compare(
    case: &Case,
    program: &emulator::Program,
    recording: &Recording,
    except: &[(usize, usize)],
) -> Option<String> {
    let report = case.run(program, None);
    match (&recording.outcome, &case.expected) {
        // Whatever silicon made of it, the emulator must say what is wrong; that is the other test's.
        (_, Expected::Found(_)) => None,
        (Outcome::Error(error), Expected::Clean) => {
            Some(format!("silicon stopped with {error}; the emulator is clean"))
        }
        (Outcome::Hang, Expected::Clean) => Some("silicon hung; the emulator is clean".into()),
        (Outcome::Done, Expected::Clean) if !recording.touched.is_empty() => {
            Some(format!("on silicon, {}; the emulator is clean", recording.touched.join("; ")))
        }
        (Outcome::Done, Expected::Clean) => case.compared().find_map(|n| {
            let (name, here) = (&case.launch.buffers[n].name, &report.buffers[n].bytes);
            let Some(there) = recording.buffers.get(name) else {
                return Some(format!("the recording lacks the buffer `{name}`"));
            };
            if here.len() != there.len() {
                return Some(format!("`{name}` has {} bytes here and {} there", here.len(), there.len()));
            }
            let differ: Vec<usize> = (0..here.len())
                .filter(|at| here[*at] != there[*at] && !except.iter().any(|(from, to)| (from..to).contains(&at)))
                .collect();
            let first = *differ.first()?;
            let mut text =
                format!("{} of {} bytes of `{name}` differ, the first at {first:#x}", differ.len(), here.len());
            for at in differ.iter().take(4) {
                let word = at / 4 * 4..(at / 4 * 4 + 4).min(here.len());
                let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
                let _ = write!(
                    text,
                    "\n    byte {at}: emulator {:#04x}, silicon {:#04x}; around it {} and {}",
                    here[*at],
                    there[*at],
                    hex(&here[word.clone()]),
                    hex(&there[word])
                );
            }
            Some(text)
        }),
    }
}

/// The list of `silicon/README.md` is that of the folder (`UPDATE_EXPECT=1` writes it).
#[test]
fn the_manifest_lists_every_case() {
    let path = format!("{}/README.md", case::FOLDER);
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let begin = "## Cases\n";
    let (head, _) = text.split_once(begin).unwrap_or((&text, ""));
    let mut list = format!("{head}{begin}");
    let mut family = String::new();
    for case in case::all() {
        let (of, name) = case.name.split_once('/').expect("a case lies in the folder of its family");
        if of != family {
            family = of.into();
            let _ = write!(list, "\n### {family}\n\n| case | proves |\n|---|---|\n");
        }
        let _ = writeln!(list, "| `{name}` | {} |", case.proves.replace('|', "\\|"));
    }
    expect_file![path].assert_eq(&list);
}
