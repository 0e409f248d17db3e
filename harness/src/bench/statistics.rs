//! The median of a ratio, how sure it is, and when nothing should be concluded.

use super::Series;
use crate::inputs::Random;

/// Bootstrap samples of an interval.
const SAMPLES: usize = 2000;
/// So that the same rounds always give the same interval.
const SEED: u64 = 20_26;
/// An interval wider than this part of the ratio says too little.
const WIDEST: f64 = 0.03;
/// Fewer pairs of rounds say too little whatever their interval.
pub const FEWEST: usize = 10;
/// Quarters of a series whose medians differ by more than this part: something changed while it was timed. A GPU at its power limit
/// swings by half of that, and holds both kernels back alike.
const DRIFT: f64 = 0.10;

/// A median with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The median.
    pub median: f64,
    /// The interval's lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// What may be said of a ratio.
#[derive(Clone, Debug, PartialEq)]
pub enum Judged {
    /// The ratio is what it is.
    Sure,
    /// Run again, for this reason.
    Inconclusive(String),
}

/// The median; 0 of nothing.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => sorted[odd / 2],
        even => (sorted[even / 2 - 1] + sorted[even / 2]) / 2.0,
    }
}

/// Of each two values behind each other, the geometric mean: the rounds of a pair differ in who comes first, which alone
/// changes both times. An odd last one is left out.
pub fn pairs(values: &[f64]) -> Vec<f64> {
    values.chunks_exact(2).map(|pair| (pair[0] * pair[1]).sqrt()).collect()
}

/// The least and the greatest median of the four quarters, in order; `None` of fewer than four.
fn quarters(values: &[f64]) -> Option<(f64, f64)> {
    let count = values.len();
    let mut medians: Vec<f64> = (0..4).map(|n| median(&values[n * count / 4..(n + 1) * count / 4])).collect();
    medians.sort_unstable_by(f64::total_cmp);
    (count >= 4).then_some((medians[0], medians[3]))
}

/// The median, with the interval between the 2.5th and the 97.5th percentile of the medians of [`SAMPLES`] samples, drawn
/// from the values with replacement.
pub fn bootstrap(values: &[f64]) -> Interval {
    let middle = median(values);
    if values.len() < 2 {
        return Interval { median: middle, low: middle, high: middle };
    }
    let mut random = Random::new(SEED);
    let mut medians: Vec<f64> = (0..SAMPLES)
        .map(|_| {
            let sample: Vec<f64> = values.iter().map(|_| values[random.below(values.len() as u64) as usize]).collect();
            median(&sample)
        })
        .collect();
    medians.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| medians[((SAMPLES - 1) as f64 * share).round() as usize];
    Interval { median: middle, low: at(0.025), high: at(0.975) }
}

/// Whether the rounds of a series say anything.
pub fn judge(series: &Series) -> Judged {
    let rounds = series.rounds.len();
    if rounds / 2 < FEWEST {
        return Judged::Inconclusive(format!("{} rounds are the fewest, and here are {rounds}", 2 * FEWEST));
    }
    // The power limit holds every large product back, cuBLAS's as well: that is no reason.
    let hot = |reason: &String| ["temperature", "slowdown", "brake"].iter().any(|word| reason.contains(word));
    let held = series.rounds.iter().filter(|round| round.slowed_by.iter().flatten().any(hot)).count();
    if held > 0 {
        return Judged::Inconclusive(format!(
            "the GPU held its clock back in {held} of {rounds} rounds, for heat or a fault"
        ));
    }
    let times =
        [("the kernel", series.pairs(|round| round.kernel_us)), ("cuBLAS", series.pairs(|round| round.cublas_us))];
    for (who, times) in &times {
        if let Some((least, greatest)) = quarters(times)
            && greatest > least * (1.0 + DRIFT)
        {
            return Judged::Inconclusive(format!(
                "{who} took {least:.1} us in one quarter of the rounds and {greatest:.1} us in another; {:.0} % apart are the most",
                DRIFT * 100.0
            ));
        }
    }
    if let Some((least, greatest)) = quarters(&series.pairs(|round| round.cublas_us / round.kernel_us))
        && greatest > least * (1.0 + WIDEST)
    {
        return Judged::Inconclusive(format!(
            "the ratio was {least:.3} in one quarter of the rounds and {greatest:.3} in another; {:.0} % apart are the most",
            WIDEST * 100.0
        ));
    }
    let Interval { median, low, high } = series.ratio();
    if high - low > WIDEST * median {
        return Judged::Inconclusive(format!("the interval is wider than {:.0} % of the ratio", WIDEST * 100.0));
    }
    Judged::Sure
}

