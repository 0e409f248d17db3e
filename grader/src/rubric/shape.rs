//! The shape of a rubric's file, before its values are looked at.

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Unexpected, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use toml::Spanned;
use toml::value::Datetime;

/// A table, and nothing else: a list of the same values in some order would say which is which to nobody.
pub(super) struct Table<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Table<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Table<T>, D::Error> {
        struct Only<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Only<T> {
            type Value = Table<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(A_TABLE)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Table<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Table)
            }
        }
        deserializer.deserialize_map(Only(PhantomData))
    }
}

/// What is allowed where a table is.
const A_TABLE: &str = "a table, its name in single brackets on a line of its own, its values below";

/// The most points of a step.
pub(super) const MAX_POINTS: u32 = 10_000;

/// A whole number. What is allowed is said of whatever is none; whether one is above that is looked at later, with its name.
#[derive(Clone, Copy)]
pub(super) struct Whole<const MOST: u32>(pub(super) u32);

impl<'de, const MOST: u32> Deserialize<'de> for Whole<MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Whole<MOST>, D::Error> {
        struct Number<const MOST: u32>;

        impl<const MOST: u32> Visitor<'_> for Number<MOST> {
            type Value = Whole<MOST>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number from 0 to {MOST}")
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Whole<MOST>, E> {
                u32::try_from(value).map(Whole).map_err(|_| E::invalid_value(Unexpected::Signed(value), &self))
            }
        }
        deserializer.deserialize_i64(Number)
    }
}

/// The file. What is left out is as in the default.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct File {
    pub(super) shares: Option<Spanned<Table<FileShares>>>,
    pub(super) fast: Option<Spanned<f64>>,
    pub(super) late: Option<Table<FileLate>>,
    pub(super) steps: Option<Table<BTreeMap<Spanned<String>, Table<FileStep>>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FileShares {
    pub(super) correct: Option<Whole<100>>,
    pub(super) race_free: Option<Whole<100>>,
    pub(super) structure: Option<Whole<100>>,
    pub(super) resources: Option<Whole<100>>,
    pub(super) fast: Option<Whole<100>>,
    pub(super) milestones: Option<Spanned<Whole<100>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FileLate {
    pub(super) due: Spanned<Datetime>,
    pub(super) points_per_day: Spanned<f64>,
    pub(super) latest_day: u32,
}

/// What each of [`FileLate`] needs, where one is missing.
pub(super) const LATE_HAS: &str = "A table [late] has all three: due, points-per-day, latest-day.";

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FileStep {
    pub(super) points: Option<Spanned<Whole<MAX_POINTS>>>,
    pub(super) fast: Option<Spanned<f64>>,
    pub(super) sizes: Option<Spanned<Vec<Spanned<String>>>>,
    pub(super) timed: Option<Spanned<String>>,
}

/// What the parser says is allowed, in the words of who writes a rubric.
pub(super) fn in_plain_words(said: &str) -> String {
    let whole = &format!("expected a whole number from 0 to {}", u32::MAX);
    said.replace("expected f64", "expected a number")
        .replace("expected u32", whole)
        .replace("expected a TOML datetime", "expected a date and time without quotes")
        .replace("expected a sequence", "expected a list, such as [\"256x256x64 f16\"]")
        .replace("expected a string", "expected a text in quotes")
        .replace("expected a map", &format!("expected {A_TABLE}"))
}
