//! Shows a folder on localhost, to this machine alone.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// What a request may take: a browser's first lines are short.
const LONGEST: u64 = 64 << 10;
const PATIENCE: Duration = Duration::from_secs(10);

/// Serves the folder until the program is ended: a page is files, and each gets a connection of its own.
///
/// # Errors
/// When nothing can listen on the port.
pub fn serve(folder: &Path, port: u16, browser: bool) -> Result<(), String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| {
        format!(
            "cannot listen on port {port}: {error}\n  try: Name another with `serve --port PORT`; 0 takes a free one."
        )
    })?;
    let at = listener.local_addr().map_or_else(|_| format!("127.0.0.1:{port}"), |address| address.to_string());
    println!("http://{at}, until Ctrl-C");
    if browser {
        open(&format!("http://{at}"))?;
    }
    let folder: Arc<Path> = Arc::from(folder);
    for stream in listener.incoming().flatten() {
        let folder = Arc::clone(&folder);
        // A reader that went away is no error.
        thread::spawn(move || answer(&stream, &folder));
    }
    Ok(())
}

fn answer(stream: &TcpStream, folder: &Path) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new(stream.take(LONGEST)).lines();
    let asked = lines.next().transpose()?.unwrap_or_default();
    // The rest of the request is read, so that the connection can be closed without loss.
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let mut words = asked.split(' ');
    let (method, url) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let found = file(folder, url).filter(|_| matches!(method, "GET" | "HEAD"));
    let found = found.and_then(|path| Some((fs::read(&path).ok()?, kind(&path))));
    let (status, kind, bytes) = match found {
        Some((bytes, kind)) => ("200 OK", kind, bytes),
        None => ("404 Not Found", "text/plain; charset=utf-8", b"there is no such page\n".to_vec()),
    };
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
        bytes.len()
    )?;
    if method != "HEAD" {
        stream.write_all(&bytes)?;
    }
    stream.flush()
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
    fn a_file_is_served_and_no_other() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let at = listener.local_addr().expect("an address");
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = answer(&stream, Path::new(env!("CARGO_MANIFEST_DIR")));
            }
        });
        let get = |url: &str| {
            let mut stream = TcpStream::connect(at).expect("it listens");
            write!(stream, "GET {url} HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it reads");
            let mut text = String::new();
            stream.read_to_string(&mut text).expect("it answers");
            text
        };
        let page = get("/book.toml?x");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.contains("[book]"), "{page}");
        let missing = get("/../Cargo.toml");
        assert!(missing.starts_with("HTTP/1.1 404"), "{missing}");
    }

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
