//! What a GPU did with a case, as `NAME.GPU.json` holds it.

use crate::case::Case;
use flate2::read::DeflateDecoder;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;

/// How the launch ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// The driver's name of the error.
    Error(String),
    /// It did not end in the time that it was given.
    Hang,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Recording {
    pub outcome: Outcome,
    /// What the kernel wrote next to a buffer.
    pub touched: Vec<String>,
    /// By the names of the launch file.
    pub buffers: BTreeMap<String, Vec<u8>>,
    file: String,
    gpu: String,
    driver: String,
    date: String,
}

#[derive(Deserialize)]
struct Raw {
    gpu: String,
    driver: String,
    date: String,
    outcome: String,
    error: Option<String>,
    #[serde(default)]
    touched: Vec<String>,
    #[serde(default)]
    buffers: BTreeMap<String, RawBuffer>,
}

#[derive(Deserialize)]
struct RawBuffer {
    bytes: usize,
    /// Deflated, in base 64.
    data: String,
}

impl Recording {
    /// All recordings of a case: one for each GPU that it ran on.
    pub fn all_of(case: &Case) -> Result<Vec<Recording>, String> {
        let mut all = Vec::new();
        for gpu in ["h100", "h200"] {
            let path = case.path.with_extension(format!("{gpu}.json"));
            if path.exists() {
                let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
                let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                all.push(Recording::parse(&text, &file).map_err(|why| format!("{}: {why}", path.display()))?);
            }
        }
        Ok(all)
    }

    fn parse(text: &str, file: &str) -> Result<Recording, String> {
        let mut raw: Raw = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let outcome = match (raw.outcome.as_str(), raw.error.take()) {
            ("done", None) => Outcome::Done,
            ("hang", _) => Outcome::Hang,
            ("error", Some(error)) => Outcome::Error(error),
            (other, error) => return Err(format!("its outcome is `{other}`, its error {error:?}")),
        };
        let mut buffers = BTreeMap::new();
        for (name, RawBuffer { bytes, data }) in std::mem::take(&mut raw.buffers) {
            let mut unpacked = Vec::new();
            DeflateDecoder::new(&base64(&data)?[..])
                .read_to_end(&mut unpacked)
                .map_err(|e| format!("the buffer `{name}`: {e}"))?;
            if unpacked.len() != bytes {
                return Err(format!("the buffer `{name}` has {} bytes (announced: {bytes})", unpacked.len()));
            }
            buffers.insert(name, unpacked);
        }
        let Raw { gpu, driver, date, touched, .. } = raw;
        Ok(Recording { outcome, touched, buffers, file: file.into(), gpu, driver, date })
    }

    pub fn machine(&self) -> String {
        format!("{}, driver {}, {} ({})", self.gpu, self.driver, self.date, self.file)
    }
}

/// The bytes of a text in base 64 (RFC 4648, section 4).
fn base64(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut held, mut bits) = (0u32, 0);
    for c in text.trim_end_matches('=').bytes() {
        let value = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return Err(format!("`{}` is no digit of base 64", c as char)),
        };
        held = held << 6 | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits) as u8);
        }
    }
    Ok(bytes)
}

#[test]
fn a_recording_is_read() {
    // "abc" four times, deflated without compression: one stored block.
    let text = r#"{"gpu":"g","uuid":"u","driver":"d","date":"t","command":"c","outcome":"done",
        "buffers":{"out":{"bytes":12,"data":"AQwA8/9hYmNhYmNhYmNhYmM="}}}"#;
    let read = Recording::parse(text, "x.h200.json").expect("it is one");
    assert_eq!((read.outcome, &read.buffers["out"][..]), (Outcome::Done, &b"abcabcabcabc"[..]));
    let text = r#"{"gpu":"g","driver":"d","date":"t","outcome":"error","error":"CUDA_ERROR_TRAP"}"#;
    let read = Recording::parse(text, "x.h200.json").expect("it is one");
    assert_eq!(read.outcome, Outcome::Error("CUDA_ERROR_TRAP".into()));
    assert_eq!(read.touched, [""; 0]);
    let text = r#"{"gpu":"g","driver":"d","date":"t","outcome":"done","touched":["something wrote behind `out`"]}"#;
    let read = Recording::parse(text, "x.h200.json").expect("it is one");
    assert_eq!(read.touched, ["something wrote behind `out`"]);
    let short = r#"{"gpu":"g","driver":"d","date":"t","outcome":"done","buffers":{"out":{"bytes":13,"data":"AQwA8/9hYmNhYmNhYmNhYmM="}}}"#;
    assert!(Recording::parse(short, "x.h200.json").is_err());
}
