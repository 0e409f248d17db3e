//! A bundle: one file that carries kernels to a GPU machine without Rust. It is this program, with the kernels behind it.
//!
//! A program may have anything behind its end: the system loads what its head names. So the file runs as it is, finds
//! what is behind it, and does with it what [`crate::workbook`] would do.

use crate::problem::Problem;
use crate::source::Built;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// The last bytes of a bundle.
const MAGIC: &[u8; 16] = b"workbook bundle1";
/// The length of what is carried stands before them.
const TRAILER: usize = 8 + MAGIC.len();
/// The largest contents that is read: each kernel is about 100 KiB, compressed a tenth.
const LARGEST: u64 = 256 << 20;

/// What a bundle carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contents {
    /// The version of the program that wrote it.
    pub version: String,
    /// The kernels, in the order in which they were asked for.
    pub kernels: Vec<Carried>,
}

/// A kernel at all its sizes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Carried {
    /// `step07`, or `hopper`.
    pub name: String,
    /// Streaming multiprocessors that it is built for.
    pub sms: u32,
    /// Built for each problem: those that are timed.
    pub timed: Vec<(Problem, Built)>,
    /// Those whose result alone is looked at.
    pub checked: Vec<(Problem, Built)>,
}

/// Writes a bundle: the program, then the kernels.
///
/// # Errors
/// When a file cannot be read or written; then there is no bundle.
pub fn write(program: &Path, contents: &Contents, bundle: &Path) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("cannot write {}: {error}", bundle.display());
    let name = bundle.file_name().ok_or_else(|| failed(&"it is no name of a file"))?;
    let folder = match bundle.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut whole = fs::read(program).map_err(|error| format!("cannot read {}: {error}", program.display()))?;
    if let Some(begin) = contents_begin(&mut io::Cursor::new(&whole)).map_err(|error| failed(&error))? {
        // Only the program of a bundle goes on.
        whole.truncate(begin.0 as usize);
    }
    let text = serde_json::to_vec(contents).map_err(|error| failed(&error))?;
    let mut packer = DeflateEncoder::new(Vec::new(), Compression::best());
    let packed = packer.write_all(&text).and_then(|()| packer.finish()).map_err(|error| failed(&error))?;
    whole.extend_from_slice(&packed);
    whole.extend_from_slice(&(packed.len() as u64).to_le_bytes());
    whole.extend_from_slice(MAGIC);
    // Beside it first, so that half a bundle never has its name.
    let mut beside = tempfile::NamedTempFile::new_in(folder).map_err(|error| failed(&error))?;
    beside.write_all(&whole).map_err(|error| failed(&error))?;
    runs(beside.as_file()).map_err(|error| failed(&error))?;
    beside.persist(folder.join(name)).map_err(|error| failed(&error.error))?;
    Ok(())
}

/// Makes a file one that runs.
#[cfg(unix)]
fn runs(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn runs(_file: &File) -> io::Result<()> {
    Ok(())
}

/// What is behind this program; `None`: it is no bundle.
///
/// # Errors
/// When it is one, and cannot be read.
pub fn read(program: &Path) -> Result<Option<Contents>, String> {
    let damaged = |error: &dyn std::fmt::Display| {
        format!("{} is a damaged bundle: {error}\n  try: Copy it again, as a binary file.", program.display())
    };
    let Ok(mut file) = File::open(program) else { return Ok(None) };
    let Some((begin, length)) = contents_begin(&mut file).map_err(|error| damaged(&error))? else { return Ok(None) };
    file.seek(SeekFrom::Start(begin)).map_err(|error| damaged(&error))?;
    let mut text = Vec::new();
    let most = DeflateDecoder::new(file.take(length)).take(LARGEST).read_to_end(&mut text);
    most.map_err(|error| damaged(&error))?;
    serde_json::from_slice(&text).map(Some).map_err(|error| damaged(&error))
}

/// Where the contents of a bundle begin, and how long they are; `None`: there is none.
fn contents_begin(file: &mut (impl Read + Seek)) -> io::Result<Option<(u64, u64)>> {
    let end = file.seek(SeekFrom::End(0))?;
    let Some(trailer) = end.checked_sub(TRAILER as u64) else { return Ok(None) };
    file.seek(SeekFrom::Start(trailer))?;
    let mut bytes = [0; TRAILER];
    file.read_exact(&mut bytes)?;
    let Some((length, magic)) = bytes.split_first_chunk::<8>() else { return Ok(None) };
    if magic != MAGIC {
        return Ok(None);
    }
    let length = u64::from_le_bytes(*length);
    let begin = trailer.checked_sub(length);
    begin.map(|begin| Some((begin, length))).ok_or_else(|| io::Error::other("it is shorter than it says"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn contents(name: &str) -> Contents {
        let kernel = Built { ptx: "// text".into(), name: name.into(), block: [128, 1, 1], ..Built::default() };
        let problem = Problem::f16(128, 128, 64);
        let carried = Carried {
            name: name.into(),
            sms: 148,
            timed: vec![(problem, kernel.clone())],
            checked: vec![(problem, kernel)],
        };
        Contents { version: "1".into(), kernels: vec![carried] }
    }

    /// What goes in comes out, also when a bundle writes the next one: its own kernels do not pile up.
    #[test]
    fn a_bundle_carries_kernels() {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let at = |name: &str| scratch.path().join(name);
        fs::write(at("program"), b"the program").expect("written");
        assert_eq!(read(&at("program")), Ok(None));
        assert_eq!(read(&at("none")), Ok(None));
        write(&at("program"), &contents("first"), &at("one")).expect("written");
        assert_eq!(read(&at("one")), Ok(Some(contents("first"))));
        write(&at("one"), &contents("second"), &at("two")).expect("written");
        assert_eq!(read(&at("two")), Ok(Some(contents("second"))));
        let [one, two] = ["one", "two"].map(|name| fs::read(at(name)).expect("there"));
        assert!(one.starts_with(b"the program") && two.starts_with(b"the program"));
        assert_eq!(one.windows(11).filter(|bytes| bytes == b"the program").count(), 1);
        assert!(one.len().abs_diff(two.len()) < 8, "{} and {} bytes", one.len(), two.len());
    }

    #[test]
    fn a_damaged_bundle_is_no_program_without_kernels() {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let at = |name: &str| scratch.path().join(name);
        fs::write(at("program"), b"the program").expect("written");
        write(&at("program"), &contents("first"), &at("one")).expect("written");
        let whole = fs::read(at("one")).expect("there");
        let mut told = String::new();
        let end = whole.len();
        for damaged in [[&whole[..20], &[0; 8], &whole[28..]].concat(), whole[end - TRAILER - 3..].to_vec()] {
            fs::write(at("damaged"), damaged).expect("written");
            let error = read(&at("damaged")).expect_err("it is damaged");
            told += &(error.replace(&*at("damaged").to_string_lossy(), "BUNDLE") + "\n");
        }
        expect![[r#"
            BUNDLE is a damaged bundle: corrupt deflate stream
              try: Copy it again, as a binary file.
            BUNDLE is a damaged bundle: it is shorter than it says
              try: Copy it again, as a binary file.
        "#]]
        .assert_eq(&told);
        let error = write(&at("program"), &contents("first"), &at("no/folder")).expect_err("no folder");
        assert!(error.starts_with("cannot write"), "{error}");
        assert_eq!(fs::read_dir(scratch.path()).expect("there").count(), 3, "nothing is left behind");
    }
}
