//! Times of a kernel beside those of the reference kernel and of cuBLAS, of a kernel that may be anybody's.
//!
//! A kernel that is launched again and again on the same matrices can leave the work to its first launch: it may count its launches, find
//! D written already, or keep D where it finds it again. So nothing that a launch could use is left for the next. In each round A and B
//! are others, of a secret seed; D is poisoned, everybody's; the module is loaded anew, which also sets its variables back; and D is
//! checked, in full. All that are timed are treated alike.

use super::answer::{TIMES_CUBLAS, TIMES_OWN, TIMES_REFERENCE, described, element, settle, span_of};
use super::work::{Reply, Time, Timed};
use super::{CudaFailure, Ready, prepare};
use crate::bench::{median, pairs};
use crate::inputs::{InputKind, Inputs, Random, decode, encode, to_bytes};
use crate::launch;
use crate::observe;
use crate::problem::Problem;
use crate::source::Matrix;
use device::{Buffer, Cublas, Event, Gpu, Product};
use ptx::Dtype;

/// Rounds of a measurement, an even number: the median of so many does not care for a few that something else disturbed.
const ROUNDS: u32 = 30;
/// Rounds before those that count: the clock goes up, code is loaded for the first time.
const WARM_ROUNDS: u32 = 2;

pub(super) fn timed(gpu: &Gpu, cublas: Result<&Cublas, String>, time: &Time) -> Result<Reply, CudaFailure> {
    // Their values are replaced in each round.
    let inputs = Inputs::new(time.problem, InputKind::OneHot, time.seed);
    let launches = [described(&time.own, &inputs)?, described(&time.reference, &inputs)?];
    let kernels = [(&time.own, &launches[0]), (&time.reference, &launches[1])];
    let [own, reference] = kernels.map(|(built, launch)| prepare(gpu, &built.ptx, launch));
    let stage = Stage {
        gpu,
        time,
        ready: [own?, reference?],
        entries: launches.map(|launch| launch.entry),
        flusher: gpu.flusher()?,
        events: (gpu.event()?, gpu.event()?),
    };
    // A cuBLAS that fails is not timed; the kernels are, if the GPU still runs any.
    let cublas = match cublas.map(|cublas| (cublas, stage.multiply(cublas))) {
        Ok((cublas, Ok(_))) => Ok(cublas),
        Ok((_, Err(failure))) => {
            settle(gpu);
            if gpu.is_dead() {
                return Err(failure);
            }
            Err(failure.to_string())
        }
        Err(why) => Err(why),
    };
    let who: &[Who] = if cublas.is_ok() { &Who::ALL } else { &Who::ALL[..2] };
    let nvml = device::nvml::Nvml::get().ok().and_then(|nvml| nvml.device(&gpu.about().uuid));
    let (mut slowed_by, mut wrong): (Vec<String>, Option<String>) = (Vec::new(), None);
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    'rounds: for round in 0..WARM_ROUNDS + ROUNDS {
        let signs = Signs::new(time.problem, time.seed, round);
        for place in 0..who.len() {
            // Who comes first in one round comes last in the next.
            let which = who[if round % 2 == 0 { place } else { who.len() - 1 - place }];
            stage.set(&signs)?;
            let took = match (which, &cublas) {
                (Who::Cublas, Ok(cublas)) => stage.multiply(cublas)?,
                (Who::Cublas, Err(_)) => continue,
                (kernel, _) => stage.launch(kernel)?,
            };
            if which != Who::Cublas
                && let Some(why) = stage.wrong(which, &signs)?
            {
                match which {
                    Who::Own => wrong = Some(why),
                    // Not known to be wrong: the kernel may have written where it must not, or the GPU is broken.
                    _ => {
                        return Ok(Reply::Unable {
                            why: format!("of the reference kernel, timed beside this one, {why}"),
                        });
                    }
                }
                break 'rounds;
            }
            if round >= WARM_ROUNDS {
                times[which as usize].push(took);
            }
        }
        for reason in nvml.iter().flat_map(|gpu| gpu.state().slowed_by) {
            if slowed_by.iter().all(|before| before != reason) {
                slowed_by.push(reason.to_string());
            }
        }
    }
    let [own, reference, product] = &times;
    Ok(Reply::Timed(Timed {
        own: median(own),
        reference: median(reference),
        cublas: cublas.map(|_| median(product)),
        rounds: ROUNDS,
        ratios: pairs(&own.iter().zip(reference).map(|(own, reference)| own / reference).collect::<Vec<_>>()),
        slowed_by,
        wrong,
    }))
}

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Own,
    Reference,
    Cublas,
}

