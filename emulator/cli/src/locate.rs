//! Where a field of a JSON text stands, so that an error about its value can name the line.

/// The bytes of the value at a path such as `params[2].pointer.buffer`. Where a part of the path is missing (a default),
/// the innermost value that is there. `text` is well-formed JSON.
pub fn locate(text: &str, path: &str) -> Option<std::ops::Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = space(bytes, 0);
    for step in path.split(['.', '[']).map(|part| part.trim_end_matches(']')).filter(|part| !part.is_empty()) {
        match member(text, at, step) {
            Some(inner) => at = inner,
            None => break,
        }
    }
    let end = skip(bytes, at);
    (at < end && end <= bytes.len()).then_some(at..end)
}

/// Where the value of a key, or of an index, begins.
fn member(text: &str, at: usize, step: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let object = match bytes.get(at)? {
        b'{' => true,
        b'[' => false,
        _ => return None,
    };
    let mut at = space(bytes, at + 1);
    let mut index = 0usize;
    while !matches!(bytes.get(at)?, b'}' | b']') {
        let here = if object {
            let end = skip(bytes, at);
            let key = text.get(at..end)?;
            at = space(bytes, space(bytes, end) + 1);
            serde_json::from_str::<String>(key).is_ok_and(|key| key == step)
        } else {
            step.parse() == Ok(index)
        };
        if here {
            return Some(at);
        }
        at = space(bytes, skip(bytes, at));
        if bytes.get(at) == Some(&b',') {
            at = space(bytes, at + 1);
        }
        index += 1;
    }
    None
}

/// The first byte that is no blank.
pub fn space(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

/// The end of the value that begins here.
pub fn skip(bytes: &[u8], mut at: usize) -> usize {
    let (mut depth, mut quoted, begin) = (0usize, false, at);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' if quoted => at += 1,
            b'"' => {
                quoted = !quoted;
                if !quoted && depth == 0 {
                    return at + 1;
                }
            }
            _ if quoted => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            b',' | b':' if depth == 0 => return at,
            byte if depth == 0 && byte.is_ascii_whitespace() && at > begin => return at,
            _ => {}
        }
        at += 1;
    }
    at.min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_to_the_text_of_its_value() {
        let text = r#" { "a\"]": [1, {"x": "}"}], "list" : [ 10 ,[ 2 , 3 ], {"deep": {"n": -5 } } ] , "b":true}"#;
        for (path, value) in [
            ("list[0]", "10"),
            ("list[1]", "[ 2 , 3 ]"),
            ("list[1][1]", "3"),
            ("list[2].deep.n", "-5"),
            ("b", "true"),
            ("list[2].missing", r#"{"deep": {"n": -5 } }"#),
            ("list[9]", r#"[ 10 ,[ 2 , 3 ], {"deep": {"n": -5 } } ]"#),
        ] {
            assert_eq!(locate(text, path).map(|range| &text[range]), Some(value), "{path}");
        }
    }

    #[test]
    fn text_that_is_no_json_is_no_reason_to_panic() {
        for text in ["", "{", "[", "{\"a", "{\"a\":", "{\"a\":[", "}", "\"\\"] {
            let _ = locate(text, "a[0].b");
        }
    }
}
