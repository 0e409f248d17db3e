//! The built book: pages by mdBook, and beside them the figures' scripts and data.

use crate::{data, findings, links, listings, untouched};
use harness::workbook::Workspace;
use mdbook_driver::MDBook;
use std::fs;
use std::path::{Path, PathBuf};

/// This crate's folder.
pub fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Builds the book and gives its folder.
///
/// # Errors
/// When a page cannot be rendered, a figure not be recorded, or a file not be written.
pub fn build(out: Option<&Path>) -> Result<PathBuf, String> {
    let failed = |error: &dyn std::fmt::Display| format!("the book in {} does not build: {error}", folder().display());
    let mut book = MDBook::load(folder()).map_err(|error| failed(&format!("{error:#}")))?;
    if let Some(out) = out {
        book.config.build.build_dir = free(out)?;
    }
    let pages = findings::pages().map_err(|error| failed(&error))?;
    let calls = folder().join("listings/calls.rs");
    let calls = fs::read_to_string(&calls).map_err(|error| failed(&format!("{}: {error}", calls.display())))?;
    let steps = Workspace { root: folder().join("..") };
    let mut wrong = Vec::new();
    book.book.for_each_chapter_mut(|chapter| {
        let own = chapter.path.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        match untouched::shown(&chapter.content, &|step| steps.skeleton(step)) {
            Ok(content) => chapter.content = listings::shown(&links::linked(&content, &own, &pages), &calls),
            Err(error) => wrong.push(format!("book/src/{own}, {error}")),
        }
    });
    if !wrong.is_empty() {
        return Err(failed(&wrong.join("\n")));
    }
    book.build().map_err(|error| failed(&format!("{error:#}")))?;
    let html = book.build_dir_for("html");
    // The path has `..` in it; show the one that a person would write.
    let html = html.canonicalize().unwrap_or(html);
    scripts(&html.join("figures")).map_err(|error| failed(&error))?;
    data::write(&html.join("figures/data")).map_err(|error| failed(&error))?;
    Ok(html)
}

/// mdBook empties the folder that it writes to: only a book may be lost.
fn free(out: &Path) -> Result<PathBuf, String> {
    let absolute = std::path::absolute(out).map_err(|error| format!("cannot use {}: {error}", out.display()))?;
    let mut entries = fs::read_dir(&absolute).into_iter().flatten();
    if entries.next().is_some() && !absolute.join("figures/data").is_dir() {
        return Err(format!(
            "{} holds something that is no book; nothing was changed\n  try: Name a folder that does not exist yet.",
            out.display()
        ));
    }
    Ok(absolute)
}

/// Copies the scripts of the figures. mdBook has copied the one that every page begins with, under a name of its own.
fn scripts(target: &Path) -> Result<(), String> {
    let source = folder().join("figures");
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    fs::create_dir_all(target).map_err(|error| failed(target, error))?;
    for entry in fs::read_dir(&source).map_err(|error| failed(&source, error))? {
        let path = entry.map_err(|error| failed(&source, error))?.path();
        let name = path.file_name().unwrap_or_default();
        if path.extension().is_some_and(|extension| extension == "js") && name != "lib.js" {
            fs::copy(&path, target.join(name)).map_err(|error| failed(&path, error))?;
        }
    }
    Ok(())
}
