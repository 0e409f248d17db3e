//! What a hand-in loses that comes after it was due.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A moment, with its offset from UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// As it was written.
    pub text: String,
    /// Seconds since 1970.
    pub seconds: i64,
}

impl Moment {
    /// Reads a moment as RFC 3339 writes it.
    ///
    /// # Errors
    /// When it is none: the value, and what is allowed.
    pub fn parse(text: &str) -> Result<Moment, String> {
        let moment = OffsetDateTime::parse(text.trim(), &Rfc3339).map_err(|_| {
            format!(
                "{text:?} is no moment\n  try: Give date, time and offset from UTC: 2026-11-30T23:59:59+01:00, or …Z for UTC."
            )
        })?;
        Ok(Moment { text: text.trim().to_string(), seconds: moment.unix_timestamp() })
    }
}

/// What lateness costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Late {
    /// Until then nothing is late.
    pub due: Moment,
    /// Points that each day costs that has begun.
    pub points_per_day: f64,
    /// The last day on which a hand-in is taken: later, it has no points.
    pub latest_day: u32,
}

impl Late {
    /// Days that have begun since it was due.
    pub fn days(&self, handed_in: &Moment) -> u32 {
        const DAY: i64 = 24 * 60 * 60;
        let late = handed_in.seconds.saturating_sub(self.due.seconds).max(0);
        u32::try_from((late + DAY - 1) / DAY).unwrap_or(u32::MAX)
    }

    /// What is left of these points for a hand-in of that moment.
    pub fn left(&self, points: f64, handed_in: &Moment) -> f64 {
        match self.days(handed_in) {
            0 => points,
            days if days > self.latest_day => 0.0,
            days => (points - self.points_per_day * f64::from(days)).max(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_day_that_has_begun_costs_points_and_the_days_end() {
        let due = Moment::parse("2026-11-30T23:59:59+01:00").expect("a moment");
        let late = Late { due, points_per_day: 10.0, latest_day: 3 };
        let left = |text: &str| late.left(25.0, &Moment::parse(text).expect("a moment"));
        assert_eq!(left("2026-11-01T00:00:00Z"), 25.0);
        assert_eq!(left("2026-11-30T22:59:59Z"), 25.0, "the same moment in another zone");
        assert_eq!(left("2026-11-30T23:00:00Z"), 15.0, "a second late is a day");
        assert_eq!(left("2026-12-01T22:59:59Z"), 15.0, "a whole day is one");
        assert_eq!(left("2026-12-01T23:00:00Z"), 5.0);
        assert_eq!(left("2026-12-03T00:00:00Z"), 0.0, "never less than none");
        assert_eq!(
            Late { points_per_day: 0.0, ..late.clone() }
                .left(25.0, &Moment { text: String::new(), seconds: late.due.seconds + 3 * 86_400 + 1 }),
            0.0,
            "after the latest day nothing is taken"
        );
        let error = Moment::parse("tomorrow").unwrap_err();
        assert!(error.starts_with("\"tomorrow\" is no moment\n  try: "), "{error}");
    }
}
