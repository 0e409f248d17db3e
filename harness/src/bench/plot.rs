//! A benchmark as a picture: TFLOP/s by size, the kernel's and cuBLAS's.

use super::{Benchmark, Series};
use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 400.0;
/// Room for labels: left, top, right, bottom.
const MARGIN: [f64; 4] = [64.0, 48.0, 24.0, 56.0];
/// Told apart by shape as well as by colour.
const KERNEL: &str = "#0b62a4";
const CUBLAS: &str = "#b45309";

/// The picture, SVG, with a line for the kernel and one for cuBLAS; each point has its numbers as a tooltip.
pub fn svg(benchmark: &Benchmark) -> String {
    let series = &benchmark.series;
    let most =
        series.iter().flat_map(|one| [one.tflops(one.kernel_us()), one.tflops(one.cublas_us())]).fold(1.0, f64::max);
    let step = round_step(most / 5.0);
    let top = (most / step).ceil() * step;
    let [left, above, right, below] = MARGIN;
    let (width, height) = (WIDTH - left - right, HEIGHT - above - below);
    let x = |index: usize| left + width * (index as f64 + 0.5) / series.len().max(1) as f64;
    let y = |tflops: f64| above + height * (1.0 - tflops / top);

    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" font-family=\"sans-serif\" \
         font-size=\"13\" fill=\"#1f2933\">\n<title>{} and cuBLAS on {}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        escaped(&benchmark.kernel),
        escaped(&benchmark.machine.gpu)
    );
    // Writing to a String cannot fail.
    let mut lines = 0.0;
    while lines <= top + step / 2.0 {
        let at = y(lines);
        let _ = writeln!(
            text,
            "<line x1=\"{left}\" y1=\"{at:.1}\" x2=\"{:.1}\" y2=\"{at:.1}\" stroke=\"#d5dbe1\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{lines:.0}</text>",
            left + width,
            left - 8.0,
            at + 4.0
        );
        lines += step;
    }
    for (index, one) in series.iter().enumerate() {
        let _ = writeln!(
            text,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            x(index),
            above + height + 20.0,
            one.problem.extents()
        );
    }
    for (name, colour, square, us) in [
        ("cuBLAS", CUBLAS, true, Series::cublas_us as fn(&Series) -> f64),
        (benchmark.kernel.as_str(), KERNEL, false, Series::kernel_us as fn(&Series) -> f64),
    ] {
        let points: Vec<String> =
            series.iter().enumerate().map(|(i, one)| format!("{:.1},{:.1}", x(i), y(one.tflops(us(one))))).collect();
        let _ = writeln!(
            text,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            points.join(" ")
        );
        for (index, one) in series.iter().enumerate() {
            let (x, tflops) = (x(index), one.tflops(us(one)));
            let y = y(tflops);
            let tooltip = format!("<title>{} at {}: {tflops:.0} TFLOP/s</title>", escaped(name), one.problem.extents());
            let _ = if square {
                writeln!(
                    text,
                    "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"8\" height=\"8\" fill=\"{colour}\">{tooltip}</rect>",
                    x - 4.0,
                    y - 4.0
                )
            } else {
                writeln!(text, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"{colour}\">{tooltip}</circle>")
            };
        }
    }
    let kernel = escaped(&benchmark.kernel);
    let (machine, driver) = (escaped(&benchmark.machine.gpu), escaped(&benchmark.machine.driver));
    let (low, unit) = (HEIGHT - 10.0, above - 28.0);
    let _ = write!(
        text,
        "<text x=\"8\" y=\"{unit}\">TFLOP/s</text>\n\
         <circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"5\" fill=\"{KERNEL}\"/><text x=\"{:.1}\" y=\"{unit}\">{kernel}</text>\n\
         <rect x=\"{:.1}\" y=\"{:.1}\" width=\"8\" height=\"8\" fill=\"{CUBLAS}\"/><text x=\"{:.1}\" y=\"{unit}\">cuBLAS</text>\n\
         <text x=\"{left}\" y=\"{low}\" font-size=\"11\">{machine}, driver {driver}, {}</text>\n</svg>\n",
        left + 80.0,
        unit - 4.0,
        left + 90.0,
        left + 240.0,
        unit - 8.0,
        left + 254.0,
        escaped(&benchmark.date)
    );
    text
}

/// 1, 2 or 5 times a power of ten, no less than this.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.max(1e-3).log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|times| times * power).find(|step| *step >= least).unwrap_or(10.0 * power)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::super::{Machine, Round};
    use super::*;
    use crate::Problem;

    #[test]
    fn steps_are_round_and_large_enough() {
        for (least, step) in [(1.0, 1.0), (1.1, 2.0), (160.0, 200.0), (7.0, 10.0), (50.0, 50.0)] {
            assert!((round_step(least) - step).abs() < 1e-9, "{least}: {}", round_step(least));
        }
    }

    /// The higher line has the smaller y, every point is inside, and names are escaped.
    #[test]
    fn points_lie_where_their_numbers_are() {
        let round = Round { kernel_us: 100.0, cublas_us: 200.0, ..Round::default() };
        let series = |edge: u32| Series {
            problem: Problem::f16(edge, edge, edge),
            rounds: vec![round.clone()],
            predicted_us: None,
        };
        let machine = Machine { gpu: "<GPU> & co".into(), uuid: String::new(), driver: "1".into(), sms: 1 };
        let benchmark = Benchmark {
            kernel: "mine".into(),
            machine,
            date: "d".into(),
            protocol: Vec::new(),
            series: vec![series(1024), series(2048)],
        };
        let text = svg(&benchmark);
        assert!(text.contains("&lt;GPU&gt; &amp; co") && !text.contains("<GPU>"), "{text}");
        let value = |line: &str, name: &str| -> f64 {
            let from = line.split(&format!(" {name}=\"")).nth(1).expect(name);
            from.split('"').next().and_then(|number| number.parse().ok()).expect(line)
        };
        let circles: Vec<f64> = text
            .lines()
            .filter(|line| line.contains("<circle") && line.contains("<title>"))
            .map(|line| value(line, "cy"))
            .collect();
        let squares: Vec<f64> = text
            .lines()
            .filter(|line| line.contains("<rect") && line.contains("<title>"))
            .map(|line| value(line, "y") + 4.0)
            .collect();
        assert_eq!((circles.len(), squares.len()), (2, 2), "{text}");
        let [above, bottom] = [MARGIN[1], HEIGHT - MARGIN[3]];
        for (kernel, cublas) in circles.iter().zip(&squares) {
            assert!(kernel < cublas && *kernel >= above && *cublas <= bottom, "{circles:?} {squares:?}");
            // Half the speed: half the height.
            assert!(((bottom - kernel) / (bottom - cublas) - 2.0).abs() < 0.02, "{kernel} {cublas}");
        }
    }
}
