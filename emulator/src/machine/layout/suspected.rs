//! Where the operands of an MMA begin, if that looks like a mistake, but could be meant: A where B does, the operands exchanged, one behind the first row of its
//! box. It is told where something else is wrong with the MMA, or nobody reads what was loaded for it, and in place of that.

use super::boxes::{Laid, START_RULE};
use super::slices::{self, Tile};
use crate::diagnostic::{Diagnostic, Label, Meaning, Severity, join_labels};
use crate::machine::cluster::Cluster;
use crate::machine::explain::belongs::has_line;
use crate::machine::explain::findings::{Findings, without_bytes};
use crate::machine::explain::statements::{Does, Statements};
use crate::machine::mma::instruction_descriptor::InstructionDescriptor;

/// What is told of an MMA that does not take what was loaded for it.
const OF_OTHER_BYTES: &[&str] = &[
    "depth-mismatch",
    "missing-proxy-fence",
    "operand-not-ready",
    "operand-overlap",
    "operand-overwritten",
    "out-of-bounds",
    "race-shared",
    "undefined-operand",
    "undefined-value-stored",
];

/// What is told, too, of an MMA that is wider than its tiles.
const OF_OTHER_COLUMNS: &[&str] = &["accumulator-overwritten", "mma-not-awaited", "race-tensor", "tensor-freed-in-use"];
/// What is told where it reaches beyond its memory.
const BEYOND: &[&str] = &["out-of-bounds", "tensor-address"];

/// What may be a mistake.
#[derive(Debug)]
pub struct Suspicion {
    /// The MMA.
    site: u32,
    diagnostic: Diagnostic,
    /// What may tell that it is one.
    by: By,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// Something that is wrong with the MMA.
    Findings,
    /// The same; or that nobody reads other bytes of the box which the second label loads.
    Slices,
    /// That it reaches beyond its memory; or, where the bytes of something else lie behind its tile, whatever is wrong with it.
    Width { others_behind: bool },
    /// That nobody reads anything of what is loaded elsewhere, or that the MMA reads more than lies there.
    NothingRead { beyond: bool },
}

/// So many MMAs are remembered.
const MOST: usize = 64;

