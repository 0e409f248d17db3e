// In which order tiles are computed, and what the tiles of a turn have in common.
(function () {
  "use strict";
  const lib = window.bookFigures;
  const { el } = lib;
  const KERNELS = { order_step05: "a CTA for each tile (step 5)", order_step06: "CTAs that stay, tiles in bands (step 6)", order_step09: "pairs of CTAs, tiles in bands (step 9)" };
  const SMS = 148;
  const TILE = 128;

  // Each load belongs to the n-th tile of its CTA; a turn is what all SMs compute at about the same time.
  function collect(data) {
    const tiles = new Map();
    const counts = new Map();
    for (const [start, cta, matrix, row, bytes] of data.loads) {
      const key = `${cta},${matrix}`;
      const nth = counts.get(key) || 0;
      counts.set(key, nth + 1);
      const id = `${cta},${nth}`;
      if (!tiles.has(id)) tiles.set(id, { cta, nth, start, loads: [], cells: [] });
      tiles.get(id).loads.push([matrix, row, bytes]);
    }
    const stores = new Map();
    for (const [, cta, row, column] of data.stores) {
      if (!stores.has(cta)) stores.set(cta, []);
      stores.get(cta).push([row, column]);
    }
    for (const tile of tiles.values()) {
      const all = stores.get(tile.cta) || [];
      const each = all.length / Math.max(counts.get(`${tile.cta},0`), 1);
      const cells = all.slice(tile.nth * each, (tile.nth + 1) * each).map(([row, column]) => `${Math.floor(row / TILE)},${Math.floor(column / TILE)}`);
      tile.cells = Array.from(new Set(cells)).map((cell) => cell.split(",").map(Number));
    }
    const list = Array.from(tiles.values());
    const ctas = new Set(list.map((tile) => tile.cta)).size;
    if (ctas > SMS) list.sort((a, b) => a.start - b.start || a.cta - b.cta).forEach((tile, n) => { tile.turn = Math.floor(n / SMS); });
    else for (const tile of list) tile.turn = tile.nth;
    const turns = Math.max(...list.map((tile) => tile.turn)) + 1;
    const sums = Array.from({ length: turns }, (_, turn) => {
      const loads = list.filter((tile) => tile.turn === turn).flatMap((tile) => tile.loads);
      const asked = loads.reduce((sum, [, , bytes]) => sum + bytes, 0);
      const different = new Map(loads.map(([matrix, row, bytes]) => [`${matrix},${row}`, bytes]));
      const count = (matrix) => Array.from(different.keys()).filter((key) => key.startsWith(`${matrix},`)).length;
      return { tiles: list.filter((tile) => tile.turn === turn).reduce((sum, tile) => sum + tile.cells.length, 0), asked, different: Array.from(different.values()).reduce((a, b) => a + b, 0), a: count(0), b: count(1) };
    });
    return { list, turns, sums, rows: data.m / TILE, columns: data.n / TILE };
  }

  lib.define("tile-order", async function (root) {
    const all = {};
    for (const name of Object.keys(KERNELS)) all[name] = collect(await lib.data(name));
    let name = root.dataset.kernel in KERNELS ? root.dataset.kernel : "order_step06";
    const kib = (bytes) => `${Math.round(bytes / 1024)} KiB`;
    const words = (sum, turn) => `Turn ${turn + 1}: ${sum.tiles} tiles of 128 × 128. For each 64 columns of K they ask for ${kib(sum.asked)}; ${kib(sum.different)} of that are different (${sum.a} row blocks of A, ${sum.b} of B). If each of them comes to L2 once, it is used ${(sum.asked / sum.different).toFixed(1)} times.`;
    const picture = lib.picture((width) => {
      const now = all[name];
      const left = 30;
      const cell = Math.min((width - left - 4) / now.columns, 22);
      const parts = [lib.text(left, 11, "tile columns of D →, tile rows ↓", "f-tick")];
      for (let row = 0; row < now.rows; row += 4) parts.push(lib.text(left - 5, 18 + row * cell * 0.6 + 14, String(row), "f-tick", "end"));
      for (const tile of now.list) {
        const is = tile.turn === steps.at();
        const before = tile.turn < steps.at();
        for (const [row, column] of tile.cells) parts.push(lib.rect(left + column * cell, 18 + row * cell * 0.6, cell - 1, cell * 0.6 - 1, `${is ? "f-b f-event" : before ? "f-f" : "f-none"}`, `tile ${row}, ${column}: CTA ${tile.cta}, turn ${tile.turn + 1}`));
      }
      return lib.sheet(width, 22 + now.rows * cell * 0.6, `${now.rows} × ${now.columns} tiles of D; those of turn ${steps.at() + 1} are marked`, ...parts);
    });
    const steps = lib.stepper({ label: "Turns", count: () => all[name].turns, show: (at) => { picture.again(); return words(all[name].sums[at], at); } });
    const table = lib.details("All turns as a table", () => lib.table(["kernel, turn", "tiles", "asked for", "different", "row blocks of A, of B", "uses of a byte"],
      Object.entries(KERNELS).flatMap(([key, text]) => all[key].sums.map((sum, turn) => [`${text}, ${turn + 1}`, String(sum.tiles), kib(sum.asked), kib(sum.different), `${sum.a}, ${sum.b}`, (sum.asked / sum.different).toFixed(1)])), "D of 4096 × 2048 on 148 SMs, for each 64 columns of K"));
    const controls = el("div", { class: "figure-controls" }, lib.choice("kernel", Object.entries(KERNELS), name, (value) => { name = value; steps.go(0); }), steps);
    const legend = el("ul", { class: "figure-legend" }, [["b", "this turn"], ["f", "done"], ["none", "to come"]].map(([key, text]) => el("li", {}, el("span", { class: "f-key f-" + key }), text)));
    lib.frame(root, "the order of tiles, and what they share in L2", [controls, picture, steps.says, legend, table], steps);
    steps.go(0);
  });
})();
