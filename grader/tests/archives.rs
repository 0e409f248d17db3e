//! Hand-ins as one file: what is taken, and each reason for which one is refused.

use expect_test::expect;
use flate2::Compression;
use flate2::write::GzEncoder;
use grader::folder::Named;
use grader::handin::{HandIn, find};
use harness::workbook::pack::{MANIFEST, Manifest, Packed, SCHEMA};
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use tar::{Builder, EntryType, Header};
use tempfile::TempDir;

/// The entries of an archive: name, kind, content.
type Entry<'a> = (&'a [u8], EntryType, &'a [u8]);

fn tar(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (name, kind, content) in entries {
        let mut header = Header::new_gnu();
        // The crate refuses bad names; whoever means harm does not use it.
        header.as_old_mut().name[..name.len()].copy_from_slice(name);
        header.set_size(content.len() as u64);
        header.set_entry_type(*kind);
        if matches!(kind, EntryType::Symlink | EntryType::Link) {
            header.set_link_name("/etc/passwd").expect("a link");
        }
        header.set_cksum();
        builder.append(&header, *content).expect("appended");
    }
    builder.into_inner().expect("an archive")
}

fn file<'a>(name: &'a str, content: &'a str) -> Entry<'a> {
    (name.as_bytes(), EntryType::Regular, content.as_bytes())
}

fn written(bytes: &[u8]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = folder.path().join("handin.tar");
    fs::write(&path, bytes).expect("written");
    (folder, path)
}

fn refused(bytes: &[u8]) -> String {
    let (folder, path) = written(bytes);
    let error = find(&path, &[1, 2], &[]).expect_err("must be refused");
    let text = error.reason.replace(&*folder.path().to_string_lossy(), "FOLDER");
    text.strip_suffix("\n  try: Hand in what `cargo workbook pack` writes.").unwrap_or(&text).to_string()
}

fn manifest(files: Vec<Packed>) -> String {
    let manifest = Manifest { schema: SCHEMA, workbook: "0.1.0".to_string(), files };
    serde_json::to_string(&manifest).expect("JSON")
}

