//! What a class consists of, in percent:
//!
//! | kind | % | what it is |
//! |---|---|---|
//! | full | 20 | all ten steps solved, with other names for variables |
//! | half-done | 40 | the first steps solved, the next begun, the others as they were handed out |
//! | mistake | 25 | one of `solutions/mistakes`: the steps before it solved, those after it as they were handed out |
//! | attack | 7 | one of `grader/attacks`, alone |
//! | broken | 8 | no kernel, an archive that is cut off, a kernel that is no Rust, one that is no text, two kernels for a step |
//!
//! Of those that are no attack and not broken, a quarter is what `cargo workbook pack` writes, and a quarter that, compressed.

use crate::kernels::{STEPS, Sources};
use crate::random::Random;
use harness::workbook::name;

/// What a hand-in is.
pub(crate) enum Kind {
    Full,
    /// So many steps are solved, and of the next so many TODOs.
    HalfDone {
        solved: u8,
        todos: usize,
    },
    /// Which one of the sources' mistakes, and its step.
    Mistake {
        index: usize,
        step: u8,
        name: String,
    },
    /// Which one of the sources' attacks.
    Attack {
        index: usize,
        name: String,
    },
    Broken(Broken),
}

/// What is wrong with a hand-in that is broken.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Broken {
    Empty,
    TornArchive,
    NoRust,
    NoText,
    Twice,
}

const BROKEN: [Broken; 5] = [Broken::Empty, Broken::TornArchive, Broken::NoRust, Broken::NoText, Broken::Twice];

/// A class of so many.
pub(crate) fn of(count: usize, seed: u64, sources: &Sources) -> Vec<Kind> {
    let mut random = Random::new(seed);
    // Each its share, and what rounding leaves is half-done.
    let share = |percent: usize| (count * percent + 50) / 100;
    let (full, mistakes, attacks, broken) = (share(20), share(25), share(7), share(8));
    let mut mistake: Vec<usize> = (0..sources.mistakes.len()).collect();
    let mut attack: Vec<usize> = (0..sources.attacks.len()).collect();
    random.shuffle(&mut mistake);
    random.shuffle(&mut attack);
    let mut class: Vec<Kind> = (0..full).map(|_| Kind::Full).collect();
    class.extend(mistake.iter().cycle().take(mistakes).map(|&index| {
        let mistake = &sources.mistakes[index];
        Kind::Mistake { index, step: mistake.step, name: mistake.name.clone() }
    }));
    class.extend(
        attack
            .iter()
            .cycle()
            .take(attacks)
            .map(|&index| Kind::Attack { index, name: sources.attacks[index].name.clone() }),
    );
    class.extend(BROKEN.iter().cycle().take(broken).map(|broken| Kind::Broken(*broken)));
    while class.len() < count {
        let solved = random.below(usize::from(STEPS)) as u8;
        class.push(Kind::HalfDone { solved, todos: random.below(sources.todos(solved + 1)) });
    }
    class.truncate(count);
    random.shuffle(&mut class);
    class
}

impl Kind {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Kind::Full => "full",
            Kind::HalfDone { .. } => "half-done",
            Kind::Mistake { .. } => "mistake",
            Kind::Attack { .. } => "attack",
            Kind::Broken(_) => "broken",
        }
    }

    pub(crate) fn detail(&self) -> String {
        match self {
            Kind::Full => String::new(),
            Kind::HalfDone { solved, todos } => format!("{solved} steps and {todos} TODOs"),
            Kind::Mistake { name, .. } | Kind::Attack { name, .. } => name.clone(),
            Kind::Broken(broken) => format!("{broken:?}"),
        }
    }

    pub(crate) fn can_be_packed(&self) -> bool {
        !matches!(self, Kind::Attack { .. } | Kind::Broken(_))
    }

    /// The steps that somebody has worked on.
    pub(crate) fn worked_on(&self) -> Vec<u8> {
        let last = match self {
            Kind::HalfDone { solved, .. } => solved + 1,
            Kind::Mistake { step, .. } => *step,
            _ => STEPS,
        };
        (1..=last).collect()
    }

    /// Its kernels, by step.
    pub(crate) fn kernels(&self, sources: &Sources, random: &mut Random) -> Vec<(u8, Vec<u8>)> {
        let mut solved = |step: u8| sources.renamed(sources.solution(step), random);
        let all = |of: &mut dyn FnMut(u8) -> String| (1..=STEPS).map(|step| (step, of(step).into_bytes())).collect();
        match self {
            Kind::Full => all(&mut solved),
            Kind::HalfDone { solved: done, todos } => all(&mut |step| match step {
                step if step <= *done => solved(step),
                step if step == done + 1 => sources.begun(step, *todos),
                step => sources.begun(step, 0),
            }),
            Kind::Mistake { index, step: wrong, .. } => all(&mut |step| match step {
                step if step < *wrong => solved(step),
                step if step == *wrong => sources.mistakes[*index].text.clone(),
                step => sources.begun(step, 0),
            }),
            Kind::Attack { index, .. } => {
                let attack = &sources.attacks[*index];
                vec![(attack.step, attack.text.clone().into_bytes())]
            }
            Kind::Broken(Broken::NoRust) => vec![(1, format!("{}\nfn kernel( {{", solved(1)).into_bytes())],
            Kind::Broken(Broken::NoText) => vec![(1, vec![0xff; 100])],
            Kind::Broken(Broken::Twice) => vec![(1, solved(1).into_bytes()), (2, solved(2).into_bytes())],
            Kind::Broken(Broken::Empty | Broken::TornArchive) => Vec::new(),
        }
    }
}

/// A rubric with the workbook's sizes, as far as they go to 1024³.
pub(crate) fn rubric() -> String {
    let mut text = String::new();
    for (steps, sizes) in [(3..=4, &[256, 512, 1024][..]), (5..=5, &[512, 1024]), (6..=STEPS, &[1024])] {
        let sizes: Vec<String> = sizes.iter().map(|size| format!("\"{size}x{size}x{size} f16\"")).collect();
        for step in steps {
            text += &format!("[steps.{}]\nsizes = [{}]\n\n", name(step), sizes.join(", "));
        }
    }
    text
}
