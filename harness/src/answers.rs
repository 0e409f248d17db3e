//! Reads the answer of a program that builds a kernel: the one thing that crosses from a student's code to the judge.
//!
//! It may have been written by anything. Its size is bounded, its shape is closed, its numbers are those that a launch can have, its
//! texts are short and move no cursor. What a kernel of ours never has is refused by a name; what a kernel may have and a GPU
//! does not take is left to the launch, which explains it better.

use crate::problem::Problem;
use crate::source::{BuildErrorAt, BuildFailure, Built, Ending, Param, Place};
use emit::Answer;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// The largest answer that is read. A kernel of ten thousand instructions is about 1 MiB.
pub const MAX_ANSWER: u64 = 16 << 20;
/// The longest PTX text. The emulator keeps eighty times as much, for each size that is judged.
const MAX_PTX: usize = 4 << 20;
/// The most entries of a PTX text.
const MAX_ENTRIES: usize = 64;
/// So many CTAs any kernel may have.
const ANY_CTAS: u64 = 1024;
/// Elements of D that a CTA computes at least, if there are more of them: a tile of 32 x 32.
const LEAST_OF_D: u64 = 32 * 32;
/// The most threads of a block, and CTAs of a cluster: what is a little too much for a GPU, the launch explains.
const MAX_THREADS: u64 = 1 << 16;
/// The longest name.
const MAX_NAME: usize = 256;
/// The longest text for people.
const MAX_TEXT: usize = 16 << 10;
/// The longest texts for people of one answer, all together. A hundred errors have a tenth of it.
const MAX_TEXTS: usize = 256 << 10;
/// The longest list.
const MAX_LIST: usize = 4096;
/// More than the on-chip memories hold: what is a little too much for a GPU, the launch explains.
const MAX_BYTES: u64 = 16 << 20;

/// Reads an answer file.
///
/// # Errors
/// When it is missing, or no answer: what is wrong with it. When this machine does not give it: [`BuildFailure::Here`].
pub(crate) fn read(path: &Path) -> Result<Answer, BuildFailure> {
    let here = |e: std::io::Error| BuildFailure::Here { message: format!("cannot read the answer: {e}") };
    // An answer is a plain file: a link or a pipe made by the program would make the judge read something else.
    let about = match fs::symlink_metadata(path) {
        Ok(about) => about,
        Err(e) if e.kind() == ErrorKind::NotFound => {
            let what =
                "the program that builds the kernel left no answer: it ended before the kernel function returned";
            return Err(BuildFailure::NoAnswer { message: what.to_string(), ending: Some(Ending::Silent), says: None });
        }
        Err(e) => return Err(here(e)),
    };
    if !about.is_file() || about.len() > MAX_ANSWER {
        return Err(refused(format!("the answer is not a file of at most {} MiB", MAX_ANSWER >> 20)));
    }
    let bytes = fs::read(path).map_err(here)?;
    let text = String::from_utf8(bytes).map_err(|_| refused("the answer is not UTF-8".to_string()))?;
    parse(&text).map_err(refused)
}

/// An answer that is refused: its first line says what it was.
pub(crate) fn refused(message: String) -> BuildFailure {
    let why = message.lines().next().unwrap_or_default().trim_end_matches(':').to_string();
    BuildFailure::NoAnswer { message, ending: Some(Ending::Refused(why)), says: None }
}

/// Reads the text of an answer.
///
/// # Errors
/// What is wrong with it.
pub fn parse(text: &str) -> Result<Answer, String> {
    // serde_json goes 128 levels deep and knows no NaN.
    let answer =
        serde_json::from_str(text).map_err(|e| format!("the answer is not a kernel: {}", plain(&e.to_string())))?;
    match answer {
        Answer::Built(mut built) => {
            check(&built).map_err(|(part, why)| format!("the answer is not a kernel ({part}): {why}"))?;
            built.leaks = shown(built.leaks);
            // In our sentences a name stands between two of these: one in a name would end it there, and what follows would pass for our
            // words, as on the page of a class. PTX has no use for the sign.
            let texts = built.regions.iter_mut().map(|region| &mut region.name).chain([&mut built.ptx]);
            texts.filter(|text| text.contains('`')).for_each(|text| *text = text.replace('`', "'"));
            Ok(Answer::Built(built))
        }
        Answer::Failed(failure) => Ok(Answer::Failed(match failure {
            BuildFailure::Rejected(errors) => BuildFailure::Rejected(shown(errors)),
            BuildFailure::Panicked { message, place } => {
                BuildFailure::Panicked { message: plain(&message), place: place.map(shown_place) }
            }
            // Only this side of the answer knows what failed here.
            BuildFailure::NoAnswer { message, .. }
            | BuildFailure::Here { message }
            | BuildFailure::Varies { message, .. } => BuildFailure::no_answer(plain(&message)),
        })),
    }
}

