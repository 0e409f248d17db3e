//! Walks over tiles and over stages: what their registers hold, found by running the PTX that was written.

use expect_test::expect;
use ptx::prelude::*;
use std::collections::HashMap;

fn text(body: impl FnOnce(&mut Cta, &Gemm)) -> String {
    let gemm = Gemm::new(128, 128, 64, Dtype::F16, 148);
    ptx::build("kernel", &gemm, body).unwrap_or_else(|errors| panic!("{errors:#?}")).text
}

/// Runs integer PTX as one thread of this CTA, and gives what it stored to shared memory, in order.
fn run(text: &str, cta: u32) -> Vec<u32> {
    let lines: Vec<&str> = text.lines().skip_while(|line| *line != "{").map(str::trim).collect();
    let label = |name: &str| lines.iter().position(|line| line.strip_suffix(':') == Some(name)).expect("a label");
    let mut registers: HashMap<&str, u32> = HashMap::new();
    let (mut stored, mut next) = (Vec::new(), 1);
    for _ in 0..1_000_000 {
        let line = lines[next];
        next += 1;
        let words: Vec<&str> = line.split([' ', ',', ';']).filter(|word| !word.is_empty()).collect();
        let (guard, words) = match words[..] {
            [guard, ref rest @ ..] if guard.starts_with('@') => (Some(guard), rest),
            ref all => (None, all),
        };
        let value = |word: &str| match word {
            "%ctaid.x" => cta,
            _ => word.parse().ok().or(registers.get(word).copied()).unwrap_or_else(|| panic!("{word} in {line}")),
        };
        let holds = match guard {
            Some(guard) if guard.starts_with("@!") => value(&guard[2..]) == 0,
            Some(guard) => value(&guard[1..]) != 0,
            None => true,
        };
        let (to, result) = match *words {
            ["ret"] => return stored,
            [] | [".reg" | ".loc" | "//", ..] => continue,
            [label] if label.ends_with(':') => continue,
            _ if !holds => continue,
            ["bra", to] => {
                next = label(to);
                continue;
            }
            ["st.shared.u32", _, from] => {
                stored.push(value(from));
                continue;
            }
            ["mov.u32", to, from] => (to, value(from)),
            [operation, to, a, b] => {
                let (a, b) = (value(a), value(b));
                let result = match operation {
                    "add.u32" => a.checked_add(b),
                    "sub.u32" => a.checked_sub(b),
                    "mul.lo.u32" => a.checked_mul(b),
                    "div.u32" => a.checked_div(b),
                    "rem.u32" => a.checked_rem(b),
                    "min.u32" => Some(a.min(b)),
                    "xor.b32" => Some(a ^ b),
                    "setp.eq.u32" => Some(u32::from(a == b)),
                    "setp.lt.u32" => Some(u32::from(a < b)),
                    "setp.ge.u32" => Some(u32::from(a >= b)),
                    _ => panic!("{line}"),
                };
                (to, result.unwrap_or_else(|| panic!("{line}: of {a} and {b}")))
            }
            _ => panic!("{line}"),
        };
        registers.insert(to, result);
    }
    panic!("no end:\n{text}");
}

/// A kernel that stores row and column of each tile.
fn tiles(rows: u32, columns: u32, workers: u32) -> String {
    text(|k, _| {
        k.threads(32);
        let found = k.scalar("found");
        let cta = k.cta_x();
        TileScheduler::new(rows, columns, workers).each(k, cta, |k, row, column| {
            k.store_shared_u32(found, row);
            k.store_shared_u32(found, column);
        });
    })
}

/// The tiles of one worker, in order.
fn walk(text: &str, worker: u32) -> Vec<(u32, u32)> {
    run(text, worker).as_chunks::<2>().0.iter().map(|[row, column]| (*row, *column)).collect()
}

