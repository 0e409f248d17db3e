//! The command that builds the book, as a reader gives it, and what it has built: every link leads somewhere, and nothing is fetched from elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// Builds the book where the reader's command does, and gives its folder.
fn built() -> PathBuf {
    let output = Command::new(env!("CARGO_BIN_EXE_book")).output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let first = PathBuf::from(said.trim());
    let text = fs::read_to_string(&first).expect("the page that it names");
    assert!(text.contains("The Blackwell kernel workbook"), "{text}");
    first.parent().expect("a page lies in a folder").to_path_buf()
}

/// The values of an attribute, in the tags of a page. Text holds `&quot;` and `&lt;` where it would look like one.
fn values<'a>(html: &'a str, attribute: &str) -> Vec<&'a str> {
    let begin = format!(" {attribute}=\"");
    html.split(begin.as_str()).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// `a/../b` is `b`.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
        plain
    })
}

/// What is wrong with the links of pages: `(name, text)` of each, and which other files there are.
fn dead(pages: &[(String, String)], is_file: impl Fn(&Path) -> bool) -> (usize, Vec<String>) {
    let ids: BTreeMap<&str, BTreeSet<&str>> =
        pages.iter().map(|(name, text)| (name.as_str(), values(text, "id").into_iter().collect())).collect();
    let (mut seen, mut wrong) = (0, Vec::new());
    for (page, text) in pages {
        for source in values(text, "src").into_iter().filter(|source| source.contains("//")) {
            wrong.push(format!("{page} fetches {source}: the book must work without a network"));
        }
        for link in values(text, "href").into_iter().filter(|link| !link.contains("://") && !link.is_empty()) {
            seen += 1;
            let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
            let target =
                if file.is_empty() { PathBuf::from(page) } else { plain(&Path::new(page).with_file_name(file)) };
            let Some(known) = ids.get(target.to_str().unwrap_or_default()) else {
                if !is_file(&target) {
                    wrong.push(format!("{page}: {link}: there is no such file"));
                }
                continue;
            };
            if let Some(anchor) = anchor.filter(|anchor| !anchor.is_empty() && !known.contains(anchor)) {
                wrong.push(format!("{page}: {link}: {} has no place `{anchor}`", target.display()));
            }
        }
    }
    (seen, wrong)
}

#[test]
fn it_says_where_the_book_is_and_every_link_leads_somewhere() {
    let folder = built();
    let files = fs::read_dir(&folder).expect("the book").flatten().map(|entry| entry.path());
    let pages: Vec<(String, String)> = files
        // What a web server shows for a page that is not there names its root.
        .filter(|path| path.extension().is_some_and(|kind| kind == "html") && !path.ends_with("404.html"))
        .map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            (name, text)
        })
        .collect();
    assert!(pages.len() > 50, "{} pages", pages.len());
    let (seen, wrong) = dead(&pages, |path| folder.join(path).is_file());
    assert!(seen > 1000, "{seen} links");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // What is asked for is there: listings of steps, of calls, and what the builder and the emulator wrote.
    let asking = pages.iter().filter(|(_, text)| text.contains("{{#"));
    let asking: Vec<&String> = asking.map(|(name, _)| name).collect();
    assert!(asking.is_empty(), "{asking:?} show an include that nobody resolved");
    let step: &String = &pages.iter().find(|(name, _)| name == "step07.html").expect("the page of step 7").1;
    assert!(step.contains("let at = PipelineState::producer(t, PIPE_DEPTH);</code>"), "step 7 shows its line");
    let styles = fs::read_dir(folder.join("css")).expect("styles").flatten();
    for style in styles {
        let text = fs::read_to_string(style.path()).unwrap_or_default();
        let far =
            ["url(http", "url(\"http", "url('http", "url(//", "@import"].into_iter().find(|far| text.contains(far));
        assert!(far.is_none(), "{} fetches from elsewhere: {far:?}", style.path().display());
    }
}

/// Each fault is seen, and what is in order is not.
#[test]
fn a_dead_link_is_seen() {
    let page = |name: &str, body: &str| (name.to_string(), format!("<h2 id=\"here\">h</h2> {body}"));
    let faults = |body: &str| dead(&[page("a.html", body), page("b.html", "")], |path| path == Path::new("x.css")).1;
    for fine in
        ["<a href=\"b.html#here\">", "<a href=\"#here\">", "<link href=\"x.css\">", "<a href=\"https://x.org/y\">"]
    {
        assert_eq!(faults(fine), Vec::<String>::new(), "{fine}");
    }
    for (bad, why) in [
        ("<a href=\"b.html#there\">", "no place `there`"),
        ("<a href=\"#there\">", "no place `there`"),
        ("<a href=\"c.html\">", "no such file"),
        ("<script src=\"https://cdn.org/x.js\">", "without a network"),
    ] {
        let found = faults(bad);
        assert!(found.len() == 1 && found[0].contains(why), "{bad}: {found:?}");
    }
}
