//! The kernel `roles` of `../cuda`, as it is changed into other right ones: factors of a row, numbers that are spread over it, columns of B in another order.
//! Nothing is said of those, and of their wrong twins it is.

use super::by_hand::{ROLES, as_bf16, edited, only, product, roles};
use super::case::told;
use super::common::matrix;
use emulator::{Param, Report, Severity};

/// One number of each row, out of a product, is a factor of what lies in the row: chunks may be taken in whatever order they lie.
#[test]
fn rows_that_a_number_of_a_product_scales_may_lie_as_they_do() {
    let scaled = |line: &str| match line.trim_start().strip_prefix("add.f32 ").and_then(|line| line.rsplit_once(", ")) {
        Some((operands, _)) => format!("mul.f32 {operands}, %r338;\n"),
        None => format!("{line}\n"),
    };
    let text: String = ROLES.lines().map(scaled).collect();
    assert_eq!(text.matches(", %r338;").count(), 64, "each number is scaled");
    let report = edited(&text, &roles(0, 0), None, &[]);
    assert!(report.findings.is_empty(), "{}", told(&report.findings));
    assert!(report.notes.iter().all(|note| !note.title.starts_with("threads read")), "{}", told(&report.notes));
}

/// The kernel `roles` with another line in place of each that adds C to a column: of the column, the register for what is stored, and that of C.
fn roles_with(line: impl Fn(usize, &str, &str) -> String) -> String {
    let mut column = 0;
    let changed = |text: &str| {
        let operands = text.trim_start().strip_prefix("add.f32 ").and_then(|operands| operands.strip_suffix(';'));
        let Some([to, c, _]) = operands
            .map(|all| all.trim().split(", ").collect::<Vec<_>>())
            .as_deref()
            .map(|all| [all[0], all[1], all[2]])
        else {
            return format!("{text}\n");
        };
        column += 1;
        line(column - 1, to, c) + "\n"
    };
    let text = ROLES.lines().map(changed).collect();
    assert_eq!(column, 64);
    text
}

/// `roles`, whose tiles all have the columns of the first: B's box is the same for all.
fn all_of_the_first_columns(text: &str) -> String {
    let (before, behind) = (["[%rd76, {", "[%rd78, {"], ", %r287}]");
    let is_of_b = |line: &str| before.iter().any(|map| line.contains(map)) && line.contains(behind);
    assert_eq!(text.lines().filter(|line| is_of_b(line)).count(), 7, "all rounds of the loop");
    let first = |line: &str| if is_of_b(line) { line.replace(behind, ", 0}]") } else { line.into() };
    text.lines().map(|line| first(line) + "\n").collect()
}

/// Eight numbers of each row, out of a product, are factors of what lies in each chunk of the row: the chunks may lie as they do, and the whole row is not where
/// the product would be.
#[test]
fn factors_of_a_row_belong_to_no_column() {
    let gates = roles_with(|column, to, c| format!("mul.f32 {to}, {c}, %r{};", 338 + column % 8));
    let first = all_of_the_first_columns(&gates);
    for (text, mask) in [(&gates, 0), (&gates, 7), (&first, 0), (&first, 7)] {
        let report = edited(text, &roles(mask, mask), None, &[]);
        assert!(report.findings.is_empty(), "{}", told(&report.findings));
        assert!(report.notes.iter().all(|note| !note.title.starts_with("threads read")), "{}", told(&report.notes));
    }
}

/// Eight numbers of each row are all that lies in it, again and again: so do they, in whatever order their chunks are stored, and wherever the row is.
#[test]
fn numbers_that_are_spread_over_a_row_belong_to_no_column() {
    let own = roles_with(|column, to, _| format!("mov.b32 {to}, %r{};", 338 + column + column / 32));
    let found = edited(&own, &roles(7, 0), None, &[]);
    assert_eq!(only(&found, "swizzle-mismatch").severity, Severity::Finding, "each is of its own column");
    let spread = |line: &str| match line.split_once("+90112], {") {
        Some((store, _)) => format!("{store}+90112], {{%r418, %r423, %r428, %r433}};\n"),
        None => format!("{line}\n"),
    };
    let spread: String = own.lines().map(spread).collect();
    for text in [&spread, &all_of_the_first_columns(&spread)] {
        for mask in [0, 7] {
            let report = edited(text, &roles(7, mask), None, &[]);
            assert!(report.findings.is_empty(), "{}", told(&report.findings));
        }
    }
}

