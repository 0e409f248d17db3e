//! Global memory: buffers, and what they hold before the launch.

use crate::program::arithmetic::narrow::{E4M3, E5M2};
use half::{bf16, f16};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::sync::Arc;

/// A piece of global memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Buffer {
    /// Its name in messages.
    pub name: String,
    /// Content before the launch.
    pub content: Content,
    /// Bytes from one row to the next, if it holds a matrix: messages then name row and column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_bytes: Option<u32>,
    /// Bytes of an element (for messages); 1 if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub element_bytes: Option<u32>,
}

/// What a buffer holds before the launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Content {
    /// These bytes, which a run copies only if something writes to them. In a launch file: a list of numbers, or pairs of hexadecimal digits in a text.
    #[serde(with = "byte_list")]
    Bytes(Arc<Vec<u8>>),
    /// So many bytes, all of this value.
    Fill {
        /// Size in bytes.
        bytes: u64,
        /// The value of each.
        value: u8,
    },
    /// So many bytes that count as never written: reading them before writing is found.
    Undefined {
        /// Size in bytes.
        bytes: u64,
    },
    /// Numbers that a seed gives: the same on every machine.
    Random(Random),
    /// Values at byte offsets, zeroes elsewhere: for lists of addresses of other buffers, as kernels for groups of matrices take them.
    Struct(super::param::Block),
    /// The bytes of this file; a relative path counts from the launch file. Only the command `emulate` reads files:
    /// [`crate::run`] refuses this content.
    File(String),
}

impl Default for Content {
    fn default() -> Content {
        Content::Bytes(Arc::default())
    }
}

impl Content {
    /// Its size in bytes.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn size(&self) -> Result<u64, String> {
        match self {
            Content::Bytes(bytes) => Ok(bytes.len() as u64),
            Content::Fill { bytes, .. } | Content::Undefined { bytes } => Ok(*bytes),
            Content::Random(random) => random.size(),
            Content::Struct(block) => Ok(u64::from(block.size)),
            Content::File(path) => Err(format!("the file `{path}`, which nobody has read (a run reads no files)")),
        }
    }
}

/// Numbers that a seed gives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Random {
    /// The seed. It has nothing to do with the schedule's.
    pub seed: u64,
    /// How many numbers.
    pub count: u64,
    /// Their type.
    #[serde(rename = "type")]
    pub number: NumberType,
    /// How they are distributed.
    pub distribution: Distribution,
}

/// How random numbers are distributed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Distribution {
    /// A bell: the sum of twelve uniform numbers, so that no machine's logarithm matters; within 6 deviations.
    Normal {
        /// The middle.
        mean: f64,
        /// The standard deviation.
        deviation: f64,
    },
    /// Real numbers from `low` to `high`, each as likely.
    Uniform {
        /// The lowest.
        low: f64,
        /// The highest, itself left out before rounding.
        high: f64,
    },
    /// Whole numbers from `low` to `high`, each as likely.
    Integers {
        /// The lowest.
        low: i64,
        /// The highest.
        high: i64,
    },
}

/// Type of a number in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum NumberType {
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    /// FP8 with four bits of exponent, and with five: an MMA that takes them for the other one is found.
    E4m3,
    E5m2,
    F16,
    Bf16,
    F32,
    F64,
}

impl NumberType {
    fn bytes(self) -> u64 {
        use NumberType::*;
        match self {
            U8 | I8 | E4m3 | E5m2 => 1,
            U16 | I16 | F16 | Bf16 => 2,
            U32 | I32 | F32 => 4,
            U64 | I64 | F64 => 8,
        }
    }

    fn is_float(self) -> bool {
        use NumberType::*;
        matches!(self, E4m3 | E5m2 | F16 | Bf16 | F32 | F64)
    }

    /// Lowest and highest value of an integer type.
    fn range(self) -> (i128, i128) {
        use NumberType::*;
        let bits = 8 * self.bytes() as u32;
        match self {
            I8 | I16 | I32 | I64 => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            _ => (0, (1 << bits) - 1),
        }
    }

    fn put(self, value: Value, into: &mut Vec<u8>) {
        use NumberType::*;
        let bytes = match (self, value) {
            (E4m3, v) => u64::from(E4M3.nearest(v.real(), false)),
            (E5m2, v) => u64::from(E5M2.nearest(v.real(), false)),
            (F16, v) => u64::from(f16::from_f64(v.real()).to_bits()),
            (Bf16, v) => u64::from(bf16::from_f64(v.real()).to_bits()),
            (F32, v) => u64::from((v.real() as f32).to_bits()),
            (F64, v) => v.real().to_bits(),
            (_, Value::Whole(whole)) => whole as u64,
            (_, Value::Real(real)) => real as i64 as u64,
        };
        into.extend(&bytes.to_le_bytes()[..self.bytes() as usize]);
    }
}

#[derive(Clone, Copy)]
enum Value {
    Whole(i64),
    Real(f64),
}

impl Value {
    fn real(self) -> f64 {
        match self {
            Value::Whole(whole) => whole as f64,
            Value::Real(real) => real,
        }
    }
}

