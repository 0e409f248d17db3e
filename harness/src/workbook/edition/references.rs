//! Nothing in the student edition may refer to what it does not hold.

use super::tree::LEFT_OUT;
use std::fs;
use std::path::Path;

/// Words of documents that lead to what is left out, beside the paths of it.
const LEAD_OUT: [&str; 8] =
    ["solutions/", "grader", ".ci/", "CONTRIBUTING.md", "STYLE.md", "workbook skeletons", "student-edition", "silicon"];

/// Looks through documents and manifests.
///
/// # Errors
/// Every line that leads to what is not there.
pub(super) fn check(root: &Path) -> Result<(), String> {
    let mut found = Vec::new();
    folder(root, "", &mut found)?;
    if found.is_empty() {
        return Ok(());
    }
    Err(format!(
        "the student edition would refer to what it does not hold\n{}\n  try: Mark these lines in the full tree: \
         `full tree only`, or `full tree only: begin` and `end`, in a comment.",
        found.join("\n")
    ))
}

fn folder(root: &Path, path: &str, found: &mut Vec<String>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot read {}: {error}", root.join(path).display());
    let mut entries = Vec::new();
    for entry in fs::read_dir(root.join(path)).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        entries.push((entry.file_name().to_string_lossy().into_owned(), entry.path().is_dir()));
    }
    entries.sort_unstable();
    for (name, is_folder) in entries {
        let path = if path.is_empty() { name } else { format!("{path}/{name}") };
        if is_folder {
            folder(root, &path, found)?;
        } else if path.ends_with(".md") || path.ends_with(".toml") {
            let text = fs::read_to_string(root.join(&path)).map_err(failed)?;
            document(root, &path, &text, found);
        }
    }
    Ok(())
}

fn document(root: &Path, path: &str, text: &str, found: &mut Vec<String>) {
    for (index, line) in text.lines().enumerate() {
        let mut tell = |what: &str| found.push(format!("  {path}:{}: {what}", index + 1));
        for word in LEAD_OUT.iter().chain(&LEFT_OUT).filter(|word| line.contains(*word)) {
            tell(&format!("`{word}` is not there"));
        }
        if path.ends_with(".md") {
            let above = root.join(path);
            let above = above.parent().unwrap_or(root);
            for link in links(line).filter(|link| !above.join(link).exists()) {
                tell(&format!("the link `{link}` leads nowhere"));
            }
        }
    }
}

/// Paths that a line of Markdown links to.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| {
        let link = rest.split([')', '#']).next()?.trim();
        (!link.is_empty() && !link.contains("://")).then_some(link)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_out_of_the_tree_is_found() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("docs")).unwrap();
        let write = |text: &str| fs::write(root.path().join("docs/a.md"), text).unwrap();
        write("[here](a.md#part), [there](https://example.org/grade), [up](../docs)\n");
        assert_eq!(check(root.path()), Ok(()));
        write("fine\n[gone](b.md) and `solutions/`, see docs/figures.md\n");
        let error = check(root.path()).unwrap_err();
        for line in ["`solutions/` is not there", "`docs/figures.md` is not there", "the link `b.md` leads nowhere"] {
            assert!(error.contains(&format!("\n  docs/a.md:2: {line}\n")), "{error}");
        }
    }
}