impl Who {
    const ALL: [Who; 3] = [Who::Own, Who::Reference, Who::Cublas];
}

/// All that is needed for a round.
struct Stage<'a> {
    gpu: &'a Gpu,
    time: &'a Time,
    /// The kernel and the reference kernel, each with matrices of its own; cuBLAS has the latter's.
    ready: [Ready; 2],
    entries: [String; 2],
    flusher: Buffer,
    events: (Event, Event),
}

impl Stage<'_> {
    fn buffers(&self, who: Who) -> [&Buffer; 3] {
        let ready = &self.ready[usize::from(who != Who::Own)];
        launch::BUFFERS.map(|matrix| &ready.buffers[launch::buffer(matrix)])
    }

    /// Makes all matrices those of a round. Nowhere is a D.
    fn set(&self, signs: &Signs) -> Result<(), CudaFailure> {
        for who in [Who::Own, Who::Reference] {
            let [a, b, d] = self.buffers(who);
            a.write(&signs.a_bytes)?;
            b.write(&signs.b_bytes)?;
            d.fill(POISON)?;
        }
        Ok(())
    }

    /// Writes over all of L2, for so long that what is launched next is queued before the GPU comes to it: else it would wait for the
    /// host, and that be timed. cuBLAS takes the longest there.
    fn flush(&self) -> Result<(), CudaFailure> {
        const FILLS: usize = 6;
        (0..FILLS).try_for_each(|_| Ok(self.flusher.fill(0)?))
    }

    /// Microseconds of one launch of a kernel whose module has not run before.
    fn launch(&self, who: Who) -> Result<f64, CudaFailure> {
        let (which, what, built) = match who {
            Who::Own => (0, TIMES_OWN, &self.time.own),
            _ => (1, TIMES_REFERENCE, &self.time.reference),
        };
        let kernel = self.gpu.load(&built.ptx, &self.entries[which])?;
        let launch = self.gpu.prepare(&kernel, &self.ready[which].launch)?;
        self.flush()?;
        span_of(self.gpu, &self.events, what, 1, &|| launch.launch())
    }

    /// Microseconds of cuBLAS.
    fn multiply(&self, cublas: &Cublas) -> Result<f64, CudaFailure> {
        let [a, b, d] = self.buffers(Who::Cublas);
        let Problem { m, n, k, .. } = self.time.problem;
        let product = Product { element: element(&self.time.problem), m, n, k, a, b, d };
        self.flush()?;
        span_of(self.gpu, &self.events, TIMES_CUBLAS, 1, &|| cublas.multiply(&product, false))
    }

    /// What is wrong with what a kernel left, if anything is.
    fn wrong(&self, who: Who, signs: &Signs) -> Result<Option<String>, CudaFailure> {
        let [a, b, d] = self.buffers(who);
        for (matrix, buffer, before) in [(Matrix::A, a, &signs.a_bytes), (Matrix::B, b, &signs.b_bytes)] {
            if buffer.read()? != *before {
                return Ok(Some(observe::overwrites(matrix)));
            }
        }
        for buffer in [a, b, d] {
            if let Some(touched) = buffer.touched()?.first() {
                return Ok(Some(touched.to_string()));
            }
        }
        Ok(signs.wrong_row(&d.read()?).map(|row| format!("row {row} of D is wrong")))
    }
}

/// What a byte of D is before a launch: elements are NaN.
const POISON: u8 = 0xff;

/// Matrices of 1, −1 and 0, drawn fast, whose product is exact in the type of D, and quickly checked.
struct Signs {
    problem: Problem,
    a: Vec<i8>,
    b: Vec<i8>,
    a_bytes: Vec<u8>,
    b_bytes: Vec<u8>,
    /// For the check.
    random: Random,
}

impl Signs {
    fn new(problem: Problem, seed: u64, round: u32) -> Signs {
        let Problem { m, n, k, dtype } = problem;
        let mut random = Random::new(seed ^ u64::from(round + 1).wrapping_mul(0xd6e8_feb8_6659_fd93));
        let (m, n, k) = (m as usize, n as usize, k as usize);
        // Of so many columns of A, one holds a sign: then no sum is larger than what the type holds exactly.
        let stride = k.div_ceil(largest(dtype) as usize).max(1);
        let signs = |random: &mut Random, count: usize| -> Vec<i8> {
            let words = (0..count.div_ceil(64)).map(|_| random.bits());
            words.flat_map(|word| (0..64).map(move |bit| 1 - 2 * (word >> bit & 1) as i8)).take(count).collect()
        };
        let mut a = signs(&mut random, m * k);
        if stride > 1 {
            for group in a.chunks_mut(k).flat_map(|row| row.chunks_mut(stride)) {
                let kept = random.below(group.len() as u64) as usize;
                group.iter_mut().enumerate().filter(|(at, _)| *at != kept).for_each(|(_, element)| *element = 0);
            }
        }
        let b = signs(&mut random, n * k);
        let bits = |value: i8| encode(dtype, f32::from(value));
        let (minus, zero, plus) = (bits(-1), bits(0), bits(1));
        let bytes = |values: &[i8]| {
            let encoded = |value: &i8| match value {
                -1 => minus,
                0 => zero,
                _ => plus,
            };
            to_bytes(&values.iter().map(encoded).collect::<Vec<_>>())
        };
        let (a_bytes, b_bytes) = (bytes(&a), bytes(&b));
        Signs { problem, a, b, a_bytes, b_bytes, random }
    }

