//! What a kernel is asked to compute: the shape of a matrix product and its type.

use ptx::Dtype;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// `D = A · Bᵀ`: A is m × k, B is n × k, D is m × n, all row-major and of one type.
///
/// Written `128x128x64 f16`; read from that, from `128x128x64` (then FP16) and from `128x128x64:bf16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Problem {
    /// Rows of A and D.
    pub m: u32,
    /// Rows of B, columns of D.
    pub n: u32,
    /// Columns of A and B.
    pub k: u32,
    /// Type of A, B and D.
    pub dtype: Dtype,
}

impl Problem {
    /// A problem in FP16.
    pub const fn f16(m: u32, n: u32, k: u32) -> Problem {
        Problem { m, n, k, dtype: Dtype::F16 }
    }

    /// Multiplications (each with its addition) of the product.
    pub fn products(&self) -> u64 {
        u64::from(self.m) * u64::from(self.n) * u64::from(self.k)
    }

    /// M, N and K for a table: `4096³`, `1160x264x136`.
    pub fn extents(&self) -> String {
        let Problem { m, n, k, .. } = self;
        if m == n && n == k { format!("{m}³") } else { format!("{m}x{n}x{k}") }
    }

    /// Bytes of D.
    pub fn bytes_of_d(&self) -> u64 {
        u64::from(self.m) * u64::from(self.n) * 2
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dtype = match self.dtype {
            Dtype::F16 => "f16",
            Dtype::Bf16 => "bf16",
        };
        write!(f, "{}x{}x{} {dtype}", self.m, self.n, self.k)
    }
}

impl From<Problem> for String {
    fn from(problem: Problem) -> String {
        problem.to_string()
    }
}

impl TryFrom<String> for Problem {
    type Error = ProblemError;

    fn try_from(text: String) -> Result<Problem, ProblemError> {
        text.parse()
    }
}

/// A text that names no problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProblemError(String);

impl fmt::Display for ProblemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ProblemError {}

/// The largest extent that is read from text: larger ones are typing mistakes and would only exhaust the memory.
pub const MAX_EXTENT: u32 = 65_536;

impl FromStr for Problem {
    type Err = ProblemError;

    fn from_str(text: &str) -> Result<Problem, ProblemError> {
        let wrong = |found: &str, allowed: &str| {
            Err(ProblemError(format!(
                "`{text}` is not a problem size: found `{found}`, allowed is {allowed}. \
                 Write MxNxK, or MxNxK:bf16, for example 128x128x64"
            )))
        };
        let text = text.trim();
        let (size, dtype) = match text.split_once([':', ' ']) {
            Some((size, dtype)) => (size, dtype.trim()),
            None => (text, "f16"),
        };
        let dtype = match dtype {
            "f16" => Dtype::F16,
            "bf16" => Dtype::Bf16,
            other => return wrong(other, "f16 or bf16"),
        };
        let mut extents = [0u32; 3];
        let parts: Vec<&str> = size.split('x').collect();
        if parts.len() != extents.len() {
            return wrong(size, "three numbers with an `x` between them");
        }
        for (extent, part) in extents.iter_mut().zip(&parts) {
            match part.parse::<u32>() {
                Ok(value) if (1..=MAX_EXTENT).contains(&value) => *extent = value,
                _ => return wrong(part, &format!("a number from 1 to {MAX_EXTENT}")),
            }
        }
        let [m, n, k] = extents;
        Ok(Problem { m, n, k, dtype })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        for problem in [Problem::f16(128, 128, 64), Problem { m: 1, n: 8, k: 4096, dtype: Dtype::Bf16 }] {
            assert_eq!(problem.to_string().parse(), Ok(problem));
            let json = serde_json::to_string(&problem).unwrap();
            assert_eq!(serde_json::from_str::<Problem>(&json).unwrap(), problem);
        }
        assert_eq!("128x128x64".parse(), Ok(Problem::f16(128, 128, 64)));
        assert_eq!("128x128x64:bf16".parse(), Ok(Problem { dtype: Dtype::Bf16, ..Problem::f16(128, 128, 64) }));
    }

    #[test]
    fn refuses_and_says_what_it_found() {
        for (text, found) in [("128x128", "`128x128`"), ("0x1x1", "`0`"), ("1x1x1:f32", "`f32`"), ("1x-1x1", "`-1`")] {
            let error = text.parse::<Problem>().unwrap_err().to_string();
            assert!(error.contains(&format!("found {found}")), "{text}: {error}");
        }
    }
}