impl Cluster<'_> {
    /// An MMA is about to read its operands.
    pub fn suspect(&mut self, cta: usize, [a, b]: [Laid; 2]) {
        let is_known = |known: &Suspicion| known.site == a.site && !matches!(known.by, By::Width { .. });
        if self.findings.suspected.iter().any(is_known) {
            return;
        }
        let suspicion = match a.d.start == b.d.start {
            true => self.begin_together(cta, [a, b]),
            false => self.are_exchanged(cta, [a, b]),
        };
        let behind = [a, b].map(|laid| Some((laid, self.begins_behind(cta, &laid)?)));
        let both = behind.iter().all(Option::is_some);
        let behind = behind.into_iter().flatten().map(|(laid, behind)| self.row_behind(&laid, behind, both));
        suspicion.into_iter().chain(behind.collect::<Vec<_>>()).for_each(|new| self.findings.suspect(new));
    }

    /// An MMA is about to be checked, of which these operands lie in shared memory: they may be wider than their tiles.
    pub fn suspect_width(&mut self, group: &[usize], i: &InstructionDescriptor, operands: [Option<Laid>; 2]) {
        for (n, laid) in operands.into_iter().enumerate().filter_map(|(n, laid)| Some((n, laid?))) {
            // Where the tile of the other one has more rows than that takes, the two may be exchanged.
            let larger = |other: &Laid| {
                let tile = self.ctas[group[0]].loaded.tile(other.d.start);
                tile.is_some_and(|tile| tile.rows > other.rows)
            };
            if operands[1 - n].as_ref().is_some_and(larger) {
                continue;
            }
            let Some((diagnostic, others_behind)) = self.wider_than_its_boxes(group[0], (i, group.len()), &laid) else {
                continue;
            };
            self.findings.suspect(Suspicion { site: laid.site, diagnostic, by: By::Width { others_behind } });
        }
    }

    /// Both operands begin at one address.
    fn begin_together(&self, cta: usize, [a, b]: [Laid; 2]) -> Option<Suspicion> {
        let tile = self.ctas[cta].loaded.tile(a.d.start);
        let rows = tile.map_or(0, |tile| tile.rows);
        let help = match (rows == a.rows, rows == b.rows) {
            (true, false) => "Let the descriptor of B begin in the tile that is loaded for B: this is that of A.",
            (false, true) => "Let the descriptor of A begin in the tile that is loaded for A: this is that of B.",
            _ => "Let the descriptor of A begin in the tile that is loaded for A, and that of B in the tile for B.",
        };
        let begin = tile.map_or(a.d.start, |tile| tile.start);
        let title = format!("an MMA takes {} both for A and for B", self.shared_name(begin));
        let mut diagnostic = self.problem("operand-overlap", a.site, title, START_RULE, help.into());
        diagnostic.labels[0].text = "both descriptors begin at the same byte".into();
        diagnostic.labels.extend(tile.map(|tile| self.label(tile.site, "this is loaded there")));
        // A product of a matrix with itself, or with a part of it, takes no more than is there.
        Some(Suspicion {
            site: a.site,
            diagnostic,
            by: By::NothingRead { beyond: (1..a.rows.max(b.rows)).contains(&rows) },
        })
    }

    /// Each operand begins in a box that has as many rows as the other one.
    fn are_exchanged(&self, cta: usize, [a, b]: [Laid; 2]) -> Option<Suspicion> {
        if a.rows == b.rows || a.mn_major || b.mn_major {
            return None;
        }
        let first = |laid: &Laid| {
            let tile = self.ctas[cta].loaded.tile(laid.d.start);
            tile.filter(|tile| laid.d.start - tile.start < tile.pitch)
        };
        let (of_a, of_b) = (first(&a)?, first(&b)?);
        // Rows of an operand may lie in several boxes, one behind the other, all of the same depths.
        let goes_on = |tile: &Tile, rows: u32| {
            let next = self.ctas[cta].loaded.tile(tile.start + tile.bytes).filter(|_| rows > tile.rows)?;
            let (here, next) = (tile.lattice?, next.lattice?);
            Some(next.row(0).abs_diff(here.row(0)).is_multiple_of(here.step()?))
        };
        let go_on = [(of_a, a.rows), (of_b, b.rows)].iter().any(|(tile, rows)| goes_on(tile, *rows) == Some(true));
        if (of_a.rows, of_b.rows) != (b.rows, a.rows) || go_on {
            return None;
        }
        let mut diagnostic = self.problem(
            "box-mismatch",
            a.site,
            format!(
                "an MMA takes a box of {} rows for A, of which it has {}, and one of {} rows for B, of which it has {}",
                of_a.rows, a.rows, of_b.rows, b.rows
            ),
            START_RULE,
            "Exchange the two descriptors: A is the first one of the MMA, with M rows, and B the second, with N."
                .into(),
        );
        let begins = |tile: &Tile| self.shared_name(tile.start);
        diagnostic.labels[0].text = format!("A begins in {}, B in {}", begins(of_a), begins(of_b));
        let brought = |tile: &Tile| self.label(tile.site, format!("a box of {} rows is loaded here", tile.rows));
        diagnostic.labels.extend([brought(of_a), brought(of_b)]);
        Some(Suspicion { site: a.site, diagnostic, by: By::Findings })
    }

    /// An operand that would fit into its box begins in another row than the first eight do, as if the next depths lay behind the row.
    fn begins_behind(&self, cta: usize, laid: &Laid) -> Option<Behind> {
        let Laid { d, rows, .. } = *laid;
        if !laid.goes_straight_on() {
            return None;
        }
        let column = d.start % d.swizzle;
        let tile = self.ctas[cta].loaded.tile(d.start - column).filter(|tile| tile.swizzle == d.mode())?;
        let row = (d.start - column).saturating_sub(tile.start) / d.swizzle;
        if row % 8 == 0 || tile.pitch != d.swizzle {
            return None;
        }
        let lie = self.rows_from(cta, tile, rows);
        (rows <= lie && row + rows > lie).then_some(Behind { tile: *tile, row, lie })
    }

    /// What is said of it; of both operands, perhaps.
    fn row_behind(&self, laid: &Laid, Behind { tile, row, lie }: Behind, both: bool) -> Suspicion {
        let Laid { which, d, rows, site, .. } = *laid;
        let (width, column) = (d.swizzle, d.start % d.swizzle);
        let whose = match both {
            true => "descriptors of A and B".to_string(),
            false => format!("descriptor of {which}"),
        };
        let addresses = if both { "their start addresses" } else { "its start address" };
        let mut diagnostic = self.problem(
            "box-mismatch",
            site,
            format!(
                "the MMA's operand {which} begins in row {row} of the box in {}, and its last rows lie behind the box",
                self.shared_name(tile.start)
            ),
            START_RULE,
            format!(
                "Let the {whose} go on by 32 bytes for each MMA along K, 2 in {addresses} (bits 0 to 13, in units of 16 bytes), \
                 and only within the {width} bytes of a row: the next depths lie in the next box."
            ),
        );
        let on = row * width + column;
        let as_many = if lie == physical_rows(&tile) { "as the box" } else { "as the boxes one behind the other" };
        diagnostic.labels[0].text = format!(
            "{which} has {rows} rows, {as_many}, and begins at byte {on} of it, where its rows have {width} bytes"
        );
        diagnostic.labels.push(self.label(tile.site, "the box is loaded here"));
        Suspicion { site, diagnostic, by: By::Slices }
    }

    /// How many rows lie one behind the other from a box on, where an operand of so many takes several boxes of the same width.
    fn rows_from(&self, cta: usize, first: &Tile, rows: u32) -> u32 {
        let what = |tile: &Tile| (tile.swizzle, tile.pitch, tile.bytes);
        let each = physical_rows(first);
        let next = |n: &u32| {
            let next = self.ctas[cta].loaded.tile(first.start + n * first.bytes);
            next.is_some_and(|next| what(next) == what(first))
        };
        each * (1 + (1..rows.div_ceil(each.max(1))).take_while(next).count() as u32)
    }
}

