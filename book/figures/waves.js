// How many tiles a D has, in how many waves a B200 computes them, and what is left empty: for five kernels side by side.
(function () {
  "use strict";
  const lib = window.bookFigures;
  const { el } = lib;
  // A test holds these against the emulator's prices.
  const SMS = 148;
  const L2_BYTES = 9190;
  // Of a tile: rows, columns, SMs that work on it, and the rows of A and of B that each of them loads.
  const KERNELS = [
    { name: "128 × 128, a CTA (step 8)", rows: 128, columns: 128, sms: 1, a: 128, b: 128 },
    { name: "128 × 256, a CTA", rows: 128, columns: 256, sms: 1, a: 128, b: 256 },
    { name: "256 × 128, a pair", rows: 256, columns: 128, sms: 2, a: 128, b: 64 },
    { name: "256 × 256, a pair (step 9)", rows: 256, columns: 256, sms: 2, a: 128, b: 128 },
    { name: "512 × 256, a pair (step 10)", rows: 512, columns: 256, sms: 2, a: 256, b: 128 },
  ];
  const SIZES = [1024, 2048, 4096, 8192];

  // For 64 columns of K: what an SM's tensor core takes for its part of a tile, and what L2 takes to bring the operands when all SMs ask.
  function count(kernel, m, n) {
    const workers = SMS / kernel.sms;
    const tiles = Math.ceil(m / kernel.rows) * Math.ceil(n / kernel.columns);
    const waves = Math.ceil(tiles / workers);
    const multiply = (kernel.rows * kernel.columns * 64) / kernel.sms / 4096;
    const load = ((kernel.a + kernel.b) * 64 * 2 * SMS) / L2_BYTES;
    const time = waves * Math.max(multiply, load);
    return { ...kernel, workers, tiles, waves, full: tiles / (waves * workers), wave: Math.max(multiply, load), time, by: load > multiply ? "L2" : "the tensor cores", roof: (m * n * 64) / 4096 / SMS / time };
  }

  lib.define("waves", function (root) {
    let [m, n] = [2048, 2048];
    const all = () => KERNELS.map((kernel) => count(kernel, m, n));
    const percent = (share) => `${Math.round(share * 100)} %`;
    const plural = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;
    const words = (one) => `${one.name}: ${plural(one.tiles, "tile")} for ${one.workers} workers, ${plural(one.waves, "wave")}, ${percent(one.full)} full. By the count it can reach ${percent(one.roof)} of the roof; a full wave waits for ${one.by}.`;
    const picture = lib.picture((width) => {
      const found = all();
      const longest = Math.max(...found.map((one) => one.time));
      const parts = [lib.text(0, 12, "time →, places of the chip ↓", "f-tick")];
      found.forEach((one, at) => {
        const y = 22 + at * 58;
        const chosen = at === steps.at();
        parts.push(lib.text(0, y + 11, one.name, chosen ? "f-head" : "f-tick"));
        const step = ((width - 4) * one.wave) / longest;
        for (let wave = 0; wave < one.waves; wave += 1) {
          const share = Math.min(one.tiles - wave * one.workers, one.workers) / one.workers;
          const title = `wave ${wave + 1}: ${percent(share)} of the places`;
          parts.push(lib.rect(2 + wave * step, y + 16, step, 32, `f-cell f-none${chosen ? " f-chosen" : ""}`, title));
          parts.push(lib.rect(2 + wave * step, y + 16 + 32 * (1 - share), step, 32 * share, "f-cell f-a", title));
        }
      });
      return lib.sheet(width, 22 + found.length * 58, `Waves of five kernels for D of ${m} × ${n}; the shortest line is the fastest by this count`, ...parts);
    });
    const steps = lib.stepper({ label: "Kernels", count: () => KERNELS.length, show: (at) => { picture.again(); return `D of ${m} × ${n}. ${words(all()[at])}`; } });
    const table = lib.details("All kernels as a table", () => lib.table(["tile", "tiles", "waves", "full", "cycles of a wave for 64 columns of K", "bound by", "of the roof, by the count"],
      all().map((one) => [one.name, String(one.tiles), String(one.waves), percent(one.full), String(Math.round(one.wave)), one.by, percent(one.roof)]), `D of ${m} × ${n} on ${SMS} SMs`));
    const again = () => { steps.go(steps.at()); table.again(); };
    const rows = lib.number("M", m, 1, 65536, (value) => { m = value; again(); });
    const columns = lib.number("N", n, 1, 65536, (value) => { n = value; again(); });
    const squares = lib.choice("square", SIZES.map((size) => [String(size), `${size} × ${size}`]), "2048", (value) => {
      m = n = Number(value);
      rows.input.value = columns.input.value = value;
      again();
    });
    const legend = el("ul", { class: "figure-legend" }, [["a", "places with a tile"], ["none", "empty places"]].map(([key, text]) => el("li", {}, el("span", { class: "f-key f-" + key }), text)));
    lib.frame(root, "waves: which tile fills the chip", [el("div", { class: "figure-controls" }, squares, rows, columns, steps), picture, steps.says, legend, table], steps);
    steps.go(0);
  });
})();
