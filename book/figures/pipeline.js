// Loads and MMAs of a run with a ring of 1 to 8 stages.
(function () {
  "use strict";
  const lib = window.bookFigures;
  const { el } = lib;
  const KERNELS = { step05: "one thread does all (step 5)", step07: "a warp loads, a warp multiplies (step 7)" };
  const DEPTHS = [1, 2, 3, 4, 5, 6, 7, 8];
  const ROW = 20;
  // Of a round: 64 columns of K.
  const MMAS = 4;

  // Cycles in which one of these intervals runs.
  function covered(intervals) {
    let [sum, until] = [0, 0];
    for (const [from, to] of intervals.slice().sort((a, b) => a[0] - b[0])) {
      if (to > until) sum += to - Math.max(from, until);
      until = Math.max(until, to);
    }
    return sum;
  }

  lib.define("pipeline", async function (root) {
    let kernel = root.dataset.kernel in KERNELS ? root.dataset.kernel : "step05";
    const runs = {};
    for (const name of Object.keys(KERNELS)) {
      runs[name] = await Promise.all(DEPTHS.map(async (depth) => {
        const run = await lib.recording(`${name}_depth_${depth}`);
        const loads = run.events.filter((event) => event.category === "copy" && event.name.startsWith("load"));
        const mmas = run.events.filter((event) => event.name.startsWith("MMA")).sort((a, b) => a.start - b.start);
        const stages = Array.from({ length: depth }, (_, stage) => loads.filter((event) => depth === 1 || event.details.shared.endsWith(`[${stage}]`)));
        const [from, to] = [Math.min(...loads.map((event) => event.start)), Math.max(...mmas.map((event) => event.end))];
        const busy = covered(mmas.map((event) => [event.start, event.end]));
        return { run, depth, loads, mmas, stages, from, to, busy, share: busy / (to - from) };
      }));
    }
    const now = () => runs[kernel][steps.at()];
    const longest = Math.max(...Object.values(runs).flat().map((one) => one.to));
    const begin = Math.min(...Object.values(runs).flat().map((one) => one.from));

    const picture = lib.picture((width) => {
      const one = now();
      const left = width < 480 ? 62 : 84;
      const scale = (width - left - 6) / (longest - begin);
      const x = (cycle) => left + (cycle - begin) * scale;
      const parts = [];
      const lane = (n, label) => {
        parts.push(lib.rect(left, n * ROW, width - left - 4, ROW - 2, "f-lane"));
        parts.push(lib.text(0, n * ROW + 14, label, "f-label"));
      };
      one.stages.forEach((events, stage) => {
        lane(stage, `stage ${stage}`);
        // A round's two copies lie over each other: the first begins, the second ends.
        const rounds = new Map();
        for (const event of events) {
          const round = JSON.parse(event.details.coordinates)[0] / 64;
          const [from, to] = rounds.get(round) || [event.start, event.end];
          rounds.set(round, [Math.min(from, event.start), Math.max(to, event.end)]);
        }
        for (const [round, [from, to]] of rounds) {
          const own = one.mmas.slice(round * MMAS, (round + 1) * MMAS);
          const [first, last] = [own[0].start, Math.max(...own.map((event) => event.end))];
          const box = (start, end, kind, words) => parts.push(lib.rect(x(start), stage * ROW + 1, Math.max((end - start) * scale, 1.5), ROW - 4, `f-event ${kind}`, `round ${round} ${words}, cycles ${start} to ${end}`));
          box(from, to, "f-copy", "is loaded");
          if (first > to) box(to, first, "f-wait", "waits to be multiplied");
          box(first, last, "f-mma", "is multiplied");
          if ((to - from) * scale > 16) parts.push(lib.text(x(from) + 3, stage * ROW + 14, String(round), "f-inside"));
        }
      });
      const row = one.depth;
      lane(row, width < 480 ? "MMAs" : "tensor core");
      for (const event of one.mmas) parts.push(lib.rect(x(event.start), row * ROW + 1, Math.max(event.cycles * scale, 1), ROW - 4, "f-event f-mma", `${event.name} with ${event.details.A}, cycles ${event.start} to ${event.end}`));
      const bottom = (one.depth + 1) * ROW;
      for (let at = Math.ceil(begin / 2000) * 2000; at <= longest; at += width < 480 ? 8000 : 4000) parts.push(lib.text(x(at), bottom + 12, `cycle ${at}`, "f-tick", at > longest * 0.9 ? "end" : "middle"));
      return lib.sheet(width, bottom + 16, `${one.depth} stages: when each is loaded, waits and is multiplied, and the MMAs, cycles ${one.from} to ${one.to}`, ...parts);
    });
    const percent = (share) => `${Math.round(share * 100)} %`;
    const steps = lib.stepper({
      label: "Stages",
      at: Number(root.dataset.depth || 2) - 1,
      count: () => DEPTHS.length,
      show: () => {
        picture.again();
        const one = now();
        const before = runs[kernel][Math.max(one.depth - 2, 0)];
        const gain = one.depth > 1 ? ` One stage less: ${before.to - before.from} cycles.` : "";
        return `${one.depth} stage${one.depth === 1 ? "" : "s"}: 16 rounds take ${one.to - one.from} cycles from the first load to the last MMA; the tensor core has work in ${percent(one.share)} of them.${gain}`;
      },
    });
    const table = lib.details("All depths as a table", () => lib.table(["stages", ...Object.values(KERNELS).flatMap((words) => [`cycles, ${words}`, "tensor core has work"])],
      DEPTHS.map((depth, n) => [String(depth), ...Object.keys(KERNELS).flatMap((name) => [String(runs[name][n].to - runs[name][n].from), percent(runs[name][n].share)])]),
      "16 rounds of 128 × 64 × 64, simulated; L2 holds the matrices"));
    const controls = el("div", { class: "figure-controls" },
      lib.choice("kernel", Object.entries(KERNELS), kernel, (value) => { kernel = value; steps.go(steps.at()); }), el("span", {}, "stages"), steps);
    const legend = el("ul", { class: "figure-legend" }, [["copy", "TMA loads the stage (with the number of the round)"], ["wait", "the stage is full and waits"], ["mma", "MMAs read it"], ["none", "the stage is free"]].map(([key, words]) => el("li", {}, el("span", { class: "f-key f-" + key }), words)));
    lib.frame(root, "a ring of 1 to 8 stages", [controls, picture, steps.says, legend, table], steps);
    steps.go(steps.at());
  });
})();
