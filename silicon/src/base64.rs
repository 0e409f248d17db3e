//! Base64 (RFC 4648, with padding).

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes as text.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = (0..3).fold(0u32, |bits, n| bits << 8 | u32::from(chunk.get(n).copied().unwrap_or(0)));
        for n in 0..4 {
            let digit = ALPHABET[(bits >> (18 - 6 * n) & 63) as usize];
            text.push(if n <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// Text as bytes; `None` when it is no base64.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.as_bytes();
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let last = text.len().saturating_sub(4);
    for (at, chunk) in text.chunks(4).enumerate() {
        let padding = chunk.iter().rev().take_while(|digit| **digit == b'=').count();
        if padding > 2 || (padding > 0 && at * 4 != last) {
            return None;
        }
        let mut bits = 0u32;
        for digit in &chunk[..4 - padding] {
            bits = bits << 6 | ALPHABET.iter().position(|known| known == digit)? as u32;
        }
        bits <<= 6 * padding;
        bytes.extend(&bits.to_be_bytes()[1..4 - padding]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4648, section 10.
    #[test]
    fn the_rfcs_examples() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
        }
        assert_eq!((decode("Zg="), decode("Z==="), decode("Zg==Zm9v"), decode("Zm9\u{e4}")), (None, None, None, None));
    }
}
