// Tensor memory while tiles are computed: who holds columns, what is written and read.
(function () {
  "use strict";
  const lib = window.bookFigures;
  const { el } = lib;
  const COLUMNS = 512;
  const LANES = 128;
  const nameOf = (step) => `step ${Number(step.slice(4))}`;

  // What happens to tensor memory of a CTA: MMAs into the same columns that follow each other are one thing, and so are loads of several warps.
  function collect(run, cta) {
    const list = [];
    const add = (kind, event, columns, lanes, words) => {
      // Back to the last thing of another kind.
      const since = list.findLastIndex((one) => one.kind !== kind) + 1;
      const before = kind === "mma" || kind === "load" ? list.slice(since).find((one) => one.columns.join() === columns.join()) : null;
      if (before) {
        before.count += 1;
        before.to = Math.max(before.to, event.end);
        before.lanes.push(lanes);
        before.who.add(event.laneName);
      } else list.push({ kind, from: event.start, to: event.end, columns, lanes: [lanes], count: 1, who: new Set([event.laneName]), words });
    };
    for (const event of run.events) {
      const { details } = event;
      const columns = lib.span(details.columns);
      if (!columns) continue;
      const all = [0, LANES];
      if (event.name.startsWith("MMA") && JSON.parse(details.CTAs).includes(cta)) add("mma", event, columns, all, `${event.name} ${details.accumulates === "true" ? "adds to" : "overwrites"}`);
      if (event.cta !== cta) continue;
      if (event.name === "tcgen05.alloc") add("alloc", event, columns, all, "");
      if (event.name === "tcgen05.dealloc") add("free", event, columns, all, "");
      if (event.name === "tcgen05.ld") add("load", event, columns, lib.span(details.lanes), "");
    }
    return list;
  }

  function words(one) {
    const columns = `columns ${one.columns[0]} to ${one.columns[0] + one.columns[1] - 1}`;
    const who = Array.from(one.who).sort().join(", ");
    const times = `Cycles ${one.from} to ${one.to}`;
    if (one.kind === "alloc") return `Cycle ${one.from}: ${who} allocates ${columns}. They hold anything now.`;
    if (one.kind === "free") return `Cycle ${one.from}: ${who} frees ${columns}.`;
    if (one.kind === "mma") return `${times}: ${one.count} MMA${one.count === 1 ? " writes" : "s write"} ${columns}, all 128 lanes. The first ${one.words} what is there.`;
    const lanes = one.lanes.map(([first, count]) => `${first} to ${first + count - 1}`).sort((a, b) => parseInt(a, 10) - parseInt(b, 10));
    return `${times}: ${who} read${one.who.size === 1 ? "s" : ""} ${columns}; each warp reaches its own 32 lanes: ${lanes.join(", ")}.`;
  }

  lib.define("tmem-map", async function (root) {
    const names = (root.dataset.recordings || "step01,step04,step07,step09,step10").split(",");
    let name = lib.asksFor(root, "step07");
    let run = await lib.recording(name);
    let list = collect(run, 0);

    const picture = lib.picture((width) => {
      const left = width < 480 ? 34 : 80;
      const room = width - left - 8;
      const scale = room / COLUMNS;
      const top = 18;
      const high = LANES * 1.25;
      const at = steps.at();
      const one = list[at];
      const parts = [lib.rect(left, top, room, high, "f-box")];
      for (let column = 0; column <= COLUMNS; column += 64) {
        if (column % 128 === 0) parts.push(lib.text(left + column * scale, 12, String(column), "f-tick", column === COLUMNS ? "end" : "middle"));
        parts.push(lib.rect(left + column * scale, top, 0.6, high, "f-exit"));
      }
      for (let quarter = 0; quarter < 4; quarter += 1) {
        parts.push(lib.text(0, top + quarter * (high / 4) + high / 8 + 4, width < 480 ? `${quarter * 32}–` : `lanes ${quarter * 32}–${quarter * 32 + 31}`, "f-tick"));
        parts.push(lib.rect(left, top + quarter * (high / 4), room, 0.6, "f-exit"));
      }
      let held = null;
      const written = new Map();
      list.slice(0, at + 1).forEach((before) => {
        if (before.kind === "alloc") held = before.columns;
        if (before.kind === "free") { held = null; written.clear(); }
        if (before.kind === "mma") written.set(before.columns.join(), before.columns);
      });
      const box = (columns, className, title, lanes) => lib.rect(left + columns[0] * scale, top + (lanes ? lanes[0] * 1.25 : 0), columns[1] * scale, lanes ? lanes[1] * 1.25 : high, className, title);
      if (held) parts.push(box(held, "f-cell f-d", "allocated"));
      for (const columns of written.values()) parts.push(box(columns, "f-cell f-b f-dim", "holds sums"));
      if (one && one.kind === "mma") parts.push(box(one.columns, "f-cell f-b f-chosen", "MMAs write"));
      if (one && one.kind === "load") for (const lanes of one.lanes) parts.push(box(one.columns, "f-cell f-c f-chosen", "a warp reads", lanes));
      const middle = (columns) => left + (columns[0] + columns[1] / 2) * scale;
      // A word that does not fit into its columns stands behind them, on what is below.
      const word = one && { alloc: "allocated", mma: "MMAs write", load: "read" }[one.kind];
      const fits = one && one.columns[1] * scale > 84;
      const behind = one && left + (one.columns[0] + one.columns[1]) * scale + 5;
      if (word) parts.push(lib.text(fits ? middle(one.columns) : behind, top + high / 2 + 4, word, fits ? "f-inside f-head" : "f-head", fits ? "middle" : "start"));
      // Where in the run this is.
      const line = top + high + 22;
      parts.push(lib.rect(left, line, room, 8, "f-lane"));
      for (const [n, each] of list.entries()) {
        const x = left + (each.from / run.cycles) * room;
        parts.push(lib.rect(x, line, Math.max(((each.to - each.from) / run.cycles) * room, 1.5), 8, (n === at ? "f-chosen " : "") + { alloc: "f-d", free: "f-d", mma: "f-b", load: "f-c" }[each.kind]));
      }
      parts.push(lib.text(left, line + 20, "cycle 0", "f-tick"), lib.text(left + room, line + 20, String(run.cycles), "f-tick", "end"));
      return lib.sheet(width, line + 24, `Tensor memory of CTA 0: 128 lanes, 512 columns of 4 bytes. ${one ? words(one) : ""}`, ...parts);
    });
    const steps = lib.stepper({ label: "What happens to tensor memory", count: () => list.length, show: (at) => { picture.again(); return list[at] ? words(list[at]) : "Nothing."; } });
    const table = lib.details("All of it as a table", () => lib.table(["from cycle", "to", "what"], list.map((one) => [String(one.from), String(one.to), words(one).replace(/^[^:]*: /, "")]), `Tensor memory of CTA 0, ${nameOf(name)}`));
    const controls = el("div", { class: "figure-controls" }, lib.choice("run", names.map((one) => [one, nameOf(one)]), name, async (value) => {
      name = value;
      run = await lib.recording(name);
      list = collect(run, 0);
      steps.go(0);
      table.again();
    }), steps);
    const legend = el("ul", { class: "figure-legend" }, [["d", "allocated"], ["b", "sums of MMAs"], ["c", "read by warps"]].map(([key, text]) => el("li", {}, el("span", { class: "f-key f-" + key }), text)));
    lib.frame(root, "tensor memory of a CTA", [controls, picture, steps.says, legend, table], steps);
    steps.go(0);
  });
})();
