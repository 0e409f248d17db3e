//! Shows a folder on localhost, to this machine alone.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use tiny_http::{Header, Request, Response, Server};

/// Serves the folder until the program is ended.
///
/// # Errors
/// When nothing can listen on the port.
pub fn serve(folder: &Path, port: u16, browser: bool) -> Result<(), String> {
    let server = Server::http(("127.0.0.1", port)).map_err(|error| {
        format!(
            "cannot listen on port {port}: {error}\n  try: Name another with `serve --port PORT`; 0 takes a free one."
        )
    })?;
    let at = server.server_addr().to_ip().map_or_else(|| format!("localhost:{port}"), |address| address.to_string());
    println!("http://{at}, until Ctrl-C");
    if browser {
        open(&format!("http://{at}"))?;
    }
    for request in server.incoming_requests() {
        answer(request, folder);
    }
    Ok(())
}

/// A reader that went away is no error.
fn answer(request: Request, folder: &Path) {
    let found = file(folder, request.url()).and_then(|path| Some((fs::read(&path).ok()?, kind(&path))));
    let _ = match found {
        Some((bytes, kind)) => {
            let mut response = Response::from_data(bytes);
            for header in [("Content-Type", kind), ("Cache-Control", "no-store")] {
                if let Ok(header) = Header::from_bytes(header.0, header.1) {
                    response.add_header(header);
                }
            }
            request.respond(response)
        }
        None => request.respond(Response::from_string("there is no such page").with_status_code(404)),
    };
}

/// The file that an address names; none outside of the folder.
fn file(folder: &Path, url: &str) -> Option<PathBuf> {
    let path = url.split(['?', '#']).next()?.trim_start_matches('/');
    let path = Path::new(path);
    if !path.components().all(|part| matches!(part, Component::Normal(_))) {
        return None;
    }
    let found = folder.join(path);
    Some(if found.is_dir() { found.join("index.html") } else { found })
}

fn kind(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("woff2") => "font/woff2",
        _ => "application/octet-stream",
    }
}

/// Asks the desktop to open an address or a file.
///
/// # Errors
/// When there is no program for it.
pub fn open(what: &str) -> Result<(), String> {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let quiet =
        Command::new(program).arg(what).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    quiet
        .map(drop)
        .map_err(|error| format!("cannot start {program}: {error}\n  try: Open {what} in a browser yourself."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_of_the_folder_is_served() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(file(folder, "/book.toml?x#y"), Some(folder.join("book.toml")));
        assert_eq!(file(folder, "/tool/"), Some(folder.join("tool/index.html")));
        for outside in ["/../Cargo.toml", "/tool/../../Cargo.toml", "/./../x"] {
            assert_eq!(file(folder, outside), None, "{outside}");
        }
        assert_eq!(file(folder, "//etc/passwd"), Some(folder.join("etc/passwd")));
    }
}
