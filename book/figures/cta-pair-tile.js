// Who loads, holds and writes which part of the tile of a pair of CTAs.
(function () {
  "use strict";
  const lib = window.bookFigures;
  const { el } = lib;
  const ROW_BYTES = 128;

  const place = (details) => JSON.parse(details.coordinates);

  // The first tile: loads of the first K tile, the MMAs on them, the write-back; each with the rows and columns that it concerns.
  function collect(run) {
    const list = [];
    const copies = run.events.filter((event) => event.category === "copy");
    const loads = copies.filter((event) => event.name.startsWith("load") && place(event.details)[0] === 0);
    const seen = new Set();
    for (const event of loads) {
      const key = [event.cta, event.name, event.details.shared, place(event.details)[1]].join();
      const again = [event.cta, event.name, event.details.shared].join();
      if (seen.has(again)) continue;
      seen.add(again);
      const rows = Number(event.details.bytes) / ROW_BYTES;
      const first = place(event.details)[1];
      list.push({ kind: event.name === "load A" ? "A" : "B", cta: event.cta, first, rows, at: event.start, key,
        words: `the TMA engine of CTA ${event.cta} loads rows ${first} to ${first + rows - 1} of ${event.name.slice(5)} to its own shared memory, ${event.details.shared}; the bytes count on ${event.details.mbarriers}.` });
    }
    // What does not lie in the first tile is of a later one.
    const most = { A: 0, B: 0 };
    for (const one of list) most[one.kind] = Math.max(most[one.kind], one.first + one.rows);
    const firstMmas = [];
    for (const event of run.events) {
      if (event.name.startsWith("MMA") && event.details.accumulates === "false" && !firstMmas.some((one) => one.columnsText === event.details.columns)) {
        const [m, n] = event.name.slice(4).split("x").map(Number);
        const rows = loads.filter((one) => one.details.shared === event.details.A).map((one) => place(one.details)[1]);
        firstMmas.push({ kind: "MMA", at: event.start, m, n, first: Math.min(...rows), ctas: JSON.parse(event.details.CTAs), columnsText: event.details.columns,
          words: `one thread of CTA ${run.lanes[event.by].cta} issues ${event.name}: the tensor cores of CTAs ${JSON.parse(event.details.CTAs).join(" and ")} read A and B of both, and each writes 128 rows to columns ${lib.span(event.details.columns)[0]} to ${lib.span(event.details.columns)[0] + lib.span(event.details.columns)[1] - 1} of its own tensor memory.` });
      }
    }
    list.push(...firstMmas);
    const stored = new Set();
    for (const event of copies.filter((one) => one.name.startsWith("store"))) {
      const [column, row] = place(event.details);
      const rows = 128;
      const columns = Number(event.details.bytes) / rows / 2;
      if (row + rows > most.A || column + columns > most.B || stored.has(`${row},${column}`)) continue;
      stored.add(`${row},${column}`);
      list.push({ kind: "D", cta: event.cta, first: row, rows, column, columns, at: event.start,
        words: `the TMA engine of CTA ${event.cta} writes rows ${row} to ${row + rows - 1}, columns ${column} to ${column + columns - 1} of D.` });
    }
    return { list, height: most.A, width: most.B };
  }

  lib.define("cta-pair-tile", async function (root) {
    let name = lib.asksFor(root, "step09");
    let run = await lib.recording(name);
    let tile = collect(run);
    const colour = (cta) => (cta === 0 ? "f-a" : "f-b");

    const picture = lib.picture((width) => {
      const margin = 24;
      const unit = Math.min(width - 90, 420) / 512;
      const side = 64 * 1.1 * Math.max(unit * 1.6, 0.7);
      const [aLeft, dLeft] = [1, side + 17];
      const dTop = margin + side + 16;
      const scale = Math.min((width - dLeft - 4) / tile.width, 1.2);
      const parts = [];
      const at = steps.at();
      const now = tile.list[at];
      const done = tile.list.slice(0, at + 1);
      const outline = (x, y, w, h, label, inside) => { parts.push(lib.rect(x, y, w, h, "f-box"), lib.text(x, y - 4, label, "f-label")); if (inside) parts.push(inside); };
      const part = (one) => `${one.first}–${one.first + one.rows - 1}`;
      // Two lines in the middle of a part: whose it is, and what of it.
      const both = (x, y, who, what, kind) => [lib.text(x, y - 3, who, kind, "middle"), lib.text(x, y + 13, what, kind, "middle")];
      outline(aLeft, dTop, side, tile.height * scale, "A");
      outline(dLeft, margin, tile.width * scale, side, "B: its rows are D's columns");
      outline(dLeft, dTop, tile.width * scale, tile.height * scale, "D");
      for (const one of done) {
        const is = one === now ? " f-chosen" : "";
        if (one.kind === "A") parts.push(lib.rect(aLeft, dTop + one.first * scale, side, one.rows * scale, `f-cell ${colour(one.cta)}${is}`), ...both(aLeft + side / 2, dTop + (one.first + one.rows / 2) * scale, `CTA ${one.cta}`, part(one), "f-inside-small"));
        if (one.kind === "B") parts.push(lib.rect(dLeft + one.first * scale, margin, one.rows * scale, side, `f-cell ${colour(one.cta)}${is}`), ...both(dLeft + (one.first + one.rows / 2) * scale, margin + side / 2, `CTA ${one.cta}`, width < 480 ? part(one) : `rows ${part(one)}`, "f-inside-small"));
        if (one.kind === "MMA") {
          one.ctas.forEach((cta, rank) => {
            const y = dTop + (one.first + rank * (one.m / 2)) * scale;
            parts.push(lib.rect(dLeft, y, one.n * scale, (one.m / 2) * scale, `f-cell ${colour(cta)} f-dim${is}`), ...both(dLeft + (one.n * scale) / 2, y + (one.m / 4) * scale, width < 480 ? `CTA ${cta}` : `tensor memory of CTA ${cta}`, `rows ${one.first + rank * (one.m / 2)}–${one.first + (rank + 1) * (one.m / 2) - 1}, ${one.n} columns`, "f-label"));
          });
        }
        if (one.kind === "D") parts.push(lib.rect(dLeft + one.column * scale, dTop + one.first * scale, one.columns * scale, one.rows * scale, `f-cell ${colour(one.cta)}${is}`), lib.text(dLeft + (one.column + one.columns / 2) * scale, dTop + (one.first + one.rows / 2) * scale + 4, `CTA ${one.cta}`, "f-inside-small", "middle"));
      }
      return lib.sheet(width, dTop + tile.height * scale + 4, `The tile of D of a pair of CTAs, ${tile.height} × ${tile.width}, with A at its left and B above. ${now ? now.words : ""}`, ...parts);
    });
    const steps = lib.stepper({
      label: "Loads, MMAs and stores of the first tile",
      count: () => tile.list.length,
      show: (at) => { picture.again(); return tile.list[at] ? `Cycle ${tile.list[at].at}: ${tile.list[at].words}` : "Nothing."; },
    });
    const rows = (kind, cta) => tile.list.filter((one) => one.kind === kind && one.cta === cta).map((one) => `${one.first} to ${one.first + one.rows - 1}`);
    const unique = (list) => Array.from(new Set(list)).join(", ");
    const table = lib.details("Who owns what, as a table", () => lib.table(["", "CTA 0", "CTA 1"], [
      ["rows of A that it loads", ...[0, 1].map((cta) => unique(rows("A", cta)))], ["rows of B that it loads", ...[0, 1].map((cta) => unique(rows("B", cta)))],
      ["rows of D that it writes", ...[0, 1].map((cta) => unique(rows("D", cta)))],
      ["columns of D that it writes", ...[0, 1].map((cta) => `0 to ${Math.max(...tile.list.filter((one) => one.kind === "D" && one.cta === cta).map((one) => one.column + one.columns)) - 1}`)],
    ], `The tile of ${tile.height} × ${tile.width}, ${lib.nameOf(name)}`));
    const controls = el("div", { class: "figure-controls" }, lib.choice("kernel", [["step09", "step 9: 256 × 256"], ["step10", "step 10: 512 × 256"]], name, async (value) => {
      name = value;
      run = await lib.recording(name);
      tile = collect(run);
      steps.go(0);
      table.again();
    }), steps);
    lib.frame(root, "who owns what of the tile of two CTAs", [controls, picture, steps.says, table], steps);
    steps.go(Number(root.dataset.at || tile.list.findIndex((one) => one.kind === "MMA")), true);
  });
})();
