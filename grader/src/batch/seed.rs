//! Seeds that are secret until grades are out, and a commitment by which everyone can see that they were chosen before.
//!
//! The commitment is SHA-256 of the text `SEED‖NONCE`: the seed as a decimal number and 64 hexadecimal digits, with nothing between. It is
//! published before hand-ins are graded; [`reveal`] tells both.

use super::store::{Store, write_whole};
use crate::json::{Report, render};
use harness::workbook::pack::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

/// Each size is judged on a few inputs: the seeds are this one and those that follow it.
const FOLLOWING: u64 = 64;
/// What stands where a secret seed stood.
const UNTOLD: &str = "(secret until grades are out)";

/// A seed that is not told yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secret {
    /// The seed.
    pub seed: u64,
    /// Without it, one could try seeds until the commitment fits.
    pub nonce: String,
}

impl Secret {
    /// What is published.
    pub fn commitment(&self) -> String {
        hex(&Sha256::digest(format!("{}{}", self.seed, self.nonce)))
    }
}

fn path(store: &Store) -> PathBuf {
    store.folder.join("secret").join("seed.json")
}

fn read(store: &Store) -> Result<Option<Secret>, String> {
    let path = path(store);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
    };
    serde_json::from_slice(&text).map(Some).map_err(|error| format!("{} holds no seed: {error}", path.display()))
}

/// The secret seed of a folder of grades; the first time, one is drawn and stored.
///
/// # Errors
/// When it cannot be read or stored, or the system gives no random numbers.
pub fn commit(store: &Store) -> Result<Secret, String> {
    if let Some(secret) = read(store)? {
        return Ok(secret);
    }
    let mut random = [0u8; 40];
    getrandom::fill(&mut random).map_err(|error| format!("the system gives no random numbers: {error}"))?;
    let (seed, nonce) = random.split_at(8);
    let seed = seed.iter().fold(0u64, |seed, byte| seed << 8 | u64::from(*byte));
    // A number of 19 or 20 digits is found in a text without mistaking another for it, and those that follow have as many.
    let seed = (seed | 1 << 63) & !(2 * FOLLOWING - 1);
    let secret = Secret { seed, nonce: hex(nonce) };
    let path = path(store);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let closed = fs::set_permissions(folder, fs::Permissions::from_mode(0o700));
            closed.map_err(|error| format!("cannot close {}: {error}", folder.display()))?;
        }
    }
    let text = serde_json::to_vec_pretty(&secret).map_err(|error| error.to_string())?;
    write_whole(&path, &text)?;
    Ok(secret)
}

/// The secret seed, for who grades again.
///
/// # Errors
/// When the folder of grades has none.
pub fn reveal(store: &Store) -> Result<Secret, String> {
    read(store)?.ok_or_else(|| {
        format!(
            "{} has no secret seed\n  try: `grader batch … --seed-commit` draws one; without it, results name their seed.",
            store.folder.display()
        )
    })
}

/// A grade that names neither the seed nor those that follow it.
pub(super) fn untold(mut report: Report, seed: u64) -> Report {
    report.seed = None;
    let Ok(mut text) = render(&report) else { return report };
    for offset in 0..FOLLOWING {
        let number = seed.wrapping_add(offset).to_string();
        if text.contains(&number) {
            text = text.replace(&number, UNTOLD);
        }
    }
    // Only texts hold it now, and a text with other words is a text.
    serde_json::from_str(&text).unwrap_or(report)
}
