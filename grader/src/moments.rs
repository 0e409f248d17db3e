//! When the hand-ins of a class came: a CSV file with the columns `name,handed_in`, or the `submission_metadata.yml` that Gradescope puts beside the
//! hand-ins that one downloads.

use grader::rubric::Moment;
use std::collections::BTreeMap;
use std::path::Path;

/// When hand-ins came, by their names.
pub(crate) type Moments = BTreeMap<String, Moment>;

/// Reads either of them.
pub(crate) fn read(path: &Path) -> Result<Moments, String> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        let way_out = match error.kind() {
            std::io::ErrorKind::InvalidData => "Save it as UTF-8.",
            _ => "Name a CSV file whose first line is `name,handed_in`, or Gradescope's submission_metadata.yml.",
        };
        format!("cannot read {shown}: {error}\n  try: {way_out}")
    })?;
    let is_yaml = path.extension().is_some_and(|end| end == "yml" || end == "yaml");
    let read = if is_yaml { of_gradescope(&text) } else { of_csv(&text) };
    read.map_err(|Wrong { line, what }| format!("{shown}:{line}: {what}"))
}

/// What is wrong, and in which line.
#[derive(Debug, PartialEq)]
struct Wrong {
    line: u64,
    what: String,
}

fn wrong<T>(line: u64, what: String) -> Result<T, Wrong> {
    Err(Wrong { line, what })
}

/// What is allowed in a CSV file, and the way out.
const MOMENT: &str = "; allowed is date, time and offset from UTC\n  \
                      try: Write it so: 2026-11-30T23:59:59+01:00, or …Z for UTC.";

fn of_csv(text: &str) -> Result<Moments, Wrong> {
    const COLUMNS: [&str; 2] = ["name", "handed_in"];
    let broken = |broken: csv::Error| {
        let line = broken.position().map_or(1, csv::Position::line);
        Wrong { line, what: format!("{broken}\n  try: Give a hand-in on each line: its name, a comma, when it came.") }
    };
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let head = reader.headers().map_err(broken)?;
    if !head.iter().eq(COLUMNS) {
        let found = head.iter().collect::<Vec<_>>().join(",");
        return wrong(1, format!("the columns are {found:?}\n  try: Begin with the line `{}`.", COLUMNS.join(",")));
    }
    let mut all = Moments::new();
    for row in reader.records() {
        let row = row.map_err(broken)?;
        let line = row.position().map_or(1, csv::Position::line);
        let moment = Moment::parse(&row[1])
            .map_err(|_| Wrong { line, what: format!("`handed_in` of {:?} is {:?}{MOMENT}", &row[0], &row[1]) })?;
        if all.insert(row[0].to_string(), moment).is_some() {
            return wrong(line, format!("{:?} stands there twice\n  try: Leave the line that counts.", &row[0]));
        }
    }
    Ok(all)
}

/// Gradescope's list, of which two kinds of lines are read: a hand-in's folder at the very left, and `:created_at:` two blanks in. What else it
/// has (names, results, texts of students) is farther to the right, as YAML asks for.
fn of_gradescope(text: &str) -> Result<Moments, Wrong> {
    const TRY: &str = "try: Give the file as Gradescope writes it, or a CSV file whose first line is `name,handed_in`.";
    let (mut all, mut folder) = (Moments::new(), None);
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(named) = line.strip_suffix(':').filter(|named| !named.starts_with([' ', '-', ':', '#'])) {
            folder = Some(named.trim_matches(['"', '\'']).to_string());
        } else if let Some(moment) = line.strip_prefix("  :created_at: ") {
            let Some(folder) = &folder else {
                return wrong(number, format!("`:created_at:` stands before the first hand-in\n  {TRY}"));
            };
            // `2026-04-26 17:34:00.861687000 Z`, as Ruby writes moments.
            let (day, rest) = moment.trim().split_once(' ').unwrap_or((moment.trim(), ""));
            let written = format!("{day}T{}", rest.replace(' ', ""));
            let Ok(moment) = Moment::parse(&written) else {
                let allowed = "allowed is a moment with its offset from UTC, such as 2026-04-26 17:34:00.5 Z";
                let what = format!("`:created_at:` of {folder} is {:?}; {allowed}\n  {TRY}", moment.trim());
                return wrong(number, what);
            };
            if all.insert(folder.clone(), moment).is_some() {
                return wrong(number, format!("{folder} has `:created_at:` a second time\n  {TRY}"));
            }
        }
    }
    if all.is_empty() {
        return wrong(1, format!("no hand-in has a line `  :created_at: …`\n  {TRY}"));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(read: Result<Moments, Wrong>) -> Vec<String> {
        match read {
            Ok(all) => {
                all.into_iter().map(|(name, moment)| format!("{name} {} {}", moment.text, moment.seconds)).collect()
            }
            Err(Wrong { line, what }) => vec![format!("{line}: {}", what.lines().next().unwrap_or_default())],
        }
    }

    #[test]
    fn gradescopes_list_says_when_each_came_and_no_text_of_a_student_does() {
        let list = "---\nsubmission_1:\n  :submitters:\n  - :name: \"x\\n  :created_at: 2020-01-01 00:00:00 Z\"\n    :sid: '7'\n  \
                    :created_at: 2026-04-26 17:34:00.861687000 Z\n  :score: 2.0\n  :results:\n    output: |-\n      submission_9:\n        \
                    :created_at: 2020-01-01 00:00:00 Z\nsubmission_2:\n  :created_at: 2026-04-26 17:34:00 -07:00\nsubmission_3:\n  :score:\n";
        let expected = [
            "submission_1 2026-04-26T17:34:00.861687000Z 1777224840",
            "submission_2 2026-04-26T17:34:00-07:00 1777250040",
        ];
        assert_eq!(said(of_gradescope(list)), expected);
        for (list, expected) in [
            (
                "a:\n  :created_at: tomorrow\n",
                "2: `:created_at:` of a is \"tomorrow\"; allowed is a moment with its offset from UTC, such as 2026-04-26 17:34:00.5 Z",
            ),
            ("  :created_at: 2026-04-26 17:34:00 Z\n", "1: `:created_at:` stands before the first hand-in"),
            (
                "a:\n  :created_at: 2026-04-26 17:34:00 Z\n  :created_at: 2026-04-26 17:34:00 Z\n",
                "3: a has `:created_at:` a second time",
            ),
            ("", "1: no hand-in has a line `  :created_at: …`"),
        ] {
            assert_eq!(said(of_gradescope(list)), [expected], "{list}");
        }
    }

    #[test]
    fn a_table_of_a_spreadsheet_is_read_as_it_saves_it() {
        let saved = "\u{feff}name,handed_in\r\n\"anna, or\",2026-11-30T23:59:59+01:00\r\n";
        assert_eq!(said(of_csv(saved)), ["anna, or 2026-11-30T23:59:59+01:00 1796079599"]);
        for (table, expected) in [
            ("name;handed_in\na;b\n", "1: the columns are \"name;handed_in\""),
            (
                "name,handed_in\na,yesterday\n",
                "2: `handed_in` of \"a\" is \"yesterday\"; allowed is date, time and offset from UTC",
            ),
            ("name,handed_in\na,2026-11-30T23:59:59Z\na,2026-11-30T23:59:59Z\n", "3: \"a\" stands there twice"),
        ] {
            assert_eq!(said(of_csv(table)), [expected], "{table}");
        }
    }
}
