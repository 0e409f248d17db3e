// Where the 16-byte chunks of a tile lie in shared memory, and what a read of a column or of a row asks of the banks.
(function () {
  "use strict";
  const lib = window.bookFigures;
  const { el } = lib;
  const { SWIZZLES, swizzle, bank, turns } = window.bookFormulas;
  const LINES = 8;
  const LINE = 128;
  const CHUNK = 16;

  lib.define("swizzle", function (root) {
    const wanted = root.dataset.mode || "128";
    let mode = wanted in SWIZZLES ? wanted : `b${wanted}`;
    let read = root.dataset.read || "column";
    let span = SWIZZLES[mode].span;

    const chunks = () => span / CHUNK;
    const rows = () => (LINES * LINE) / span;
    // A chunk that begins at byte 0 of the pattern's period of 1024 bytes.
    const place = (row, chunk) => swizzle(mode, row * span + chunk * CHUNK);
    const asked = (at) => read === "column" ? Array.from({ length: 8 }, (_, n) => [Math.floor(at / chunks()) * 8 + n, at % chunks()])
      : Array.from({ length: chunks() }, (_, chunk) => [at, chunk]);
    // The read that takes a chunk.
    const readOf = (row, chunk) => (read === "column" ? Math.floor(row / 8) * chunks() + chunk : row);
    const count = () => read === "column" ? chunks() * Math.floor(rows() / 8) : rows();

    const picture = lib.picture((width) => {
      const left = width < 480 ? 30 : 56;
      const cell = Math.floor((width - left - 2) / 8);
      const height = 30;
      const chosen = new Set(asked(steps.at()).map(([row, chunk]) => place(row, chunk) & ~15));
      const parts = [];
      for (let n = 0; n < 8; n += 1) parts.push(lib.text(left + n * cell + cell / 2, 12, width < 480 ? `${n * 4}` : `banks ${n * 4}–${n * 4 + 3}`, "f-tick", "middle"));
      for (let line = 0; line < LINES; line += 1) parts.push(lib.text(0, 18 + line * height + 19, width < 480 ? String(line * LINE) : `byte ${line * LINE}`, "f-tick"));
      const colours = ["f-a", "f-b", "f-c", "f-d", "f-e", "f-g", "f-f", "f-none"];
      for (let row = 0; row < rows(); row += 1) {
        for (let chunk = 0; chunk < chunks(); chunk += 1) {
          const address = place(row, chunk);
          const [x, y] = [left + Math.floor((address % LINE) / CHUNK) * cell, 18 + Math.floor(address / LINE) * height];
          const is = chosen.has(address & ~15);
          const box = lib.rect(x + 1, y + 1, cell - 2, height - 2, `f-cell f-touch ${colours[chunk % 8]}${is ? " f-chosen" : " f-dim"}`, `row ${row}, chunk ${chunk}: byte ${address}, banks ${bank(address)} to ${bank(address) + 3}`);
          box.addEventListener("click", () => steps.go(readOf(row, chunk)));
          parts.push(box);
          // With exchanged halves the second 8 bytes come first.
          parts.push(lib.text(x + cell / 2, y + 19, `${row},${chunk}${address & 8 ? "⇄" : ""}`, is ? "f-inside f-head" : "f-inside", "middle"));
        }
      }
      const { counts } = turns(asked(steps.at()).map(([row, chunk]) => place(row, chunk) & ~15), CHUNK);
      parts.push(lib.text(left, 18 + LINES * height + 16, "in each cell: row, chunk of the tile", "f-tick"));
      const top = 18 + LINES * height + 40;
      const most = Math.max(...counts);
      parts.push(lib.text(left, top, "words that each bank is asked for", "f-label"));
      parts.push(lib.text(left - 6, top + 14 + (8 - most) * 6, String(most), "f-tick", "end"));
      const bar = (cell * 8) / 32;
      counts.forEach((n, b) => {
        parts.push(lib.rect(left + b * bar + 0.5, top + 8 + (8 - n) * 6, bar - 1, n * 6, n > 1 ? "f-e f-cell" : "f-a f-cell", `bank ${b}: ${n}`));
      });
      parts.push(lib.rect(left, top + 56, cell * 8, 1, "f-exit"));
      parts.push(lib.text(left, top + 70, "bank 0", "f-tick"), lib.text(left + cell * 8, top + 70, "bank 31", "f-tick", "end"));
      return lib.sheet(width, top + 76, `1024 bytes of shared memory as 8 lines of 128 bytes; in each cell the row and the chunk of the tile that lie there. Swizzle: ${SWIZZLES[mode].name}`, ...parts);
    });

    const steps = lib.stepper({
      label: "Reads",
      count,
      show: (at) => {
        picture.again();
        table.again();
        const list = asked(at);
        const { counts, turns: most } = turns(list.map(([row, chunk]) => place(row, chunk) & ~15), CHUNK);
        const [from, to] = [list[0], list[list.length - 1]];
        const what = read === "column" ? `Chunk ${from[1]} of rows ${from[0]} to ${to[0]}` : `All chunks of row ${from[0]}`;
        const banks = counts.filter((n) => n > 0).length;
        return `${what}: ${list.length} times 16 bytes from ${banks} of 32 banks. The busiest bank is asked for ${most} different word${most === 1 ? "" : "s"}: ${most === 1 ? "no conflict, one turn" : `${most} turns`}.`;
      },
    });
    const table = lib.details("The chunks that are read, as a table", () => lib.table(["row, chunk", "byte without swizzle", "byte with it", "banks"],
      asked(steps.at()).map(([row, chunk]) => {
        const address = place(row, chunk) & ~15;
        return [`${row}, ${chunk}`, String(row * span + chunk * CHUNK), String(address), `${bank(address)} to ${bank(address) + 3}`];
      }), `Swizzle: ${SWIZZLES[mode].name}`));
    const spanChoice = lib.choice("bytes in a row", [["32", "32"], ["64", "64"], ["128", "128"]], String(span), (value) => { span = Number(value); steps.go(0); });
    spanChoice.hidden = mode !== "none";
    const controls = el("div", { class: "figure-controls" },
      lib.choice("swizzle", Object.entries(SWIZZLES).map(([key, { name }]) => [key, name]), mode, (value) => {
        mode = value;
        span = SWIZZLES[mode].span;
        spanChoice.select.value = String(span);
        spanChoice.hidden = mode !== "none";
        steps.go(0);
      }), spanChoice,
      lib.choice("read", [["column", "one chunk of eight rows"], ["row", "one row"]], read, (value) => { read = value; steps.go(0); }), steps);
    lib.frame(root, "where chunks lie in shared memory, and which banks a read asks", [controls, picture, steps.says, table], steps);
    steps.go(0);
  });
})();
