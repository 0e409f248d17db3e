//! Which kernels of a class stand out: copies do, renamed and moved about or not, however many copied; twenty who wrote for themselves
//! do not, nor any few of them.
//!
//! The class is in `similar/step02.txt`: ways to write step 2 that differ in structure. Copies are made of it in `similar/class.rs`.

#[path = "similar/class.rs"]
mod class;
#[path = "similar/ways.rs"]
mod ways;

use class::{SOLUTION, class, copy, independent, kernel, kernels, pieces, renamed, written};
use grader::similar::{Kernel, Units, compare, known_of, step};
use std::collections::BTreeSet;
use std::process::Command;
use ways::{STEPS, Ways, draws};

/// Groups that stand out.
fn groups(kernels: &[Kernel]) -> (usize, String) {
    step(2, kernels, &known_of(2, SOLUTION).expect("well formed"))
}

#[test]
fn twenty_who_wrote_for_themselves_are_no_pair() {
    let (count, text) = groups(&kernels());
    assert_eq!(count, 0, "{text}");
    // Nor are those who wrote as the book does, beside each other.
    let mut with_book = kernels();
    with_book.push(kernel("reader 1", SOLUTION.to_string()));
    with_book.push(kernel("reader 2", SOLUTION.to_string()));
    let (count, text) = groups(&with_book);
    assert_eq!(count, 0, "{text}");
    // Untouched files are all the same, and nobody wrote them.
    let untouched = harness::skeleton::generate(2, "the solution", SOLUTION).expect("well formed");
    let many: Vec<Kernel> = (0..5).map(|number| kernel(&number.to_string(), untouched.clone())).collect();
    assert_eq!(groups(&many), (0, String::new()));
}

#[test]
fn each_copy_is_found_when_names_are_changed_and_statements_moved() {
    let mut all = kernels();
    for (name, bodies) in class() {
        all.push(kernel(&format!("copy of {name}"), copy(&bodies, 1)));
    }
    // Half of the class has copied, and each is found with the one it copied from.
    let (count, text) = groups(&all);
    for (name, _) in class() {
        assert!(text.contains(&format!("step02: {name} and copy of {name} share ")), "{name}: {text}");
    }
    assert_eq!(count, 20, "and no other: {text}");
}

/// A file has room for a hundred thousand times the same statement, and two who hand in such are compared as soon as others.
#[test]
fn a_statement_that_stands_there_thousands_of_times_holds_nobody_up() {
    let mut all = kernels();
    for name in ["one", "other"] {
        let odd: String =
            (0..9).map(|n| format!("k.odd({n}, k.lane(), [\"{n}\"; {n}]{});\n", ".at(1)".repeat(n))).collect();
        all.push(kernel(name, format!("{odd}{}", "k.put(a, b.at(c), d[e]);\n".repeat(10_000))));
    }
    let begin = std::time::Instant::now();
    let (count, text) = groups(&all);
    assert_eq!(count, 1, "{text}");
    assert!(text.contains("step02: one and other share ") && text.contains("k.put(a, b.at(c), d[e]);"), "{text}");
    assert!(begin.elapsed() < std::time::Duration::from_secs(30), "{:?}", begin.elapsed());
}

#[test]
fn a_pair_is_shown_with_the_lines_that_both_have() {
    let class = class();
    let mut all = kernels();
    all.push(kernel("Zoë\u{1b}[2J", renamed(&written(&class[6].1), &[("copy", "hole"), ("thread", "faden")])));
    let (count, text) = groups(&all);
    assert_eq!(count, 1, "{text}");
    assert!(text.contains("  07/step02.rs:"), "{text}");
    let line = all[6].text.lines().position(|line| line.contains("let mut copy = ")).expect("there") + 1;
    assert!(text.contains(&format!("  07/step02.rs:{line}  let mut copy = |k: &mut Cta")), "{line}: {text}");
    assert!(text.contains("  let mut hole = |k: &mut Cta"), "{text}");
}

