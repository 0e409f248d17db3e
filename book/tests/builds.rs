//! The command that builds the book, as a reader gives it, and what it has built: every link leads somewhere, and nothing is fetched from elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// The figures: what each shows, its name, and a page that has it.
const FIGURES: [(&str, &str, &str); 13] = [
    ("who owns what of the tile of a pair", "cta-pair-tile", "cta-pairs.html"),
    ("swizzles of any mode, and banks", "swizzle", "shared-memory.html"),
    ("the phases of an mbarrier, step by step", "mbarrier", "mbarriers.html"),
    ("the map of tensor memory during a tile", "tmem-map", "tensor-memory.html"),
    ("a pipeline of any depth, step by step", "pipeline", "step05.html"),
    ("the timeline of each step", "timeline", "step01.html"),
    ("the way back of D", "write-back", "way-back.html"),
    ("the decoder of descriptors", "descriptor", "tensor-core.html"),
    ("the order of tiles, and what L2 can give again", "tile-order", "persistent.html"),
    ("the bytes that an mbarrier counts", "byte-count", "tma.html"),
    ("a circle of waits", "deadlock", "hangs.html"),
    ("published ladders as a plot", "ladder", "ladder.html"),
    ("waves of tiles, and what is left empty", "waves", "sizes.html"),
];

/// The figures that a page has, each with its attributes up to the end of the tag.
fn figures(html: &str) -> Vec<(&str, &str)> {
    let tags = html.split(" data-figure=\"").skip(1).filter_map(|rest| rest.split_once('>'));
    tags.filter_map(|(tag, _)| tag.split_once('"')).collect()
}

/// What the figures lack: a kind that no page shows, a name that is no kind, a step without its timeline.
fn lacking(pages: &[(String, String)]) -> Vec<String> {
    let shown = |page: &str| pages.iter().find(|(name, _)| name == page).map_or(Vec::new(), |(_, text)| figures(text));
    let mut wrong = Vec::new();
    for (what, name, page) in FIGURES {
        if !shown(page).iter().any(|(known, _)| *known == name) {
            wrong.push(format!("{page} has no figure `{name}`: {what}"));
        }
    }
    for step in 1..=10 {
        let own = format!("data-step=\"{step}\"");
        if !shown(&format!("step{step:02}.html")).iter().any(|(name, rest)| *name == "timeline" && rest.contains(&own))
        {
            wrong.push(format!("step{step:02}.html has no timeline of its step"));
        }
    }
    for (page, text) in pages {
        let others = figures(text).into_iter().filter(|(name, _)| FIGURES.iter().all(|(_, known, _)| known != name));
        wrong.extend(others.map(|(name, _)| format!("{page}: `{name}` is no figure that is known here")));
    }
    wrong
}

/// A figure that is missing, one that nobody knows, and a step without its timeline are seen.
#[test]
fn a_missing_figure_is_seen() {
    let figure = |name: &str, rest: &str| format!("<div class=\"figure\" data-figure=\"{name}\"{rest}>x</div>");
    let mut pages: Vec<(String, String)> =
        FIGURES.iter().map(|(_, name, page)| (page.to_string(), figure(name, ""))).collect();
    for step in 1..=10 {
        let (page, own) = (format!("step{step:02}.html"), figure("timeline", &format!(" data-step=\"{step}\"")));
        match pages.iter_mut().find(|(name, _)| *name == page) {
            Some((_, text)) => text.push_str(&own),
            None => pages.push((page, own)),
        }
    }
    assert_eq!(lacking(&pages), Vec::<String>::new());
    let last = pages.len() - 1;
    pages[0].1 = figure("dial", "");
    pages[last].1.clear();
    let found = lacking(&pages);
    assert!(found.len() == 3 && found[0].contains("cta-pair-tile") && found[2].contains("`dial`"), "{found:?}");
}

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
    assert_eq!(lacking(&pages), Vec::<String>::new());
    for (_, name, _) in FIGURES {
        let script = fs::read_to_string(folder.join(format!("figures/{name}.js"))).unwrap_or_default();
        assert!(script.contains(&format!("lib.define(\"{name}\"")), "figures/{name}.js does not define its figure");
    }
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
