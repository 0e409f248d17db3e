//! Numbers in sentences about the timelines of the steps.

use super::{Claims, K1, K2, PAIRS, SMALL, STEP_2, WIDE};
use crate::runs;
use emulator::{Actor, EventKind};

/// The table on the page of the clock, in percent of the published times; its numbers are those of `cargo workbook clock`.
fn errors_of_the_clock() -> Vec<f64> {
    let page = crate::read("clock.md");
    let rows = page.lines().filter(|line| line.starts_with("| ") && line.contains(['+', '−']));
    let signed = |cell: &str| cell.trim().replace('−', "-").parse::<f64>().ok().filter(|_| cell.contains(['+', '−']));
    rows.flat_map(|row| row.split('|').filter_map(signed)).collect()
}

/// Moments and times of whole steps, as the text below their figures tells them.
pub fn all(claims: &mut Claims) {
    let second = claims.runs.events("2", STEP_2);
    let round = runs::busy(&runs::mmas(&second)[..4]);
    claims.numbers(
        "k-loop.md",
        "measures {} cycles from one round to the next, and the tensor core works in {} of them.",
        &[runs::from_round_to_round(&second, 4), round],
    );

    let fourth = claims.runs.events("4", SMALL);
    let of_warp_1 = fourth.iter().filter(|event| event.actor == Actor::Warp(1)).cloned().collect::<Vec<_>>();
    let met = runs::spans(&of_warp_1, |kind| matches!(kind, EventKind::CtaBarrier { .. }));
    let (made, over) = (met[0].1, met[1].1);
    claims.numbers("step04.md", "warps 1 to 3 wait at the CTA barrier from {} to {}.", &[made, over]);
    claims.numbers(
        "ladder.md",
        "a round takes {} cycles with L2 cold, and the MMAs {} of them.",
        &[runs::from_round_to_round(&fourth, 4), runs::busy(&runs::mmas(&fourth)[..4])],
    );

    let bytes = ["depth_3_5", "5"].map(|name| runs::shared_bytes(name, K1));
    claims.numbers("step05.md", "Shared memory grows by 32 KiB: {} bytes instead of {}", &bytes);
    claims.numbers("step08.md", "They fit: {} bytes of 232448.", &[runs::shared_bytes("depth_6_8", K2)]);

    let sixth = claims.products("6", WIDE, 32);
    claims.numbers("step06.md", "From {} to {} nobody multiplies:", &[sixth[0].1, sixth[1].0]);

    let (seventh, events) = (claims.products("7", WIDE, 32), claims.runs.events("7", WIDE));
    let stored = claims.way_back("7", WIDE, 2).1.0;
    let gap = seventh[1].0 - seventh[0].1;
    // Two chunks by four warps.
    let read = runs::tensor_loads(&events)[..8].iter().map(|load| load.1).max().unwrap_or_default();
    let mmas = runs::mmas(&events);
    let whole = seventh[seventh.len() - 1].1 - seventh[0].0;
    claims.numbers(
        "step07.md",
        "Here it begins {} cycles *before* the first store is asked for.",
        &[stored - seventh[1].0],
    );
    claims.numbers("step07.md", "The {} cycles that are left are mostly `wait ld2mma`:", &[gap]);
    claims.numbers("step07.md", "last sum's arrival in a register ({} to {}).", &[seventh[0].1, read]);
    claims.numbers("step07.md", "the tensor core is busy for {} of {} cycles.", &[runs::busy(&mmas), whole]);
    claims.numbers("step07.md", "so that the gap of {} cycles goes as well:", &[gap]);

    let [two, four] = ["depth_2_8", "8"].map(|name| claims.runs.cycles(name, K2) as f64);
    claims.say("step08.md", "takes {} times as long at 2048 × 2048 × 2048,", &[format!("{:.1}", two / four)]);

    let (eighth, ninth) = (claims.products("8", WIDE, 32), claims.products("9", PAIRS, 32));
    let gaps = [ninth[1].0 - ninth[0].1, eighth[1].0 - eighth[0].1];
    let [gap, length] = [ninth[1].0 - ninth[0].1, ninth[1].1 - ninth[1].0];
    assert!(
        (35..50).contains(&(gap * 100 / (gap + length))),
        "step09.md: nearly half the time, at K = 512: {gap}, {length}"
    );
    claims.numbers("step09.md", "it stands still for {} cycles, where it was {} in step 8.", &gaps);
    let tenth = claims.products("10", PAIRS, 64);
    claims.numbers(
        "step10.md",
        "the tensor core waits for them: {} cycles, but for a tile",
        &[tenth[1].0 - tenth[0].1],
    );
    claims.cycles("step10.md", "slower than that of step 8: {} cycles instead of {}.", &[("10", K1), ("8", K1)]);

    let [one, four] = [("2", STEP_2), ("3", SMALL)].map(|(name, size)| claims.runs.cycles(name, size) as f64);
    claims.say("step03.md", "the work takes {} % longer.", &[format!("{:.0}", (four / one - 1.0) * 100.0)]);
    let [one, two] = ["9", "two_accumulators_9"].map(|name| claims.runs.cycles(name, PAIRS) as f64);
    let worth = format!("{:.0}", (1.0 - two / one) * 100.0);
    claims.say("step07.md", "In step 9 the same change takes {} % of the time away: exercise 4 there.", &[worth]);

    let errors = errors_of_the_clock();
    let mean = errors.iter().map(|error| error.abs()).sum::<f64>() / errors.len() as f64;
    let fast = errors.iter().filter(|error| **error < 0.0).count();
    claims.say(
        "clock.md",
        "The mean of the {} errors is {} %. They are not spread evenly: {} of {} are too fast.",
        &[errors.len().to_string(), format!("{mean:.1}"), fast.to_string(), errors.len().to_string()],
    );

    let steps = claims.runs.cycles("8", K2);
    claims.say("measuring.md", "says {} cycles for the reference solution,", &[super::commas(steps)]);
}