/// The largest number of eight in a row of C is added to all of the row: where in the row those lie says nothing of its columns.
#[test]
fn what_is_made_of_several_numbers_of_a_row_is_of_no_column() {
    let best = (1..4).map(|n| format!("max.u32 %r580, %r580, %r{};\n", 580 + n)).collect::<String>();
    let load = "ld.shared.v4.b32 \t{%r580, %r581, %r582, %r583}, [%r579+73728];";
    let text = ROLES.replace(load, &format!("{load}\n{best}"));
    let of_one = |line: &str| !line.contains("%rs2}") && line.starts_with("\tmov.b32 \t{%rs");
    let text: String = text
        .lines()
        .map(|line| match line.split_once("}, ").filter(|_| of_one(line)) {
            Some((registers, _)) => format!("{registers}}}, %r580;\n"),
            None => format!("{line}\n"),
        })
        .collect();
    let report = edited(&text, &roles(0, 7), None, &[]);
    assert!(report.findings.is_empty(), "{}", told(&report.findings));
    assert!(report.notes.iter().all(|note| !note.title.starts_with("threads read")), "{}", told(&report.notes));
}

/// The halves of B's tile change places, and so do those of the product: D is as it should be. Without the one, it is not.
#[test]
fn chunks_lie_as_the_columns_of_b_do() {
    let halves = |line: &str| {
        let (copy, to) = (line.trim_start(), line.split(['[', ']']).nth(1).unwrap_or_default());
        if !copy.starts_with("cp.async.bulk.tensor") || !["[%rd76,", "[%rd78,"].iter().any(|map| copy.contains(map)) {
            return format!("{line}\n");
        }
        let (hi, lo) = (copy.replace("%r287", "hi"), copy.replacen(to, "at", 1));
        format!("{{ .reg .b32 hi, at; add.s32 hi, %r287, 32; add.s32 at, {to}, 4096;\n{hi}\n{lo} }}\n")
    };
    let b: String = ROLES.lines().map(halves).collect();
    assert_eq!(b.matches(" hi, %r287").count(), 7, "all rounds of the loop");
    let exchanged = [
        ("add.s32 \t%r370, %r410, %r407;", "add.s32 \t%r403, %r410, %r407;\nadd.s32 \t%r370, %r403, 32;", 1),
        ("add.s32 \t%r403, %r370, 32;", "", 1),
    ];
    let mut launch = roles(7, 7);
    let Param::TensorMap { map, .. } = &mut launch.params[1] else { panic!("B") };
    map.box_dims[1] = 32;
    let c = matrix(384, 128, 3, 32);
    let product = product([384, 128, 320], Some(&c));
    let is_right = |report: &Report| {
        let right = |(d, &sum): (&[u8], &i32)| (as_bf16(d) - sum as f32).abs() <= (sum as f32).abs() / 256.0;
        report.buffers[2].bytes.chunks(2).zip(&product).all(right)
    };
    let noted = |report: &Report| {
        report.notes.iter().any(|note| note.code == "box-mismatch" && note.title.starts_with("chunk 0 of the rows"))
    };
    let report = edited(&b, &launch, None, &exchanged);
    assert!(report.findings.is_empty() && is_right(&report), "{}", told(&report.findings));
    assert!(!noted(&report), "{}", told(&report.notes));
    let report = edited(ROLES, &roles(7, 7), None, &exchanged);
    assert!(!is_right(&report) && noted(&report), "{}", told(&report.notes));
}