/// Whether a kernel is one for this problem. What is kept of a run grows with its CTAs, and a product needs no more than its D has tiles.
///
/// # Errors
/// What is too much.
pub(crate) fn fits(built: &Built, problem: &Problem) -> Result<(), String> {
    let most = (u64::from(problem.m) * u64::from(problem.n) / LEAST_OF_D).max(ANY_CTAS);
    if within(built.grid, most) {
        return Ok(());
    }
    let [x, y, z] = built.grid;
    Err(format!(
        "the answer is not a kernel for {problem} (grid): {x} x {y} x {z}; allowed are 1 to {most} CTAs in all\n  \
         try: Let the grid have a CTA for each tile of D: its rows and columns divided by those of a tile."
    ))
}

/// Whether the product of three extents is from 1 to so many. Neither can overflow after this.
fn within(extents: [u32; 3], most: u64) -> bool {
    let all = extents.iter().try_fold(1u64, |all, n| all.checked_mul(u64::from(*n)));
    all.is_some_and(|all| (1..=most).contains(&all))
}

/// A text as it can be shown: no sign that moves a cursor or turns a line around, and not too long.
pub fn plain(text: &str) -> String {
    let mut plain: String = text
        .chars()
        .take(MAX_TEXT)
        .map(|sign| if moves(sign) && sign != '\n' && sign != '\t' { '\u{fffd}' } else { sign })
        .collect();
    if text.chars().nth(MAX_TEXT).is_some() {
        plain.push('…');
    }
    plain
}

/// A name as it can be shown, on one line.
pub fn named(name: &str) -> String {
    name.chars().take(MAX_NAME).map(|sign| if moves(sign) { '\u{fffd}' } else { sign }).collect()
}

/// Signs that move a cursor, turn a line around, or cannot be seen.
pub fn moves(sign: char) -> bool {
    sign.is_control()
        || matches!(
            sign,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
                | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
        )
}

/// The first of some errors, as they can be shown: what is told of a hand-in must not grow without bound.
fn shown(errors: Vec<BuildErrorAt>) -> Vec<BuildErrorAt> {
    let all = errors.len();
    let (mut shown, mut bytes): (Vec<BuildErrorAt>, usize) = (Vec::new(), 0);
    for error in errors {
        let error =
            BuildErrorAt { place: shown_place(error.place), message: plain(&error.message), help: plain(&error.help) };
        bytes += error.place.file.len() + error.message.len() + error.help.len();
        if bytes > MAX_TEXTS || shown.len() == MAX_LIST {
            let message = format!("there are {} more errors, too long to be shown", all - shown.len());
            shown.push(BuildErrorAt { place: error.place, message, help: String::new() });
            break;
        }
        shown.push(error);
    }
    shown
}

fn shown_place(place: Place) -> Place {
    Place { file: named(&place.file), ..place }
}

