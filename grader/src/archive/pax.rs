//! Extended headers (pax): records before an entry that change its name and its size.
//!
//! Who unpacks the archive with `tar` sees what they say, so we must not see anything else: a name is taken from there, and what would move the
//! bytes of a file, or make it another kind of file, is refused. Times, owners and comments are read over, as `tar` may.

use super::{Refused, refused};

/// The largest extended header. Those of Git, Python and macOS have some hundred bytes.
pub(super) const MAX_PAX: u64 = 64 << 10;

/// What an extended header says of the entry after it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Extended {
    /// Its name.
    pub path: Option<Vec<u8>>,
    /// Its size.
    pub size: Option<u64>,
}

/// Reads the records `LENGTH KEY=VALUE\n`.
pub(super) fn read(bytes: &[u8], global: bool) -> Result<Extended, Refused> {
    let broken = |what: &str| Refused { reason: "extended-header", found: format!("an extended header {what}") };
    let mut extended = Extended::default();
    let mut rest = bytes;
    while !rest.is_empty() {
        let digits = rest.iter().position(|byte| *byte == b' ').filter(|digits| (1..=6).contains(digits));
        let digits = digits.ok_or_else(|| broken("holds a record without a length"))?;
        let length = std::str::from_utf8(&rest[..digits]).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
        let length: usize = length.and_then(|text| text.parse().ok()).unwrap_or_default();
        if length <= digits + 1 || length > rest.len() || rest[length - 1] != b'\n' {
            return Err(broken("holds a record of another length than it says"));
        }
        let record = &rest[digits + 1..length - 1];
        rest = &rest[length..];
        let equals = record.iter().position(|byte| *byte == b'=');
        let (key, value) = record.split_at(equals.ok_or_else(|| broken("holds a record without a key"))?);
        let value = &value[1..];
        let key = String::from_utf8_lossy(key).to_ascii_lowercase();
        match key.as_str() {
            "path" | "size" if global => {
                return Err(broken(&format!("gives one {key} to all entries")));
            }
            "path" if extended.path.is_some() => return Err(broken("says `path` twice")),
            "path" => extended.path = Some(value.to_vec()),
            "size" if extended.size.is_some() => return Err(broken("says `size` twice")),
            "size" => {
                let digits = std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
                let size = digits.and_then(|text| text.parse().ok());
                extended.size = Some(size.ok_or_else(|| broken("says a `size` that is no number"))?);
            }
            "linkpath" => return refused("link", "an extended header names where a link leads"),
            key if key.starts_with("gnu.sparse.") || matches!(key, "schily.realsize" | "sun.holesdata") => {
                return refused("sparse", "an extended header speaks of a file with holes");
            }
            _ => {}
        }
    }
    Ok(extended)
}