/// Whatever names are and wherever statements stand: what is shown beside a line is the line that was made of it.
#[test]
fn the_lines_of_a_copy_are_those_that_it_was_made_of() {
    // What stands behind `//` is nobody's statement, moves with its line, and keeps its words.
    let marked = |bodies: &class::Bodies| -> class::Bodies {
        let mut count = 0;
        let mut mark = |line: &str| {
            count += 1;
            if line.trim_end().ends_with([';', '{']) { format!("{line} // L{count}\n") } else { format!("{line}\n") }
        };
        bodies.iter().map(|(id, body)| (id.clone(), body.lines().map(&mut mark).collect())).collect()
    };
    // `copy 1/step02.rs:61  …`, where a long line is cut off.
    let mark = |all: &[Kernel], shown: &str| {
        let (name, rest) = shown.trim().split_once("/step02.rs:").expect("a place");
        let line: usize = rest.split_once(' ').expect("a line").0.parse().expect("a number");
        let text = &all.iter().find(|kernel| kernel.name == name).expect("who is shown").text;
        text.lines().nth(line - 1)?.rsplit_once("// L").map(|(_, mark)| mark.to_string())
    };
    let (mut right, mut wrong) = (0, Vec::new());
    for (index, (name, bodies)) in class().into_iter().enumerate() {
        let bodies = marked(&bodies);
        let mut all = kernels();
        all[index].text = written(&bodies);
        all.extend((1..3).map(|number| kernel(&format!("copy {number}"), copy(&bodies, number))));
        let (count, text) = groups(&all);
        assert_eq!(count, 1, "{name}: {text}");
        for block in text.split("\n\n").filter(|block| block.contains("/step02.rs:")) {
            let marks: BTreeSet<Option<String>> =
                block.lines().filter(|line| line.contains("/step02.rs:")).map(|line| mark(&all, line)).collect();
            // Lines that the untouched file has, or that end in the middle of a statement, bear none.
            if marks.len() > 1 { wrong.push(format!("{name}:\n{block}")) } else { right += 1 }
        }
    }
    assert!(right > 150 && wrong.is_empty(), "{right} right, {} wrong:\n{}", wrong.len(), wrong.join("\n\n"));
}

#[test]
fn in_a_class_of_three_a_copy_is_found_and_the_third_is_left_alone() {
    let class = class();
    let all = vec![
        kernel("one", written(&class[2].1)),
        kernel("two", renamed(&written(&class[2].1), &[("me", "du"), ("job", "auftrag")])),
        kernel("three", written(&class[9].1)),
    ];
    let (count, text) = groups(&all);
    assert_eq!(count, 1, "{text}");
    assert!(text.starts_with("step02: one and two share "), "{text}");
    assert_eq!(groups(&all[1..]), (0, String::new()));
}

#[test]
fn a_ring_is_found_as_one_group_whatever_the_size_of_the_class() {
    let twenty = class();
    let all: Vec<Units> = independent(101).iter().map(|bodies| pieces(&written(bodies))).collect();
    for (size, rings) in [(3, &[2, 3][..]), (6, &[2, 3, 5]), (20, &[2, 3, 5]), (100, &[2, 3, 5])] {
        // Of a large class a few origins: each takes a while.
        let origins = if size > 20 { [2, 9, 16].to_vec() } else { (0..20).step_by(3).collect() };
        for origin in origins {
            let (name, bodies) = &twenty[origin];
            for &ring in rings {
                // The first has written it, the others have copied.
                let copies = (1..ring).map(|number| pieces(&copy(bodies, number)));
                let others =
                    all.iter().enumerate().filter(|(index, _)| *index != origin).map(|(_, units)| units.clone());
                let class: Vec<Units> =
                    [all[origin].clone()].into_iter().chain(copies).chain(others).take(size).collect();
                let found = compare(&class);
                let who: Vec<&[usize]> = found.groups.iter().map(|group| group.who.as_slice()).collect();
                let expected: Vec<usize> = (0..ring).collect();
                assert_eq!(who, [expected], "{ring} of {size} have the work of {name}: {found:?}");
            }
        }
    }
}

