//! Names of findings in the pages become links to their sections.
//!
//! The sources stay plain mdBook: the `mdbook` program shows the names without links. Where `trap` is the instruction and not the finding, a page
//! writes `trap;`.

use std::collections::BTreeMap;

/// The text of a page with a link at each code that stands alone between backticks: `pages` has the page of each code. Headings, code, HTML and
/// what is a link already stay as they are.
pub fn linked(text: &str, own: &str, pages: &BTreeMap<String, String>) -> String {
    let (mut fenced, mut html, mut shown) = (false, false, String::with_capacity(text.len()));
    for line in text.split_inclusive('\n') {
        let begin = line.trim_start();
        let is_fence = begin.starts_with("```");
        fenced ^= is_fence;
        // A block of HTML ends with an empty line.
        html = !begin.is_empty() && (html || begin.starts_with('<'));
        if fenced || is_fence || html || begin.starts_with('#') {
            shown.push_str(line);
        } else {
            shown.push_str(&of_line(line, own, pages));
        }
    }
    shown
}

/// The pieces of a line between backticks: every second one is code.
fn of_line(line: &str, own: &str, pages: &BTreeMap<String, String>) -> String {
    let pieces: Vec<&str> = line.split('`').collect();
    // Backticks that are not in pairs, or in a row, are something else.
    if pieces.len().is_multiple_of(2) || line.contains("``") {
        return line.to_string();
    }
    let mut shown = String::with_capacity(line.len());
    for (index, piece) in pieces.iter().enumerate() {
        if index % 2 == 0 {
            shown.push_str(piece);
            continue;
        }
        let is_link = pieces[index - 1].ends_with('[');
        match pages.get(*piece).filter(|_| !is_link) {
            Some(page) if page == own => shown.push_str(&format!("[`{piece}`](#{piece})")),
            Some(page) => shown.push_str(&format!("[`{piece}`]({page}#{piece})")),
            None => shown.push_str(&format!("`{piece}`")),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_become_links_in_text_alone() {
        let pages = [
            ("race-shared", "order.md"),
            ("hang", "barriers.md"),
            ("launch", "order.md"),
            ("mbarrier-count", "barriers.md"),
        ];
        let pages = pages.map(|(code, page)| (code.to_string(), page.to_string())).into();
        let shown = |text: &str| linked(text, "barriers.md", &pages);
        assert_eq!(shown("a `race-shared`: b"), "a [`race-shared`](order.md#race-shared): b");
        assert_eq!(shown("it is a `hang`"), "it is a [`hang`](#hang)");
        assert_eq!(shown("refused: `launch`"), "refused: [`launch`](order.md#launch)");
        assert_eq!(shown("`mbarrier-count`"), "[`mbarrier-count`](#mbarrier-count)");
        let kept = [
            "a `trap;` and `k.sync()`",
            "[`race-shared`](x.md)",
            "## `race-shared`\n",
            "```text\n`race-shared`\n```\n",
            "<details>\n`race-shared`\n",
            "race-shared",
            "``race-shared``",
            "one ` alone `race-shared`",
        ];
        for kept in kept {
            assert_eq!(shown(kept), kept);
        }
        assert!(shown("<b>\n\n`race-shared`").contains("](order.md#"), "HTML ends with an empty line");
    }
}
