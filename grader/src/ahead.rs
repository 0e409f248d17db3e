//! Kernels that are built before they are judged: what is built alike gets the same verdict.
//!
//! Of a class, many solve a step in the same way, with other names and other comments: the judge then looks at the same PTX again, which takes
//! most of a grader's time.

use crate::verdicts::Same;
use harness::workbook::pack::sha256;
use harness::{BuildFailure, Built, JudgeOptions, KernelSource, Problem, Step, judge};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// So many bytes of PTX are kept, of all problems together: far more than a kernel has.
const MOST: usize = 32 << 20;

/// A problem and the number of SMs that a kernel is built for, and what was built.
type One = ((Problem, u32), Result<Built, BuildFailure>);

/// A kernel source that has been asked already for all that the judge will ask it for. It answers each of these once from there.
pub struct Ahead<'a> {
    source: &'a dyn KernelSource,
    built: Mutex<Vec<One>>,
    same: Option<Same>,
}

impl<'a> Ahead<'a> {
    /// Has the kernel built for all that the judge of this step asks for, up to where there is none, or one that is not done.
    pub fn of(source: &'a dyn KernelSource, step: &Step, options: &JudgeOptions) -> Ahead<'a> {
        let (mut built, mut whole, mut bytes) = (Vec::new(), true, 0);
        for asked in judge::asked_for(step, options) {
            let one = source.build(&asked.0, asked.1);
            // What leaks is said at its line of Rust.
            whole = one.as_ref().is_ok_and(|built| built.todos.is_empty() && built.leaks.is_empty());
            bytes += one.as_ref().map_or(0, |built| built.ptx.len());
            whole &= bytes <= MOST;
            built.push((asked, one));
            if !whole {
                break;
            }
        }
        let same = whole.then(|| known_by(&built));
        Ahead { source, built: Mutex::new(built), same }
    }

    /// What is the same in all kernels that are built alike; `None` where some of them is not built, or not done.
    pub fn same(&self) -> Option<&Same> {
        self.same.as_ref()
    }

    /// Whether the kernel is the same when it is built again, for each of them: else a verdict on what was built says nothing of it.
    pub fn is_same_again(&self) -> bool {
        let all = self.built.lock().unwrap_or_else(PoisonError::into_inner).clone();
        !all.is_empty() && all.into_iter().all(|((problem, sms), built)| self.source.build(&problem, sms) == built)
    }
}

impl KernelSource for Ahead<'_> {
    fn build(&self, problem: &Problem, sms: u32) -> Result<Built, BuildFailure> {
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        // Once: who asks again wants to know whether it is the same.
        let there = built.iter().position(|(asked, _)| *asked == (*problem, sms)).map(|at| built.remove(at).1);
        drop(built);
        there.unwrap_or_else(|| self.source.build(problem, sms))
    }
}

fn known_by(built: &[One]) -> Same {
    let hash = |((problem, sms), one): &One| {
        let one = one.clone().map(|one| Built { ptx: without_places(&one.ptx), ..one });
        format!("{problem} {sms} {}\n", sha256(format!("{one:?}").as_bytes()))
    };
    Same::Built(sha256(built.iter().map(hash).collect::<String>().as_bytes()))
}

/// PTX with the places of Rust in the order in which they come. Which instructions are of one line stays, since the judge may count them
/// together; which line that is, is for people.
fn without_places(ptx: &str) -> String {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut text = String::with_capacity(ptx.len());
    for line in ptx.split('\n') {
        match line.trim().strip_prefix(".loc ").filter(|place| is_place(place)) {
            Some(place) => {
                let next = places.len();
                let at = *places.entry(place).or_insert(next);
                text += &format!(".loc #{at}\n");
            }
            None => {
                text += line;
                text.push('\n');
            }
        }
    }
    text
}