#[test]
fn rings_beside_each_other_are_told_apart() {
    let twenty = class();
    let mut all: Vec<Units> = twenty.iter().map(|(_, bodies)| pieces(&written(bodies))).collect();
    // 03 has one copy; 08 has two; 14 has four.
    for (origin, copies) in [(2, 1), (7, 2), (13, 4)] {
        all.extend((1..=copies).map(|number| pieces(&copy(&twenty[origin].1, number))));
    }
    let found = compare(&all);
    let who: BTreeSet<Vec<usize>> = found.groups.iter().map(|group| group.who.clone()).collect();
    assert_eq!(who, BTreeSet::from([vec![2, 20], vec![7, 21, 22], vec![13, 23, 24, 25, 26]]), "{found:?}");
}

#[test]
fn no_few_of_the_twenty_are_a_pair() {
    let all: Vec<Units> = class().iter().map(|(_, bodies)| pieces(&written(bodies))).collect();
    let found = |chosen: &[usize]| compare(&chosen.iter().map(|who| all[*who].clone()).collect::<Vec<_>>()).groups;
    let mut subsets: Vec<Vec<usize>> = vec![(0..20).collect()];
    for a in 0..20 {
        subsets.push((0..20).filter(|who| *who != a).collect());
        for b in a + 1..20 {
            subsets.push(vec![a, b]);
            if (a + b) % 4 == 0 {
                subsets.push((0..20).filter(|who| ![a, b].contains(who)).collect());
            }
            subsets.extend((b + 1..20).filter(|c| (a + b + c) % 3 == 0).map(|c| vec![a, b, c]));
        }
    }
    // Of each size between these, some; the multiplier makes neighbours of other numbers.
    for (size, step) in (4..18).flat_map(|size| [3, 7, 9, 11, 13].map(|step| (size, step))) {
        subsets.extend((0..2).map(|first| (0..size).map(|index| (first + index * step) % 20).collect()));
    }
    for subset in &subsets {
        assert_eq!(found(subset), [], "{subset:?}");
    }
    assert!(subsets.len() > 700, "{}", subsets.len());
}

#[test]
fn a_ring_is_said_once_with_the_lines_of_all() {
    let bodies = &class()[6].1;
    let mut all = kernels();
    all.truncate(8);
    all.extend((1..3).map(|number| kernel(&format!("copy {number}"), copy(bodies, number))));
    let (count, text) = groups(&all);
    assert_eq!((count, text.matches(" share ").count()), (1, 1), "{text}");
    assert!(text.starts_with("step02: 07, copy 1 and copy 2 share "), "{text}");
    let whose = |block: &str| -> Vec<String> {
        block
            .lines()
            .filter_map(|line| line.trim().split_once("/step02.rs:").map(|(name, _)| name.to_string()))
            .collect()
    };
    let of_all = text.split("\n\n").filter(|block| whose(block) == ["07", "copy 1", "copy 2"]).count();
    assert!(of_all >= 5, "{text}");
}

#[test]
fn a_third_of_the_work_in_common_is_no_ring() {
    // Each of three has one TODO of the first, another one each, and the rest of its own.
    let twenty = class();
    let mut all: Vec<Units> = twenty.iter().map(|(_, bodies)| pieces(&written(bodies))).collect();
    for (who, id) in [(4, "2.2"), (9, "2.4")] {
        let mut bodies = twenty[who].1.clone();
        bodies.insert(id.to_string(), twenty[2].1[id].clone());
        all[who] = pieces(&written(&bodies));
    }
    assert_eq!(compare(&all).groups, []);
}

#[test]
fn who_takes_the_two_longest_todos_is_found_and_a_ring_of_them_is_one_group() {
    let all = independent(21);
    for (size, ring) in [(6, 2), (6, 3), (20, 2), (20, 3), (20, 5)] {
        let mut found = 0;
        for origin in [0, 5, 10, 15] {
            let mut bodies: Vec<_> = (0..size).map(|index| all[(origin + index) % 20].clone()).collect();
            for number in 1..ring {
                for id in ["2.1", "2.5"] {
                    let taken = bodies[0][id].clone();
                    bodies[number].insert(id.to_string(), taken);
                }
            }
            let text = |(index, bodies)| if (1..ring).contains(&index) { copy(bodies, index) } else { written(bodies) };
            let class: Vec<Units> = bodies.iter().enumerate().map(|one| pieces(&text(one))).collect();
            let groups: Vec<Vec<usize>> = compare(&class).groups.into_iter().map(|group| group.who).collect();
            let ring: Vec<usize> = (0..ring).collect();
            assert!(
                groups.iter().flatten().all(|who| ring.contains(who)),
                "the others wrote for themselves: {groups:?}"
            );
            found += usize::from(groups == [ring]);
        }
        assert_eq!(found, 4, "{ring} of {size}");
    }
}

