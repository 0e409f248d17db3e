//! What checking an access against earlier ones costs: `cargo bench -p emulator --bench shadow`.
//!
//! One core; the median of the batches. Each pattern runs in a steady state, as in the main loop of a GEMM.

use emulator::order::{Access, Area, Footprint, Rows, Shadow, Stamp, Views};
use std::hint::black_box;
use std::time::Instant;

const CALLS: u32 = 200;

/// Nanoseconds of a call.
fn time(mut work: impl FnMut(u32)) -> f64 {
    let mut epoch = 0;
    let mut times: Vec<f64> = (0..201)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..CALLS {
                epoch += 1;
                work(epoch);
            }
            start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Knows all of actors 0 to 9, up to any epoch.
fn all_knowing() -> Views {
    let mut views = Views::default();
    for actor in 0..10 {
        for clock in [&mut views.hb, &mut views.fenced, &mut views.before, &mut views.after] {
            clock.raise(actor, u32::MAX);
        }
    }
    views
}

/// Offsets of the 16-byte chunks of a K = 16 slice of rows of 128 bytes under the 128-byte swizzle.
fn slice(rows: u64, slice: u64) -> impl Iterator<Item = u64> {
    (0..rows).flat_map(move |row| (0..2).map(move |half| row * 128 + ((2 * slice + half) ^ (row % 8)) * 16))
}

fn main() {
    let views = all_knowing();
    let by = |actor, epoch, site, proxyless| Access {
        proxyless,
        ..Access::new(Stamp::asynchronous(actor, epoch, site, 0), &views)
    };
    let plain = |actor, epoch, site| Access::new(Stamp::new(actor, epoch, site, 0), &views);

    let mut shadow = Shadow::default();
    let tma = time(|epoch| {
        black_box(shadow.write(1024, 16 << 10, &by(1, epoch, 7, false)));
    });
    println!("a TMA box of 16 KB                               {tma:8.1} ns");

    let mut shadow = Shadow::default();
    let slices: Vec<Footprint> = (0..4).map(|k| Footprint::new(slice(128, k))).collect();
    let box_and_reads = time(|epoch| {
        black_box(shadow.write(1024, 16 << 10, &by(1, epoch, 7, false)));
        for (k, slice) in (0..).zip(&slices) {
            let access = by(2, 4 * epoch + k, 8, false);
            black_box(shadow.touch_all(slice.areas(1), &access, false));
        }
    });
    println!("the same, and 4 MMA slices of 128 rows of it     {box_and_reads:8.1} ns");
    println!("one such slice                                   {:8.1} ns", (box_and_reads - tma) / 4.0);

    // 32 steps along K, by one cluster after the other.
    let mut shadow = Shadow::default();
    let rows = time(|epoch| {
        let stamp = Stamp::asynchronous(1, epoch, 7, epoch / 32 % 8);
        let access = Access::new(stamp, &views);
        let rows = Rows { first: u64::from(epoch % 32) * 128, bytes: 128, count: 128, pitch: 4096 };
        black_box(shadow.touch_rows(rows, &access, false));
    });
    println!("the 128 rows of such a box in global memory      {rows:8.1} ns");

    let mut shadow = Shadow::default();
    let accumulator = time(|epoch| {
        let quarters = Rows { first: 0, bytes: 256 * 16, count: 4, pitch: 512 * 16 };
        black_box(shadow.touch_rows(quarters, &by(2, epoch, 8, true), true));
    });
    println!("256 columns of tensor memory written by an MMA   {accumulator:8.1} ns");

    let mut shadow = Shadow::default();
    let store = time(|epoch| {
        black_box(shadow.write(u64::from(epoch % 64) * 512, 512, &plain(3, epoch / 64 + 1, 9)));
    });
    println!("a warp's store of 512 bytes in a row             {store:8.1} ns");

    let mut shadow = Shadow::default();
    let rows = time(|epoch| {
        let granules = 1 << (epoch % 32) | 1 << (epoch % 32 + 32);
        let areas = Area::of_blocks(0, 16, granules);
        black_box(shadow.touch_all(areas, &plain(3, epoch / 32 + 1, 100 + epoch % 32), true));
    });
    println!("a warp's store of 16 bytes in each of 32 rows    {rows:8.1} ns");

    let mut shadow = Shadow::default();
    let words = time(|epoch| {
        for lane in 0..32 {
            let at = lane * 512 + u64::from(epoch % 128) * 4;
            black_box(shadow.write(at, 4, &plain(3, epoch / 128 + 1, 100 + epoch % 128)));
        }
    });
    println!("a warp's store of 4 bytes in each of 32 rows     {words:8.1} ns");
}
