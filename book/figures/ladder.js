// Published times of a B200, step by step, and beside them what the emulator's clock says. Neither was measured by this project.
(function () {
  "use strict";
  const lib = window.bookFigures;
  const { el, svg } = lib;
  const CLOCK = "The emulator's clock (simulated)";

  lib.define("ladder", async function (root) {
    const data = await lib.data("ladder");
    const key = (size) => size.join(" × ");
    const sizes = Array.from(new Set(data.published.map((point) => key(point.size)))).filter((size) => new Set(data.published.filter((point) => key(point.size) === size).map((point) => point.step)).size > 2);
    // Where the emulator's clock is drawn, too.
    const FIRST = data.emulator.length > 0 ? key(data.emulator[0].size) : sizes[0];
    let size = sizes.includes(FIRST) ? FIRST : sizes[0];
    const STEPS = Array.from({ length: 10 }, (_, n) => n + 1);
    const series = () => {
      const all = new Map();
      const add = (source, point) => { if (!all.has(source)) all.set(source, []); all.get(source).push(point); };
      for (const point of data.emulator) if (key(point.size) === size) add(CLOCK, point);
      for (const point of data.published) if (key(point.size) === size) add(`${point.source} (published)`, point);
      return Array.from(all, ([source, points]) => ({ source, points: points.sort((a, b) => a.step - b.step) }));
    };
    // Kernels that copy element by element are no step below those that do not: no line leads from one to the other.
    const runs = (points) => {
      const all = [];
      for (const point of points) {
        const last = all[all.length - 1];
        if (last && Boolean(last[0].by_elements) === Boolean(point.by_elements)) last.push(point);
        else all.push([point]);
      }
      return all.filter((run) => run.length > 1);
    };
    const SHAPES = ["f-b", "f-a", "f-c", "f-d", "f-e", "f-g"];
    const mark = (x, y, shape, chosen) => {
      const css = `f-event ${SHAPES[shape % SHAPES.length]}${chosen ? " f-chosen" : ""}`;
      if (shape % 3 === 0) return svg("rect", { x: x - 6, y: y - 6, width: 12, height: 12, class: css });
      if (shape % 3 === 1) return svg("circle", { cx: x, cy: y, r: 7, class: css });
      return svg("path", { d: `M ${x} ${y - 8} L ${x + 8} ${y + 6} L ${x - 8} ${y + 6} Z`, class: css });
    };
    const picture = lib.picture((width) => {
      const all = series();
      const most = Math.max(...all.flatMap((one) => one.points.map((point) => point.tflops)));
      const step = most > 1200 ? 400 : most > 500 ? 200 : most > 200 ? 100 : 25;
      const top = Math.ceil(most / step) * step;
      const [left, height] = [40, 240];
      const x = (n) => left + 14 + ((n - 1) * (width - left - 34)) / 9;
      const y = (value) => 20 + height - (value / top) * height;
      const parts = [lib.text(0, 12, "TFLOP/s", "f-tick")];
      for (let value = 0; value <= top; value += step) parts.push(svg("line", { class: "f-grid", x1: left, x2: width - 4, y1: y(value), y2: y(value) }), lib.text(left - 5, y(value) + 4, String(value), "f-tick", "end"));
      for (const n of STEPS) parts.push(lib.text(x(n), height + 38, width < 480 ? String(n) : `step ${n}`, n === steps.at() + 1 ? "f-head" : "f-tick", "middle"));
      parts.push(lib.rect(x(steps.at() + 1) - 12, 20, 24, height, "f-lane"));
      all.forEach((one, shape) => {
        for (const run of runs(one.points)) {
          const points = run.map((point) => `${x(point.step)},${y(point.tflops)}`).join(" ");
          parts.push(svg("polyline", { points, class: "f-line", "data-steps": run.map((point) => point.step).join(" "), "stroke-dasharray": one.source === CLOCK ? "5 4" : null }));
        }
        for (const point of one.points) parts.push(mark(x(point.step), y(point.tflops), shape, point.step === steps.at() + 1));
      });
      return lib.sheet(width, height + 46, `TFLOP/s of each step at ${size}: published times of a B200, and the emulator's clock`, ...parts);
    });
    const number = (value) => (value < 10 ? value.toFixed(2) : String(Math.round(value)));
    const steps = lib.stepper({
      label: "Steps",
      at: 3,
      count: () => 10,
      show: (at) => {
        picture.again();
        const found = series().flatMap((one) => one.points.filter((point) => point.step === at + 1).map((point) => `${one.source}${point.kernel && point.kernel !== String(point.step) ? `, ${point.kernel}` : ""}: ${number(point.tflops)} TFLOP/s${point.by_elements ? ", of a kernel that copies element by element and not as ours" : ""}`));
        const clock = series().some((one) => one.source === CLOCK) ? "" : ` The emulator's clock is drawn at ${FIRST} alone.`;
        return `Step ${at + 1} at ${size}. ${found.length > 0 ? found.join("; ") : "No time was published"}.${clock}`;
      },
    });
    const legend = el("ul", { class: "figure-legend" });
    const refill = () => legend.replaceChildren(...series().map((one, shape) => el("li", {}, svg("svg", { width: 18, height: 18, "aria-hidden": "true" }, mark(9, 9, shape, false)), one.source)));
    const table = lib.details("All points as a table", () => lib.table(["source", "kernel there", "step", "TFLOP/s"], series().flatMap((one) => one.points.map((point) => [one.source, point.kernel || `our step ${point.step}`, String(point.step), number(point.tflops)])), `B200, ${size}. ${data.assumptions.join(". ")}.`));
    const controls = el("div", { class: "figure-controls" }, lib.choice("M × N × K", sizes.map((one) => [one, one]), size, (value) => { size = value; refill(); steps.go(steps.at()); table.again(); }), steps);
    refill();
    lib.frame(root, "published ladders, and the emulator's clock", [controls, picture, steps.says, legend, table], steps);
    steps.go(steps.at());
  });
})();