/// Steps of other kinds: classes of twenty whose members draw for themselves what they write, of few ways that there are; each class also with
/// two rings of copies. Of ways that are few, two may draw much the same: a pair in one of ten classes is chance.
#[test]
fn in_steps_of_other_kinds_copies_are_found_and_nobody_else() {
    const CLASSES: u64 = 20;
    let rings = [vec![3, 20], vec![11, 21, 22]];
    let groups = |class: &[Units]| compare(class).groups.into_iter().map(|group| group.who).collect::<Vec<_>>();
    let mut said = Vec::new();
    for (step, solution) in STEPS {
        let ways = Ways::of(step, solution);
        let (mut found, mut chance) = (0, Vec::new());
        for seed in 0..CLASSES {
            let mut draw = draws(1000 * u64::from(step) + seed);
            let bodies: Vec<_> = (0..20).map(|_| ways.bodies(&mut draw)).collect();
            let mut all: Vec<Units> = bodies.iter().map(|one| ways.pieces(&ways.written(one))).collect();
            chance.extend(groups(&all).into_iter().map(|who| (seed, who)));
            for origin in [3, 11, 11] {
                all.push(ways.pieces(&ways.copy(&bodies[origin])));
            }
            let with_copies = groups(&all);
            found += rings.iter().filter(|ring| with_copies.contains(ring)).count();
        }
        println!("step {step}: {found} of {} rings found; by chance, in {CLASSES} classes: {chance:?}", 2 * CLASSES);
        said.push((step, found, chance.len()));
    }
    for (step, found, chance) in said {
        assert!(
            found as u64 >= 2 * CLASSES - 1 && chance as u64 <= CLASSES / 10,
            "step {step}: {found} found, {chance} by chance"
        );
    }
}