#[cfg(test)]
mod tests {
    use super::super::Round;
    use super::*;
    use crate::Problem;

    #[test]
    fn medians() {
        assert_eq!([median(&[]), median(&[3.0]), median(&[4.0, 1.0]), median(&[9.0, 1.0, 2.0])], [0.0, 3.0, 2.5, 2.0]);
    }

    /// Of many drawn samples with a known median, about 95 % of the intervals hold it.
    #[test]
    fn an_interval_holds_the_true_median_19_times_of_20() {
        let mut random = Random::new(7);
        let (mut held, all) = (0, 200);
        for _ in 0..all {
            // Uniform from 0.9 to 1.1.
            let values: Vec<f64> =
                (0..40).map(|_| 0.9 + 0.2 * (random.below(1 << 20) as f64 / (1 << 20) as f64)).collect();
            let Interval { low, high, .. } = bootstrap(&values);
            held += usize::from(low <= 1.0 && 1.0 <= high);
        }
        assert!((180..=200).contains(&held), "{held} of {all}");
    }

    /// Who comes first changes the ratio of every other round: that is no uncertainty.
    #[test]
    fn alternating_ratios_give_a_narrow_interval_around_their_geometric_mean() {
        let Interval { median, low, high } = series(41, |n| [0.5, 0.6][n % 2] + 1e-4 * (n % 3) as f64, &[]).ratio();
        let mean = (0.5f64 * 0.6).sqrt();
        assert!(low <= median && median <= high && high - low < 0.001, "{median} [{low}, {high}]");
        assert!((median - mean).abs() < 0.001, "{median} is not {mean}");
        assert_eq!(pairs(&[2.0, 8.0, 3.0]), [4.0]);
        assert!(pairs(&[2.0]).is_empty());
    }

    fn series(rounds: usize, ratio: impl Fn(usize) -> f64, slowed_by: &[&str]) -> Series {
        let round = |n: usize| Round {
            kernel_us: 100.0 / ratio(n),
            cublas_us: 100.0,
            clock_mhz: Some(1700),
            power_w: Some(650.0),
            temperature_c: Some(50),
            slowed_by: Some(slowed_by.iter().map(|reason| reason.to_string()).collect()),
        };
        Series { problem: Problem::f16(1024, 1024, 1024), rounds: (0..rounds).map(round).collect(), predicted_us: None }
    }

    #[test]
    fn what_may_be_said() {
        assert_eq!(series(30, |_| 1.02, &["the power cap"]).judged(), Judged::Sure);
        let told = |series: Series| match series.judged() {
            Judged::Inconclusive(why) => why,
            Judged::Sure => panic!("{:?}", series.ratio()),
        };
        assert_eq!(told(series(19, |_| 1.02, &[])), "20 rounds are the fewest, and here are 19");
        assert_eq!(series(20, |_| 1.02, &[]).judged(), Judged::Sure);
        let held = "the GPU held its clock back in 30 of 30 rounds, for heat or a fault";
        assert_eq!(told(series(30, |_| 1.02, &["its temperature (hardware)"])), held);
        let wide = "the interval is wider than 3 % of the ratio";
        assert_eq!(told(series(40, |n| 1.0 + 0.02 * (n / 2 % 5) as f64, &[])), wide);
        // Both alike: the ratio does not show it.
        let mut jumps = series(40, |_| 1.0, &[]);
        for round in &mut jumps.rounds[10..20] {
            (round.kernel_us, round.cublas_us) = (round.kernel_us * 1.15, round.cublas_us * 1.15);
        }
        let jump =
            "the kernel took 100.0 us in one quarter of the rounds and 115.0 us in another; 10 % apart are the most";
        assert_eq!(told(jumps), jump);
        let drifts = "the ratio was 1.000 in one quarter of the rounds and 1.040 in another; 3 % apart are the most";
        assert_eq!(told(series(40, |n| if n < 20 { 1.0 } else { 1.04 }, &[])), drifts);
        // A few rounds that something else disturbed do not.
        let mut few = series(40, |_| 1.0, &[]);
        for n in [3, 17, 18, 30] {
            few.rounds[n].cublas_us *= 1.5;
        }
        assert_eq!(few.judged(), Judged::Sure);
    }
}