/// From the number of a tile to its row and column, and on to the next one.
fn arithmetic(text: &str) -> String {
    let inner = text.lines().map(str::trim).skip_while(|line| *line != "$tile:").skip(1);
    inner
        .take_while(|line| *line != "$tiles_end:")
        .filter(|line| !line.starts_with(".loc"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Up to 8 rows: one band, and a tile's number is `column * rows + row`.
#[test]
fn one_band() {
    let text = tiles(3, 2, 1);
    expect![[r#"
        rem.u32 %r3, %r2, 3;
        div.u32 %r4, %r2, 3;
        st.shared.u32 [dynamic_shared], %r3;
        st.shared.u32 [dynamic_shared], %r4;
        add.u32 %r2, %r2, 1;
        setp.lt.u32 %p2, %r2, 6;
        @%p2 bra $tile;"#]]
    .assert_eq(&arithmetic(&text));
    assert_eq!(walk(&text, 0), [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]);
    let text = tiles(3, 2, 4);
    assert_eq!(walk(&text, 0), [(0, 0), (1, 1)]);
    assert_eq!(walk(&text, 1), [(1, 0), (2, 1)]);
    assert_eq!(walk(&text, 2), [(2, 0)]);
    assert_eq!(walk(&text, 3), [(0, 1)]);
    // More workers than tiles: the others have none.
    assert_eq!(walk(&tiles(1, 1, 148), 147), []);
}

/// A multiple of 8 rows: all bands alike.
#[test]
fn bands_of_eight() {
    let text = tiles(16, 2, 1);
    expect![[r#"
        div.u32 %r3, %r2, 16;
        rem.u32 %r4, %r2, 16;
        mul.lo.u32 %r5, %r3, 8;
        rem.u32 %r6, %r4, 8;
        div.u32 %r7, %r4, 8;
        add.u32 %r8, %r5, %r6;
        st.shared.u32 [dynamic_shared], %r8;
        st.shared.u32 [dynamic_shared], %r7;
        add.u32 %r2, %r2, 1;
        setp.lt.u32 %p2, %r2, 32;
        @%p2 bra $tile;"#]]
    .assert_eq(&arithmetic(&text));
    let found = walk(&text, 0);
    assert_eq!(found[..3], [(0, 0), (1, 0), (2, 0)]);
    assert_eq!(found[7..10], [(7, 0), (0, 1), (1, 1)]);
    assert_eq!(found[15..18], [(7, 1), (8, 0), (9, 0)]);
    assert_eq!(found[23..25], [(15, 0), (8, 1)]);
    assert_eq!(found[31..], [(15, 1)]);
}

/// The last band has 2 rows: its tiles are numbered down these two.
#[test]
fn a_lower_last_band() {
    let text = tiles(10, 3, 1);
    expect![[r#"
        div.u32 %r3, %r2, 24;
        rem.u32 %r4, %r2, 24;
        mul.lo.u32 %r5, %r3, 8;
        sub.u32 %r6, 10, %r5;
        min.u32 %r7, %r6, 8;
        rem.u32 %r8, %r4, %r7;
        div.u32 %r9, %r4, %r7;
        add.u32 %r10, %r5, %r8;
        st.shared.u32 [dynamic_shared], %r10;
        st.shared.u32 [dynamic_shared], %r9;
        add.u32 %r2, %r2, 1;
        setp.lt.u32 %p2, %r2, 30;
        @%p2 bra $tile;"#]]
    .assert_eq(&arithmetic(&text));
    let found = walk(&text, 0);
    assert_eq!(found[7..9], [(7, 0), (0, 1)]);
    assert_eq!(found[22..], [(6, 2), (7, 2), (8, 0), (9, 0), (8, 1), (9, 1), (8, 2), (9, 2)]);
}

/// All workers together visit each tile once; those of one worker come in the order of the bands.
#[test]
fn every_tile_once_in_the_order_of_bands() {
    for rows in [1, 2, 7, 8, 9, 15, 16, 17, 24, 31] {
        for (columns, workers) in [(1, 1), (1, 3), (3, 1), (3, 2), (5, 7), (8, 74), (2, 148)] {
            let text = tiles(rows, columns, workers);
            let mut ordered = Vec::new();
            for band in (0..rows).step_by(8) {
                for column in 0..columns {
                    ordered.extend((band..rows.min(band + 8)).map(|row| (row, column)));
                }
            }
            let scheduler = TileScheduler::new(rows, columns, workers);
            for (number, (row, column)) in (0..).zip(&ordered) {
                assert_eq!(scheduler.tile(number), (*row, *column), "tile {number} of {rows} x {columns}");
                assert_eq!(scheduler.number(*row, *column), number, "tile {row}, {column} of {rows} x {columns}");
            }
            for worker in 0..workers {
                let expected: Vec<_> =
                    ordered.iter().skip(worker as usize).step_by(workers as usize).copied().collect();
                assert_eq!(walk(&text, worker), expected, "worker {worker} of {workers}, {rows} x {columns} tiles");
            }
        }
    }
}

/// As many tiles and workers as there may be: no register overflows.
#[test]
fn the_most_tiles() {
    let most = u32::MAX - 1;
    assert_eq!(walk(&tiles(1, most, 1), most - 1), [(0, most - 1)]);
    assert_eq!(walk(&tiles(most, 1, 1), most - 2), [(most - 2, 0), (most - 1, 0)]);
    assert_eq!(walk(&tiles(1, 1, most), 0), [(0, 0)]);
    let (flat, tall) = (TileScheduler::new(1, most, 1), TileScheduler::new(most, 1, 1));
    assert_eq!((flat.tile(most - 1), flat.number(0, most - 1)), ((0, most - 1), most - 1));
    assert_eq!((tall.tile(most - 1), tall.number(most - 1, 0)), ((most - 1, 0), most - 1));
    // What is no tile has no number, and yet nothing overflows.
    for scheduler in [flat, tall, TileScheduler::new(3, 1, 1)] {
        let _ = (scheduler.tile(u32::MAX), scheduler.number(u32::MAX, u32::MAX));
    }
}

/// Stage and phase of the rounds of a loop.
fn stages(stages: u32, producer: bool, rounds: u32) -> Vec<u32> {
    let text = text(|k, _| {
        k.threads(32);
        let found = k.scalar("found");
        let at = if producer { PipelineState::producer(k, stages) } else { PipelineState::consumer(k, stages) };
        k.repeat(rounds, |k, _| {
            k.store_shared_u32(found, at.stage());
            k.store_shared_u32(found, at.phase());
            at.advance(k);
        });
    });
    run(&text, 0)
}

/// The phase flips when the stage goes back to 0, in a ring of any length.
#[test]
fn stages_and_phases() {
    assert_eq!(stages(1, false, 4), [0, 0, 0, 1, 0, 0, 0, 1]);
    assert_eq!(stages(2, false, 5), [0, 0, 1, 0, 0, 1, 1, 1, 0, 0]);
    assert_eq!(stages(2, true, 5), [0, 1, 1, 1, 0, 0, 1, 0, 0, 1]);
    assert_eq!(stages(3, true, 7), [0, 1, 1, 1, 2, 1, 0, 0, 1, 0, 2, 0, 0, 1]);
}