    /// A row of D that is not that of A·Bᵀ. Freivalds' check: D·x against A·(Bᵀ·x), with x of random integers of 30 bits, in exact
    /// arithmetic. A wrong row is taken for a right one once in 2³⁰ times.
    fn wrong_row(&self, d: &[u8]) -> Option<usize> {
        let Problem { n, k, dtype, .. } = self.problem;
        let (n, k, largest) = (n as usize, k as usize, largest(dtype));
        let mut random = self.random.clone();
        let x: Vec<i64> = (0..n).map(|_| (random.bits() >> 34) as i64).collect();
        // Below 2^30 · 2^14 rows of B.
        let mut y = vec![0i64; k];
        for (row, x) in self.b.chunks(k).zip(&x) {
            row.iter().zip(&mut y).for_each(|(sign, y)| *y += i64::from(*sign) * x);
        }
        let rows = self.a.chunks(k).zip(d.chunks(2 * n)).enumerate();
        let wrong = |a: &[i8], d: &[u8]| {
            let expected: i64 = a.iter().zip(&y).map(|(sign, y)| i64::from(*sign) * y).sum();
            let mut found = 0i64;
            for (element, x) in d.chunks_exact(2).zip(&x) {
                let value = decode(dtype, u16::from_le_bytes([element[0], element[1]]));
                if value.is_nan() || value.abs() > largest as f32 || value.fract() != 0.0 {
                    return true;
                }
                found += value as i64 * x;
            }
            found != expected
        };
        rows.filter(|(_, (a, d))| wrong(a, d)).map(|(row, _)| row).next()
    }
}

/// Integers up to this are all in the type.
fn largest(dtype: Dtype) -> u32 {
    match dtype {
        Dtype::F16 => 1 << 11,
        Dtype::Bf16 => 1 << 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use matrices::gemm;

    /// One wrong element, exchanged rows, one that was never written, the product of another round: each is found.
    #[test]
    fn every_wrong_product_is_found() {
        for (dtype, k) in [(Dtype::F16, 320), (Dtype::Bf16, 1040), (Dtype::F16, 4104)] {
            let problem = Problem { m: 40, n: 24, k, dtype };
            let product = |signs: &Signs| {
                let wide = |signs: &[i8]| signs.iter().map(|sign| f64::from(*sign)).collect::<Vec<_>>();
                let values = gemm::product(&wide(&signs.a), &wide(&signs.b), 40, 24, k as usize);
                assert!(values.iter().all(|value| value.abs() <= f64::from(largest(dtype))), "{problem}");
                to_bytes(&values.iter().map(|value| encode(dtype, *value as f32)).collect::<Vec<_>>())
            };
            let (signs, other) = (Signs::new(problem, 7, 3), Signs::new(problem, 7, 4));
            let right = product(&signs);
            assert_eq!(signs.wrong_row(&right), None, "{problem}");
            assert!(signs.wrong_row(&product(&other)).is_some(), "{problem}");
            assert_eq!(signs.wrong_row(&vec![POISON; right.len()]), Some(0), "{problem}");
            let at = 2 * (24 * 17 + 5);
            let change = |bits: u16| {
                let mut d = right.clone();
                d[at..at + 2].copy_from_slice(&bits.to_le_bytes());
                d
            };
            let now = decode(dtype, u16::from_le_bytes([right[at], right[at + 1]]));
            for value in [now + 1.0, now + 2.0, -now - 1.0, f32::NAN, f32::INFINITY, now + 0.5] {
                assert_eq!(signs.wrong_row(&change(encode(dtype, value))), Some(17), "{problem}: {value} for {now}");
            }
            let mut turned = right.clone();
            turned.rotate_left(2 * 24);
            assert!(signs.wrong_row(&turned).is_some(), "{problem}");
        }
    }
}