/// Which part is no kernel's, and why.
type Wrong = (&'static str, String);

fn check(built: &Built) -> Result<(), Wrong> {
    let first = built.name.chars().next().unwrap_or('0');
    let word = |sign: char| sign.is_ascii_alphanumeric() || sign == '_' || sign == '$';
    if built.name.len() > MAX_NAME || first.is_ascii_digit() || !built.name.chars().all(word) {
        return Err(("name", format!("`{}` is no name of an entry", named(&built.name))));
    }
    if built.ptx.len() > MAX_PTX {
        return Err(("ptx", format!("{} bytes; up to {MAX_PTX} are read", built.ptx.len())));
    }
    if let Some((line, sign)) = hidden(&built.ptx) {
        return Err(("ptx", format!("line {line} holds the sign U+{:04X}, which cannot be seen", u32::from(sign))));
    }
    // The emulator lays out each with all variables of the module; the builder writes one.
    let entries = built.ptx.matches(".entry").count();
    if entries > MAX_ENTRIES {
        return Err(("ptx", format!("{entries} entries; up to {MAX_ENTRIES} are read")));
    }
    // How large a grid may be, the problem says: see `fits`.
    for (part, extents) in [("cluster", built.cluster), ("block", built.block)] {
        if !within(extents, MAX_THREADS) {
            let [x, y, z] = extents;
            return Err((part, format!("{x} x {y} x {z}; allowed are 1 to {MAX_THREADS} in all")));
        }
    }
    if u64::from(built.dynamic_shared) > MAX_BYTES {
        return Err(("dynamic_shared", format!("{} bytes; up to {MAX_BYTES} are read", built.dynamic_shared)));
    }
    for (part, length) in
        [("params", built.params.len()), ("regions", built.regions.len()), ("todos", built.todos.len())]
    {
        if length > MAX_LIST {
            return Err((part, format!("{length} of them; up to {MAX_LIST} are read")));
        }
    }
    for param in &built.params {
        if let Param::TensorMap { box_rows, box_columns, .. } = param
            && ![box_rows, box_columns].iter().all(|size| (1..=256).contains(*size))
        {
            return Err((
                "params",
                format!("a box of {box_rows} rows and {box_columns} columns; allowed are 1 to 256"),
            ));
        }
    }
    built.regions.iter().try_for_each(region)?;
    for todo in &built.todos {
        let odd = |text: &str| text.len() > MAX_NAME || text.chars().any(moves);
        if odd(&todo.id) {
            return Err(("todos", format!("`{}` is no TODO's number", named(&todo.id))));
        }
        if odd(&todo.place.file) {
            return Err(("todos", format!("`{}` is no file of a TODO", named(&todo.place.file))));
        }
    }
    Ok(())
}

fn region(region: &ptx::Region) -> Result<(), Wrong> {
    let name = &region.name;
    if name.is_empty() || name.len() > MAX_NAME || name.chars().any(moves) {
        return Err(("regions", format!("`{}` is no name of a region", named(name))));
    }
    let end = u64::from(region.offset) + u64::from(region.bytes);
    if end > MAX_BYTES {
        return Err(("regions", format!("`{name}` ends at {end}; up to {MAX_BYTES} is read")));
    }
    if let ptx::RegionKind::Tile { rows, columns, element_bytes, .. } = region.kind {
        let bytes = [rows, columns, element_bytes].iter().try_fold(1u64, |all, n| all.checked_mul(u64::from(*n)));
        if bytes.is_none_or(|bytes| bytes == 0 || bytes > MAX_BYTES) {
            return Err((
                "regions",
                format!("`{name}` is a tile of {rows} x {columns} elements of {element_bytes} bytes"),
            ));
        }
    }
    Ok(())
}

/// The first sign of a text that cannot be seen, and its line.
fn hidden(text: &str) -> Option<(usize, char)> {
    let hidden = |sign: &char| moves(*sign) && !matches!(sign, '\t' | '\r');
    text.split('\n').enumerate().find_map(|(index, line)| Some((index + 1, line.chars().find(hidden)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use serde_json::{Value, json};

    fn answer() -> Value {
        json!({"built": {
            "name": "kernel", "ptx": ".version 8.6\n", "grid": [1, 1, 1], "cluster": [1, 1, 1], "block": [128, 1, 1],
            "dynamic_shared": 1024, "params": [{"pointer": "A"}],
            "regions": [{"name": "a", "space": "dynamic_shared", "offset": 0, "bytes": 8, "kind": "barrier", "stage": null}],
            "todos": [], "leaks": [],
        }})
    }

    fn changed(change: impl FnOnce(&mut Value)) -> String {
        let mut answer = answer();
        change(&mut answer["built"]);
        parse(&answer.to_string()).expect_err("must be refused")
    }

    #[test]
    fn a_kernel_is_read_and_what_no_kernel_has_is_refused_by_name() {
        assert!(matches!(parse(&answer().to_string()), Ok(Answer::Built(_))), "{:?}", parse(&answer().to_string()));
        let map = |rows: u32| json!([{"tensor_map": {"matrix": "A", "box_rows": rows, "box_columns": 64, "swizzle": "none"}}]);
        let tile = |rows: u32| json!({"tile": {"rows": rows, "columns": rows, "element_bytes": 2, "swizzle": 0}});
        let said = [
            changed(|built| built["name"] = json!("k\u{1b}[2J")),
            changed(|built| built["ptx"] = json!("a\nb\u{1b}c")),
            changed(|built| built["ptx"] = json!("a\u{61c}b")),
            changed(|built| built["ptx"] = json!(".entry a() {}\n".repeat(65))),
            changed(|built| built["grid"] = json!([1, 1])),
            changed(|built| built["grid"] = json!([1.5, 1, 1])),
            changed(|built| built["cluster"] = json!([0, 0, 0])),
            changed(|built| built["block"] = json!([1 << 16, 2, 1])),
            changed(|built| built["dynamic_shared"] = json!(1u32 << 31)),
            changed(|built| built["params"] = map(0)),
            changed(|built| built["params"] = map(257)),
            changed(|built| built["params"] = json!([{"pointer": "Reference"}])),
            changed(|built| built["params"] = json!([{"pointer": 140_000_000_000u64}])),
            changed(|built| built["regions"][0]["name"] = json!("a\nerror: passed")),
            changed(|built| built["regions"][0]["name"] = json!("a\u{202e}b")),
            changed(|built| built["regions"][0]["offset"] = json!(u32::MAX)),
            changed(|built| built["regions"][0]["kind"] = tile(u32::MAX)),
            changed(|built| built["regions"] = json!(vec![built["regions"][0].clone(); MAX_LIST + 1])),
            changed(|built| {
                built["todos"] = json!([{"id": "1.1", "place": {"file": "x".repeat(257), "line": 1, "column": 1}}])
            }),
            changed(|built| built["points"] = json!(100)),
            changed(|built| built["buffers"] = json!([[1, 2, 3]])),
        ];
        expect![[r#"
            the answer is not a kernel (name): `k�[2J` is no name of an entry
            the answer is not a kernel (ptx): line 2 holds the sign U+001B, which cannot be seen
            the answer is not a kernel (ptx): line 1 holds the sign U+061C, which cannot be seen
            the answer is not a kernel (ptx): 65 entries; up to 64 are read
            the answer is not a kernel: invalid length 2, expected an array of length 3 at line 1 column 80
            the answer is not a kernel: invalid type: floating point `1.5`, expected u32 at line 1 column 79
            the answer is not a kernel (cluster): 0 x 0 x 0; allowed are 1 to 65536 in all
            the answer is not a kernel (block): 65536 x 2 x 1; allowed are 1 to 65536 in all
            the answer is not a kernel (dynamic_shared): 2147483648 bytes; up to 16777216 are read
            the answer is not a kernel (params): a box of 0 rows and 64 columns; allowed are 1 to 256
            the answer is not a kernel (params): a box of 257 rows and 64 columns; allowed are 1 to 256
            the answer is not a kernel: unknown variant `Reference`, expected one of `A`, `B`, `D` at line 1 column 142
            the answer is not a kernel: expected value at line 1 column 132
            the answer is not a kernel (regions): `a�error: passed` is no name of a region
            the answer is not a kernel (regions): `a�b` is no name of a region
            the answer is not a kernel (regions): `a` ends at 4294967303; up to 16777216 is read
            the answer is not a kernel (regions): `a` is a tile of 4294967295 x 4294967295 elements of 2 bytes
            the answer is not a kernel (regions): 4097 of them; up to 4096 are read
            the answer is not a kernel (todos): `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx` is no file of a TODO
            the answer is not a kernel: unknown field `points`, expected one of `name`, `ptx`, `grid`, `cluster`, `block`, `dynamic_shared`, `params`, `regions`, `todos`, `leaks` at line 1 column 145
            the answer is not a kernel: unknown field `buffers`, expected one of `name`, `ptx`, `grid`, `cluster`, `block`, `dynamic_shared`, `params`, `regions`, `todos`, `leaks` at line 1 column 37"#]].assert_eq(&said.join("\n"));
    }

    #[test]
    fn no_name_of_an_answer_ends_where_our_words_go_on() {
        let mut answer = answer();
        answer["built"]["regions"][0]["name"] = json!("a` is right, and `b");
        answer["built"]["ptx"] = json!(".version 8.6\n// a `b` c\n");
        let Ok(Answer::Built(built)) = parse(&answer.to_string()) else { panic!("a kernel") };
        assert_eq!(
            (built.regions[0].name.as_str(), built.ptx.as_str()),
            ("a' is right, and 'b", ".version 8.6\n// a 'b' c\n")
        );
    }

    #[test]
    fn a_grid_has_no_more_ctas_than_its_product_has_tiles() {
        let built = |grid| Built { grid, ..Built::default() };
        let small = Problem::f16(128, 128, 64);
        assert_eq!(fits(&built([1024, 1, 1]), &small), Ok(()));
        assert_eq!(fits(&built([256, 256, 1]), &Problem::f16(8192, 8192, 64)), Ok(()));
        // One limit in every message, whatever number is there: no other one holds.
        for grid in
            [[1025, 1, 1], [1, 1 << 10, 2], [i32::MAX as u32, 1, 1], [1 << 31, 1, 1], [u32::MAX; 3], [0, 1, 1], [0; 3]]
        {
            let why = fits(&built(grid), &small).expect_err("it is too much");
            assert!(
                why.contains("(grid)")
                    && why.contains("; allowed are 1 to 1024 CTAs in all")
                    && why.contains("\n  try: "),
                "{why}"
            );
        }
    }

    #[test]
    fn json_that_is_deep_or_not_json_is_refused() {
        let deep = format!("{{\"failed\": {{\"rejected\": {}", "[".repeat(1_000_000));
        let said: Vec<String> = [&deep, r#"{"built": NaN}"#, "", r#"{"failed": {"passed": 5}}"#]
            .map(|text| parse(text).expect_err("must be refused"))
            .to_vec();
        expect![[r#"
            the answer is not a kernel: invalid type: sequence, expected a string at line 1 column 27
            the answer is not a kernel: expected value at line 1 column 11
            the answer is not a kernel: EOF while parsing a value at line 1 column 0
            the answer is not a kernel: unknown variant `passed`, expected one of `rejected`, `panicked`, `no_answer` at line 1 column 20"#]].assert_eq(&said.join("\n"));
    }

    #[test]
    fn texts_of_an_answer_are_bounded_in_all() {
        let error = |line| json!({"place": {"file": "k.rs", "line": line, "column": 1}, "message": "\u{7f}".repeat(16_000), "help": "h"});
        let failed = json!({"failed": {"rejected": (1..=1030).map(error).collect::<Vec<_>>()}});
        let Ok(Answer::Failed(BuildFailure::Rejected(errors))) = parse(&failed.to_string()) else {
            panic!("an answer")
        };
        let bytes: usize = errors.iter().map(|error| error.message.len()).sum();
        assert!(bytes <= MAX_TEXTS && errors.len() > 2, "{bytes} bytes of {} errors", errors.len());
        let last = &errors[errors.len() - 1].message;
        assert_eq!(*last, format!("there are {} more errors, too long to be shown", 1030 - (errors.len() - 1)));
        // What an honest kernel has is all there.
        let error = |line| json!({"place": {"file": "k.rs", "line": line, "column": 1}, "message": "m".repeat(200), "help": "h"});
        let failed = json!({"failed": {"rejected": (1..=500).map(error).collect::<Vec<_>>()}});
        let Ok(Answer::Failed(BuildFailure::Rejected(errors))) = parse(&failed.to_string()) else {
            panic!("an answer")
        };
        assert_eq!(errors.len(), 500);
    }

    #[test]
    fn texts_of_a_failure_move_no_cursor() {
        let failed = json!({"failed": {"panicked": {"message": "\u{1b}[2Jpassed\n5 of 5", "place": null}}});
        let Ok(Answer::Failed(failure)) = parse(&failed.to_string()) else { panic!("it is an answer") };
        let said = failure.to_string();
        assert!(said.starts_with("the kernel function panicked: \u{fffd}[2Jpassed\n5 of 5\n  try: "), "{said}");
        assert!(plain(&"x".repeat(1 << 20)).len() < 20_000);
        // Whatever turns a line around, or cannot be seen; and what people write stays.
        for sign in ['\u{61c}', '\u{202e}', '\u{2060}', '\u{2068}', '\u{ad}', '\u{3164}', '\u{e0041}', '\u{85}', '\r'] {
            assert_eq!(plain(&format!("a{sign}b")), "a\u{fffd}b", "{sign:?}");
        }
        let written = "Zoë, 王小明, مريم, עדי, Ærøskøbing: A · Bᵀ → D, 128 × 128, … \u{1f600}";
        assert_eq!(plain(written), written);
    }
}