#[test]
fn kernels_are_taken_from_archives_and_the_rest_is_left_alone() {
    const KERNEL: &str = "steps/step01/src/kernel.rs";
    let list = manifest(vec![Packed::of(KERNEL, b"// mine\n")]);
    let entries = [
        (b"steps/".as_slice(), EntryType::Directory, b"".as_slice()),
        file(MANIFEST, &list),
        file("./steps/step01/src/kernel.rs", "// mine\n"),
        file("steps/step01/Cargo.toml", "[package]"),
        file("build.rs", "fn main() {}"),
    ];
    let plain = tar(&entries);
    let mut zipped = GzEncoder::new(Vec::new(), Compression::fast());
    zipped.write_all(&plain).expect("compressed");
    for bytes in [plain.clone(), zipped.finish().expect("compressed")] {
        let (folder, path) = written(&bytes);
        let kernels = find(&path, &[1, 2], &[]).expect("taken");
        assert_eq!(kernels.len(), 1);
        assert_eq!((kernels[0].step, kernels[0].text.as_str()), (1, "// mine\n"));
        assert_eq!(kernels[0].path, path.join(KERNEL));
        expect![[r#"
            FOLDER/handin.tar: `steps/step01/Cargo.toml` is left alone: only kernels are graded
            FOLDER/handin.tar: `build.rs` is left alone: only kernels are graded"#]]
        .assert_eq(
            &HandIn::open(&path, Named::ByPerson)
                .expect("opened")
                .ignored(&[1, 2])
                .join("\n")
                .replace(&*folder.path().to_string_lossy(), "FOLDER"),
        );
    }
    // Without a list it counts, too, and that is said.
    let (_folder, path) = written(&tar(&[file("step02.rs", "// two\n")]));
    assert_eq!(find(&path, &[1, 2], &[]).expect("taken")[0].step, 2);
    assert!(
        HandIn::open(&path, Named::ByPerson).expect("opened").ignored(&[1, 2])[0].contains("there is no manifest.json")
    );
}

/// Behind the end of an archive nothing is looked for, and too much is too much all the same.
#[test]
fn zeros_without_end_are_too_large() {
    let mut zipped = GzEncoder::new(Vec::new(), Compression::fast());
    zipped.write_all(&vec![0; 40 << 20]).expect("compressed");
    let why = refused(&zipped.finish().expect("compressed"));
    assert!(why.contains("refused (too-large): unpacked it has more than"), "{why}");
    // What `tar` itself writes ends in some zeros.
    let mut padded = tar(&[file("step02.rs", "// two\n")]);
    padded.resize(padded.len() + (64 << 10), 0);
    let (_folder, path) = written(&padded);
    assert_eq!(find(&path, &[1, 2], &[]).expect("taken").len(), 1);
}

#[test]
fn one_name_of_a_file_and_a_folder_is_refused() {
    const KERNEL: &str = "steps/step01/src/kernel.rs";
    let folder = |name: &'static str| (name.as_bytes(), EntryType::Directory, b"".as_slice());
    for entries in [
        vec![folder("steps/step01/src/kernel.rs/"), file(KERNEL, "")],
        vec![file(KERNEL, ""), folder("steps/step01/src/kernel.rs/")],
        vec![file("steps/step01", "a file"), file(KERNEL, "")],
        vec![file(KERNEL, ""), file("./steps//step01", "a file")],
    ] {
        let why = refused(&tar(&entries));
        assert!(why.contains("refused (duplicate): ") && why.contains("is a file in it, and a folder"), "{why}");
    }
    let (_folder, path) = written(&tar(&[folder("steps/"), folder("./steps/"), folder("./"), file(KERNEL, "")]));
    assert_eq!(find(&path, &[1, 2], &[]).expect("taken").len(), 1);
}

#[test]
fn each_odd_entry_is_refused_by_its_reason() {
    let said: Vec<String> = [
        ("step01.rs", EntryType::Symlink),
        ("step01.rs", EntryType::Link),
        ("notes.txt", EntryType::Symlink),
        ("step01.rs", EntryType::Fifo),
        ("null", EntryType::Char),
        ("disk", EntryType::Block),
        ("step01.rs", EntryType::GNUSparse),
        ("././@LongLink", EntryType::GNULongName),
        ("step01.rs", EntryType::new(b'Z')),
        ("/etc/cron.d/step01.rs", EntryType::Regular),
        ("../../step01.rs", EntryType::Regular),
        ("steps/../../step01.rs", EntryType::Regular),
        ("..", EntryType::Directory),
        ("step01.rs\n", EntryType::Regular),
        ("step\u{1b}[2J01.rs", EntryType::Regular),
        ("steps\\step01.rs", EntryType::Regular),
        ("stеp01.rs", EntryType::Regular), // a Cyrillic letter
        ("/", EntryType::Regular),
        ("step01.rs/", EntryType::Regular), // a folder for `tar`
        ("step01.rs/.", EntryType::Regular),
    ]
    .iter()
    .map(|(name, kind)| refused(&tar(&[(name.as_bytes(), *kind, b""), file("step02.rs", "//")])))
    .chain([
        refused(&tar(&[(b"step\xff01.rs", EntryType::Regular, b"")])),
        refused(&tar(&[file("step01.rs", "// a"), file("./step01.rs", "// b")])),
        refused(&tar(&[(b"step01.rs", EntryType::Regular, b"\xff\xfe")])),
    ])
    .collect();
    expect![[r#"
        FOLDER/handin.tar: refused (link): `step01.rs` is a link
        FOLDER/handin.tar: refused (link): `step01.rs` is a link
        FOLDER/handin.tar: refused (link): `notes.txt` is a link
        FOLDER/handin.tar: refused (not-a-file): `step01.rs` is a pipe
        FOLDER/handin.tar: refused (not-a-file): `null` is a device
        FOLDER/handin.tar: refused (not-a-file): `disk` is a device
        FOLDER/handin.tar: refused (sparse): `step01.rs` has holes
        FOLDER/handin.tar: refused (odd-name): a name has more than 100 bytes
        FOLDER/handin.tar: refused (not-a-file): `step01.rs` is no plain file
        FOLDER/handin.tar: refused (absolute-path): `/etc/cron.d/step01.rs` begins at the root
        FOLDER/handin.tar: refused (parent-path): `../../step01.rs` leads out of the archive
        FOLDER/handin.tar: refused (parent-path): `steps/../../step01.rs` leads out of the archive
        FOLDER/handin.tar: refused (parent-path): `..` leads out of the archive
        FOLDER/handin.tar: refused (odd-name): `step01.rs\n`
        FOLDER/handin.tar: refused (odd-name): `step\u{1b}[2J01.rs`
        FOLDER/handin.tar: refused (odd-name): `steps\\step01.rs`
        FOLDER/handin.tar: refused (odd-name): `stеp01.rs`
        FOLDER/handin.tar: refused (absolute-path): `/` begins at the root
        FOLDER/handin.tar: refused (odd-name): `step01.rs/`
        FOLDER/handin.tar: refused (odd-name): `step01.rs/.`
        FOLDER/handin.tar: refused (odd-name): a name is not UTF-8: `step\xff01.rs`
        FOLDER/handin.tar: refused (duplicate): `step01.rs` is in it twice
        FOLDER/handin.tar: refused (not-text): `step01.rs` is not UTF-8 text"#]]
    .assert_eq(&said.join("\n"));
}

/// A record of an extended header.
fn record(key: &str, value: &str) -> String {
    let length = |digits: usize| digits + 1 + key.len() + 1 + value.len() + 1;
    let digits = (1..).find(|digits| length(*digits).to_string().len() == *digits).expect("a length");
    format!("{} {key}={value}\n", length(digits))
}

/// A file behind an extended header of this content.
fn behind(kind: EntryType, header: &str, name: &str) -> Vec<u8> {
    tar(&[(b"PaxHeaders/0", kind, header.as_bytes()), file(name, "// mine\n"), file("step02.rs", "// two\n")])
}

#[test]
fn what_an_extended_header_says_is_what_tar_sees_or_the_archive_is_refused() {
    let steps = |bytes: &[u8]| {
        let (folder, path) = written(bytes);
        let ours: Vec<u8> = find(&path, &[1, 2], &[]).expect("taken").iter().map(|kernel| kernel.step).collect();
        // The program itself, where there is one.
        let listed = std::process::Command::new("tar").arg("-tf").arg(&path).output();
        if let Ok(listed) = listed {
            let names = String::from_utf8_lossy(&listed.stdout).into_owned();
            let theirs: Vec<u8> =
                [1, 2].into_iter().filter(|step| names.lines().any(|name| name == format!("step0{step}.rs"))).collect();
            assert_eq!(ours, theirs, "{names}");
        }
        drop(folder);
        ours
    };
    let harmless = record("mtime", "1700000000.5") + &record("uname", "anna") + &record("comment", "a=b c");
    assert_eq!(steps(&behind(EntryType::XHeader, &harmless, "step01.rs")), [1, 2]);
    assert_eq!(steps(&behind(EntryType::XGlobalHeader, &record("comment", "6da3fe9"), "step01.rs")), [1, 2]);
    // Its name is what the header says, whatever stands behind.
    assert_eq!(steps(&behind(EntryType::XHeader, &record("path", "notes.txt"), "step01.rs")), [2]);
    assert_eq!(steps(&behind(EntryType::XHeader, &record("path", "step01.rs"), "notes.txt")), [1, 2]);
    assert_eq!(steps(&behind(EntryType::XHeader, &record("size", "8"), "step01.rs")), [1, 2]);

    let pax = |header: String| refused(&behind(EntryType::XHeader, &header, "step01.rs"));
    let said = [
        pax(record("path", "../step01.rs")),
        pax(record("path", "/step01.rs")),
        pax(record("path", "step01.rs\0.txt")),
        pax(record("path", "")),
        pax(record("path", "a.rs") + &record("path", "step01.rs")),
        pax(record("size", "512")),
        pax(record("size", "0")),
        pax(record("size", "-8")),
        pax(record("linkpath", "/etc/passwd")),
        pax(record("GNU.sparse.name", "step01.rs")),
        pax("12 path=a\n".to_string()),
        pax("9 path=ab".to_string()),
        pax("path=step01.rs\n".to_string()),
        pax(" ".repeat(70_000)),
        refused(&behind(EntryType::XGlobalHeader, &record("path", "step01.rs"), "notes.txt")),
        refused(&tar(&[
            (b"x", EntryType::XHeader, record("path", "step01.rs").as_bytes()),
            (b"x", EntryType::XHeader, record("mtime", "1").as_bytes()),
            file("notes.txt", "//"),
        ])),
        refused(&tar(&[file("step01.rs", "//"), (b"x", EntryType::XHeader, record("mtime", "1").as_bytes())])),
    ];
    expect![[r#"
        FOLDER/handin.tar: refused (parent-path): `../step01.rs` leads out of the archive
        FOLDER/handin.tar: refused (absolute-path): `/step01.rs` begins at the root
        FOLDER/handin.tar: refused (odd-name): `step01.rs\0.txt`
        FOLDER/handin.tar: refused (odd-name): ``
        FOLDER/handin.tar: refused (extended-header): an extended header says `path` twice
        FOLDER/handin.tar: refused (extended-header): an extended header says that a file has 512 bytes, and its own says 8
        FOLDER/handin.tar: refused (extended-header): an extended header says that a file has 0 bytes, and its own says 8
        FOLDER/handin.tar: refused (extended-header): an extended header says a `size` that is no number
        FOLDER/handin.tar: refused (link): an extended header names where a link leads
        FOLDER/handin.tar: refused (sparse): an extended header speaks of a file with holes
        FOLDER/handin.tar: refused (extended-header): an extended header holds a record of another length than it says
        FOLDER/handin.tar: refused (extended-header): an extended header holds a record of another length than it says
        FOLDER/handin.tar: refused (extended-header): an extended header holds a record without a length
        FOLDER/handin.tar: refused (too-large): an extended header has 70000 bytes; allowed are 65536
        FOLDER/handin.tar: refused (extended-header): an extended header gives one path to all entries
        FOLDER/handin.tar: refused (extended-header): two extended headers stand before one entry
        FOLDER/handin.tar: refused (extended-header): an extended header stands before nothing"#]].assert_eq(&said.join("\n"));
}

#[test]
fn bombs_are_refused_before_they_take_memory() {
    let many: Vec<Entry<'_>> = (0..1001).map(|_| file("notes.txt", "")).collect();
    let large = " ".repeat((1 << 20) + 1);
    // 40 MiB of nothing, less than 1 MiB as a file.
    let mut bomb = GzEncoder::new(Vec::new(), Compression::fast());
    let nothing = vec![0; 40 << 20];
    bomb.write_all(&tar(&[(b"notes.txt", EntryType::Regular, &nothing)])).expect("compressed");
    // A size that the archive does not have.
    let mut liar = tar(&[file("step01.rs", "//")]);
    let mut header = Header::from_byte_slice(&liar[..512]).clone();
    header.set_size(1 << 60);
    header.set_cksum();
    liar[..512].copy_from_slice(header.as_bytes());
    let said = [
        refused(&tar(&many)),
        refused(&tar(&[file("step01.rs", &large)])),
        refused(&bomb.finish().expect("compressed")),
        refused(&liar),
        refused(&tar(&[file("step01.rs", "//")])[..600]),
        refused(b"#!/bin/sh\nrm -rf /\n"),
        refused(b"\x1f\x8bnot gzip at all"),
        refused(&[b'x'; 2048]),
        refused(b""),
    ];
    expect![[r#"
        FOLDER/handin.tar: refused (too-many-entries): it has more than 1000 entries
        FOLDER/handin.tar: refused (too-large): `step01.rs` has 1048577 bytes; allowed are 1048576
        FOLDER/handin.tar: refused (too-large): unpacked it has more than 33554432 bytes
        FOLDER/handin.tar: refused (too-large): `step01.rs` has 1152921504606846976 bytes; allowed are 1048576
        FOLDER/handin.tar: refused (not-an-archive): it is cut off, or no tar archive: unexpected EOF during skip
        FOLDER/handin.tar: refused (not-an-archive): it is cut off, or no tar archive: failed to read entire block
        FOLDER/handin.tar: refused (not-an-archive): it is cut off, or no tar archive: invalid gzip header
        FOLDER/handin.tar: refused (not-an-archive): it is cut off, or no tar archive: numeric field was not a number
        FOLDER/handin.tar holds no kernel for step01, step02
          there is: nothing
          looked for: steps/step01/src/kernel.rs, step01/src/kernel.rs, step01/kernel.rs, step01.rs, and the same for the other steps
          try: Put each kernel at one of these places, or hand in what `cargo workbook pack` writes."#]]
    .assert_eq(&said.join("\n"));
}

#[test]
fn a_list_that_does_not_say_what_the_archive_holds() {
    let kernel = file("step01.rs", "// mine\n");
    let honest = Packed::of("step01.rs", b"// mine\n");
    let other = Packed::of("step01.rs", b"// hers\n");
    let with = |list: &str| refused(&tar(&[file(MANIFEST, list), kernel]));
    let said = [
        with(&manifest(vec![other])),
        with(&manifest(vec![])),
        with(&manifest(vec![honest.clone(), Packed::of("step02.rs", b"")])),
        with(&manifest(vec![honest.clone(), honest.clone()])),
        with(&manifest(vec![honest.clone()]).replace("\"schema\":1", "\"schema\":2")),
        with(&manifest(vec![honest]).replace("\"schema\":1", "\"schema\":1,\"points\":100")),
        with(&"[".repeat(60_000)),
        with(&" ".repeat(70_000)),
    ];
    expect![[r#"
        FOLDER/handin.tar: refused (hash-mismatch): `step01.rs` has 8 bytes and the SHA-256 3fcdf782ecc5a16be020e00cf1b33d17364a44d3ea04ef069b32cd3813f27eba; manifest.json says 8 bytes and e4879e9c005cd3d877cfee07034fd8da59c12c03f9726f6ee4e72478f90f08df
        FOLDER/handin.tar: refused (not-in-manifest): manifest.json does not list `step01.rs`
        FOLDER/handin.tar: refused (not-in-archive): manifest.json lists `step02.rs`, which is no kernel in it
        FOLDER/handin.tar: refused (manifest): manifest.json lists `step01.rs` twice
        FOLDER/handin.tar: refused (manifest): manifest.json has schema 2; this grader knows 1
        FOLDER/handin.tar: refused (manifest): manifest.json is no list of files: unknown field `points`, expected one of `schema`, `workbook`, `files` at line 1 column 20
        FOLDER/handin.tar: refused (manifest): manifest.json is no list of files: invalid type: sequence, expected u32 at line 1 column 1
        FOLDER/handin.tar: refused (too-large): `manifest.json` has 70000 bytes; allowed are 65536"#]].assert_eq(&said.join("\n"));
}

#[test]
fn a_zip_file_is_called_one() {
    for bytes in [b"PK\x03\x04\x14\0".as_slice(), b"PK\x05\x06\0\0"] {
        let said = refused(bytes);
        assert!(said.contains("not-an-archive") && said.contains("a ZIP file; read are .tar, .tar.gz"), "{said}");
    }
}
