// A hang: who waits for which mbarrier, and who would arrive there. The waits are those of the emulator's report, the arrivals those of the
// kernel without the mistake.
(function () {
  "use strict";
  const lib = window.bookFigures;
  const { el, svg } = lib;
  const RUNS = {
    producer_begins_with_phase_0: "the warp that loads begins with parity 0", accumulator_begins_with_phase_0: "the warp that multiplies begins with phase 0 of ld2mma",
    stage_never_freed: "no commit to mma2tma",
  };
  const ROLES = { "warp 7": "loads", "warp 4": "multiplies", "warp 0": "writes back", "warp 1": "writes back", "warp 2": "writes back", "warp 3": "writes back" };

  const named = (warp) => warp.replace("w", "W");

  function graph(report, right) {
    const waits = [];
    for (const label of report.labels) {
      const found = /^(warp \d+) waits for `([^`]+)`,? \(?parity (\d)/.exec(label.text);
      if (found) waits.push({ warp: found[1], barrier: found[2], parity: found[3], line: label.place.line, ptx: label.place.text });
    }
    // Who arrives there when all is right: a warp itself, or an engine that it asked.
    const arrivals = new Map();
    for (const { barrier } of waits) {
      const by = new Set();
      for (const event of right.events) {
        const asked = event.by === null || event.by === undefined ? null : right.lanes[event.by].name;
        if (event.name === `arrive ${barrier}`) by.add(asked || event.laneName);
      }
      arrivals.set(barrier, Array.from(by));
    }
    return { waits, arrivals };
  }

  lib.define("deadlock", async function (root) {
    let name = root.dataset.recording in RUNS ? root.dataset.recording : "producer_begins_with_phase_0";
    const right = await lib.recording("protocol_right");
    let report = null;
    let web = { waits: [], arrivals: new Map() };
    let list = [];

    function follow() {
      // From the first wait on: its barrier, who should arrive there, what that one waits for; round, or to an end.
      const path = [];
      const seen = new Set();
      let wait = web.waits[0];
      while (wait && !seen.has(wait.warp)) {
        seen.add(wait.warp);
        path.push({ kind: "wait", wait, words: `${named(wait.warp)} (${ROLES[wait.warp] || "other work"}) waits for ${wait.barrier}, parity ${wait.parity}.` });
        const next = web.arrivals.get(wait.barrier) || [];
        const by = next.find((warp) => web.waits.some((one) => one.warp === warp)) || next[0];
        if (!by) break;
        const then = web.waits.find((one) => one.warp === by);
        path.push({ kind: "arrive", wait, by, words: `In the kernel without the mistake ${next.length > 3 ? `${next.length} warps` : next.join(", ")} arrive${next.length === 1 ? "s" : ""} there, or the engine that ${next.length === 1 ? "it asks" : "they ask"}.${then && seen.has(by) ? " The circle is closed: nobody can go on." : then ? "" : ` ${by} does not wait: the arrival is missing.`}` });
        wait = then;
      }
      for (const other of web.waits) if (!seen.has(other.warp)) path.push({ kind: "wait", wait: other, words: `${named(other.warp)} (${ROLES[other.warp] || "other work"}) waits for ${other.barrier}, parity ${other.parity}, behind them.` });
      path.push({ kind: "says", words: `The emulator says: ${report.title}. ${report.help}` });
      return path;
    }

    const picture = lib.picture((width) => {
      const rows = web.waits.length;
      const height = rows * 74 + 6;
      const wide = Math.min(width * 0.36, 210);
      const rightAt = width - wide - 2;
      const y = (n) => 6 + n * 74;
      const row = new Map(web.waits.map((wait, n) => [wait.warp, n]));
      // A head for each kind of line: it takes neither colour nor size from the line.
      const head = (name, kind) => svg("marker", { id: name, viewBox: "0 0 10 10", refX: 9, refY: 5, markerWidth: 11, markerHeight: 11, markerUnits: "userSpaceOnUse", orient: "auto-start-reverse" }, svg("path", { d: "M 0 0 L 10 5 L 0 10 z", class: kind }));
      const parts = [svg("defs", {}, head("figure-arrow", "f-exit"), head("figure-arrow-chosen", "f-strong"))];
      const line = (is, more) => svg("line", { class: is ? "f-strong-line" : "f-line", "marker-end": `url(#figure-arrow${is ? "-chosen" : ""})`, ...more });
      const now = list[steps.at()];
      web.waits.forEach((wait, n) => {
        const isWait = now && now.kind === "wait" && now.wait === wait;
        parts.push(lib.rect(2, y(n), wide, 46, `f-cell f-a${now && (isWait || (now.kind === "arrive" && now.by === wait.warp)) ? " f-chosen" : ""}`));
        parts.push(lib.text(2 + wide / 2, y(n) + 19, wait.warp, "f-inside f-head", "middle"), lib.text(2 + wide / 2, y(n) + 36, ROLES[wait.warp] || "", "f-inside", "middle"));
        parts.push(lib.rect(rightAt, y(n), wide, 46, `f-cell f-g${now && now.wait === wait ? " f-chosen" : ""}`));
        parts.push(lib.text(rightAt + wide / 2, y(n) + 19, wait.barrier, "f-inside f-head", "middle"), lib.text(rightAt + wide / 2, y(n) + 36, `parity ${wait.parity}`, "f-inside", "middle"));
        parts.push(line(isWait, { x1: wide + 4, x2: rightAt - 3, y1: y(n) + 14, y2: y(n) + 14 }));
        for (const by of web.arrivals.get(wait.barrier) || []) {
          const to = row.get(by);
          if (to === undefined) continue;
          const is = now && now.kind === "arrive" && now.wait === wait && now.by === by;
          parts.push(line(is, { "stroke-dasharray": "6 4", x1: rightAt - 3, x2: wide + 6, y1: y(n) + 32, y2: y(to) + 32 }));
        }
      });
      if (width >= 420) web.waits.forEach((_, n) => parts.push(lib.text((wide + rightAt) / 2, y(n) + 9, "waits for", "f-tick f-halo", "middle")));
      parts.push(lib.text(2, height + 8, "dashed: who arrives there in the kernel without the mistake", "f-tick"));
      return lib.sheet(width, height + 14, `Waits and arrivals of the hang. ${now ? now.words : ""}`, ...parts);
    });
    const steps = lib.stepper({
      label: "Round the circle",
      count: () => list.length,
      show: (at) => {
        picture.again();
        const one = list[at];
        if (!one) return "";
        return one.kind === "wait" ? [one.words, el("br"), el("code", {}, `PTX ${one.wait.line}: ${one.wait.ptx}`)] : one.words;
      },
    });
    const table = lib.details("The waits as a table", () => lib.table(["who waits", "for", "who arrives there without the mistake"], web.waits.map((wait) => [`${wait.warp}, ${ROLES[wait.warp] || ""}`, `${wait.barrier}, parity ${wait.parity}`, (web.arrivals.get(wait.barrier) || []).join(", ") || "nobody"]), `Step 7: ${RUNS[name]}`));
    async function change(value) {
      name = value;
      const run = await lib.recording(name);
      report = run.findings.find((one) => one.code === "hang");
      web = graph(report, right);
      list = follow();
      steps.go(0);
      table.again();
    }
    const controls = el("div", { class: "figure-controls" }, lib.choice("the mistake in step 7", Object.entries(RUNS), name, change), steps);
    lib.frame(root, "a hang, from wait to wait", [controls, picture, steps.says, table], steps);
    await change(name);
  });
})();
