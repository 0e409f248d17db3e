//! What a GPU did with a case: the file beside it.

use crate::base64;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{Read, Write};

/// What a GPU did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    /// The GPU's name.
    pub gpu: String,
    /// Its UUID.
    pub uuid: String,
    /// The driver's version.
    pub driver: String,
    /// The driver's CUDA version.
    pub cuda: String,
    /// The day, as `2026-01-31`.
    pub date: String,
    /// What was typed.
    pub command: String,
    /// How it ended.
    pub outcome: Outcome,
    /// The driver's name of an error, or `refused` where the driver was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The error in words, with what the driver's assembler says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What was written next to a buffer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub touched: Vec<String>,
    /// The buffers that the launch file keeps (all, if it names none), by name.
    #[serde(default)]
    pub buffers: BTreeMap<String, Bytes>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The kernel ended.
    Done,
    /// The driver, or this program, says no.
    Error,
    /// The kernel did not end.
    Hang,
}

/// What a buffer held afterwards. Bytes that were never written hold 0xff.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bytes {
    /// How many.
    pub bytes: usize,
    /// Base64 of the raw deflate stream (RFC 1951).
    pub data: String,
}

impl Bytes {
    /// Packs bytes.
    pub fn pack(bytes: &[u8]) -> Result<Bytes, String> {
        let mut packed = DeflateEncoder::new(Vec::new(), Compression::best());
        packed.write_all(bytes).map_err(|error| error.to_string())?;
        let packed = packed.finish().map_err(|error| error.to_string())?;
        Ok(Bytes { bytes: bytes.len(), data: base64::encode(&packed) })
    }

    /// The bytes.
    ///
    /// # Errors
    /// When the text is not what [`Bytes::pack`] writes.
    pub fn unpack(&self) -> Result<Vec<u8>, String> {
        let packed = base64::decode(&self.data).ok_or("its data is no base64")?;
        let mut bytes = Vec::new();
        let most = self.bytes as u64 + 1;
        DeflateDecoder::new(packed.as_slice())
            .take(most)
            .read_to_end(&mut bytes)
            .map_err(|error| format!("its data is not deflated: {error}"))?;
        match bytes.len() {
            found if found == self.bytes => Ok(bytes),
            found => Err(format!("its data has {found} bytes or more, not {}", self.bytes)),
        }
    }
}

impl Recording {
    /// What differs from a later run of the same case; nothing about who ran it when. Without `bytes`: only how it ended, and what it
    /// wrote where it must not. The bytes of the buffers `except` may differ.
    pub fn differences(&self, now: &Recording, bytes: bool, except: &[String]) -> Vec<String> {
        let mut all = Vec::new();
        let ended = |recording: &Recording| match (&recording.error, recording.outcome) {
            (Some(error), _) => error.clone(),
            (None, outcome) => format!("{outcome:?}").to_lowercase(),
        };
        if ended(self) != ended(now) {
            all.push(format!("it ended with `{}`, not `{}`", ended(now), ended(self)));
        }
        if self.touched != now.touched {
            all.push(format!("written next to buffers: {:?}, not {:?}", now.touched, self.touched));
        }
        if !bytes {
            return all;
        }
        for name in self.buffers.keys().chain(now.buffers.keys().filter(|name| !self.buffers.contains_key(*name))) {
            match (self.buffers.get(name), now.buffers.get(name)) {
                (Some(before), Some(after)) if before.bytes == after.bytes && except.contains(name) => {}
                (Some(before), Some(after)) => match (before.unpack(), after.unpack()) {
                    (Ok(before), Ok(after)) => all.extend(difference(name, &before, &after)),
                    (Err(why), _) | (_, Err(why)) => all.push(format!("`{name}`: {why}")),
                },
                // A run that did not end keeps none.
                _ if self.outcome != now.outcome => {}
                (Some(_), None) => all.push(format!("`{name}` is recorded, and was not kept now")),
                (None, _) => all.push(format!("`{name}` was kept now, and is not recorded")),
            }
        }
        all
    }
}

fn difference(name: &str, before: &[u8], after: &[u8]) -> Option<String> {
    if before.len() != after.len() {
        return Some(format!("`{name}` has {} bytes, not {}", after.len(), before.len()));
    }
    let differ: Vec<usize> = (0..before.len()).filter(|&n| before[n] != after[n]).collect();
    let first = *differ.first()?;
    let (found, recorded) = (after[first], before[first]);
    let count = differ.len();
    Some(format!(
        "`{name}` differs in {count} of {} bytes: byte {first} is {found:#04x}, not {recorded:#04x}",
        before.len()
    ))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// One that ended well, with these buffers.
    pub(crate) fn recording(buffers: &[(&str, &[u8])]) -> Recording {
        Recording {
            gpu: "NVIDIA H200".into(),
            uuid: "GPU-0".into(),
            driver: "580.82.07".into(),
            cuda: "13.0".into(),
            date: "2026-01-31".into(),
            command: "silicon record cases".into(),
            outcome: Outcome::Done,
            error: None,
            message: None,
            touched: Vec::new(),
            buffers: buffers.iter().map(|(name, bytes)| (name.to_string(), Bytes::pack(bytes).unwrap())).collect(),
        }
    }

    #[test]
    fn what_is_packed_is_unpacked() {
        let bytes: Vec<u8> = (0..10_000).map(|n| (n / 7) as u8).collect();
        let packed = Bytes::pack(&bytes).unwrap();
        assert_eq!(packed.unpack(), Ok(bytes));
        let longer = Bytes { bytes: 9_999, ..packed };
        assert_eq!(longer.unpack(), Err("its data has 10000 bytes or more, not 9999".to_string()));
    }

    #[test]
    fn differences_are_told_byte_by_byte_and_the_day_is_none() {
        let before = recording(&[("x", &[1, 2, 3]), ("y", &[0; 4])]);
        assert_eq!(before.differences(&Recording { date: "2026-02-01".into(), ..before.clone() }, true, &[]), [""; 0]);
        let after = recording(&[("x", &[1, 9, 9]), ("y", &[0; 4])]);
        assert_eq!(before.differences(&after, true, &[]), ["`x` differs in 2 of 3 bytes: byte 1 is 0x09, not 0x02"]);
        assert_eq!(before.differences(&after, true, &["x".into()]), [""; 0]);
        let hung = Recording { outcome: Outcome::Hang, buffers: BTreeMap::new(), ..before.clone() };
        assert_eq!(before.differences(&hung, true, &[]), ["it ended with `hang`, not `done`"]);
        let error = Recording {
            outcome: Outcome::Error,
            error: Some("CUDA_ERROR_ILLEGAL_ADDRESS".into()),
            buffers: BTreeMap::new(),
            ..before.clone()
        };
        assert_eq!(hung.differences(&error, true, &[]), ["it ended with `CUDA_ERROR_ILLEGAL_ADDRESS`, not `hang`"]);
    }

    #[test]
    fn the_file_is_what_was_agreed() {
        let text = serde_json::to_string(&recording(&[("x", &[7])])).unwrap();
        assert!(
            text.contains(r#""outcome":"done""#) && text.contains(r#""buffers":{"x":{"bytes":1,"data":""#),
            "{text}"
        );
        assert!(!text.contains("error"), "{text}");
    }
}