/// An operand that begins in this row of a box from which on so many rows lie one behind the other.
#[derive(Clone, Copy)]
struct Behind {
    tile: Tile,
    row: u32,
    lie: u32,
}

/// The rows of a box of any number of dimensions, as they lie in shared memory.
fn physical_rows(tile: &Tile) -> u32 {
    tile.bytes / tile.pitch
}

impl Suspicion {
    fn is_like(&self, other: &Suspicion) -> bool {
        (self.site, self.diagnostic.code) == (other.site, other.diagnostic.code)
    }

    /// Whether a finding is of the same MMA, which reads other bytes than it should.
    fn explains(&self, d: &Diagnostic, statements: &Statements) -> bool {
        let Some(mma) = self.diagnostic.labels.first() else { return false };
        let multiplies = |what| statements.are(&mma.place, what);
        let known = match self.by {
            By::Width { others_behind } => {
                let others = [OF_OTHER_BYTES, OF_OTHER_COLUMNS].iter().any(|codes| codes.contains(&d.code));
                // How depths go together, and bytes that both operands have, is told otherwise.
                let elsewhere = ["depth-mismatch", "operand-overlap"].contains(&d.code);
                BEYOND.contains(&d.code) || others_behind && others && !elsewhere
            }
            _ => OF_OTHER_BYTES.contains(&d.code),
        };
        d.severity > Severity::Note
            && known
            && has_line(d, mma)
            && (multiplies(Does::Multiplies) || multiplies(Does::Wgmma))
            && !d.labels.iter().any(Label::passed_wrongly)
    }

    /// Whether a diagnostic tells that it is a mistake.
    fn is_shown_by(&self, d: &Diagnostic, statements: &Statements) -> bool {
        let mut loads = self.diagnostic.labels.iter().skip(1);
        match self.by {
            By::Findings | By::Width { .. } => self.explains(d, statements),
            By::Slices if d.code == slices::CODE => loads.any(|label| has_line(d, label)),
            By::Slices => self.explains(d, statements),
            By::NothingRead { .. } if says_nothing_read(d) => true,
            By::NothingRead { beyond } => {
                self.explains(d, statements) && (beyond || ["out-of-bounds", "operand-overlap"].contains(&d.code))
            }
        }
    }
}

fn says_nothing_read(d: &Diagnostic) -> bool {
    d.labels.first().is_some_and(|label| label.meaning == Meaning::NothingRead)
}

impl Findings {
    pub fn suspect(&mut self, new: Suspicion) {
        if self.suspected.len() < MOST && !self.suspected.iter().any(|known| known.is_like(&new)) {
            self.suspected.push(new);
        }
    }
}

/// One descriptor is wrong at all MMAs of a line that are made with it, as where a loop is written out: it is told at the first of them. Two lines have two. Of
/// a text without lines of its source each MMA has its own: what is no error there is joined with all other findings.
fn each_once(told: Vec<(usize, Diagnostic)>) -> Vec<(usize, Diagnostic)> {
    let text = |d: &Diagnostic| d.labels.first().map(|label| label.text.clone());
    // Of a loop that goes on too far, or by too much, each round reads elsewhere, in each stage: the same words, and other bytes.
    let elsewhere = |a: &Diagnostic, b: &Diagnostic| {
        a.code == "box-mismatch"
            && without_bytes(&a.title) == without_bytes(&b.title)
            && text(a).as_deref().map(without_bytes) == text(b).as_deref().map(without_bytes)
    };
    let alike = |a: &Diagnostic, b: &Diagnostic| {
        (a.code, &a.help) == (b.code, &b.help) && ((&a.title, text(a)) == (&b.title, text(b)) || elsewhere(a, b))
    };
    let joins = |one: &Diagnostic, other: &Diagnostic| {
        let [Some(a), Some(b)] = [one, other].map(|d| d.labels.first().map(|label| &label.place)) else { return false };
        match a.source.is_some() || b.source.is_some() {
            true => a.shown() == b.shown(),
            false => one.severity == Severity::Error || other.severity == Severity::Error,
        }
    };
    let mut once: Vec<(usize, Diagnostic)> = Vec::with_capacity(told.len());
    for (first, new) in told {
        match once.iter_mut().find(|(_, known)| joins(known, &new) && alike(known, &new)) {
            Some((_, known)) => {
                known.count += new.count;
                known.severity = known.severity.max(new.severity);
                join_labels(&mut known.labels, new.labels.into_iter().skip(1).collect());
            }
            None => once.push((first, new)),
        }
    }
    once
}