#[test]
fn a_class_is_read_from_folders_and_archives_and_what_cannot_be_read_is_named() {
    let class = class();
    let folder = tempfile::tempdir().expect("a scratch folder");
    let at = |place: &str| folder.path().join(place);
    let write = |place: &str, text: &str| {
        std::fs::create_dir_all(at(place).parent().expect("a folder")).expect("made");
        std::fs::write(at(place), text).expect("written");
    };
    let archive = |name: &str, files: &[(&str, &str)]| {
        let mut builder = tar::Builder::new(std::fs::File::create(at(name)).expect("made"));
        for (name, text) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_entry_type(tar::EntryType::Regular);
            builder.append_data(&mut header, name, text.as_bytes()).expect("appended");
        }
        builder.into_inner().expect("whole");
    };
    let similar = |options: &[&str]| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_grader"));
        let ended = program.arg("similar").arg(folder.path()).args(options).output().expect("started");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&*folder.path().to_string_lossy(), "FOLDER");
        (ended.status.code(), text(&ended.stdout), text(&ended.stderr))
    };
    let (first, other) = (written(&class[2].1), written(&class[9].1));
    let (status, _, said) = similar(&[]);
    assert_eq!((status, said.lines().next()), (Some(2), Some("error: FOLDER holds no hand-in")), "{said}");

    write("anna/step02.rs", &first);
    let (status, _, said) = similar(&[]);
    assert!(status == Some(2) && said.contains("note: only anna has a kernel for step02"), "{said}");
    assert!(said.contains("error: nothing was compared in FOLDER\n  try: "), "{said}");

    // An archive is read as a folder is.
    archive("boris.tar", &[("steps/step02/src/kernel.rs", &copy(&class[2].1, 1))]);
    write("clara/steps/step02/src/kernel.rs", &other);
    let (status, found, said) = similar(&[]);
    assert_eq!((status, said.as_str()), (Some(1), ""), "{found}");
    assert!(found.contains("step02: anna and boris.tar share "), "{found}");
    assert!(found.contains("  boris.tar/steps/step02/src/kernel.rs:"), "{found}");
    assert!(found.ends_with("3 kernels compared, of step02; groups that stand out: 1\n"), "{found}");

    // Two kernels of one step in one hand-in: nobody knows which counts, and its own two are no pair.
    write("dora/step02.rs", &other);
    write("dora/step02/kernel.rs", &other);
    write("dora/step03.rs", "// nothing yet\n");
    write("emil/notes.txt", "see my mail");
    write("README", "hand-ins");
    std::fs::write(at("fritz.tar.gz"), "no archive").expect("written");
    // Whatever somebody handed in and nobody compared is named with what to do, and the status is 2.
    write("gina.zip", "PK");
    write("step02.rs", &other);
    write("hanna/first.tar", "");
    write("hanna/second.tar", "");
    write("ida/homework/step02.rs", &other);
    archive("jan.tar", &[("work/step02/src/kernel.rs", &other)]);
    std::fs::create_dir(at("nothing")).expect("made");
    write("step3only/step03.rs", "// of another step\n");
    #[cfg(unix)]
    std::os::unix::fs::symlink("/elsewhere", at("karl")).expect("a link");
    let (status, found, said) = similar(&["--step", "2"]);
    assert_eq!(status, Some(2), "{found}{said}");
    assert!(found.ends_with("3 kernels compared, of step02; groups that stand out: 1\n"), "{found}");
    expect_test::expect![[r#"
        note: no kernel for step02 in nothing, step3only
        error: 10 hand-ins or kernels are not compared with the others:
          README is a file of another kind; a hand-in is a folder, a .tar, a .tar.gz or a .tgz file
            try: Ask for what `cargo workbook pack` writes. If it is nobody's hand-in, move it out of this folder.
          gina.zip is a .zip file; a hand-in is a folder, a .tar, a .tar.gz or a .tgz file
            try: Unpack it into a folder of that name, or ask for what `cargo workbook pack` writes.
          karl is a symbolic link, and links are not followed
            try: Put what it leads to in its place: the folder or the archive itself.
          step02.rs is one Rust file; a hand-in is a folder, a .tar, a .tar.gz or a .tgz file
            try: Put it into a folder with the student's name, as `step01.rs`, with the number of its step.
          two kernels for step 2: FOLDER/dora/step02/kernel.rs and FOLDER/dora/step02.rs
            try: Leave the one that counts.
          FOLDER/emil holds no kernel for step01 to step10
            there is: `notes.txt`
            looked for: steps/step01/src/kernel.rs, step01/src/kernel.rs, step01/kernel.rs, step01.rs, and the same for the other steps
            try: Put each kernel at one of these places, or hand in what `cargo workbook pack` writes.
          FOLDER/fritz.tar.gz: refused (not-an-archive): it is cut off, or no tar archive: failed to read entire block
            try: Hand in what `cargo workbook pack` writes.
          FOLDER/hanna holds no kernel for step01 to step10
            there is: `first.tar`, `second.tar`
            looked for: steps/step01/src/kernel.rs, step01/src/kernel.rs, step01/kernel.rs, step01.rs, and the same for the other steps
            try: Leave the archive that counts, alone: `first.tar`, `second.tar`.
          FOLDER/ida holds no kernel for step01 to step10
            there is: `homework/`
            looked for: steps/step01/src/kernel.rs, step01/src/kernel.rs, step01/kernel.rs, step01.rs, and the same for the other steps
            try: Hand in what lies in `homework`, not the folder around it: `homework/step02.rs` is one folder too deep.
          FOLDER/jan.tar holds no kernel for step01 to step10
            there is: `work/step02/src/kernel.rs`
            looked for: steps/step01/src/kernel.rs, step01/src/kernel.rs, step01/kernel.rs, step01.rs, and the same for the other steps
            try: Hand in what lies in `work`, not the folder around it: `work/step02/src/kernel.rs` is one folder too deep.
    "#]]
    .assert_eq(&said);
    let (status, _, said) = similar(&["--step", "77"]);
    assert!(status == Some(2) && said.contains("there is no step 77\n  try: "), "{said}");
}