/// Three numbers and nothing else: whatever else stands in such a line counts.
fn is_place(text: &str) -> bool {
    let numbers: Vec<&str> = text.split(' ').collect();
    numbers.len() == 3 && numbers.iter().all(|n| !n.is_empty() && n.bytes().all(|digit| digit.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness::OpenTodo;
    use std::cell::Cell;

    /// A source that counts how often it is asked, and changes what it is told to.
    struct Counting<F>(Cell<u32>, F);

    impl<F: Fn(u32, &mut Built)> KernelSource for Counting<F> {
        fn build(&self, problem: &Problem, _: u32) -> Result<Built, BuildFailure> {
            self.0.set(self.0.get() + 1);
            let mut built = Built { ptx: format!(".loc 1 40 11\n// {problem}\n"), grid: [1, 1, 1], ..Built::default() };
            (self.1)(self.0.get(), &mut built);
            match built.name.as_str() {
                "refused" => Err(BuildFailure::no_answer("refused")),
                _ => Ok(built),
            }
        }
    }

    fn step() -> &'static Step {
        harness::step(2).unwrap()
    }

    fn same(change: impl Fn(u32, &mut Built)) -> Option<Same> {
        let source = Counting(Cell::new(0), change);
        Ahead::of(&source, step(), &JudgeOptions::default()).same().cloned()
    }

    #[test]
    fn each_is_built_once_and_again_for_who_asks_again() {
        let options = JudgeOptions::default();
        let asked = judge::asked_for(step(), &options);
        let source = Counting(Cell::new(0), |_, _: &mut Built| ());
        let ahead = Ahead::of(&source, step(), &options);
        let all = asked.len() as u32;
        assert!(all > 2 && source.0.get() == all, "{} of {all}", source.0.get());
        assert!(ahead.is_same_again() && source.0.get() == 2 * all);
        for (problem, sms) in &asked {
            assert!(ahead.build(problem, *sms).unwrap().ptx.contains(&problem.to_string()));
        }
        assert_eq!(source.0.get(), 2 * all, "all were there");
        ahead.build(&asked[0].0, asked[0].1).unwrap();
        assert_eq!(source.0.get(), 2 * all + 1, "the second time it is built");
        let lottery = Counting(Cell::new(0), |count, built: &mut Built| built.grid = [count, 1, 1]);
        assert!(!Ahead::of(&lottery, step(), &options).is_same_again());
        // Only the last of them is another the second time.
        let late = Counting(Cell::new(0), move |count, built: &mut Built| {
            built.grid = [1 + u32::from(count == 2 * all), 1, 1]
        });
        assert!(!Ahead::of(&late, step(), &options).is_same_again());
    }

    #[test]
    fn what_is_built_alike_is_the_same_and_nothing_else() {
        let plain = same(|_, _| ()).expect("it is whole");
        assert_eq!(same(|_, built| built.ptx = built.ptx.replace("1 40 11", "1 77 2")), Some(plain.clone()), "a line");
        let others: [fn(u32, &mut Built); 6] = [
            |_, built| built.grid = [2, 1, 1],
            |count, built| built.dynamic_shared = u32::from(count == 2),
            |_, built| built.ptx += "ret;",
            // Two lines, not one.
            |_, built| built.ptx += ".loc 1 41 11\n",
            // A line that says more than a place.
            |_, built| built.ptx = built.ptx.replace("1 40 11", "1 40 11 ret;"),
            |_, built| built.ptx = built.ptx.replace(".loc", "*/ .loc"),
        ];
        for (index, other) in others.into_iter().enumerate() {
            let other = same(other).expect("it is whole");
            assert_ne!(other, plain, "{index}");
        }
        // One place, and the same again.
        let twice = |second: &'static str| same(move |_, built| built.ptx += second);
        assert_eq!(twice(".loc 1 50 1\n.loc 1 50 1\n"), twice(".loc 1 60 1\n.loc 1 60 1\n"));
        assert_ne!(twice(".loc 1 50 1\n.loc 1 50 1\n"), twice(".loc 1 50 1\n.loc 1 60 1\n"));
    }

    #[test]
    fn what_is_not_whole_is_like_nothing_else_and_costs_no_further_build() {
        let todo = || OpenTodo {
            id: "2.1".to_string(),
            place: harness::Place { file: "kernel.rs".to_string(), line: 1, column: 1 },
        };
        assert_eq!(same(move |_, built| built.todos.push(todo())), None);
        assert_eq!(same(|_, built| built.ptx = " ".repeat(MOST + 1)), None);
        let source = Counting(Cell::new(0), |_, built: &mut Built| built.name = "refused".to_string());
        let ahead = Ahead::of(&source, step(), &JudgeOptions::default());
        let (problem, sms) = judge::asked_for(step(), &JudgeOptions::default())[0];
        assert!(ahead.same().is_none() && ahead.build(&problem, sms).is_err());
        assert_eq!(source.0.get(), 1, "what failed is not asked twice");
    }
}
