//! What a kernel prints (`vprintf`), and the strings that it hands to the system.

use crate::diagnostic::Severity;
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::memory::resolve::Target;
use crate::machine::state::At;
use crate::machine::warp::registers::lanes;
use crate::machine::warp::step::LOCAL_WINDOW;
use crate::report::Printed;

/// Bytes of a string of the kernel that are read.
const MOST_BYTES: usize = 4096;
/// Texts of a cluster that are kept.
const MOST_TEXTS: usize = 1000;

impl Cluster<'_> {
    /// `vprintf`, for each lane that calls it.
    pub fn print(&mut self, at: At, format: u32, arguments: u32, result: u32) -> Result<(), Stop> {
        let At { w, mask, site, .. } = at;
        for lane in lanes(mask) {
            let format = self.text_at(w, lane, format);
            let from = self.parameter(w, lane, arguments, 8).unwrap_or(0);
            let told = |this: &Self, what: &str, help: &str| {
                let title = format!("{} prints `{}`: {what}", this.thread_name(w, lane), shown(&format));
                let rule = "printf takes the conversions of C, and as many arguments as its text names (CUDA C++ Programming Guide, Formatted \
                            Output).";
                this.problem("print", site, title, rule, help.into())
            };
            let formatted = self.formatted(w, lane, &format, from);
            let (text, count, whole) =
                formatted.map_err(|what| Some(Box::new(told(self, &what, "Check the text against its arguments."))))?;
            if !whole {
                let help = "Check the text against its arguments, and where their values come from: `?` is printed for what nothing has computed.";
                let mut diagnostic =
                    told(self, "an argument was never stored, or has a value that was never computed", help);
                diagnostic.severity = Severity::Finding;
                self.findings.add(diagnostic);
            }
            let thread = self.thread_name(w, lane);
            let begun = self.printed.iter_mut().rfind(|printed| printed.thread == thread);
            if let Some(begun) = begun.filter(|begun| !begun.text.ends_with('\n') && begun.text.len() < MOST_BYTES) {
                // Its line goes on.
                begun.text += &text;
            } else if self.printed.len() < MOST_TEXTS {
                self.printed.push(Printed { thread, text });
            } else {
                self.printed_beyond += 1;
            }
            if let Some(Target::Local(at)) = self.local_target(w, lane, result.into(), 4) {
                self.warps[w].local.store(at as usize, 4, count.into(), true);
            }
        }
        Ok(())
    }

    /// The text, how many arguments it took, and whether all of them have a value.
    fn formatted(
        &mut self,
        w: usize,
        lane: usize,
        format: &str,
        arguments: u64,
    ) -> Result<(String, u32, bool), String> {
        let (mut out, mut count, mut at, mut whole) = (String::new(), 0, arguments, true);
        let mut rest = format;
        while let Some(percent) = rest.find('%') {
            out += &rest[..percent];
            let conversion = Conversion::parse(&rest[percent + 1..])?;
            rest = &rest[percent + 1 + conversion.length..];
            if conversion.letter == '%' {
                out.push('%');
                continue;
            }
            // As C hands them over: integers of 4 bytes, all else of 8, each at its own alignment.
            let bytes = conversion.bytes();
            at = at.next_multiple_of(bytes);
            let value = self.generic(w, lane, at, bytes as usize);
            at += bytes;
            count += 1;
            let Some(value) = value else {
                (out, whole) = (out + "?", false);
                continue;
            };
            if conversion.letter == 's' {
                let text = self.string(w, lane, value);
                out += &conversion.padded(text);
            } else {
                out += &conversion.text(value);
            }
        }
        Ok((out + rest, count, whole))
    }

    /// A parameter of a call, if it was stored.
    pub fn parameter(&mut self, w: usize, lane: usize, parameter: u32, bytes: usize) -> Option<u64> {
        let Target::Local(at) = self.local_target(w, lane, parameter.into(), bytes as u64)? else { return None };
        let (value, defined) = self.warps[w].local.load(at as usize, bytes);
        defined.then_some(value as u64)
    }

    /// The string that a parameter of a call points to.
    pub fn text_at(&mut self, w: usize, lane: usize, parameter: u32) -> String {
        self.parameter(w, lane, parameter, 8).map_or("?".to_string(), |address| self.string(w, lane, address))
    }

    fn string(&mut self, w: usize, lane: usize, address: u64) -> String {
        let mut bytes = Vec::new();
        while let Some(byte) = self.generic(w, lane, address.wrapping_add(bytes.len() as u64), 1)
            && byte != 0
            && bytes.len() < MOST_BYTES
        {
            bytes.push(byte as u8);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// What lies at a generic address of global or local memory.
    fn generic(&mut self, w: usize, lane: usize, address: u64, bytes: usize) -> Option<u64> {
        let (value, defined) = if address & !0xffff_ffff == LOCAL_WINDOW {
            let Target::Local(at) = self.local_target(w, lane, address & 0xffff_ffff, bytes as u64)? else {
                return None;
            };
            self.warps[w].local.load(at as usize, bytes)
        } else {
            let (buffer, offset) = self.global.find(address, bytes as u64)?;
            self.outbox.load(&self.global, buffer, offset, bytes)
        };
        defined.then_some(value as u64)
    }
}

/// A text of the kernel, for a message.
pub fn shown(text: &str) -> String {
    const SHOWN: usize = 200;
    text.chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().trim_end().to_string()
}

/// A conversion: `%-8.3lld` without the percent sign.
#[derive(Debug, Default)]
struct Conversion {
    left: bool,
    plus: bool,
    blank: bool,
    zeros: bool,
    other: bool,
    width: usize,
    precision: Option<usize>,
    long: bool,
    letter: char,
    /// Bytes of its text.
    length: usize,
}

impl Conversion {
    fn parse(text: &str) -> Result<Conversion, String> {
        let mut this = Conversion::default();
        let mut chars = text.char_indices().peekable();
        while let Some((_, flag)) = chars.next_if(|(_, c)| "-+ 0#".contains(*c)) {
            match flag {
                '-' => this.left = true,
                '+' => this.plus = true,
                ' ' => this.blank = true,
                '0' => this.zeros = true,
                _ => this.other = true,
            }
        }
        let mut number = || {
            let mut value = None;
            while let Some((_, digit)) = chars.next_if(|(_, c)| c.is_ascii_digit()) {
                value = Some(
                    value.unwrap_or(0usize).saturating_mul(10).saturating_add(digit as usize - '0' as usize).min(4096),
                );
            }
            let point = chars.next_if(|(_, c)| *c == '.').is_some();
            (value, point)
        };
        let (width, point) = number();
        this.width = width.unwrap_or(0);
        if point {
            this.precision = Some(number().0.unwrap_or(0));
        }
        while let Some((_, length)) = chars.next_if(|(_, c)| "hlzjtL".contains(*c)) {
            this.long |= length != 'h';
        }
        match chars.next() {
            Some((at, letter)) if "diuxXocspfFeEgGaA%".contains(letter) => {
                this.letter = letter;
                this.length = at + 1;
                Ok(this)
            }
            Some((_, letter)) => Err(format!("`%` with `{}` is no conversion", letter.escape_default())),
            None => Err("it ends within a conversion".to_string()),
        }
    }

    fn bytes(&self) -> u64 {
        if matches!(self.letter, 'd' | 'i' | 'u' | 'x' | 'X' | 'o' | 'c') && !self.long { 4 } else { 8 }
    }

    fn text(&self, value: u64) -> String {
        let signed = if self.bytes() == 4 { i64::from(value as i32) } else { value as i64 };
        let sign = |negative| match negative {
            true => "-",
            false if self.plus => "+",
            false if self.blank => " ",
            false => "",
        };
        let (sign, digits) = match self.letter {
            'd' | 'i' => (sign(signed < 0), self.digits(signed.unsigned_abs().to_string())),
            'u' => ("", self.digits(value.to_string())),
            'x' => (if self.other && value != 0 { "0x" } else { "" }, self.digits(format!("{value:x}"))),
            'X' => (if self.other && value != 0 { "0X" } else { "" }, self.digits(format!("{value:X}"))),
            'o' => (if self.other { "0" } else { "" }, self.digits(format!("{value:o}"))),
            'p' => ("0x", format!("{value:x}")),
            'c' => return self.padded(char::from(value as u8).to_string()),
            _ => {
                let value = f64::from_bits(value);
                (sign(value.is_sign_negative() && !value.is_nan()), self.float(value.abs()))
            }
        };
        if self.zeros && !self.left && (self.precision.is_none() || "fFeEgG".contains(self.letter)) {
            let zeros = self.width.saturating_sub(sign.len() + digits.len());
            return format!("{sign}{}{digits}", "0".repeat(zeros));
        }
        self.padded(format!("{sign}{digits}"))
    }

    /// At least as many digits as the precision says.
    fn digits(&self, digits: String) -> String {
        "0".repeat(self.precision.unwrap_or(1).saturating_sub(digits.len())) + &digits
    }

    fn float(&self, value: f64) -> String {
        if !value.is_finite() {
            return if value.is_nan() { "nan".to_string() } else { "inf".to_string() };
        }
        let precision = self.precision.unwrap_or(6);
        match self.letter {
            'f' | 'F' => format!("{value:.precision$}"),
            'e' | 'E' => self.case(exponent(value, precision)),
            'a' | 'A' => self.case(format!("{:#x}", value.to_bits())),
            _ => {
                // The shorter of both, without zeros at the end.
                let digits = precision.max(1);
                let scientific = exponent(value, digits - 1);
                let power: i32 = scientific.split_once('e').and_then(|(_, power)| power.parse().ok()).unwrap_or(0);
                let short = |text: &str| match text.contains('.') && !self.other {
                    true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
                    false => text.to_string(),
                };
                if power < -4 || power >= digits as i32 {
                    let (mantissa, power) = scientific.split_once('e').unwrap_or((&scientific, "+00"));
                    return self.case(format!("{}e{power}", short(mantissa)));
                }
                let places = (digits as i32 - 1 - power).max(0) as usize;
                short(&format!("{value:.places$}"))
            }
        }
    }

    fn case(&self, text: String) -> String {
        if self.letter.is_ascii_uppercase() { text.to_uppercase() } else { text }
    }

    fn padded(&self, mut text: String) -> String {
        if let (Some(most), 's') = (self.precision, self.letter) {
            text = text.chars().take(most).collect();
        }
        let blanks = " ".repeat(self.width.saturating_sub(text.chars().count()));
        if self.left { text + &blanks } else { blanks + &text }
    }
}

/// `1.500000e+02`
fn exponent(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, power) = power.strip_prefix('-').map_or(("+", power), |power| ("-", power));
    format!("{mantissa}e{sign}{power:0>2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As C's printf gives them.
    #[test]
    fn conversions_are_those_of_c() {
        let text = |conversion: &str, value: u64| {
            let parsed = Conversion::parse(conversion).expect("a conversion");
            assert_eq!(parsed.length, conversion.len());
            parsed.text(value)
        };
        for (conversion, value, expected) in [
            ("d", (-5i32) as u32 as u64, "-5"),
            ("5d", 42, "   42"),
            ("-5d", 42, "42   "),
            ("05d", (-42i32) as u32 as u64, "-0042"),
            ("+d", 7, "+7"),
            (".3d", 7, "007"),
            ("lld", i64::MIN as u64, "-9223372036854775808"),
            ("u", 4294967295, "4294967295"),
            ("x", 0xbeef, "beef"),
            ("#010X", 0xbeef, "0X0000BEEF"),
            ("llu", u64::MAX, "18446744073709551615"),
            ("zu", 1 << 40, "1099511627776"),
            ("o", 8, "10"),
            ("c", 65, "A"),
            ("p", 0x7f00, "0x7f00"),
        ] {
            assert_eq!(text(conversion, value), expected, "%{conversion}");
        }
        for (conversion, value, expected) in [
            ("f", 1.5, "1.500000"),
            (".2f", -0.005, "-0.01"),
            ("8.3f", 12.34567, "  12.346"),
            ("e", 150.0, "1.500000e+02"),
            (".0e", 0.00012, "1e-04"),
            ("g", 100000.0, "100000"),
            ("g", 1000000.0, "1e+06"),
            ("g", 0.0001, "0.0001"),
            ("g", 0.00001, "1e-05"),
            ("g", 0.1, "0.1"),
            (".3g", 1234.5, "1.23e+03"),
            ("f", f64::INFINITY, "inf"),
            ("f", f64::NAN, "nan"),
            ("G", 1e-10, "1E-10"),
        ] {
            assert_eq!(text(conversion, value.to_bits()), expected, "%{conversion}");
        }
        Conversion::parse("k").expect_err("no conversion");
        Conversion::parse("5").expect_err("it ends");
    }
}