impl Random {
    fn size(&self) -> Result<u64, String> {
        match self.distribution {
            Distribution::Integers { low, high } => {
                let (least, most) = self.number.range();
                if low > high {
                    return Err(format!("integers from {low} to {high} (the lower one goes first)"));
                }
                if !self.number.is_float() && (i128::from(low) < least || i128::from(high) > most) {
                    return Err(format!("integers from {low} to {high} (the type holds {least} to {most})"));
                }
            }
            Distribution::Normal { .. } | Distribution::Uniform { .. } if !self.number.is_float() => {
                return Err(
                    "real numbers of an integer type (use `integers`, or a type that is e4m3, e5m2, f16, bf16, f32 or f64)".into(),
                );
            }
            Distribution::Normal { deviation, .. } if deviation < 0.0 => {
                return Err(format!("a deviation of {deviation} (0 or more)"));
            }
            Distribution::Uniform { low, high } if low > high => {
                return Err(format!("numbers from {low} to {high} (the lower one goes first)"));
            }
            _ => {}
        }
        Ok(self.count.saturating_mul(self.number.bytes()))
    }

    /// The numbers, as bytes: what a buffer of this content holds before the launch.
    pub fn bytes(&self) -> Vec<u8> {
        let mut state = self.seed;
        // SplitMix64 (Steele, Lea, Flood 2014).
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        let mut bytes = Vec::with_capacity((self.count * self.number.bytes()) as usize);
        for _ in 0..self.count {
            let mut unit = || (next() >> 11) as f64 / (1u64 << 53) as f64;
            let value = match self.distribution {
                Distribution::Normal { mean, deviation } => {
                    Value::Real(mean + deviation * ((0..12).map(|_| unit()).sum::<f64>() - 6.0))
                }
                Distribution::Uniform { low, high } => Value::Real(low + (high - low) * unit()),
                Distribution::Integers { low, high } => {
                    let count = (i128::from(high) - i128::from(low) + 1) as u128;
                    Value::Whole((i128::from(low) + ((u128::from(next()) * count) >> 64) as i128) as i64)
                }
            };
            self.number.put(value, &mut bytes);
        }
        bytes
    }
}

/// Bytes in a launch file: written as hexadecimal digits, read as those or as a list of numbers.
pub(crate) mod byte_list {
    use super::*;

    pub fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&bytes.iter().map(|b| format!("{b:02x}")).collect::<String>())
    }

    pub fn deserialize<'de, T: From<Vec<u8>>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
        from.deserialize_any(Bytes).map(T::from)
    }

    struct Bytes;

    impl<'de> de::Visitor<'de> for Bytes {
        type Value = Vec<u8>;

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("a list of numbers from 0 to 255, or a text of pairs of hexadecimal digits")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<u8>, E> {
            let digits: Option<Vec<u8>> = text
                .chars()
                .filter(|c| !c.is_whitespace() && *c != '_')
                .map(|c| c.to_digit(16).map(|d| d as u8))
                .collect();
            let pairs = digits.as_deref().map(<[u8]>::as_chunks::<2>);
            match pairs {
                Some((pairs, [])) => Ok(pairs.iter().map(|[high, low]| high << 4 | low).collect()),
                _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
            }
        }

        fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<Vec<u8>, A::Error> {
            let mut bytes = Vec::new();
            while let Some(byte) = list.next_element()? {
                bytes.push(byte);
            }
            Ok(bytes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(number: NumberType, distribution: Distribution) -> Random {
        Random { seed: 7, count: 4096, number, distribution }
    }

    /// The first outputs of SplitMix64 from seed 0 are published with the algorithm; all machines give these bytes.
    #[test]
    fn the_generator_is_splitmix64() {
        let r =
            Random { seed: 0, count: 1, ..random(NumberType::U64, Distribution::Integers { low: 0, high: i64::MAX }) };
        assert_eq!(r.bytes(), (0xe220_a839_7b1d_cdaf_u64 >> 1).to_le_bytes());
    }

    #[test]
    fn integers_reach_both_ends_and_no_further() {
        let r = random(NumberType::Bf16, Distribution::Integers { low: -2, high: 2 });
        let mut seen: Vec<i32> =
            r.bytes().chunks(2).map(|b| bf16::from_le_bytes([b[0], b[1]]).to_f32() as i32).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, [-2, -1, 0, 1, 2]);
    }

    /// 1 is 0x38 of E4M3, whose exponent's bias is 7 and fraction has three bits, and 0x3c of E5M2 with 15 and two.
    #[test]
    fn numbers_of_8_bits_are_rounded_to_their_format() {
        let of = |number, low, high| random(number, Distribution::Integers { low, high }).bytes();
        assert!(of(NumberType::E4m3, 1, 1).iter().all(|&byte| byte == 0x38));
        assert!(of(NumberType::E5m2, 1, 1).iter().all(|&byte| byte == 0x3c));
        assert!(of(NumberType::E4m3, -1000, -1000).iter().all(|&byte| byte == 0xfe), "448 is the greatest");
        assert_eq!(random(NumberType::E5m2, Distribution::Uniform { low: 0.0, high: 1.0 }).size(), Ok(4096));
    }

    #[test]
    fn a_normal_distribution_has_its_mean_and_deviation() {
        let r = random(NumberType::F32, Distribution::Normal { mean: 3.0, deviation: 2.0 });
        let x: Vec<f64> =
            r.bytes().chunks(4).map(|b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]]))).collect();
        let mean = x.iter().sum::<f64>() / 4096.0;
        let deviation = (x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 4096.0).sqrt();
        assert!((mean - 3.0).abs() < 0.15 && (deviation - 2.0).abs() < 0.1, "mean {mean}, deviation {deviation}");
    }
}
