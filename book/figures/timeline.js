// What warps and engines do when: a lane for each. One run, or two below each other at one scale.
(function () {
  "use strict";
  const lib = window.bookFigures;
  const { el, svg } = lib;
  const LANE = 22;
  const KINDS = [
    ["mma", "MMAs and commits"], ["copy", "TMA copies"], ["wait", "waits"], ["memory", "loads, stores"],
    ["tensor memory", "tensor memory"], ["mbarrier", "arrivals"], ["fence", "fences"],
  ];
  const css = (category) => "f-" + category.replace(/ /g, "-");

  function ticks(from, to, most) {
    const rough = (to - from) / Math.max(most, 1);
    const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough) || power * 10;
    const all = [];
    for (let at = Math.ceil(from / step) * step; at <= to; at += step) all.push(at);
    return all;
  }

  lib.define("timeline", async function (root) {
    const options = (root.dataset.recordings || "").split(",").map((name) => name.trim()).filter(Boolean);
    let name = lib.asksFor(root, options[0] || "step07");
    let besideName = root.dataset.beside || "";
    const names = options.length > 0 ? options : besideName || root.dataset.recording === "trace" ? [name, besideName].filter(Boolean)
      : Array.from({ length: 10 }, (_, n) => "step" + String(n + 1).padStart(2, "0"));
    let run = await lib.recording(name);
    let beside = besideName ? await lib.recording(besideName) : null;
    let cta = 0;
    let view = [0, 1];
    let chosen = null;
    let only = "all";

    const longest = () => Math.max(run.cycles, beside ? beside.cycles : 0, 1);
    const lanes = (recording) => recording.lanes.map((lane, index) => ({ ...lane, index })).filter((lane) => lane.cta === cta || (recording !== run && lane.cta === 0));
    const stepped = () => run.events.filter((event) => event.cta === cta && (only === "all" || run.lanes[event.lane].track === Number(only)));
    const whole = () => { view = [0, longest()]; };
    whole();

    function drawRun(recording, width, top, withPointer) {
      const label = width < 480 ? 92 : 104;
      const rows = lanes(recording);
      const place = new Map(rows.map((lane, row) => [lane.index, row]));
      const scale = (width - label - 4) / (view[1] - view[0]);
      const x = (cycle) => label + (cycle - view[0]) * scale;
      const clamp = (at) => Math.min(Math.max(at, label), width - 4);
      const parts = [];
      rows.forEach((lane, row) => {
        parts.push(lib.rect(label, top + row * LANE, width - label - 4, LANE - 2, "f-lane"));
        const same = rows.slice(0, row).filter((before) => before.name === lane.name).length;
        parts.push(lib.text(0, top + row * LANE + 14, same === 0 ? lane.name : `${lane.name} (${same + 1})`, "f-label"));
      });
      const last = new Map();
      const drawn = new Map();
      for (const event of recording.events) {
        const row = place.get(event.lane);
        if (row === undefined || event.end < view[0] || event.start > view[1]) continue;
        const [from, to] = [clamp(x(event.start)), clamp(x(event.end))];
        const before = last.get(event.lane);
        // What is thinner than a pixel joins what stands beside it.
        if (before && before.category === event.category && to - before.from < 1.5 && event !== chosen) continue;
        const wide = Math.max(to - from, 1.2);
        const isChosen = withPointer && event === chosen;
        const box = lib.rect(from, top + row * LANE + 1, wide, LANE - 4, "f-event " + css(event.category) + (isChosen ? " f-chosen" : wide < 4 ? " f-thin" : ""), event.name);
        if (withPointer) box.addEventListener("click", () => select(event));
        parts.push(box);
        if (!drawn.has(row)) drawn.set(row, []);
        drawn.get(row).push({ from, to: from + wide, name: event.name });
        last.set(event.lane, { category: event.category, from });
      }
      // A name stands where nothing that begins later covers it.
      for (const [row, boxes] of drawn) {
        boxes.sort((a, b) => a.from - b.from);
        boxes.forEach(({ from, to, name: words }, n) => {
          const free = Math.min(to, n + 1 < boxes.length ? boxes[n + 1].from : to) - from;
          if (free > words.length * 6.2 + 6) parts.push(lib.text(from + 3, top + row * LANE + 14, words, "f-inside"));
        });
      }
      if (withPointer && chosen && chosen.by !== null && place.has(chosen.by) && place.has(chosen.lane)) {
        const [fromRow, toRow] = [place.get(chosen.by), place.get(chosen.lane)];
        parts.push(svg("line", { class: "f-arrow", x1: clamp(x(chosen.asked)), x2: clamp(x(chosen.start)), y1: top + fromRow * LANE + LANE / 2, y2: top + toRow * LANE + LANE / 2 }));
      }
      const bottom = top + rows.length * LANE;
      for (const at of ticks(view[0], view[1], (width - label) / 70)) {
        parts.push(svg("line", { class: "f-grid", x1: x(at), x2: x(at), y1: top, y2: bottom }));
        parts.push(lib.text(Math.min(x(at), width - 16), bottom + 13, String(at), "f-tick", "middle"));
      }
      return { parts, bottom: bottom + 18 };
    }

    const picture = lib.picture((width) => {
      const first = drawRun(run, width, 20, true);
      const parts = [lib.text(0, 13, `${lib.nameOf(name)}: ${run.cycles} cycles`, "f-head"), ...first.parts];
      let bottom = first.bottom;
      if (beside) {
        parts.push(lib.text(0, bottom + 16, `${lib.nameOf(besideName)}: ${beside.cycles} cycles`, "f-head"));
        const second = drawRun(beside, width, bottom + 23, false);
        parts.push(...second.parts);
        bottom = second.bottom;
      }
      return lib.sheet(width, bottom, `Timeline of ${run.title}, CTA ${cta}, cycles ${Math.round(view[0])} to ${Math.round(view[1])}: a lane for each warp and engine`, ...parts);
    });

    // Drag to move along; the picture alone, so that pages still scroll.
    let drag = null;
    picture.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, view: view.slice() }; });
    picture.addEventListener("pointermove", (event) => {
      if (!drag || event.buttons === 0 || Math.abs(event.clientX - drag.x) < 4) return;
      const by = ((drag.x - event.clientX) / Math.max(picture.clientWidth, 1)) * (drag.view[1] - drag.view[0]);
      show(drag.view[0] + by, drag.view[1] + by);
    });
    picture.addEventListener("pointerup", () => { drag = null; });

    function show(from, to) {
      const length = Math.min(Math.max(to - from, 20), longest());
      const begin = Math.min(Math.max(from, 0), longest() - length);
      view = [begin, begin + length];
      picture.again();
    }
    function zoom(factor) {
      const middle = chosen && chosen.start >= view[0] && chosen.start <= view[1] ? chosen.start : (view[0] + view[1]) / 2;
      const length = (view[1] - view[0]) * factor;
      show(middle - (middle - view[0]) * factor, middle - (middle - view[0]) * factor + length);
    }

    const steps = lib.stepper({
      label: "Events",
      count: () => stepped().length,
      show: (at, quiet) => {
        chosen = stepped()[at] || null;
        if (!chosen) return "No event.";
        if (!quiet && (chosen.start < view[0] || chosen.start > view[1])) {
          const length = view[1] - view[0];
          show(chosen.start - length / 5, chosen.start + (length * 4) / 5);
        } else picture.again();
        const words = [lib.describe(run, chosen)];
        const { source, ptx } = chosen.details;
        if (source) words.push(el("br"), el("code", {}, source), run.sources[source] ? " " : "", run.sources[source] ? el("code", {}, run.sources[source]) : "");
        if (ptx) words.push(el("br"), el("code", {}, "PTX " + ptx));
        return words;
      },
    });
    function select(event) {
      if (only !== "all" && run.lanes[event.lane].track !== Number(only)) { only = "all"; laneBox.select.value = "all"; }
      steps.go(stepped().indexOf(event));
    }

    const laneBox = el("span", { class: "figure-field" });
    const ctaBox = el("span", { class: "figure-field" });
    function refill() {
      const all = [["all", "every lane"]];
      const seen = new Set();
      for (const lane of lanes(run)) if (!seen.has(lane.track)) { seen.add(lane.track); all.push([String(lane.track), lane.name]); }
      only = "all";
      const box = lib.choice("step through", all, only, (value) => { only = value; steps.go(0); });
      laneBox.replaceChildren(...box.childNodes);
      laneBox.select = laneBox.querySelector("select");
      const ctas = Array.from(new Set(run.lanes.map((lane) => lane.cta)));
      if (!ctas.includes(cta)) cta = ctas[0] || 0;
      const choices = lib.choice("CTA", ctas.map((n) => [String(n), String(n)]), String(cta), (value) => {
        cta = Number(value);
        steps.go(0);
        events.again();
      });
      ctaBox.replaceChildren(...(ctas.length > 1 ? choices.childNodes : []));
      ctaBox.hidden = ctas.length < 2;
    }

    const events = lib.details("All events of this CTA as a table", () => {
      const list = run.events.filter((event) => event.cta === cta);
      const rows = list.slice(0, 400).map((event) => [String(event.start), event.laneName, event.name, String(event.cycles)]);
      const rest = list.length > 400 ? `, the first 400 of ${list.length}` : "";
      return lib.table(["begins", "lane", "what", "cycles"], rows, `Events of CTA ${cta} of ${lib.nameOf(name)}${rest}`);
    });
    async function change() {
      run = await lib.recording(name);
      beside = besideName ? await lib.recording(besideName) : null;
      refill();
      whole();
      steps.go(0, true);
      events.again();
    }
    const pairs = names.map((key) => [key, lib.nameOf(key)]);
    const choices = names.length > 1 ? [
      lib.choice("show", pairs, name, (value) => { name = value; change(); }),
      lib.choice("beside", [["", "nothing"], ...pairs], besideName, (value) => { besideName = value; change(); }),
    ] : [];
    const controls = el("div", { class: "figure-controls" }, ...choices, ctaBox, laneBox, steps,
      el("span", { class: "figure-steps", role: "group", "aria-label": "Zoom" },
        lib.button("+", "Zoom in", () => zoom(0.5)), lib.button("−", "Zoom out", () => zoom(2)),
        lib.button("←", "Earlier", () => show(view[0] - (view[1] - view[0]) / 3, view[1] - (view[1] - view[0]) / 3)),
        lib.button("→", "Later", () => show(view[0] + (view[1] - view[0]) / 3, view[1] + (view[1] - view[0]) / 3)),
        lib.button("all", "Show all", () => { whole(); picture.again(); })));
    const legend = el("ul", { class: "figure-legend" }, KINDS.map(([kind, words]) => el("li", {}, el("span", { class: "f-key " + css(kind) }), words)),
      el("li", {}, "(2), (3): what runs at the same time on one engine"));
    refill();
    lib.frame(root, "what warps and engines do when", [controls, picture, steps.says, legend, events], steps);
    root.addEventListener("keydown", (event) => {
      if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "+") zoom(0.5);
      else if (event.key === "-") zoom(2);
      else return;
      event.preventDefault();
    });
    steps.go(0, true);
  });
})();
