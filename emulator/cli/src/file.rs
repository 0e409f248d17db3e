//! The text of a file that the command is given.

use crate::bad_input::BadInput;
use std::fs;
use std::path::Path;

/// The text of a file.
pub fn text_of(path: &Path, way_out: &str) -> Result<String, BadInput> {
    let bytes = fs::read(path).map_err(|e| BadInput::file(path, "read", &e, way_out))?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let title = format!("byte {at} of the file, 0x{:02x}, is no UTF-8", error.as_bytes()[at]);
        let text = String::from_utf8_lossy(error.as_bytes());
        let range = at..at + char::REPLACEMENT_CHARACTER.len_utf8();
        BadInput::at(&title, &path.display().to_string(), &text, range, "found here", "Save the file as UTF-8.")
    })
}
