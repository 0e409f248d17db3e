// The way of a tile of D from tensor memory to global memory, in a run of a step.
(function () {
  "use strict";
  const lib = window.bookFigures;
  const { el } = lib;
  const STATIONS = ["tensor memory", "registers", "shared memory", "global memory"];

  // What the warps of CTA 0 do behind the first load from tensor memory, until they load another tile: what several do at the same time is one step.
  function collect(run) {
    const kinds = [
      [/^tcgen05\.ld$/, "load", [0, 1], (event) => lib.span(event.details.columns)[1] * lib.span(event.details.lanes)[1] * 4, "read from tensor memory to registers"],
      [/^tcgen05\.wait::ld$/, "wait", [1, 1], () => 0, "wait until the registers hold it"],
      [/^store D/, "store", null, (event) => Number(event.details.bytes || 0), ""],
      [/^fence\.proxy\.async$/, "fence", [2, 2], () => 0, "make their stores visible to the TMA engine"],
      [/^barrier/, "barrier", [2, 2], () => 0, "meet at a barrier"],
      [/^arrive ld2mma/, "arrive", [0, 0], () => 0, "tell that the accumulator is free"],
    ];
    const list = [];
    const first = run.events.findIndex((event) => event.cta === 0 && event.name === "tcgen05.ld");
    let columns = 0;
    const read = new Set();
    for (const event of run.events.slice(Math.max(first, 0))) {
      // One warpgroup, and what it asks of the engine.
      const warp = run.lanes[event.by ?? event.lane];
      if (event.cta !== 0 || warp.cta !== 0 || warp.track > 3) continue;
      const isEngine = run.lanes[event.lane].track >= 2000;
      const kind = kinds.find(([pattern]) => pattern.test(event.name));
      if (!kind || (isEngine && kind[1] !== "store") || run.lanes[event.lane].track >= 1000 && !isEngine) continue;
      if (kind[1] === "load") {
        const key = `${event.details.columns},${event.details.lanes}`;
        // The same columns again: the next tile.
        if (read.has(key)) break;
        read.add(key);
      }
      // Warps with other work meet at barriers of their own.
      if (kind[1] === "barrier" && !list.some((one) => one.who.has(event.laneName))) continue;
      let [, name, way, bytes, words] = kind;
      if (name === "store") {
        const direct = event.category === "memory" && !event.name.includes("[") && !run.regions.some((region) => region.name === event.name.slice(6));
        if (isEngine) [name, way, words] = ["tma", [2, 3], "copies the tile from shared to global memory"];
        else if (direct) [name, way, words] = ["direct", [1, 3], "store to global memory"];
        else [way, words] = [[1, 2], "store to shared memory, 16 bytes a thread and instruction"];
      }
      const before = list.findLast((one) => one.name === name);
      // What stands between two of a kind ends the first.
      const between = before ? list.slice(list.indexOf(before) + 1).some((one) => !["wait", "barrier", "fence", "tma", "arrive"].includes(one.name) || (one.name === "fence" && name === "store")) : true;
      if (before && !between && event.start - before.to < 600 && !(["wait", "barrier", "fence", "load"].includes(name) && before.who.has(event.laneName)) && (name !== "load" || before.columns === event.details.columns)) {
        before.to = Math.max(before.to, event.end);
        before.bytes += bytes(event);
        before.count += 1;
        before.who.add(event.laneName);
      } else list.push({ name, way, words, from: event.start, to: event.end, bytes: bytes(event), count: 1, who: new Set([event.laneName]), columns: event.details.columns });
      if (name === "load") columns = Math.max(columns, lib.span(event.details.columns)[0]);
    }
    return list;
  }

  lib.define("write-back", async function (root) {
    const names = (root.dataset.recordings || "step01,step03,step04,step07,step09,step10").split(",");
    let name = lib.asksFor(root, "step04");
    let run = await lib.recording(name);
    let list = collect(run);
    const who = (one) => (one.who.size === 1 ? Array.from(one.who)[0] : `${one.who.size} warps`);
    const words = (one) => `Cycles ${one.from} to ${one.to}, ${who(one)}: ${one.words}${one.columns && one.name === "load" ? `, columns ${lib.span(one.columns)[0]} to ${lib.span(one.columns).reduce((a, b) => a + b) - 1}` : ""}.${one.bytes ? ` ${one.bytes} bytes in ${one.count} instruction${one.count === 1 ? "" : "s"} of a warp.`.replace(/of a warp/, one.name === "tma" ? "to the TMA engine" : "of a warp") : ""}`;

    const picture = lib.picture((width) => {
      const one = list[steps.at()];
      const direct = !list.some((each) => each.name === "store");
      const stations = STATIONS.filter((_, n) => !(direct && n === 2));
      const gap = width < 480 ? 16 : 54;
      const wide = (width - gap * (stations.length - 1) - 4) / stations.length;
      const parts = [];
      const moved = new Map();
      list.slice(0, steps.at() + 1).forEach((each) => { if (each.way[0] !== each.way[1]) moved.set(each.way[1], (moved.get(each.way[1]) || 0) + each.bytes); });
      stations.forEach((station, n) => {
        const index = STATIONS.indexOf(station);
        const x = 2 + n * (wide + gap);
        const active = one && one.way.includes(index);
        parts.push(lib.rect(x, 10, wide, 74, `f-cell ${["f-d", "f-c", "f-g", "f-a"][index]}${active ? " f-chosen" : ""}`));
        const lines = station.split(" ");
        lines.forEach((line, at) => parts.push(lib.text(x + wide / 2, 34 + at * 15, line, width < 480 ? "f-inside" : "f-inside f-head", "middle")));
        if (moved.get(index)) parts.push(lib.text(x + wide / 2, 76, width < 480 ? `${moved.get(index) / 1024} KiB` : `${moved.get(index)} bytes`, "f-inside-small", "middle"));
      });
      if (one) {
        const at = one.way.map((index) => stations.indexOf(STATIONS[index]));
        const centre = (n) => 2 + n * (wide + gap) + wide / 2;
        const y = 104;
        if (at[0] !== at[1]) {
          parts.push(lib.svg("line", { class: "f-strong-line", x1: centre(at[0]), x2: centre(at[1]) - 8, y1: y, y2: y }), lib.svg("path", { class: "f-strong", d: `M ${centre(at[1])} ${y} l -10 -6 v 12 z` }));
        } else parts.push(lib.svg("circle", { class: "f-strong", cx: centre(at[0]), cy: y, r: 5 }));
        parts.push(lib.text(Math.min(Math.max(centre(at[0]), 60), width - 60), y + 20, { load: "tcgen05.ld", wait: "tcgen05.wait::ld", store: "st.shared", direct: "st.global", fence: "fence.proxy.async", barrier: "barrier", tma: "TMA store", arrive: "arrive" }[one.name], "f-head", "middle"));
      }
      return lib.sheet(width, 134, `From tensor memory to global memory. ${one ? words(one) : ""}`, ...parts);
    });
    const steps = lib.stepper({ label: "The write-back of a tile", count: () => list.length, show: (at) => { picture.again(); return list[at] ? words(list[at]) : "Nothing."; } });
    const table = lib.details("All of it as a table", () => lib.table(["cycles", "who", "what", "bytes"], list.map((one) => [`${one.from}–${one.to}`, who(one), one.words, one.bytes ? String(one.bytes) : ""]), `The first tile of CTA 0, ${lib.nameOf(name)}`));
    const controls = el("div", { class: "figure-controls" }, lib.choice("run", names.map((one) => [one, lib.nameOf(one)]), name, async (value) => {
      name = value;
      run = await lib.recording(name);
      list = collect(run);
      steps.go(0);
      table.again();
    }), steps);
    lib.frame(root, "the way back of a tile", [controls, picture, steps.says, table], steps);
    steps.go(0);
  });
})();
