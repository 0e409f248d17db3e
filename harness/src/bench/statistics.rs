//! The median of a ratio, how sure it is, and when nothing should be concluded.

use super::Series;
use crate::inputs::Random;

/// Bootstrap samples of an interval.
const SAMPLES: usize = 2000;
/// So that the same rounds always give the same interval.
const SEED: u64 = 20_26;
/// An interval wider than this part of the ratio says too little.
const WIDEST: f64 = 0.03;
/// Fewer rounds say too little whatever their interval.
pub const FEWEST: usize = 10;

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
    if rounds < FEWEST {
        return Judged::Inconclusive(format!("{rounds} rounds; {FEWEST} are the fewest"));
    }
    // The power limit holds every large product back, cuBLAS's as well: that is no reason.
    let hot = |reason: &&String| ["temperature", "slowdown", "brake"].iter().any(|word| reason.contains(word));
    let held = series.rounds.iter().filter(|round| round.slowed_by.iter().any(|reason| hot(&reason))).count();
    if held > 0 {
        return Judged::Inconclusive(format!(
            "the GPU held its clock back in {held} of {rounds} rounds, for heat or a fault"
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

    fn series(rounds: usize, ratio: impl Fn(usize) -> f64, slowed_by: &[&str]) -> Series {
        let round = |n: usize| Round {
            kernel_us: 100.0 / ratio(n),
            cublas_us: 100.0,
            clock_mhz: Some(1700),
            power_w: Some(650.0),
            temperature_c: Some(50),
            slowed_by: slowed_by.iter().map(|reason| reason.to_string()).collect(),
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
        assert_eq!(told(series(9, |_| 1.02, &[])), "9 rounds; 10 are the fewest");
        let held = "the GPU held its clock back in 30 of 30 rounds, for heat or a fault";
        assert_eq!(told(series(30, |_| 1.02, &["its temperature (hardware)"])), held);
        let wide = "the interval is wider than 3 % of the ratio";
        assert_eq!(told(series(30, |n| 0.7 + 0.02 * n as f64, &[])), wide);
    }
}