/// Tells what is a mistake by what else was told, in place of that.
pub fn tell(list: &mut Vec<Diagnostic>, suspected: Vec<Suspicion>, statements: &Statements) {
    // What several are shown by is there until all are told.
    let mut explained = vec![false; list.len()];
    let mut told = Vec::new();
    for suspicion in suspected {
        let those =
            |is: &dyn Fn(&Diagnostic) -> bool| (0..list.len()).filter(|&n| is(&list[n])).collect::<Vec<usize>>();
        let shown = those(&|d| suspicion.is_shown_by(d, statements));
        let Some(&first) = shown.first() else { continue };
        let all = shown.iter().copied().chain(those(&|d| suspicion.explains(d, statements)));
        all.for_each(|n| explained[n] = true);
        let severity = shown.iter().map(|&n| list[n].severity).max().unwrap_or(Severity::Finding);
        let copies = shown.iter().map(|&n| &list[n]).filter(|d| says_nothing_read(d));
        let unread = copies
            .filter_map(|d| d.labels.first())
            .map(|label| Label::new(label.place.clone(), "nobody reads anything of what is loaded here"));
        let mut diagnostic = suspicion.diagnostic;
        diagnostic.labels.extend(unread.take(2));
        diagnostic.severity = severity.max(Severity::Finding);
        told.push((first, diagnostic));
    }
    if told.is_empty() {
        return;
    }
    told.sort_by_key(|(first, _)| *first);
    let mut told = each_once(told).into_iter().peekable();
    let before = std::mem::take(list);
    for ((n, known), explained) in before.into_iter().enumerate().zip(explained) {
        while let Some((_, diagnostic)) = told.next_if(|(first, _)| *first <= n) {
            list.push(diagnostic);
        }
        if !explained {
            list.push(known);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::{Place, Source};

    fn told(line: u32, title: &str, source: Option<u32>, severity: Severity) -> (usize, Diagnostic) {
        let source = source.map(|line| Source { file: "k.cu".into(), line, column: 1 });
        let place = Place { line, column: 1, text: "tcgen05.mma".into(), source };
        let labels = vec![Label::new(place, "here")];
        let (title, rule, help) = (title.into(), String::new(), String::new());
        (
            0,
            Diagnostic {
                code: "instruction-descriptor",
                severity,
                title,
                labels,
                rule,
                help,
                count: 1,
                confirmed: None,
            },
        )
    }

    #[test]
    fn one_descriptor_is_told_once_wherever_its_loop_is_written_out() {
        let counts = |all: Vec<(usize, Diagnostic)>| each_once(all).iter().map(|(_, d)| d.count).collect::<Vec<_>>();
        let of = |source, severity| (1..=20).map(|line| told(line, "N = 128", source, severity)).collect::<Vec<_>>();
        assert_eq!(counts(of(Some(7), Severity::Finding)), [20]);
        assert_eq!(counts(of(None, Severity::Error)), [20]);
        assert_eq!(counts(of(None, Severity::Finding)).len(), 20, "those are joined with all others");
        let two = [told(1, "N = 128", Some(7), Severity::Error), told(2, "N = 64", Some(7), Severity::Error)];
        assert_eq!(counts(two.into()), [1, 1]);
        let two = [told(1, "N = 128", Some(7), Severity::Error), told(2, "N = 128", Some(9), Severity::Error)];
        assert_eq!(counts(two.into()), [1, 1], "two lines of a source");
        let beyond = |byte: u32, title: &str| {
            let (first, d) =
                told(byte, &format!("{title} begins in row 1 of the box at byte {byte}"), Some(7), Severity::Finding);
            (first, Diagnostic { code: "box-mismatch", ..d })
        };
        assert_eq!(counts(vec![beyond(0, "A"), beyond(16384, "A"), beyond(0, "B")]), [2, 1], "in each stage");
    }
}
